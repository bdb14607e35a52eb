//! A gRPC client that costs little, so that the broker is what is measured.
//!
//! It speaks gRPC over the `h2` crate directly: a request is bytes that were encoded once and are
//! patched, a delivery is read in place, and everything that came in one read is handled in one turn.
//! All of a connection lives on the thread that opened it.

mod connection;
mod frame;
mod stream;
mod views;

use std::io;

pub use connection::{Connection, Windows};
pub use frame::{frame, frame_into};
pub use stream::{Receiver, Sender};
pub use views::{Ack, AckCommand, Acked, BatchConfirmed, Confirmed, Delivery, Event, EventKind};

/// Paths of the calls that the load test makes.
pub mod rpc {
    pub const PUBLISH: &str = "/tinybroker.v1.Broker/Publish";
    pub const PUBLISH_STREAM: &str = "/tinybroker.v1.Broker/PublishStream";
    pub const PUBLISH_BATCH: &str = "/tinybroker.v1.Broker/PublishBatch";
    pub const SUBSCRIBE: &str = "/tinybroker.v1.Broker/Subscribe";
    pub const ACK: &str = "/tinybroker.v1.Broker/Ack";
    pub const SERVER_INFO: &str = "/tinybroker.v1.Admin/GetServerInfo";
    pub const STATS: &str = "/tinybroker.v1.Admin/GetStats";
}

/// Why a call did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The broker answered with a status of its own.
    #[error("{} ({code}): {message}", code_name(*code))]
    Status { code: i32, message: String },
    /// The connection ended, or HTTP/2 was broken on it.
    #[error("HTTP/2: {0}")]
    Http2(#[from] h2::Error),
    #[error("no connection to {address}: {source}")]
    Connect { address: String, source: io::Error },
    /// What came is not what the contract says.
    #[error("the broker answered with something else than gRPC: {0}")]
    Protocol(String),
    #[error("a message that does not decode: {0}")]
    Decode(#[from] prost::DecodeError),
}

/// Codes of gRPC.
const NOT_FOUND: i32 = 5;
const RESOURCE_EXHAUSTED: i32 = 8;

impl CallError {
    /// Whether the broker said that it has no room: the call was done nowhere.
    pub fn is_refusal(&self) -> bool {
        matches!(self, CallError::Status { code: RESOURCE_EXHAUSTED, .. })
    }

    /// Whether the broker knows nothing of what was named.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CallError::Status { code: NOT_FOUND, .. })
    }
}

fn code_name(code: i32) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    usize::try_from(code).ok().and_then(|code| NAMES.get(code)).unwrap_or(&"UNKNOWN")
}
