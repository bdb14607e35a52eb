//! Ids as distinct types. Inside they are numbers or shared texts; on the wire they are text.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use arrayvec::ArrayString;

use crate::limits;

/// The id of a subscription ("channel"), given by a client or made by the broker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionId(Arc<str>);

/// The name of a consumer group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupName(Arc<str>);

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("is {bytes} bytes; limit {}", limits::ID_BYTES)]
    TooLong { bytes: usize },
    #[error("has the control character U+{code:04X} at byte {offset}; remove it")]
    Control { code: u32, offset: usize },
}

fn check_id(text: &str) -> Result<(), IdError> {
    if text.len() > limits::ID_BYTES {
        return Err(IdError::TooLong { bytes: text.len() });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((offset, c)) => Err(IdError::Control { code: c as u32, offset }),
        None => Ok(()),
    }
}

macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            /// `None` for the empty text, which on the wire means "not given".
            pub fn parse(text: &str) -> Result<Option<Self>, IdError> {
                check_id(text)?;
                Ok((!text.is_empty()).then(|| $name(text.into())))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(SubscriptionId);
text_id!(GroupName);

impl SubscriptionId {
    /// An id made by the broker: `s-` and 13 characters.
    pub fn from_number(number: MessageNumber) -> Self {
        SubscriptionId(format!("s-{number}").into())
    }
}

/// Checks a publisher's own message_id; the empty text means that it gave none.
pub fn check_message_id(text: &str) -> Result<(), IdError> {
    check_id(text)
}

/// The number of a message, unique over all executors and, as it starts from the wall clock, over restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageNumber(u64);

/// Crockford's base 32 in lower case: no letters that are mistaken for digits.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LEN: usize = 13;

impl MessageNumber {
    /// For the model and for tests.
    pub fn from_u64(number: u64) -> Self {
        MessageNumber(number)
    }

    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The 13 characters of the text form, all of them ASCII.
    pub fn digits(self) -> [u8; TEXT_LEN] {
        // No digit waits for another.
        std::array::from_fn(|place| DIGITS[(self.0 >> (5 * (TEXT_LEN - 1 - place)) & 31) as usize])
    }

    /// The text form, without an allocation.
    pub fn text(self) -> ArrayString<TEXT_LEN> {
        // Digits are ASCII: the empty text never comes.
        ArrayString::from_byte_string(&self.digits()).unwrap_or_default()
    }

    /// `None` where the text was not made by this broker.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_digits(text.as_bytes())
    }

    fn parse_digits(bytes: &[u8]) -> Option<Self> {
        // 13 digits hold 65 bits: the first one has room for four.
        if bytes.len() != TEXT_LEN || digit(bytes[0])? > 15 {
            return None;
        }
        let mut number = 0;
        for &byte in bytes {
            number = number << 5 | digit(byte)?;
        }
        Some(MessageNumber(number))
    }
}

/// What each byte is worth as a digit.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};
const NO_DIGIT: u8 = u8::MAX;

fn digit(byte: u8) -> Option<u64> {
    let value = VALUES[usize::from(byte)];
    (value != NO_DIGIT).then_some(value.into())
}

impl fmt::Display for MessageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Hands out the numbers of one executor. Lives on that executor.
#[derive(Debug)]
pub struct NumberSource {
    next: u64,
}

const EXECUTOR_BITS: u32 = 8;
const _: () = assert!(limits::EXECUTORS <= 1 << EXECUTOR_BITS);

impl NumberSource {
    /// `started` is the wall clock in units of 100 ns since 1970: a restarted broker hands out higher
    /// numbers than its predecessor as long as one executor made fewer than 10 million a second.
    pub fn new(executor: usize, started: u64) -> Self {
        NumberSource { next: started << EXECUTOR_BITS | executor as u64 }
    }

    pub fn take(&mut self) -> MessageNumber {
        let number = self.next;
        self.next = number.wrapping_add(1 << EXECUTOR_BITS);
        MessageNumber(number)
    }
}

