//! The notification worker of the user's own document runs as it stands there.

use std::fs;

use crate::language::{Language, Program};
use crate::stories::all_is_acked;
use crate::support::Broker;
use crate::toolchain::root;

/// The document's code, but for the line that names the host.
const DOCUMENT: &str = r#"
import grpc
from tinybroker.v1 import service_pb2_grpc, client_pb2, shared_pb2
stub = service_pb2_grpc.BrokerStub(channel)
def subscribe_commands():
    yield client_pb2.SubscribeCommand(
        open=client_pb2.OpenSubscription(
            topic_patterns=["payment.*", "order.placed", "order.shipped"],
            mode=shared_pb2.DELIVERY_MODE_BALANCED,
            consumer_group="push-workers",
        )
    )
for event in stub.Subscribe(subscribe_commands()):
    if event.HasField("message"):
        handle_notification(event.message.topic, event.message.payload)
        stub.Ack(AckRequest(
            subscription_id=subscription_id,
            message_id=event.message.message_id,
        ))
"#;

#[test]
fn the_program_is_the_documents() {
    let program =
        fs::read_to_string(root().join("clients/python/notification_worker.py")).expect("it is there");
    let mut lines = program.lines();
    for line in DOCUMENT.trim().lines() {
        assert!(lines.any(|own| own == line), "not there, or not in its place: {line:?}");
    }
}

#[tokio::test]
async fn it_handles_and_acks_notifications() {
    let broker = Broker::start();
    let mut worker = notification_worker(&broker).await;
    for (charge, payload) in [("charge-1", "10€"), ("charge-2", "20€")] {
        let words = format!("payment.charge.succeeded {payload} --message-id {charge}");
        Language::Python.publish(&broker, &words).await;
        assert_eq!(worker.line().await, format!("payment.charge.succeeded {payload}"));
    }
    Language::Python.publish(&broker, "order.cancelled no").await;
    Language::Python.publish(&broker, "order.placed yes").await;
    assert_eq!(worker.line().await, "order.placed yes");
    all_is_acked(&broker, 3).await;
}

#[tokio::test]
async fn its_replicas_handle_each_notification_once() {
    let broker = Broker::start();
    let mut one = notification_worker(&broker).await;
    let mut two = notification_worker(&broker).await;
    Language::Python.publish(&broker, "order.shipped 1 2 3 4 5 6").await;
    all_is_acked(&broker, 6).await;
    for replica in [&mut one, &mut two] {
        replica.kill().await;
    }
    let shares = [one.last_lines().await, two.last_lines().await];
    assert!(shares.iter().all(|share| !share.is_empty()), "{shares:?}");
    let mut handled = shares.concat();
    handled.sort();
    assert_eq!(handled, [1, 2, 3, 4, 5, 6].map(|number| format!("order.shipped {number}")));
}

async fn notification_worker(broker: &Broker) -> Program {
    let before = broker.stats().await.members;
    let worker = Program::start(&mut Language::Python.program("notification_worker", broker));
    broker.stats_when("a new member", |stats| stats.members == before + 1).await;
    worker
}
