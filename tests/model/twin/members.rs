//! Who joins, leaves, resigns, and what the members are told of it.

use std::time::Duration;

use tinybroker::core::{EndReason, OpenSpec, Role};
use tinybroker::model::{MemberId, Mode};

use super::{Member, Subscription, Twin};
use crate::outcome::{Outcome, Told};

impl Twin {
    pub(super) fn open(&mut self, id: MemberId, spec: &OpenSpec) {
        let serial = match self.find_or_create(spec) {
            Ok(serial) => serial,
            Err(refusal) => return self.tell(id, refusal),
        };
        let subscription = self.by_serial(serial).expect("just found");
        subscription.ends_at = None;
        subscription.asks_acks = spec.mode != Mode::Multi || spec.max_in_flight > 0;
        subscription.members.push(Member {
            id,
            max_in_flight: spec.max_in_flight as usize,
            control_events: spec.control_events,
            told_role: None,
            untaken: Vec::new(),
        });
        let name = subscription.id.clone();
        self.tell(id, Told::Attached);
        if spec.mode != Mode::Singleton {
            self.tell(id, Told::Started(name));
        }
        self.after_membership(serial);
    }

    fn find_or_create(&mut self, spec: &OpenSpec) -> Result<u64, Told> {
        let same_group = |s: &&Subscription| spec.group.is_some() && s.spec.group == spec.group;
        let same_id = |s: &&Subscription| spec.subscription_id.as_ref() == Some(&s.id);
        if let Some(found) = self.subscriptions.iter().find(same_group) {
            return agree(found, spec);
        }
        match self.subscriptions.iter().find(same_id) {
            Some(found) if found.mode() != Mode::Multi => Err(Told::IdInUse("consumer group")),
            Some(found) if spec.mode != Mode::Multi || !found.members.is_empty() => {
                Err(Told::IdInUse("MULTI stream"))
            }
            Some(found) => agree(found, spec),
            None => Ok(self.create(spec)),
        }
    }

    fn create(&mut self, spec: &OpenSpec) -> u64 {
        self.made += 1;
        let place = self.free.pop().unwrap_or(self.subscriptions.len());
        self.subscriptions.push(Subscription {
            serial: self.made,
            place,
            id: spec.id_if_new.clone(),
            spec: spec.clone(),
            asks_acks: false,
            waiting: Vec::new(),
            in_flight: Vec::new(),
            members: Vec::new(),
            active: None,
            epoch: 0,
            round: Vec::new(),
            lagged: 0,
            ends_at: None,
        });
        self.said.push(Outcome::Created(spec.id_if_new.clone()));
        self.made
    }

    pub(super) fn leave_as_told(&mut self, id: MemberId) {
        if self.of_member(id).is_some() {
            self.leave(id);
            self.tell(id, Told::Left);
        }
    }

    pub(super) fn leave(&mut self, id: MemberId) {
        let now = self.now;
        let Some(subscription) = self.of_member(id) else { return };
        let (serial, linger) = (subscription.serial, subscription.spec.options.linger);
        if subscription.members.len() == 1 && linger.is_zero() {
            return self.end(serial, "dropped_subscription_ended");
        }
        subscription.members.retain(|member| member.id != id);
        self.take_back(serial, id);
        let subscription = self.by_serial(serial).expect("is there");
        if subscription.members.is_empty() {
            subscription.ends_at = Some(now + linger);
        }
        self.after_membership(serial);
    }

    pub(super) fn resign(&mut self, id: MemberId) {
        let Some(subscription) = self.of_member(id) else { return };
        let (serial, mode) = (subscription.serial, subscription.mode());
        if mode != Mode::Singleton {
            self.tell(id, Told::End(EndReason::ResignOutsideSingleton { mode: mode.name() }));
            return self.leave(id);
        }
        if subscription.active != Some(id) {
            return self.count("resign_ignored", 1);
        }
        let member = subscription.members.remove(0);
        subscription.members.push(member);
        subscription.active = None;
        self.take_back(serial, id);
        self.after_membership(serial);
    }

    /// Promotes where nobody is active, tells who asked what has changed, hands out what waits.
    fn after_membership(&mut self, serial: u64) {
        let (epoch, draining) = (self.epoch + 1, self.draining);
        let subscription = self.by_serial(serial).expect("is there");
        let mut told = Vec::new();
        if draining && !subscription.members.iter().any(|member| Some(member.id) == subscription.active) {
            subscription.active = None;
        }
        if subscription.mode() == Mode::Singleton && !draining {
            let first = subscription.members.first().map(|member| member.id);
            if subscription.active != first {
                subscription.active = first;
                if let Some(first) = first {
                    subscription.epoch = epoch;
                    told.push((first, Told::Started(subscription.id.clone())));
                }
            }
            let epoch = subscription.epoch;
            for (position, member) in (0..).zip(&mut subscription.members) {
                let role =
                    if position == 0 { Role::Active { epoch } } else { Role::Standby { epoch, position } };
                if member.control_events && member.told_role.replace(role) != Some(role) {
                    told.push((member.id, Told::Role(role)));
                }
            }
            self.epoch = self.epoch.max(epoch);
        }
        told.into_iter().for_each(|(member, told)| self.tell(member, told));
        self.feed(serial);
    }

    /// What was held is dropped, and counted.
    pub(super) fn end(&mut self, serial: u64, reason: &'static str) {
        self.give_up_last_attempts(serial);
        let at = self.subscriptions.iter().position(|s| s.serial == serial).expect("is there");
        let subscription = self.subscriptions.remove(at);
        self.free.push(subscription.place);
        self.count(reason, subscription.waiting.len());
        self.count("dropped_subscription_ended_in_flight", subscription.in_flight.len());
        self.said.push(Outcome::Ended(subscription.id));
    }

    pub(super) fn drain(&mut self, grace: Duration) {
        self.draining = true;
        let members = self.subscriptions.iter().flat_map(|s| &s.members);
        let told = members.filter(|member| member.control_events).map(|member| member.id);
        let told: Vec<MemberId> = told.collect();
        told.into_iter().for_each(|member| self.tell(member, Told::Draining(grace)));
    }
}

/// The serial number of a subscription that an open may join.
fn agree(found: &Subscription, spec: &OpenSpec) -> Result<u64, Told> {
    let (ours, theirs) = (&found.spec.options, &spec.options);
    let wanted = spec.subscription_id.as_ref();
    let mut differs = vec![
        ("mode", found.mode() != spec.mode),
        ("subscription_id", wanted.is_some_and(|id| *id != found.id)),
        ("set of topic_patterns", found.spec.patterns != spec.patterns),
        ("max_pending", ours.max_pending != theirs.max_pending),
        ("overflow policy", ours.overflow != theirs.overflow),
        ("linger", ours.linger != theirs.linger),
        ("ack_timeout", ours.ack_timeout != theirs.ack_timeout),
        ("max_deliveries", ours.max_deliveries != theirs.max_deliveries),
        ("dead_letter_topic", ours.dead_letter_topic != theirs.dead_letter_topic),
    ];
    differs.retain(|(_, differs)| *differs);
    let differs: Vec<&str> = differs.into_iter().map(|(what, _)| what).collect();
    if differs.is_empty() { Ok(found.serial) } else { Err(Told::Differs(differs)) }
}
