use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use super::clock::{Clock, TurnTime};
use super::merger::{Merger, Merges};
use super::runtime::Accepted;
use super::seat::{Seat, Shard};
use super::{Phase, Shared};
use crate::core::{Answer, DeadLetter, Effect, Input, MemberEvent};
use crate::limits;
use crate::model::{MemberId, Ticket, Time};
use crate::ring::{Doorbell, Inlet, Port, Spare};

/// What crosses from executor to executor.
pub enum Frame {
    /// To a shard.
    Input(Input),
    /// To a frontend: a connection that is its own from now on.
    Connection(Accepted),
}

impl Frame {
    fn items(&self) -> usize {
        match self {
            Frame::Input(input) => input.items(),
            Frame::Connection(_) => 1,
        }
    }
}

/// The frontend of an executor, as shards see it. Must not call back into the node.
pub trait Receiver {
    fn member_event(&self, member: MemberId, event: MemberEvent);
    /// `from` is the shard that answers. Returns what has to be asked next; the node submits it.
    fn answer(&self, from: usize, ticket: Ticket, answer: Answer) -> Vec<(usize, Input)>;
    /// A message that a subscription has given up.
    fn dead_letter(&self, letter: Box<DeadLetter>);
    /// A connection that another executor has accepted.
    fn connection(&self, accepted: Accepted);
    /// The process has entered another phase.
    fn phase(&self, phase: Phase);
}

/// What a node is made from, on its thread.
pub struct NodeConfig {
    pub port: Port<Frame>,
    /// What shards say to this executor's frontend.
    pub inlet: Inlet<Effect>,
    pub merger: Merger,
    pub shared: Arc<Shared>,
    pub clock: Clock,
    /// How long an idle executor stays awake.
    pub spin: Duration,
}

/// One executor. Lives on its thread; holds the executor's ends of the rings to and from others.
pub struct Node {
    me: usize,
    merges: Merges,
    port: RefCell<Port<Frame>>,
    inlet: RefCell<Inlet<Effect>>,
    spare: RefCell<Spare<Effect>>,
    pub shared: Arc<Shared>,
    /// The time of the present turn.
    pub time: TurnTime,
    receiver: OnceCell<Rc<dyn Receiver>>,
    /// Scratch for effects, so that no input allocates.
    effects: RefCell<Vec<Effect>>,
    outbox_used: Cell<bool>,
    /// The own shard was run since it last sent what it said.
    shard_used: Cell<bool>,
    /// Messages and deliveries for the shards of others, in this turn and in the last one that had any.
    abroad: Cell<usize>,
    abroad_before: Cell<usize>,
    phase: Cell<Phase>,
    /// When something was done last.
    pub(super) worked_at: Cell<Time>,
    /// The pump sleeps for long.
    pub(super) dozes: Cell<bool>,
    /// How long after its last work the pump stays awake.
    pub(super) spin: Duration,
}

impl Node {
    pub fn new(config: NodeConfig) -> Rc<Self> {
        Rc::new(Node {
            me: config.port.me(),
            merges: Merges::new(config.merger, config.port.doorbell().clone()),
            port: RefCell::new(config.port),
            inlet: RefCell::new(config.inlet),
            spare: RefCell::default(),
            shared: config.shared,
            time: TurnTime::new(config.clock),
            receiver: OnceCell::new(),
            effects: RefCell::default(),
            outbox_used: Cell::new(false),
            shard_used: Cell::new(false),
            abroad: Cell::new(0),
            abroad_before: Cell::new(0),
            phase: Cell::new(Phase::Serving),
            worked_at: Cell::default(),
            dozes: Cell::new(false),
            spin: config.spin,
        })
    }

    /// The frontend of this executor; once.
    pub fn set_receiver(&self, receiver: Rc<dyn Receiver>) {
        let first = self.receiver.set(receiver).is_ok();
        debug_assert!(first, "an executor has one frontend");
    }

    pub fn me(&self) -> usize {
        self.me
    }

