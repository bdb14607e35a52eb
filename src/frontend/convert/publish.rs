use std::time::SystemTime;

use bytes::Bytes;
use prost::Message as _;

use super::{Bounds, Failure, id_field, invalid_topic};
use crate::core::DeadLetter;
use crate::frontend::confirms::Confirm;
use crate::frontend::rpc::publish_batch::Published;
use crate::model::{Message, MessageNumber, Topic, parse_message_id};
use crate::proto;

/// Headers that a dead letter has beside its own.
const DEAD_LETTER_HEADERS: [&str; 4] = [
    "tinybroker-dead-letter-subscription",
    "tinybroker-dead-letter-topic",
    "tinybroker-dead-letter-reason",
    "tinybroker-dead-letter-attempts",
];

/// Checks a publish and encodes it as it will go out to every receiver.
pub fn message(
    request: proto::PublishRequest,
    number: MessageNumber,
    bounds: &Bounds,
) -> Result<Message, Failure> {
    let topic = Topic::parse(&request.topic).map_err(|error| invalid_topic("topic", &error))?;
    let message_id = id_field("message_id", parse_message_id(&request.message_id))?;
    let mut body = proto::Message {
        message_id: match &message_id {
            Some(own) => own.to_string(),
            None => number.to_string(),
        },
        topic: request.topic,
        payload: request.payload,
        headers: request.headers,
        ..proto::Message::default()
    };
    // The time is left out: whether a message fits must not depend on the moment.
    let bytes = body.encoded_len();
    if bytes > bounds.max_message_bytes {
        let what = "the message (topic, message_id, headers and payload)";
        return Err(Failure::TooLarge { what, bytes, limit: bounds.max_message_bytes });
    }
    body.published_at = Some(SystemTime::now().into());
    Ok(Message { number, topic, message_id, body: Bytes::from(body.encode_to_vec()) })
}

pub fn publish_response(message: &Message, subscriptions: u32) -> proto::PublishResponse {
    let system_id = message.number.to_string();
    let message_id = message.message_id.as_deref().unwrap_or(&system_id).to_owned();
    proto::PublishResponse { message_id, system_id, subscriptions }
}

/// One result a message, in order.
pub fn batch_response(outcomes: Vec<Result<Published, Failure>>) -> proto::PublishBatchResponse {
    let mut response = proto::PublishBatchResponse::default();
    for (index, outcome) in (0..).zip(outcomes) {
        response.results.push(match outcome {
            Ok(published) => publish_response(&published.message, published.subscriptions),
            Err(failure) => {
                response.failures.push(publish_failure(index, &failure));
                proto::PublishResponse::default()
            }
        });
    }
    response
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
pub fn dead_letter(letter: &DeadLetter, number: MessageNumber, bounds: &Bounds) -> Result<Message, Failure> {
    let old = proto::Message::decode(letter.message.body.clone()).map_err(|_| Failure::Internal)?;
    let mut headers = old.headers;
    let values = [
        letter.subscription.to_string(),
        old.topic,
        letter.reason.name().to_owned(),
        letter.attempts.to_string(),
    ];
    headers.extend(DEAD_LETTER_HEADERS.map(str::to_owned).into_iter().zip(values));
    let request = proto::PublishRequest {
        topic: letter.topic.to_string(),
        payload: old.payload,
        message_id: old.message_id,
        headers,
    };
    message(request, number, bounds)
}
