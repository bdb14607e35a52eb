/// Emptied batches that are kept for each peer, to use them again as outboxes.
const SPARE_BATCHES_PER_PEER: usize = 4;
/// A batch that has grown beyond this many items, while its ring was full, is freed when emptied.
const SPARE_BATCH_ITEMS: usize = 1024;

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
