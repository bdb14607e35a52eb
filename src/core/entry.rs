use crate::model::Message;

/// A message in one subscription, waiting or in flight.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Place in the publish order of the subscription, from 0.
    pub position: u64,
    pub message: Message,
    /// Deliveries so far.
    pub deliveries: u32,
    /// Attempts so far.
    pub attempts: u32,
}
