//! A report of made-up runs, to test the reports with: every kind of run that scenarios make.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::environment::{Broker, Environment, Machine, Program};
use super::{ClientCost, Cost, Distribution, Figure, Report, Run, Series};
use crate::ledger::{Promise, Verdict};

pub fn report() -> Report {
    let mut runs = queues();
    runs.extend(sweep());
    runs.extend([failing(), failover(), soak()]);
    Report { environment: environment(), runs }
}

pub fn environment() -> Environment {
    let arguments = ["--shards", "1", "--metrics", "127.0.0.1:9090"].map(str::to_owned).to_vec();
    Environment {
        date: "2026-03-01T12:00:00Z".to_owned(),
        command: "tinybroker-loadtest all --spawn ./tinybroker --seconds 30 --html report.html".to_owned(),
        loadtest: Program { version: "0.1.0", commit: "0123456789ab", optimized: true },
        machine: Machine {
            kernel: "6.18.5".to_owned(),
            architecture: "x86_64",
            cpu: "Example CPU @ 2.50 GHz".to_owned(),
            cores: Some(2),
            memory_bytes: Some(8_200_000_000),
            virtual_machine: Some(true),
        },
        broker: Broker {
            address: "127.0.0.1:50051".to_owned(),
            version: "0.1.0".to_owned(),
            shards: 1,
            frontends: 1,
            cores: vec![0],
            arguments: Some(arguments),
            on_this_machine: true,
        },
    }
}

/// Times from a stretched exponential, whose tail is longer the larger `heaviness` is.
pub fn distribution(name: &str, count: u32, median_us: f64, heaviness: f64) -> Distribution {
    let mut histogram =
        Histogram::<u64>::new_with_bounds(1, 600_000_000_000, 3).expect("ten minutes to three digits");
    for index in 0..count {
        let rest = 1.0 - (f64::from(index) + 0.5) / f64::from(count);
        let stretched = (-rest.ln() / std::f64::consts::LN_2).powf(heaviness);
        histogram.saturating_record(((0.4 + 0.6 * stretched) * median_us * 1e3) as u64);
    }
    Distribution::new(name, &histogram).expect("something was timed")
}

/// A value that wobbles around `mean` in the same way every time.
pub fn series(name: &str, unit: &'static str, from: f64, step: f64, count: u32, mean: f64) -> Series {
    let wobble = |index: f64| 1.0 + 0.06 * (index * 0.7).sin() + 0.04 * (index * 2.3).cos();
    let points = (0..count).map(f64::from).map(|index| (from + index * step, mean * wobble(index)));
    Series { name: name.to_owned(), unit, points: points.collect() }
}

fn queues() -> Vec<Run> {
    let shapes = [
        ("unary, 1 in flight", 9_120.0, 96.0, 1.1, false),
        ("stream, 1 in flight", 11_400.0, 81.0, 1.1, false),
        ("unary, 256 in flight", 88_300.0, 2_400.0, 0.8, false),
        ("stream, 256 in flight", 412_000.0, 590.0, 0.9, true),
    ];
    let run = |(name, rate, median, heaviness, saturated): (&str, f64, f64, f64, bool)| Run {
        scenario: "queue",
        name: name.to_owned(),
        parameters: parameters(&[("payload", "100"), ("workers", "8"), ("publish", &name[..6])]),
        seconds: 30.0,
        unit: "messages",
        achieved: Some(rate),
        distributions: vec![distribution(
            "intended send to delivery",
            (rate * 0.4) as u32,
            median,
            heaviness,
        )],
        cost: Some(cost(30.0, rate)),
        client: Some(client(saturated)),
        series: vec![
            series("messages a second", "/s", -2.0, 0.5, 64, rate),
            series("broker memory", "bytes", 0.0, 0.25, 120, 14e6 + rate * 40.0),
        ],
        verdict: verdict(rate as u64 * 30),
        ..Run::default()
    };
    shapes.into_iter().map(run).collect()
}