/// One delivery of one message: the `system_id` of the wire.
///
/// The first delivery has the text of the message's number, the n-th has `.n` appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryId {
    pub message: MessageNumber,
    /// Counts deliveries of the message in its subscription, from 1.
    pub delivery: u32,
}

impl DeliveryId {
    /// `None` where the text was not made by this broker: such an id is simply not found.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, suffix) = text.as_bytes().split_at_checked(TEXT_LEN)?;
        let message = MessageNumber::parse_digits(number)?;
        if suffix.is_empty() {
            return Some(DeliveryId { message, delivery: 1 });
        }
        // One spelling each: "2", not "02" or "+2"; the first delivery has none.
        let suffix = text.get(TEXT_LEN..)?.strip_prefix('.')?;
        let is_plain = suffix.bytes().all(|byte| byte.is_ascii_digit()) && !suffix.starts_with('0');
        let delivery = suffix.parse().ok().filter(|&delivery: &u32| is_plain && delivery > 1)?;
        Some(DeliveryId { message, delivery })
    }
}

/// Longest suffix of a delivery id: a dot, a 32-bit number.
const SUFFIX: usize = 11;
/// Longest text of one.
const DELIVERY_TEXT: usize = TEXT_LEN + SUFFIX;

impl DeliveryId {
    /// The text form, without an allocation.
    pub fn text(self) -> ArrayString<DELIVERY_TEXT> {
        let mut text = ArrayString::new();
        text.push_str(&self.message.text());
        text.push_str(&self.suffix());
        text
    }

    /// What stands behind the digits of the message's number: nothing at the first delivery.
    pub fn suffix(self) -> ArrayString<SUFFIX> {
        let mut suffix = ArrayString::new();
        if self.delivery > 1 {
            let written = fmt::Write::write_fmt(&mut suffix, format_args!(".{}", self.delivery));
            debug_assert!(written.is_ok(), "the longest number fits");
        }
        suffix
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// One Subscribe stream: unique for the life of the process, so that the late death of an old
/// stream never touches a newer one of the same client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId {
    /// The executor whose frontend holds the stream.
    pub frontend: u16,
    pub number: u64,
}

/// A question that a frontend waits for an answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    /// The executor whose frontend asked.
    pub frontend: u16,
    pub number: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_ids_come_back_from_their_text() {
        for number in [0, 1, 31, 32, u64::MAX, 17_660_000_000_000_000 << 8 | 3] {
            for delivery in [1, 2, 10, u32::MAX] {
                let id = DeliveryId { message: MessageNumber(number), delivery };
                assert_eq!(DeliveryId::parse(&id.text()), Some(id));
            }
        }
    }

    #[test]
    fn foreign_texts_are_no_delivery_ids() {
        let number = MessageNumber(7);
        let spoilt = ["", ".", "x", "g000000000000", "0000000000000.", "zzzzzzzzzzzzz", "000000000000é"];
        let suffixes = ["1", "0", "02", "+2", " 2", "2.2", "4294967296"].map(|s| format!("{number}.{s}"));
        for text in spoilt.iter().copied().chain(suffixes.iter().map(String::as_str)) {
            assert_eq!(DeliveryId::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn broker_made_ids_are_short_and_rise() {
        let mut source = NumberSource::new(255, 17_660_000_000_000_000);
        let (first, second) = (source.take(), source.take());
        assert!(first < second && first.to_string() < second.to_string());
        assert!(first.to_string().len() <= 20);
        assert!(SubscriptionId::from_number(first).as_str().len() <= 20);
    }

    #[test]
    fn ids_have_bounds() {
        assert_eq!(SubscriptionId::parse(""), Ok(None));
        assert_eq!(SubscriptionId::parse(&"x".repeat(257)), Err(IdError::TooLong { bytes: 257 }));
        assert_eq!(GroupName::parse("a\tb"), Err(IdError::Control { code: 9, offset: 1 }));
    }
}
