//! SPEC §3.11: DISCONNECT.

use prost_types::Duration;
use tinybroker::proto::{OpenSubscription, OverflowPolicy};
use tonic::Code;

use crate::support::*;

fn bounded(open: OpenSubscription) -> OpenSubscription {
    let linger = Some(Duration { seconds: 600, nanos: 0 });
    OpenSubscription { subscription_id: "mine".into(), max_pending: 3, max_in_flight: 1, linger, ..open }
}

#[tokio::test]
async fn it_is_the_default_in_multi_and_ends_the_stream_with_how_far_it_fell_behind() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut witness, _) = client.subscribe(multi(&["a"])).await;
    let (mut slow, _) = client.subscribe(bounded(multi(&["a"]))).await;
    for number in 1..=4 {
        assert_eq!(client.publish("a", &number.to_string()).await.subscriptions, 2);
    }
    // The publish itself succeeds; what it ended is not counted.
    assert_eq!(client.publish("a", "5").await.subscriptions, 1);
    assert_eq!(slow.payload().await, "1");
    let status = slow.end().await;
    assert_status(&status, Code::ResourceExhausted, &["fell 3 messages behind", "max_pending 3"]);
    let stats = broker.stats().await;
    // The linger does not apply.
    assert_eq!((stats.subscriptions, stats.waiting, stats.in_flight), (1, 0, 0));
    assert_eq!(stats.counters["dropped_disconnect"], 3);
    // The id is free at once, also for somebody else.
    let nobody = OpenSubscription { linger: None, ..bounded(multi(&["a"])) };
    for (open, text) in [(nobody, "6"), (bounded(balanced("g", &["a"])), "7")] {
        let (mut anew, _) = client.subscribe(open).await;
        client.publish("a", text).await;
        assert_eq!(anew.take().await, text);
        drop(anew);
        broker.stats_when("its leaving", |stats| stats.members == 1).await;
    }
    for number in 1..=7 {
        assert_eq!(witness.payload().await, number.to_string());
    }
}

#[tokio::test]
async fn in_a_group_it_ends_every_members_stream() {
    let broker = Broker::start();
    let client = broker.client().await;
    for mode in [balanced("b", &["a"]), singleton("s", &["a"])] {
        let is_singleton = mode.consumer_group == "s";
        let open = OpenSubscription { overflow: OverflowPolicy::Disconnect.into(), ..bounded(mode) };
        let mut members = Vec::new();
        for number in 1..=3 {
            members.push(client.open(open.clone()).await);
            broker.stats_when("one more member", |stats| stats.members == number).await;
        }
        let in_flight = if is_singleton { 1 } else { 3 };
        client.publish_numbers("a", 1, in_flight + 3).await;
        assert_eq!(client.publish("a", "one too many").await.subscriptions, 0);
        for member in &mut members {
            assert_status(&member.end().await, Code::ResourceExhausted, &["behind", "3"]);
        }
        let stats = broker.stats().await;
        assert_eq!((stats.subscriptions, stats.members, stats.in_flight), (0, 0, 0));
    }
}

#[tokio::test]
async fn bytes_are_a_limit_too() {
    let broker = Broker::with(&["--max-pending-bytes", "5000000"]);
    let client = broker.client().await;
    let open = OpenSubscription { max_pending: 0, ..bounded(multi(&["a"])) };
    let (mut slow, _) = client.subscribe(open).await;
    let big = "x".repeat(2_000_000);
    // One is in flight, two wait.
    for _ in 0..3 {
        assert_eq!(client.publish("a", &big).await.subscriptions, 1);
    }
    assert_eq!(client.publish("a", &big).await.subscriptions, 0);
    assert_status(&slow.end().await, Code::ResourceExhausted, &["bytes behind", "5000000"]);
    let stats = broker.stats().await;
    assert_eq!((stats.subscriptions, stats.counters["dropped_disconnect"]), (0, 2));
}
