use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Context;

use ahash::AHashMap;
use futures_channel::oneshot;
use slab::Slab;

use super::convert::{self, Bounds};
use super::counters::{FrontendCounter, FrontendCounters};
use super::credits::Credits;
use super::dead_letters::DeadLetters;
use super::publishing::{Publishing, Waiter, Way};
use super::series::Series;
use super::session::Session;
use super::table::Table;
use super::waker::WakerSlot;
use super::{Failure, WireEvent};
use crate::core::{Answer, DeadLetter, Input, MemberEvent, Run};
use crate::limits;
use crate::model::{MemberId, Message, MessageNumber, NumberSource, SubscriptionId, Ticket, Time};
use crate::shard::runtime::Accepted;
use crate::shard::{Claim, Node, Phase, Receiver};

/// Ids whose shard a frontend remembers.
const KNOWN_SUBSCRIPTIONS: usize = 65_536;

/// The frontend of one executor: its open streams and the answers it waits for. Lives on its thread.
pub struct Frontend {
    me: Weak<Frontend>,
    pub node: Rc<Node>,
    pub bounds: Bounds,
    pub counters: Arc<FrontendCounters>,
    on_connection: OnConnection,
    pub(super) credits: Rc<Credits>,
    pub(super) dead_letters: DeadLetters,
    numbers: RefCell<NumberSource>,
    sessions: RefCell<Table<Rc<Session>>>,
    /// Subscription ids kept for opens that a shard has not answered yet, whatever became of their
    /// streams meanwhile.
    claims: RefCell<AHashMap<u64, Claim>>,
    pending: RefCell<Table<Pending>>,
    /// What all messages of the process take, in bytes, as it was at the first look of a turn, and the moment of it.
    held: Cell<(Time, u64)>,
    /// Where the subscriptions of unary acks live, as last seen.
    known: RefCell<AHashMap<SubscriptionId, usize>>,
    phase: Cell<Phase>,
    /// Tasks to be woken when the phase changes.
    phase_watchers: RefCell<Slab<WakerSlot>>,
}

/// What a frontend does with a connection that is its own.
pub type OnConnection = Box<dyn Fn(Rc<Frontend>, Accepted)>;

/// Who waits for an answer.
enum Pending {
    Publish(Publishing),
    Question(oneshot::Sender<Answer>),
}

impl Frontend {
    /// `started` seeds the message numbers: see [`NumberSource`].
    pub fn new(
        node: Rc<Node>,
        bounds: Bounds,
        counters: Arc<FrontendCounters>,
        started: u64,
        on_connection: OnConnection,
    ) -> Rc<Self> {
        let outstanding = limits::outstanding(node.shared.frontends());
        let frontend = Rc::new_cyclic(|me| Frontend {
            me: me.clone(),
            numbers: RefCell::new(NumberSource::new(node.me(), started)),
            node: node.clone(),
            bounds,
            counters,
            on_connection,
            credits: Rc::new(Credits::new(outstanding.0, outstanding.1)),
            dead_letters: DeadLetters::default(),
            sessions: RefCell::default(),
            claims: RefCell::default(),
            pending: RefCell::default(),
            held: Cell::default(),
            known: RefCell::default(),
            phase: Cell::new(Phase::Serving),
            phase_watchers: RefCell::default(),
        });
        node.set_receiver(frontend.clone());
        frontend
    }

    pub fn next_number(&self) -> MessageNumber {
        self.numbers.borrow_mut().take()
    }

    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Whether one more message may come in.
    pub fn admit_message(&self) -> Result<(), Failure> {
        self.admit()?;
        let (held, limit) = (self.held(), self.node.shared.memory.limit());
        if held >= limit { Err(Failure::MemoryFull { held, limit }) } else { Ok(()) }
    }

    /// Counts a message against the process's memory as long as it lives.
    pub fn count_in(&self, message: &mut Message) {
        message.count_in(self.node.shared.memory);
        self.held.set((self.node.time.now(), self.held() + message.cost()));
    }

    /// What others take is looked up once a turn: their counts lie in other cores' caches.
    fn held(&self) -> u64 {
        let now = self.node.time.now();
        let (at, held) = self.held.get();
        if at == now {
            return held;
        }
        let held = self.node.shared.memory.held();
        self.held.set((now, held));
        held
    }

    /// New work is taken only while the broker serves.
    pub fn admit(&self) -> Result<(), Failure> {
        match self.phase() {
            Phase::Serving => Ok(()),
            _ => Err(Failure::ShuttingDown),
        }
    }

    /// A new stream, known by its member id until [`Frontend::forget_session`].
    pub(super) fn new_session(&self) -> Rc<Session> {
        let frontend = self.node.me() as u16;
        self.sessions.borrow_mut().insert_with(|number| Session::new(MemberId { frontend, number })).clone()
    }

    pub(super) fn forget_session(&self, member: MemberId) {
        self.sessions.borrow_mut().remove(member.number);
    }

    /// Keeps the id of an open until its shard answers.
    pub(super) fn keep_claim(&self, member: MemberId, claim: Claim) {
        self.claims.borrow_mut().insert(member.number, claim);
    }

    /// Asks a shard and waits for its answer.
    pub async fn ask(&self, shard: usize, question: impl FnOnce(Ticket) -> Input) -> Result<Answer, Failure> {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.add_pending(Pending::Question(sender));
        self.node.submit(shard, question(ticket));
        receiver.await.map_err(|_| Failure::Internal)
    }

