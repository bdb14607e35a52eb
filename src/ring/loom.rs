//! Every interleaving of the two handshakes. loom reports a lost wake-up as a deadlock.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release --manifest-path tests/loom/Cargo.toml --target-dir target/loom`

use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use loom::model::Builder;
use loom::sync::Notify;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use super::doorbell::{Doorbell, ProducerWaiting};

/// The ring as weak as it may be: two indices, and nothing but the fences to order them. (The slots
/// of the real one are crossbeam's, which loom cannot see into.)
struct Indices {
    slots: usize,
    pushed: AtomicUsize,
    popped: AtomicUsize,
}

impl Indices {
    fn new(slots: usize, pushed: usize) -> Self {
        let (pushed, popped) = (AtomicUsize::new(pushed), AtomicUsize::new(0));
        Indices { slots, pushed, popped }
    }

    fn len(&self) -> usize {
        self.pushed.load(Ordering::Relaxed) - self.popped.load(Ordering::Relaxed)
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn has_room(&self) -> bool {
        self.len() < self.slots
    }

    fn try_push(&self) -> bool {
        self.has_room() && {
            self.pushed.fetch_add(1, Ordering::Relaxed);
            true
        }
    }

    fn try_pop(&self) -> bool {
        !self.is_empty() && {
            self.popped.fetch_add(1, Ordering::Relaxed);
            true
        }
    }
}

/// The waker of one park: fails the test when it is woken twice.
struct OncePerPark {
    task: Arc<Notify>,
    woken: AtomicBool,
}

impl Wake for OncePerPark {
    fn wake(self: Arc<Self>) {
        let woken_before = self.woken.swap(true, Ordering::Relaxed);
        assert!(!woken_before, "two wakes for one park");
        self.task.notify();
    }
}

/// A runtime with one task. Like real ones it also polls without a wake: once a run, at any sleep.
fn block_on(mut poll: impl FnMut(&dyn Fn() -> Waker) -> Poll<()>) {
    let task = Arc::new(Notify::new());
    let new_waker = || {
        let (task, woken) = (Arc::clone(&task), AtomicBool::new(false));
        Waker::from(Arc::new(OncePerPark { task, woken }))
    };
    while poll(&new_waker).is_pending() {
        task.wait();
    }
}

fn model(preemption_bound: Option<usize>, story: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemption_bound;
    builder.check(story);
}

/// A pump that sleeps whenever there is nothing, until it has popped `total`.
fn pop_all(total: usize, bell: &Doorbell, rings: &[Arc<Indices>], popped: impl Fn(usize)) {
    let mut count = 0;
    block_on(|new_waker| {
        bell.unpark();
        loop {
            for (index, ring) in rings.iter().enumerate() {
                while ring.try_pop() {
                    count += 1;
                    popped(index);
                }
            }
            if count == total {
                return Poll::Ready(());
            }
            let has_work = || rings.iter().any(|ring| !ring.is_empty());
            if bell.park(&new_waker(), has_work) {
                return Poll::Pending;
            }
        }
    });
}

#[test]
fn one_producer_wakes_the_sleeper() {
    model(None, || {
        let (bell, ring) = (Arc::new(Doorbell::new()), Arc::new(Indices::new(2, 0)));
        let producer = thread::spawn({
            let (bell, ring) = (Arc::clone(&bell), Arc::clone(&ring));
            move || {
                for _ in 0..2 {
                    assert!(ring.try_push());
                    bell.ring();
                }
            }
        });
        pop_all(2, &bell, &[ring], |_| ());
        producer.join().expect("the producer ends");
    });
}

#[test]
fn two_producers_wake_the_sleeper() {
    model(Some(3), || {
        let bell = Arc::new(Doorbell::new());
        let rings = [Arc::new(Indices::new(1, 0)), Arc::new(Indices::new(1, 0))];
        let producers = rings.clone().map(|ring| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || {
                assert!(ring.try_push());
                bell.ring();
            })
        });
        pop_all(2, &bell, &rings, |_| ());
        for producer in producers {
            producer.join().expect("the producer ends");
        }
    });
}

