//! A member leaves when its response side ends, however it ends; the end of its commands is no end.

use std::collections::BTreeSet;

use prost_types::Duration;
use tinybroker::proto::OpenSubscription;
use tinybroker::proto::subscribe_command::Command;

use crate::canary::Canary;
use crate::grpc::{Connection, SUBSCRIBE};
use crate::raw::{self, Peer};
use crate::support::*;

#[tokio::test]
async fn response_headers_come_before_any_command_is_sent() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    for open in [multi(&["t"]), balanced("b", &["t"]), singleton("s", &["t"])] {
        let mut call = connection.call(SUBSCRIBE).await;
        let (status, headers) = call.response().await;
        assert_eq!(status, 200);
        assert_eq!(headers["content-type"], "application/grpc");
        assert!(!headers.contains_key("grpc-status"), "the stream has only begun");
        call.command(Command::Open(open));
        call.subscription_id().await;
    }
}

#[tokio::test]
async fn a_stream_that_says_nothing_more_gets_its_messages_in_every_mode() {
    let broker = Broker::start();
    let mut peer = Peer::connect(&broker).await;
    peer.subscribe(1, multi(&["new.topic"])).await;
    peer.subscribe(3, balanced("b", &["new.topic"])).await;
    peer.subscribe(5, singleton("s", &["new.topic"])).await;
    tokio::time::sleep(QUIET).await;
    broker.client().await.publish("new.topic", "after the silence").await;
    for stream in [1, 3, 5] {
        assert_eq!(payload(&peer.message(stream).await), "after the silence");
    }
}

#[derive(Clone, Copy)]
enum Goodbye {
    Reset,
    Close,
    Crash,
}

impl Goodbye {
    /// Returns the connection where it outlives the stream.
    async fn say(self, mut peer: Peer, stream: u32) -> Option<Peer> {
        match self {
            Goodbye::Reset => {
                peer.write(&raw::cancel(stream)).await;
                return Some(peer);
            }
            Goodbye::Close => peer.close().await,
            Goodbye::Crash => peer.crash().await,
        }
        None
    }
}

#[tokio::test]
async fn every_way_to_leave_hands_over_what_was_held() {
    let broker = Broker::start();
    for goodbye in [Goodbye::Reset, Goodbye::Close, Goodbye::Crash] {
        for _ in 0..6 {
            leave_with_a_message(&broker, goodbye, false).await;
            leave_with_a_message(&broker, goodbye, true).await;
        }
    }
    let stats = broker.stats_when("all have left", |stats| stats.members == 0).await;
    assert_eq!((stats.subscriptions, stats.in_flight, stats.waiting), (0, 0, 0));
    assert_eq!(stats.counters["redelivered"], 36);
}

/// With `half_closed` the commands end right after `open`, and the member lives on by unary acks.
async fn leave_with_a_message(broker: &Broker, goodbye: Goodbye, half_closed: bool) {
    let client = broker.client().await;
    let mut peer = Peer::connect(broker).await;
    let id = peer.subscribe(1, balanced("g", &["t"])).await;
    if half_closed {
        peer.write(&raw::frame(raw::DATA, raw::END_STREAM, 1, &[])).await;
    }
    for text in ["one", "two"] {
        client.publish("t", text).await;
        let message = peer.message(1).await;
        assert_eq!(payload(&message), text);
        assert_eq!(client.ack(ack_by_system_id(&id, &message.system_id)).await.expect("it is in flight"), 1);
    }
    client.publish("t", "held").await;
    let held = peer.message(1).await;
    let (mut other, _) = client.subscribe(balanced("g", &["t"])).await;
    peer.subscribe(3, multi(&["neighbour"])).await;

    let peer = goodbye.say(peer, 1).await;
    let message = other.message().await;
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("held", 2));
    assert_eq!(message.system_id, format!("{}.2", held.system_id));
    if let Some(mut peer) = peer {
        client.publish("neighbour", "lives").await;
        assert_eq!(payload(&peer.message(3).await), "lives");
    }
    other.ack(&message);
    client.publish("t", "next").await;
    assert_eq!(other.take().await, "next");
    drop(other);
    broker.stats_when("the group is gone", |stats| stats.subscriptions == 0).await;
}

