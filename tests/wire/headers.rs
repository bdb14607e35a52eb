//! Header lists up to the limit and over it.

use http::Method;
use tonic::Code;

use crate::canary::Canary;
use crate::grpc::{Connection, PUBLISH, SUBSCRIBE};
use crate::process;
use crate::raw::{self, Peer};
use crate::support::*;

#[tokio::test]
async fn metadata_within_the_limit_is_accepted() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let text = "x".repeat(15 * 1024);
    let headers = &[("content-type", "application/grpc"), ("padding", &text)];
    let mut call = connection.request(Method::POST, PUBLISH, headers).await;
    call.finish(&raw::grpc(&message("t", "x")));
    assert_eq!(call.status().await.code(), Code::Ok);
}

#[tokio::test]
async fn metadata_over_the_limit_is_refused_on_its_own_call() {
    let broker = Broker::start();
    let connection = Connection::connect(&broker).await;
    let mut neighbour = connection.subscribe(multi(&["t"])).await;
    neighbour.subscription_id().await;
    for kilobytes in [17, 32, 60] {
        let text = "x".repeat(kilobytes * 1024);
        let headers = &[("content-type", "application/grpc"), ("padding", &text)];
        let mut call = connection.request(Method::POST, PUBLISH, headers).await;
        assert_eq!(call.response().await.0, http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        connection.publish("t", "the connection lives").await;
        assert_eq!(payload(&neighbour.delivery().await), "the connection lives");
    }
}

/// Begins a header block, and sends pieces of it that never end. Returns whether the broker hung up.
async fn flood(broker: &Broker, block: &[u8], piece: &[u8]) -> bool {
    let mut peer = Peer::connect(broker).await;
    let begin = raw::frame(raw::HEADERS, 0, 1, block);
    let pieces = raw::frame(raw::CONTINUATION, 0, 1, piece).repeat(50_000);
    let hung_up = peer.try_write(&[begin, pieces].concat()).await.is_err();
    // A reset may have swallowed the GOAWAY.
    hung_up || {
        peer.closed().await;
        true
    }
}

#[tokio::test]
async fn a_header_block_without_end_costs_the_connection_and_nobody_else() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let sockets = process::open_sockets(&broker);
    let memory = process::memory(&broker);
    let block = raw::header_block(&raw::call_fields(SUBSCRIBE));
    let empty_field = raw::header_block(&[("x", "")]);
    for piece in [&[][..], &empty_field, &empty_field.repeat(100)] {
        assert!(flood(&broker, &block, piece).await);
        canary.sings().await;
    }
    process::sockets_come_home(&broker, sockets).await;
    let growth = process::memory(&broker).saturating_sub(memory);
    assert!(growth < 16 << 20, "endless headers are not kept, here {growth} bytes");
}

/// Thousands of fields in one block: over the limit by their number, though each is empty.
#[tokio::test]
async fn thousands_of_empty_fields_are_refused_and_disturb_nobody() {
    let broker = Broker::start();
    let canary = Canary::new(&broker).await;
    let mut peer = Peer::connect(&broker).await;
    let fields = [raw::call_fields(SUBSCRIBE), vec![("x", ""); 8000]].concat();
    let block = raw::header_block(&fields);
    let (first, rest) = block.split_at(16_000);
    let headers = raw::frame(raw::HEADERS, 0, 1, first);
    let end = raw::frame(raw::CONTINUATION, raw::END_HEADERS, 1, &rest[..rest.len().min(16_384)]);
    let _ = peer.try_write(&[headers, end].concat()).await;
    while let Some(frame) = peer.frame().await {
        if frame.ends(1) || frame.kind == raw::GOAWAY {
            break;
        }
    }
    assert_eq!(broker.stats().await.members, 1);
    canary.sings().await;
}