/// A winner finds the waker of the park that it won, not an empty slot: nobody else rings here.
#[test]
fn the_winner_finds_the_waker() {
    model(None, || {
        let bell = Arc::new(Doorbell::new());
        let producer = thread::spawn({
            let bell = Arc::clone(&bell);
            move || bell.ring()
        });
        let parked_first = bell.park(Waker::noop(), || false);
        let woke = producer.join().expect("the producer ends");
        let still_parked = bell.ring();
        assert!(parked_first && woke != still_parked, "one park is one wake");
    });
}

/// Who finds the ring empty, and after that the consumer asleep, comes after all that was in it.
#[test]
fn a_consumer_that_sleeps_has_dealt_with_what_it_took() {
    model(Some(3), || {
        let bell = Arc::new(Doorbell::new());
        // That the batch is in the ring, and that it is dealt with. The slots of the real ring order what is around
        // them; what is dealt with need not.
        let (in_ring, dealt_with) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let consumer = thread::spawn({
            let (bell, in_ring, dealt_with) = (bell.clone(), in_ring.clone(), dealt_with.clone());
            move || {
                // Two turns, whatever woke it for the second.
                for _ in 0..2 {
                    bell.unpark();
                    if in_ring.swap(false, Ordering::AcqRel) {
                        dealt_with.store(true, Ordering::Relaxed);
                    }
                    let _parked = bell.park(Waker::noop(), || in_ring.load(Ordering::Acquire));
                }
            }
        });
        in_ring.swap(true, Ordering::Release);
        if !in_ring.load(Ordering::Acquire) && bell.is_parked() {
            assert!(dealt_with.load(Ordering::Relaxed));
        }
        consumer.join().expect("the consumer ends");
    });
}

/// Another task of the executor meets a full ring while the pump sleeps already.
#[test]
fn a_flush_beside_a_parked_pump_learns_of_room() {
    model(None, || {
        let bell = Arc::new(Doorbell::new());
        let waiting = Arc::new(ProducerWaiting::new());
        let ring = Arc::new(Indices::new(1, 1));
        let consumer = thread::spawn({
            let (bell, waiting, ring) = (Arc::clone(&bell), Arc::clone(&waiting), Arc::clone(&ring));
            move || {
                assert!(ring.try_pop());
                waiting.popped(&bell);
            }
        });
        block_on(|new_waker| {
            // The pump had nothing to flush when it parked.
            let parked = bell.park(&new_waker(), || false);
            assert!(parked);
            loop {
                if ring.try_push() {
                    return Poll::Ready(());
                }
                if waiting.wait(|| ring.has_room()) {
                    return Poll::Pending;
                }
            }
        });
        consumer.join().expect("the consumer ends");
    });
}

/// Both ends sleep and wake each other over a ring of one slot.
#[test]
fn a_full_ring_and_an_empty_one_wake_each_other() {
    model(Some(3), || {
        let (producer_bell, consumer_bell) = (Arc::new(Doorbell::new()), Arc::new(Doorbell::new()));
        let waiting = Arc::new(ProducerWaiting::new());
        let ring = Arc::new(Indices::new(1, 0));
        let consumer = thread::spawn({
            let (waiting, ring) = (Arc::clone(&waiting), Arc::clone(&ring));
            let (producer_bell, consumer_bell) = (Arc::clone(&producer_bell), Arc::clone(&consumer_bell));
            move || {
                pop_all(3, &consumer_bell, &[ring], |_| {
                    waiting.popped(&producer_bell);
                });
            }
        });
        let mut outbox = 3;
        block_on(|new_waker| {
            producer_bell.unpark();
            while outbox > 0 {
                if ring.try_push() {
                    waiting.pushed();
                    consumer_bell.ring();
                    outbox -= 1;
                } else if waiting.wait(|| ring.has_room())
                    && producer_bell.park(&new_waker(), || ring.has_room())
                {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        });
        consumer.join().expect("the consumer ends");
    });
}