    pub fn doorbell(&self) -> Arc<Doorbell> {
        self.port.borrow().doorbell().clone()
    }

    /// The seat of this executor's own shard; none where it is a frontend alone.
    pub(super) fn seat(&self) -> Option<&Seat> {
        self.shared.seats.get(self.me)
    }

    /// Gives an input to a shard: applied at once where it is this executor's, or where its executor sleeps; else it goes
    /// by ring.
    pub fn submit(&self, shard: usize, input: Input) {
        if shard == self.me {
            self.apply(input);
        } else if let Some(input) = self.run_errand(shard, input) {
            self.port.borrow_mut().send(shard, Frame::Input(input));
            self.outbox_used.set(true);
        }
    }

    /// Sends what this turn has put into outboxes, one batch and at most one wake a peer. To be
    /// called at the end of each task's turn.
    pub fn flush(&self) {
        self.note_work();
        self.end_turn();
    }

    /// What every turn ends with, the pump's too: what it had for others leaves, and time goes on.
    fn end_turn(&self) {
        if self.shard_used.take()
            && let Some(seat) = self.seat()
        {
            seat.flush(&mut seat.take(), &mut self.spare.borrow_mut());
        }
        if self.outbox_used.take() {
            let emptied = self.port.borrow_mut().flush();
            self.outbox_used.set(!emptied);
        }
        let abroad = self.abroad.take();
        if abroad > 0 {
            self.abroad_before.set(abroad);
        }
        self.time.go_on();
    }

    /// Gives an accepted connection to a frontend.
    pub fn hand_over(&self, frontend: usize, accepted: Accepted) {
        if frontend == self.me {
            self.receive_connection(accepted);
        } else {
            self.port.borrow_mut().send(frontend, Frame::Connection(accepted));
            self.outbox_used.set(true);
            self.flush();
        }
    }

    fn receive_connection(&self, accepted: Accepted) {
        if let Some(receiver) = self.receiver.get() {
            receiver.connection(accepted);
        }
    }

    /// Runs the own shard.
    fn apply(&self, input: Input) {
        let Some(seat) = self.seat() else {
            debug_assert!(false, "only executors with a shard get inputs");
            return;
        };
        self.shard_used.set(true);
        self.run(self.me, input, || Some(seat.take()), |_| ());
    }

    /// Runs a shard of another executor that sleeps: for little work that is less than to wake it, which takes
    /// system calls of both. Gives the input back where it has to go by ring: what was sent there before is not applied yet,
    /// somebody else runs the shard, or there is much to do in this turn.
    fn run_errand(&self, shard: usize, input: Input) -> Option<Input> {
        self.abroad.set(self.abroad.get() + input.items());
        if self.abroad.get().max(self.abroad_before.get()) > limits::ERRANDS_IN_ONE_TURN {
            return Some(input);
        }
        let seat = &self.shared.seats[shard];
        let take = || self.port.borrow().has_seen_to_all(shard).then(|| seat.try_take()).flatten();
        self.run(shard, input, take, |shard| seat.flush(shard, &mut self.spare.borrow_mut()))
    }

