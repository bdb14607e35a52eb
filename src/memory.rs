//! What the messages of the process take: counted, so that it can be bounded.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

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
    /// `limit` in bytes. Made once; it lives as long as the process, so that who counts need not share it.
    pub fn new(executors: usize, limit: u64) -> &'static Self {
        // The last one is for threads that are no executor.
        let counts = (0..=executors).map(|_| Count::default()).collect();
        Box::leak(Box::new(Memory { limit, counts }))
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

    /// Counts bytes as taken until the lease is dropped, on whatever thread that is.
    pub fn lease(&'static self, bytes: u64) -> Lease {
        self.add(bytes as i64);
        Lease { memory: self, bytes }
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

/// Bytes that count as taken as long as it lives.
#[derive(Debug)]
pub struct Lease {
    memory: &'static Memory,
    bytes: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.add(-(self.bytes as i64));
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_one_executor_reads_and_another_frees_is_counted_once() {
        let memory = Memory::new(2, 1000);
        let read = move || {
            Memory::enter(0);
            memory.lease(160)
        };
        let lease = thread::spawn(read).join().expect("the thread ends");
        assert_eq!(memory.held(), 160);
        let free = move || {
            Memory::enter(1);
            drop(lease);
        };
        thread::spawn(free).join().expect("the thread ends");
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_thread_that_serves_nothing_counts_too() {
        let memory = Memory::new(1, 1000);
        drop(memory.lease(7));
        let _kept = memory.lease(5);
        assert_eq!(memory.held(), 5);
    }
}
