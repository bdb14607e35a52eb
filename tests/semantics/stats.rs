//! What GetStats says of the process itself.

use std::time::Duration;

use tinybroker::proto::GetStatsResponse;

use crate::support::*;

fn cpu_time(stats: &GetStatsResponse) -> Duration {
    stats.cpu_time.expect("the system tells it").try_into().expect("it is not negative")
}

#[tokio::test]
async fn cpu_time_grows_with_work() {
    let broker = Broker::start();
    let before = broker.stats().await;
    assert!(cpu_time(&before) > Duration::ZERO, "starting has taken some");
    broker.client().await.publish_numbers("work", 1, 200).await;
    let after = broker.stats().await;
    assert!(cpu_time(&after) > cpu_time(&before), "{after:?}");
}

#[tokio::test]
async fn memory_grows_with_what_is_held_and_its_peak_is_kept() {
    const PAYLOAD_BYTES: usize = 1024 * 1024;
    const MESSAGES: usize = 32;
    const HELD: u64 = (PAYLOAD_BYTES * MESSAGES) as u64;
    let broker = Broker::start();
    let client = broker.client().await;
    let (consumer, _) = client.subscribe(balanced("holders", &["held"])).await;
    let before = broker.stats().await;
    assert!(before.resident_bytes > 1024 * 1024, "{before:?}");
    let payload = "x".repeat(PAYLOAD_BYTES);
    for _ in 0..MESSAGES {
        client.publish("held", &payload).await;
    }
    let full = broker.stats().await;
    // Half of it: the kernel counts loosely, and pages that the start needed may have left RAM.
    let shown = before.resident_bytes + HELD / 2;
    assert!(full.resident_bytes > shown, "{before:?} {full:?}");
    drop(consumer);
    let empty = broker.stats_when("the group has ended", |stats| stats.subscriptions == 0).await;
    for stats in [&before, &full, &empty] {
        assert!(stats.peak_resident_bytes >= stats.resident_bytes, "{stats:?}");
    }
    assert!(empty.peak_resident_bytes > shown, "{before:?} {empty:?}");
}

#[tokio::test]
async fn open_descriptors_count_the_connections() {
    const CONNECTIONS: u32 = 5;
    let broker = Broker::start();
    let before = broker.stats().await;
    assert!(before.open_descriptors > 3, "{before:?}");
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(broker.channel().await);
    }
    let more = |stats: &GetStatsResponse| stats.open_descriptors >= before.open_descriptors + CONNECTIONS;
    broker.stats_when("each connection is a descriptor", more).await;
    drop(channels);
    let as_before = |stats: &GetStatsResponse| stats.open_descriptors <= before.open_descriptors;
    broker.stats_when("they are closed", as_before).await;
}
