use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use super::{Directory, Placement};
use crate::memory::Memory;

/// Where the process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    Serving,
    /// No new work; what is in flight may be settled.
    Draining,
    /// Streams end and connections close.
    Closing,
}

/// What all executors of a process share. Written seldom: flags when they change, nothing a message.
pub struct Shared {
    pub directory: Arc<Directory>,
    pub placement: Placement,
    /// How long a drain may take.
    pub grace: Duration,
    pub memory: &'static Memory,
    phase: AtomicU8,
    shards: Vec<ShardFlags>,
    /// Open connections of each frontend.
    connections: Vec<AtomicUsize>,
}

#[derive(Default)]
struct ShardFlags {
    /// Some subscription lives there: publishes must come.
    live: AtomicBool,
    /// Some REJECT subscription there has little room: a publish may be refused.
    near_full: AtomicBool,
    in_flight: AtomicU64,
    /// The shard has seen that the process drains.
    drains: AtomicBool,
}

impl Shared {
    pub fn new(
        placement: Placement,
        shards: usize,
        frontends: usize,
        grace: Duration,
        memory: &'static Memory,
    ) -> Self {
        Shared {
            directory: Arc::new(Directory::default()),
            placement,
            grace,
            memory,
            phase: AtomicU8::new(Phase::Serving as u8),
            shards: (0..shards).map(|_| ShardFlags::default()).collect(),
            connections: (0..frontends).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    pub fn phase(&self) -> Phase {
        match self.phase.load(SeqCst) {
            0 => Phase::Serving,
            1 => Phase::Draining,
            _ => Phase::Closing,
        }
    }

    /// By the control thread, which then rings every doorbell.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, SeqCst);
    }

    /// By a shard, before any effect of what it applied leaves it: who reads the flags after a
    /// member's first frame reads at least what was true then.
    pub fn publish_flags(&self, shard: usize, live: bool, near_full: bool) {
        // Who sees that a shard lives sees also whether it is near full.
        self.shards[shard].near_full.store(near_full, SeqCst);
        self.shards[shard].live.store(live, SeqCst);
    }

    pub fn publish_in_flight(&self, shard: usize, in_flight: u64, drains: bool) {
        self.shards[shard].in_flight.store(in_flight, SeqCst);
        self.shards[shard].drains.store(drains, SeqCst);
    }

    /// The shards that a publish must come to.
    pub fn live_shards(&self) -> impl Iterator<Item = usize> + '_ {
        let live = |(shard, flags): (usize, &ShardFlags)| flags.live.load(SeqCst).then_some(shard);
        self.shards.iter().enumerate().filter_map(live)
    }

    /// Whether any publish may be refused.
    pub fn is_near_full(&self) -> bool {
        self.shards.iter().any(|flags| flags.near_full.load(SeqCst))
    }

    /// Whether every shard drains and nothing is in flight any more.
    pub fn is_drained(&self) -> bool {
        self.shards.iter().all(|flags| flags.drains.load(SeqCst) && flags.in_flight.load(SeqCst) == 0)
    }

    pub fn frontends(&self) -> usize {
        self.connections.len()
    }

    /// The number of a frontend's open connections.
    pub fn connections(&self, frontend: usize) -> &AtomicUsize {
        &self.connections[frontend]
    }

    pub fn all_connections(&self) -> usize {
        self.connections.iter().map(|count| count.load(SeqCst)).sum()
    }

    /// The frontend with the fewest connections.
    pub fn idlest_frontend(&self) -> usize {
        let counts = self.connections.iter().map(|count| count.load(SeqCst)).enumerate();
        counts.min_by_key(|&(_, count)| count).map_or(0, |(frontend, _)| frontend)
    }
}
