use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::clock::{Clock, TurnTime};
use super::merger::{Merger, Merges};
use super::runtime::{Accepted, Indivisible};
use super::{Phase, Shared};
use crate::core::{Answer, Core, CoreConfig, DeadLetter, Effect, Input, MemberEvent};
use crate::limits;
use crate::model::{MemberId, Ticket, Time};
use crate::ring::{Doorbell, Port};

/// What crosses from executor to executor.
pub enum Frame {
    /// To a shard.
    Input(Input),
    /// To a frontend: never an [`Effect::Created`] or an [`Effect::Ended`].
    Effect(Effect),
    /// To a frontend: a connection that is its own from now on.
    Connection(Accepted),
}

/// The frontend of an executor, as its shard sees it. Must not call back into the node.
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
    /// `None` where the executor is a frontend alone.
    pub core: Option<CoreConfig>,
    pub merger: Merger,
    pub shared: Arc<Shared>,
    pub clock: Clock,
}

/// One executor. Lives on its thread; holds the executor's port, that is, its end of every ring.
pub struct Node {
    me: usize,
    core: Option<RefCell<Core>>,
    merges: Merges,
    port: RefCell<Port<Frame>>,
    pub shared: Arc<Shared>,
    /// The time of the present turn.
    pub time: TurnTime,
    receiver: OnceCell<Rc<dyn Receiver>>,
    /// Scratch for effects, so that no input allocates.
    effects: RefCell<Vec<Effect>>,
    outbox_used: Cell<bool>,
    /// What the copies in this shard take, as far as the process's memory has counted it, in bytes.
    counted_copies: Cell<u64>,
    flags: Cell<(bool, bool)>,
    phase: Cell<Phase>,
    /// The deadline that the pump sleeps for, and how to wake it for an earlier one.
    pub(super) deadline: Cell<Option<Time>>,
    pub(super) pump: RefCell<Option<Waker>>,
    /// Something was done since the pump went to sleep.
    pub(super) is_busy: Cell<bool>,
    /// The pump sleeps for long.
    pub(super) dozes: Cell<bool>,
}

