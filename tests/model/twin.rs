//! The core's naive twin: what the specification promises, in plain vectors and linear scans.
//!
//! It shares the plain data of the core's interface with it and not one line of its logic.

mod members;
mod messages;

use std::collections::BTreeMap;
use std::sync::Arc;

use tinybroker::core::{CoreConfig, Input, OpenSpec, Overflow, Role};
use tinybroker::limits;
use tinybroker::model::{DeliveryId, MemberId, Message, Mode, SubscriptionId, Ticket, Time};

use crate::outcome::{Outcome, Reply, Told};

#[derive(Clone)]
pub struct Item {
    place: u64,
    pub message: Arc<Message>,
    deliveries: u32,
    attempts: u32,
}

impl Item {
    pub fn delivery_id(&self) -> DeliveryId {
        DeliveryId { message: self.message.number, delivery: self.deliveries }
    }

    fn is_called(&self, message_id: &str) -> bool {
        match self.message.message_id.as_deref() {
            Some(own) => own == message_id,
            None => self.message.number.to_string() == message_id,
        }
    }
}

pub struct Member {
    pub id: MemberId,
    max_in_flight: usize,
    control_events: bool,
    told_role: Option<Role>,
    /// Costs of what was sent to it and its connection has not taken yet.
    pub untaken: Vec<u64>,
}

pub struct Subscription {
    serial: u64,
    pub id: SubscriptionId,
    spec: OpenSpec,
    /// Whether its last stream asked for acks.
    asks_acks: bool,
    waiting: Vec<Item>,
    /// In order of delivery.
    pub in_flight: Vec<(MemberId, Item)>,
    /// SINGLETON: in order of succession. The first is active as soon as it was promoted.
    pub members: Vec<Member>,
    active: Option<MemberId>,
    epoch: u64,
    /// BALANCED: members with room, the next to be served first.
    round: Vec<MemberId>,
    lagged: u64,
    ends_at: Option<Time>,
}

impl Subscription {
    fn mode(&self) -> Mode {
        self.spec.mode
    }

    fn member(&mut self, id: MemberId) -> &mut Member {
        self.members.iter_mut().find(|member| member.id == id).expect("is a member")
    }

    fn has_room(&self, member: &Member) -> bool {
        let holds = self.in_flight.iter().filter(|(holder, _)| *holder == member.id).count();
        (member.max_in_flight == 0 || holds < member.max_in_flight)
            && member.untaken.len() < limits::MEMBER_WINDOW_MESSAGES as usize
            && member.untaken.iter().sum::<u64>() < limits::MEMBER_WINDOW_BYTES
    }

    /// Who has lost room leaves the round, who has got room goes to its end.
    fn update_round(&mut self) {
        let roomy = self.members.iter().filter(|member| self.has_room(member)).map(|member| member.id);
        let roomy: Vec<MemberId> = roomy.collect();
        self.round.retain(|id| roomy.contains(id));
        for id in roomy {
            if !self.round.contains(&id) {
                self.round.push(id);
            }
        }
    }

    fn next_receiver(&self) -> Option<MemberId> {
        match self.mode() {
            Mode::Balanced => self.round.first().copied(),
            _ => self.members.first().filter(|member| self.has_room(member)).map(|member| member.id),
        }
    }

    fn take_back(&mut self, leaver: MemberId) {
        let (back, rest) = self.in_flight.drain(..).partition(|(holder, _)| *holder == leaver);
        self.in_flight = rest;
        let back: Vec<(MemberId, Item)> = back;
        self.waiting.extend(back.into_iter().map(|(_, item)| item));
        self.waiting.sort_by_key(|item| item.place);
    }

    fn waiting_bytes(&self) -> u64 {
        self.waiting.iter().map(|item| item.message.cost()).sum()
    }
}

struct Reservation {
    ticket: Ticket,
    message: Arc<Message>,
    serials: Vec<u64>,
}

/// Figures that must agree with those of the core.
#[derive(Debug, PartialEq)]
pub struct Figures {
    pub subscriptions: u64,
    pub members: u64,
    pub standbys: u64,
    pub waiting: u64,
    pub in_flight: u64,
    pub held_bytes: u64,
    pub near_full: bool,
    pub next_deadline: Option<Time>,
    pub counters: BTreeMap<&'static str, u64>,
}

