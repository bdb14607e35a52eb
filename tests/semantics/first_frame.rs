//! SPEC §3.1: the first event of a stream, and what it promises.

use tinybroker::proto::OpenSubscription;

use crate::support::*;

fn with_id(id: &str, open: OpenSubscription) -> OpenSubscription {
    OpenSubscription { subscription_id: id.into(), ..open }
}

#[tokio::test]
async fn it_is_the_id_that_was_given() {
    let broker = Broker::start();
    let client = broker.client().await;
    let opens = [multi(&["a"]), balanced("b", &["a"]), singleton("s", &["a"])];
    let mut streams = Vec::new();
    for (open, given) in opens.into_iter().zip(["one", "two", "thrée"]) {
        let (stream, id) = client.subscribe(with_id(given, open)).await;
        assert_eq!(id, given);
        streams.push(stream);
    }
}

#[tokio::test]
async fn where_none_was_given_the_broker_makes_a_short_one() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (_one, first) = client.subscribe(multi(&["a"])).await;
    let (_two, second) = client.subscribe(multi(&["a"])).await;
    let (_three, group) = client.subscribe(balanced("b", &["a"])).await;
    let (_four, same) = client.subscribe(balanced("b", &["a"])).await;
    for id in [&first, &second, &group] {
        assert!((1..=20).contains(&id.len()), "{id}");
    }
    assert!(first != second && second != group && first != group);
    assert_eq!(group, same);
}

#[tokio::test]
async fn a_standby_gets_no_event_until_its_promotion() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut active, id) = client.subscribe(singleton("s", &["a"])).await;
    let mut standby = client.open(singleton("s", &["a"])).await;
    broker.stats_when("a standby", |stats| stats.standbys == 1).await;
    client.publish("a", "1").await;
    assert_eq!(active.take().await, "1");
    standby.quiet().await;
    drop(active);
    assert_eq!(standby.subscription_id().await, id);
}

#[tokio::test]
async fn response_headers_come_before_any_command() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut silent = client.stream().await.expect("headers come");
    silent.quiet().await;
}

#[tokio::test]
async fn what_is_published_after_it_is_matched() {
    let broker = Broker::start();
    let client = broker.client().await;
    // Over several connections, so that publishes come from every frontend.
    let publishers = [broker.client().await, broker.client().await, broker.client().await];
    for round in 0..30 {
        let (name, topic) = (format!("g{round}"), format!("t{round}"));
        let opens = [multi(&[&topic]), balanced(&name, &[&topic]), singleton(&format!("{name}s"), &[&topic])];
        for (open, publisher) in opens.into_iter().zip(&publishers) {
            let (mut stream, _) = client.subscribe(open).await;
            let subscriptions = publisher.publish(&topic, "x").await.subscriptions;
            assert!(subscriptions >= 1, "round {round}");
            assert_eq!(stream.take().await, "x");
        }
    }
}
