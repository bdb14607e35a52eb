//! Streams of publishes by clients that send each message in a frame of its own, or do not read their confirms.

use std::time::Duration;

use prost::Message as _;
use tinybroker::proto::PublishConfirm;

use crate::canary::Canary;
use crate::grpc::PUBLISH_STREAM;
use crate::process;
use crate::raw::{self, Peer};
use crate::support::*;

fn publish(stream: u32, topic: &str, payload: &str) -> Vec<u8> {
    raw::data(stream, &raw::grpc(&message(topic, payload)))
}

/// Reads confirms until so many requests are settled. Returns how many failed, in how many confirms.
async fn settled(peer: &mut Peer, stream: u32, count: u64) -> (usize, usize) {
    let (mut confirmed, mut failures, mut confirms) = (0, 0, 0);
    while confirmed < count {
        let confirm = PublishConfirm::decode(peer.response(stream).await).expect("a confirm");
        confirmed = confirm.confirmed;
        failures += confirm.failures.len();
        confirms += 1;
    }
    assert_eq!(confirmed, count);
    (failures, confirms)
}

/// Sends a frame again and again, at most so often and until the broker grants no window for so long. Returns how often.
async fn send(peer: &mut Peer, stream: u32, frame: &[u8], most: usize, patience: Duration) -> usize {
    /// As the broker advertises it for each stream.
    const WINDOW: usize = 4 * 1024 * 1024;
    const HEAD: usize = 9;
    let (mut window, bytes) = (WINDOW, frame.len() - HEAD);
    for sent in 0..most {
        while window < bytes {
            match peer.granted(stream, patience).await {
                0 => return sent,
                granted => window += granted,
            }
        }
        window -= bytes;
        peer.write(frame).await;
    }
    most
}

#[tokio::test]
async fn small_frames_faster_than_they_are_published_are_all_taken() {
    const MESSAGES: usize = 60_000;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::connect(&broker).await;
    peer.write(&raw::call(1, PUBLISH_STREAM)).await;
    peer.write(&publish(1, "t", "").repeat(MESSAGES)).await;
    assert_eq!(settled(&mut peer, 1, MESSAGES as u64).await.0, 0);
    peer.assert_alive().await;
    canary.sings().await;
}

/// Confirms are cumulative: those that wait to be read become one.
#[tokio::test]
async fn who_does_not_read_confirms_takes_no_memory_for_it() {
    /// More bytes than the windows and buffers between it and the broker hold.
    const MESSAGES: usize = 20_000;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 100)]).await;
    let before = process::memory(&broker);
    peer.write(&raw::call(1, PUBLISH_STREAM)).await;
    let frame = publish(1, "t", &"x".repeat(1000));
    assert_eq!(send(&mut peer, 1, &frame, MESSAGES, LIMIT).await, MESSAGES);
    broker.stats_when("all are published", |stats| stats.counters["published"] > MESSAGES as u64).await;
    canary.sings().await;
    let growth = process::memory(&broker).saturating_sub(before);
    assert!(growth < 16 << 20, "{growth} bytes");
    peer.write(&raw::window_update(1, raw::WIDE)).await;
    let (failures, confirms) = settled(&mut peer, 1, MESSAGES as u64).await;
    assert_eq!(failures, 0);
    assert!(confirms < 100, "{confirms} confirms");
}

/// Failures are each told: what is sent behind as many as one confirm may hold waits in the windows of HTTP/2.
#[tokio::test]
async fn who_does_not_read_its_failures_is_not_read_from() {
    const MESSAGES: usize = 30_000;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 100)]).await;
    peer.write(&raw::call(1, PUBLISH_STREAM)).await;
    let frame = publish(1, "no topic*", &"x".repeat(1000));
    let sent = send(&mut peer, 1, &frame, MESSAGES, 5 * QUIET).await;
    assert!(sent < MESSAGES, "it is read from on and on");
    canary.sings().await;
    // Other calls of its connection are served.
    peer.subscribe(3, balanced("g", &["other"])).await;
    // All comes through once it reads.
    peer.write(&[raw::window_update(0, raw::WIDE), raw::window_update(1, raw::WIDE)].concat()).await;
    assert_eq!(settled(&mut peer, 1, sent as u64).await.0, sent);
    peer.write(&raw::frame(raw::DATA, raw::END_STREAM, 1, &[])).await;
    peer.until("the stream ends", |frame| frame.ends(1)).await;
}

/// Many on one frontend, each of which stops reading in the midst of things: what they wait for is free for others.
#[tokio::test]
async fn who_stops_reading_confirms_is_in_no_line_before_others() {
    const MESSAGES: usize = 15_000;
    let broker = Broker::with(&["--frontends", "1"]);
    let canary = Canary::new(&broker).await;
    let client = broker.client().await;
    let mut subscriptions = Vec::new();
    for number in 0..6 {
        subscriptions.push(client.subscribe(balanced(&format!("g{number}"), &["other"])).await);
    }
    let flood = std::sync::Arc::new(publish(1, "t", "").repeat(MESSAGES));
    let mut writing = Vec::new();
    for window in 10..20 {
        let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, window)]).await;
        let flood = flood.clone();
        writing.push(tokio::spawn(async move {
            peer.write(&raw::call(1, PUBLISH_STREAM)).await;
            peer.write(&flood).await;
            peer
        }));
    }
    for peer in writing {
        let mut peer = peer.await.expect("no panic");
        canary.sings().await;
        peer.write(&raw::window_update(1, raw::WIDE)).await;
        settled(&mut peer, 1, MESSAGES as u64).await;
    }
    canary.sings().await;
}
