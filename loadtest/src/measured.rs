//! What a measurement found, and the run of the report that it makes.

use std::time::Duration;

use crate::broker::Usage;
use crate::ledger::Verdict;
use crate::machine::Busy;
use crate::recorder::Recorder;
use crate::report::{ClientCost, Cost, Run, Series};
use crate::window::Window;

/// What was sampled along the way.
pub struct Phases {
    pub window: Window,
    /// How long it took until all streams were open.
    pub opening: Duration,
    /// When all streams were open and nothing had been sent.
    pub idle: Usage,
    pub before: Usage,
    /// Seconds since the measurement began, and what the broker used until then.
    pub samples: Vec<(f64, Usage)>,
    pub busy: Busy,
    /// The fewest copies of messages that were in the broker when it was looked at.
    pub least_outstanding: u64,
    /// What the broker had in flight when everything was acked.
    pub left_in_flight: u64,
}

/// A measurement's result.
pub struct Measured {
    pub recorder: Recorder,
    pub verdict: Verdict,
    pub notes: Vec<String>,
    /// Of the load test.
    pub threads: usize,
    /// Where the broker's usage comes from.
    pub source: &'static str,
    pub phases: Phases,
}

impl Measured {
    pub fn seconds(&self) -> f64 {
        self.phases.window.seconds()
    }

    /// How long it took until all streams were open, connections included.
    pub fn opening(&self) -> Duration {
        self.phases.opening
    }

    /// The broker when all streams were open and nothing had been sent.
    pub fn idle(&self) -> &Usage {
        &self.phases.idle
    }

    /// The fewest copies of messages that were in the broker at one time.
    pub fn least_outstanding(&self) -> u64 {
        self.phases.least_outstanding
    }

    /// A run of the report with all that every scenario has. `unit`: what an arrival is called.
    pub fn into_run(self, scenario: &'static str, name: String, unit: &'static str) -> Run {
        let seconds = self.seconds();
        let achieved = self.recorder.arrived() as f64 / seconds;
        let client = self.client();
        let mut notes = self.notes.clone();
        if client.saturated {
            notes.push(
                "the load test's own threads were busy all the time: the broker could have done more".into(),
            );
        }
        notes.extend(self.starved());
        Run {
            scenario,
            name,
            seconds,
            unit,
            achieved: Some(achieved),
            distributions: self.recorder.distributions(),
            cost: Some(self.cost()),
            client: Some(client),
            series: vec![self.recorder.rate(unit), self.memory()],
            notes,
            verdict: self.verdict,
            ..Run::default()
        }
    }

    fn cost(&self) -> Cost {
        let Phases { before, samples, window, .. } = &self.phases;
        let cpu_seconds = self.at_end().cpu_seconds - before.cpu_seconds;
        let arrived = self.recorder.arrived();
        Cost {
            source: self.source,
            cpu_seconds,
            cpu_us_per_message: (arrived > 0).then(|| cpu_seconds * 1e6 / arrived as f64),
            cores: cpu_seconds / window.seconds(),
            peak_resident_bytes: samples
                .iter()
                .map(|(_, usage)| usage.resident_bytes)
                .max()
                .unwrap_or_default(),
        }
    }

    /// The broker at the end of the window.
    fn at_end(&self) -> &Usage {
        let Phases { before, samples, .. } = &self.phases;
        // The last sample is after draining.
        samples.len().checked_sub(2).map_or(before, |at| &samples[at].1)
    }

    /// What to say where the broker's threads had to wait for cores.
    fn starved(&self) -> Option<String> {
        /// Threads that wait, on average.
        const MANY: f64 = 0.5;
        let waited = (self.at_end().waited_seconds - self.phases.before.waited_seconds) / self.seconds();
        (waited >= MANY).then(|| {
            format!(
                "the machine was too busy: {waited:.1} of the broker's threads had work and waited for a core, on \
                 average, so the times are longer than the broker's own"
            )
        })
    }

    fn client(&self) -> ClientCost {
        /// Threads that are this busy have no time left.
        const SATURATED: f64 = 0.9;
        let cores = self.phases.busy.own_cpu_seconds / self.seconds();
        ClientCost {
            threads: self.threads,
            cores,
            machine_busy: self.phases.busy.machine_share,
            saturated: cores >= SATURATED * self.threads as f64,
        }
    }

    pub fn memory(&self) -> Series {
        self.sampled("broker memory", "bytes", |usage| usage.resident_bytes as f64)
    }

    pub fn descriptors(&self) -> Series {
        self.sampled("broker descriptors", "descriptors", |usage| usage.descriptors as f64)
    }

    /// Cores that the broker kept busy, from each sample to the next.
    pub fn cores(&self) -> Series {
        let cores = self.phases.samples.windows(2).filter(|pair| pair[1].0 > pair[0].0).map(|pair| {
            let (from, to) = (&pair[0], &pair[1]);
            (to.0, (to.1.cpu_seconds - from.1.cpu_seconds) / (to.0 - from.0))
        });
        Series { name: "broker CPU".into(), unit: "cores", points: cores.collect() }
    }

    fn sampled(&self, name: &str, unit: &'static str, of: impl Fn(&Usage) -> f64) -> Series {
        let points = self.phases.samples.iter().map(|(at, usage)| (*at, of(usage)));
        Series { name: name.into(), unit, points: points.collect() }
    }
}
