use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::Directory;
use super::runtime::Indivisible;
use crate::core::{Core, Effect, Input};
use crate::limits;
use crate::memory::Memory;
use crate::model::Time;
use crate::ring::{Doorbell, Outlet, Spare};

/// The seat of one shard: whoever has taken it runs the shard, one executor at a time.
///
/// A shard has a home, the executor of the same number, whose pump serves it. While that sleeps any other executor may
/// run it instead of waking it: see [`Node::submit`](super::Node::submit). All that leaves a shard leaves on rings of its
/// own, whoever runs it, so what it says to one frontend keeps its order.
pub struct Seat {
    shard: Mutex<Shard>,
    /// That of the home.
    pub(super) bell: Arc<Doorbell>,
    /// Some subscription lives there: publishes must come.
    live: AtomicBool,
    /// Some REJECT subscription there has little room: a publish may be refused.
    near_full: AtomicBool,
    in_flight: AtomicU64,
    /// The shard has seen that the process drains.
    drains: AtomicBool,
    /// Some of what it said met a full ring.
    is_stuck: AtomicBool,
    /// When the shard has something to do next, and until when the pump of its home sleeps: nanoseconds of the
    /// process's clock.
    deadline: AtomicU64,
    asleep_until: AtomicU64,
}

/// No deadline.
const NEVER: u64 = u64::MAX;
/// The pump is awake.
const AWAKE: u64 = 0;

/// A shard, for whoever has its seat.
pub struct Shard {
    pub(super) core: Core,
    outlet: Outlet<Effect>,
    directory: Arc<Directory>,
    memory: &'static Memory,
    /// The frontend for what any of them can do: each shard has its own, so that they share the work.
    any_frontend: usize,
    /// The latest moment at which something was applied: executors read the clock at moments of their own.
    now: Time,
    /// What the copies of messages take, as far as the process's memory has counted it, in bytes.
    counted_copies: u64,
    flags: (bool, bool),
    drains: bool,
}

/// What a seat is made from.
pub struct SeatConfig {
    pub core: Core,
    pub outlet: Outlet<Effect>,
    pub bell: Arc<Doorbell>,
    pub directory: Arc<Directory>,
    pub memory: &'static Memory,
    pub any_frontend: usize,
}

impl Seat {
    pub fn new(config: SeatConfig) -> Self {
        let SeatConfig { core, outlet, bell, directory, memory, any_frontend } = config;
        let shard = Shard {
            core,
            outlet,
            directory,
            memory,
            any_frontend,
            now: Time::default(),
            counted_copies: 0,
            flags: (false, false),
            drains: false,
        };
        Seat {
            shard: Mutex::new(shard),
            bell,
            live: AtomicBool::new(false),
            near_full: AtomicBool::new(false),
            in_flight: AtomicU64::new(0),
            drains: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
            deadline: AtomicU64::new(NEVER),
            asleep_until: AtomicU64::new(AWAKE),
        }
    }

