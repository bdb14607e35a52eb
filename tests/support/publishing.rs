//! Publishers of many messages: streams and batches.

use tinybroker::proto::{PublishBatchRequest, PublishBatchResponse, PublishConfirm, PublishRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, Streaming};

use super::{Client, end_of, in_time, message};

/// One stream of publishes. Dropping it cancels the call.
pub struct Publisher {
    requests: Option<mpsc::UnboundedSender<PublishRequest>>,
    confirms: Streaming<PublishConfirm>,
    /// What all confirms said together.
    pub told: PublishConfirm,
}

impl Client {
    pub async fn try_publish_stream(&self) -> Result<Publisher, Status> {
        let (requests, receiver) = mpsc::unbounded_channel();
        let mut stub = self.0.clone();
        let call = stub.publish_stream(UnboundedReceiverStream::new(receiver));
        let confirms = in_time(call).await?.into_inner();
        Ok(Publisher { requests: Some(requests), confirms, told: PublishConfirm::default() })
    }

    pub async fn publisher(&self) -> Publisher {
        self.try_publish_stream().await.expect("the stream begins")
    }

    pub async fn try_publish_batch(
        &self,
        messages: Vec<PublishRequest>,
    ) -> Result<PublishBatchResponse, Status> {
        let mut stub = self.0.clone();
        in_time(stub.publish_batch(PublishBatchRequest { messages })).await.map(tonic::Response::into_inner)
    }

    /// A batch that must go through as a call.
    pub async fn publish_batch(&self, messages: Vec<PublishRequest>) -> PublishBatchResponse {
        let count = messages.len();
        let answer = self.try_publish_batch(messages).await.expect("the batch is answered");
        assert_eq!(answer.results.len(), count, "one result a message");
        answer
    }
}

impl Publisher {
    /// What comes after the end of the stream is lost, as in any client.
    pub fn send(&self, request: PublishRequest) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(request);
        }
    }

    /// Payloads `first..=last` to one topic, as fast as they go.
    pub fn send_numbers(&self, topic: &str, first: u32, last: u32) {
        for number in first..=last {
            self.send(message(topic, &number.to_string()));
        }
    }

    pub fn half_close(&mut self) {
        self.requests = None;
    }

    /// The next confirm, or how the stream ended: `Ok(None)` is status OK. Checks what holds for every confirm.
    pub async fn next(&mut self) -> Result<Option<PublishConfirm>, Status> {
        let Some(confirm) = in_time(self.confirms.message()).await? else { return Ok(None) };
        let (before, settled) = (self.told.confirmed, confirm.confirmed);
        assert!(before <= settled, "confirms are cumulative: {settled} after {before}");
        assert!(confirm.unheard + confirm.failures.len() as u64 <= settled - before, "{confirm:?}");
        let mut least = before;
        for failure in &confirm.failures {
            assert!(
                (least..settled).contains(&failure.index),
                "{failure:?} is due from {least} to {settled}"
            );
            least = failure.index + 1;
        }
        self.told.confirmed = settled;
        self.told.unheard += confirm.unheard;
        self.told.failures.extend(confirm.failures.iter().cloned());
        Ok(Some(confirm))
    }

    /// Reads confirms until so many requests are settled.
    pub async fn settled(&mut self, count: u64) {
        while self.told.confirmed < count {
            self.next().await.expect("the stream lives").expect("the stream goes on");
        }
        assert_eq!(self.told.confirmed, count, "nothing is settled that was not sent");
    }

    /// Half-closes and reads to status OK. What all confirms said together.
    pub async fn finish(mut self) -> PublishConfirm {
        self.half_close();
        let mut last = None;
        while let Some(confirm) = self.next().await.expect("the stream ends with OK") {
            last = Some(confirm);
        }
        assert_eq!(last.expect("a last confirm comes").confirmed, self.told.confirmed);
        self.told
    }

    /// The status that the stream ends with; confirms before it are read.
    pub async fn end(&mut self) -> Status {
        end_of(async || self.next().await).await
    }
}
