//! Many streams on few connections, up to the limits that the broker advertises.

use bytes::Buf;
use tinybroker::limits;
use tonic::Code;

use crate::grpc::{ACK, Call, Connection};
use crate::raw::{self, Peer};
use crate::support::*;

/// What the broker says of itself before it hears anything: a setting, if it is among them.
async fn advertised(peer: &mut Peer, wanted: u16) -> Option<u32> {
    peer.write(&[raw::PREFACE, &raw::settings(&[])].concat()).await;
    let mut settings = peer.until("settings", |frame| frame.kind == raw::SETTINGS && frame.flags == 0).await;
    let mut advertised = None;
    while settings.payload.remaining() >= 6 {
        let (id, value) = (settings.payload.get_u16(), settings.payload.get_u32());
        if id == wanted {
            advertised = Some(value);
        }
    }
    advertised
}

#[tokio::test]
async fn ten_thousand_concurrent_streams_are_advertised() {
    let broker = Broker::start();
    let mut peer = Peer::silent(&broker).await;
    assert!(advertised(&mut peer, raw::MAX_CONCURRENT_STREAMS).await.expect("the limit is said") >= 10_000);
}

#[tokio::test]
async fn windows_that_do_not_throttle_a_publisher_are_advertised() {
    const MIB: u32 = 1024 * 1024;
    let broker = Broker::start();
    let mut peer = Peer::silent(&broker).await;
    let of_stream = advertised(&mut peer, raw::INITIAL_WINDOW_SIZE).await.expect("the window is said");
    assert_eq!(of_stream, 4 * MIB);
    let is_grant = |frame: &raw::Frame| frame.kind == raw::WINDOW_UPDATE && frame.stream == 0;
    let more = peer.until("the connection's window", is_grant).await.payload.get_u32();
    // More than a stream's, and bounded.
    assert!((4 * MIB..=64 * MIB).contains(&more), "{more} bytes");
}

#[tokio::test]
async fn a_thousand_streams_on_four_connections_get_their_first_event_and_a_message() {
    let broker = Broker::start();
    let mut connections = Vec::new();
    let mut calls = Vec::new();
    for _ in 0..4 {
        let connection = Connection::connect(&broker).await;
        for _ in 0..250 {
            calls.push(connection.subscribe(multi(&["t"])).await);
        }
        connections.push(connection);
    }
    for call in &mut calls {
        call.subscription_id().await;
    }
    assert_eq!(broker.client().await.publish("t", "to all").await.subscriptions, 1000);
    for call in &mut calls {
        assert_eq!(payload(&call.delivery().await), "to all");
    }
}

/// Field case: the 101st call on a connection waits in silence. Here the 10,001st is told, and the
/// unary calls go on.
#[tokio::test]
async fn the_subscription_above_the_limit_of_a_connection_is_refused_and_nothing_else_is() {
    let limit = limits::SUBSCRIPTIONS_PER_CONNECTION;
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let mut calls: Vec<Call> = Vec::new();
    for _ in 0..limit {
        calls.push(connection.subscribe(multi(&["rare"])).await);
    }
    for call in &mut calls {
        call.subscription_id().await;
    }
    let mut refused = connection.subscribe(multi(&["rare"])).await;
    assert_status(&refused.status().await, Code::ResourceExhausted, &[&limit.to_string()]);

    let mut member = Peer::connect(&broker).await;
    let id = member.subscribe(1, balanced("g", &["t"])).await;
    connection.publish("t", "published").await;
    let message = member.message(1).await;
    let (status, _) = connection.unary(ACK, &raw::grpc(&ack_by_system_id(&id, &message.system_id))).await;
    assert_eq!(status.code(), Code::Ok, "{status:?}");

    calls.pop();
    broker.stats_when("one has left", |stats| stats.members == limit as u64).await;
    connection.subscribe(multi(&["rare"])).await.subscription_id().await;
    drop((connection, calls, member));
    broker.stats_when("all have left", |stats| stats.members + stats.subscriptions == 0).await;
}
