//! SPEC §4: what is unreadable ends the one call that it came in; what is unknown is ignored.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;
use tinybroker::proto::SubscribeCommand;
use tinybroker::proto::subscribe_command::Command;
use tonic::Code;

use crate::support::*;
use crate::wire::{PUBLISH, SUBSCRIBE, WireClient, framed};

/// Field 100, a text.
const UNKNOWN_FIELD: &[u8] = b"\xa2\x06\x05hello";

/// A broker, a stream on a connection, and a second connection of its own.
async fn assert_lives(wire: &WireClient) {
    let publish = framed(&message("fine", "x").encode_to_vec());
    assert_eq!(wire.call(PUBLISH, &[], publish).await.code(), Code::Ok);
}

#[tokio::test]
async fn malformed_protobuf_is_that_calls_status() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let invalid_utf8 = b"\x0a\x02\xff\xfe";
    for body in [&b"\xff\xff\xff"[..], b"\x0a\x7fshort", b"\x0b\x0b\x0b\x0b", invalid_utf8] {
        let status = wire.call(PUBLISH, &[], framed(body)).await;
        assert_status(&status, Code::InvalidArgument, &["protobuf"]);
        let status = wire.call_unfinished(SUBSCRIBE, &[], framed(body)).await;
        assert_status(&status, Code::InvalidArgument, &["protobuf"]);
        assert_lives(&wire).await;
    }
    broker.stats_when("no member is left", |stats| stats.members == 0).await;
}

#[tokio::test]
async fn malformed_protobuf_after_open_ends_that_stream_which_leaves() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let open = SubscribeCommand { command: Some(Command::Open(balanced("g", &["a"]))) };
    let mut body = BytesMut::from(&framed(&open.encode_to_vec())[..]);
    body.put_slice(&framed(b"\xff\xff"));
    let status = wire.call_unfinished(SUBSCRIBE, &[], body.freeze()).await;
    assert_status(&status, Code::InvalidArgument, &["protobuf"]);
    broker.stats_when("no member is left", |stats| stats.members == 0).await;
    assert_lives(&wire).await;
}

#[tokio::test]
async fn malformed_framing_is_that_calls_status() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let whole = framed(&message("a", "x").encode_to_vec());
    let mut huge = BytesMut::new();
    huge.put_slice(&[0, 0xff, 0xff, 0xff, 0xff]);
    huge.put_slice(b"what is this");
    let mut flagged = BytesMut::from(&whole[..]);
    flagged[0] = 7;
    let mut compressed = BytesMut::from(&whole[..]);
    compressed[0] = 1;
    for (body, what) in [
        (Bytes::new(), "nothing at all"),
        (whole.slice(..3), "half a head"),
        (whole.slice(..whole.len() - 1), "less than was said"),
        (huge.freeze(), "4 GiB promised"),
        (flagged.freeze(), "an unknown flag"),
        (compressed.freeze(), "compressed with nothing"),
    ] {
        for path in [PUBLISH, SUBSCRIBE] {
            let status = wire.call(path, &[], body.clone()).await;
            assert_ne!(status.code(), Code::Ok, "{what}");
            assert!(!status.message().is_empty(), "{what}: {status:?}");
            assert_lives(&wire).await;
        }
    }
    broker.stats_when("no member is left", |stats| stats.members == 0).await;
}

#[tokio::test]
async fn an_unknown_field_is_ignored() {
    let broker = Broker::start();
    let client = broker.client().await;
    let wire = WireClient::connect(&broker).await;
    let (mut stream, _) = client.subscribe(multi(&["*"])).await;
    let mut publish = message("a", "1").encode_to_vec();
    publish.extend_from_slice(UNKNOWN_FIELD);
    assert_eq!(wire.call(PUBLISH, &[], framed(&publish)).await.code(), Code::Ok);
    assert_eq!(stream.payload().await, "1");
}

#[tokio::test]
async fn an_unknown_command_after_open_is_ignored_and_counted() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let open = SubscribeCommand { command: Some(Command::Open(balanced("g", &["a"]))) };
    let mut body = BytesMut::from(&framed(&open.encode_to_vec())[..]);
    body.put_slice(&framed(UNKNOWN_FIELD));
    body.put_slice(&framed(UNKNOWN_FIELD));
    let stream = wire.call_unfinished(SUBSCRIBE, &[], body.freeze());
    let ignored = broker.stats_when("the count, and the member", |stats| {
        stats.counters["commands_ignored"] == 2 && stats.members == 1
    });
    tokio::select! {
        status = stream => panic!("the stream ended: {status:?}"),
        _ = ignored => {}
    }
}

#[tokio::test]
async fn an_unknown_command_before_open_is_no_open() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    let status = wire.call_unfinished(SUBSCRIBE, &[], framed(UNKNOWN_FIELD)).await;
    assert_invalid(&status, "open", &["first"]);
    assert_lives(&wire).await;
}

#[tokio::test]
async fn unknown_calls_are_unimplemented() {
    let broker = Broker::start();
    let wire = WireClient::connect(&broker).await;
    for path in ["/tinybroker.v1.Broker/Nonsense", "/nonsense.v1.Service/Call", "/"] {
        let status = wire.call(path, &[], framed(b"")).await;
        assert_eq!(status.code(), Code::Unimplemented, "{path}");
        assert_lives(&wire).await;
    }
}

#[tokio::test]
async fn error_text_in_other_alphabets_and_of_any_length_arrives() {
    let broker = Broker::start();
    let client = broker.client().await;
    for pattern in ["é[", "☕\n%[", "\0{", &format!("{}[", "é".repeat(120))] {
        let status = client.open(multi(&[pattern])).await.end().await;
        assert_invalid(&status, "topic_patterns", &["unclosed"]);
    }
    // A refusal that repeats an id of the client's.
    let id = "☕".repeat(85);
    let open = tinybroker::proto::OpenSubscription {
        subscription_id: id.clone(),
        max_pending: 1,
        ..balanced("g", &["a"])
    };
    let (_full, _) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 2).await;
    let status = client.try_publish(message("a", "3")).await.expect_err("it is full");
    assert_status(&status, Code::ResourceExhausted, &[&id]);
}
