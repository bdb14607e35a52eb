//! SPEC §1 and §4: PublishBatch.

use prost::Message as _;
use tinybroker::proto::{OpenSubscription, PublishBatchRequest, PublishRequest, PublishResponse};
use tonic::Code;

use crate::drain::broker_drains;
use crate::support::*;

/// What a request may have as a whole.
const REQUEST_BYTES: usize = 16 * 1024 * 1024;
const MESSAGE_BYTES: usize = 4_193_792;

#[tokio::test]
async fn one_result_a_message_in_order_and_failures_by_index() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(multi(&["a"])).await;
    let answer = client
        .publish_batch(vec![
            PublishRequest { message_id: "order-1".into(), ..message("a", "0") },
            message("bad*", "1"),
            message("a", &"x".repeat(5_000_000)),
            message("unheard", "3"),
            message("a", "4"),
        ])
        .await;
    let failed: Vec<_> = answer.failures.iter().map(|failure| (failure.index, failure.code)).collect();
    assert_eq!(failed, [(1, Code::InvalidArgument as i32), (2, Code::ResourceExhausted as i32)]);
    assert!(answer.failures[0].message.contains("wildcard"), "{answer:?}");
    assert!(answer.failures[1].message.contains("limit 4193792"), "{answer:?}");
    assert_eq!(answer.results[1..3], [PublishResponse::default(), PublishResponse::default()]);
    assert_eq!(answer.results[0].message_id, "order-1");
    let subscriptions: Vec<u32> = answer.results.iter().map(|result| result.subscriptions).collect();
    assert_eq!(subscriptions, [1, 0, 0, 0, 1]);
    for (index, text) in [(0, "0"), (4, "4")] {
        let (message, result) = (stream.message().await, &answer.results[index]);
        assert_eq!(payload(&message), text);
        assert_eq!((&message.system_id, &message.message_id), (&result.system_id, &result.message_id));
    }
    // Without an id of its publisher's it goes by the broker's.
    assert_eq!(answer.results[3].message_id, answer.results[3].system_id);
    stream.quiet().await;
    let counters = broker.stats().await.counters;
    assert_eq!((counters["published"], counters["unheard"], counters["publish_failed"]), (3, 1, 2));
}

#[tokio::test]
async fn an_empty_batch_is_fine() {
    let broker = Broker::start();
    let answer = broker.client().await.publish_batch(Vec::new()).await;
    assert_eq!((answer.results.len(), answer.failures.len()), (0, 0));
}

#[tokio::test]
async fn order_is_kept_in_every_subscription() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut streams = Vec::new();
    for number in 0..8 {
        let wide = |open| OpenSubscription { max_in_flight: 10_000, ..open };
        streams.push(client.subscribe(wide(balanced(&format!("b{number}"), &["a"]))).await.0);
        streams.push(client.subscribe(wide(singleton(&format!("s{number}"), &["a"]))).await.0);
        streams.push(client.subscribe(multi(&["a"])).await.0);
    }
    // At first none may refuse; then one may, and each publish asks all shards first.
    let mut narrow = None;
    for round in 0..4 {
        if round == 2 {
            let open = OpenSubscription { max_pending: 1000, ..balanced("narrow", &["a"]) };
            narrow = Some(client.subscribe(open).await);
        }
        let answer = client.publish_batch(numbers("a", round * 100, round * 100 + 99)).await;
        assert_eq!(answer.failures, []);
    }
    drop(narrow);
    for stream in &mut streams {
        for number in 0..400 {
            assert_eq!(stream.payload().await, number.to_string());
        }
    }
}

#[tokio::test]
async fn what_a_full_subscription_refuses_fails_alone() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut member, id) =
        client.subscribe(OpenSubscription { max_pending: 2, ..balanced("g", &["a"]) }).await;
    let (mut witness, _) = client.subscribe(multi(&["*"])).await;
    let mut batch = numbers("a", 0, 4);
    batch.push(message("b", "5"));
    let answer = client.publish_batch(batch).await;
    let failed: Vec<u64> = answer.failures.iter().map(|failure| failure.index).collect();
    assert_eq!(failed, [3, 4]);
    for failure in &answer.failures {
        assert_eq!(failure.code, Code::ResourceExhausted as i32);
        assert!(failure.message.contains(&id) && failure.message.contains("limit 2"), "{failure:?}");
    }
    assert_eq!([member.take().await, member.take().await, member.take().await], ["0", "1", "2"]);
    for text in ["0", "1", "2", "5"] {
        assert_eq!(witness.payload().await, text);
    }
    witness.quiet().await;
}

/// A batch of so many bytes as a whole, of messages that are each within their limit.
fn sized(bytes: usize) -> Vec<PublishRequest> {
    let mut messages = vec![message("a", &"x".repeat(MESSAGE_BYTES - 100)); 4];
    // Between 128 and 16,383 bytes the length of the last one takes the same room.
    messages.push(message("a", &"x".repeat(200)));
    let missing = bytes - PublishBatchRequest { messages: messages.clone() }.encoded_len();
    messages[4].payload = "x".repeat(200 + missing).into();
    assert_eq!(PublishBatchRequest { messages: messages.clone() }.encoded_len(), bytes);
    messages
}

#[tokio::test]
async fn as_a_whole_it_may_have_16_mib() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(balanced("g", &["a"])).await;
    let answer = client.publish_batch(sized(REQUEST_BYTES)).await;
    assert_eq!(answer.failures, []);
    let status = client.try_publish_batch(sized(REQUEST_BYTES + 1)).await.expect_err("it is too large");
    assert_status(&status, Code::ResourceExhausted, &["16777217", "16777216"]);
    for result in &answer.results {
        let message = stream.message().await;
        assert_eq!((&message.system_id, result.subscriptions), (&result.system_id, 1));
        stream.ack(&message);
    }
    stream.quiet().await;
}

#[tokio::test]
async fn while_the_broker_drains_it_is_unavailable() {
    let broker = Broker::with(&["--drain-timeout", "1h"]);
    let client = broker.client().await;
    let (mut holder, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "1").await;
    holder.message().await;
    broker.signal(libc::SIGTERM);
    broker_drains(&broker).await;
    for client in [client, broker.client().await] {
        let status = client.try_publish_batch(numbers("a", 1, 3)).await.expect_err("no new work is taken");
        assert_status(&status, Code::Unavailable, &["shutting down"]);
    }
}
