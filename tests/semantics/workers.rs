//! Members that ack what they get, and report it.

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::support::*;
use tinybroker::proto::OpenSubscription;

/// Members of groups, each a task: it acks by the unary call, then reports.
pub struct Workers {
    report: mpsc::UnboundedSender<(usize, String)>,
    reports: mpsc::UnboundedReceiver<(usize, String)>,
    tasks: Vec<AbortHandle>,
}

impl Workers {
    pub fn new() -> Self {
        let (report, reports) = mpsc::unbounded_channel();
        Workers { report, reports, tasks: Vec::new() }
    }

    /// Opens a member and waits for its first event. Returns its number.
    pub async fn join(&mut self, client: &Client, open: OpenSubscription) -> usize {
        let (mut stream, id) = client.subscribe(open).await;
        let (number, report, client) = (self.tasks.len(), self.report.clone(), client.clone());
        let work = async move {
            loop {
                // Without a limit: a worker may have nothing to do for as long as its test lasts.
                let Ok(Some(message)) = stream.next_message_whenever().await else { return };
                client.ack(ack_by_system_id(&id, &message.system_id)).await.expect("the ack settles");
                let _ = report.send((number, payload(&message)));
            }
        };
        self.tasks.push(tokio::spawn(work).abort_handle());
        number
    }

    /// Cancels a member's stream.
    pub fn leave(&self, number: usize) {
        self.tasks[number].abort();
    }

    /// The next message that any member has acked.
    pub async fn next(&mut self) -> (usize, String) {
        in_time(self.reports.recv()).await.expect("the sender is held here")
    }

    /// Publishes `count` messages, each after the last was acked. Returns how many each member got.
    pub async fn share(&mut self, client: &Client, topic: &str, count: u32) -> Vec<u32> {
        let mut shares = vec![0; self.tasks.len()];
        for number in 1..=count {
            client.publish(topic, &number.to_string()).await;
            let (worker, payload) = self.next().await;
            assert_eq!(payload, number.to_string());
            shares[worker] += 1;
        }
        shares
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
