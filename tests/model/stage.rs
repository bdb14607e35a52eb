//! A core on a stage: what the told stories are played on.

use std::collections::BTreeMap;
use std::time::Duration;

use smallvec::smallvec;
use tinybroker::core::{
    Action, Answer, Core, CoreConfig, Counter, Effect, GivenUp, Input, Nack, OpenSpec, Overflow, Settle,
    SettleCall, SettleTarget, Settlement, SharedOptions, Stats,
};
use tinybroker::model::{
    DeliveryId, GroupName, MemberId, Message, MessageNumber, Mode, SubscriptionId, Ticket, Time,
};
use tinybroker::pattern::Pattern;

use crate::outcome::{Outcome, Reply, Told};

pub const MAX_PENDING_BYTES: u64 = 1024 * 1024;
pub const NEAR_FULL_MESSAGES: u64 = 4;
pub const FAN_OUT_SLICE: usize = 3;

pub struct Stage {
    pub core: Core,
    pub now: Time,
    numbers: u64,
    applied: u64,
    told: BTreeMap<MemberId, Vec<Told>>,
    dead_letters: Vec<DeadLetter>,
}

/// Number, reason and attempts of a message that was given up.
pub type DeadLetter = (u64, GivenUp, u32);

/// An open with the defaults of its mode and the pattern `*`; a new subscription is called `sub`.
pub fn open(mode: Mode) -> OpenSpec {
    OpenSpec {
        subscription_id: None,
        id_if_new: id("sub"),
        mode,
        group: mode.is_group().then(|| GroupName::parse("group").expect("short").expect("not empty")),
        patterns: vec![Pattern::parse("*").expect("a pattern")],
        options: SharedOptions {
            max_pending: 10_000,
            overflow: Overflow::default_of(mode),
            linger: Duration::ZERO,
            ack_timeout: Duration::ZERO,
            max_deliveries: 0,
            dead_letter_topic: None,
        },
        max_in_flight: u32::from(mode.is_group()),
        control_events: false,
    }
}

pub fn id(text: &str) -> SubscriptionId {
    SubscriptionId::parse(text).expect("short").expect("not empty")
}

/// Delivery `delivery` of the message with this number.
pub fn delivery(message: u64, delivery: u32) -> DeliveryId {
    DeliveryId { message: MessageNumber::from_u64(message), delivery }
}

pub fn by_system_id(ids: &[DeliveryId]) -> SettleTarget {
    SettleTarget::Deliveries { ids: ids.into(), unknown: 0 }
}

impl Stage {
    pub fn new() -> Self {
        let config = CoreConfig {
            epoch: 100,
            max_pending_bytes: MAX_PENDING_BYTES,
            near_full_messages: NEAR_FULL_MESSAGES,
            near_full_bytes: MAX_PENDING_BYTES / 2,
            fan_out_slice: FAN_OUT_SLICE,
        };
        Stage {
            core: Core::new(config),
            now: Time::default(),
            numbers: 0,
            applied: 0,
            told: BTreeMap::new(),
            dead_letters: Vec::new(),
        }
    }

    /// Applies an input; the invariants are checked after each, where much is held after some. Returns the answer, if there is one.
    pub fn apply(&mut self, input: Input) -> Option<Reply> {
        let effects = self.effects_of(input);
        self.hear(effects)
    }

    fn effects_of(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.core.apply(self.now, input, &mut effects);
        self.applied += 1;
        if self.core.in_flight() < 100 || self.applied.is_multiple_of(100) {
            self.core.check();
        }
        effects
    }

    fn hear(&mut self, effects: Vec<Effect>) -> Option<Reply> {
        let mut reply = None;
        for outcome in effects.into_iter().flat_map(Outcome::all_of) {
            match outcome {
                Outcome::Member(member, told) => self.told.entry(member).or_default().push(told),
                Outcome::Answer(_, answer) => reply = Some(answer),
                Outcome::DeadLetter { message, reason, attempts, .. } => {
                    self.dead_letters.push((message.as_u64(), reason, attempts));
                }
                Outcome::Created(_) | Outcome::Ended(_) => {}
            }
        }
        reply
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn ticket(&mut self) -> Ticket {
        Ticket { frontend: 0, number: self.next_number() }
    }

    pub fn join(&mut self, spec: &OpenSpec) -> MemberId {
        let member = MemberId { frontend: 0, number: self.next_number() };
        self.apply(Input::Open { member, spec: Box::new(spec.clone()) });
        member
    }

    pub fn leave(&mut self, member: MemberId) {
        self.apply(Input::Leave { member });
    }

    pub fn resign(&mut self, member: MemberId) {
        self.apply(Input::Resign { member });
    }

    /// A message with its number, so that stories can name their messages.
    pub fn message(number: u64, bytes: usize, message_id: Option<&str>) -> Message {
        Message::new(MessageNumber::from_u64(number), "topic", message_id, bytes, |_| ())
    }

    pub fn publish(&mut self, number: u64) -> Reply {
        self.publish_message(Self::message(number, 10, None))
    }

    pub fn publish_all(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            assert_eq!(self.publish(number), Reply::Published(1));
        }
    }