impl Node {
    pub fn new(config: NodeConfig) -> Rc<Self> {
        Rc::new(Node {
            me: config.port.me(),
            core: config.core.map(|core| RefCell::new(Core::new(core))),
            merges: Merges::new(config.merger, config.port.doorbell().clone()),
            port: RefCell::new(config.port),
            shared: config.shared,
            time: TurnTime::new(config.clock),
            receiver: OnceCell::new(),
            effects: RefCell::default(),
            outbox_used: Cell::new(false),
            counted_copies: Cell::new(0),
            flags: Cell::new((false, false)),
            phase: Cell::new(Phase::Serving),
            deadline: Cell::new(None),
            pump: RefCell::new(None),
            is_busy: Cell::new(false),
            dozes: Cell::new(false),
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

    /// Gives an input to a shard: applied at once where it is this executor's, else by ring.
    pub fn submit(&self, shard: usize, input: Input) {
        if shard == self.me {
            self.apply(self.time.now(), input);
        } else {
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
        self.count_copies();
        if self.outbox_used.replace(false) {
            let emptied = self.port.borrow_mut().flush();
            self.outbox_used.set(!emptied);
        }
        self.time.go_on();
    }

    fn count_copies(&self) {
        let Some(core) = &self.core else { return };
        let core = core.borrow();
        let bytes =
            core.held() * limits::COPY_OVERHEAD_BYTES + core.in_flight() * limits::IN_FLIGHT_OVERHEAD_BYTES;
        let counted = self.counted_copies.replace(bytes);
        if bytes != counted {
            self.shared.memory.add(bytes as i64 - counted as i64);
        }
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

    fn apply(&self, now: Time, input: Input) {
        let Some(core) = &self.core else {
            debug_assert!(false, "only executors with a shard get inputs");
            return;
        };
        let _indivisible = Indivisible;
        let mut effects = self.effects.take();
        {
            let mut core = core.borrow_mut();
            core.apply(now, input, &mut effects);
            self.publish_flags(&core);
        }
        for effect in effects.drain(..) {
            self.route(effect);
        }
        self.effects.replace(effects);
    }

    fn publish_flags(&self, core: &Core) {
        let flags = (!core.is_empty(), core.is_near_full());
        if self.flags.replace(flags) != flags {
            self.shared.publish_flags(self.me, flags.0, flags.1);
        }
        if self.phase.get() != Phase::Serving {
            self.shared.publish_in_flight(self.me, core.in_flight(), true);
        }
        let deadline = core.next_deadline();
        if deadline.is_some_and(|new| self.deadline.get().is_none_or(|old| new < old))
            && let Some(pump) = &*self.pump.borrow()
        {
            pump.wake_by_ref();
        }
    }

    fn route(&self, effect: Effect) {
        let frontend = match &effect {
            Effect::Member(member, _) => member.frontend,
            Effect::Answer(ticket, _) => ticket.frontend,
            // Every frontend can; each shard has its own, so that they share the work.
            Effect::DeadLetter(_) => (self.me % self.shared.frontends()) as u16,
            Effect::Created(id) => return self.shared.directory.created(id),
            Effect::Ended(id) => return self.shared.directory.release(id),
        };
        if usize::from(frontend) == self.me {
            self.receive(self.me, effect);
        } else {
            self.port.borrow_mut().send(frontend.into(), Frame::Effect(effect));
            self.outbox_used.set(true);
        }
    }

    fn receive(&self, from: usize, effect: Effect) {
        let Some(receiver) = self.receiver.get() else { return };
        match effect {
            Effect::Member(member, event) => receiver.member_event(member, event),
            Effect::Answer(ticket, answer) => {
                for (shard, input) in receiver.answer(from, ticket, answer) {
                    self.submit(shard, input);
                }
            }
            Effect::DeadLetter(letter) => receiver.dead_letter(letter),
            Effect::Created(_) | Effect::Ended(_) => {}
        }
    }

    /// One turn of the pump. Tells whether more is waiting already.
    pub(super) fn turn(&self, frames: &mut Vec<(usize, Frame)>) -> bool {
        self.enter_phase();
        let drained =
            self.port.borrow_mut().drain(limits::PUMP_TURN_ITEMS, |from, frame| frames.push((from, frame)));
        let now = self.time.now();
        if !frames.is_empty() {
            self.note_work();
        }
        self.merge_patterns();
        for (from, frame) in frames.drain(..) {
            match frame {
                Frame::Input(input) => self.apply(now, input),
                Frame::Effect(effect) => self.receive(from, effect),
                Frame::Connection(accepted) => self.receive_connection(accepted),
            }
        }
        if self.next_deadline().is_some_and(|due| due <= now) {
            self.apply(now, Input::Tick);
        }
        self.outbox_used.set(true);
        self.end_turn();
        drained.more || self.next_deadline().is_some_and(|due| due <= now)
    }

    fn merge_patterns(&self) {
        if let Some(core) = &self.core {
            self.merges.advance(&mut core.borrow_mut(), !self.is_busy.get());
        }
    }

    fn enter_phase(&self) {
        let phase = self.shared.phase();
        let before = self.phase.replace(phase);
        if before == phase {
            return;
        }
        if before == Phase::Serving && self.core.is_some() {
            self.apply(self.time.now(), Input::Drain { grace: self.shared.grace });
        }
        if let Some(receiver) = self.receiver.get() {
            receiver.phase(phase);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.core.as_ref().and_then(|core| core.borrow().next_deadline())
    }

    /// Whether a turn of the pump would find something to do.
    pub(super) fn has_work(&self) -> bool {
        self.port.borrow().has_work() || self.merges.has_result() || self.shared.phase() != self.phase.get()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::memory::Memory;
    use crate::ring::Mesh;
    use crate::shard::Layout;

    fn node() -> Rc<Node> {
        let port = Mesh::new(1, limits::RING_SLOTS).into_ports().pop().expect("one executor has one port");
        let layout = Layout { cores: vec![0], shards: 1, frontends: 1 };
        let memory = Memory::new(1, 1);
        Node::new(NodeConfig {
            port,
            core: None,
            merger: Merger::start().expect("a thread"),
            shared: Arc::new(Shared::new(layout.placement(), 1, 1, Duration::ZERO, memory)),
            clock: Clock::start(),
        })
    }

    /// A task that comes after a long sleep must not find the time at which the executor fell asleep.
    #[test]
    fn no_turn_leaves_its_time_behind() {
        let node = node();
        let turns: [&dyn Fn(&Node); 2] = [&|node| assert!(!node.turn(&mut Vec::new())), &Node::flush];
        for turn in turns {
            let early = node.time.now();
            assert_eq!(node.time.now(), early, "all of a turn happens at one moment");
            turn(&node);
            let after = node.time.clock.now();
            assert!(node.time.now() >= after, "the next one has a time of its own");
        }
    }
}
