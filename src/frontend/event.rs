//! Events as they go out on a Subscribe stream.

use bytes::BufMut;
use prost::Message as _;
use prost::encoding::{encode_varint, encoded_len_varint};
use tonic::Status;

use crate::core::Delivery;
use crate::model::DeliveryId;
use crate::proto::SubscribeEvent;
use crate::proto::subscribe_event::Event;

/// One event. A message is encoded in two parts: what differs by delivery here, and the body, which
/// all receivers share.
#[derive(Debug)]
pub enum WireEvent {
    Message(Delivery),
    /// Several messages; together they stay within what a client accepts.
    Batch(Vec<Delivery>),
    /// What is seldom: encoded as the contract has it.
    Other(SubscribeEvent),
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
        matches!(self, WireEvent::Other(SubscribeEvent { event: Some(Event::Role(_)) }))
    }

    /// The messages that it carries.
    pub fn deliveries(&self) -> &[Delivery] {
        match self {
            WireEvent::Message(delivery) => std::slice::from_ref(delivery),
            WireEvent::Batch(deliveries) => deliveries,
            WireEvent::Other(_) => &[],
        }
    }

    /// Appends the event as protobuf, without a frame around it. Fails where `out` cannot grow enough.
    pub fn encode(&self, out: &mut impl BufMut) -> Result<(), Status> {
        match self {
            WireEvent::Message(delivery) => encode_delivery(EVENT_MESSAGE, delivery, out),
            WireEvent::Batch(deliveries) => {
                let length: usize = deliveries.iter().map(length_in_batch).sum();
                out.put_u8(EVENT_BATCH);
                encode_varint(length as u64, out);
                deliveries.iter().for_each(|delivery| encode_delivery(BATCH_MESSAGE, delivery, out));
            }
            WireEvent::Other(event) => {
                event.encode(out).map_err(|error| Status::internal(error.to_string()))?
            }
        }
        Ok(())
    }
}

/// Bytes that a delivery adds to a batch, its tag and length included.
pub fn length_in_batch(delivery: &Delivery) -> usize {
    let length = head_length(delivery, id_of(delivery).text().len()) + delivery.message.body.len();
    1 + encoded_len_varint(length as u64) + length
}

fn id_of(delivery: &Delivery) -> DeliveryId {
    DeliveryId { message: delivery.message.number, delivery: delivery.delivery }
}

/// Bytes of the fields that differ by delivery.
fn head_length(delivery: &Delivery, id_length: usize) -> usize {
    let epoch = match delivery.epoch {
        0 => 0,
        epoch => 1 + encoded_len_varint(epoch),
    };
    2 + id_length + 1 + encoded_len_varint(delivery.attempt.into()) + epoch
}

fn encode_delivery(tag: u8, delivery: &Delivery, out: &mut impl BufMut) {
    let text = id_of(delivery).text();
    let body = &delivery.message.body;
    out.put_u8(tag);
    encode_varint((head_length(delivery, text.len()) + body.len()) as u64, out);
    out.put_u8(MESSAGE_SYSTEM_ID);
    out.put_u8(text.len() as u8);
    out.put_slice(text.as_bytes());
    out.put_u8(MESSAGE_DELIVERY_ATTEMPT);
    encode_varint(delivery.attempt.into(), out);
    if delivery.epoch != 0 {
        out.put_u8(MESSAGE_EPOCH);
        encode_varint(delivery.epoch, out);
    }
    out.put_slice(body);
}
