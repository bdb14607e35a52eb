use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::cli::client::escape;
use crate::proto::subscribe_event::Event;
use crate::proto::{Message, Role, RoleChanged};

/// How messages and events are written, one a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

impl Format {
    pub fn message(self, message: &Message) -> String {
        match self {
            Format::Text => {
                let payload = String::from_utf8_lossy(&message.payload);
                format!("{}\t{}\n", escape(&message.topic), escape(&payload))
            }
            Format::Json => line(message_object(message)),
        }
    }

    /// What is to be said about an event; nothing about those that carry messages.
    pub fn event(self, event: &Event) -> Option<String> {
        match self {
            Format::Text => event_text(event),
            Format::Json => event_object(event).map(line),
        }
    }
}

fn line(object: Value) -> String {
    format!("{object}\n")
}

fn message_object(message: &Message) -> Value {
    let mut object = json!({
        "system_id": message.system_id,
        "message_id": message.message_id,
        "topic": message.topic,
        "headers": message.headers,
        "published_at": message.published_at.map(|time| time.to_string()),
        "delivery_attempt": message.delivery_attempt,
        "epoch": message.epoch,
    });
    match std::str::from_utf8(&message.payload) {
        Ok(text) => object["payload"] = text.into(),
        Err(_) => object["payload_base64"] = STANDARD.encode(&message.payload).into(),
    }
    object
}

fn event_text(event: &Event) -> Option<String> {
    let text = match event {
        Event::SubscriptionId(id) => format!("subscribed as {}", escape(id)),
        Event::Role(role) if role.role() == Role::Active => format!("active, epoch {}", role.epoch),
        Event::Role(role) => format!("standing by, position {}", role.position),
        Event::Lagged(lagged) => format!("messages lost, the subscription was full: {}", lagged.dropped),
        Event::Draining(draining) => {
            let grace = draining.grace.unwrap_or_default();
            format!("the broker is shutting down, streams end within {grace}")
        }
        Event::Message(_) | Event::Batch(_) => return None,
    };
    Some(text + "\n")
}

fn event_object(event: &Event) -> Option<Value> {
    Some(match event {
        Event::SubscriptionId(id) => json!({ "event": "subscribed", "subscription_id": id }),
        Event::Role(role) => {
            let RoleChanged { epoch, position, .. } = role;
            let role = if role.role() == Role::Active { "active" } else { "standby" };
            json!({ "event": "role", "role": role, "epoch": epoch, "position": position })
        }
        Event::Lagged(lagged) => json!({ "event": "lagged", "dropped": lagged.dropped }),
        Event::Draining(draining) => {
            json!({ "event": "draining", "grace": draining.grace.map(|grace| grace.to_string()) })
        }
        Event::Message(_) | Event::Batch(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Draining, Lagged};

    fn message(payload: &'static [u8]) -> Message {
        Message { topic: "a".into(), payload: payload.into(), ..Default::default() }
    }

    #[test]
    fn text_is_one_safe_line() {
        assert_eq!(Format::Text.message(&message(b"x")), "a\tx\n");
        assert_eq!(Format::Text.message(&message(b"1\n\x1b[2J\xff")), "a\t1\\n\\u{1b}[2J\u{fffd}\n");
    }

    #[test]
    fn json_has_the_payload_as_text_or_as_base64() {
        let text = message_object(&message("é\n".as_bytes()));
        assert_eq!((&text["payload"], text.get("payload_base64")), (&json!("é\n"), None));
        let bytes = message_object(&message(b"\xff\x00"));
        assert_eq!((bytes.get("payload"), &bytes["payload_base64"]), (None, &json!("/wA=")));
    }

    #[test]
    fn times_are_rfc_3339() {
        let published_at = Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 5 });
        let object = message_object(&Message { published_at, ..Default::default() });
        assert_eq!(object["published_at"], "2023-11-14T22:13:20.000000005Z");
        assert_eq!(message_object(&Message::default())["published_at"], Value::Null);
    }

    #[test]
    fn events_that_rarely_come() {
        let lagged = Event::Lagged(Lagged { dropped: 7 });
        assert_eq!(event_object(&lagged), Some(json!({ "event": "lagged", "dropped": 7 })));
        assert!(event_text(&lagged).is_some_and(|text| text.contains('7')));
        let grace = Some(prost_types::Duration { seconds: 5, nanos: 0 });
        let draining = Event::Draining(Draining { grace });
        assert_eq!(event_object(&draining), Some(json!({ "event": "draining", "grace": "5s" })));
        assert!(event_text(&draining).is_some_and(|text| text.contains("5s")));
    }
}
