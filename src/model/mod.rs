//! Plain data that every layer speaks: ids as distinct types, topic, message, mode, time as a value.

mod ids;
mod message;
mod time;
mod topic;

pub use ids::{
    DeliveryId, GroupName, IdError, MemberId, MessageNumber, NumberSource, SubscriptionId, Ticket,
    check_message_id,
};
pub use message::Message;
pub use time::Time;
pub use topic::{Topic, TopicError};

/// How the messages of a subscription are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Every subscription gets every matching message.
    Multi,
    /// A work queue: each message goes to one member of the group.
    Balanced,
    /// Leader election: one member is active, the others stand by.
    Singleton,
}

impl Mode {
    /// The name in the wire contract, for error texts.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Multi => "MULTI",
            Mode::Balanced => "BALANCED",
            Mode::Singleton => "SINGLETON",
        }
    }

    /// Whether members share a consumer group.
    pub fn is_group(self) -> bool {
        self != Mode::Multi
    }
}
