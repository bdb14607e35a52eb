//! What this version does not serve yet says so, and names it.

use prost_types::Duration;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::*;
use tonic::Code;

use crate::support::*;

#[tokio::test]
async fn calls() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut stub = client.0.clone();
    let status = stub.nack(NackRequest::default()).await.expect_err("not served");
    assert_status(&status, Code::Unimplemented, &["Nack"]);
    let status = stub.extend(ExtendRequest::default()).await.expect_err("not served");
    assert_status(&status, Code::Unimplemented, &["Extend"]);
    let status = stub.publish_batch(PublishBatchRequest::default()).await.expect_err("not served");
    assert_status(&status, Code::Unimplemented, &["PublishBatch"]);
    let status = stub.publish_stream(tokio_stream::empty()).await.expect_err("not served");
    assert_status(&status, Code::Unimplemented, &["PublishStream"]);
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn commands() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (command, name) in
        [(Command::Nack(Nack::default()), "nack"), (Command::Extend(Extend::default()), "extend")]
    {
        let (mut stream, _) = client.subscribe(multi(&["a"])).await;
        stream.send(command);
        assert_status(&stream.end().await, Code::Unimplemented, &[name]);
        client.publish("fine", "x").await;
    }
}

#[tokio::test]
async fn options_of_open() {
    let broker = Broker::start();
    let client = broker.client().await;
    let second = Some(Duration { seconds: 1, nanos: 0 });
    let group = || balanced("g", &["a"]);
    for (open, name) in [
        (OpenSubscription { ack_timeout: second, ..group() }, "open.ack_timeout"),
        (OpenSubscription { max_deliveries: 3, ..group() }, "open.max_deliveries"),
        (OpenSubscription { dead_letter_topic: "dead".into(), ..group() }, "open.dead_letter_topic"),
    ] {
        let status = client.open(open).await.end().await;
        assert_status(&status, Code::Unimplemented, &[name]);
        client.publish("fine", "x").await;
    }
}

#[tokio::test]
async fn max_batch_is_taken_and_events_carry_single_messages() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(OpenSubscription { max_batch: 10, ..multi(&["a"]) }).await;
    client.publish_numbers("a", 1, 3).await;
    assert_eq!([stream.payload().await, stream.payload().await, stream.payload().await], ["1", "2", "3"]);
}
