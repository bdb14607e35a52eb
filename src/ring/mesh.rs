//! All rings of the process, dealt out as one port an executor.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::doorbell::Doorbell;
use super::spsc::{Consumer, Producer, RingCounts, ring};

/// Emptied batches that are kept for each peer, to use them again as outboxes.
const SPARE_BATCHES_PER_PEER: usize = 4;
/// A batch that has grown beyond this many items, while its ring was full, is freed when emptied.
const SPARE_BATCH_ITEMS: usize = 1024;

/// Made and taken apart by the control thread, before the executors start; holds both ends of all rings
/// between executors.
pub struct Mesh<T> {
    ports: Vec<Port<T>>,
    bells: Vec<Arc<Doorbell>>,
}

impl<T: Send> Mesh<T> {
    /// A ring of `ring_slots` batches for every ordered pair of different executors.
    pub fn new(executors: usize, ring_slots: usize) -> Self {
        let bells: Vec<_> = (0..executors).map(|_| Arc::new(Doorbell::new())).collect();
        let (outlets, inlets) = connect(&bells, &bells, ring_slots, |from, to| from != to);
        let ends = outlets.into_iter().zip(inlets).zip(&bells).enumerate();
        let ports = ends.map(|(me, ((outlet, inlet), bell))| Port {
            me,
            outlet,
            inlet,
            spare: Spare::default(),
            doorbell: Arc::clone(bell),
            not_sync: PhantomData,
        });
        Mesh { ports: ports.collect(), bells }
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

/// A ring of `slots` batches from each to each, also from one to itself: those who send with the doorbell that rings
/// when there is room again, those who receive with the one that rings when something comes.
pub fn rings<T>(
    from: &[Arc<Doorbell>],
    to: &[Arc<Doorbell>],
    slots: usize,
) -> (Vec<Outlet<T>>, Vec<Inlet<T>>) {
    connect(from, to, slots, |_, _| true)
}

fn connect<T>(
    from: &[Arc<Doorbell>],
    to: &[Arc<Doorbell>],
    slots: usize,
    has_ring: impl Fn(usize, usize) -> bool,
) -> (Vec<Outlet<T>>, Vec<Inlet<T>>) {
    let mut inlets: Vec<_> = to.iter().map(|_| Inlet { rings: Vec::new(), turn: 0 }).collect();
    let mut outlet = |(sender, sender_bell): (usize, &Arc<Doorbell>)| {
        let rings = to.iter().zip(&mut inlets).enumerate().map(|(receiver, (bell, inlet))| {
            has_ring(sender, receiver).then(|| {
                let (producer, consumer) = ring(slots, sender_bell, bell);
                inlet.rings.push((sender, consumer));
                producer
            })
        });
        Outlet { rings: rings.collect() }
    };
    (from.iter().enumerate().map(&mut outlet).collect(), inlets)
}

/// The sending ends of some rings. Whoever has it sends: it may go from thread to thread.
pub struct Outlet<T> {
    /// By receiver; `None` where there is no ring.
    rings: Vec<Option<Producer<T>>>,
}

impl<T> Outlet<T> {
    /// Puts an item into the outbox of a receiver. It leaves with the next flush.
    ///
    /// # Panics
    /// If there is no ring to it.
    pub fn send(&mut self, to: usize, item: T) {
        match self.rings.get_mut(to) {
            Some(Some(producer)) => producer.append(item),
            _ => panic!("there is no ring to {to}"),
        }
    }

    /// Pushes each outbox as one batch and rings its receiver once. What meets a full ring stays, in
    /// order, and the sender's doorbell rings when there is room. True if all outboxes are empty.
    pub fn flush(&mut self, spare: &mut Spare<T>) -> bool {
        let mut flushed = true;
        for producer in self.rings.iter_mut().flatten() {
            flushed &= producer.flush(spare);
        }
        flushed
    }

    /// The same for one receiver.
    pub fn flush_to(&mut self, to: usize, spare: &mut Spare<T>) -> bool {
        self.rings.get_mut(to).and_then(Option::as_mut).is_none_or(|producer| producer.flush(spare))
    }

    /// A flush would get something out.
    pub fn can_flush(&self) -> bool {
        self.rings.iter().flatten().any(Producer::can_flush)
    }

    fn counts(&self) -> impl Iterator<Item = RingCounts> {
        self.rings.iter().flatten().map(Producer::counts)
    }
}

/// The receiving ends of some rings.
pub struct Inlet<T> {
    /// Each with the sender where it starts, in their order.
    rings: Vec<(usize, Consumer<T>)>,
    /// Which of them has its turn.
    turn: usize,
}

impl<T> Inlet<T> {
    /// The next batch and who sent it: one of each ring in turn, from call to call.
    pub fn pop(&mut self) -> Option<(usize, Vec<T>)> {
        (0..self.rings.len()).find_map(|_| {
            let place = self.turn;
            self.turn = (place + 1) % self.rings.len();
            let (from, consumer) = &mut self.rings[place];
            consumer.pop().map(|batch| (*from, batch))
        })
    }

    /// The next batch of one sender.
    pub fn pop_from(&mut self, sender: usize) -> Option<Vec<T>> {
        let place = self.place(sender)?;
        self.rings[place].1.pop()
    }

    pub fn is_empty(&self) -> bool {
        self.rings.iter().all(|(_, consumer)| consumer.is_empty())
    }

    /// Whether nothing has come from one sender.
    pub fn is_empty_from(&self, sender: usize) -> bool {
        self.place(sender).is_none_or(|place| self.rings[place].1.is_empty())
    }

    fn place(&self, sender: usize) -> Option<usize> {
        self.rings.binary_search_by_key(&sender, |(from, _)| *from).ok()
    }

    fn counts(&self) -> impl Iterator<Item = (usize, RingCounts)> {
        self.rings.iter().map(|(from, consumer)| (*from, consumer.counts()))
    }
}

/// Emptied batches, to be used again.
pub struct Spare<T>(Vec<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Spare(Vec::new())
    }
}

impl<T> Spare<T> {
    pub(super) fn take(&mut self) -> Vec<T> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps an emptied batch, where there are not too many for so many peers.
    pub fn keep(&mut self, batch: Vec<T>, peers: usize) {
        debug_assert!(batch.is_empty());
        if self.0.len() < SPARE_BATCHES_PER_PEER * peers && batch.capacity() <= SPARE_BATCH_ITEMS {
            self.0.push(batch);
        }
    }
}

/// Lives on its executor; holds the producer end of every ring that starts there and the consumer end
/// of every ring that ends there.
pub struct Port<T> {
    me: usize,
    outlet: Outlet<T>,
    inlet: Inlet<T>,
    spare: Spare<T>,
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
    /// The executor that this port belongs to.
    pub fn me(&self) -> usize {
        self.me
    }

