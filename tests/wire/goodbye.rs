//! The broker's own goodbye: a word for every stream and every connection.

use bytes::Buf;

use crate::raw::{self, Peer};
use crate::support::*;

const NO_ERROR: u32 = 0;

#[tokio::test]
async fn a_drain_ends_every_stream_and_every_connection_with_a_word() {
    let mut broker = Broker::start();
    let mut idle = Peer::connect(&broker).await;
    let mut member = Peer::connect(&broker).await;
    member.subscribe(1, balanced("g", &["t"])).await;
    broker.signal(libc::SIGTERM);
    let (mut has_ended, mut reason) = (false, None);
    while let Some(frame) = member.frame().await {
        // Trailers, and no reset.
        has_ended |= frame.ends(1) && frame.kind == raw::HEADERS;
        if frame.kind == raw::GOAWAY {
            reason = Some((&frame.payload[4..8]).get_u32());
        }
    }
    assert_eq!((has_ended, reason), (true, Some(NO_ERROR)));
    assert_eq!(idle.closed().await, Some(NO_ERROR));
    assert_eq!(broker.wait().code(), Some(0));
}
