//! The messages of the hot path, as views on the bytes that came.
//!
//! They have the tags of the contract's messages, and of their fields only those that the load test looks at:
//! texts stay slices of what was read, and the rest is skipped.
//! A test holds them against the generated messages.

use bytes::Bytes;
use prost::Message;

use crate::proto::PublishFailure;

/// A `SubscribeEvent`.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(oneof = "EventKind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<EventKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum EventKind {
    #[prost(bytes = "bytes", tag = "1")]
    SubscriptionId(Bytes),
    #[prost(message, tag = "2")]
    Message(Delivery),
    #[prost(message, tag = "3")]
    Batch(Batch),
    #[prost(message, tag = "4")]
    Lagged(Lagged),
    #[prost(message, tag = "5")]
    Role(RoleChanged),
    #[prost(message, tag = "6")]
    Draining(Draining),
}

/// A `Message`.
#[derive(Clone, PartialEq, Message)]
pub struct Delivery {
    #[prost(bytes = "bytes", tag = "1")]
    pub system_id: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub payload: Bytes,
    #[prost(uint32, tag = "7")]
    pub attempt: u32,
    #[prost(uint64, tag = "8")]
    pub epoch: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Batch {
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<Delivery>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Lagged {
    #[prost(uint64, tag = "1")]
    pub dropped: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct RoleChanged {
    #[prost(int32, tag = "1")]
    pub role: i32,
    #[prost(uint64, tag = "2")]
    pub epoch: u64,
    #[prost(uint32, tag = "3")]
    pub position: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Draining {}

/// A `SubscribeCommand` that acks.
#[derive(Clone, PartialEq, Message)]
pub struct AckCommand {
    #[prost(message, optional, tag = "2")]
    pub ack: Option<Ack>,
}

/// An `Ack` or, with the subscription, an `AckRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct Ack {
    #[prost(bytes = "bytes", tag = "1")]
    pub subscription_id: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub system_id: Bytes,
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub system_ids: Vec<Bytes>,
}

/// An `AckResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct Acked {
    #[prost(uint32, tag = "1")]
    pub settled: u32,
}

/// A `PublishResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct Confirmed {
    #[prost(uint32, tag = "3")]
    pub subscriptions: u32,
}

/// A `PublishBatchResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct BatchConfirmed {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<Confirmed>,
    #[prost(message, repeated, tag = "2")]
    pub failures: Vec<PublishFailure>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto;

    fn read<A: Message + Default>(message: &impl Message) -> A {
        A::decode(message.encode_to_vec().as_slice()).expect("the same wire format")
    }

    #[test]
    fn a_delivery_is_what_the_contract_says() {
        let message = proto::Message {
            system_id: "m-1.2".into(),
            message_id: "mine".into(),
            topic: "a.b".into(),
            payload: Bytes::from_static(b"work"),
            headers: [("k".to_owned(), "v".to_owned())].into(),
            published_at: Some(Default::default()),
            delivery_attempt: 2,
            epoch: 77,
        };
        let seen = Delivery { system_id: "m-1.2".into(), payload: "work".into(), attempt: 2, epoch: 77 };
        let event = |event| proto::SubscribeEvent { event: Some(event) };
        let single: Event = read(&event(proto::subscribe_event::Event::Message(message.clone())));
        assert_eq!(single.kind, Some(EventKind::Message(seen.clone())));
        let batch = proto::MessageBatch { messages: vec![message.clone(), message] };
        let batch: Event = read(&event(proto::subscribe_event::Event::Batch(batch)));
        assert_eq!(batch.kind, Some(EventKind::Batch(Batch { messages: vec![seen.clone(), seen] })));
        let role = proto::RoleChanged { role: 1, epoch: 5, position: 3 };
        let role: Event = read(&event(proto::subscribe_event::Event::Role(role)));
        assert_eq!(role.kind, Some(EventKind::Role(RoleChanged { role: 1, epoch: 5, position: 3 })));
    }

    #[test]
    fn acks_are_what_the_contract_says() {
        let ack = Ack {
            subscription_id: "s-1".into(),
            system_id: "m-1".into(),
            system_ids: vec!["m-2".into(), "m-3".into()],
        };
        let request: proto::AckRequest = read(&ack);
        assert_eq!((request.subscription_id.as_str(), request.system_id.as_str()), ("s-1", "m-1"));
        assert_eq!(request.system_ids, ["m-2", "m-3"]);
        let command: proto::SubscribeCommand = read(&AckCommand { ack: Some(ack) });
        let Some(proto::subscribe_command::Command::Ack(inner)) = command.command else { panic!("an ack") };
        assert_eq!(inner.system_ids, ["m-2", "m-3"]);
    }

    #[test]
    fn confirms_are_what_the_contract_says() {
        let response =
            proto::PublishResponse { subscriptions: 3, system_id: "m-1".into(), ..Default::default() };
        assert_eq!(read::<Confirmed>(&response), Confirmed { subscriptions: 3 });
        let failure = PublishFailure { index: 1, code: 8, message: "full".into() };
        let batch = proto::PublishBatchResponse {
            results: vec![response, Default::default()],
            failures: vec![failure.clone()],
        };
        let seen: BatchConfirmed = read(&batch);
        assert_eq!(seen.results, [Confirmed { subscriptions: 3 }, Confirmed::default()]);
        assert_eq!(seen.failures, [failure]);
        assert_eq!(read::<Acked>(&proto::AckResponse { settled: 2 }), Acked { settled: 2 });
    }
}
