use std::time::{Duration, SystemTime};

use bytes::{BufMut, BytesMut};
use prost::Message as _;
use prost::encoding::encoded_len_varint;

use super::fields::Fields;
use super::{Bounds, Failure, id_field, invalid_topic};
use crate::core::DeadLetter;
use crate::frontend::confirms::Confirm;
use crate::frontend::event::put_varint;
use crate::frontend::rpc::publish_batch::Published;
use crate::model::{Message, MessageNumber, Topic, check_message_id};
use crate::proto;

/// Headers that a dead letter has beside its own.
const DEAD_LETTER_HEADERS: [&str; 4] = [
    "tinybroker-dead-letter-subscription",
    "tinybroker-dead-letter-topic",
    "tinybroker-dead-letter-reason",
    "tinybroker-dead-letter-attempts",
];

/// A publish as it lies in its request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Publish<'a> {
    request: &'a [u8],
    topic: &'a str,
    payload: &'a [u8],
    message_id: &'a str,
    /// Bytes that the headers take in an event. They are read again when they are written there.
    headers_bytes: usize,
}

impl<'a> Publish<'a> {
    /// Reads a `PublishRequest`.
    pub fn read(request: &'a [u8]) -> Result<Self, Failure> {
        let mut publish = Publish { request, ..Publish::default() };
        for field in Fields::of(request) {
            match field? {
                (1, value) => publish.topic = value.text()?,
                (2, value) => publish.payload = value.bytes()?,
                (3, value) => publish.message_id = value.text()?,
                (4, value) => publish.headers_bytes += delimited_len(header_len(header(value.bytes()?)?)),
                _ => {}
            }
        }
        Ok(publish)
    }

    /// Reads a `PublishBatchRequest`: all of it, or nothing.
    pub fn read_batch(request: &'a [u8]) -> Result<Vec<Self>, Failure> {
        let mut batch = Vec::new();
        for field in Fields::of(request) {
            if let (1, value) = field? {
                batch.push(Publish::read(value.bytes()?)?);
            }
        }
        Ok(batch)
    }

    /// Checks it and encodes it as it will go out to every receiver: this is the one copy of the payload.
    pub fn into_message(
        self,
        number: MessageNumber,
        bounds: &Bounds,
        published_at: SystemTime,
    ) -> Result<Message, Failure> {
        Topic::check(self.topic).map_err(|error| invalid_topic("topic", &error))?;
        id_field("message_id", check_message_id(self.message_id))?;
        let broker_id = number.digits();
        let message_id = if self.message_id.is_empty() { &broker_id[..] } else { self.message_id.as_bytes() };
        // The time is left out: whether a message fits must not depend on the moment.
        let bytes = self.encoded_len(message_id);
        if bytes > bounds.max_message_bytes {
            let what = "the message (topic, message_id, headers and payload)";
            return Err(Failure::TooLarge { what, bytes, limit: bounds.max_message_bytes });
        }
        let since = published_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let own_id = (!self.message_id.is_empty()).then_some(self.message_id);
        let body_bytes = bytes + delimited_len(timestamp_len(since));
        Ok(Message::new(number, self.topic, own_id, body_bytes, |body| {
            self.encode(message_id, since, body);
        }))
    }

    /// What its publisher is told.
    pub fn response(&self, number: MessageNumber, subscriptions: u32) -> proto::PublishResponse {
        let system_id = number.to_string();
        let message_id = if self.message_id.is_empty() { &*system_id } else { self.message_id };
        proto::PublishResponse { message_id: message_id.to_owned(), system_id, subscriptions }
    }

    /// The same, as one result of a batch.
    fn put_result(&self, published: &Published, out: &mut BytesMut) {
        let system_id = published.number.digits();
        let message_id = if self.message_id.is_empty() { &system_id[..] } else { self.message_id.as_bytes() };
        let subscriptions = match published.subscriptions {
            0 => 0,
            subscriptions => 1 + encoded_len_varint(subscriptions.into()),
        };
        let length = delimited_len(message_id.len()) + delimited_len(system_id.len()) + subscriptions;
        let begin = out.len();
        out.put_bytes(0, delimited_len(length));
        let rest = put_number(RESULTS, length as u64, &mut out[begin..]);
        let rest = put(SYSTEM_ID, &system_id, rest);
        let rest = put(OWN_ID, message_id, rest);
        if published.subscriptions > 0 {
            put_number(SUBSCRIPTIONS, published.subscriptions.into(), rest);
        }
    }

    fn encoded_len(&self, message_id: &[u8]) -> usize {
        delimited_len(message_id.len())
            + delimited_len(self.topic.len())
            + text_len(self.payload)
            + self.headers_bytes
    }

    fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let request = if self.headers_bytes > 0 { self.request } else { &[] };
        // They were read before: nothing fails.
        Fields::of(request).filter_map(|field| match field {
            Ok((4, value)) => header(value.bytes().ok()?).ok(),
            _ => None,
        })
    }

    /// Fills the body of a message.
    fn encode(&self, message_id: &[u8], since: Duration, body: &mut [u8]) {
        let rest = put(MESSAGE_ID, message_id, body);
        let rest = put(TOPIC, self.topic.as_bytes(), rest);
        let mut rest = put_unless_empty(PAYLOAD, self.payload, rest);
        for header in self.headers() {
            rest = put_number(HEADERS, header_len(header) as u64, rest);
            rest = put_unless_empty(KEY, header.0.as_bytes(), rest);
            rest = put_unless_empty(VALUE, header.1.as_bytes(), rest);
        }
        let rest = put_number(PUBLISHED_AT, timestamp_len(since) as u64, rest);
        let rest = put_number(SECONDS, since.as_secs(), rest);
        let rest = put_number(NANOS, since.subsec_nanos().into(), rest);
        debug_assert!(rest.is_empty(), "the body is as long as was said");
    }
}

/// One entry of the map: a key or value that is left out is empty.
fn header(entry: &[u8]) -> Result<(&str, &str), Failure> {
    let mut header = ("", "");
    for field in Fields::of(entry) {
        match field? {
            (1, value) => header.0 = value.text()?,
            (2, value) => header.1 = value.text()?,
            _ => {}
        }
    }
    Ok(header)
}

// Tags of the fields of `Message`, of an entry of its headers and of a timestamp, all below 16: one byte each.
const MESSAGE_ID: u8 = 2 << 3 | 2;
const TOPIC: u8 = 3 << 3 | 2;
const PAYLOAD: u8 = 4 << 3 | 2;
const HEADERS: u8 = 5 << 3 | 2;
const PUBLISHED_AT: u8 = 6 << 3 | 2;
const KEY: u8 = 1 << 3 | 2;
const VALUE: u8 = 2 << 3 | 2;
const SECONDS: u8 = 1 << 3;
const NANOS: u8 = 2 << 3;
// Those of `PublishBatchResponse` and of a result in it.
const RESULTS: u8 = 1 << 3 | 2;
const SYSTEM_ID: u8 = 1 << 3 | 2;
const OWN_ID: u8 = 2 << 3 | 2;
const SUBSCRIPTIONS: u8 = 3 << 3;
/// Bytes of a result with ids of the broker's, or a few more.
const RESULT_BYTES: usize = 40;

/// Bytes of a field with so many in it.
fn delimited_len(bytes: usize) -> usize {
    1 + encoded_len_varint(bytes as u64) + bytes
}

/// Bytes of a field that is left out where it is empty.
fn text_len(content: &[u8]) -> usize {
    if content.is_empty() { 0 } else { delimited_len(content.len()) }
}

fn header_len((key, value): (&str, &str)) -> usize {
    text_len(key.as_bytes()) + text_len(value.as_bytes())
}

fn timestamp_len(since: Duration) -> usize {
    2 + encoded_len_varint(since.as_secs()) + encoded_len_varint(since.subsec_nanos().into())
}

/// Writes a field. Returns what is behind it, as all of these do.
fn put_number(tag: u8, number: u64, out: &mut [u8]) -> &mut [u8] {
    let mut at = 0;
    let mut put = |byte| {
        out[at] = byte;
        at += 1;
    };
    put(tag);
    put_varint(number, put);
    &mut out[at..]
}

fn put<'a>(tag: u8, content: &[u8], out: &'a mut [u8]) -> &'a mut [u8] {
    let out = put_number(tag, content.len() as u64, out);
    let (place, rest) = out.split_at_mut(content.len());
    place.copy_from_slice(content);
    rest
}

fn put_unless_empty<'a>(tag: u8, content: &[u8], out: &'a mut [u8]) -> &'a mut [u8] {
    if content.is_empty() { out } else { put(tag, content, out) }
}