    /// How the next publish goes.
    pub(super) fn way(&self) -> Way {
        Way::now(&self.node.shared)
    }

    /// Starts the next run of a series; it has its credits.
    pub(super) fn start_in(&self, series: &Rc<Series>, way: Way, run: Run) {
        let number = series.started(way.is_two_pass());
        self.start_publish(way, run, Waiter::Series { series: series.clone(), number });
    }

    /// The next message of a series fails before it is published.
    pub(super) fn fail_in(&self, series: &Series, failure: Failure) {
        self.counters.count(FrontendCounter::PublishFailed);
        series.failed(failure);
    }

    /// Starts a publish, which has its credits; it goes to its end also where nobody waits for it any more. The shard of
    /// this executor may answer before this returns.
    pub(super) fn start_publish(&self, way: Way, run: Run, waiter: Waiter) {
        let ticket = self.add_pending(Pending::Publish(Publishing::new(&way, &run, waiter)));
        for (shard, input) in way.inputs(ticket, run) {
            self.node.submit(shard, input);
        }
    }

    fn add_pending(&self, pending: Pending) -> Ticket {
        let number = self.pending.borrow_mut().insert(pending);
        Ticket { frontend: self.node.me() as u16, number }
    }

    /// Where the subscription with this id lives, as this frontend last saw it or as all know.
    pub(super) fn shard_of(&self, id: &SubscriptionId) -> Option<usize> {
        if let Some(&shard) = self.known.borrow().get(id) {
            return Some(shard);
        }
        let shard = self.node.shared.directory.shard_of(id)?;
        let mut known = self.known.borrow_mut();
        if known.len() >= KNOWN_SUBSCRIPTIONS {
            known.clear();
        }
        known.insert(id.clone(), shard);
        Some(shard)
    }

    /// What was remembered of this id is wrong. Tells whether all know better.
    pub(super) fn forget_shard_of(&self, id: &SubscriptionId) -> bool {
        let old = self.known.borrow_mut().remove(id);
        let new = self.node.shared.directory.shard_of(id);
        new.is_some() && new != old
    }
}

/// A task's place among those that are woken when the phase changes.
pub(super) struct PhaseWatch {
    frontend: Rc<Frontend>,
    key: usize,
}

impl PhaseWatch {
    pub fn new(frontend: &Rc<Frontend>) -> Self {
        let key = frontend.phase_watchers.borrow_mut().insert(WakerSlot::default());
        PhaseWatch { frontend: frontend.clone(), key }
    }

    /// Wakes this task from now on.
    pub fn remember(&self, cx: &Context<'_>) {
        if let Some(slot) = self.frontend.phase_watchers.borrow().get(self.key) {
            slot.remember(cx);
        }
    }
}

impl Drop for PhaseWatch {
    fn drop(&mut self) {
        self.frontend.phase_watchers.borrow_mut().remove(self.key);
    }
}

impl Receiver for Frontend {
    fn member_event(&self, member: MemberId, event: MemberEvent) {
        if matches!(event, MemberEvent::Attached | MemberEvent::Refused(_)) {
            self.claims.borrow_mut().remove(&member.number);
        }
        let Some(session) = self.sessions.borrow().get(member.number).cloned() else { return };
        match event {
            MemberEvent::Attached => {}
            MemberEvent::Refused(refusal) => session.ended_by_shard((*refusal).into()),
            MemberEvent::End(reason) => session.ended_by_shard((*reason).into()),
            MemberEvent::Left => session.has_left(),
            MemberEvent::Started(id) => session.push(convert::started(&id)),
            MemberEvent::Role(role) => session.push(convert::role(role)),
            MemberEvent::Deliver(delivery) => session.push(WireEvent::Message(delivery)),
            MemberEvent::DeliverAll(deliveries) => session.push_all(deliveries),
            MemberEvent::Lagged(dropped) => session.push(convert::lagged(dropped)),
            MemberEvent::Draining(grace) => session.push(convert::draining(grace)),
        }
    }

    fn answer(&self, from: usize, ticket: Ticket, answer: Answer) -> Vec<(usize, Input)> {
        let mut pending = self.pending.borrow_mut();
        match pending.get_mut(ticket.number) {
            Some(Pending::Publish(publishing)) => {
                let next = publishing.advance(ticket, from, answer);
                if publishing.is_done() {
                    let done = pending.remove(ticket.number);
                    drop(pending);
                    if let Some(Pending::Publish(publishing)) = done {
                        let (messages, bytes) = publishing.credits();
                        self.credits.give_back(messages, bytes);
                        publishing.finish(&self.counters);
                    }
                }
                next
            }
            Some(Pending::Question(_)) => {
                if let Some(Pending::Question(sender)) = pending.remove(ticket.number) {
                    // Whoever asked may have gone; then nobody wants the answer.
                    let _ = sender.send(answer);
                }
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn dead_letter(&self, letter: Box<DeadLetter>) {
        self.dead_letters.push(letter);
    }

    fn phase(&self, phase: Phase) {
        self.phase.set(phase);
        if phase == Phase::Closing {
            for session in self.sessions.borrow().values() {
                session.end(Failure::ShuttingDown);
            }
        }
        self.phase_watchers.borrow().iter().for_each(|(_, watcher)| watcher.wake());
    }

    fn connection(&self, accepted: Accepted) {
        if let Some(frontend) = self.me.upgrade() {
            self.counters.count(FrontendCounter::Connections);
            (self.on_connection)(frontend, accepted);
        }
    }
}