    /// Applies an input to a shard whose seat can be taken, and receives what it says to this executor.
    fn run<'s>(
        &'s self,
        shard: usize,
        input: Input,
        take: impl Fn() -> Option<MutexGuard<'s, Shard>>,
        leave: impl FnOnce(&mut Shard),
    ) -> Option<Input> {
        let mut state = loop {
            // All that it said before comes first, sent or not: its home may be in the middle of a turn.
            self.receive_from(shard);
            let Some(mut state) = take() else { return Some(input) };
            state.flush_to(self.me, &mut self.spare.borrow_mut());
            if self.inlet.borrow().is_empty_from(shard) {
                break state;
            }
        };
        let mut effects = self.effects.take();
        self.shared.seats[shard].apply(&mut state, self.time.now(), input, self.me, &mut effects);
        leave(&mut state);
        drop(state);
        self.receive(shard, &mut effects);
        self.effects.replace(effects);
        None
    }

    /// Receives what a shard has said so far.
    fn receive_from(&self, shard: usize) {
        loop {
            let batch = self.inlet.borrow_mut().pop_from(shard);
            let Some(batch) = batch else { return };
            self.receive_batch(shard, batch);
        }
    }

    fn receive_batch(&self, shard: usize, mut batch: Vec<Effect>) {
        self.receive(shard, &mut batch);
        self.spare.borrow_mut().keep(batch, self.shared.seats.len());
    }

    /// All of it is received before anything that follows is submitted: the answer to that may come at once.
    fn receive(&self, shard: usize, effects: &mut Vec<Effect>) {
        let Some(receiver) = self.receiver.get() else { return effects.clear() };
        let mut next = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Member(member, event) => receiver.member_event(member, event),
                Effect::Answer(ticket, answer) => next.append(&mut receiver.answer(shard, ticket, answer)),
                Effect::DeadLetter(letter) => receiver.dead_letter(letter),
                Effect::Created(_) | Effect::Ended(_) => {}
            }
        }
        for (shard, input) in next {
            self.submit(shard, input);
        }
    }

    /// One turn of the pump. Tells whether more is waiting already.
    pub(super) fn turn(&self, frames: &mut Vec<Frame>) -> bool {
        self.enter_phase();
        // Effects before inputs: what an input makes a shard say comes after what it has said.
        if self.receive_some() + self.take_some(frames) > 0 {
            self.note_work();
        }
        self.merge_patterns();
        for frame in frames.drain(..) {
            match frame {
                Frame::Input(input) => self.apply(input),
                Frame::Connection(accepted) => self.receive_connection(accepted),
            }
        }
        if self.is_due() {
            self.apply(Input::Tick);
        }
        self.outbox_used.set(true);
        if self.seat().is_some_and(Seat::is_stuck) {
            self.shard_used.set(true);
        }
        self.end_turn();
        self.port.borrow().has_incoming() || !self.inlet.borrow().is_empty() || self.is_due()
    }

    /// Receives what shards have said, as much as one turn takes; how much.
    fn receive_some(&self) -> usize {
        let mut items = 0;
        while items < limits::PUMP_TURN_ITEMS {
            let popped = self.inlet.borrow_mut().pop();
            let Some((shard, batch)) = popped else { break };
            items += batch.len();
            self.receive_batch(shard, batch);
        }
        items
    }

    /// Takes what other executors have sent, as much as one turn deals with; how much.
    fn take_some(&self, frames: &mut Vec<Frame>) -> usize {
        let mut items = 0;
        while items < limits::PUMP_TURN_ITEMS {
            let one_batch = self.port.borrow_mut().drain(1, |_, frame| {
                items += frame.items();
                frames.push(frame);
            });
            if one_batch.items == 0 {
                break;
            }
        }
        items
    }

    fn merge_patterns(&self) {
        if let Some(seat) = self.seat() {
            self.merges.advance(&mut seat.take().core, self.is_idle());
        }
    }

    fn enter_phase(&self) {
        let phase = self.shared.phase();
        let before = self.phase.replace(phase);
        if before == phase {
            return;
        }
        if before == Phase::Serving && self.seat().is_some() {
            self.apply(Input::Drain { grace: self.shared.grace });
        }
        if let Some(receiver) = self.receiver.get() {
            receiver.phase(phase);
        }
    }

    fn is_due(&self) -> bool {
        self.next_deadline().is_some_and(|due| due <= self.time.now())
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.seat().and_then(Seat::next_deadline)
    }

    /// Whether a turn of the pump would find something to do.
    pub(super) fn has_work(&self) -> bool {
        self.port.borrow().has_work()
            || !self.inlet.borrow().is_empty()
            || self.seat().is_some_and(Seat::can_flush)
            || self.merges.has_result()
            || self.shared.phase() != self.phase.get()
    }
}
