//! SPEC §3.8: who may be a member of what.

use prost_types::Duration;
use tinybroker::proto::{OpenSubscription, OverflowPolicy};
use tonic::Code;

use crate::support::*;

const SECOND: Option<Duration> = Some(Duration { seconds: 1, nanos: 0 });
const ZERO: Option<Duration> = Some(Duration { seconds: 0, nanos: 0 });

/// The open is refused with this code, and the connection lives on.
async fn assert_refused(client: &Client, open: OpenSubscription, code: Code, words: &[&str]) {
    assert_status(&client.open(open).await.end().await, code, words);
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn a_later_member_must_agree_or_is_told_what_differs() {
    let broker = Broker::start();
    let client = broker.client().await;
    for group in ["one", "two", "three", "four"] {
        let id = format!("id-{group}");
        let open = || OpenSubscription { subscription_id: id.clone(), ..balanced(group, &["a", "b"]) };
        let (first, _) = client.subscribe(open()).await;
        for (open, differs) in [
            (OpenSubscription { mode: 3, ..open() }, "mode"),
            (OpenSubscription { subscription_id: "another".into(), ..open() }, "subscription_id"),
            (OpenSubscription { topic_patterns: vec!["a".into()], ..open() }, "topic_patterns"),
            (OpenSubscription { max_pending: 5, ..open() }, "max_pending"),
            (OpenSubscription { overflow: OverflowPolicy::DropOldest.into(), ..open() }, "overflow"),
            (OpenSubscription { linger: SECOND, ..open() }, "linger"),
            (OpenSubscription { ack_timeout: SECOND, ..open() }, "ack_timeout"),
            (OpenSubscription { max_deliveries: 3, ..open() }, "max_deliveries"),
            (OpenSubscription { dead_letter_topic: "dead".into(), ..open() }, "dead_letter_topic"),
        ] {
            assert_refused(&client, open, Code::FailedPrecondition, &[differs]).await;
        }
        assert_eq!(broker.stats().await.members, 1);
        drop(first);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
    }
}

#[tokio::test]
async fn a_later_member_agrees_with_what_the_first_one_set() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = || OpenSubscription {
        ack_timeout: SECOND,
        max_deliveries: 3,
        dead_letter_topic: "dead".into(),
        ..balanced("g", &["a"])
    };
    let (_first, id) = client.subscribe(open()).await;
    assert_eq!(client.subscribe(open()).await.1, id);
    for (open, differs) in [
        (OpenSubscription { ack_timeout: None, ..open() }, "ack_timeout"),
        (OpenSubscription { max_deliveries: 0, ..open() }, "max_deliveries"),
        (OpenSubscription { dead_letter_topic: String::new(), ..open() }, "dead_letter_topic"),
        (OpenSubscription { dead_letter_topic: "other".into(), ..open() }, "dead_letter_topic"),
    ] {
        assert_refused(&client, open, Code::FailedPrecondition, &[differs]).await;
    }
}

#[tokio::test]
async fn effective_values_are_compared() {
    let broker = Broker::with(&["--max-pending", "1000"]);
    let client = broker.client().await;
    let (_first, id) = client.subscribe(balanced("g", &["a", "b"])).await;
    for open in [
        // The patterns are a set.
        balanced("g", &["b", "a", "b"]),
        OpenSubscription { max_pending: 1000, ..balanced("g", &["a", "b"]) },
        OpenSubscription { overflow: OverflowPolicy::Reject.into(), ..balanced("g", &["a", "b"]) },
        OpenSubscription { ack_timeout: ZERO, linger: ZERO, ..balanced("g", &["a", "b"]) },
        OpenSubscription { subscription_id: id.clone(), ..balanced("g", &["a", "b"]) },
        // Each member's own.
        OpenSubscription { max_in_flight: 7, max_batch: 3, ..balanced("g", &["a", "b"]) },
        OpenSubscription { control_events: true, ..balanced("g", &["a", "b"]) },
    ] {
        assert_eq!(client.subscribe(open).await.1, id);
    }
}

#[tokio::test]
async fn an_empty_subscription_id_agrees() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { subscription_id: "given".into(), ..balanced("g", &["a"]) };
    let (_first, _) = client.subscribe(open).await;
    let (_second, id) = client.subscribe(balanced("g", &["a"])).await;
    assert_eq!(id, "given");
}

#[tokio::test]
async fn a_subscription_id_in_use_by_another_is_refused_on_whatever_shard() {
    let broker = Broker::start();
    let client = broker.client().await;
    let taken = |open| OpenSubscription { subscription_id: "taken".into(), ..open };
    let (holder, _) = client.subscribe(taken(balanced("holder", &["a"]))).await;
    let words = ["subscription_id", "consumer group"];
    for number in 0..8 {
        let group = format!("g{number}");
        for open in [balanced(&group, &["a"]), singleton(&group, &["a"])] {
            assert_refused(&client, taken(open), Code::AlreadyExists, &words).await;
        }
        // Without the id the group is open to it.
        client.subscribe(balanced(&group, &["a"])).await;
    }
    assert_refused(&client, taken(multi(&["a"])), Code::AlreadyExists, &words).await;
    drop(holder);
    broker.stats_when("the group's end", |stats| stats.subscriptions == 0).await;
    client.subscribe(taken(balanced("g3", &["a"]))).await;
}

#[tokio::test]
async fn a_multi_stream_shares_its_id_with_nobody() {
    let broker = Broker::start();
    let (client, other) = (broker.client().await, broker.client().await);
    let taken = |open| OpenSubscription { subscription_id: "taken".into(), ..open };
    let (mut holder, _) = client.subscribe(taken(multi(&["a"]))).await;
    let words = ["subscription_id", "MULTI"];
    for _ in 0..3 {
        assert_refused(&other, taken(multi(&["a"])), Code::AlreadyExists, &words).await;
    }
    for number in 0..8 {
        let open = taken(balanced(&format!("g{number}"), &["a"]));
        assert_refused(&other, open, Code::AlreadyExists, &words).await;
    }
    client.publish("a", "1").await;
    assert_eq!(holder.payload().await, "1");
    drop(holder);
    broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    other.subscribe(taken(multi(&["a"]))).await;
}

#[tokio::test]
async fn of_many_that_open_one_id_at_once_one_gets_it() {
    let broker = Broker::start();
    let clients = [broker.client().await, broker.client().await];
    for round in 0..10 {
        let id = format!("race-{round}");
        let mut streams = Vec::new();
        for number in 0..8 {
            let open = balanced(&format!("g{round}-{number}"), &["a"]);
            let open = OpenSubscription { subscription_id: id.clone(), ..open };
            streams.push(clients[number % 2].open(open).await);
        }
        let (mut given, mut refused) = (0, 0);
        for stream in &mut streams {
            match stream.next().await {
                Ok(_) => given += 1,
                Err(status) if status.code() == Code::AlreadyExists => refused += 1,
                Err(status) => panic!("{status:?}"),
            }
        }
        assert_eq!((given, refused), (1, 7), "round {round}");
    }
}
