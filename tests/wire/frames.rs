//! HTTP/2 rules broken one by one: what the protocol lets live lives, and the broker in any case.

use crate::canary::{Canary, serves_newcomers};
use crate::grpc::{PUBLISH, SUBSCRIBE};
use crate::process;
use crate::raw::{self, Peer, data, frame, window_update};
use crate::support::*;

/// What the protocol (RFC 9113) lets the broker do about it at most.
#[derive(Clone, Copy, PartialEq)]
enum Worst {
    /// Nothing: it is allowed.
    Nothing,
    /// End the one stream.
    Stream,
    /// End the connection.
    Connection,
}
use Worst::*;

struct Rule {
    what: &'static str,
    frames: Vec<u8>,
    worst: Worst,
}

fn rule(what: &'static str, worst: Worst, frames: &[&[u8]]) -> Rule {
    Rule { what, frames: frames.concat(), worst }
}

/// Each begins with stream 1 a Subscribe stream that works; 3 is the next.
fn rules() -> Vec<Rule> {
    let call = raw::call(3, SUBSCRIBE);
    let block = raw::header_block(&raw::call_fields(SUBSCRIBE));
    let fields = |fields: &[(&str, &str)]| {
        let block = raw::header_block(&[&raw::call_fields(PUBLISH)[..], fields].concat());
        frame(raw::HEADERS, raw::END_HEADERS, 3, &block)
    };
    let end = frame(raw::DATA, raw::END_STREAM, 3, &[]);
    let reset = raw::cancel(3);
    vec![
        rule("a frame of an unknown kind", Nothing, &[&frame(99, 0, 0, b"?"), &frame(99, 0xff, 1, b"?")]),
        rule("an unknown setting", Nothing, &[&raw::settings(&[(0xeeee, 1)])]),
        rule("PRIORITY", Nothing, &[&frame(2, 0, 3, &[0, 0, 0, 1, 7])]),
        rule("empty DATA", Nothing, &[&data(1, &[]).repeat(50)]),
        rule("padded DATA", Nothing, &[&frame(raw::DATA, raw::PADDED, 1, &[3, 0, 0, 0])]),
        rule("RST_STREAM before DATA", Nothing, &[&call, &reset]),
        rule("RST_STREAM twice", Nothing, &[&call, &reset, &reset]),
        rule("WINDOW_UPDATE on a stream that has ended", Nothing, &[&call, &reset, &window_update(3, 1)]),
        rule("a stream that depends on itself", Stream, &[&frame(2, 0, 3, &[0, 0, 0, 3, 7])]),
        rule("a stream window that overflows", Stream, &[&call, &window_update(3, i32::MAX as u32)]),
        rule("more content than announced", Stream, &[&fields(&[("content-length", "1")]), &data(3, b"12")]),
        rule("less content than announced", Stream, &[&fields(&[("content-length", "9")]), &end]),
        rule("a header of the connection", Stream, &[&fields(&[("connection", "close")])]),
        rule("a pseudo header after others", Stream, &[&fields(&[(":path", "/")])]),
        // The next three may be stream errors; an endpoint may take any for one of the connection.
        rule("a header name in capitals", Connection, &[&fields(&[("Capital", "x")])]),
        rule("an unknown pseudo header", Connection, &[&fields(&[(":unknown", "x")])]),
        rule("WINDOW_UPDATE of 0 on a stream", Connection, &[&call, &window_update(3, 0)]),
        rule("WINDOW_UPDATE of 0 on the connection", Connection, &[&window_update(0, 0)]),
        rule("a connection window that overflows", Connection, &[&window_update(0, i32::MAX as u32)]),
        rule("DATA on stream 0", Connection, &[&data(0, b"x")]),
        rule("DATA after END_STREAM", Connection, &[&call, &end, &data(3, b"x")]),
        rule("DATA on a stream that was never begun", Connection, &[&data(9, b"x")]),
        rule("RST_STREAM on a stream that was never begun", Connection, &[&raw::cancel(9)]),
        rule("RST_STREAM on stream 0", Connection, &[&raw::cancel(0)]),
        rule("HEADERS on stream 0", Connection, &[&raw::call(0, SUBSCRIBE)]),
        rule("HEADERS on a stream of the server's", Connection, &[&raw::call(2, SUBSCRIBE)]),
        rule("an older stream's number", Connection, &[&raw::call(5, SUBSCRIBE), &raw::call(3, SUBSCRIBE)]),
        rule(
            "CONTINUATION of nothing",
            Connection,
            &[&frame(raw::CONTINUATION, raw::END_HEADERS, 1, &block)],
        ),
        rule("a frame amid headers", Connection, &[&frame(raw::HEADERS, 0, 3, &block), &data(1, b"x")]),
        rule(
            "headers that are no HPACK",
            Connection,
            &[&frame(raw::HEADERS, raw::END_HEADERS, 3, &[0xff; 40])],
        ),
        rule(
            "PUSH_PROMISE from a client",
            Connection,
            &[&frame(raw::PUSH_PROMISE, raw::END_HEADERS, 1, &block)],
        ),
        rule("padding longer than its frame", Connection, &[&frame(raw::DATA, raw::PADDED, 1, &[9, 0])]),
        rule("SETTINGS of 5 bytes", Connection, &[&frame(raw::SETTINGS, 0, 0, &[0; 5])]),
        rule("SETTINGS on a stream", Connection, &[&frame(raw::SETTINGS, 0, 1, &[])]),
        rule(
            "an initial window over 2^31",
            Connection,
            &[&raw::settings(&[(raw::INITIAL_WINDOW_SIZE, u32::MAX)])],
        ),
        rule("PING of 7 bytes", Connection, &[&frame(raw::PING, 0, 0, &[0; 7])]),
        rule("PING on a stream", Connection, &[&frame(raw::PING, 0, 1, &[0; 8])]),
        rule("a frame over the maximal size", Connection, &[&data(1, &[0; 16_385])]),
        rule("GOAWAY, then silence", Connection, &[&frame(raw::GOAWAY, 0, 0, &[0; 8])]),
    ]
}

