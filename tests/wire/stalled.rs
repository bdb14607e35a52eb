//! A member that takes nothing harms only itself: not its group, not its connection, not the broker.

use std::collections::BTreeSet;

use h2::client::Builder;
use prost::Message as _;
use tinybroker::limits;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::{
    AckRequest, GetStatsResponse, OpenSubscription, Resign, SubscribeCommand, SubscribeEvent,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;

use crate::canary::Canary;
use crate::grpc::{ACK, Connection, PUBLISH, PUBLISH_STREAM, SUBSCRIBE};
use crate::process;
use crate::raw::{self, Peer};
use crate::support::*;

/// A call with its whole body in one frame.
fn unary(stream: u32, path: &str, request: &impl prost::Message) -> Vec<u8> {
    let body = raw::frame(raw::DATA, raw::END_STREAM, stream, &raw::grpc(request));
    [raw::call(stream, path), body].concat()
}

#[tokio::test]
async fn a_stream_without_a_window_keeps_only_its_share_and_gives_it_back() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { max_in_flight: 10, ..balanced("g", &["t"]) };
    let (mut reading, _) = client.subscribe(open.clone()).await;
    let mut stalled = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 0)]).await;
    stalled.write(&raw::open(1, open)).await;
    broker.stats_when("both are members", |stats| stats.members == 2).await;

    client.publish_numbers("t", 1, 100).await;
    let mut taken = BTreeSet::new();
    while taken.len() < 90 {
        taken.insert(reading.take().await);
    }
    let stats = broker.stats_when("the rest is at the stalled one", |stats| stats.in_flight == 10).await;
    assert_eq!(stats.waiting, 0);
    stalled.write(&raw::cancel(1)).await;
    while taken.len() < 100 {
        let message = reading.message().await;
        assert_eq!(message.delivery_attempt, 2);
        taken.insert(payload(&message));
        reading.ack(&message);
    }
    let stats = broker.stats_when("all is settled", |stats| stats.in_flight == 0).await;
    assert_eq!((stats.counters["acked"], stats.members), (100, 1));
}

/// Its response side is not asked for anything while its client takes nothing: it is over all the same.
#[tokio::test]
async fn a_stream_without_a_window_has_left_at_its_deadline() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { linger: ENDLESS, ..balanced("g", &["t"]) };
    drop(client.subscribe(open.clone()).await);
    broker.stats_when("its leaving", |stats| stats.members == 0).await;
    client.publish("t", "1").await;

    let mut stalled = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 0)]).await;
    stalled.write(&[call_for_a_moment(1, SUBSCRIBE), raw::open_data(1, open.clone())].concat()).await;
    let has_left = |stats: &GetStatsResponse| stats.counters["delivered"] == 1 && stats.members == 0;
    let stats = broker.stats_when("it has left with what it held", has_left).await;
    assert_eq!((stats.in_flight, stats.waiting), (0, 1));
    client.subscribe(open).await.0.take_due("1", 2).await;

    stalled.write(&raw::window_update(1, raw::WIDE)).await;
    stalled.until("the stream ends", |frame| frame.ends(1)).await;
    stalled.assert_alive().await;
}

/// A call begins whose deadline comes soon.
fn call_for_a_moment(stream: u32, path: &str) -> Vec<u8> {
    let fields = [raw::call_fields(path), vec![("grpc-timeout", "200m")]].concat();
    raw::frame(raw::HEADERS, raw::END_HEADERS, stream, &raw::header_block(&fields))
}

#[tokio::test]
async fn a_stream_of_publishes_that_reads_no_confirm_ends_at_its_deadline() {
    /// More than go to and fro until then.
    const MOST: usize = 20_000;
    let broker = Broker::start();
    let (mut reading, _) = broker.client().await.subscribe(multi(&["t"])).await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 0)]).await;
    peer.write(&call_for_a_moment(1, PUBLISH_STREAM)).await;
    let frame = raw::data(1, &raw::grpc(&message("t", "x")));
    let mut published = 0;
    loop {
        peer.write(&frame).await;
        match timeout(5 * QUIET, reading.next_message_whenever()).await {
            Ok(message) => drop(message.expect("the reading stream lives")),
            Err(_) => break,
        }
        published += 1;
        assert!(published < MOST, "it is published on and on");
    }
    peer.write(&raw::window_update(1, raw::WIDE)).await;
    peer.until("the stream ends", |frame| frame.ends(1)).await;
    peer.assert_alive().await;
}

