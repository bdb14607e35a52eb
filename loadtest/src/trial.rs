//! One measurement from the opening of its streams to the verdict of its ledger.
//!
//! ```text
//! Opening ──all ready──▶ Running ──────────────────▶ Draining ──nothing outstanding──▶ Stopped
//!                        │ warm-up │ measured window │          or the patience is over
//!                        start     measured_from     until
//! ```

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::broker::Broker;
use crate::clock::{self, Nanos};
use crate::crew::Crew;
use crate::failure::Failure;
use crate::ledger::Ledger;
use crate::machine::Busy;
use crate::measured::{Measured, Phases};
use crate::progress::Progress;
use crate::recorder::Recorder;

/// How often memory is sampled.
const SAMPLE: Duration = Duration::from_millis(250);
/// How often the end of draining is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long the opening of all streams may take.
const OPENING: Duration = Duration::from_secs(120);
/// How long the run listens on after all is settled, for messages that should not come.
const QUIET: Duration = Duration::from_millis(100);
/// How long the broker may take to read the last acks.
const SETTLING: Duration = Duration::from_secs(5);
/// From the go to the first publish, so that every thread has heard it.
const HEAD_START: Duration = Duration::from_millis(20);

/// When publishers send, and which part of that is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    pub start: Nanos,
    pub measured_from: Nanos,
    pub until: Nanos,
}

impl Window {
    pub fn measures(&self, moment: Nanos) -> bool {
        (self.measured_from..self.until).contains(&moment)
    }

    pub fn seconds(&self) -> f64 {
        (self.until - self.measured_from) as f64 / 1e9
    }
}

/// How long the parts take.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub warm_up: Duration,
    pub measured: Duration,
    /// How long what was published may take to be settled after the last publish.
    pub drain: Duration,
}

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

    /// Runs the crew from opening to verdict.
    pub async fn conduct(
        self: &Arc<Self>,
        crew: Crew,
        broker: &Broker,
        timing: Timing,
        progress: &Progress,
    ) -> Result<Measured, Failure> {
        let running = crew.start(Arc::clone(self));
        let result = self.phases(broker, timing, progress).await;
        self.phase.send_replace(Phase::Stopped);
        let mut recorder = Recorder::default();
        let threads = running.len();
        for thread in running {
            let joined = tokio::task::spawn_blocking(|| thread.join()).await;
            match joined {
                Ok(Ok(theirs)) => recorder.merge(theirs),
                _ => return Err(Failure::Unexpected("a thread of the load test panicked".into())),
            }
        }
        let phases = result?;
        self.check()?;
        let mut notes =
            std::mem::take(&mut *self.notes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        let unsent = self.unsent.load(Ordering::Relaxed);
        if unsent * 1000 > self.ledger.finish().sent {
            notes.push(format!("saturated: {unsent} messages of the schedule could not be sent in time"));
        }
        let mut verdict = self.ledger.finish();
        verdict.left_in_flight(phases.left_in_flight);
        Ok(Measured { recorder, verdict, notes, threads, source: broker.source(), phases })
    }

    async fn phases(&self, broker: &Broker, timing: Timing, progress: &Progress) -> Result<Phases, Failure> {
        let began = clock::now();
        self.wait(OPENING, "opening all streams", |trial| trial.opening.load(Ordering::SeqCst) == 0).await?;
        let opening = clock::duration(clock::now() - began);
        let idle = broker.usage().await?;
        let start = clock::now() + clock::nanos(HEAD_START);
        let measured_from = start + clock::nanos(timing.warm_up);
        let window = Window { start, measured_from, until: measured_from + clock::nanos(timing.measured) };
        self.phase.send_replace(Phase::Running(window));

        progress.step("warming up");
        clock::sleep_until(window.measured_from).await;
        let (before, busy) = (broker.usage().await?, Busy::now());
        let mut samples = vec![(0.0, before.clone())];
        let mut next = window.measured_from;
        while clock::now() < window.until {
            next = (next + clock::nanos(SAMPLE)).min(window.until);
            clock::sleep_until(next).await;
            self.check()?;
            let seconds = (next - window.measured_from) / 1_000_000_000;
            progress.step(format!("measuring, {seconds} s of {:.0}", window.seconds()));
            samples.push(((next - window.measured_from) as f64 / 1e9, broker.usage().await?));
        }
        let busy = Busy::now().since(&busy);
        progress.step("settling what was published");
        let settled =
            |trial: &Trial| trial.active.load(Ordering::SeqCst) == 0 && trial.ledger.outstanding() == 0;
        let drained = self.wait(timing.drain, "settling what was published", settled).await;
        match drained {
            // The ledger names what is missing.
            Err(Failure::TooLong { .. }) if self.active.load(Ordering::SeqCst) == 0 => {}
            other => other?,
        }
        // What comes too much comes soon.
        tokio::time::sleep(QUIET).await;
        let left_in_flight = self.left_in_flight(broker).await?;
        samples.push(((clock::now() - window.measured_from) as f64 / 1e9, broker.usage().await?));
        Ok(Phases { window, opening, idle, before, samples, busy, left_in_flight })
    }

    /// Deliveries that a broker of our own has in flight although everything was acked: acks in a stream are not
    /// answered, so that only the broker can tell.
    async fn left_in_flight(&self, broker: &Broker) -> Result<u64, Failure> {
        if !broker.is_own() || self.ledger.outstanding() > 0 {
            return Ok(0);
        }
        let end = clock::now() + clock::nanos(SETTLING);
        loop {
            let in_flight = broker.stats().await?.in_flight;
            if in_flight == 0 || clock::now() > end {
                return Ok(in_flight);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let mut failure = self.failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.take().map_or(Ok(()), Err)
    }

    async fn wait(&self, limit: Duration, what: &str, done: impl Fn(&Trial) -> bool) -> Result<(), Failure> {
        let end = clock::now() + clock::nanos(limit);
        while !done(self) {
            self.check()?;
            if clock::now() > end {
                return Err(Failure::TooLong { what: what.to_owned(), limit });
            }
            tokio::time::sleep(LOOK).await;
        }
        self.check()
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
