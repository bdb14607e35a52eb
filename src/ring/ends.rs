//! The ends of rings, as whoever has them sees them.

use std::sync::Arc;

use super::doorbell::Doorbell;
use super::spare::Spare;
use super::spsc::{Consumer, Producer, RingCounts, ring};

/// A ring of `slots` batches from each to each, also from one to itself: those who send with the doorbell that rings
/// when there is room again, those who receive with the one that rings when something comes.
pub fn rings<T>(
    from: &[Arc<Doorbell>],
    to: &[Arc<Doorbell>],
    slots: usize,
) -> (Vec<Outlet<T>>, Vec<Inlet<T>>) {
    connect(from, to, slots, |_, _| true)
}

pub(super) fn connect<T>(
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

    pub(super) fn receivers(&self) -> usize {
        self.rings.len()
    }

    /// A receiver has dealt with all that was ever sent to it, and its pump sleeps.
    pub(super) fn is_seen_to(&self, receiver: usize) -> bool {
        matches!(self.rings.get(receiver), Some(Some(producer)) if producer.is_seen_to())
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = RingCounts> {
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

    pub(super) fn senders(&self) -> usize {
        self.rings.len()
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (usize, RingCounts)> {
        self.rings.iter().map(|(from, consumer)| (*from, consumer.counts()))
    }
}
