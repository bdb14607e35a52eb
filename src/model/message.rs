use triomphe::{HeaderSliceWithLengthProtected, ThinArc};

use super::MessageNumber;
use crate::limits;
use crate::memory::{Lease, Memory};

/// A published message, made once by the frontend that read it and shared by all its receivers: a handle that is moved
/// where it can be. Every copy of it, and its end, costs a cache line's way between cores.
///
/// All of it is one allocation.
#[derive(Debug, Clone)]
pub struct Message(ThinArc<Head, u8>);

/// What stands before topic, the publisher's own message_id, and the body.
#[derive(Debug)]
struct Head {
    number: MessageNumber,
    lease: Option<Lease>,
    topic_bytes: u16,
    /// 0 where the broker's id serves.
    message_id_bytes: u16,
}

type Parts = HeaderSliceWithLengthProtected<Head, u8>;

impl Message {
    /// A message whose body of `body_bytes` is what `encode` writes into it, all zeros before: the fields that are the
    /// same in each delivery, as they go out. It is written in its place, since reading it back at once would stall.
    ///
    /// `topic` and `message_id` are checked already ([`Topic`](super::Topic), [`check_message_id`](super::check_message_id)).
    pub fn new(
        number: MessageNumber,
        topic: &str,
        message_id: Option<&str>,
        body_bytes: usize,
        encode: impl FnOnce(&mut [u8]),
    ) -> Self {
        let message_id = message_id.unwrap_or("");
        debug_assert!(topic.len() <= limits::TOPIC_BYTES && message_id.len() <= limits::ID_BYTES);
        let head = Head {
            number,
            lease: None,
            topic_bytes: topic.len() as u16,
            message_id_bytes: message_id.len() as u16,
        };
        let bytes = topic.len() + message_id.len() + body_bytes;
        let mut message = Message(ThinArc::from_header_and_iter(head, (0..bytes).map(|_| 0)));
        message.write(|parts| {
            let (names, body) = parts.slice_mut().split_at_mut(topic.len() + message_id.len());
            let (topic_place, id_place) = names.split_at_mut(topic.len());
            topic_place.copy_from_slice(topic.as_bytes());
            id_place.copy_from_slice(message_id.as_bytes());
            encode(body);
        });
        message
    }

    /// Writes to a message that has no other handle yet.
    fn write(&mut self, write: impl FnOnce(&mut Parts)) {
        self.0.with_arc_mut(|shared| {
            let parts = triomphe::Arc::get_mut(shared);
            debug_assert!(parts.is_some(), "a message is the same for all who have it");
            parts.map(write);
        });
    }

    pub fn number(&self) -> MessageNumber {
        self.head().number
    }

    fn head(&self) -> &Head {
        &self.0.header.header
    }

    pub fn topic(&self) -> &str {
        str::from_utf8(&self.0.slice[..self.head().topic_bytes.into()]).unwrap_or_default()
    }

    /// The publisher's own id; `None` where the broker's serves.
    pub fn message_id(&self) -> Option<&str> {
        let head = self.head();
        if head.message_id_bytes == 0 {
            return None;
        }
        str::from_utf8(&self.0.slice[head.topic_bytes.into()..self.body_start()]).ok()
    }

    /// The fields that are the same in each delivery, encoded as they go out.
    pub fn body(&self) -> &[u8] {
        &self.0.slice[self.body_start()..]
    }

    fn body_start(&self) -> usize {
        let head = self.head();
        usize::from(head.topic_bytes) + usize::from(head.message_id_bytes)
    }

    /// What the message counts for in every byte limit.
    pub fn cost(&self) -> u64 {
        self.body().len() as u64 + limits::MESSAGE_OVERHEAD_BYTES
    }

    /// Counts it against the process's memory as long as it lives. To be called before it is shared.
    pub fn count_in(&mut self, memory: &'static Memory) {
        let lease = memory.lease(self.cost());
        self.write(|parts| parts.header_mut().lease = Some(lease));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_are_what_they_were() {
        let number = MessageNumber::from_u64(1);
        for (topic, id) in [("a", None), ("café", Some("m")), ("a", Some("é"))] {
            let message = Message::new(number, topic, id, 3, |out| out.copy_from_slice(&[1, 2, 3]));
            assert_eq!((message.topic(), message.message_id(), message.body()), (topic, id, &[1, 2, 3][..]));
        }
    }

    #[test]
    fn it_counts_as_long_as_it_lives() {
        let memory = Memory::new(1, 1000);
        let mut message = Message::new(MessageNumber::from_u64(1), "a", None, 0, |_| ());
        message.count_in(memory);
        assert_eq!(memory.held(), message.cost());
        drop(message);
        assert_eq!(memory.held(), 0);
    }
}
