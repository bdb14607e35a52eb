//! SPEC §4: deadlines.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tinybroker::proto::SubscribeCommand;
use tinybroker::proto::subscribe_command::Command;
use tonic::{Code, Request};

use crate::support::*;
use crate::wire::{PUBLISH, SUBSCRIBE, WireClient, framed};

#[tokio::test]
async fn the_broker_ends_a_stream_at_its_grpc_timeout_and_it_has_left() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = SubscribeCommand { command: Some(Command::Open(balanced("g", &["a"]))) };
    // A client that enforces nothing itself.
    let wire = WireClient::connect(&broker).await;
    for _ in 0..5 {
        let body = framed(&open.encode_to_vec());
        let status = wire.call_unfinished(SUBSCRIBE, &[("grpc-timeout", "100m")], body).await;
        assert_status(&status, Code::DeadlineExceeded, &["deadline"]);
        assert_eq!(client.publish("a", "x").await.subscriptions, 0, "it has left when that is told");
    }
    // The connection lives on.
    let publish = framed(&message("a", "x").encode_to_vec());
    assert_eq!(wire.call(PUBLISH, &[], publish).await.code(), Code::Ok);
    client.publish("a", "x").await;
}

/// One whose request never becomes whole.
#[tokio::test]
async fn the_broker_ends_a_unary_call_at_its_grpc_timeout() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let body = framed(&message("a", "x").encode_to_vec());
    for path in [PUBLISH, "/tinybroker.v1.Broker/PublishBatch", "/tinybroker.v1.Broker/Ack"] {
        let half = body.slice(..body.len() - 1);
        let status = wire.call_unfinished(path, &[("grpc-timeout", "100m")], half).await;
        assert_status(&status, Code::DeadlineExceeded, &["deadline"]);
    }
    assert_eq!(wire.call(PUBLISH, &[], body).await.code(), Code::Ok);
    assert_eq!(broker.stats().await.counters["published"], 1);
}

#[tokio::test]
async fn what_it_held_goes_to_others() {
    let broker = Broker::start();
    let client = broker.client().await;
    let commands =
        tokio_stream::iter([SubscribeCommand { command: Some(Command::Open(balanced("g", &["a"]))) }]);
    let mut request = Request::new(commands);
    request.set_timeout(Duration::from_secs(1));
    let mut holder = client.0.clone().subscribe(request).await.expect("the stream begins").into_inner();
    holder.message().await.expect("the first event");
    client.publish("a", "1").await;
    holder.message().await.expect("the message");
    let (mut heir, _) = client.subscribe(balanced("g", &["a"])).await;
    let status = holder.message().await.expect_err("its time is over");
    assert_status(&status, Code::DeadlineExceeded, &[]);
    assert_eq!(heir.message().await.delivery_attempt, 2);
}

#[tokio::test]
async fn a_malformed_grpc_timeout_is_that_calls_status() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    for malformed in ["", "1", "S", "1x", "-1S", "123456789S", "1.5S", "1 S"] {
        for path in [PUBLISH, SUBSCRIBE] {
            let body = framed(&message("a", "x").encode_to_vec());
            let status = wire.call(path, &[("grpc-timeout", malformed)], body).await;
            assert_invalid(&status, "grpc-timeout", &["malformed"]);
        }
    }
    let body = framed(&message("a", "x").encode_to_vec());
    assert_eq!(wire.call(PUBLISH, &[("grpc-timeout", "99999999H")], body).await.code(), Code::Ok);
}

#[tokio::test]
async fn a_stream_that_says_no_open_is_ended() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let silent = wire.call_unfinished(SUBSCRIBE, &[], Bytes::new()).await;
    assert_status(&silent, Code::DeadlineExceeded, &["open", "30 s"]);
    let publish = framed(&message("a", "x").encode_to_vec());
    assert_eq!(wire.call(PUBLISH, &[], publish).await.code(), Code::Ok);
}
