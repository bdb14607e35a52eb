//! Signs of life: asked for, given, and missed. And the options of the socket beneath.

use socket2::Socket;
use tinybroker::limits;
use tokio::net::TcpStream;

use crate::canary::Canary;
use crate::grpc::Connection;
use crate::process;
use crate::raw::{self, Peer};
use crate::support::*;

#[tokio::test]
async fn pings_and_settings_are_answered() {
    let broker = Broker::start();
    let mut peer = Peer::connect(&broker).await;
    peer.assert_alive().await;
    peer.write(&raw::settings(&[(raw::INITIAL_WINDOW_SIZE, 1000)])).await;
    peer.until("SETTINGS are confirmed", |frame| frame.kind == raw::SETTINGS && frame.flags == raw::ACK)
        .await;
}

#[tokio::test]
async fn accepted_sockets_have_no_delay_and_notice_a_dead_peer() {
    let broker = Broker::start();
    let client = TcpStream::connect(broker.address()).await.expect("the broker accepts");
    broker.stats_when("both are connected", |stats| stats.connections >= 1).await;
    let address = client.local_addr().expect("a bound socket");
    let is_set = |socket: &Socket| socket.tcp_nodelay().expect("an option of every socket");
    let deadline = std::time::Instant::now() + LIMIT;
    let socket = loop {
        match process::socket_of(&broker, address) {
            Some(socket) if is_set(&socket) => break socket,
            _ => assert!(std::time::Instant::now() < deadline, "TCP_NODELAY is never set"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert_eq!(socket.tcp_user_timeout().expect("an option of every socket"), Some(limits::TCP_USER_TIMEOUT));
}

/// Slow (half a minute), because the spans are the broker's own, which no option shortens: three peers
/// wait for them side by side. The module's name puts it first.
#[tokio::test]
async fn signs_of_life_are_asked_for_and_their_lack_ends_a_membership() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    tokio::join!(answers(&broker), is_silent(&broker), never_opens(&broker));
    canary.sings().await;
    assert_eq!(broker.stats().await.counters["handler_panics"], 0);
}

/// An idle peer that answers the broker's PINGs stays: one interval and one timeout, twice asked.
async fn answers(broker: &Broker) {
    let mut peer = Peer::connect(broker).await;
    peer.subscribe(1, balanced("answers", &["answers"])).await;
    for _ in 0..2 {
        let ping = peer.until("a PING", |frame| frame.kind == raw::PING && frame.flags == 0).await;
        peer.write(&raw::frame(raw::PING, raw::ACK, 0, &ping.payload)).await;
    }
    broker.client().await.publish("answers", "still here").await;
    assert_eq!(payload(&peer.message(1).await), "still here");
}

/// A peer that acknowledges no PING holds a message until it is given up, then others get it.
async fn is_silent(broker: &Broker) {
    let client = broker.client().await;
    let mut peer = Peer::connect(broker).await;
    peer.subscribe(1, balanced("silent", &["silent"])).await;
    client.publish("silent", "held").await;
    peer.message(1).await;
    let (mut other, _) = client.subscribe(balanced("silent", &["silent"])).await;
    peer.until("a PING", |frame| frame.kind == raw::PING && frame.flags == 0).await;
    let message = other.message().await;
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("held", 2));
    peer.closed().await;
}

/// A stream that has said nothing is told so in the end.
async fn never_opens(broker: &Broker) {
    let connection = Connection::connect(broker).await;
    let mut call = connection.call(crate::grpc::SUBSCRIBE).await;
    call.response().await;
    tokio::time::sleep(limits::OPEN_TIMEOUT - LIMIT / 2).await;
    assert_status(&call.status().await, tonic::Code::DeadlineExceeded, &["open"]);
}
