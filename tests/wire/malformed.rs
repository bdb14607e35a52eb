//! Bodies that are no gRPC messages: the call fails with a status, its neighbours do not notice.

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Ack, SubscribeCommand};
use tonic::Code;

use crate::grpc::{Call, Connection, PUBLISH, SUBSCRIBE};
use crate::raw;
use crate::support::*;

const REQUEST_LIMIT: usize = 16 * 1024 * 1024;

/// A body with one message: any flag, any length, any bytes.
fn body(flag: u8, length: u32, bytes: &[u8]) -> Vec<u8> {
    [&[flag], &length.to_be_bytes()[..], bytes].concat()
}

fn whole(bytes: &[u8]) -> Vec<u8> {
    body(0, bytes.len() as u32, bytes)
}

/// Another stream on the connection in trouble.
struct Neighbour {
    call: Call,
    client: Client,
}

impl Neighbour {
    async fn new(broker: &Broker, connection: &Connection) -> Self {
        let mut call = connection.subscribe(multi(&["neighbour"])).await;
        call.subscription_id().await;
        Neighbour { call, client: broker.client().await }
    }

    async fn lives(&mut self) {
        self.client.publish("neighbour", "lives").await;
        assert_eq!(payload(&self.call.delivery().await), "lives");
    }
}

#[tokio::test]
async fn a_malformed_unary_request_fails_alone() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let mut neighbour = Neighbour::new(&broker, &connection).await;
    let valid = &raw::grpc(&message("t", "x"))[5..];
    // Groups in groups, each begun and none ended.
    let nested = [0x1b].repeat(10_000);
    let invalid_utf8 = [0x0a, 2, 0xc3, 0x28];
    let cases = [
        ("no protobuf", whole(b"\xff\xff\xff\xff"), Code::InvalidArgument),
        ("topic of no UTF-8", whole(&invalid_utf8), Code::InvalidArgument),
        ("a field longer than its message", whole(&[0x0a, 100, b't']), Code::InvalidArgument),
        ("deep nesting", whole(&nested), Code::InvalidArgument),
        ("a length of 4 GB", body(0, u32::MAX, valid), Code::ResourceExhausted),
        ("compressed, without an encoding", body(1, valid.len() as u32, valid), Code::Internal),
    ];
    for (what, body, code) in cases {
        let (status, _) = connection.unary(PUBLISH, &body).await;
        assert_eq!(status.code(), code, "{what}: {status:?}");
        neighbour.lives().await;
    }
    connection.publish("t", "the connection lives").await;
    assert_eq!(broker.stats().await.counters["handler_panics"], 0);
}

/// It fails with a status of the call's own, whichever, and not by a reset without a word.
#[tokio::test]
async fn a_body_that_does_not_fit_its_prefix_fails_alone() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let mut neighbour = Neighbour::new(&broker, &connection).await;
    let valid = &raw::grpc(&message("t", "x"))[5..];
    let length = valid.len() as u32;
    let cases = [
        ("truncated", body(0, length + 10, valid)),
        ("a prefix cut short", vec![0, 0, 0]),
        ("a prefix and no message", body(0, length, &[])),
        ("no message", vec![]),
        ("longer than its prefix", body(0, length, &[valid, b"rest"].concat())),
        ("an unknown flag", body(7, length, valid)),
    ];
    for (what, body) in cases {
        let (status, _) = connection.unary(PUBLISH, &body).await;
        assert!(!matches!(status.code(), Code::Ok | Code::Unknown), "{what}: {status:?}");
        neighbour.lives().await;
    }
    connection.publish("t", "the connection lives").await;
    assert_eq!(broker.stats().await.counters["handler_panics"], 0);
}

#[tokio::test]
async fn a_compressed_request_is_unimplemented_and_told_what_is_accepted() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let gzip = &[("content-type", "application/grpc"), ("grpc-encoding", "gzip")];
    for path in [PUBLISH, SUBSCRIBE] {
        let mut call = connection.request(http::Method::POST, path, gzip).await;
        call.finish(&body(1, 4, b"\x1f\x8b\x08\x00"));
        let (_, headers) = call.response().await;
        assert_eq!(headers["grpc-accept-encoding"], "identity");
        assert_eq!(call.status().await.code(), Code::Unimplemented);
    }
    connection.publish("t", "the connection lives").await;
}

