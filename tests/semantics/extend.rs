//! SPEC §1 and §3.7: extend, by call and in a stream.

use prost_types::Duration;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Extend, ExtendRequest, Message, OpenSubscription};
use tonic::Code;

use crate::support::*;

const TOO_SHORT: Option<Duration> = Some(Duration { seconds: 0, nanos: 999_999 });

fn member(max_in_flight: u32, ack_timeout: Option<Duration>) -> OpenSubscription {
    OpenSubscription { max_in_flight, ack_timeout, ..balanced("g", &["a"]) }
}

fn of(subscription_id: &str, message: &Message) -> ExtendRequest {
    ExtendRequest {
        subscription_id: subscription_id.into(),
        system_id: message.system_id.clone(),
        ..Default::default()
    }
}

/// A member that holds so many messages of a subscription with this ack_timeout.
async fn holder(
    client: &Client,
    count: u32,
    ack_timeout: Option<Duration>,
) -> (Stream, String, Vec<Message>) {
    let (mut stream, id) = client.subscribe(member(count, ack_timeout)).await;
    client.publish_numbers("a", 1, count).await;
    let mut held = Vec::new();
    for _ in 0..count {
        held.push(stream.message().await);
    }
    (stream, id, held)
}

#[tokio::test]
async fn it_sets_the_time_anew_from_now() {
    let broker = Broker::start();
    let client = broker.client().await;
    // A shorter one than the subscription's, and one where the subscription has none.
    for ack_timeout in [ENDLESS, None] {
        let (mut stream, id, held) = holder(&client, 1, ack_timeout).await;
        let shorter = ExtendRequest { ack_timeout: BRIEF, ..of(&id, &held[0]) };
        assert_eq!(client.extend(shorter).await.expect("it is in flight"), 1);
        let again = stream.message().await;
        assert_eq!((payload(&again).as_str(), again.delivery_attempt), ("1", 2));
        // The next delivery has the subscription's time.
        stream.quiet().await;
        drop(stream);
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
}

#[tokio::test]
async fn who_extends_keeps_what_others_lose() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id, held) = holder(&client, 3, millis(3000)).await;
    let longer = ExtendRequest { ack_timeout: ENDLESS, ..of(&id, &held[0]) };
    assert_eq!(client.extend(longer).await.expect("it is in flight"), 1);
    let system_id = held[1].system_id.clone();
    stream.send(Command::Extend(Extend { system_id, ack_timeout: ENDLESS, ..Default::default() }));
    // All three would have come back by then.
    let again = stream.message().await;
    assert_eq!((payload(&again).as_str(), again.delivery_attempt), ("3", 2));
    stream.ack(&again);
    stream.quiet().await;
    for message in &held[..2] {
        assert_eq!(client.ack(ack_by_system_id(&id, &message.system_id)).await.expect("still its own"), 1);
    }
    assert_eq!(broker.stats().await.counters["timed_out"], 1);
}

#[tokio::test]
async fn unset_is_the_subscriptions() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id, held) = holder(&client, 1, millis(500)).await;
    for ack_timeout in [ENDLESS, None, ENDLESS, Some(Duration::default())] {
        // The first may come too late on a machine that stands still; then the message comes all the same.
        let _ = client.extend(ExtendRequest { ack_timeout, ..of(&id, &held[0]) }).await;
    }
    let again = stream.message().await;
    assert_eq!((payload(&again).as_str(), again.delivery_attempt), ("1", 2));
    drop(stream);
    broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    // Where neither says a time there is none.
    let (mut stream, id, held) = holder(&client, 1, None).await;
    assert_eq!(
        client.extend(ExtendRequest { ack_timeout: ENDLESS, ..of(&id, &held[0]) }).await.expect("OK"),
        1
    );
    assert_eq!(client.extend(of(&id, &held[0])).await.expect("OK"), 1);
    stream.quiet().await;
    assert_eq!(client.ack(ack_by_system_id(&id, &held[0].system_id)).await.expect("still its own"), 1);
}

