//! What a client says before its goodbye is done before it, also where both come in one breath.

use futures_util::future::join_all;
use prost_types::Duration;
use tinybroker::proto::OpenSubscription;
use tonic::Code;

use crate::raw::{self, Peer};
use crate::support::*;

/// A group that outlives its members, so that what returns is seen by the next.
fn lingering(max_in_flight: u32) -> OpenSubscription {
    let linger = Some(Duration { seconds: 600, nanos: 0 });
    OpenSubscription { max_in_flight, linger, ..balanced("g", &["t"]) }
}

/// All was acked and nothing came back.
async fn assert_all_acked(broker: &Broker, count: u64) {
    let stats = broker.stats_when("all have left", |stats| stats.members == 0).await;
    assert_eq!((stats.counters["acked"], stats.counters["redelivered"]), (count, 0));
    assert_eq!((stats.in_flight, stats.waiting), (0, 0));
}

#[tokio::test]
async fn an_ack_before_a_reset_is_carried_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut peer = Peer::connect(&broker).await;
    for round in 0..200 {
        let stream = 2 * round + 1;
        peer.subscribe(stream, lingering(1)).await;
        client.publish("t", &round.to_string()).await;
        let message = peer.message(stream).await;
        assert_eq!((payload(&message), message.delivery_attempt), (round.to_string(), 1));
        peer.write(&[raw::ack(stream, &message.system_id), raw::cancel(stream)].concat()).await;
    }
    assert_all_acked(&broker, 200).await;
}

/// The response side waits for a window meanwhile, and gets it in the same breath.
#[tokio::test]
async fn an_ack_behind_a_window_and_before_a_reset_is_carried_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    let large = "x".repeat(10_000);
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 1000)]).await;
    peer.write(&raw::window_update(0, raw::WIDE)).await;
    for round in 0..100 {
        let stream = 2 * round + 1;
        peer.subscribe(stream, OpenSubscription { linger: None, ..lingering(2) }).await;
        client.publish("t", "small").await;
        let message = peer.message(stream).await;
        assert_eq!(payload(&message), "small");
        client.publish("t", &large).await;
        // Its first part comes, and there is no window for the rest.
        peer.until("a part", |frame| frame.kind == raw::DATA && frame.stream == stream).await;
        let window = raw::window_update(stream, raw::WIDE);
        peer.write(&[window, raw::ack(stream, &message.system_id), raw::cancel(stream)].concat()).await;
        broker.stats_when("the group is gone", |stats| stats.subscriptions == 0).await;
        assert_eq!(broker.stats().await.counters["acked"], u64::from(round) + 1);
    }
}

#[tokio::test]
async fn an_ack_before_the_end_of_the_connection_is_carried_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    for round in 0..100 {
        let mut peer = Peer::connect(&broker).await;
        peer.subscribe(1, lingering(1)).await;
        client.publish("t", &round.to_string()).await;
        let message = peer.message(1).await;
        assert_eq!((payload(&message), message.delivery_attempt), (round.to_string(), 1));
        peer.write(&raw::ack(1, &message.system_id)).await;
        peer.close().await;
        // Else the next message may be tried on this member, before its end is noticed.
        broker.stats_when("the member has left", |stats| stats.members == 0).await;
    }
    assert_all_acked(&broker, 100).await;
}

#[tokio::test]
async fn an_ack_before_a_half_close_and_a_reset_is_carried_out() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut peer = Peer::connect(&broker).await;
    for round in 0..100 {
        let stream = 2 * round + 1;
        peer.subscribe(stream, lingering(1)).await;
        client.publish("t", &round.to_string()).await;
        let message = peer.message(stream).await;
        assert_eq!(message.delivery_attempt, 1);
        let last = raw::frame(raw::DATA, raw::END_STREAM, stream, &raw::ack_body(&message.system_id));
        peer.write(&[last, raw::cancel(stream)].concat()).await;
    }
    assert_all_acked(&broker, 100).await;
}

/// A member that holds `count` messages.
async fn holder(broker: &Broker, count: u32) -> (Peer, Vec<String>) {
    let mut peer = Peer::connect(broker).await;
    peer.subscribe(1, lingering(count)).await;
    let client = broker.client().await;
    join_all((0..count).map(|_| client.publish("t", "held"))).await;
    let mut held = Vec::new();
    for _ in 0..count {
        held.push(peer.message(1).await.system_id);
    }
    (peer, held)
}

#[tokio::test]
async fn many_acks_before_a_reset_are_carried_out() {
    let broker = Broker::start();
    let (mut peer, held) = holder(&broker, 500).await;
    let acks: Vec<u8> = held.iter().flat_map(|id| raw::ack(1, id)).collect();
    peer.write(&[acks, raw::cancel(1)].concat()).await;
    assert_all_acked(&broker, 500).await;
}

#[tokio::test]
async fn acks_in_frames_of_one_byte_before_a_reset_are_carried_out() {
    let broker = Broker::start();
    let (mut peer, held) = holder(&broker, 100).await;
    let body: Vec<u8> = held.iter().flat_map(|id| raw::ack_body(id)).collect();
    let frames: Vec<u8> = body.iter().flat_map(|&byte| raw::data(1, &[byte])).collect();
    peer.write(&[frames, raw::cancel(1)].concat()).await;
    assert_all_acked(&broker, 100).await;
}

#[tokio::test]
async fn many_acks_before_the_end_of_the_connection_are_carried_out() {
    let broker = Broker::start();
    let (mut peer, held) = holder(&broker, 500).await;
    let acks: Vec<u8> = held.iter().flat_map(|id| raw::ack(1, id)).collect();
    peer.write(&acks).await;
    peer.close().await;
    assert_all_acked(&broker, 500).await;
}

/// An ack from elsewhere while the holder's stream is reset is either final or came too late.
#[tokio::test]
async fn a_unary_ack_that_races_the_reset_is_final_or_too_late() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut peer = Peer::connect(&broker).await;
    let mut next = client.subscribe(lingering(2)).await;
    for round in 0..60 {
        let stream = 2 * round + 1;
        let id = next.1;
        drop(next.0);
        broker.stats_when("the group is empty", |stats| stats.members == 0).await;
        peer.subscribe(stream, lingering(2)).await;
        client.publish("t", "contested").await;
        let contested = peer.message(stream).await;
        let goodbye = raw::cancel(stream);
        let (ack, ()) =
            tokio::join!(client.ack(ack_by_system_id(&id, &contested.system_id)), peer.write(&goodbye));
        next = client.subscribe(lingering(2)).await;
        client.publish("t", "afterwards").await;
        match ack {
            Ok(settled) => assert_eq!(settled, 1),
            Err(status) => {
                assert_eq!(status.code(), Code::NotFound, "{status:?}");
                let again = next.0.message().await;
                assert_eq!((payload(&again).as_str(), again.delivery_attempt), ("contested", 2));
                next.0.ack(&again);
            }
        }
        assert_eq!(next.0.take().await, "afterwards");
        broker.stats_when("nothing is left", |stats| stats.in_flight + stats.waiting == 0).await;
    }
}