/// Appends a `PublishBatchResponse`: one result a message, in order.
pub fn put_batch_response(
    batch: &[Publish<'_>],
    outcomes: Vec<Result<Published, Failure>>,
    out: &mut BytesMut,
) {
    out.reserve(batch.len() * RESULT_BYTES);
    let mut failures = Vec::new();
    for (index, (publish, outcome)) in (0..).zip(batch.iter().zip(outcomes)) {
        match outcome {
            Ok(published) => publish.put_result(&published, out),
            Err(failure) => {
                out.put_slice(&[RESULTS, 0]);
                failures.push(publish_failure(index, &failure));
            }
        }
    }
    proto::PublishBatchResponse { results: Vec::new(), failures }.encode_raw(out);
}

pub fn confirm(confirm: Confirm) -> proto::PublishConfirm {
    proto::PublishConfirm {
        confirmed: confirm.confirmed,
        failures: confirm.failures.iter().map(|(index, failure)| publish_failure(*index, failure)).collect(),
        unheard: confirm.unheard,
    }
}

fn publish_failure(index: u64, failure: &Failure) -> proto::PublishFailure {
    proto::PublishFailure { index, code: failure.code() as i32, message: failure.short_text() }
}

/// The message that takes a dead letter's place on its topic.
pub fn dead_letter(
    letter: &DeadLetter,
    number: MessageNumber,
    bounds: &Bounds,
    published_at: SystemTime,
) -> Result<Message, Failure> {
    let mut old = proto::Message::decode(letter.message.body()).map_err(|_| Failure::Internal)?;
    let values = [
        letter.subscription.to_string(),
        std::mem::take(&mut old.topic),
        letter.reason.name().to_owned(),
        letter.attempts.to_string(),
    ];
    old.headers.extend(DEAD_LETTER_HEADERS.map(str::to_owned).into_iter().zip(values));
    let request = proto::PublishRequest {
        topic: letter.topic.to_string(),
        payload: old.payload,
        message_id: old.message_id,
        headers: old.headers,
    };
    Publish::read(&request.encode_to_vec())?.into_message(number, bounds, published_at)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const BOUNDS: Bounds = Bounds { max_message_bytes: 1000, max_pending: 10 };

    fn request(payload: &'static [u8], message_id: &str, headers: &[(&str, &str)]) -> proto::PublishRequest {
        let headers = headers.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        let headers: HashMap<String, String> = headers.collect();
        proto::PublishRequest {
            topic: "café.placed".into(),
            payload: payload.into(),
            message_id: message_id.into(),
            headers,
        }
    }

    #[test]
    fn what_goes_out_is_what_came_in() {
        let at = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 7);
        let number = MessageNumber::from_u64(5);
        for (payload, id, headers) in [
            (&b"x"[..], "", &[][..]),
            (b"", "own", &[("k", "v"), ("", "only a value"), ("only a key", ""), ("", "")][1..]),
            (&[7; 300], "", &[("k", "v"), ("l", "w")]),
        ] {
            let request = request(payload, id, headers);
            let encoded = request.encode_to_vec();
            let publish = Publish::read(&encoded).expect("it is readable");
            let message = publish.into_message(number, &BOUNDS, at).expect("within bounds");
            let out = proto::Message::decode(message.body()).expect("it is readable");
            let wanted = proto::Message {
                message_id: if id.is_empty() { number.to_string() } else { id.into() },
                topic: request.topic.clone(),
                payload: request.payload.clone(),
                headers: request.headers.clone(),
                published_at: Some(at.into()),
                ..proto::Message::default()
            };
            assert_eq!(out, wanted);
            assert_eq!(message.body().len(), wanted.encoded_len());
            assert_eq!((message.topic(), message.message_id().unwrap_or("")), ("café.placed", id));
        }
    }

    #[test]
    fn of_a_field_that_comes_twice_the_last_counts_and_unknown_ones_are_ignored() {
        let mut encoded = request(b"first", "m", &[]).encode_to_vec();
        encoded.extend([0x12, 1, b'z', 0xf8, 0x07, 1]);
        let publish = Publish::read(&encoded).expect("it is readable");
        assert_eq!((publish.payload, publish.message_id), (&b"z"[..], "m"));
    }

    #[test]
    fn a_batch_is_read_as_a_whole() {
        let messages = [request(b"a", "", &[]), request(b"b", "m", &[("k", "v")])];
        let encoded = proto::PublishBatchRequest { messages: messages.to_vec() }.encode_to_vec();
        let batch = Publish::read_batch(&encoded).expect("it is readable");
        let payloads: Vec<&[u8]> = batch.iter().map(|publish| publish.payload).collect();
        assert_eq!(payloads, [b"a", b"b"]);
        let cut_off = [&encoded[..], &[0x0a, 2, 0x0a, 9]].concat();
        assert!(Publish::read_batch(&cut_off).is_err(), "its last message is");
    }

    #[test]
    fn each_message_of_a_batch_has_its_result() {
        let requests = [request(b"a", "", &[]), request(b"b", "own", &[]), request(b"c", "", &[])];
        let encoded: Vec<Vec<u8>> = requests.iter().map(|request| request.encode_to_vec()).collect();
        let batch: Result<Vec<Publish<'_>>, Failure> =
            encoded.iter().map(|bytes| Publish::read(bytes)).collect();
        let batch = batch.expect("they are readable");
        let [first, second] = [7, 8].map(MessageNumber::from_u64);
        let outcomes = vec![
            Ok(Published { number: first, subscriptions: 300 }),
            Ok(Published { number: second, subscriptions: 0 }),
            Err(Failure::ShuttingDown),
        ];
        let mut out = BytesMut::new();
        put_batch_response(&batch, outcomes, &mut out);
        let response = proto::PublishBatchResponse::decode(&out[..]).expect("it is readable");
        let results = vec![
            batch[0].response(first, 300),
            batch[1].response(second, 0),
            proto::PublishResponse::default(),
        ];
        assert_eq!((response.results, response.failures.len()), (results, 1));
        assert_eq!(response.failures[0].index, 2);
    }

    #[test]
    fn unreadable_requests_are_the_callers_mistake() {
        for encoded in [&[0x0a, 5, b'x'][..], &[0x0a, 1, 0xff], &[0x08, 1], &[0x22, 2, 0x0a, 9]] {
            assert!(matches!(Publish::read(encoded), Err(Failure::Invalid { field: "request", .. })));
        }
    }
}