#[tokio::test]
async fn it_goes_by_message_id_and_by_many_ids_from_any_connection() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id, held) = holder(&client, 3, None).await;
    let stranger = broker.client().await;
    let message_id = held[0].message_id.clone();
    let by_message =
        ExtendRequest { subscription_id: id.clone(), message_id, ack_timeout: BRIEF, ..Default::default() };
    assert_eq!(stranger.extend(by_message).await.expect("OK"), 1);
    assert_eq!(stream.payload().await, "1");
    let system_ids = vec!["nonsense".into(), held[2].system_id.clone(), held[0].system_id.clone()];
    let many = ExtendRequest { system_ids, ack_timeout: BRIEF, ..of(&id, &held[1]) };
    assert_eq!(stranger.extend(many).await.expect("OK where any was"), 2);
    let mut again = [stream.payload().await, stream.payload().await];
    again.sort();
    assert_eq!(again, ["2", "3"]);
    assert_eq!(broker.stats().await.counters["extended"], 3);
}

#[tokio::test]
async fn nothing_in_flight_is_not_found() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (_stream, id, held) = holder(&client, 1, None).await;
    client.ack(ack_by_system_id(&id, &held[0].system_id)).await.expect("OK");
    let elsewhere = ExtendRequest { subscription_id: "no such".into(), ..of(&id, &held[0]) };
    for extend in [of(&id, &held[0]), elsewhere] {
        let status = client.extend(extend).await.expect_err("nothing is extended");
        assert_status(&status, Code::NotFound, &[]);
    }
    assert_eq!(broker.stats().await.counters["extend_not_found"], 1);
}

#[tokio::test]
async fn a_bad_one_is_invalid_and_names_the_field() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (_stream, id, held) = holder(&client, 1, None).await;
    let good = || of(&id, &held[0]);
    for (extend, field, word) in [
        (ExtendRequest { subscription_id: String::new(), ..good() }, "subscription_id", "empty"),
        (ExtendRequest { system_id: String::new(), ..good() }, "system_id", "message_id"),
        (ExtendRequest { ack_timeout: NEGATIVE, ..good() }, "ack_timeout", "negative"),
        (ExtendRequest { ack_timeout: TOO_SHORT, ..good() }, "ack_timeout", "1ms"),
    ] {
        assert_invalid(&client.extend(extend).await.expect_err("it is bad"), field, &[word]);
    }
    assert_eq!(client.extend(good()).await.expect("OK"), 1);
}

#[tokio::test]
async fn in_a_stream_a_bad_one_ends_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    let system_id = String::from("0000000000000");
    for (extend, field) in [
        (Extend::default(), "system_id"),
        (Extend { ack_timeout: NEGATIVE, system_id: system_id.clone(), ..Default::default() }, "ack_timeout"),
        (Extend { subscription_id: "another's".into(), system_id, ..Default::default() }, "subscription_id"),
    ] {
        let (mut stream, _) = client.subscribe(member(1, None)).await;
        stream.send(Command::Extend(extend));
        assert_invalid(&stream.end().await, field, &[]);
        client.publish("fine", "x").await;
    }
    let mut early = client.stream().await.expect("the stream begins");
    early.send(Command::Extend(Extend { system_id: "x".into(), ..Default::default() }));
    assert_invalid(&early.end().await, "open", &["first"]);
}

#[tokio::test]
async fn in_a_stream_only_its_members_own_are_extended() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut one, _) = client.subscribe(member(1, None)).await;
    let (mut two, _) = client.subscribe(member(1, None)).await;
    client.publish_numbers("a", 1, 2).await;
    let (of_one, of_two) = (one.message().await, two.message().await);
    for message in [&of_one, &of_two] {
        let system_id = message.system_id.clone();
        two.send(Command::Extend(Extend { system_id, ack_timeout: BRIEF, ..Default::default() }));
    }
    let again = two.message().await;
    assert_eq!((payload(&again).as_str(), again.delivery_attempt), ("2", 2));
    one.quiet().await;
    let counters = broker.stats().await.counters;
    assert_eq!((counters["extended"], counters["extend_not_found"]), (1, 1));
}

#[tokio::test]
async fn where_no_ack_is_asked_it_does_nothing() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(multi(&["a"])).await;
    client.publish("a", "1").await;
    let message = stream.message().await;
    assert_eq!(
        client.extend(ExtendRequest { ack_timeout: BRIEF, ..of(&id, &message) }).await.expect("OK"),
        0
    );
    stream.quiet().await;
}
