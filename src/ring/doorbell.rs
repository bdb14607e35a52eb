//! Sleeping without losing a wake-up: the only clever atomics of the broker.
//!
//! Both types are Dekker's handshake. Each side writes its own word, fences, then reads the other's:
//!
//! | | writes | fence | reads |
//! | --- | --- | --- | --- |
//! | [`Doorbell`], consumer that parks | `parked` | SeqCst | the rings: is there work? |
//! | [`Doorbell`], producer that rings | a batch into a ring | SeqCst | `parked` |
//! | [`ProducerWaiting`], producer that found the ring full | `waiting` | SeqCst | the ring: is there room? |
//! | [`ProducerWaiting`], consumer that popped | a slot of the ring | SeqCst | `waiting` |
//!
//! The fences are totally ordered, so at least one side sees what the other wrote: either the sleeper
//! sees the news and stays awake, or the other side sees the sleeper and wakes it.

use std::sync::PoisonError;
use std::task::Waker;

use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering, fence};

/// Shared by all threads: one executor's pump parks on it, anyone may ring it.
///
/// A park is answered by one wake at most, however many ring: a runtime may count the wakers of a
/// task in a small integer, and a wake from another thread costs a system call.
#[derive(Debug)]
pub struct Doorbell {
    /// Set by the consumer only; cleared by the one producer that wins the swap, or by the consumer.
    /// Swapped even where a store would do: both sides write it, and loom knows the order of swaps,
    /// while between stores it tries orders that their atomicity forbids.
    parked: AtomicBool,
    /// Whom to wake. Locked only by a consumer that parks (or ends) and by a producer that won
    /// `parked`: a busy consumer and its producers never meet here.
    waker: Mutex<Option<Waker>>,
}

impl Doorbell {
    /// A doorbell on which nobody sleeps.
    pub fn new() -> Self {
        Doorbell { parked: AtomicBool::new(false), waker: Mutex::new(None) }
    }

    /// Any thread but the consumer's sleeping one: call it once a batch, after the pushes.
    /// True if this call woke the consumer.
    pub fn ring(&self) -> bool {
        fence(Ordering::SeqCst);
        // The load keeps the usual case, a consumer awake, from taking the cache line away from it.
        // Acquire pairs with the Release in `park`: the winner finds the waker of that park.
        if !self.parked.load(Ordering::Relaxed) || !self.parked.swap(false, Ordering::Acquire) {
            return false;
        }
        // Taken, so that it can be woken once only; and woken after the lock is released. The slot is
        // empty if a winner of an earlier park came late and took this waker: then it wakes for both.
        let waker = self.waker().take();
        waker.map(Waker::wake).is_some()
    }

    /// The consumer, before it sleeps. True: parked, sleep until `waker` is woken. False: work came
    /// meanwhile (as `has_work` says, which runs after the consumer became visible as parked), go on.
    #[must_use]
    pub fn park(&self, waker: &Waker, has_work: impl FnOnce() -> bool) -> bool {
        self.store(waker);
        self.parked.swap(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if has_work() {
            // A producer may have won already; the wake that is then on its way does no harm.
            self.unpark();
            return false;
        }
        true
    }

    /// The consumer, when it runs again for whatever reason: while it is awake nobody need wake it.
    pub fn unpark(&self) {
        if self.parked.load(Ordering::Relaxed) {
            self.parked.swap(false, Ordering::Relaxed);
        }
    }

    /// The consumer, when it ends: its waker is dropped on its own thread, and no ring wakes it again.
    pub(super) fn disarm(&self) {
        self.unpark();
        let waker = self.waker().take();
        drop(waker);
    }

    /// Whether the consumer sleeps, or is about to; all that it did before is seen by who is told so.
    pub(super) fn is_parked(&self) -> bool {
        self.parked.load(Ordering::Acquire)
    }

    fn store(&self, waker: &Waker) {
        let mut slot = self.waker();
        if !slot.as_ref().is_some_and(|stored| stored.will_wake(waker)) {
            let outdated = slot.replace(waker.clone());
            drop(slot);
            drop(outdated);
        }
    }

    /// Nothing that can panic runs under this lock, and a waker is whole whatever happened.
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

/// Shared by the two ends of one ring: its producer found it full and has not pushed since.
///
/// Written by the producer only. Were the consumer to clear it, it could do so late, for room that the
/// producer has filled again meanwhile, and then not ring for the next pop. That it rings more often
/// so is cheap: the doorbell wakes once a park.
///
/// It has a recheck of its own, beside that of the doorbell, because a flush may come from any task
/// of an executor while its pump is parked already.
#[derive(Debug)]
pub(super) struct ProducerWaiting {
    waiting: AtomicBool,
}

impl ProducerWaiting {
    pub fn new() -> Self {
        ProducerWaiting { waiting: AtomicBool::new(false) }
    }

    /// The producer, when the ring is full. True: it waits, and its doorbell will ring when there is
    /// room. False: room came meanwhile, push again.
    #[must_use]
    pub fn wait(&self, has_room: impl FnOnce() -> bool) -> bool {
        self.waiting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !has_room()
    }

    /// The producer, after each push.
    pub fn pushed(&self) {
        if self.waiting.load(Ordering::Relaxed) {
            self.waiting.store(false, Ordering::Relaxed);
        }
    }

    /// The consumer, after each pop. True if this call woke the producer's executor.
    pub fn popped(&self, producer: &Doorbell) -> bool {
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) && producer.ring()
    }
}
