//! Stories of publishing in streams and batches, and of being refused.

use serde_json::Value;
use tonic::Code;

use crate::language::{Language, run};
use crate::stories::all_is_acked;
use crate::support::Broker;

pub async fn a_stream_is_confirmed(language: Language) {
    let broker = Broker::start();
    let mut worker = language.started(&broker, "--ack none jobs.*").await;
    let heard = Confirms::of(&language.publish(&broker, "jobs.x 1 2 3 4 5 --by stream").await);
    assert_eq!((heard.confirmed, heard.unheard), (5, 0));
    assert!(heard.failures.is_empty(), "{:?}", heard.failures);
    assert_eq!(worker.payloads(5).await, ["1", "2", "3", "4", "5"]);
    let unheard = Confirms::of(&language.publish(&broker, "orders.x 1 2 3 --by stream").await);
    assert_eq!((unheard.confirmed, unheard.unheard), (3, 3));
}

pub async fn a_batch_is_answered_one_by_one(language: Language) {
    let broker = Broker::start();
    let mut worker = language.started(&broker, "--ack none jobs.*").await;
    let answers = language.publish(&broker, "jobs.x 1 2 3 --by batch").await;
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert_eq!(answer["subscriptions"], 1);
        let message = worker.message().await;
        assert_eq!(answer["system_id"], message.system_id);
    }
}

pub async fn a_full_group_refuses(language: Language) {
    let broker = Broker::start();
    let group = "--mode balanced --group g --max-pending 2 jobs.*";
    let mut holder = language.worker(&broker, &format!("--ack none {group}"));
    let subscription = holder.started().await;
    language.publish(&broker, "jobs.x 1").await;
    // What is in flight does not count.
    assert_eq!(holder.payloads(1).await, ["1"]);

    let stream = Confirms::of(&language.publish(&broker, "jobs.x 2 3 4 5 --by stream").await);
    assert_eq!((stream.confirmed, stream.unheard), (4, 0));
    assert_eq!(refused(&stream.failures, &subscription), [2, 3]);
    let batch = language.publish(&broker, "jobs.x 6 --by batch").await;
    assert_eq!(refused(&batch, &subscription), [0]);
    let call = run(language.program("publisher", &broker).args(["jobs.x", "7"])).await;
    assert_eq!(call.status.code(), Some(1), "{call:?}");
    let said = String::from_utf8_lossy(&call.stderr);
    // Libraries write the code's name in capitals or in one word.
    assert!(said.replace('_', "").to_uppercase().contains("RESOURCEEXHAUSTED"), "{said}");
    assert!(said.contains(&subscription), "{said}");

    let mut other = language.started(&broker, group).await;
    assert_eq!(other.payloads(2).await, ["2", "3"]);
    holder.kill().await;
    assert_eq!(other.attempts(1).await, [("1".to_owned(), 2)]);
    all_is_acked(&broker, 3).await;
}

/// The indices of what was refused because this subscription is full.
fn refused(failures: &[Value], subscription: &str) -> Vec<u64> {
    for failure in failures {
        assert_eq!(failure["code"], Code::ResourceExhausted as i32, "{failure}");
        let message = failure["message"].as_str().expect("a failure says why");
        assert!(message.contains(subscription), "{message}");
    }
    failures.iter().map(|failure| failure["index"].as_u64().expect("an index is a number")).collect()
}

/// What all confirms of a stream say together.
struct Confirms {
    confirmed: u64,
    unheard: u64,
    failures: Vec<Value>,
}

impl Confirms {
    fn of(confirms: &[Value]) -> Self {
        let number = |confirm: &Value, field: &str| confirm[field].as_u64().expect("counts are numbers");
        let confirmed: Vec<_> = confirms.iter().map(|confirm| number(confirm, "confirmed")).collect();
        assert!(confirmed.is_sorted(), "{confirmed:?}");
        let failures = confirms.iter().map(|confirm| confirm["failures"].as_array().expect("a list"));
        Confirms {
            confirmed: *confirmed.last().expect("a confirm comes at the end"),
            unheard: confirms.iter().map(|confirm| number(confirm, "unheard")).sum(),
            failures: failures.flatten().cloned().collect(),
        }
    }
}
