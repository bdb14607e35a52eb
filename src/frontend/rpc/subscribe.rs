use std::cell::RefCell;
use std::rc::Rc;

use smallvec::SmallVec;

use crate::core::{Input, Settle};
use crate::frontend::Failure;
use crate::frontend::convert::{Command, OpenRequest, SettleCommand};
use crate::frontend::counters::FrontendCounter;
use crate::frontend::hub::Frontend;
use crate::frontend::session::Session;
use crate::limits;
use crate::model::{DeliveryId, SubscriptionId};
use crate::shard::{Claim, IdTaken, Owner};

/// One stream and its part in a subscription, as its commands make it. Dropping it is leaving.
///
/// ```text
///   waiting ──open──▶ open ──ack, nack, …──▶ open ──dropped──▶ left
///      └──a mistake, or the broker's word──▶ ended ──dropped──▶ left
/// ```
/// The end of the commands alone ends nothing, once there was an open.
pub struct Subscriber {
    frontend: Rc<Frontend>,
    session: Rc<Session>,
    /// Acks that were read one after the other and not handed on yet.
    acks: RefCell<SmallVec<[DeliveryId; 1]>>,
}

impl Subscriber {
    pub fn new(frontend: &Rc<Frontend>) -> Result<Self, Failure> {
        frontend.admit()?;
        frontend.counters.count(FrontendCounter::Streams);
        Ok(Subscriber {
            frontend: frontend.clone(),
            session: frontend.new_session(),
            acks: RefCell::default(),
        })
    }

    /// What it is to be told.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether it has said `open`, or never will.
    pub fn has_begun(&self) -> bool {
        self.session.shard().is_some() || self.session.has_ended()
    }

    /// No more commands will come.
    pub fn commands_ended(&self) {
        if !self.has_begun() {
            self.end(Failure::invalid("open", "is missing: the stream ended before it"));
        }
    }

    /// Carries a command out; acks with those that follow, until [`Subscriber::hand_on_acks`].
    pub fn carry_out(&self, command: Command) {
        let member = self.session.member;
        if !matches!(command, Command::Ack(_)) {
            self.hand_on_acks();
        }
        match (command, self.session.shard()) {
            // What comes after the end of the membership meets nobody.
            _ if self.session.has_ended() => {}
            (Command::Unknown, None) => self.end(Failure::invalid("open", "must be the first command")),
            (Command::Unknown, Some(_)) => self.frontend.counters.count(FrontendCounter::CommandsIgnored),
            (Command::Open(open), None) => {
                if let Err(failure) = self.open(*open) {
                    self.end(failure);
                }
            }
            (Command::Open(_), Some(_)) => {
                self.end(Failure::invalid("open", "came a second time; one stream is one subscription"));
            }
            (Command::Ack(_) | Command::Settle(_) | Command::Resign, None) => {
                self.end(Failure::invalid("open", "must be the first command"));
            }
            (Command::Ack(ids), Some(_)) => self.ack(ids),
            (Command::Settle(settle), Some(shard)) => {
                let SettleCommand { subscription_id, target, action } = *settle;
                let settle = Box::new(Settle { member, subscription_id, target, action });
                self.frontend.node.submit(shard, Input::Settle(settle));
            }
            (Command::Resign, Some(_)) if self.session.unread() > limits::UNREAD_EVENTS => {
                self.end(Failure::UnreadEvents { limit: limits::UNREAD_EVENTS });
            }
            (Command::Resign, Some(shard)) => self.frontend.node.submit(shard, Input::Resign { member }),
        }
    }

    fn ack(&self, ids: SmallVec<[DeliveryId; 1]>) {
        let mut acks = self.acks.borrow_mut();
        if acks.is_empty() {
            *acks = ids;
        } else {
            acks.extend(ids);
        }
        let is_full = acks.len() >= limits::ACKS_IN_ONE_GO;
        drop(acks);
        if is_full {
            self.hand_on_acks();
        }
    }

    /// The acks that were read so far go to the shard, in one.
    pub fn hand_on_acks(&self) {
        let ids = self.acks.take();
        if let Some(shard) = self.session.shard()
            && !ids.is_empty()
        {
            self.frontend.node.submit(shard, Input::Ack { member: self.session.member, ids });
        }
    }

    fn open(&self, open: OpenRequest) -> Result<(), Failure> {
        self.frontend.admit()?;
        let (id, claim, shard) = self.claim_id(&open)?;
        self.session.opening(shard, open.max_batch);
        self.frontend.keep_claim(self.session.member, claim);
        let spec = Box::new(open.into_spec(id));
        self.frontend.node.submit(shard, Input::Open { member: self.session.member, spec });
        Ok(())
    }

    /// Keeps the id that a new subscription would get, so that no other shard gives it away.
    fn claim_id(&self, open: &OpenRequest) -> Result<(SubscriptionId, Claim, usize), Failure> {
        let shared = &self.frontend.node.shared;
        let owner = open.group.clone().map_or(Owner::Multi, Owner::Group);
        let shard_for = |id: &SubscriptionId| match &open.group {
            Some(group) => shared.placement.of_group(group),
            None => shared.placement.of_multi(id),
        };
        if let Some(id) = &open.subscription_id {
            let shard = shard_for(id);
            let claim = shared.directory.claim(id, &owner, shard).map_err(id_in_use)?;
            return Ok((id.clone(), claim, shard));
        }
        loop {
            // A client may have guessed one of these; the next is another.
            let id = SubscriptionId::from_number(self.frontend.next_number());
            let shard = shard_for(&id);
            if shared.directory.shard_of(&id).is_none()
                && let Ok(claim) = shared.directory.claim(&id, &owner, shard)
            {
                return Ok((id, claim, shard));
            }
        }
    }

    /// The client's deadline is over: the stream ends, whether or not it reads what is there.
    pub fn expire(&self) {
        self.session.forget_events();
        self.end(Failure::Deadline);
    }

    /// Ends the stream with an error of this side's.
    pub fn end(&self, failure: Failure) {
        self.hand_on_acks();
        self.session.leave(&self.frontend.node);
        self.session.end(failure);
    }
}

impl Drop for Subscriber {
    /// However the stream ends, also by a panic, the member leaves.
    fn drop(&mut self) {
        self.end(Failure::Internal);
        self.frontend.forget_session(self.session.member);
    }
}

fn id_in_use(taken: IdTaken) -> Failure {
    let owner = match taken.owner {
        Owner::Group(_) => "consumer group",
        Owner::Multi => "MULTI stream",
    };
    Failure::Open(crate::core::OpenRefusal::IdInUse { owner })
}
