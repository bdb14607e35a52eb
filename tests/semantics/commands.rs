//! SPEC §4: what may be said on a Subscribe stream, and when.

use prost_types::Duration;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Ack, NackRequest, OpenSubscription, Resign, SubscribeCommand};
use tonic::Code;

use crate::support::*;

#[tokio::test]
async fn a_command_before_open_ends_the_stream() {
    let broker = Broker::start();
    let client = broker.client().await;
    let ack = Command::Ack(Ack { system_id: "x".into(), ..Default::default() });
    for command in [Some(ack), Some(Command::Resign(Resign {})), None] {
        let mut stream = client.stream().await.expect("the stream begins");
        stream.send_raw(SubscribeCommand { command });
        assert_invalid(&stream.end().await, "open", &["first"]);
        client.publish("fine", "x").await;
    }
}

#[tokio::test]
async fn the_end_of_the_commands_before_open_ends_the_stream() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut stream = client.stream().await.expect("the stream begins");
    stream.half_close();
    assert_invalid(&stream.end().await, "open", &[]);
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn a_second_open_ends_the_stream_which_leaves() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(balanced("g", &["a"])).await;
    let (mut heir, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "1").await;
    assert_eq!(stream.payload().await, "1");
    stream.send(Command::Open(balanced("g", &["a"])));
    assert_invalid(&stream.end().await, "open", &["second"]);
    assert_eq!(heir.payload().await, "1");
}

#[tokio::test]
async fn an_empty_command_after_open_is_ignored_and_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["a"])).await;
    stream.send_raw(SubscribeCommand { command: None });
    stream.send_raw(SubscribeCommand { command: None });
    broker.stats_when("the counts", |stats| stats.counters["commands_ignored"] == 2).await;
    client.publish("a", "1").await;
    assert_eq!(stream.payload().await, "1");
}

#[tokio::test]
async fn one_bad_command_harms_no_other_stream_of_the_connection() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(client.subscribe(multi(&["a"])).await.0);
    }
    let (mut bad, _) = client.subscribe(multi(&["a"])).await;
    bad.send(Command::Ack(Ack::default()));
    assert_status(&bad.end().await, Code::InvalidArgument, &[]);
    client.publish("a", "1").await;
    for stream in &mut others {
        assert_eq!(stream.payload().await, "1");
    }
}

/// The open is refused in words that name this field, and the connection lives on.
async fn assert_refused(client: &Client, open: OpenSubscription, field: &str, words: &[&str]) {
    assert_invalid(&client.open(open).await.end().await, field, words);
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn open_names_each_bad_field() {
    let broker = Broker::with(&["--max-pending", "10"]);
    let client = broker.client().await;
    let group = || balanced("g", &["a"]);
    let negative = Some(Duration { seconds: -1, nanos: 0 });
    let too_short = Some(Duration { seconds: 0, nanos: 999_999 });
    let no_duration = Some(Duration { seconds: 0, nanos: 1_000_000_000 });
    for (open, field, word) in [
        (OpenSubscription { mode: 9, ..group() }, "mode", "9"),
        (OpenSubscription { overflow: 77, ..group() }, "overflow", "77"),
        (OpenSubscription { linger: negative, ..group() }, "linger", "negative"),
        (OpenSubscription { ack_timeout: negative, ..group() }, "ack_timeout", "negative"),
        (OpenSubscription { linger: NEGATIVE, ..group() }, "linger", "negative"),
        (OpenSubscription { linger: no_duration, ..group() }, "linger", "999,999,999"),
        (OpenSubscription { ack_timeout: NEGATIVE, ..group() }, "ack_timeout", "negative"),
        (OpenSubscription { ack_timeout: too_short, ..group() }, "ack_timeout", "1ms"),
        (OpenSubscription { max_pending: 11, ..group() }, "max_pending", "10"),
        (OpenSubscription { max_in_flight: 1_000_001, ..group() }, "max_in_flight", "limit 1000000"),
        (OpenSubscription { subscription_id: "x".repeat(257), ..group() }, "subscription_id", "257"),
        (OpenSubscription { subscription_id: "a\nb".into(), ..group() }, "subscription_id", "U+000A"),
        (OpenSubscription { consumer_group: "x".repeat(257), ..group() }, "consumer_group", "257"),
        (OpenSubscription { consumer_group: String::new(), ..group() }, "consumer_group", "BALANCED"),
        (singleton("", &["a"]), "consumer_group", "SINGLETON"),
        (OpenSubscription { consumer_group: "g".into(), ..multi(&["a"]) }, "consumer_group", "MULTI"),
    ] {
        assert_refused(&client, open, field, &[word]).await;
    }
    client.subscribe(OpenSubscription { max_pending: 10, max_in_flight: 1_000_000, ..group() }).await;
}

#[tokio::test]
async fn a_zero_duration_is_the_same_as_none() {
    let broker = Broker::start();
    let client = broker.client().await;
    let zero = Some(Duration::default());
    let open = OpenSubscription { linger: zero, ack_timeout: zero, ..balanced("g", &["a"]) };
    let (_one, _) = client.subscribe(open).await;
    let (_two, _) = client.subscribe(balanced("g", &["a"])).await;
}

#[tokio::test]
async fn a_duration_longer_than_any_clock_is_taken() {
    let broker = Broker::start();
    let client = broker.client().await;
    let longest = Some(Duration { seconds: i64::MAX, nanos: 999_999_999 });
    let open = OpenSubscription { linger: longest, ack_timeout: longest, ..balanced("g", &["a"]) };
    let (mut stream, id) = client.subscribe(open.clone()).await;
    client.publish_numbers("a", 1, 2).await;
    let first = stream.message().await;
    let nack =
        NackRequest { subscription_id: id, system_id: first.system_id, delay: longest, ..Default::default() };
    client.nack(nack).await.expect("it is in flight");
    assert_eq!(stream.take().await, "2");
    broker.stats_when("the ack", |stats| stats.in_flight == 0).await;
    drop(stream);
    broker.stats_when("its leaving", |stats| stats.members == 0).await;
    let (mut again, _) = client.subscribe(open).await;
    client.publish("a", "3").await;
    assert_eq!(again.take().await, "3");
}
