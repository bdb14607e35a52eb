use super::effect::{Delivery, Effect, MemberEvent, Role};
use super::inflight::Chain;
use crate::limits;
use crate::model::MemberId;

const WINDOW_BYTES: i64 = limits::MEMBER_WINDOW_BYTES as i64;

/// One open Subscribe stream attached to a subscription.
#[derive(Debug)]
pub struct Member {
    pub id: MemberId,
    /// Most messages in flight; 0: no acks are asked, what was sent is gone.
    pub max_in_flight: u32,
    pub in_flight: u32,
    /// What the member holds un-acked, oldest first.
    pub held: Chain,
    pub control_events: bool,
    /// BALANCED: it is in the round.
    pub is_in_round: bool,
    /// SINGLETON: its place in the waiting line.
    pub turn: Option<u64>,
    /// The role it was last told.
    pub told_role: Option<Role>,
    /// The input that had the last deliveries for it, and where among the effects these are; `None` where something else
    /// was told since.
    deliveries: Option<(u64, usize)>,
    /// What may still be sent before its connection has taken some of it. The bytes go below zero
    /// by at most one message.
    window_messages: u32,
    window_bytes: i64,
}

impl Member {
    pub fn new(id: MemberId, max_in_flight: u32, control_events: bool) -> Self {
        Member {
            id,
            max_in_flight,
            in_flight: 0,
            held: Chain::default(),
            control_events,
            is_in_round: false,
            turn: None,
            told_role: None,
            deliveries: None,
            window_messages: limits::MEMBER_WINDOW_MESSAGES,
            window_bytes: WINDOW_BYTES,
        }
    }

    /// Tells it of a delivery, together with those that the same input had for it before.
    pub fn tell_delivery(&mut self, delivery: Delivery, input: u64, effects: &mut Vec<Effect>) {
        if let Some((of, place)) = self.deliveries
            && of == input
            && let Some(Effect::Member(_, event)) = effects.get_mut(place)
        {
            return event.append(delivery);
        }
        self.deliveries = Some((input, effects.len()));
        effects.push(Effect::Member(self.id, MemberEvent::Deliver(delivery)));
    }

    /// Tells it of anything else.
    pub fn tell(&mut self, event: MemberEvent, effects: &mut Vec<Effect>) {
        self.deliveries = None;
        effects.push(Effect::Member(self.id, event));
    }

    pub fn asks_acks(&self) -> bool {
        self.max_in_flight > 0
    }

    /// Whether the next message may be sent to it. A message larger than the window passes alone.
    pub fn has_room(&self) -> bool {
        (self.in_flight < self.max_in_flight || !self.asks_acks())
            && self.window_messages > 0
            && self.window_bytes > 0
    }

    pub fn use_window(&mut self, bytes: u64) {
        self.window_messages -= 1;
        self.window_bytes -= bytes as i64;
    }

    /// The connection has taken so much: it may come again.
    pub fn refill_window(&mut self, messages: u32, bytes: u64) {
        self.window_messages =
            self.window_messages.saturating_add(messages).min(limits::MEMBER_WINDOW_MESSAGES);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.window_bytes = self.window_bytes.saturating_add(bytes).min(WINDOW_BYTES);
    }
}
