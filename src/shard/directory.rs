use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{GroupName, SubscriptionId};

/// Who a subscription id belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    Group(GroupName),
    Multi,
}

/// The id belongs to somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdTaken {
    pub owner: Owner,
}

#[derive(Debug)]
struct Entry {
    owner: Owner,
    shard: usize,
    /// Opens under way, and one more while the subscription lives.
    holds: u32,
}

/// Which shard holds a subscription id, for the whole process.
///
/// Shared by all executors behind a lock that is taken when a subscription opens or ends, and when
/// a frontend meets an id that it has not seen: frontends remember what they found.
#[derive(Debug, Default)]
pub struct Directory {
    entries: Mutex<HashMap<SubscriptionId, Entry>>,
}

impl Directory {
    fn entries(&self) -> MutexGuard<'_, HashMap<SubscriptionId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an id for its owner while it opens. Dropping the claim gives it back, unless the
    /// subscription lives by then.
    pub fn claim(
        self: &Arc<Self>,
        id: &SubscriptionId,
        owner: &Owner,
        shard: usize,
    ) -> Result<Claim, IdTaken> {
        let mut entries = self.entries();
        let fresh = || Entry { owner: owner.clone(), shard, holds: 0 };
        let entry = entries.entry(id.clone()).or_insert_with(fresh);
        if entry.owner != *owner {
            return Err(IdTaken { owner: entry.owner.clone() });
        }
        entry.holds += 1;
        Ok(Claim { directory: Arc::clone(self), id: id.clone() })
    }

    /// The subscription lives now. Its first member still holds a claim.
    pub fn created(&self, id: &SubscriptionId) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.holds += 1;
        } else {
            debug_assert!(false, "whoever opens claims first");
        }
    }

    /// A subscription is gone, or an open that claimed its id.
    pub fn release(&self, id: &SubscriptionId) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(id) {
            entry.holds -= 1;
            if entry.holds == 0 {
                entries.remove(id);
            }
        }
    }

    pub fn shard_of(&self, id: &SubscriptionId) -> Option<usize> {
        self.entries().get(id).map(|entry| entry.shard)
    }
}

/// An id kept for one open under way.
#[derive(Debug)]
pub struct Claim {
    directory: Arc<Directory>,
    id: SubscriptionId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.directory.release(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SubscriptionId {
        SubscriptionId::parse(text).ok().flatten().expect("an id")
    }

    fn group(text: &str) -> Owner {
        Owner::Group(GroupName::parse(text).ok().flatten().expect("a name"))
    }

    #[test]
    fn an_id_has_one_owner_until_the_last_claim_is_gone() {
        let directory = Arc::new(Directory::default());
        let first = directory.claim(&id("a"), &group("g"), 1).expect("free");
        let second = directory.claim(&id("a"), &group("g"), 1).expect("the same owner");
        assert_eq!(directory.claim(&id("a"), &Owner::Multi, 0).err(), Some(IdTaken { owner: group("g") }));
        directory.created(&id("a"));
        drop((first, second));
        assert_eq!(directory.shard_of(&id("a")), Some(1));
        directory.release(&id("a"));
        assert_eq!(directory.shard_of(&id("a")), None);
        assert!(directory.claim(&id("a"), &Owner::Multi, 0).is_ok());
    }
}
