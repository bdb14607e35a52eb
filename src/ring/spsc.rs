//! One ring from one executor to another: bounded, single producer, single consumer, a batch a slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError, bounded};

use super::doorbell::{Doorbell, ProducerWaiting};
use super::spare::Spare;

/// The two ends of a new ring of `slots` batches (one at least: none would be a rendezvous).
pub(super) fn ring<T>(
    slots: usize,
    producer_bell: &Arc<Doorbell>,
    consumer_bell: &Arc<Doorbell>,
) -> (Producer<T>, Consumer<T>) {
    let (sender, receiver) = bounded(slots.max(1));
    let shared = Arc::new(Shared {
        producer_waiting: ProducerWaiting::new(),
        pushed: AtomicU64::new(0),
        popped: AtomicU64::new(0),
        queued: AtomicU64::new(0),
    });
    let producer = Producer {
        outbox: Vec::new(),
        slots: sender,
        shared: Arc::clone(&shared),
        consumer_bell: Arc::clone(consumer_bell),
    };
    let consumer = Consumer { slots: receiver, shared, producer_bell: Arc::clone(producer_bell) };
    (producer, consumer)
}

/// What both ends of a ring share beside its slots. Counters are in items.
///
/// An item is `queued` from before it enters until after it is counted as `popped`, and counted as
/// `pushed` once it is in: so whoever looks while both ends run sees pushed ≤ popped + queued.
#[derive(Debug)]
struct Shared {
    producer_waiting: ProducerWaiting,
    /// Written by the producer only.
    pushed: AtomicU64,
    /// Written by the consumer only.
    popped: AtomicU64,
    queued: AtomicU64,
}

impl Shared {
    fn enter(&self, items: u64) {
        self.queued.fetch_add(items, Ordering::Relaxed);
    }

    fn entered(&self, items: u64) {
        let pushed = self.pushed.load(Ordering::Relaxed);
        self.pushed.store(pushed + items, Ordering::Release);
    }

    fn refused(&self, items: u64) {
        self.queued.fetch_sub(items, Ordering::Relaxed);
    }

    fn left(&self, items: u64) {
        let popped = self.popped.load(Ordering::Relaxed);
        self.popped.store(popped + items, Ordering::Relaxed);
        self.queued.fetch_sub(items, Ordering::Release);
    }

    /// Read in this order, or a batch that moves meanwhile could be missed by all three.
    fn counts(&self) -> RingCounts {
        let pushed = self.pushed.load(Ordering::Acquire);
        let queued = self.queued.load(Ordering::Acquire);
        let popped = self.popped.load(Ordering::Relaxed);
        RingCounts { pushed, popped, queued }
    }
}

/// Plain data, for any thread: what went through one ring, in items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingCounts {
    pub pushed: u64,
    pub popped: u64,
    pub queued: u64,
}

impl RingCounts {
    /// I9 as it can be asserted while both ends run: nothing that was pushed is unaccounted for.
    pub fn holds(&self) -> bool {
        self.pushed <= self.popped + self.queued
    }

    /// I9 proper, pushed = popped + queued: true whenever neither end is in the middle of a batch.
    pub fn holds_at_rest(&self) -> bool {
        self.pushed == self.popped + self.queued
    }
}

/// Lives on the executor where the ring starts; holds its producer end.
pub(super) struct Producer<T> {
    /// What the next flush pushes as one batch; grows while the ring is full.
    outbox: Vec<T>,
    slots: Sender<Vec<T>>,
    shared: Arc<Shared>,
    consumer_bell: Arc<Doorbell>,
}

impl<T> Producer<T> {
    pub fn append(&mut self, item: T) {
        self.outbox.push(item);
    }

    /// Pushes the outbox as one batch and rings once; keeps it, in order, while the ring is full.
    /// True if the outbox is empty.
    pub fn flush(&mut self, spare: &mut Spare<T>) -> bool {
        if self.outbox.is_empty() {
            return true;
        }
        // Twice at most: room that has come stays, since nobody else pushes here.
        while !self.try_push(spare) {
            if self.shared.producer_waiting.wait(|| !self.slots.is_full()) {
                return false;
            }
        }
        true
    }

    /// False if the ring is full.
    fn try_push(&mut self, spare: &mut Spare<T>) -> bool {
        let items = self.outbox.len() as u64;
        self.shared.enter(items);
        match self.slots.try_send(std::mem::take(&mut self.outbox)) {
            Ok(()) => {
                self.shared.entered(items);
                self.shared.producer_waiting.pushed();
                self.consumer_bell.ring();
                self.outbox = spare.take();
                true
            }
            Err(TrySendError::Full(batch)) => {
                self.shared.refused(items);
                self.outbox = batch;
                false
            }
            // The peer has ended, which happens only when the whole process does: nobody is left
            // to whom the batch could matter.
            Err(TrySendError::Disconnected(_)) => {
                self.shared.refused(items);
                true
            }
        }
    }

    /// The consumer has dealt with all that was ever sent, and sleeps.
    ///
    /// Looked at in this order: who took the last batch was awake then, so if it sleeps by now it is done with it.
    pub fn is_seen_to(&self) -> bool {
        self.outbox.is_empty() && self.slots.is_empty() && self.consumer_bell.is_parked()
    }

    /// A flush would get something out.
    pub fn can_flush(&self) -> bool {
        !self.outbox.is_empty() && !self.slots.is_full()
    }

    pub fn counts(&self) -> RingCounts {
        self.shared.counts()
    }
}

/// Lives on the executor where the ring ends; holds its consumer end.
pub(super) struct Consumer<T> {
    slots: Receiver<Vec<T>>,
    shared: Arc<Shared>,
    producer_bell: Arc<Doorbell>,
}

impl<T> Consumer<T> {
    /// The oldest batch. A producer that waits for room is told before the batch is worked on.
    pub fn pop(&mut self) -> Option<Vec<T>> {
        match self.slots.try_recv() {
            Ok(batch) => {
                self.shared.left(batch.len() as u64);
                self.shared.producer_waiting.popped(&self.producer_bell);
                Some(batch)
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn counts(&self) -> RingCounts {
        self.shared.counts()
    }
}
