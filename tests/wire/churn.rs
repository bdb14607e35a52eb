//! Streams that end as soon as they begin, by the thousand: nothing of them is left.

use crate::canary::{Canary, serves_newcomers};
use crate::grpc::SUBSCRIBE;
use crate::process;
use crate::raw::{self, Peer};
use crate::support::*;

const ENHANCE_YOUR_CALM: u32 = 11;

/// Nothing is left but the canary's own.
async fn assert_nothing_left(broker: &Broker) {
    let stats =
        broker.stats_when("all have left", |stats| stats.members == 1 && stats.subscriptions == 1).await;
    assert_eq!((stats.waiting, stats.held_bytes, stats.counters["handler_panics"]), (0, 0, 0));
}

fn every_mode(round: usize) -> tinybroker::proto::OpenSubscription {
    match round % 3 {
        0 => multi(&["t"]),
        1 => balanced("b", &["t"]),
        _ => singleton("s", &["t"]),
    }
}

/// As fast as the socket takes them: the connection may be ended for it, the broker may not suffer.
#[tokio::test]
async fn rapid_resets_leave_nothing() {
    const STREAMS: usize = 2000;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let sockets = process::open_sockets(&broker);
    let mut memory = Vec::new();
    for _ in 0..3 {
        let mut peer = Peer::connect(&broker).await;
        let streams = (0..STREAMS).map(|round| {
            let stream = 2 * round as u32 + 1;
            [raw::open(stream, every_mode(round)), raw::cancel(stream)].concat()
        });
        // The broker may have hung up by the end of it.
        let _ = peer.try_write(&streams.collect::<Vec<_>>().concat()).await;
        let _ = peer.try_write(&raw::frame(raw::PING, 0, 0, b"finished")).await;
        let last = loop {
            match peer.frame().await {
                Some(frame) if frame.kind == raw::GOAWAY => break Some(frame),
                Some(frame) if frame.kind == raw::PING => break None,
                Some(_) => {}
                None => panic!("a connection is not ended without a word"),
            }
        };
        if let Some(goodbye) = last {
            assert_eq!(goodbye.payload[4..8], ENHANCE_YOUR_CALM.to_be_bytes());
        }
        drop(peer);
        assert_nothing_left(&broker).await;
        canary.sings().await;
        process::sockets_come_home(&broker, sockets).await;
        memory.push(process::memory(&broker));
    }
    assert!(memory[2] < memory[0] + (16 << 20), "memory comes home: {memory:?}");
}

/// Each stream is begun and cancelled in one segment, before or after its first event.
#[tokio::test]
async fn open_and_cancel_in_the_same_breath_leaves_nothing_in_any_mode() {
    const ROUNDS: usize = 500;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::connect(&broker).await;
    for round in 0..ROUNDS {
        let stream = 2 * round as u32 + 1;
        if round % 2 == 0 {
            peer.write(&[raw::open(stream, every_mode(round)), raw::cancel(stream)].concat()).await;
            peer.assert_alive().await;
        } else {
            peer.subscribe(stream, multi(&["t"])).await;
            peer.write(&raw::cancel(stream)).await;
        }
    }
    assert_nothing_left(&broker).await;
    canary.sings().await;
    // The names are free, and work.
    let client = broker.client().await;
    let (mut b, _) = client.subscribe(balanced("b", &["t"])).await;
    let (mut s, _) = client.subscribe(singleton("s", &["t"])).await;
    client.publish("t", "to a fresh member").await;
    assert_eq!((b.take().await, s.take().await), ("to a fresh member".into(), "to a fresh member".into()));
}

/// An open that was cancelled while it was under way has no part in the subscription that comes next
/// under its name: whose acks are found, whatever connection they come from.
#[tokio::test]
async fn a_cancelled_open_takes_nothing_from_the_next_member() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut fickle = Peer::connect(&broker).await;
    let mut steady = Peer::connect(&broker).await;
    for round in 0..100 {
        let stream = 2 * round + 1;
        let open = || tinybroker::proto::OpenSubscription {
            subscription_id: "named".into(),
            ..balanced("g", &["t"])
        };
        fickle.write(&[raw::open(stream, open()), raw::cancel(stream)].concat()).await;
        let id = steady.subscribe(stream, open()).await;
        fickle.assert_alive().await;
        broker.stats_when("the fickle one has left", |stats| stats.members == 1).await;
        client.publish("t", "acked from elsewhere").await;
        let message = steady.message(stream).await;
        let settled = client.ack(ack_by_system_id(&id, &message.system_id)).await;
        assert_eq!(settled.expect("the subscription is known"), 1);
        steady.write(&raw::cancel(stream)).await;
        broker.stats_when("the steady one has left", |stats| stats.subscriptions == 0).await;
    }
}

/// The other way to make work of resets: requests that the broker itself must reset.
#[tokio::test]
async fn streams_that_the_broker_must_reset_leave_nothing() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let sockets = process::open_sockets(&broker);
    let mut peer = Peer::connect(&broker).await;
    let fields = [raw::call_fields(SUBSCRIBE), vec![("content-length", "1")]].concat();
    let block = raw::header_block(&fields);
    let streams = (0..2000).map(|round| {
        let stream = 2 * round + 1;
        [raw::frame(raw::HEADERS, raw::END_HEADERS, stream, &block), raw::data(stream, b"two")].concat()
    });
    let _ = peer.try_write(&streams.collect::<Vec<_>>().concat()).await;
    assert_eq!(peer.closed().await.unwrap_or(ENHANCE_YOUR_CALM), ENHANCE_YOUR_CALM);
    drop(peer);
    process::sockets_come_home(&broker, sockets).await;
    assert_nothing_left(&broker).await;
    canary.sings().await;
}

#[tokio::test]
async fn connections_that_come_and_crash_leave_nothing() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let sockets = process::open_sockets(&broker);
    for round in 0..300 {
        let mut peer = Peer::silent(&broker).await;
        let hello = [raw::PREFACE, &raw::settings(&[]), &raw::open(1, every_mode(round))].concat();
        // Cut anywhere, most often within a frame.
        peer.write(&hello[..hello.len() - round % hello.len()]).await;
        if round % 2 == 0 { peer.crash().await } else { peer.close().await }
    }
    process::sockets_come_home(&broker, sockets).await;
    assert_nothing_left(&broker).await;
    canary.sings().await;
    serves_newcomers(&broker).await;
}

/// Field case: memory grows with the calls that a connection has made.
#[tokio::test]
async fn a_long_connection_holds_nothing_of_its_past_calls() {
    let broker = Broker::start();
    let connection = crate::grpc::Connection::connect(&broker).await;
    let mut memory = Vec::new();
    for _ in 0..3 {
        for _ in 0..200 {
            connection.publish("t", "x").await;
            let mut call = connection.subscribe(multi(&["t"])).await;
            call.subscription_id().await;
        }
        memory.push(process::memory(&broker));
    }
    assert!(memory[2] < memory[0] + (8 << 20), "memory is flat: {memory:?}");
    let stats = broker.stats_when("all have left", |stats| stats.members == 0).await;
    assert_eq!(stats.subscriptions, 0);
}
