//! SPEC §5: memory is that of what is held.

use tinybroker::proto::OpenSubscription;

use crate::support::*;

const MIB: usize = 1024 * 1024;

/// Each small one is read in one buffer with large ones that nobody hears.
#[tokio::test]
async fn small_messages_do_not_pin_large_buffers() {
    const ROUNDS: usize = 30;
    const LARGE: usize = 4;
    let broker = Broker::start();
    let client = broker.client().await;
    let (_holder, _) = client.subscribe(balanced("g", &["small"])).await;
    let large = "x".repeat(MIB);
    let publish = async || {
        let mut batch = Vec::new();
        for _ in 0..LARGE {
            batch.push(message("large", &large));
            batch.push(message("small", "x"));
        }
        assert_eq!(client.publish_batch(batch).await.failures, []);
    };
    publish().await;
    let before = broker.stats().await.resident_bytes;
    for _ in 0..ROUNDS {
        publish().await;
    }
    let small = |bytes: u64| bytes < before + (ROUNDS * LARGE * MIB / 4) as u64;
    let stats =
        broker.stats_when("only what is held takes memory", |stats| small(stats.resident_bytes)).await;
    assert_eq!(stats.waiting + stats.in_flight, ((ROUNDS + 1) * LARGE) as u64);
}

#[tokio::test]
async fn it_returns_after_a_backlog() {
    const MESSAGES: u32 = 30_000;
    const BYTES: u64 = 1000;
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { linger: ENDLESS, max_in_flight: 1000, ..balanced("g", &["a"]) };
    drop(client.subscribe(open.clone()).await);
    broker.stats_when("its leaving", |stats| stats.members == 0).await;
    let before = broker.stats().await.resident_bytes;
    let publisher = client.publisher().await;
    let text = "x".repeat(BYTES as usize);
    for _ in 0..MESSAGES {
        publisher.send(message("a", &text));
    }
    assert_eq!(publisher.finish().await.failures, []);
    let backlog = u64::from(MESSAGES) * BYTES;
    let full = broker.stats().await;
    assert!(full.resident_bytes > before + backlog / 2, "{before} bytes before, {full:?}");
    let (mut worker, _) = client.subscribe(open).await;
    for _ in 0..MESSAGES {
        worker.take().await;
    }
    let is_back = |bytes: u64| bytes < before + backlog / 2;
    let stats = broker.stats_when("memory is given back", |stats| is_back(stats.resident_bytes)).await;
    assert_eq!((stats.waiting, stats.subscriptions), (0, 1));
}