#[tokio::test]
async fn a_request_over_the_limit_fails_alone() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let mut neighbour = Neighbour::new(&broker, &connection).await;
    let zeros = vec![0; REQUEST_LIMIT + 1];
    let (status, _) = connection.unary(PUBLISH, &whole(&zeros)).await;
    assert_status(&status, Code::ResourceExhausted, &["16777216", "16777217"]);
    neighbour.lives().await;

    let mut call = connection.subscribe(balanced("g", &["t"])).await;
    call.subscription_id().await;
    call.send(&whole(&zeros));
    let status = call.status().await;
    assert_status(&status, Code::ResourceExhausted, &["16777216", "16777217"]);
    neighbour.lives().await;
    broker.stats_when("the member has left", |stats| stats.members == 1).await;
}

#[tokio::test]
async fn a_malformed_command_ends_its_stream_and_hands_over_what_it_held() {
    let broker = Broker::start();
    let client = broker.client().await;
    let connection = Connection::connect(&broker).await;
    let mut neighbour = Neighbour::new(&broker, &connection).await;
    let ack = |ack| raw::grpc(&SubscribeCommand { command: Some(Command::Ack(ack)) });
    let cases = [
        whole(b"\xff\xff\xff\xff"),
        // An ack whose system_id is no UTF-8.
        whole(&[0x12, 4, 0x12, 2, 0xc3, 0x28]),
        ack(Ack::default()),
        ack(Ack { subscription_id: "another's".into(), system_id: "x".into(), ..Default::default() }),
        raw::grpc(&SubscribeCommand { command: Some(Command::Open(multi(&["t"]))) }),
    ];
    for bad in cases {
        let mut call = connection.subscribe(balanced("g", &["t"])).await;
        call.subscription_id().await;
        client.publish("t", "held").await;
        call.delivery().await;
        let (mut other, _) = client.subscribe(balanced("g", &["t"])).await;
        call.send(&bad);
        let status = call.status().await;
        assert_eq!(status.code(), Code::InvalidArgument, "{bad:?}: {status:?}");
        assert_eq!(other.take().await, "held");
        neighbour.lives().await;
        drop(other);
        broker.stats_when("the group is gone", |stats| stats.subscriptions == 1).await;
    }
}

#[tokio::test]
async fn empty_and_unknown_commands_are_ignored_and_unknown_fields_too() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let mut call = connection.subscribe(multi(&["t"])).await;
    call.subscription_id().await;
    let unknown_command = [0xf2, 0x3f, 1, b'?'];
    let unknown_field_in_ack = [&[0x12, 7, 0x12, 1, b'x'], &unknown_command[..]].concat();
    for command in [&[][..], &unknown_command, &unknown_field_in_ack] {
        call.send(&whole(command));
    }
    broker.stats_when("two are counted", |stats| stats.counters["commands_ignored"] == 2).await;
    broker.client().await.publish("t", "still here").await;
    assert_eq!(payload(&call.delivery().await), "still here");
}

#[tokio::test]
async fn a_stream_that_does_not_begin_with_open_never_becomes_a_member() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let mut silent = Vec::new();
    for _ in 0..500 {
        let mut call = connection.call(SUBSCRIBE).await;
        assert_eq!(call.response().await.0, 200);
        silent.push(call);
    }
    let stats = broker.stats().await;
    assert_eq!((stats.subscriptions, stats.members), (0, 0));
    let acks_first = raw::ack_body("x");
    for body in [acks_first, whole(b""), vec![]] {
        let mut call = connection.call(SUBSCRIBE).await;
        call.finish(&body);
        let status = call.status().await;
        assert_status(&status, Code::InvalidArgument, &["open"]);
    }
    let mut opens = connection.subscribe(multi(&["t"])).await;
    opens.subscription_id().await;
}