    /// Takes the seat, when whoever has it is done with its one input.
    pub fn take(&self) -> MutexGuard<'_, Shard> {
        // A panic in a shard ends the process: no lock outlives one.
        self.shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the seat unless somebody has it.
    pub fn try_take(&self) -> Option<MutexGuard<'_, Shard>> {
        match self.shard.try_lock() {
            Ok(shard) => Some(shard),
            Err(TryLockError::Poisoned(shard)) => Some(shard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Applies an input and routes what follows: to the frontend of the executor `near` what is left in `effects`,
    /// the rest leaves with the next [`flush`](Self::flush).
    pub fn apply(&self, shard: &mut Shard, now: Time, input: Input, near: usize, effects: &mut Vec<Effect>) {
        let _indivisible = Indivisible;
        shard.now = shard.now.max(now);
        shard.drains |= matches!(input, Input::Drain { .. });
        shard.core.apply(shard.now, input, effects);
        self.publish_flags(shard);
        let any_frontend = shard.any_frontend;
        for effect in effects.extract_if(.., |effect| frontend_of(effect, any_frontend) != Some(near)) {
            shard.route(effect);
        }
    }

    /// Before any effect leaves: who reads the flags after a member's first frame reads at least what was true then.
    fn publish_flags(&self, shard: &mut Shard) {
        let flags = (!shard.core.is_empty(), shard.core.is_near_full());
        if std::mem::replace(&mut shard.flags, flags) != flags {
            // Who sees that a shard lives sees also whether it is near full.
            self.near_full.store(flags.1, SeqCst);
            self.live.store(flags.0, SeqCst);
        }
        if shard.drains {
            self.in_flight.store(shard.core.in_flight(), SeqCst);
            self.drains.store(true, SeqCst);
        }
        let deadline = shard.core.next_deadline().map_or(NEVER, Time::as_nanos);
        if self.deadline.swap(deadline, SeqCst) > deadline && deadline < self.asleep_until.load(SeqCst) {
            self.bell.ring();
        }
    }

    /// Sends what the shard has said. What meets a full ring leaves when the home's doorbell rings.
    pub fn flush(&self, shard: &mut Shard, spare: &mut Spare<Effect>) {
        shard.count_copies();
        let is_stuck = !shard.outlet.flush(spare);
        self.is_stuck.store(is_stuck, SeqCst);
    }

    /// Whether a flush would get something out that met a full ring.
    pub fn can_flush(&self) -> bool {
        self.is_stuck() && self.take().outlet.can_flush()
    }

    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(SeqCst)
    }

    /// When the shard has something to do next.
    pub fn next_deadline(&self) -> Option<Time> {
        let deadline = self.deadline.load(SeqCst);
        (deadline != NEVER).then(|| Time::from_nanos(deadline))
    }

    /// The home's pump sleeps from now on. An earlier deadline rings its doorbell, or was there before it parks.
    pub fn sleeps_until(&self, due: Time) {
        self.asleep_until.store(due.as_nanos(), SeqCst);
    }

    pub fn woke_up(&self) {
        self.asleep_until.store(AWAKE, SeqCst);
    }

    pub fn is_live(&self) -> bool {
        self.live.load(SeqCst)
    }

    pub fn is_near_full(&self) -> bool {
        self.near_full.load(SeqCst)
    }

    /// Whether the shard drains and nothing is in flight any more.
    pub fn is_drained(&self) -> bool {
        self.drains.load(SeqCst) && self.in_flight.load(SeqCst) == 0
    }
}

impl Shard {
    /// Sends what it has said to one frontend and kept so far, as far as its ring has room.
    pub(super) fn flush_to(&mut self, frontend: usize, spare: &mut Spare<Effect>) {
        self.outlet.flush_to(frontend, spare);
    }

    fn route(&mut self, effect: Effect) {
        match (frontend_of(&effect, self.any_frontend), effect) {
            (Some(frontend), effect) => self.outlet.send(frontend, effect),
            (None, Effect::Created(id)) => self.directory.created(&id),
            (None, Effect::Ended(id)) => self.directory.release(&id),
            (None, effect) => debug_assert!(false, "{effect:?} is for somebody"),
        }
    }

    fn count_copies(&mut self) {
        let (copies, in_flight) = (self.core.held(), self.core.in_flight());
        let bytes = copies * limits::COPY_OVERHEAD_BYTES + in_flight * limits::IN_FLIGHT_OVERHEAD_BYTES;
        let counted = std::mem::replace(&mut self.counted_copies, bytes);
        if bytes != counted {
            self.memory.add(bytes as i64 - counted as i64);
        }
    }
}

/// The frontend that an effect is for; none where it is for all.
fn frontend_of(effect: &Effect, any_frontend: usize) -> Option<usize> {
    match effect {
        Effect::Member(member, _) => Some(member.frontend.into()),
        Effect::Answer(ticket, _) => Some(ticket.frontend.into()),
        Effect::DeadLetter(_) => Some(any_frontend),
        Effect::Created(_) | Effect::Ended(_) => None,
    }
}
