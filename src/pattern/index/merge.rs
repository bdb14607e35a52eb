//! A merge of overlay and base, cut so that its work can be done on another thread.

use std::sync::Arc;

use super::base::Base;
use super::ids::{IdQueue, IdSet};
use super::overlay::Overlay;

/// The work of a merge: what it needs, and nothing of the index.
#[must_use = "until its result is given back, no other merge can begin"]
pub struct MergeJob {
    pub(super) base: Arc<Base>,
    pub(super) overlay: Arc<Overlay>,
    pub(super) gone: IdQueue,
}

/// The result of a merge, for [`Index::finish_merge`](super::Index::finish_merge).
#[must_use = "until it is given back, no other merge can begin"]
pub struct Merged {
    pub(super) base: Arc<Base>,
    /// Ids that the old base or the overlay may name, and the new base does not.
    pub(super) gone: IdQueue,
}

/// What a merge replaced. To drop it takes a while: leave that to the thread that ran the job.
#[must_use = "to be dropped where time does not matter"]
pub struct Retired {
    pub(super) _base: Arc<Base>,
    pub(super) _overlay: Option<Arc<Overlay>>,
}

impl MergeJob {
    /// Builds the new base: seconds for a million patterns, and as much memory again as the base has.
    pub fn run(self) -> Merged {
        let gone: IdSet = self.gone.iter().collect();
        Merged { base: Arc::new(self.base.merged(&self.overlay, &gone)), gone: self.gone }
    }
}
