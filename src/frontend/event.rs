//! Events as they go out on a Subscribe stream.

use arrayvec::ArrayVec;
use bytes::BufMut;
use prost::encoding::encoded_len_varint;
use prost::{EncodeError, Message as _};

use crate::core::Delivery;
use crate::model::DeliveryId;
use crate::proto::SubscribeEvent;
use crate::proto::subscribe_event::Event;

/// One event. A message is encoded in two parts: what differs by delivery here, and the body, which
/// all receivers share.
#[derive(Debug)]
pub enum WireEvent {
    Message(Delivery),
    /// Several messages; together they stay within what a client accepts. `length` is that of all of them, each as in
    /// [`length_in_batch`].
    Batch {
        deliveries: Vec<Delivery>,
        length: usize,
    },
    /// What is seldom: encoded as the contract has it.
    Other(Box<SubscribeEvent>),
}

// Field numbers and wire types of the contract; tests/semantics decodes what is written here.
const EVENT_MESSAGE: u8 = 2 << 3 | 2;
const EVENT_BATCH: u8 = 3 << 3 | 2;
const BATCH_MESSAGE: u8 = 1 << 3 | 2;
const MESSAGE_SYSTEM_ID: u8 = 1 << 3 | 2;
const MESSAGE_DELIVERY_ATTEMPT: u8 = 7 << 3;
const MESSAGE_EPOCH: u8 = 8 << 3;

impl WireEvent {
    pub fn is_role(&self) -> bool {
        matches!(self, WireEvent::Other(event) if matches!(event.event, Some(Event::Role(_))))
    }

    /// The messages that it carries.
    pub fn deliveries(&self) -> &[Delivery] {
        match self {
            WireEvent::Message(delivery) => std::slice::from_ref(delivery),
            WireEvent::Batch { deliveries, .. } => deliveries,
            WireEvent::Other(_) => &[],
        }
    }

    /// Appends the event as protobuf, without a frame around it. Fails where `out` cannot grow enough.
    pub fn encode(&self, out: &mut impl BufMut) -> Result<(), EncodeError> {
        match self {
            WireEvent::Message(delivery) => encode_delivery(EVENT_MESSAGE, delivery, out),
            WireEvent::Batch { deliveries, length } => {
                debug_assert_eq!(*length, deliveries.iter().map(length_in_batch).sum::<usize>());
                out.put_u8(EVENT_BATCH);
                put_varint(*length as u64, |byte| out.put_u8(byte));
                deliveries.iter().for_each(|delivery| encode_delivery(BATCH_MESSAGE, delivery, out));
            }
            WireEvent::Other(event) => event.encode(out)?,
        }
        Ok(())
    }
}

/// Bytes that a delivery adds to a batch, its tag and length included.
pub fn length_in_batch(delivery: &Delivery) -> usize {
    let length = head_length(delivery, id_length(id_of(delivery))) + delivery.message.body().len();
    1 + encoded_len_varint(length as u64) + length
}

fn id_of(delivery: &Delivery) -> DeliveryId {
    DeliveryId { message: delivery.message.number(), delivery: delivery.delivery }
}

fn id_length(id: DeliveryId) -> usize {
    id.message.digits().len() + id.suffix().len()
}

/// Bytes of the fields that differ by delivery.
fn head_length(delivery: &Delivery, id_length: usize) -> usize {
    let epoch = match delivery.epoch {
        0 => 0,
        epoch => 1 + encoded_len_varint(epoch),
    };
    2 + id_length + 1 + encoded_len_varint(delivery.attempt.into()) + epoch
}

/// Bytes of tag, length and head at most.
const HEAD_BYTES: usize = 64;

/// The head is put together on the stack: two writes an event, however `out` grows.
fn encode_delivery(tag: u8, delivery: &Delivery, out: &mut impl BufMut) {
    let id = id_of(delivery);
    let (digits, suffix) = (id.message.digits(), id.suffix());
    let id_length = digits.len() + suffix.len();
    let body = delivery.message.body();
    let mut head = ArrayVec::<u8, HEAD_BYTES>::new();
    head.push(tag);
    put_varint((head_length(delivery, id_length) + body.len()) as u64, |byte| head.push(byte));
    head.push(MESSAGE_SYSTEM_ID);
    head.push(id_length as u8);
    head.extend(digits);
    head.extend(suffix.bytes());
    head.push(MESSAGE_DELIVERY_ATTEMPT);
    put_varint(delivery.attempt.into(), |byte| head.push(byte));
    if delivery.epoch != 0 {
        head.push(MESSAGE_EPOCH);
        put_varint(delivery.epoch, |byte| head.push(byte));
    }
    out.put_slice(&head);
    out.put_slice(body);
}

/// A number as protobuf has it; most take one byte.
pub(super) fn put_varint(mut number: u64, mut put: impl FnMut(u8)) {
    while number >= 0x80 {
        put(number as u8 | 0x80);
        number >>= 7;
    }
    put(number as u8);
}
