//! What a run found, as plain data: the table, the JSON file and the HTML page all show this.
//!
//! Rates are per second, latencies in microseconds, sizes in bytes, times in seconds; the field's
//! name says which. The JSON file is [`Report`] as serde writes it.

pub mod environment;
pub mod html;
mod rounds;
#[cfg(test)]
pub mod sample;
mod summary;
pub mod table;
mod units;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::ledger::Verdict;
pub use environment::Environment;

/// A run that reaches less than this share of what was offered has not kept up.
pub const KEPT_UP: f64 = 0.97;

/// Everything that one call of the load test found.
#[derive(Debug, Serialize)]
pub struct Report {
    pub environment: Environment,
    pub runs: Vec<Run>,
}

impl Report {
    /// Whether every ledger was in order.
    pub fn passed(&self) -> bool {
        self.runs.iter().all(Run::passed)
    }
}

/// One measurement: a scenario with one set of parameters.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Run {
    /// The subcommand, such as `queue`.
    pub scenario: &'static str,
    /// Tells this run from the others of the same scenario, such as `256 in flight, stream`.
    pub name: String,
    /// What was asked for, by option.
    pub parameters: BTreeMap<String, String>,
    /// How long was measured, warm-up left out.
    pub seconds: f64,
    /// What `offered` and `achieved` count, such as `messages`.
    pub unit: &'static str,
    /// Rate asked for; none where the run goes as fast as it can.
    pub offered: Option<f64>,
    /// Rate reached; none where the scenario measures something else.
    pub achieved: Option<f64>,
    /// Times that were measured, the most telling first.
    pub distributions: Vec<Distribution>,
    pub cost: Option<Cost>,
    /// Name of the run of this scenario that its CPU a message is to be compared with.
    pub compared_with: Option<String>,
    pub client: Option<ClientCost>,
    /// What only this scenario measures.
    pub figures: Vec<Figure>,
    /// What went on over time: rates, memory.
    pub series: Vec<Series>,
    /// What the reader must know to believe the numbers: saturation, a busy client, a step left out.
    pub notes: Vec<String>,
    pub verdict: Verdict,
    /// All rounds as they were made, where this is the one in the middle of several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Run>,
}

impl Run {
    pub fn passed(&self) -> bool {
        self.verdict.passed()
    }

    /// Whether the offered rate was reached, near enough; also where none was offered.
    pub fn kept_up(&self) -> bool {
        match (self.offered, self.achieved) {
            (Some(offered), Some(achieved)) => achieved >= KEPT_UP * offered,
            _ => true,
        }
    }
}

/// A distribution of times.
#[derive(Debug, Clone, Serialize)]
pub struct Distribution {
    /// What was timed, from what to what, such as `publish to delivery`.
    pub name: String,
    pub count: u64,
    pub mean_us: f64,
    pub min_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub p9999_us: f64,
    pub max_us: f64,
    /// The whole curve: share of all (0 to 1, rising) and the time that so many stayed within.
    pub curve: Vec<(f64, f64)>,
}

impl Distribution {
    /// From a histogram of nanoseconds; none where nothing was timed.
    pub fn new(name: impl Into<String>, histogram: &Histogram<u64>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let us = |nanos: u64| nanos as f64 / 1e3;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        Some(Distribution {
            name: name.into(),
            count: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            min_us: us(histogram.min()),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: us(histogram.max()),
            curve: histogram
                .iter_quantiles(5)
                .map(|step| (step.quantile_iterated_to(), us(step.value_iterated_to())))
                .collect(),
        })
    }
}

/// What the broker used meanwhile.
#[derive(Debug, Clone, Serialize)]
pub struct Cost {
    /// Where the figures come from: `/proc` of the broker's process or its own `metrics`.
    pub source: &'static str,
    pub cpu_seconds: f64,
    /// CPU-seconds a million messages, which is the same as microseconds a message; none where nothing was achieved.
    pub cpu_us_per_message: Option<f64>,
    /// Cores kept busy, on average.
    pub cores: f64,
    pub peak_resident_bytes: u64,
}

/// What the load test itself used, so that a reader sees which side was the bottleneck.
#[derive(Debug, Clone, Serialize)]
pub struct ClientCost {
    pub threads: usize,
    /// Cores kept busy, on average.
    pub cores: f64,
    /// Share of the time in which the machine's cores had work, this and other programs' (0 to 1).
    pub machine_busy: f64,
    /// Whether the client's threads had no time left: the broker could have done more.
    pub saturated: bool,
}

/// A named number.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
}

/// Values over time.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    pub name: String,
    pub unit: &'static str,
    /// Seconds since the start of the measurement, and the value.
    pub points: Vec<(f64, f64)>,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn json_has_the_names_that_readers_rely_on() {
        let json = serde_json::to_string(&sample::report()).expect("plain data");
        let report: Value = serde_json::from_str(&json).expect("what was written can be read");
        let run = &report["runs"][0];
        assert_eq!(run["scenario"], "queue");
        assert_eq!(run["name"], "unary, 1 in flight");
        assert_eq!(run["achieved"], 9_120.0);
        assert_eq!(run["offered"], Value::Null);
        assert!(run["cost"]["cpu_us_per_message"].as_f64() > Some(1.0));
        assert!(run["distributions"][0]["p999_us"].as_f64() > run["distributions"][0]["p50_us"].as_f64());
        assert_eq!(run["verdict"]["sent"], 273_600);
        assert_eq!(report["environment"]["broker"]["shards"], 1);
        let failed = &report["runs"][12]["verdict"]["broken"];
        assert_eq!((&failed["lost"], &failed["reordered"]), (&Value::from(12), &Value::from(1)));
    }

    #[test]
    fn a_distribution_tells_its_times_in_microseconds() {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        assert!(Distribution::new("none", &histogram).is_none());
        histogram.record_n(2_000, 99).expect("in range");
        histogram.record(1_000_000).expect("in range");
        let times = Distribution::new("some", &histogram).expect("some times");
        assert_eq!((times.count, times.p50_us, times.p99_us), (100, 2.0, 2.0));
        assert!((times.max_us - 1_000.0).abs() < 1.0, "{}", times.max_us);
        assert!(times.curve.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
        assert_eq!(times.curve.last().map(|(share, _)| *share), Some(1.0));
    }
}
