//! SPEC §1: what a publisher gives comes out, and what the broker adds.

use std::collections::HashMap;
use std::time::SystemTime;

use tinybroker::proto::PublishRequest;
use tinybroker::proto::subscribe_event::Event;

use crate::support::*;

#[tokio::test]
async fn every_field_comes_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(balanced("g", &["*"])).await;
    let headers: HashMap<_, _> =
        [("trace", "abc"), ("", "no name"), ("ünï", "☕")].map(|(k, v)| (k.into(), v.into())).into();
    let payload: Vec<u8> = (0..=255).collect();
    let request = PublishRequest {
        topic: "order.placed".into(),
        payload: payload.clone().into(),
        message_id: "order-4711".into(),
        headers: headers.clone(),
    };
    let before = SystemTime::now();
    let published = client.try_publish(request).await.expect("confirmed");
    let after = SystemTime::now();
    assert_eq!((published.message_id.as_str(), published.subscriptions), ("order-4711", 1));
    let message = stream.message().await;
    assert_eq!(message.system_id, published.system_id);
    assert_eq!((message.message_id.as_str(), message.topic.as_str()), ("order-4711", "order.placed"));
    assert_eq!((message.payload.to_vec(), message.headers), (payload, headers));
    assert_eq!((message.delivery_attempt, message.epoch), (1, 0));
    let at = SystemTime::try_from(message.published_at.expect("it is set")).expect("a time");
    assert!(before <= at && at <= after);
}

#[tokio::test]
async fn an_empty_message_comes_out_too() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["*"])).await;
    let published = client.publish("a", "").await;
    // Without an id of its publisher's it goes by the broker's.
    assert_eq!(published.message_id, published.system_id);
    let Event::Message(message) = stream.event().await else { panic!("a message was due") };
    assert!(message.payload.is_empty() && message.headers.is_empty());
    assert_eq!((&message.system_id, &message.message_id), (&published.system_id, &published.system_id));
}

#[tokio::test]
async fn system_ids_are_unique_over_connections() {
    let broker = Broker::start();
    let clients = [broker.client().await, broker.client().await, broker.client().await];
    let mut ids = std::collections::HashSet::new();
    for number in 0..60 {
        assert!(ids.insert(clients[number % 3].publish("a", "x").await.system_id));
    }
}

#[tokio::test]
async fn a_bad_message_id_is_refused() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (message_id, word) in [("x".repeat(257), "257"), ("a\tb".into(), "U+0009")] {
        let request = PublishRequest { message_id, ..message("a", "x") };
        let status = client.try_publish(request).await.expect_err("no such id can be");
        assert_invalid(&status, "message_id", &[word]);
        client.publish("fine", "x").await;
    }
}
