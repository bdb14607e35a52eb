use super::{Bounds, Failure, ack_timeout, duration, id_field, invalid_topic};
use crate::core::{OpenSpec, Overflow, SharedOptions};
use crate::limits;
use crate::model::{GroupName, Mode, SubscriptionId, Topic};
use crate::pattern::Pattern;
use crate::proto::{self, DeliveryMode, OverflowPolicy};

/// A valid `open`, before it has a subscription id for sure.
#[derive(Debug)]
pub struct OpenRequest {
    pub subscription_id: Option<SubscriptionId>,
    pub mode: Mode,
    pub group: Option<GroupName>,
    pub patterns: Vec<Pattern>,
    pub options: SharedOptions,
    pub max_in_flight: u32,
    /// Most messages an event; 1: events carry single messages.
    pub max_batch: u32,
    pub control_events: bool,
}

impl OpenRequest {
    pub fn into_spec(self, id_if_new: SubscriptionId) -> OpenSpec {
        OpenSpec {
            subscription_id: self.subscription_id,
            id_if_new,
            mode: self.mode,
            group: self.group,
            patterns: self.patterns,
            options: self.options,
            max_in_flight: self.max_in_flight,
            control_events: self.control_events,
        }
    }
}

pub fn request(open: proto::OpenSubscription, bounds: &Bounds) -> Result<OpenRequest, Failure> {
    let mode = mode(open.mode)?;
    let group = id_field("consumer_group", GroupName::parse(&open.consumer_group))?;
    match (mode.is_group(), &group) {
        (true, None) => {
            let reason = format!("is empty; {} needs one", mode.name());
            return Err(Failure::invalid("consumer_group", reason));
        }
        (false, Some(_)) => {
            let reason = "is set in MULTI, where every stream gets every message; leave it empty or choose BALANCED or SINGLETON";
            return Err(Failure::invalid("consumer_group", reason));
        }
        _ => {}
    }
    let patterns = patterns(&open.topic_patterns)?;
    Ok(OpenRequest {
        subscription_id: id_field("subscription_id", SubscriptionId::parse(&open.subscription_id))?,
        mode,
        group,
        options: SharedOptions {
            max_pending: max_pending(open.max_pending, bounds.max_pending)?,
            overflow: overflow(open.overflow, mode)?,
            linger: duration("linger", open.linger)?,
            ack_timeout: ack_timeout(open.ack_timeout)?,
            max_deliveries: open.max_deliveries,
            dead_letter_topic: dead_letter_topic(&open.dead_letter_topic, &patterns)?,
        },
        patterns,
        max_in_flight: max_in_flight(open.max_in_flight, mode)?,
        max_batch: open.max_batch.max(1),
        control_events: open.control_events,
    })
}

fn dead_letter_topic(text: &str, patterns: &[Pattern]) -> Result<Option<Topic>, Failure> {
    const FIELD: &str = "dead_letter_topic";
    if text.is_empty() {
        return Ok(None);
    }
    let topic = Topic::parse(text).map_err(|error| invalid_topic(FIELD, &error))?;
    match patterns.iter().find(|pattern| pattern.matches(text)) {
        Some(pattern) => {
            let reason = format!(
                "is matched by the subscription's own pattern `{}`: its dead letters would come back to it",
                pattern.text()
            );
            Err(Failure::invalid(FIELD, reason))
        }
        None => Ok(Some(topic)),
    }
}

fn mode(number: i32) -> Result<Mode, Failure> {
    match DeliveryMode::try_from(number) {
        Ok(DeliveryMode::Unspecified | DeliveryMode::Multi) => Ok(Mode::Multi),
        Ok(DeliveryMode::Balanced) => Ok(Mode::Balanced),
        Ok(DeliveryMode::Singleton) => Ok(Mode::Singleton),
        Err(_) => Err(Failure::invalid("mode", format!("has the unknown number {number}; know 0 to 3"))),
    }
}

fn overflow(number: i32, mode: Mode) -> Result<Overflow, Failure> {
    match OverflowPolicy::try_from(number) {
        Ok(OverflowPolicy::Unspecified) => Ok(Overflow::default_of(mode)),
        Ok(OverflowPolicy::Reject) => Ok(Overflow::Reject),
        Ok(OverflowPolicy::DropOldest) => Ok(Overflow::DropOldest),
        Ok(OverflowPolicy::DropNewest) => Ok(Overflow::DropNewest),
        Ok(OverflowPolicy::Disconnect) => Ok(Overflow::Disconnect),
        Err(_) => Err(Failure::invalid("overflow", format!("has the unknown number {number}; know 0 to 4"))),
    }
}

fn max_pending(given: u64, ceiling: u64) -> Result<u64, Failure> {
    match given {
        0 => Ok(ceiling),
        given if given > ceiling => {
            Err(Failure::invalid("max_pending", format!("is {given}; the broker's ceiling is {ceiling}")))
        }
        given => Ok(given),
    }
}

fn max_in_flight(given: u32, mode: Mode) -> Result<u32, Failure> {
    match given {
        0 if mode.is_group() => Ok(1),
        given if given > limits::MAX_IN_FLIGHT => {
            let reason = format!("is {given}; limit {}", limits::MAX_IN_FLIGHT);
            Err(Failure::invalid("max_in_flight", reason))
        }
        given => Ok(given),
    }
}

/// The set of patterns, sorted by text.
fn patterns(texts: &[String]) -> Result<Vec<Pattern>, Failure> {
    const FIELD: &str = "topic_patterns";
    if texts.is_empty() {
        return Err(Failure::invalid(FIELD, "is empty; give at least one pattern, `*` for every topic"));
    }
    if texts.len() > limits::PATTERNS_PER_SUBSCRIPTION {
        let limit = limits::PATTERNS_PER_SUBSCRIPTION;
        return Err(Failure::invalid(FIELD, format!("has {} patterns; limit {limit}", texts.len())));
    }
    let parse = |(place, text): (usize, &String)| {
        Pattern::parse(text).map_err(|error| Failure::invalid(FIELD, format!("[{place}]: {error}")))
    };
    let mut patterns = texts.iter().enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
    patterns.sort_by(|one, other| one.text().cmp(other.text()));
    patterns.dedup();
    Ok(patterns)
}
