use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use super::seat::{Seat, SeatConfig};
use super::{Directory, Layout, Placement};
use crate::core::{Core, CoreConfig, Effect};
use crate::memory::Memory;
use crate::ring::{Doorbell, Outlet};

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
    /// That of each shard, in order.
    pub(super) seats: Vec<Seat>,
    /// Open connections of each frontend.
    connections: Vec<AtomicUsize>,
}

impl Shared {
    /// `outlets` are the ways out of the shards, one each, in order; `bells` the doorbells of the executors.
    pub fn new(
        layout: &Layout,
        core: &CoreConfig,
        outlets: Vec<Outlet<Effect>>,
        bells: &[Arc<Doorbell>],
        grace: Duration,
        memory: &'static Memory,
    ) -> Self {
        let directory = Arc::<Directory>::default();
        let seat = |(shard, (outlet, bell)): (usize, (Outlet<Effect>, &Arc<Doorbell>))| {
            Seat::new(SeatConfig {
                core: Core::new(core.clone()),
                outlet,
                bell: bell.clone(),
                directory: directory.clone(),
                memory,
                any_frontend: shard % layout.frontends,
            })
        };
        Shared {
            seats: outlets.into_iter().zip(bells).enumerate().map(seat).collect(),
            directory,
            placement: layout.placement(),
            grace,
            memory,
            phase: AtomicU8::new(Phase::Serving as u8),
            connections: (0..layout.frontends).map(|_| AtomicUsize::new(0)).collect(),
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

    /// The shards that a publish must come to.
    pub fn live_shards(&self) -> impl Iterator<Item = usize> + '_ {
        let live = |(shard, seat): (usize, &Seat)| seat.is_live().then_some(shard);
        self.seats.iter().enumerate().filter_map(live)
    }

    /// Whether any publish may be refused.
    pub fn is_near_full(&self) -> bool {
        self.seats.iter().any(Seat::is_near_full)
    }

    /// Whether every shard drains and nothing is in flight any more.
    pub fn is_drained(&self) -> bool {
        self.seats.iter().all(Seat::is_drained)
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
