//! Streams of publishes by clients that send each message in a frame of its own, or do not read their confirms.

use prost::Message as _;
use tinybroker::proto::{OpenSubscription, PublishConfirm};

use crate::canary::Canary;
use crate::grpc::PUBLISH_STREAM;
use crate::process;
use crate::raw::{self, Peer};
use crate::support::*;

fn publish(stream: u32, topic: &str, payload: &str) -> Vec<u8> {
    raw::data(stream, &raw::grpc(&message(topic, payload)))
}

/// Reads confirms until so many requests are settled.
async fn settled(peer: &mut Peer, stream: u32, count: u64) {
    let mut confirmed = 0;
    while confirmed < count {
        let confirm = PublishConfirm::decode(peer.response(stream).await).expect("a confirm");
        assert_eq!(confirm.failures, []);
        confirmed = confirm.confirmed;
    }
    assert_eq!(confirmed, count);
}

/// On all shards, of which one may refuse: each publish asks all shards first, and waits for their answers.
async fn near_full(client: &Client) -> Vec<Stream> {
    let mut streams = Vec::new();
    for number in 0..6 {
        let open = OpenSubscription { max_pending: 100, ..balanced(&format!("g{number}"), &["other"]) };
        streams.push(client.subscribe(open).await.0);
    }
    streams
}

#[tokio::test]
async fn small_frames_faster_than_they_are_published_are_all_taken() {
    const MESSAGES: usize = 40_000;
    let broker = Broker::with(&["--shards", "2"]);
    let canary = Canary::new(&broker).await;
    let _subscriptions = near_full(&broker.client().await).await;
    let mut peer = Peer::connect(&broker).await;
    peer.write(&raw::call(1, PUBLISH_STREAM)).await;
    peer.write(&publish(1, "t", "").repeat(MESSAGES)).await;
    settled(&mut peer, 1, MESSAGES as u64).await;
    peer.assert_alive().await;
    canary.sings().await;
}

/// Its publishes wait in the windows of HTTP/2, and nobody else waits for it.
#[tokio::test]
async fn who_does_not_read_confirms_is_not_read_from() {
    const BYTES: usize = 1000;
    /// More than the windows and buffers between it and the broker hold.
    const MESSAGES: usize = 30_000;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 100)]).await;
    let memory = process::memory(&broker);
    peer.write(&raw::call(1, PUBLISH_STREAM)).await;
    let one = publish(1, "t", &"x".repeat(BYTES));
    let mut window = 4 * 1024 * 1024;
    let mut sent = 0;
    while sent < MESSAGES {
        // HTTP/2 lets it send as much as its window has.
        while window < one.len() {
            let granted = peer.granted(1).await;
            if granted == 0 {
                break;
            }
            window += granted;
        }
        if window < one.len() {
            break;
        }
        window -= one.len();
        peer.write(&one).await;
        sent += 1;
    }
    assert!(sent < MESSAGES, "it is read from on and on");
    canary.sings().await;
    let growth = process::memory(&broker).saturating_sub(memory);
    assert!(growth < 64 << 20, "{growth} bytes");
    // Other calls of its connection are served.
    peer.subscribe(3, balanced("g", &["other"])).await;
    // All comes through once it reads.
    peer.write(&raw::window_update(1, raw::WIDE)).await;
    settled(&mut peer, 1, sent as u64).await;
}
