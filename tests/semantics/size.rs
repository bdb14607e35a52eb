//! SPEC §4: a message is accepted only if it comes out again.

use std::collections::HashMap;

use prost::Message as _;
use tinybroker::proto::{Message, PublishRequest, SubscribeEvent, subscribe_event::Event};
use tonic::Code;

use crate::support::*;

/// What gRPC clients accept by default.
const EVENT_BYTES: usize = 4 * 1024 * 1024;
const LONGEST_TOPIC: usize = 1024;

fn sized(bytes: usize) -> PublishRequest {
    let headers = HashMap::from([("k".to_owned(), "v".repeat(3000))]);
    let message_id = "i".repeat(256);
    PublishRequest { headers, message_id, ..message(&"t".repeat(LONGEST_TOPIC), &"x".repeat(bytes)) }
}

/// Room for all but the payload.
const OTHER_BYTES: usize = 3000 + 256 + LONGEST_TOPIC;

#[tokio::test]
async fn every_size_is_refused_with_both_figures_or_comes_out_to_a_default_client() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(singleton("s", &["*"])).await;
    let (mut accepted, mut refused) = (0, 0);
    for less in (0..1200).step_by(40) {
        let bytes = EVENT_BYTES - OTHER_BYTES - less;
        let request = sized(bytes);
        // Topic, message_id, headers and payload, as an event carries them.
        let figure = Message {
            topic: request.topic.clone(),
            message_id: request.message_id.clone(),
            headers: request.headers.clone(),
            payload: request.payload.clone(),
            ..Message::default()
        };
        let figure = figure.encoded_len();
        match client.try_publish(request).await {
            Ok(_) => {
                accepted += 1;
                let message = stream.message().await;
                assert_eq!(message.payload.len(), bytes);
                stream.ack(&message);
                let event = SubscribeEvent { event: Some(Event::Message(message)) };
                assert!(event.encoded_len() <= EVENT_BYTES);
            }
            Err(status) => {
                refused += 1;
                assert_eq!(accepted, 0, "a smaller one is never refused after a larger one was taken");
                let both = [&*format!("is {figure} bytes"), "limit 4193792"];
                assert_status(&status, Code::ResourceExhausted, &both);
                client.publish("fine", "x").await;
                assert_eq!(stream.take().await, "x");
            }
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}

#[tokio::test]
async fn a_redelivery_of_the_largest_comes_out_too() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(singleton("s", &["*"])).await;
    let mut bytes = EVENT_BYTES - OTHER_BYTES;
    while client.try_publish(sized(bytes)).await.is_err() {
        bytes -= 8;
    }
    for attempt in 1..=12 {
        let message = stream.message().await;
        assert_eq!((message.payload.len(), message.delivery_attempt), (bytes, attempt));
        let mut heir = client.open(singleton("s", &["*"])).await;
        broker.stats_when("a standby", |stats| stats.standbys == 1).await;
        drop(stream);
        heir.subscription_id().await;
        stream = heir;
    }
}

#[tokio::test]
async fn the_limit_can_be_lowered() {
    let broker = Broker::with(&["--max-message-bytes", "1000"]);
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["*"])).await;
    let status = client.try_publish(message("a", &"x".repeat(1000))).await.expect_err("it is too large");
    assert_status(&status, Code::ResourceExhausted, &["limit 1000", "message"]);
    client.publish("a", &"x".repeat(900)).await;
    assert_eq!(stream.payload().await.len(), 900);
    stream.quiet().await;
}

#[tokio::test]
async fn a_request_beyond_all_bounds_is_refused_with_both_figures() {
    let broker = Broker::start();
    let client = broker.client().await;
    let status = client.try_publish(message("a", &"x".repeat(17 << 20))).await.expect_err("it is too large");
    assert_status(&status, Code::ResourceExhausted, &["1782", "16777216"]);
    client.publish("fine", "x").await;
}