#[tokio::test]
async fn each_broken_rule_costs_no_more_than_the_protocol_says() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let sockets = process::open_sockets(&broker);
    for rule in rules() {
        println!("{}", rule.what);
        let mut peer = Peer::connect(&broker).await;
        peer.subscribe(1, multi(&["t"])).await;
        // The connection may be closed in the middle of it.
        let written = peer.try_write(&rule.frames).await;
        match rule.worst {
            Nothing => peer.assert_alive().await,
            Stream => {
                peer.until("the stream ends", |frame| frame.ends(3)).await;
                peer.assert_alive().await;
            }
            Connection if written.is_ok() => answered_or_closed(&mut peer).await,
            Connection => {}
        }
        if rule.worst != Connection {
            broker.client().await.publish("t", "the neighbour lives").await;
            assert_eq!(payload(&peer.message(1).await), "the neighbour lives");
        }
        drop(peer);
        canary.sings().await;
    }
    let stats = broker.stats_when("all have left", |stats| stats.members == 1).await;
    assert_eq!((stats.subscriptions, stats.counters["handler_panics"]), (1, 0));
    process::sockets_come_home(&broker, sockets).await;
    serves_newcomers(&broker).await;
}

/// A PING after the offence is answered, or the connection is closed: it does not hang.
async fn answered_or_closed(peer: &mut Peer) {
    let _ = peer.try_write(&frame(raw::PING, 0, 0, b"and now?")).await;
    while let Some(frame) = peer.frame().await {
        if frame.kind == raw::GOAWAY || frame.kind == raw::PING {
            return;
        }
    }
}

/// The client reads a little and says much: what it must be answered does not pile up.
#[tokio::test]
async fn settings_without_end_are_answered_one_by_one() {
    const ROUNDS: usize = 5000;
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::connect(&broker).await;
    peer.write(&raw::settings(&[(raw::INITIAL_WINDOW_SIZE, raw::WIDE)]).repeat(ROUNDS)).await;
    for _ in 0..ROUNDS {
        peer.until("SETTINGS are confirmed", |frame| frame.kind == raw::SETTINGS && frame.flags == raw::ACK)
            .await;
    }
    peer.assert_alive().await;
    canary.sings().await;
}