    /// All other executors, in order.
    pub fn peers(&self) -> impl Iterator<Item = usize> + use<T> {
        let me = self.me;
        (0..self.outlet.rings.len()).filter(move |&executor| executor != me)
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
        self.outlet.send(to, item);
    }

    /// As [`Outlet::flush`].
    pub fn flush(&mut self) -> bool {
        let flushed = self.outlet.flush(&mut self.spare);
        self.check_in_debug();
        flushed
    }

    /// Whether a peer has dealt with all that was ever sent to it, and its pump sleeps.
    pub fn has_seen_to_all(&self, peer: usize) -> bool {
        matches!(self.outlet.rings.get(peer), Some(Some(producer)) if producer.is_seen_to())
    }

    /// Hands the items of incoming batches to `handle`, with the peer they come from: a batch of each
    /// ring in turn, until `max_items` are reached (a batch is never cut, so it may be more) or all
    /// rings are empty. The turn is kept from call to call.
    pub fn drain(&mut self, max_items: usize, mut handle: impl FnMut(usize, T)) -> Drained {
        let mut items = 0;
        while items < max_items
            && let Some((from, mut batch)) = self.inlet.pop()
        {
            items += batch.len();
            batch.drain(..).for_each(|item| handle(from, item));
            self.spare.keep(batch, self.inlet.rings.len());
        }
        self.check_in_debug();
        Drained { items, more: self.has_incoming() }
    }

    /// A drain would find something.
    pub fn has_incoming(&self) -> bool {
        !self.inlet.is_empty()
    }

    /// The same, or a flush would get something out. The recheck of a park.
    pub fn has_work(&self) -> bool {
        self.has_incoming() || self.outlet.can_flush()
    }

    /// The counters of every ring that ends here, each with the peer where it starts.
    pub fn incoming_counts(&self) -> impl Iterator<Item = (usize, RingCounts)> {
        self.inlet.counts()
    }

    /// Asserts I9 for every ring that starts or ends here; debug builds do so in each flush and drain.
    pub fn check(&self) {
        for counts in self.outlet.counts().chain(self.incoming_counts().map(|(_, counts)| counts)) {
            assert!(counts.holds(), "I9 at executor {}: {counts:?}", self.me);
        }
    }

    fn check_in_debug(&self) {
        if cfg!(debug_assertions) {
            self.check();
        }
    }
}

impl<T> Drop for Port<T> {
    /// A waker is best dropped where its task lives; the control thread may keep the doorbell longer.
    fn drop(&mut self) {
        self.doorbell.disarm();
    }
}
