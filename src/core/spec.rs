use std::time::Duration;

use super::effect::OpenRefusal;
use crate::model::{GroupName, Mode, SubscriptionId, Topic};
use crate::pattern::Pattern;

/// What a subscription does when it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// Refuse the publish.
    Reject,
    /// Drop what has waited longest.
    DropOldest,
    /// Drop what comes.
    DropNewest,
    /// End the subscription and drop what waited.
    Disconnect,
}

impl Overflow {
    /// The default of a mode.
    pub fn default_of(mode: Mode) -> Self {
        if mode.is_group() { Overflow::Reject } else { Overflow::Disconnect }
    }
}

/// The options that the members of a subscription share, in their effective values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOptions {
    /// Messages that may wait, those in flight not counted.
    pub max_pending: u64,
    pub overflow: Overflow,
    /// How long the subscription outlives its last member.
    pub linger: Duration,
    /// How long a member may hold a delivery before it goes to others; zero: for ever.
    pub ack_timeout: Duration,
    /// Attempts before a message is given up; 0: no limit.
    pub max_deliveries: u32,
    /// Where messages go that are given up. The subscription's own patterns do not match it.
    pub dead_letter_topic: Option<Topic>,
}

/// A valid `open`: bounds, patterns and the rules between fields were checked by whoever made it.
#[derive(Debug, Clone)]
pub struct OpenSpec {
    /// The id that the client gave, if any.
    pub subscription_id: Option<SubscriptionId>,
    /// The id that a new subscription gets: the client's, or one that nobody else has.
    pub id_if_new: SubscriptionId,
    pub mode: Mode,
    /// Set exactly in the modes that are groups.
    pub group: Option<GroupName>,
    /// A set, sorted by text.
    pub patterns: Vec<Pattern>,
    pub options: SharedOptions,
    /// This member's; 0 only in MULTI, and means that no acks are asked.
    pub max_in_flight: u32,
    /// This member wants `role` and `draining` events.
    pub control_events: bool,
}

impl OpenSpec {
    /// Whether a later member agrees with what the first one fixed.
    pub(crate) fn agrees_with(
        &self,
        id: &SubscriptionId,
        mode: Mode,
        patterns: &[Pattern],
        options: &SharedOptions,
    ) -> Result<(), OpenRefusal> {
        let differs = [
            ("mode", self.mode != mode),
            ("subscription_id", self.subscription_id.as_ref().is_some_and(|mine| mine != id)),
            ("set of topic_patterns", self.patterns != patterns),
            ("max_pending", self.options.max_pending != options.max_pending),
            ("overflow policy", self.options.overflow != options.overflow),
            ("linger", self.options.linger != options.linger),
            ("ack_timeout", self.options.ack_timeout != options.ack_timeout),
            ("max_deliveries", self.options.max_deliveries != options.max_deliveries),
            ("dead_letter_topic", self.options.dead_letter_topic != options.dead_letter_topic),
        ];
        match differs.into_iter().find(|&(_, differs)| differs) {
            Some((what, _)) => Err(OpenRefusal::Differs { what }),
            None => Ok(()),
        }
    }
}