#[tokio::test]
async fn calls_on_the_connection_of_a_stalled_stream_are_answered() {
    let broker = Broker::start();
    let (mut reading, _) = broker.client().await.subscribe(multi(&["t"])).await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 0)]).await;
    peer.write(&raw::open(1, multi(&["t"]))).await;
    broker.stats_when("both are members", |stats| stats.members == 2).await;
    for round in 0..50 {
        let stream = 2 * round + 3;
        let publish = unary(stream, PUBLISH, &message("t", &round.to_string()));
        peer.write(&[publish, raw::window_update(stream, 1000)].concat()).await;
        peer.until("the publish is answered", |frame| frame.ends(stream)).await;
        assert_eq!(reading.payload().await, round.to_string());
    }
    // The stream that had to wait has lost nothing.
    peer.write(&raw::window_update(1, raw::WIDE)).await;
    for round in 0..50 {
        assert_eq!(payload(&peer.message(1).await), round.to_string());
    }
}

/// With no connection window left there is no DATA; headers, and so failures, still go out.
#[tokio::test]
async fn a_used_up_connection_window_stops_only_the_data_of_that_connection() {
    const MESSAGES: u32 = 200;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let client = broker.client().await;
    let (mut reading, _) = client.subscribe(multi(&["t"])).await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, raw::WIDE)]).await;
    peer.subscribe(1, multi(&["t"])).await;
    let text = "x".repeat(1000);
    for _ in 0..MESSAGES {
        client.publish("t", &text).await;
        assert_eq!(reading.payload().await, text);
    }
    canary.sings().await;
    let unknown =
        AckRequest { subscription_id: "none".into(), system_id: "none".into(), ..Default::default() };
    peer.write(&unary(3, ACK, &unknown)).await;
    let answer = peer.until("NOT_FOUND is said in headers alone", |frame| frame.ends(3)).await;
    assert_eq!(answer.kind, raw::HEADERS);
    peer.write(&unary(5, PUBLISH, &message("t", "published all the same"))).await;
    assert_eq!(reading.payload().await, "published all the same");

    peer.write(&raw::window_update(0, raw::WIDE)).await;
    for _ in 0..MESSAGES {
        assert_eq!(payload(&peer.message(1).await), text);
    }
    assert_eq!(payload(&peer.message(1).await), "published all the same");
    peer.until("the publish is answered", |frame| frame.ends(5)).await;
}

/// It falls behind for good, and hears so as soon as it reads again.
#[tokio::test]
async fn a_multi_subscriber_that_reads_nothing_is_disconnected() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut narrow = Builder::new();
    narrow.initial_window_size(100);
    let connection = Connection::with(&broker, &mut narrow).await;
    let open = || OpenSubscription { subscription_id: "slow".into(), max_pending: 10, ..multi(&["t"]) };
    let mut call = connection.subscribe(open()).await;
    call.subscription_id().await;
    let text = "x".repeat(1000);
    let mut published = 0;
    while client.publish("t", &text).await.subscriptions == 1 {
        published += 1;
        assert!(published < 10_000, "what one subscriber holds is bounded");
    }
    let stats = broker.stats_when("the subscription has ended", |stats| stats.subscriptions == 0).await;
    assert!(stats.counters["dropped_disconnect"] > 0);
    client.subscribe(open()).await;

    while let Some(bytes) = call.message().await {
        let event = SubscribeEvent::decode(bytes).expect("an event");
        assert!(matches!(event.event, Some(Event::Message(_))), "what was sent before the end still comes");
    }
    assert_status(&call.status().await, Code::ResourceExhausted, &["behind"]);
    broker.stats_when("nothing is held any more", |stats| stats.held_bytes == 0).await;
}

