use bytes::Bytes;

use super::{MessageNumber, Topic};
use crate::limits;

/// A published message, made once by the frontend that read it and shared by all its receivers.
#[derive(Debug)]
pub struct Message {
    pub number: MessageNumber,
    pub topic: Topic,
    /// The publisher's own id; `None` where the broker's serves.
    pub message_id: Option<Box<str>>,
    /// The fields that are the same in each delivery, encoded as they go out.
    pub body: Bytes,
}

impl Message {
    /// What the message counts for in every byte limit.
    pub fn cost(&self) -> u64 {
        self.body.len() as u64 + limits::MESSAGE_OVERHEAD_BYTES
    }
}
