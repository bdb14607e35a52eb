use crate::core::{EndReason, OpenRefusal, PublishRefusal};
use crate::limits;

/// Why a call fails. `status` says what each becomes on the wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("{field} {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("{what} is {bytes} bytes; limit {limit}")]
    TooLarge { what: &'static str, bytes: usize, limit: usize },
    #[error(
        "the broker's memory for messages is full: {held} bytes of {limit} (--memory-limit); try again later"
    )]
    MemoryFull { held: u64, limit: u64 },
    #[error(transparent)]
    Publish(#[from] PublishRefusal),
    #[error(transparent)]
    Open(#[from] OpenRefusal),
    #[error(transparent)]
    End(#[from] EndReason),
    #[error("no subscription has this subscription_id; it may have ended")]
    NoSubscription,
    #[error("nothing named is in flight: it was settled already, taken back, or never delivered")]
    NotInFlight,
    #[error("this connection has {limit} subscriptions, the limit; open another connection")]
    TooManySubscriptions { limit: usize },
    #[error(
        "the stream has more than {limit} events that it has not read; read them before you resign again"
    )]
    UnreadEvents { limit: usize },
    #[error("the stream sent no open within {} s", limits::OPEN_TIMEOUT.as_secs())]
    OpenTimeout,
    #[error("the call's deadline has passed")]
    Deadline,
    #[error("the broker is shutting down; connect again")]
    ShuttingDown,
    #[error("the call failed inside the broker; this is a bug, please report it")]
    Internal,
    #[error("{reason}")]
    Framing { reason: &'static str },
    #[error("messages compressed with `{encoding}` cannot be read; send them as they are")]
    Compressed { encoding: String },
}

impl Failure {
    pub fn invalid(field: &'static str, reason: impl ToString) -> Self {
        Failure::Invalid { field, reason: reason.to_string() }
    }

    /// Unreadable protobuf is the caller's mistake, and said so.
    pub fn unreadable(reason: impl std::fmt::Display) -> Self {
        Failure::invalid("request", format!("is no readable protobuf: {reason}"))
    }
}
