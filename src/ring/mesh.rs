//! All rings of the process, dealt out as one port an executor.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::doorbell::Doorbell;
use super::spsc::{Consumer, Producer, RingCounts, ring};

/// Emptied batches that a port keeps for each peer, to use them again as outboxes.
const SPARE_BATCHES_PER_PEER: usize = 4;
/// A batch that has grown beyond this many items, while its ring was full, is freed when emptied.
const SPARE_BATCH_ITEMS: usize = 1024;

/// Made and taken apart by the control thread, before the executors start; holds both ends of all rings.
pub struct Mesh<T> {
    ports: Vec<Port<T>>,
    bells: Vec<Arc<Doorbell>>,
}

impl<T: Send> Mesh<T> {
    /// A ring of `ring_slots` batches for every ordered pair of different executors.
    pub fn new(executors: usize, ring_slots: usize) -> Self {
        let bells: Vec<_> = (0..executors).map(|_| Arc::new(Doorbell::new())).collect();
        let mut ports: Vec<_> =
            bells.iter().enumerate().map(|(me, bell)| Port::new(me, Arc::clone(bell))).collect();
        for from in 0..executors {
            for to in 0..executors {
                if from == to {
                    ports[from].outgoing.push(None);
                    continue;
                }
                let (producer, consumer) = ring(ring_slots, &bells[from], &bells[to]);
                ports[from].outgoing.push(Some(producer));
                ports[to].incoming.push((from, consumer));
            }
        }
        Mesh { ports, bells }
    }

    /// Every executor's doorbell, in order: the control thread rings them when the process ends.
    pub fn bells(&self) -> Vec<Arc<Doorbell>> {
        self.bells.clone()
    }

    /// One port an executor, in order.
    pub fn into_ports(self) -> Vec<Port<T>> {
        self.ports
    }
}

/// Lives on its executor; holds the producer end of every ring that starts there and the consumer end
/// of every ring that ends there.
pub struct Port<T> {
    me: usize,
    /// By peer; `None` at `me`.
    outgoing: Vec<Option<Producer<T>>>,
    /// Each with the peer where it starts.
    incoming: Vec<(usize, Consumer<T>)>,
    /// Which of `incoming` has its turn.
    turn: usize,
    spare: Vec<Vec<T>>,
    doorbell: Arc<Doorbell>,
    not_sync: PhantomData<Cell<()>>,
}

/// What one drain did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Items handed to the handler.
    pub items: usize,
    /// More is waiting: yield and drain again rather than sleep.
    pub more: bool,
}

impl<T> Port<T> {
    fn new(me: usize, doorbell: Arc<Doorbell>) -> Self {
        Port {
            me,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            turn: 0,
            spare: Vec::new(),
            doorbell,
            not_sync: PhantomData,
        }
    }

    /// The executor that this port belongs to.
    pub fn me(&self) -> usize {
        self.me
    }

    /// All other executors, in order.
    pub fn peers(&self) -> impl Iterator<Item = usize> + use<T> {
        let me = self.me;
        (0..self.outgoing.len()).filter(move |&executor| executor != me)
    }

    /// The doorbell that this executor's pump parks on.
    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.doorbell
    }

    /// Puts an item into the outbox of a peer. It leaves with the next flush: a task other than the
    /// pump flushes before it yields, since the pump may be asleep.
    ///
    /// # Panics
    /// If `to` is not one of `peers()`: to its own executor the caller speaks directly.
    pub fn send(&mut self, to: usize, item: T) {
        match self.outgoing.get_mut(to) {
            Some(Some(producer)) => producer.append(item),
            _ => panic!("executor {} has no ring to {to}", self.me),
        }
    }

    /// Pushes each outbox as one batch and rings its peer once. What meets a full ring stays, in
    /// order, and this executor's doorbell rings when there is room. True if all outboxes are empty.
    pub fn flush(&mut self) -> bool {
        let mut flushed = true;
        for producer in self.outgoing.iter_mut().flatten() {
            flushed &= producer.flush(&mut self.spare);
        }
        self.check_in_debug();
        flushed
    }

    /// Hands the items of incoming batches to `handle`, with the peer they come from: a batch of each
    /// ring in turn, until `max_items` are reached (a batch is never cut, so it may be more) or all
    /// rings are empty. The turn is kept from call to call.
    pub fn drain(&mut self, max_items: usize, mut handle: impl FnMut(usize, T)) -> Drained {
        let mut items = 0;
        let mut empty_in_a_row = 0;
        while items < max_items && empty_in_a_row < self.incoming.len() {
            let (from, consumer) = &mut self.incoming[self.turn];
            let from = *from;
            let popped = consumer.pop();
            self.turn = (self.turn + 1) % self.incoming.len();
            let Some(mut batch) = popped else {
                empty_in_a_row += 1;
                continue;
            };
            empty_in_a_row = 0;
            items += batch.len();
            batch.drain(..).for_each(|item| handle(from, item));
            self.keep(batch);
        }
        self.check_in_debug();
        Drained { items, more: self.has_incoming() }
    }

    /// A drain would find something, or a flush would get something out. The recheck of a park.
    pub fn has_work(&self) -> bool {
        self.has_incoming() || self.outgoing.iter().flatten().any(Producer::can_flush)
    }

    /// The counters of every ring that ends here, each with the peer where it starts.
    pub fn incoming_counts(&self) -> impl Iterator<Item = (usize, RingCounts)> {
        self.incoming.iter().map(|(from, consumer)| (*from, consumer.counts()))
    }

    /// Asserts I9 for every ring that starts or ends here; debug builds do so in each flush and drain.
    pub fn check(&self) {
        let outgoing = self.outgoing.iter().flatten().map(Producer::counts);
        for counts in outgoing.chain(self.incoming_counts().map(|(_, counts)| counts)) {
            assert!(counts.holds(), "I9 at executor {}: {counts:?}", self.me);
        }
    }

    fn check_in_debug(&self) {
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    fn has_incoming(&self) -> bool {
        self.incoming.iter().any(|(_, consumer)| !consumer.is_empty())
    }

    fn keep(&mut self, batch: Vec<T>) {
        let room = self.spare.len() < SPARE_BATCHES_PER_PEER * self.incoming.len();
        if room && batch.capacity() <= SPARE_BATCH_ITEMS {
            self.spare.push(batch);
        }
    }
}

impl<T> Drop for Port<T> {
    /// A waker is best dropped where its task lives; the control thread may keep the doorbell longer.
    fn drop(&mut self) {
        self.doorbell.disarm();
    }
}