/// Nothing can be written to it, so nothing asks for more: its time is over all the same.
#[tokio::test]
async fn a_deadline_is_kept_where_nothing_can_be_written() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, 10)]).await;
    let fields = [raw::call_fields(SUBSCRIBE), vec![("grpc-timeout", "500m")]].concat();
    let head = raw::frame(raw::HEADERS, raw::END_HEADERS, 1, &raw::header_block(&fields));
    let command = SubscribeCommand { command: Some(Command::Open(balanced("g", &["t"]))) };
    peer.write(&[head, raw::data(1, &raw::grpc(&command))].concat()).await;
    broker.stats_when("it is a member", |stats| stats.members == 1).await;
    client.publish("t", "held").await;
    broker.stats_when("it is no member any more", |stats| stats.members == 0).await;
    peer.write(&raw::window_update(1, raw::WIDE)).await;
    peer.until("the stream ends", |frame| frame.ends(1)).await;
    peer.assert_alive().await;
}

/// Of many streams that have more to say than the connection's window lets through, none takes it all.
#[tokio::test]
async fn a_narrow_connection_window_is_shared_by_its_streams() {
    const STREAMS: u32 = 4;
    let broker = Broker::start();
    let client = broker.client().await;
    let mut peer = Peer::with_settings(&broker, &[(raw::INITIAL_WINDOW_SIZE, raw::WIDE)]).await;
    let streams: Vec<u32> = (0..STREAMS).map(|number| 2 * number + 1).collect();
    for &stream in &streams {
        peer.subscribe(stream, multi(&[&format!("t{stream}")])).await;
    }
    // The first has far more than the window before the others have anything.
    let text = "x".repeat(10_000);
    for &stream in &streams {
        for _ in 0..20 {
            client.publish(&format!("t{stream}"), &text).await;
        }
    }
    for _ in 0..100 {
        peer.write(&raw::window_update(0, 2000)).await;
    }
    for &stream in streams.iter().rev() {
        assert_eq!(payload(&peer.message(stream).await), text);
    }
}

/// Each resign makes events: who sends them and reads none is ended in time.
#[tokio::test]
async fn a_leader_that_resigns_on_and_on_and_reads_nothing_is_ended() {
    const AT_ONCE: usize = 1000;
    let broker = Broker::start();
    let mut narrow = Builder::new();
    narrow.initial_window_size(100);
    let connection = Connection::with(&broker, &mut narrow).await;
    let mut call = connection.subscribe(singleton("s", &["t"])).await;
    call.subscription_id().await;
    let mut sent = 0;
    while broker.stats().await.members > 0 {
        assert!(sent < 50 * limits::UNREAD_EVENTS, "what one stream makes the broker hold is bounded");
        (0..AT_ONCE).for_each(|_| call.command(Command::Resign(Resign {})));
        sent += AT_ONCE;
    }
    let limit = limits::UNREAD_EVENTS.to_string();
    assert_status(&call.status().await, Code::ResourceExhausted, &["not read", &limit]);
    connection.publish("t", "the connection lives").await;
}

/// Its socket is not read at all: what the broker holds for it stays bounded, then it is let go.
#[tokio::test]
async fn a_socket_that_nobody_reads_is_in_nobodys_way() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let client = broker.client().await;
    client.publish("t", "to nobody: the connection is counted below").await;
    let sockets = process::open_sockets(&broker);
    let mut socket = TcpStream::connect(broker.address()).await.expect("the broker accepts");
    let hello = [
        raw::PREFACE,
        &raw::settings(&[(raw::INITIAL_WINDOW_SIZE, raw::WIDE)]),
        &raw::window_update(0, raw::WIDE),
        &raw::open(1, OpenSubscription { max_pending: 100, ..multi(&["t"]) }),
        // Answers pile up as well: they must not be made where they cannot be sent.
        &raw::frame(raw::PING, 0, 0, b"12345678").repeat(1000),
    ];
    socket.write_all(&hello.concat()).await.expect("the broker reads");
    broker.stats_when("it is a member", |stats| stats.members == 2).await;
    let text = "x".repeat(64 * 1024);
    let mut published = 0;
    while client.publish("t", &text).await.subscriptions == 1 {
        published += 1;
        assert!(published < 1000, "what one subscriber holds is bounded");
    }
    canary.sings().await;
    broker.stats_when("it is no member any more", |stats| stats.members == 1).await;
    drop(socket);
    process::sockets_come_home(&broker, sockets).await;
    broker.stats_when("nothing is held any more", |stats| stats.held_bytes == 0).await;
}
