use super::MessageNumber;
use crate::limits;
use crate::memory::{Lease, Memory};

/// A published message, made once by the frontend that read it and shared by all its receivers.
#[derive(Debug)]
pub struct Message {
    pub number: MessageNumber,
    /// Topic, the publisher's own message_id, and the body, one after the other: one allocation.
    bytes: Box<[u8]>,
    topic_bytes: u16,
    /// 0 where the broker's id serves.
    message_id_bytes: u16,
    lease: Option<Lease>,
}

impl Message {
    /// A message whose body of `body_bytes` is what `encode` appends: the fields that are the same in each delivery,
    /// as they go out.
    ///
    /// `topic` and `message_id` are checked already ([`Topic`](super::Topic), [`check_message_id`](super::check_message_id)).
    pub fn new(
        number: MessageNumber,
        topic: &str,
        message_id: Option<&str>,
        body_bytes: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Self {
        let message_id = message_id.unwrap_or("");
        debug_assert!(topic.len() <= limits::TOPIC_BYTES && message_id.len() <= limits::ID_BYTES);
        let mut bytes = Vec::with_capacity(topic.len() + message_id.len() + body_bytes);
        bytes.extend_from_slice(topic.as_bytes());
        bytes.extend_from_slice(message_id.as_bytes());
        encode(&mut bytes);
        debug_assert_eq!(
            bytes.len(),
            topic.len() + message_id.len() + body_bytes,
            "the body is as long as was said"
        );
        Message {
            number,
            bytes: bytes.into(),
            topic_bytes: topic.len() as u16,
            message_id_bytes: message_id.len() as u16,
            lease: None,
        }
    }

    pub fn topic(&self) -> &str {
        str::from_utf8(&self.bytes[..self.topic_bytes.into()]).unwrap_or_default()
    }

    /// The publisher's own id; `None` where the broker's serves.
    pub fn message_id(&self) -> Option<&str> {
        if self.message_id_bytes == 0 {
            return None;
        }
        str::from_utf8(&self.bytes[self.topic_bytes.into()..self.body_start()]).ok()
    }

    /// The fields that are the same in each delivery, encoded as they go out.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_start()..]
    }

    fn body_start(&self) -> usize {
        usize::from(self.topic_bytes) + usize::from(self.message_id_bytes)
    }

    /// What the message counts for in every byte limit.
    pub fn cost(&self) -> u64 {
        self.body().len() as u64 + limits::MESSAGE_OVERHEAD_BYTES
    }

    /// Counts it against the process's memory as long as it lives.
    pub fn count_in(&mut self, memory: &'static Memory) {
        self.lease = Some(memory.lease(self.cost()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_parts_are_what_they_were() {
        let number = MessageNumber::from_u64(1);
        for (topic, id) in [("a", None), ("café", Some("m")), ("a", Some("é"))] {
            let message = Message::new(number, topic, id, 3, |out| out.extend([1, 2, 3]));
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
