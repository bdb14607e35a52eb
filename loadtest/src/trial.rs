//! One measurement from the opening of its streams to the verdict of its ledger.
//!
//! ```text
//! Opening ──all ready──▶ Running ──────────────────▶ Draining ──nothing outstanding──▶ Stopped
//!                        │ warm-up │ measured window │          or the patience is over
//!                        start     measured_from     until
//! ```

mod conduct;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use crate::broker::Broker;
use crate::clock;
use crate::failure::Failure;
use crate::ledger::Ledger;
use crate::window::Window;

#[derive(Debug, Clone, Copy)]
pub enum Phase {
    Opening,
    Running(Window),
    Stopped,
}

/// What all threads of a measurement share.
pub struct Trial {
    /// In every payload.
    pub run: u32,
    pub address: String,
    pub ledger: Arc<Ledger>,
    pub gate: Gate,
    phase: watch::Sender<Phase>,
    /// Roles that are not ready yet.
    opening: AtomicUsize,
    /// Roles that have something to do when all others are ready.
    preparing: AtomicUsize,
    /// Publishers, and others that end by themselves, that have not ended yet.
    active: AtomicUsize,
    failure: Mutex<Option<Failure>>,
    notes: Mutex<Vec<String>>,
    /// Messages of a schedule that were never sent.
    unsent: AtomicU64,
}

impl Trial {
    /// `most_outstanding`: copies of messages that publishers keep in the broker at most.
    pub fn new(broker: &Broker, ledger: Arc<Ledger>, most_outstanding: u64) -> Arc<Trial> {
        Arc::new(Trial {
            // Different enough between runs on one broker, and between load tests side by side.
            run: std::process::id().wrapping_mul(0x9e37_79b9) ^ clock::now() as u32,
            address: broker.address().to_owned(),
            ledger,
            gate: Gate { bound: most_outstanding, waiting: AtomicUsize::new(0), opened: Notify::new() },
            phase: watch::Sender::new(Phase::Opening),
            opening: AtomicUsize::new(0),
            preparing: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            failure: Mutex::new(None),
            notes: Mutex::new(Vec::new()),
            unsent: AtomicU64::new(0),
        })
    }

    /// A name that no other run on the same broker uses.
    pub fn unique(&self, name: &str) -> String {
        format!("loadtest.{:08x}.{name}", self.run)
    }

    pub(crate) fn expect(&self, ready: usize, active: usize) {
        self.opening.store(ready, Ordering::SeqCst);
        self.active.store(active, Ordering::SeqCst);
    }

    /// One role is ready to begin.
    pub fn ready(&self) {
        self.opening.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn active_ended(&self) {
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// The run can't go on.
    pub fn fail(&self, failure: Failure) {
        let mut first = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.get_or_insert(failure);
    }

    /// So many messages of a schedule could not be sent within the window.
    pub fn unsent(&self, messages: u64) {
        self.unsent.fetch_add(messages, Ordering::Relaxed);
    }

    /// Something that the reader of the report must know; the same is told once.
    pub fn note(&self, note: String) {
        let mut notes = self.notes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Waits for the go.
    pub async fn running(&self) -> Window {
        let mut phase = self.phase.subscribe();
        loop {
            if let Phase::Running(window) = *phase.borrow_and_update() {
                return window;
            }
            if phase.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(crate) async fn stopped(&self) {
        let mut phase = self.phase.subscribe();
        // The sender lives as long as the trial, so waiting cannot fail.
        let _ = phase.wait_for(|phase| matches!(phase, Phase::Stopped)).await;
    }
}

/// Holds publishers back while enough of their messages are in the broker: without it, a run that goes as
/// fast as it can would measure how long its own backlog is.
pub struct Gate {
    bound: u64,
    waiting: AtomicUsize,
    opened: Notify,
}

impl Gate {
    /// How many more may be sent now.
    pub fn room(&self, ledger: &Ledger) -> u64 {
        self.bound.saturating_sub(ledger.outstanding())
    }

    /// Waits until there is room.
    pub async fn open(&self, ledger: &Ledger) {
        loop {
            let opened = self.opened.notified();
            tokio::pin!(opened);
            opened.as_mut().enable();
            self.waiting.store(1, Ordering::SeqCst);
            if self.room(ledger) > 0 {
                return;
            }
            opened.await;
        }
    }

    /// Messages were settled: publishers look again.
    pub fn look(&self) {
        if self.waiting.load(Ordering::Relaxed) != 0 && self.waiting.swap(0, Ordering::SeqCst) != 0 {
            self.opened.notify_waiters();
        }
    }
}
