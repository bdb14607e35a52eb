//! Peers that speak something else, or nothing: each costs the broker its connection and nothing more.

use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;

use crate::canary::{Canary, serves_newcomers};
use crate::grpc::{Connection, PUBLISH};
use crate::process;
use crate::raw::{PREFACE, grpc};
use crate::support::*;

/// The beginning of a TLS 1.2 handshake record with a ClientHello in it.
const CLIENT_HELLO: &[u8] = &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];

async fn speak(broker: &Broker, words: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(broker.address()).await.expect("the broker accepts");
    stream.write_all(words).await.expect("a socket's buffer has room");
    stream
}

#[tokio::test]
async fn other_protocols_are_hung_up_on() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let sockets = process::open_sockets(&broker);
    let noise: Vec<u8> = (0u32..4096).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let hello = [CLIENT_HELLO, &[7; 194]].concat();
    let wrong_preface = [&PREFACE[..23], b"!"].concat();
    let get = b"GET / HTTP/1.1\r\nHost: broker\r\nUser-Agent: a-probe/1.0\r\n\r\n";
    for words in [&get[..], &hello, &noise, &wrong_preface, &[0; 1024]] {
        let mut stream = speak(&broker, words).await;
        let mut answer = Vec::new();
        // A reset is a hanging up too.
        let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("the broker closes");
        canary.sings().await;
    }
    process::sockets_come_home(&broker, sockets).await;
    serves_newcomers(&broker).await;
}

#[tokio::test]
async fn peers_that_say_nothing_or_half_a_preface_are_in_nobodys_way() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let sockets = process::open_sockets(&broker);
    let mut strangers = Vec::new();
    for round in 0..100 {
        strangers.push(speak(&broker, &PREFACE[..if round % 2 == 0 { 0 } else { 12 }]).await);
    }
    broker.stats_when("all are connected", |stats| stats.connections >= 100).await;
    canary.sings().await;
    serves_newcomers(&broker).await;
    drop(strangers);
    process::sockets_come_home(&broker, sockets).await;
}

#[tokio::test]
async fn what_is_no_grpc_call_is_told_so_on_its_own_call() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let json: &[_] = &[("content-type", "application/json")];
    for (method, headers) in
        [(Method::POST, json), (Method::POST, &[]), (Method::GET, &[]), (Method::GET, json)]
    {
        let mut call = connection.request(method, PUBLISH, headers).await;
        call.finish(b"");
        assert_eq!(call.response().await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    connection.publish("t", "the connection lives").await;
}

#[tokio::test]
async fn unknown_services_and_methods_are_unimplemented() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let body = grpc(&message("t", "x"));
    for path in
        ["/", "/x", "/other.Service/Publish", "/tinybroker.v1.Broker/Nothing", "/tinybroker.v1.Broker/"]
    {
        let (status, _) = connection.unary(path, &body).await;
        assert_eq!(status.code(), Code::Unimplemented, "{path}: {status:?}");
    }
    connection.publish("t", "the connection lives").await;
}
