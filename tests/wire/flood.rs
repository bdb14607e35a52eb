//! Thousands of small DATA frames, an ack each, as fast as the socket takes them.

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Ack, OpenSubscription, OverflowPolicy, SubscribeCommand};

use crate::canary::Canary;
use crate::process;
use crate::raw::{self, Peer};
use crate::support::*;

/// Looks like an id of the broker's, and is none.
const UNKNOWN: &str = "1-0000000000";

async fn acks_counted(broker: &Broker, count: u64) {
    broker.stats_when("all acks are counted", |stats| stats.counters["ack_not_found"] == count).await;
}

#[tokio::test]
async fn fifty_thousand_acks_on_one_stream_are_all_taken() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::connect(&broker).await;
    peer.subscribe(1, balanced("g", &["t"])).await;
    peer.write(&raw::ack(1, UNKNOWN).repeat(50_000)).await;
    peer.assert_alive().await;
    acks_counted(&broker, 50_000).await;
    broker.client().await.publish("t", "still here").await;
    assert_eq!(payload(&peer.message(1).await), "still here");
    canary.sings().await;
}

#[tokio::test]
async fn acks_on_many_streams_at_once_are_all_taken() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::connect(&broker).await;
    let streams: Vec<u32> = (0..50).map(|stream| 2 * stream + 1).collect();
    for &stream in &streams {
        peer.subscribe(stream, multi(&["t"])).await;
    }
    let round: Vec<u8> = streams.iter().flat_map(|&stream| raw::ack(stream, UNKNOWN)).collect();
    peer.write(&round.repeat(1000)).await;
    peer.assert_alive().await;
    broker.client().await.publish("t", "still here").await;
    for &stream in &streams {
        assert_eq!(payload(&peer.message(stream).await), "still here");
    }
    canary.sings().await;
}

/// Its events wait for a window that never opens; its acks must not wait with them.
#[tokio::test]
async fn acks_of_a_member_that_reads_nothing_are_all_taken() {
    let broker = Broker::start();
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 0)]).await;
    peer.write(&raw::open(1, balanced("g", &["t"]))).await;
    peer.write(&raw::ack(1, UNKNOWN).repeat(50_000)).await;
    peer.assert_alive().await;
    acks_counted(&broker, 50_000).await;
}

/// Bad input ends the one call it came in; what was sent behind it has no stream any more.
#[tokio::test]
async fn acks_behind_a_bad_command_do_not_end_the_connection() {
    let broker = Broker::start();
    let mut peer = Peer::connect(&broker).await;
    peer.subscribe(1, balanced("g", &["t"])).await;
    peer.subscribe(3, multi(&["neighbour"])).await;
    let ack = Ack { subscription_id: "another's".into(), system_id: UNKNOWN.into(), ..Default::default() };
    let bad = raw::grpc(&SubscribeCommand { command: Some(Command::Ack(ack)) });
    peer.write(&[raw::data(1, &bad), raw::ack(1, UNKNOWN).repeat(50_000)].concat()).await;
    peer.until("the bad stream ends", |frame| frame.ends(1)).await;
    peer.assert_alive().await;
    broker.client().await.publish("neighbour", "lives").await;
    assert_eq!(payload(&peer.message(3).await), "lives");
}

/// The broker ends many streams at once (here: a DISCONNECT group that overflows); their acks are on
/// the way still.
#[tokio::test]
async fn acks_in_flight_to_streams_that_the_broker_ended_do_not_end_the_connection() {
    const STREAMS: u32 = 200;
    let broker = Broker::start();
    let client = broker.client().await;
    let mut peer = Peer::connect(&broker).await;
    peer.subscribe(1, multi(&["neighbour"])).await;
    let open = OpenSubscription {
        max_pending: 1,
        overflow: OverflowPolicy::Disconnect.into(),
        ..balanced("g", &["t"])
    };
    let streams: Vec<u32> = (1..=STREAMS).map(|stream| 2 * stream + 1).collect();
    for &stream in &streams {
        peer.subscribe(stream, open.clone()).await;
    }
    client.publish_numbers("t", 1, STREAMS + 2).await;
    for &stream in &streams {
        peer.until("the broker ends the stream", |frame| frame.ends(stream)).await;
    }
    let late: Vec<u8> = streams.iter().flat_map(|&stream| raw::ack(stream, UNKNOWN).repeat(20)).collect();
    peer.write(&late).await;
    peer.assert_alive().await;
    client.publish("neighbour", "lives").await;
    assert_eq!(payload(&peer.message(1).await), "lives");
}

#[tokio::test]
async fn a_flood_of_pings_is_answered_and_disturbs_nobody() {
    const PINGS: usize = 20_000;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::connect(&broker).await;
    let before = process::memory(&broker);
    peer.write(&raw::frame(raw::PING, 0, 0, b"12345678").repeat(PINGS)).await;
    for _ in 0..PINGS {
        let answer = peer.until("a PING is answered", |frame| frame.kind == raw::PING).await;
        assert_eq!((answer.flags, &answer.payload[..]), (raw::ACK, &b"12345678"[..]));
    }
    canary.sings().await;
    let growth = process::memory(&broker).saturating_sub(before);
    assert!(growth < 16 << 20, "answered pings leave nothing behind, here {growth} bytes");
}
