use std::rc::Rc;
use std::time::Instant;

use futures_util::future::{Either, LocalBoxFuture, select};
use futures_util::{FutureExt, Stream, StreamExt, pin_mut};

use crate::core::Input;
use crate::frontend::Failure;
use crate::frontend::convert::{Command, OpenRequest};
use crate::frontend::counters::FrontendCounter;
use crate::frontend::hub::Frontend;
use crate::frontend::session::{Events, Session};
use crate::limits;
use crate::model::SubscriptionId;
use crate::shard::{Claim, IdTaken, Owner, runtime};

/// Begins a stream: its events, and the driver that reads its commands, to be run to its end.
///
/// The member has left at `deadline`, also where the client does not read its events. `seat` is held as long as the stream counts against its connection's limit.
pub fn subscribe(
    frontend: &Rc<Frontend>,
    commands: impl Stream<Item = Result<Command, Failure>> + 'static,
    deadline: Option<Instant>,
    seat: impl Sized + 'static,
) -> Result<(Events, LocalBoxFuture<'static, ()>), Failure> {
    frontend.admit()?;
    frontend.counters.count(FrontendCounter::Streams);
    let session = frontend.new_session();
    let events = Events::new(session.clone(), frontend.node.clone(), frontend.counters.clone());
    let driver = Driver { frontend: frontend.clone(), session };
    let task = async move {
        driver.run(commands, deadline).await;
        drop(seat);
    };
    Ok((events, task.boxed_local()))
}

/// Reads the commands of one stream and sees to it that its end is noticed.
///
/// ```text
///   waiting ──open──▶ open ──ack, nack, …──▶ open
///      │                │
///      └────────────────┴──response side gone, deadline──▶ read what came before ──▶ left
/// ```
/// The end of the command stream alone ends nothing.
struct Driver {
    frontend: Rc<Frontend>,
    session: Rc<Session>,
}

impl Driver {
    async fn run(&self, commands: impl Stream<Item = Result<Command, Failure>>, deadline: Option<Instant>) {
        pin_mut!(commands);
        let life = async {
            self.serve(commands).await;
            self.session.gone().await;
        };
        if !in_time(life, deadline).await {
            self.end(Failure::Deadline);
            self.session.gone().await;
        }
    }

    /// Until the command stream or the response side ends.
    async fn serve(&self, mut commands: impl Stream<Item = Result<Command, Failure>> + Unpin) {
        let first = select(commands.next(), runtime::sleep(limits::OPEN_TIMEOUT));
        let mut next = match self.unless_gone(first).await {
            None => return,
            Some(Either::Right(_)) => return self.session.end(Failure::OpenTimeout),
            Some(Either::Left((first, _))) => first,
        };
        loop {
            match next {
                Some(Ok(command)) => self.carry_out(command),
                Some(Err(failure)) => return self.end(failure),
                None if self.session.shard().is_none() && !self.session.has_ended() => {
                    return self.end(Failure::invalid("open", "is missing: the stream ended before it"));
                }
                None => return,
            }
            next = match self.unless_gone(commands.next()).await {
                None => return,
                Some(next) => next,
            };
        }
    }

    async fn unless_gone<T>(&self, other: impl Future<Output = T> + Unpin) -> Option<T> {
        let gone = self.session.gone();
        pin_mut!(gone);
        // The other first: what the client said before its goodbye is done before it.
        match select(other, gone).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }

    fn carry_out(&self, command: Command) {
        let member = self.session.member;
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
            (Command::Settle { .. } | Command::Resign, None) => {
                self.end(Failure::invalid("open", "must be the first command"));
            }
            (Command::Settle { subscription_id, target, action }, Some(shard)) => {
                let input = Input::Settle { member, subscription_id, target, action };
                self.frontend.node.submit(shard, input);
            }
            (Command::Resign, Some(_)) if self.session.unread() > limits::UNREAD_EVENTS => {
                self.end(Failure::UnreadEvents { limit: limits::UNREAD_EVENTS });
            }
            (Command::Resign, Some(shard)) => self.frontend.node.submit(shard, Input::Resign { member }),
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

    /// Ends the stream with an error of this side's.
    fn end(&self, failure: Failure) {
        self.session.leave(&self.frontend.node);
        self.session.end(failure);
    }
}

impl Drop for Driver {
    /// However the driver ends, also by a panic, the member leaves.
    fn drop(&mut self) {
        self.end(Failure::Internal);
        self.frontend.forget_session(self.session.member);
    }
}

/// Runs to the end, or to the deadline where that comes first. Tells whether it came to its end.
async fn in_time(life: impl Future<Output = ()>, deadline: Option<Instant>) -> bool {
    let Some(deadline) = deadline else {
        life.await;
        return true;
    };
    pin_mut!(life);
    matches!(select(life, runtime::sleep_until(deadline)).await, Either::Left(_))
}

fn id_in_use(taken: IdTaken) -> Failure {
    let owner = match taken.owner {
        Owner::Group(_) => "consumer group",
        Owner::Multi => "MULTI stream",
    };
    Failure::Open(crate::core::OpenRefusal::IdInUse { owner })
}
