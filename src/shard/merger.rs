//! Merges of pattern indices, run by one thread for all shards: what takes seconds must not hold up an executor.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::runtime;
use crate::core::Core;
use crate::pattern::{MergeJob, Merged, Retired};
use crate::ring::Doorbell;

/// How much the thread gives way to executors: at 10 it gets a tenth of a core that they keep busy.
const NICENESS: i32 = 10;

/// The thread, for those who give it work. It ends with the last of them.
#[derive(Clone)]
pub struct Merger {
    work: Sender<Work>,
}

enum Work {
    Merge {
        job: MergeJob,
        result: Sender<Merged>,
        bell: Arc<Doorbell>,
    },
    /// To drop it takes a while too.
    Drop(Retired),
}

impl Merger {
    pub fn start() -> io::Result<Self> {
        let (work, queue) = unbounded();
        thread::Builder::new().name("merger".into()).spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| serve(&queue))).is_err() {
                runtime::die("the merger of pattern indices panicked; the process ends");
            }
        })?;
        Ok(Merger { work })
    }

    fn give(&self, work: Work) {
        // The thread lives as long as somebody may give it work.
        let given = self.work.send(work);
        debug_assert!(given.is_ok(), "the merger lives");
    }
}

fn serve(queue: &Receiver<Work>) {
    // Where it may not, merges compete with executors, and are done sooner.
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "the merger runs with the priority of executors");
    }
    for work in queue {
        match work {
            Work::Merge { job, result, bell } => {
                // The shard has a place for it, since it has one merge under way.
                let _ = result.send(job.run());
                bell.ring();
            }
            Work::Drop(retired) => drop(retired),
        }
    }
}

/// The merges of one shard, one at a time. Lives on its executor.
pub struct Merges {
    merger: Merger,
    bell: Arc<Doorbell>,
    result: Sender<Merged>,
    results: Receiver<Merged>,
    is_under_way: Cell<bool>,
}

impl Merges {
    pub fn new(merger: Merger, bell: Arc<Doorbell>) -> Self {
        let (result, results) = bounded(1);
        Merges { merger, bell, result, results, is_under_way: Cell::new(false) }
    }

    /// Takes the result of a merge that is done, or begins one that is due.
    pub fn advance(&self, core: &mut Core, is_idle: bool) {
        if self.is_under_way.get() {
            let Ok(merged) = self.results.try_recv() else { return };
            self.is_under_way.set(false);
            self.merger.give(Work::Drop(core.finish_merge(merged)));
        } else if let Some(job) = core.begin_merge(is_idle) {
            self.is_under_way.set(true);
            let (result, bell) = (self.result.clone(), self.bell.clone());
            self.merger.give(Work::Merge { job, result, bell });
        }
    }

    /// Whether the pump need not sleep: a merge is done.
    pub fn has_result(&self) -> bool {
        self.is_under_way.get() && !self.results.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::core::{Effect, Input, MemberEvent};
    use crate::limits;
    use crate::model::{MemberId, Message, MessageNumber, SubscriptionId, Ticket, Time};
    use crate::shard::tests::{core_config, spec};

    fn core() -> Core {
        Core::new(core_config(limits::FAN_OUT_SLICE))
    }

    /// A stream of its own that wants `<number>.*`.
    fn subscribe(core: &mut Core, number: u64) {
        let id = SubscriptionId::from_number(MessageNumber::from_u64(number));
        let spec = spec(id, &format!("topic-{number}.*"));
        let member = MemberId { frontend: 0, number };
        core.apply(Time::default(), Input::Open { member, spec: Box::new(spec) }, &mut Vec::new());
    }

    /// The members that get a message on `topic-<number>.x`.
    fn receivers(core: &mut Core, number: u64) -> Vec<u64> {
        let topic = format!("topic-{number}.x");
        let message = Message::new(MessageNumber::from_u64(number), &topic, None, 0, |_| ());
        let ticket = Ticket { frontend: 0, number };
        let mut effects = Vec::new();
        core.apply(
            Time::default(),
            Input::Publish { ticket, run: [message].into_iter().collect() },
            &mut effects,
        );
        let receiver = |effect: &Effect| match effect {
            Effect::Member(member, MemberEvent::Deliver(_)) => Some(member.number),
            _ => None,
        };
        effects.iter().filter_map(receiver).collect()
    }

    #[test]
    fn what_comes_and_goes_while_a_merge_runs_is_right_before_and_after() {
        let mut core = core();
        let many = 2 * limits::IDLE_MERGE_CHANGES as u64;
        (1..=many).for_each(|number| subscribe(&mut core, number));
        let merger = Merger::start().expect("a thread");
        let merges = Merges::new(merger, Arc::new(Doorbell::new()));
        merges.advance(&mut core, false);
        assert!(!merges.is_under_way.get(), "so few are merged in idle moments only");
        merges.advance(&mut core, true);
        assert!(merges.is_under_way.get());
        let left = MemberId { frontend: 0, number: 1 };
        core.apply(Time::default(), Input::Leave { member: left }, &mut Vec::new());
        subscribe(&mut core, many + 1);
        let right = |core: &mut Core| {
            assert_eq!(receivers(core, 1), [0; 0], "it left");
            assert_eq!(receivers(core, 2), [2]);
            assert_eq!(receivers(core, many + 1), [many + 1], "it came meanwhile");
        };
        right(&mut core);
        let begun = Instant::now();
        while !merges.has_result() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the merger is dead");
            thread::yield_now();
        }
        right(&mut core);
        merges.advance(&mut core, false);
        assert!(!merges.is_under_way.get());
        right(&mut core);
    }
}
