use std::collections::BTreeSet;

use ahash::{AHashMap, RandomState};
use slab::Slab;
use smallvec::SmallVec;

use super::MemberKey;
use super::backlog::KEEP_PLACES;
use super::entry::Entry;
use crate::model::{DeliveryId, MessageNumber, Time};

/// A place in the table of what is in flight.
pub type Slot = usize;

/// The deliveries that one member holds, oldest first: a chain through the slots.
#[derive(Debug, Default, Clone, Copy)]
pub struct Chain {
    oldest: Option<Slot>,
    newest: Option<Slot>,
}

#[derive(Debug)]
struct Held {
    entry: Entry,
    member: MemberKey,
    older: Option<Slot>,
    newer: Option<Slot>,
    /// When it is taken back.
    due: Option<Time>,
}

/// What the members of one subscription hold un-acked.
///
/// Every operation is constant time, so that the cost of an ack does not grow with what is in flight; logarithmic
/// for deliveries that are taken back at a time.
#[derive(Debug, Default)]
pub struct InFlight {
    slots: Slab<Held>,
    by_number: AHashMap<MessageNumber, Slot>,
    /// Slots of messages with an id of their publisher's, by the hash of it, in order of delivery.
    by_message_id: AHashMap<u64, SmallVec<[Slot; 1]>>,
    hasher: RandomState,
    /// Deliveries that are taken back at a time, those of the same moment in publish order.
    by_due: BTreeSet<(Time, u64, Slot)>,
    bytes: u64,
}

impl InFlight {
    /// Records a delivery to `member`, as the newest of its chain; it is taken back at `due`.
    pub fn hold(&mut self, member: MemberKey, chain: &mut Chain, entry: Entry, due: Option<Time>) {
        self.bytes += entry.message.cost();
        let number = entry.message.number();
        let id_hash = entry.message.message_id().map(|id| self.hasher.hash_one(id));
        let slot = self.slots.insert(Held { entry, member, older: chain.newest, newer: None, due: None });
        self.set_due(slot, due);
        let twin = self.by_number.insert(number, slot);
        debug_assert!(twin.is_none(), "I3: one live delivery a message");
        if let Some(hash) = id_hash {
            self.by_message_id.entry(hash).or_default().push(slot);
        }
        match chain.newest {
            Some(newest) => self.slots[newest].newer = Some(slot),
            None => chain.oldest = Some(slot),
        }
        chain.newest = Some(slot);
    }

    /// Takes a delivery out of the table and of its member's chain.
    pub fn release(&mut self, slot: Slot, chain: &mut Chain) -> Entry {
        self.set_due(slot, None);
        let Held { entry, older, newer, .. } = self.slots.remove(slot);
        match older {
            Some(older) => self.slots[older].newer = newer,
            None => chain.oldest = newer,
        }
        match newer {
            Some(newer) => self.slots[newer].older = older,
            None => chain.newest = older,
        }
        self.bytes -= entry.message.cost();
        if self.slots.is_empty() && self.slots.capacity() > KEEP_PLACES {
            self.slots = Slab::new();
            self.by_number.shrink_to(KEEP_PLACES);
            self.by_message_id.shrink_to(KEEP_PLACES);
        }
        let mapped = self.by_number.remove(&entry.message.number());
        debug_assert_eq!(mapped, Some(slot), "I3: a delivery is settled once");
        if let Some(id) = entry.message.message_id() {
            self.forget_message_id(id, slot);
        }
        entry
    }

    /// Sets anew when a delivery is taken back.
    pub fn set_due(&mut self, slot: Slot, due: Option<Time>) {
        let held = &mut self.slots[slot];
        let position = held.entry.position;
        if let Some(old) = std::mem::replace(&mut held.due, due) {
            self.by_due.remove(&(old, position, slot));
        }
        if let Some(due) = due {
            self.by_due.insert((due, position, slot));
        }
    }

    /// A delivery that is to be taken back by `now`, the longest due first.
    pub fn due(&self, now: Time) -> Option<Slot> {
        self.by_due.first().filter(|&&(due, ..)| due <= now).map(|&(.., slot)| slot)
    }

    /// When the next delivery is taken back.
    pub fn next_due(&self) -> Option<Time> {
        self.by_due.first().map(|&(due, ..)| due)
    }

    fn forget_message_id(&mut self, id: &str, slot: Slot) {
        let hash = self.hasher.hash_one(id);
        if let Some(slots) = self.by_message_id.get_mut(&hash) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.by_message_id.remove(&hash);
            }
        }
    }

    /// The slot of a delivery; `None` where it was settled or taken back.
    pub fn find(&self, id: DeliveryId) -> Option<Slot> {
        let slot = *self.by_number.get(&id.message)?;
        (self.slots[slot].entry.deliveries == id.delivery).then_some(slot)
    }

    /// The earliest delivery of the message with this id, at `only` that member where given.
    pub fn find_message(&self, message_id: &str, only: Option<MemberKey>) -> Option<Slot> {
        let is_wanted = |slot: &Slot| only.is_none_or(|member| self.slots[*slot].member == member);
        let own = self.by_message_id.get(&self.hasher.hash_one(message_id)).and_then(|slots| {
            let named = |slot: &&Slot| self.slots[**slot].entry.message.message_id() == Some(message_id);
            slots.iter().filter(named).copied().find(is_wanted)
        });
        own.or_else(|| {
            // A message without an id of its publisher's goes by the broker's.
            let slot = *self.by_number.get(&MessageNumber::parse(message_id)?)?;
            let unnamed = self.slots[slot].entry.message.message_id().is_none();
            Some(slot).filter(|slot| unnamed && is_wanted(slot))
        })
    }

    pub fn holder(&self, slot: Slot) -> MemberKey {
        self.slots[slot].member
    }

    /// The oldest delivery of a chain.
    pub fn oldest(&self, chain: &Chain) -> Option<Slot> {
        chain.oldest
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Slot, holder and entry of each delivery, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, MemberKey, &Entry)> {
        self.slots.iter().map(|(slot, held)| (slot, held.member, &held.entry))
    }

    /// When each is taken back, by looking; for the check of [`InFlight::next_due`].
    pub fn dues(&self) -> impl Iterator<Item = Time> {
        self.slots.iter().filter_map(|(_, held)| held.due)
    }
}
