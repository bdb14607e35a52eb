//! What one thread of the load test measures; merged at the end of a run.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::clock::Nanos;
use crate::report::{Distribution, Series};
use crate::window::Window;

/// Longest time that is told exactly; longer ones count as this.
const LONGEST: Nanos = 600_000_000_000;
/// The rate over time is counted in steps of this.
const STEP: Nanos = 100_000_000;

/// Names of the times that scenarios share.
pub mod timed {
    /// From the time at which the schedule wanted a message sent to its delivery.
    pub const DELIVERY: &str = "intended send to delivery";
    /// From the same to the delivery at the last of all receivers.
    pub const LAST_DELIVERY: &str = "intended send to the last receiver";
    /// From the same to the broker's confirm.
    pub const CONFIRM: &str = "intended send to confirm";
    /// From the beginning of a Subscribe call to its first event.
    pub const OPEN: &str = "open to first event";
    /// From the moment at which the first of many idle streams was to be woken to the delivery at each.
    pub const WAKE: &str = "begin of the wake-up to delivery";
    /// From the time at which a message was sent to its delivery.
    pub const SENT: &str = "send to delivery";
    /// Of a unary publish on the connection of other streams, from the time at which it was due to its answer.
    pub const CALL: &str = "unary call meanwhile";
    /// From the time at which a publish was due to its confirm, on a connection that is opened for it.
    pub const NEW_CONNECTION: &str = "new connection to confirm";
}

#[derive(Default)]
pub struct Recorder {
    window: Window,
    /// What arrived while it was measured.
    arrived: u64,
    /// What arrived, by step since the start, warm-up included.
    steps: Vec<u64>,
    delivery: Option<Histogram<u64>>,
    times: BTreeMap<&'static str, Histogram<u64>>,
}

impl Recorder {
    pub fn begin(&mut self, window: Window) {
        self.window = window;
    }

    /// A message came whose sending was intended at a time.
    pub fn delivered(&mut self, intended: Nanos, now: Nanos) {
        self.count(now);
        if self.window.measures(intended) {
            record(self.delivery.get_or_insert_with(histogram), now.saturating_sub(intended));
        }
    }

    /// A message that was intended at a time had not even been sent by now: it took at least so long.
    pub fn unsent(&mut self, intended: Nanos, now: Nanos) {
        if self.window.measures(intended) {
            record(self.delivery.get_or_insert_with(histogram), now.saturating_sub(intended));
            self.took(timed::CONFIRM, intended, now);
        }
    }

    /// Something was achieved now.
    pub fn count(&mut self, now: Nanos) {
        if now >= self.window.until {
            return;
        }
        self.arrived += u64::from(self.window.measures(now));
        let step = (now.saturating_sub(self.window.start) / STEP) as usize;
        if self.steps.len() <= step {
            self.steps.resize(step + 1, 0);
        }
        self.steps[step] += 1;
    }

    /// Something that was intended at a time, within what is measured, took until now.
    pub fn took(&mut self, name: &'static str, intended: Nanos, now: Nanos) {
        if self.window.measures(intended) {
            self.time(name, now.saturating_sub(intended));
        }
    }

    /// Something took so long, whenever it was.
    pub fn time(&mut self, name: &'static str, nanos: Nanos) {
        record(self.times.entry(name).or_insert_with(histogram), nanos);
    }

    pub fn merge(&mut self, other: Recorder) {
        self.window = other.window;
        self.arrived += other.arrived;
        if self.steps.len() < other.steps.len() {
            self.steps.resize(other.steps.len(), 0);
        }
        for (mine, theirs) in self.steps.iter_mut().zip(other.steps) {
            *mine += theirs;
        }
        if let Some(delivery) = other.delivery {
            add(self.delivery.get_or_insert_with(histogram), &delivery);
        }
        for (name, times) in other.times {
            add(self.times.entry(name).or_insert_with(histogram), &times);
        }
    }

    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    pub fn distributions(&self) -> Vec<Distribution> {
        let delivery = self.delivery.iter().map(|histogram| (timed::DELIVERY, histogram));
        let times = self.times.iter().map(|(name, histogram)| (*name, histogram));
        delivery.chain(times).filter_map(|(name, histogram)| Distribution::new(name, histogram)).collect()
    }

    /// What arrived a second, over time.
    pub fn rate(&self, unit: &'static str) -> Series {
        let seconds = STEP as f64 / 1e9;
        let warm_up = self.window.measured_from.saturating_sub(self.window.start) as f64 / 1e9;
        let whole_steps = ((self.window.until.saturating_sub(self.window.start)) / STEP) as usize;
        let steps = self.steps.iter().take(whole_steps).enumerate();
        let points = steps.map(|(step, &count)| (step as f64 * seconds - warm_up, count as f64 / seconds));
        Series { name: format!("{unit} a second"), unit: "/s", points: points.collect() }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("one nanosecond to ten minutes, to three figures")
}

/// Both have the same bounds, so nothing is out of them.
fn add(histogram: &mut Histogram<u64>, other: &Histogram<u64>) {
    histogram.add(other).expect("histograms of one kind");
}

fn record(histogram: &mut Histogram<u64>, nanos: Nanos) {
    histogram.saturating_record(nanos.max(1));
}
