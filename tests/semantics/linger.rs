//! SPEC §3.9: when a subscription ends, and what with it.

use prost_types::Duration;
use tinybroker::proto::OpenSubscription;

use crate::support::*;

const LONG: Option<Duration> = Some(Duration { seconds: 600, nanos: 0 });
const SHORT: Option<Duration> = Some(Duration { seconds: 0, nanos: 1_000_000 });

#[tokio::test]
async fn by_default_it_ends_at_once_with_its_last_member() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut first, _) = client.subscribe(balanced("g", &["a"])).await;
    let (second, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish_numbers("a", 1, 5).await;
    assert_eq!(first.payload().await, "1");
    drop(second);
    broker.stats_when("a leaving", |stats| stats.members == 1 && stats.waiting == 4).await;
    drop(first);
    let stats = broker.stats_when("the end", |stats| stats.subscriptions == 0).await;
    assert_eq!((stats.waiting, stats.in_flight, stats.held_bytes, stats.patterns), (0, 0, 0, 0));
    assert_eq!(stats.counters["dropped_subscription_ended"], 4);
    assert_eq!(stats.counters["dropped_subscription_ended_in_flight"], 1);

    // Published while nobody is there: lost. A group that returns starts empty.
    assert_eq!(client.publish("a", "lost").await.subscriptions, 0);
    let (mut anew, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "6").await;
    let message = anew.message().await;
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("6", 1));
    anew.ack(&message);
    anew.quiet().await;
}

#[tokio::test]
async fn a_group_that_lingers_keeps_what_it_held_and_takes_more() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (open, topic) in [(balanced("b", &["b"]), "b"), (singleton("s", &["s"]), "s")] {
        let open = OpenSubscription { linger: LONG, ..open };
        let (mut first, id) = client.subscribe(open.clone()).await;
        client.publish_numbers(topic, 1, 3).await;
        assert_eq!(first.payload().await, "1");
        drop(first);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
        assert_eq!(client.publish(topic, "4").await.subscriptions, 1);

        let (mut again, same) = client.subscribe(open).await;
        assert_eq!(same, id);
        for (number, attempt) in [("1", 2), ("2", 1), ("3", 1), ("4", 1)] {
            let message = again.message().await;
            assert_eq!((payload(&message).as_str(), message.delivery_attempt), (number, attempt));
            again.ack(&message);
        }
        drop(again);
        broker.stats_when("its leaving", |stats| stats.members == 0).await;
    }
}

#[tokio::test]
async fn a_multi_stream_comes_back_to_the_subscription_that_lingers_for_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open =
        OpenSubscription { subscription_id: "mine".into(), linger: LONG, max_in_flight: 1, ..multi(&["a"]) };
    let (mut first, _) = client.subscribe(open.clone()).await;
    client.publish_numbers("a", 1, 2).await;
    assert_eq!(first.payload().await, "1");
    drop(first);
    broker.stats_when("its leaving", |stats| stats.members == 0).await;
    client.publish("a", "3").await;
    let (mut again, id) = client.subscribe(open).await;
    assert_eq!(id, "mine");
    assert_eq!([again.take().await, again.take().await, again.take().await], ["1", "2", "3"]);
}

#[tokio::test]
async fn who_comes_back_must_agree_with_what_lingers() {
    let broker = Broker::start();
    let client = broker.client().await;
    let lingering = |open| OpenSubscription { subscription_id: "mine".into(), linger: LONG, ..open };
    let (stream, _) = client.subscribe(lingering(balanced("g", &["a"]))).await;
    drop(stream);
    broker.stats_when("its leaving", |stats| stats.members == 0).await;
    let status = client.open(lingering(balanced("g", &["b"]))).await.end().await;
    assert_status(&status, tonic::Code::FailedPrecondition, &["topic_patterns"]);
    // The id is still its own.
    let status = client.open(lingering(balanced("another", &["a"]))).await.end().await;
    assert_status(&status, tonic::Code::AlreadyExists, &["subscription_id"]);
    client.subscribe(lingering(balanced("g", &["a"]))).await;
}

#[tokio::test]
async fn after_its_linger_it_ends() {
    let broker = Broker::start();
    let client = broker.client().await;
    let short = |open| OpenSubscription { linger: SHORT, ..open };
    let mut streams = Vec::new();
    for number in 0..4 {
        streams.push(client.subscribe(short(balanced(&format!("g{number}"), &["a"]))).await.0);
    }
    streams.push(client.subscribe(short(multi(&["a"]))).await.0);
    client.publish_numbers("a", 1, 2).await;
    drop(streams);
    let stats = broker.stats_when("their end", |stats| stats.subscriptions == 0).await;
    assert_eq!((stats.waiting, stats.held_bytes), (0, 0));
    assert_eq!(client.publish("a", "3").await.subscriptions, 0);
}
