//! The core's naive twin: what the specification promises, in plain vectors and linear scans.
//!
//! It shares the plain data of the core's interface with it and not one line of its logic.

mod members;
mod messages;
mod settling;
mod subscription;
mod time;

use std::collections::BTreeMap;

use tinybroker::core::{Action, CoreConfig, Input, Overflow, Settle, SettleTarget};
use tinybroker::model::{MemberId, Message, Mode, Ticket, Time};

use crate::outcome::{Outcome, Reply, Told};
use subscription::Item;
pub use subscription::{Held, Member, Subscription};

struct Reservation {
    ticket: Ticket,
    message: Message,
    serials: Vec<u64>,
}

/// Figures that must agree with those of the core.
#[derive(Debug, PartialEq)]
pub struct Figures {
    pub subscriptions: u64,
    pub members: u64,
    pub standbys: u64,
    pub waiting: u64,
    pub parked: u64,
    pub in_flight: u64,
    pub held_bytes: u64,
    pub near_full: bool,
    pub next_deadline: Option<Time>,
    pub counters: BTreeMap<&'static str, u64>,
}

pub struct Twin {
    config: CoreConfig,
    now: Time,
    pub subscriptions: Vec<Subscription>,
    reservations: Vec<Reservation>,
    made: u64,
    /// Messages offered to subscriptions: the publish order in each.
    offered: u64,
    epoch: u64,
    draining: bool,
    /// Serial numbers of subscriptions that were left for the next tick.
    unserved: Vec<u64>,
    /// Places that ended subscriptions have left, the one to be taken next at the end.
    free: Vec<usize>,
    counters: BTreeMap<&'static str, u64>,
    said: Vec<Outcome>,
}

impl Twin {
    pub fn new(config: CoreConfig) -> Self {
        Twin {
            epoch: config.epoch,
            config,
            now: Time::default(),
            subscriptions: Vec::new(),
            reservations: Vec::new(),
            made: 0,
            offered: 0,
            draining: false,
            unserved: Vec::new(),
            free: Vec::new(),
            counters: BTreeMap::new(),
            said: Vec::new(),
        }
    }

    pub fn apply(&mut self, now: Time, input: &Input) -> Vec<Outcome> {
        self.now = now;
        self.expire();
        match input {
            Input::Open { member, spec } => self.open(*member, spec),
            Input::Leave { member } => self.leave_as_told(*member),
            Input::Publish { ticket, run } => self.publish(*ticket, run),
            Input::Accept { ticket, run } => self.accept(*ticket, run),
            Input::Reserve { ticket, message } => self.reserve(*ticket, message),
            Input::Commit { ticket } => self.commit(*ticket),
            Input::Abort { ticket } => self.reservations.retain(|kept| kept.ticket != *ticket),
            Input::Ack { member, ids } => {
                let target = SettleTarget::Deliveries { ids: ids.clone(), unknown: 0 };
                self.settle_in_stream(*member, None, &target, Action::Ack);
            }
            Input::Settle(command) => {
                let Settle { member, subscription_id, target, action } = &**command;
                self.settle_in_stream(*member, subscription_id.as_ref(), target, *action);
            }
            Input::SettleCall(call) => self.settle_by_call(call),
            Input::Credit { member, messages, bytes } => self.credit(*member, *messages, *bytes),
            Input::Resign { member } => self.resign(*member),
            Input::Tick => self.serve_slice(),
            Input::Drain { grace } => self.drain(*grace),
            Input::Stats { ticket } => self.said.push(Outcome::Answer(*ticket, Reply::Stats)),
        }
        std::mem::take(&mut self.said)
    }

    pub fn figures(&self) -> Figures {
        let all = || self.subscriptions.iter();
        let held = |s: &Subscription| s.waiting_bytes() + s.in_flight_bytes();
        Figures {
            subscriptions: all().count() as u64,
            members: all().map(|s| s.members.len() as u64).sum(),
            standbys: all()
                .filter(|s| s.mode() == Mode::Singleton)
                .map(|s| (s.members.len() - usize::from(s.active.is_some())) as u64)
                .sum(),
            waiting: all().map(|s| s.waiting.len() as u64).sum(),
            parked: all().flat_map(|s| &s.waiting).filter(|item| item.parked_until.is_some()).count() as u64,
            in_flight: all().map(|s| s.in_flight.len() as u64).sum(),
            held_bytes: all().map(held).sum(),
            near_full: all().any(|s| self.is_near_full(s, held(s))),
            next_deadline: all().flat_map(Subscription::dues).chain(self.at_once()).min(),
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
