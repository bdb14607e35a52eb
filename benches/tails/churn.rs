//! Patterns that come and go at a fixed pace among a million, while merges run beside.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tinybroker::pattern::{Index, MergeJob, Merged, Retired};

use super::{Times, against};
use crate::clock;
use crate::table::{self, time};
use crate::workload::{Workload, merge, mixed};

const PAIRS_A_SECOND: usize = 5_000;
const SUBSCRIBE_P99: f64 = 50_000.0;
const UNSUBSCRIBE_P99: f64 = 25_000.0;
const PAUSE: f64 = 1e6;

/// The thread that runs merges and drops what they replace.
struct Merger {
    jobs: mpsc::Sender<MergeJob>,
    results: mpsc::Receiver<Merged>,
    waste: mpsc::Sender<Retired>,
    is_busy: bool,
    thread: JoinHandle<()>,
}

impl Merger {
    fn start() -> Self {
        let (jobs, inbox) = mpsc::channel::<MergeJob>();
        let (outbox, results) = mpsc::channel();
        let (waste, retired) = mpsc::channel::<Retired>();
        let thread = thread::spawn(move || {
            for merged in inbox.iter().map(MergeJob::run) {
                // At the end nobody waits for the last one.
                let _ = outbox.send(merged);
                retired.try_iter().for_each(drop);
            }
        });
        Self { jobs, results, waste, is_busy: false, thread }
    }

    fn end(self) {
        drop(self.jobs);
        self.thread.join().expect("no merge fails");
    }

    /// Takes the result of a merge, or begins the next at once: more often than it would be due.
    fn advance(&mut self, index: &mut Index<usize>) -> bool {
        if !self.is_busy {
            if let Some(job) = index.begin_merge() {
                self.jobs.send(job).expect("the thread runs");
                self.is_busy = true;
            }
            return self.is_busy;
        }
        let Ok(merged) = self.results.try_recv() else { return false };
        self.waste.send(index.finish_merge(merged)).expect("the thread runs");
        self.is_busy = false;
        true
    }
}

/// Calls of one kind.
#[derive(Default)]
struct Calls {
    /// On the clock.
    each: Times,
    /// CPU time.
    longest: Duration,
}

impl Calls {
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let used = clock::now();
        let begun = Instant::now();
        let result = work();
        let elapsed = begun.elapsed();
        self.longest = self.longest.max(clock::now() - used);
        self.each.0.push(elapsed.as_nanos() as u64);
        result
    }

    fn row(&mut self, name: &str, p99: Option<f64>) -> Vec<String> {
        let time_of = self.each.permille(990);
        let p99 = p99.map_or_else(|| time(time_of), |target| against(target, time_of));
        let longest = against(PAUSE, self.longest.as_nanos() as f64);
        let count = self.each.0.len().to_string();
        let [p50, max] = [500, 1000].map(|permille| time(self.each.permille(permille)));
        vec![name.into(), count, time(self.each.mean()), p50, p99, max, longest]
    }
}

/// The shard matches topics whenever no change is due.
pub fn churn(smaller: usize) {
    let workload = Workload { text: mixed, size: 1_000_000 / smaller };
    let seconds = if smaller > 1 { 2 } else { 10 };
    let mut index = workload.index();
    merge(&mut index);
    let mut merger = Merger::start();
    let [mut subscribes, mut unsubscribes, mut matches, mut merges]: [Calls; 4] = Default::default();
    let mut topics = (0..).map(|nth| workload.topic(nth));
    let mut keys = Vec::new();
    let begun = Instant::now();
    for pair in 0..seconds * PAIRS_A_SECOND {
        let due = Duration::from_secs(1) * pair as u32 / PAIRS_A_SECOND as u32;
        loop {
            let topic = topics.next().expect("there is no end");
            keys.clear();
            matches.time(|| index.matching(&topic, &mut keys));
            if begun.elapsed() >= due {
                break;
            }
        }
        // Of those that go, most have long been in the base.
        let old = pair * 7_919 % workload.size;
        let (gone, new) = ([workload.pattern(old)], [workload.pattern(workload.size + pair)]);
        unsubscribes.time(|| index.remove(old, &gone));
        subscribes.time(|| index.insert(workload.size + pair, &new)).expect("there is room");
        let mut step = Calls::default();
        if step.time(|| merger.advance(&mut index)) {
            merges.each.0.append(&mut step.each.0);
            merges.longest = merges.longest.max(step.longest);
        }
    }
    merger.end();
    let rows = vec![
        subscribes.row("subscribe", Some(SUBSCRIBE_P99)),
        unsubscribes.row("unsubscribe", Some(UNSUBSCRIBE_P99)),
        matches.row("match", None),
        merges.row("begin or end of a merge", None),
    ];
    let heading = format!(
        "{PAIRS_A_SECOND} patterns a second come and as many go, {seconds} s, {} patterns of the mix",
        workload.size
    );
    let head = ["what", "calls", "mean", "p50", "p99", "max", "longest, CPU"];
    table::print(&heading, &head, rows);
}
