//! SPEC §3.2: MULTI.

use tinybroker::proto::OpenSubscription;

use crate::support::*;

#[tokio::test]
async fn every_subscription_gets_every_matching_message_in_publish_order() {
    let broker = Broker::start();
    let (one, two) = (broker.client().await, broker.client().await);
    let mut streams = Vec::new();
    for client in [&one, &one, &two, &two, &two] {
        streams.push(client.subscribe(multi(&["news.*"])).await.0);
    }
    let (mut other, _) = two.subscribe(multi(&["weather"])).await;
    for number in 1..=50 {
        assert_eq!(one.publish("news.x", &number.to_string()).await.subscriptions, 5);
    }
    for stream in &mut streams {
        for number in 1..=50 {
            assert_eq!(stream.payload().await, number.to_string());
        }
    }
    other.quiet().await;
}

#[tokio::test]
async fn an_unspecified_mode_means_multi() {
    let broker = Broker::start();
    let client = broker.client().await;
    let unspecified = || OpenSubscription { topic_patterns: vec!["a".into()], ..Default::default() };
    let (mut one, _) = client.subscribe(unspecified()).await;
    let (mut two, _) = client.subscribe(unspecified()).await;
    assert_eq!(client.publish("a", "1").await.subscriptions, 2);
    assert_eq!((one.payload().await, two.payload().await), ("1".into(), "1".into()));
}

#[tokio::test]
async fn no_ack_is_asked_and_one_that_comes_settles_nothing() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, id) = client.subscribe(multi(&["a"])).await;
    client.publish_numbers("a", 1, 3).await;
    for number in 1..=3 {
        let message = stream.message().await;
        assert_eq!(payload(&message), number.to_string());
        stream.ack(&message);
        assert_eq!(client.ack(ack_by_system_id(&id, &message.system_id)).await.expect("OK"), 0);
        assert_eq!(client.ack(ack_by_message_id(&id, "nonsense")).await.expect("OK"), 0);
    }
    let stats = broker.stats().await;
    assert_eq!((stats.in_flight, stats.waiting, stats.held_bytes), (0, 0, 0));
    client.publish("a", "4").await;
    assert_eq!(stream.payload().await, "4");
}

#[tokio::test]
async fn with_max_in_flight_acks_are_asked() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { max_in_flight: 2, ..multi(&["a"]) };
    let (mut stream, id) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 4).await;
    let first = stream.message().await;
    assert_eq!(stream.payload().await, "2");
    stream.quiet().await;
    let stats = broker.stats().await;
    assert_eq!((stats.in_flight, stats.waiting), (2, 2));
    assert_eq!(client.ack(ack_by_system_id(&id, &first.system_id)).await.expect("OK"), 1);
    assert_eq!(stream.payload().await, "3");
    stream.quiet().await;
}