fn sweep() -> Vec<Run> {
    let rates = [5e3, 1e4, 2e4, 5e4, 1e5, 1.5e5, 2e5, 3e5];
    let run = |offered: f64| {
        let achieved = offered.min(183_000.0);
        let load = achieved / 184_000.0;
        let queueing = if offered > achieved { 90.0 } else { 1.0 / (1.0 - load).powf(0.8) };
        Run {
            scenario: "latency",
            name: format!("{} k/s", offered / 1e3),
            parameters: parameters(&[("payload", "100"), ("rate", &offered.to_string())]),
            seconds: 30.0,
            unit: "messages",
            offered: Some(offered),
            achieved: Some(achieved),
            distributions: vec![
                distribution(
                    "intended send to delivery",
                    (achieved * 0.3) as u32,
                    150.0 * queueing,
                    1.3 + load,
                ),
                distribution(
                    "intended send to confirm",
                    (achieved * 0.3) as u32,
                    120.0 * queueing,
                    1.2 + load,
                ),
            ],
            cost: Some(cost(30.0, achieved)),
            client: Some(client(offered > 2.5e5)),
            verdict: verdict(achieved as u64 * 30),
            ..Run::default()
        }
    };
    rates.into_iter().map(run).collect()
}

/// A run that broke promises.
pub fn failing() -> Run {
    let lost =
        (0..10).map(|index| format!("lost: message {} of lane \"p3\" never came to \"s7\"", index * 2));
    let reordered = "out of order: message 1204 of lane \"p1\" came after 1207 to \"s2\"".to_owned();
    let verdict = Verdict {
        broken: BTreeMap::from([(Promise::Lost, 12), (Promise::Reordered, 1)]),
        named: lost.chain([reordered]).collect(),
        ..verdict(240_000)
    };
    Run {
        scenario: "fan-out",
        name: "16 subscribers".to_owned(),
        parameters: parameters(&[("payload", "100"), ("subscribers", "16")]),
        seconds: 10.0,
        unit: "deliveries",
        achieved: Some(1_243_000.0),
        distributions: vec![distribution("intended send to delivery", 50_000, 840.0, 1.0)],
        cost: Some(cost(10.0, 1_243_000.0)),
        notes: vec![
            "Subscriber 3 was 2.1 s late to open its stream: it was left out of the first second.".to_owned(),
        ],
        verdict,
        ..Run::default()
    }
}

fn failover() -> Run {
    Run {
        scenario: "failover",
        name: "worker dies".to_owned(),
        parameters: parameters(&[("kills", "60"), ("how", "kill, reset, silence")]),
        seconds: 90.0,
        unit: "messages",
        distributions: vec![
            distribution("process killed to takeover", 60, 1_900.0, 0.6),
            distribution("connection reset to takeover", 60, 1_200.0, 0.7),
            distribution("silence to takeover", 24, 11_300_000.0, 0.2),
        ],
        figures: vec![
            Figure { name: "takeovers".to_owned(), value: 144.0, unit: "" },
            Figure { name: "longest without an owner".to_owned(), value: 12.4, unit: "seconds" },
            Figure { name: "held by the dead".to_owned(), value: 0.031, unit: "share" },
        ],
        verdict: verdict(81_000),
        ..Run::default()
    }
}

fn soak() -> Run {
    Run {
        scenario: "soak",
        name: "2 hours".to_owned(),
        parameters: parameters(&[("rate", "20000"), ("payload", "1024")]),
        seconds: 7_200.0,
        unit: "messages",
        offered: Some(20_000.0),
        achieved: Some(19_998.0),
        distributions: vec![distribution("intended send to delivery", 400_000, 210.0, 1.7)],
        cost: Some(cost(7_200.0, 19_998.0)),
        client: Some(client(false)),
        series: vec![
            series("published", "messages/s", 0.0, 1.0, 7_200, 20_000.0),
            series("delivered", "messages/s", 0.0, 1.0, 7_200, 19_000.0),
            series("broker memory", "bytes", 0.0, 1.0, 7_200, 21.4e6),
        ],
        verdict: verdict(144_000_000),
        ..Run::default()
    }
}

fn parameters(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn cost(seconds: f64, rate: f64) -> Cost {
    let cpu_us = 1.7 + 40_000.0 / rate;
    Cost {
        source: "/proc",
        cpu_seconds: cpu_us * rate * seconds / 1e6,
        cpu_us_per_message: Some(cpu_us),
        cores: cpu_us * rate / 1e6,
        peak_resident_bytes: 14_200_000 + (rate * 40.0) as u64,
    }
}

fn client(saturated: bool) -> ClientCost {
    let cores = if saturated { 0.97 } else { 0.41 };
    ClientCost { threads: 1, cores, machine_busy: 0.88, saturated }
}

fn verdict(sent: u64) -> Verdict {
    Verdict { sent, refused: 3, unknown: 1, delivered: sent - 3, redelivered: 8, ..Verdict::default() }
}
