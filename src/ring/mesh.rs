//! The rings between executors, dealt out as one port each.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use super::doorbell::Doorbell;
use super::ends::{Inlet, Outlet, connect};
use super::spare::Spare;
use super::spsc::RingCounts;

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
        (0..self.outlet.receivers()).filter(move |&executor| executor != me)
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
        self.outlet.is_seen_to(peer)
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
            self.spare.keep(batch, self.inlet.senders());
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
