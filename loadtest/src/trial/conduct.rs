//! How a measurement goes on: opening, warm-up, the measured window, settling, verdict.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Phase, Trial};
use crate::broker::Broker;
use crate::clock;
use crate::crew::Crew;
use crate::failure::Failure;
use crate::machine::Busy;
use crate::measured::{Measured, Phases};
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::window::{Timing, Window};

/// How often memory is sampled.
const SAMPLE: Duration = Duration::from_millis(250);
/// How often the end of draining is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long it may take to open all streams, and to fill queues.
const OPENING: Duration = Duration::from_secs(120);
/// How long the run listens on after all is settled, for messages that should not come.
const QUIET: Duration = Duration::from_millis(100);
/// How long the broker may take to read the last acks.
const SETTLING: Duration = Duration::from_secs(5);
/// From the go to the first publish, so that every thread has heard it.
const HEAD_START: Duration = Duration::from_millis(20);

impl Trial {
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
        let mut verdict = self.ledger.finish();
        verdict.left_in_flight(phases.left_in_flight);
        let mut notes =
            std::mem::take(&mut *self.notes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        let unsent = self.unsent.load(Ordering::Relaxed);
        // The last one or two of a schedule may be due in the moment in which it ends.
        if unsent * 1000 > verdict.sent {
            notes.push(format!("saturated: {unsent} messages of the schedule could not be sent in time"));
        }
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
        let mut least_outstanding = self.ledger.outstanding();
        while clock::now() < window.until {
            next = (next + clock::nanos(SAMPLE)).min(window.until);
            clock::sleep_until(next).await;
            self.check()?;
            let seconds = (next - window.measured_from) / 1_000_000_000;
            progress.step(format!("measuring, {seconds} s of {:.0}", window.seconds()));
            samples.push(((next - window.measured_from) as f64 / 1e9, broker.usage().await?));
            least_outstanding = least_outstanding.min(self.ledger.outstanding());
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
        Ok(Phases { window, opening, idle, before, samples, busy, least_outstanding, left_in_flight })
    }

    /// Waits until all roles are ready but those that wait here: for what is to be done before the go.
    pub async fn others_ready(&self) {
        self.preparing.fetch_add(1, Ordering::SeqCst);
        // One that has done its work is ready, and still among those who waited.
        while self.opening.load(Ordering::SeqCst) > self.preparing.load(Ordering::SeqCst) {
            tokio::time::sleep(LOOK).await;
        }
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