#[tokio::test]
async fn every_way_to_leave_promotes_the_next() {
    let broker = Broker::start();
    let client = broker.client().await;
    for half_closed in [false, true] {
        for goodbye in [Goodbye::Reset, Goodbye::Close, Goodbye::Crash] {
            let mut active = Peer::connect(&broker).await;
            let id = active.subscribe(1, singleton("s", &["t"])).await;
            if half_closed {
                active.write(&raw::frame(raw::DATA, raw::END_STREAM, 1, &[])).await;
            }
            client.publish_numbers("t", 1, 2).await;
            let held = active.message(1).await;
            let mut standby = client.open(singleton("s", &["t"])).await;
            broker.stats_when("a standby", |stats| stats.standbys == 1).await;

            let _open = goodbye.say(active, 1).await;
            assert_eq!(standby.subscription_id().await, id);
            let again = standby.due("1", 2).await;
            assert!(again.epoch > held.epoch, "{} after {}", again.epoch, held.epoch);
            standby.ack(&again);
            standby.take_due("2", 1).await;
            drop(standby);
            broker.stats_when("the group is gone", |stats| stats.subscriptions == 0).await;
        }
    }
}

/// Field case: clients thrown out by the dozen, and their messages listed as in flight for ever.
#[tokio::test]
async fn a_mass_eviction_clears_the_books() {
    const CONNECTIONS: u32 = 20;
    const STREAMS: u32 = 10;
    const HELD: u32 = CONNECTIONS * STREAMS;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let client = broker.client().await;
    let mut peers = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut peer = Peer::connect(&broker).await;
        for stream in 0..STREAMS {
            peer.subscribe(2 * stream + 1, balanced("g", &["t"])).await;
        }
        peers.push(peer);
    }
    client.publish_numbers("t", 1, HELD).await;
    broker.stats_when("all is held", |stats| stats.in_flight == u64::from(HELD)).await;
    let (mut survivor, _) = client.subscribe(balanced("g", &["t"])).await;

    let publishing = client.publish_numbers("t", HELD + 1, 2 * HELD);
    let crashing = async {
        for peer in peers {
            peer.crash().await;
        }
    };
    let surviving = async {
        let mut seen = BTreeSet::new();
        while seen.len() < 2 * HELD as usize {
            assert!(seen.insert(survivor.take().await), "nothing that was acked comes again");
        }
    };
    tokio::join!(publishing, crashing, surviving);
    canary.sings().await;
    let stats = broker.stats_when("the last ack is in", |stats| stats.in_flight == 0).await;
    assert_eq!((stats.waiting, stats.members), (0, 2));
}

/// Field case: what was sent while its receiver was leaving is lost, or counted as delivered.
#[tokio::test]
async fn nothing_is_lost_or_done_twice_in_the_moment_of_leaving() {
    const MESSAGES: u32 = 400;
    let broker = Broker::start();
    let open =
        OpenSubscription { linger: Some(Duration { seconds: 600, nanos: 0 }), ..balanced("g", &["t"]) };
    let (done, mut all_done) = tokio::sync::mpsc::unbounded_channel();
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let mut peer = Peer::connect(&broker).await;
        peer.subscribe(1, open.clone()).await;
        let (open, done) = (open.clone(), done.clone());
        workers.spawn(async move {
            for stream in (1..).step_by(2) {
                let message = peer.message(stream).await;
                let goodbye = [raw::ack(stream, &message.system_id), raw::cancel(stream)].concat();
                peer.write(&[goodbye, raw::open(stream + 2, open.clone())].concat()).await;
                if done.send(payload(&message)).is_err() {
                    return;
                }
            }
        });
    }
    broker.client().await.publish_numbers("t", 1, MESSAGES).await;
    let mut seen = BTreeSet::new();
    while seen.len() < MESSAGES as usize {
        let text = tokio::time::timeout(LIMIT, all_done.recv()).await.expect("the next message is delivered");
        assert!(seen.insert(text), "an ack before the goodbye is final");
    }
    let stats =
        broker.stats_when("all is settled", |stats| stats.counters["acked"] == u64::from(MESSAGES)).await;
    assert_eq!((stats.waiting, stats.in_flight), (0, 0));
    workers.shutdown().await;
}