    pub fn publish_message(&mut self, message: Message) -> Reply {
        let ticket = self.ticket();
        self.apply(Input::Publish { ticket, run: smallvec![message] }).expect("a publish is answered")
    }

    /// This shard's part of a publish over several shards that none may refuse.
    pub fn accept(&mut self, number: u64) -> Reply {
        let (ticket, message) = (self.ticket(), Self::message(number, 10, None));
        self.apply(Input::Accept { ticket, run: smallvec![message] }).expect("an accept is answered")
    }

    /// Keeps room for a message; the ticket is for `Commit` or `Abort`.
    pub fn reserve(&mut self, message: Message) -> (Ticket, Reply) {
        let ticket = self.ticket();
        (ticket, self.apply(Input::Reserve { ticket, message }).expect("a reserve is answered"))
    }

    /// In the member's own stream.
    pub fn settle(&mut self, member: MemberId, target: SettleTarget, action: Action) {
        self.apply(Input::Settle(Box::new(Settle { member, subscription_id: None, target, action })));
    }

    pub fn ack(&mut self, member: MemberId, target: SettleTarget) {
        self.settle(member, target, Action::Ack);
    }

    pub fn nack(&mut self, member: MemberId, ids: &[DeliveryId], nack: Nack) {
        self.settle(member, by_system_id(ids), Action::Nack(nack));
    }

    pub fn settle_by_call(&mut self, subscription: &str, target: SettleTarget, action: Action) -> Settlement {
        let call = SettleCall { ticket: self.ticket(), subscription_id: id(subscription), target, action };
        match self.apply(Input::SettleCall(Box::new(call))) {
            Some(Reply::Settled(settlement)) => settlement,
            other => panic!("a call is answered, not {other:?}"),
        }
    }

    pub fn ack_by_call(&mut self, target: SettleTarget) -> Settlement {
        self.settle_by_call("sub", target, Action::Ack)
    }

    pub fn nack_by_call(&mut self, target: SettleTarget, nack: Nack) -> Settlement {
        self.settle_by_call("sub", target, Action::Nack(nack))
    }

    /// Zero: as long as the subscription's ack_timeout.
    pub fn extend_by_call(&mut self, target: SettleTarget, ack_timeout: Duration) -> Settlement {
        self.settle_by_call("sub", target, Action::Extend { ack_timeout })
    }

    pub fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.apply(Input::Tick);
    }

    /// What a member was told since it was last asked.
    pub fn told(&mut self, member: MemberId) -> Vec<Told> {
        self.told.remove(&member).unwrap_or_default()
    }

    /// The deliveries to a member since it was last asked.
    pub fn deliveries(&mut self, member: MemberId) -> Vec<DeliveryId> {
        let told = self.told(member).into_iter();
        told.filter_map(|told| if let Told::Deliver { id, .. } = told { Some(id) } else { None }).collect()
    }

    /// The numbers of the messages that were delivered to a member since it was last asked.
    pub fn received(&mut self, member: MemberId) -> Vec<u64> {
        self.deliveries(member).into_iter().map(|id| id.message.as_u64()).collect()
    }

    /// The member that got the next message, and acks it at once.
    pub fn serve_one(&mut self, members: &[MemberId]) -> MemberId {
        let mut served = Vec::new();
        for &member in members {
            served.extend(self.deliveries(member).into_iter().map(|id| (member, id)));
        }
        let [(member, id)] = served[..] else { panic!("one delivery, not {served:?}") };
        self.ack(member, by_system_id(&[id]));
        member
    }

    /// The dead letters since it was last asked.
    pub fn dead_letters(&mut self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.dead_letters)
    }

    pub fn stats(&mut self) -> Stats {
        let input = Input::Stats { ticket: self.ticket() };
        let mut effects = self.effects_of(input);
        let Some(Effect::Answer(_, Answer::Stats(stats))) = effects.pop() else {
            panic!("stats are answered")
        };
        self.hear(effects);
        *stats
    }

    pub fn counted(&mut self, counter: Counter) -> u64 {
        self.stats().counters.get(counter)
    }
}