pub struct Twin {
    config: CoreConfig,
    pub subscriptions: Vec<Subscription>,
    reservations: Vec<Reservation>,
    made: u64,
    /// Messages offered to subscriptions: the publish order in each.
    offered: u64,
    epoch: u64,
    draining: bool,
    counters: BTreeMap<&'static str, u64>,
    said: Vec<Outcome>,
}

impl Twin {
    pub fn new(config: CoreConfig) -> Self {
        Twin {
            epoch: config.epoch,
            config,
            subscriptions: Vec::new(),
            reservations: Vec::new(),
            made: 0,
            offered: 0,
            draining: false,
            counters: BTreeMap::new(),
            said: Vec::new(),
        }
    }

    pub fn apply(&mut self, now: Time, input: &Input) -> Vec<Outcome> {
        match input {
            Input::Open { member, spec } => self.open(now, *member, spec),
            Input::Leave { member } => self.leave(now, *member),
            Input::Publish { ticket, message } => self.publish(*ticket, message),
            Input::Accept { ticket, message } => self.accept(*ticket, message),
            Input::Reserve { ticket, message } => self.reserve(*ticket, message),
            Input::Commit { ticket } => self.commit(*ticket),
            Input::Abort { ticket } => self.reservations.retain(|kept| kept.ticket != *ticket),
            Input::Ack { member, subscription_id, target } => {
                self.ack_in_stream(now, *member, subscription_id.as_ref(), target);
            }
            Input::Settle(settle) => self.ack_by_call(settle),
            Input::Credit { member, messages, bytes } => self.credit(*member, *messages, *bytes),
            Input::Resign { member } => self.resign(now, *member),
            Input::Tick => self.expire(now),
            Input::Drain { grace } => self.drain(*grace),
            Input::Stats { ticket } => self.said.push(Outcome::Answer(*ticket, Reply::Stats)),
        }
        std::mem::take(&mut self.said)
    }

    pub fn figures(&self) -> Figures {
        let all = || self.subscriptions.iter();
        let held = |s: &Subscription| {
            s.waiting_bytes() + s.in_flight.iter().map(|(_, item)| item.message.cost()).sum::<u64>()
        };
        Figures {
            subscriptions: all().count() as u64,
            members: all().map(|s| s.members.len() as u64).sum(),
            standbys: all()
                .filter(|s| s.mode() == Mode::Singleton)
                .map(|s| (s.members.len() - usize::from(s.active.is_some())) as u64)
                .sum(),
            waiting: all().map(|s| s.waiting.len() as u64).sum(),
            in_flight: all().map(|s| s.in_flight.len() as u64).sum(),
            held_bytes: all().map(held).sum(),
            near_full: all().any(|s| self.is_near_full(s, held(s))),
            next_deadline: all().filter_map(|s| s.ends_at).min(),
            counters: self.counters.clone(),
        }
    }

    fn is_near_full(&self, subscription: &Subscription, held_bytes: u64) -> bool {
        let (kept, kept_bytes) = self.reserved(subscription);
        let held = (subscription.waiting.len() + subscription.in_flight.len()) as u64;
        let room = subscription.spec.options.max_pending.saturating_sub(held + kept);
        let room_bytes = self.config.max_pending_bytes.saturating_sub(held_bytes + kept_bytes);
        subscription.spec.options.overflow == Overflow::Reject
            && (room < self.config.near_full_messages || room_bytes < self.config.near_full_bytes)
    }

    fn count(&mut self, what: &'static str, by: usize) {
        if by > 0 {
            *self.counters.entry(what).or_default() += by as u64;
        }
    }

    fn tell(&mut self, member: MemberId, told: Told) {
        self.said.push(Outcome::Member(member, told));
    }

    fn by_serial(&mut self, serial: u64) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|s| s.serial == serial)
    }

    fn of_member(&mut self, member: MemberId) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|s| s.members.iter().any(|m| m.id == member))
    }
}
