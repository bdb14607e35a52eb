use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use bytes::Bytes;

use crate::model::Message;

/// What the messages of the whole process take, by one count an executor that only it writes.
///
/// A message counts from its reading until its last receiver is done with it, once, however many subscriptions have
/// it; each copy in a subscription counts what its place there takes.
#[derive(Debug)]
pub struct Memory {
    limit: u64,
    /// Bytes taken less bytes given back on each executor: below zero where it frees what others read.
    counts: Box<[Count]>,
}

/// In a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count(AtomicI64);

thread_local! {
    /// The executor of this thread; none on the threads that serve nothing.
    static EXECUTOR: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Memory {
    /// `limit` in bytes.
    pub fn new(executors: usize, limit: u64) -> Arc<Self> {
        // The last one is for threads that are no executor.
        Arc::new(Memory { limit, counts: (0..=executors).map(|_| Count::default()).collect() })
    }

    /// The calling thread is this executor from now on.
    pub fn enter(executor: usize) {
        EXECUTOR.set(Some(executor));
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes taken now. Counts of other executors are read one after the other, so it may be off by what moves meanwhile.
    pub fn held(&self) -> u64 {
        let sum: i64 = self.counts.iter().map(|count| count.0.load(Relaxed)).sum();
        u64::try_from(sum).unwrap_or(0)
    }

    /// Counts a message from now on for as long as its body lives.
    pub fn hold(self: &Arc<Self>, message: &mut Message) {
        let cost = message.cost();
        message.body = self.hold_bytes(std::mem::take(&mut message.body), cost);
    }

    fn hold_bytes(self: &Arc<Self>, body: Bytes, cost: u64) -> Bytes {
        self.add(cost as i64);
        Bytes::from_owner(Held { body, cost, memory: self.clone() })
    }

    /// Counts bytes taken, or given back where below zero.
    pub fn add(&self, bytes: i64) {
        match EXECUTOR.get().and_then(|executor| self.counts.get(executor)) {
            // One writer: no read-modify-write is needed.
            Some(count) => count.0.store(count.0.load(Relaxed) + bytes, Relaxed),
            None => {
                if let Some(count) = self.counts.last() {
                    count.0.fetch_add(bytes, Relaxed);
                }
            }
        }
    }
}

struct Held {
    body: Bytes,
    cost: u64,
    memory: Arc<Memory>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.add(-(self.cost as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_executor_reads_and_another_frees_is_counted_once() {
        let memory = Memory::new(2, 1000);
        let run = |executor: usize, work: Box<dyn FnOnce() + Send>| {
            let work = move || {
                Memory::enter(executor);
                work();
            };
            std::thread::spawn(work).join().expect("the thread ends");
        };
        let (sender, bodies) = std::sync::mpsc::channel();
        let reader = memory.clone();
        run(
            0,
            Box::new(move || sender.send(reader.hold_bytes(Bytes::from_static(b"x"), 160)).expect("sent")),
        );
        let body = bodies.recv().expect("a body");
        assert_eq!(memory.held(), 160);
        let copy = body.clone();
        run(1, Box::new(move || drop(body)));
        assert_eq!(memory.held(), 160, "somebody still has it");
        run(1, Box::new(move || drop(copy)));
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_thread_that_serves_nothing_counts_too() {
        let memory = Memory::new(1, 1000);
        drop(memory.hold_bytes(Bytes::from_static(b"x"), 7));
        let kept = memory.hold_bytes(Bytes::from_static(b"x"), 5);
        assert_eq!((memory.held(), &kept[..]), (5, &b"x"[..]));
    }
}
