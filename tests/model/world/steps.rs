//! From what a step says to what happens, in the light of what the twin knows.

use std::time::Duration;

use smallvec::{SmallVec, smallvec};
use tinybroker::core::{Action, Input, OpenSpec, Run, Settle, SettleCall, SettleTarget, SharedOptions};
use tinybroker::model::{
    DeliveryId, GroupName, MemberId, Message, MessageNumber, Mode, SubscriptionId, Ticket, Topic,
};
use tinybroker::pattern::Pattern;

use super::World;
use crate::script::{self, GivenId, Kind, Pick, Settler, Size, Step, Twist};
use crate::twin::{Held, Member, Subscription};

/// Members at a time, so that groups are small and steps meet.
const MEMBERS: usize = 9;

impl World<'_> {
    /// `None` where nobody is there to whom it could happen.
    pub(super) fn input(&mut self, step: &Step) -> Option<Input> {
        Some(match *step {
            Step::Advance { .. } | Step::Burst { .. } => return None,
            Step::Open { place, given, max_in_flight, control_events, twist } => {
                if self.members().len() >= MEMBERS {
                    return None;
                }
                let spec = self.spec(place, given, max_in_flight, control_events, twist);
                Input::Open { member: self.member_id(), spec: Box::new(spec) }
            }
            Step::Leave { member } => Input::Leave { member: self.pick_member(member)?.id },
            Step::Resign { member } => Input::Resign { member: self.pick_member(member)?.id },
            Step::Publish { topic, size, message_id } => {
                let run = smallvec![self.message(topic, size, message_id)];
                Input::Publish { ticket: self.ticket(), run }
            }
            Step::Run { messages, topic, size, is_accept } => {
                let run = self.run(messages, topic, size);
                let ticket = self.ticket();
                if is_accept { Input::Accept { ticket, run } } else { Input::Publish { ticket, run } }
            }
            Step::Accept { topic, size } => {
                let run = smallvec![self.message(topic, size, None)];
                Input::Accept { ticket: self.ticket(), run }
            }
            Step::Reserve { topic, size } => {
                let (ticket, message) = (self.ticket(), self.message(topic, size, None));
                self.reserved.push(ticket);
                Input::Reserve { ticket, message }
            }
            Step::Commit { nth } => Input::Commit { ticket: *pick(&self.reserved, nth)? },
            Step::Abort { nth } => Input::Abort { ticket: *pick(&self.reserved, nth)? },
            Step::Settle { settler: Settler::Stream { member, given }, pick, action } => {
                self.settle(member, given, pick, action)?
            }
            Step::Settle { settler: Settler::Call { subscription }, pick, action } => {
                self.settle_call(subscription, pick, action)
            }
            Step::Credit { member, messages } => take(self.pick_member(member)?, messages.into()),
            Step::Drain => Input::Drain { grace: Duration::from_secs(5) },
        })
    }

    fn settle(&self, member: u8, given: GivenId, what: Pick, action: Action) -> Option<Input> {
        let held = pick(&self.in_flight(), member).map(|(_, held)| held.holder);
        let member = held.or_else(|| Some(self.pick_member(member)?.id))?;
        let subscription_id = match given {
            GivenId::None => None,
            GivenId::Own => self.subscription_of(member),
            GivenId::Other(other) => Some(id_of(usize::from(other))),
        };
        let target = self.target(what, |_, held| held.holder == member);
        Some(match (subscription_id, target, action) {
            (None, SettleTarget::Deliveries { ids, unknown: 0 }, Action::Ack) => Input::Ack { member, ids },
            (subscription_id, target, action) => {
                Input::Settle(Box::new(Settle { member, subscription_id, target, action }))
            }
        })
    }

    fn settle_call(&mut self, subscription: u8, what: Pick, action: Action) -> Input {
        let ticket = self.ticket();
        let held = pick(&self.in_flight(), subscription).map(|(known, _)| known.id.clone());
        let known = held.or_else(|| Some(pick(&self.twin.subscriptions, subscription)?.id.clone()));
        let subscription_id = known.unwrap_or_else(|| id_of(usize::MAX));
        let target = self.target(what, |known, _| known.id == subscription_id);
        Input::SettleCall(Box::new(SettleCall { ticket, subscription_id, target, action }))
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn ticket(&mut self) -> Ticket {
        Ticket { frontend: 0, number: self.next_number() }
    }

    fn member_id(&mut self) -> MemberId {
        MemberId { frontend: 0, number: self.next_number() }
    }

    pub(super) fn message(&mut self, topic: u8, size: Size, message_id: Option<u8>) -> Message {
        let bytes = match size {
            Size::Small => 10,
            Size::Large => 100 * 1024,
            Size::Huge => 300 * 1024,
        };
        let number = MessageNumber::from_u64(self.next_number());
        let message_id = message_id.map(|id| format!("m{id}"));
        let topic = script::TOPICS[usize::from(topic)];
        Message::new(number, topic, message_id.as_deref(), bytes, |_| ())
    }

    fn run(&mut self, messages: u8, topic: u8, size: Size) -> Run {
        let topics = script::TOPICS.len() as u8;
        let rest = (1..messages).map(|nth| ((topic + nth / 2) % topics, Size::Small));
        let all = std::iter::once((topic, size)).chain(rest);
        all.map(|(topic, size)| self.message(topic, size, None)).collect()
    }

    fn spec(
        &mut self,
        place: u8,
        given: GivenId,
        max_in_flight: u16,
        control_events: bool,
        twist: Option<Twist>,
    ) -> OpenSpec {
        let place = usize::from(place) % self.script.places.len();
        let mut kind = self.script.places[place].clone();
        if let Some(twist) = twist {
            twist.apply(&mut kind);
        }
        let is_stream = kind.mode == Mode::Multi;
        let subscription_id = match given {
            GivenId::None => None,
            GivenId::Own => Some(id_of(place)),
            GivenId::Other(other) => Some(id_of(usize::from(other))),
        };
        let made = SubscriptionId::from_number(MessageNumber::from_u64(self.next_number()));
        OpenSpec {
            id_if_new: subscription_id.clone().unwrap_or(made),
            subscription_id,
            mode: kind.mode,
            group: (!is_stream).then(|| text(GroupName::parse(&format!("group-{place}")))),
            patterns: patterns(&kind),
            options: SharedOptions {
                max_pending: kind.max_pending,
                overflow: kind.overflow,
                linger: Duration::from_millis(kind.linger_millis),
                ack_timeout: Duration::from_millis(kind.ack_timeout_millis),
                max_deliveries: kind.max_deliveries,
                dead_letter_topic: kind
                    .dead_letters
                    .map(|nth| Topic::parse(script::DEAD_LETTER_TOPICS[usize::from(nth)]).expect("a topic")),
            },
            max_in_flight: if is_stream { max_in_flight.into() } else { u32::from(max_in_flight.max(1)) },
            control_events,
        }
    }

    pub(super) fn members(&self) -> Vec<&Member> {
        self.twin.subscriptions.iter().flat_map(|s| &s.members).collect()
    }

    fn pick_member(&self, nth: u8) -> Option<&Member> {
        pick(&self.members(), nth).copied()
    }

    fn in_flight(&self) -> Vec<(&Subscription, &Held)> {
        self.twin.subscriptions.iter().flat_map(|s| s.in_flight.iter().map(move |held| (s, held))).collect()
    }

    fn subscription_of(&self, member: MemberId) -> Option<SubscriptionId> {
        let of = |s: &&Subscription| s.members.iter().any(|m| m.id == member);
        self.twin.subscriptions.iter().find(of).map(|s| s.id.clone())
    }

    /// What an ack names; mostly what is in flight where it comes to.
    fn target(&self, what: Pick, is_here: impl Fn(&Subscription, &Held) -> bool) -> SettleTarget {
        let here = self.in_flight().into_iter().filter(|(s, held)| is_here(s, held));
        let own: Vec<DeliveryId> = here.map(|(_, held)| held.item.delivery_id()).collect();
        let any = &self.delivered;
        let some = |ids: SmallVec<[DeliveryId; 1]>| SettleTarget::Deliveries { ids, unknown: 0 };
        match what {
            Pick::InFlight(nth) => some(pick(&own, nth).copied().into_iter().collect()),
            Pick::Several(nth) => {
                let ids = own.iter().skip(usize::from(nth) % 3).chain(pick(any, nth));
                SettleTarget::Deliveries { ids: ids.copied().collect(), unknown: 1 }
            }
            Pick::Delivered(nth) => some(pick(any, nth).copied().into_iter().collect()),
            Pick::NotYet(nth) => {
                let later = |id: &DeliveryId| DeliveryId { delivery: id.delivery + 1, ..*id };
                some(pick(any, nth).map(later).into_iter().collect())
            }
            Pick::MessageId(id) => SettleTarget::Message(format!("m{id}").into()),
            Pick::BrokersMessageId(nth) => {
                let text = pick(any, nth).map_or_else(|| "none".to_owned(), |id| id.message.to_string());
                SettleTarget::Message(text.into())
            }
        }
    }
}

/// A connection takes the next of what it was sent, so many at most.
pub(super) fn take(member: &Member, messages: usize) -> Input {
    let taken = &member.untaken[..member.untaken.len().min(messages)];
    Input::Credit { member: member.id, messages: taken.len() as u32, bytes: taken.iter().sum() }
}

fn patterns(kind: &Kind) -> Vec<Pattern> {
    let texts = script::PATTERNS[usize::from(kind.patterns)];
    texts.iter().map(|text| Pattern::parse(text).expect("a pattern")).collect()
}

fn id_of(place: usize) -> SubscriptionId {
    text(SubscriptionId::parse(&format!("id-{place}")))
}

fn text<T, E: std::fmt::Debug>(parsed: Result<Option<T>, E>) -> T {
    parsed.expect("within bounds").expect("not empty")
}

fn pick<T>(from: &[T], nth: u8) -> Option<&T> {
    from.get(usize::from(nth).checked_rem(from.len())?)
}
