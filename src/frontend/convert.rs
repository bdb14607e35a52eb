//! Between the wire contract and the model: the only file that knows both. Bad input ends here.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use prost::Message as _;
use smallvec::SmallVec;

use super::Failure;
use super::event::WireEvent;
use crate::core::{OpenSpec, Overflow, Role, SettleTarget, SharedOptions};
use crate::limits;
use crate::model::{
    DeliveryId, GroupName, Message, MessageNumber, Mode, SubscriptionId, Topic, parse_message_id,
};
use crate::pattern::Pattern;
use crate::proto::subscribe_command::Command as WireCommand;
use crate::proto::subscribe_event::Event;
use crate::proto::{self, DeliveryMode, OverflowPolicy};

/// A decoded command of a Subscribe stream.
#[derive(Debug)]
pub enum Command {
    Open(Box<OpenRequest>),
    Ack {
        subscription_id: Option<SubscriptionId>,
        target: SettleTarget,
    },
    Resign,
    /// Empty or from a later version of the contract.
    Unknown,
}

/// A valid `open`, before it has a subscription id for sure.
#[derive(Debug)]
pub struct OpenRequest {
    pub subscription_id: Option<SubscriptionId>,
    pub mode: Mode,
    pub group: Option<GroupName>,
    pub patterns: Vec<Pattern>,
    pub options: SharedOptions,
    pub max_in_flight: u32,
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

/// What the broker bounds by its options.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub max_message_bytes: usize,
    /// Default and ceiling of max_pending.
    pub max_pending: u64,
}

/// Checks a publish and encodes it as it will go out to every receiver.
pub fn message(
    request: proto::PublishRequest,
    number: MessageNumber,
    bounds: &Bounds,
) -> Result<Message, Failure> {
    let topic = Topic::parse(&request.topic).map_err(|error| invalid_topic(&error))?;
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

fn invalid_topic(error: &crate::model::TopicError) -> Failure {
    // The texts begin with the field's name already.
    let text = error.to_string();
    Failure::invalid("topic", text.strip_prefix("topic ").unwrap_or(&text))
}

pub fn publish_response(message: &Message, subscriptions: u32) -> proto::PublishResponse {
    let system_id = message.number.to_string();
    let message_id = message.message_id.as_deref().unwrap_or(&system_id).to_owned();
    proto::PublishResponse { message_id, system_id, subscriptions }
}

pub fn command(command: proto::SubscribeCommand, bounds: &Bounds) -> Result<Command, Failure> {
    match command.command {
        None => Ok(Command::Unknown),
        Some(WireCommand::Open(open)) => Ok(Command::Open(Box::new(open_request(open, bounds)?))),
        Some(WireCommand::Ack(ack)) => {
            let subscription_id = id_field("subscription_id", SubscriptionId::parse(&ack.subscription_id))?;
            let target = settle_target(&ack.system_id, &ack.system_ids, ack.message_id)?;
            Ok(Command::Ack { subscription_id, target })
        }
        Some(WireCommand::Resign(_)) => Ok(Command::Resign),
        Some(WireCommand::Nack(_)) => Err(Failure::NotServed { what: "nack" }),
        Some(WireCommand::Extend(_)) => Err(Failure::NotServed { what: "extend" }),
    }
}

/// Subscription and target of a unary ack.
pub fn ack(request: proto::AckRequest) -> Result<(SubscriptionId, SettleTarget), Failure> {
    let id =
        id_field("subscription_id", SubscriptionId::parse(&request.subscription_id))?.ok_or_else(|| {
            Failure::invalid("subscription_id", "is empty; give the id of the first event of the stream")
        })?;
    Ok((id, settle_target(&request.system_id, &request.system_ids, request.message_id)?))
}

/// system_id and system_ids together; message_id where both are empty.
fn settle_target(
    system_id: &str,
    system_ids: &[String],
    message_id: String,
) -> Result<SettleTarget, Failure> {
    let given = (!system_id.is_empty()).then_some(system_id);
    let texts = given.into_iter().chain(system_ids.iter().map(String::as_str));
    let (mut ids, mut unknown) = (SmallVec::new(), 0);
    for text in texts {
        match DeliveryId::parse(text) {
            Some(id) => ids.push(id),
            None => unknown += 1,
        }
    }
    if !ids.is_empty() || unknown > 0 {
        return Ok(SettleTarget::Deliveries { ids, unknown });
    }
    if message_id.is_empty() {
        return Err(Failure::invalid(
            "system_id",
            "is empty, and so are system_ids and message_id; give one",
        ));
    }
    Ok(SettleTarget::Message(message_id.into()))
}

fn open_request(open: proto::OpenSubscription, bounds: &Bounds) -> Result<OpenRequest, Failure> {
    not_served_yet(&open)?;
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
    Ok(OpenRequest {
        subscription_id: id_field("subscription_id", SubscriptionId::parse(&open.subscription_id))?,
        mode,
        group,
        patterns: patterns(&open.topic_patterns)?,
        options: SharedOptions {
            max_pending: max_pending(open.max_pending, bounds.max_pending)?,
            overflow: overflow(open.overflow, mode)?,
            linger: duration("linger", open.linger)?,
        },
        max_in_flight: max_in_flight(open.max_in_flight, mode)?,
        control_events: open.control_events,
    })
}

fn not_served_yet(open: &proto::OpenSubscription) -> Result<(), Failure> {
    let timeout = duration("ack_timeout", open.ack_timeout)?;
    let fields = [
        ("open.ack_timeout", !timeout.is_zero()),
        ("open.max_deliveries", open.max_deliveries != 0),
        ("open.dead_letter_topic", !open.dead_letter_topic.is_empty()),
    ];
    match fields.into_iter().find(|&(_, given)| given) {
        Some((what, _)) => Err(Failure::NotServed { what }),
        None => Ok(()),
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

/// Unset and zero are the same: none.
fn duration(field: &'static str, given: Option<prost_types::Duration>) -> Result<Duration, Failure> {
    let Some(given) = given else { return Ok(Duration::ZERO) };
    if given.seconds < 0 || given.nanos < 0 {
        return Err(Failure::invalid(field, "is negative; leave it unset for none"));
    }
    if given.nanos > 999_999_999 {
        return Err(Failure::invalid(field, "has nanos above 999,999,999"));
    }
    Ok(Duration::new(given.seconds as u64, given.nanos as u32))
}

fn id_field<T>(field: &'static str, parsed: Result<T, crate::model::IdError>) -> Result<T, Failure> {
    parsed.map_err(|error| Failure::invalid(field, error))
}

/// The `subscription_id` event.
pub fn started(id: &SubscriptionId) -> WireEvent {
    event(Event::SubscriptionId(id.to_string()))
}

pub fn lagged(dropped: u64) -> WireEvent {
    event(Event::Lagged(proto::Lagged { dropped }))
}

pub fn role(role: Role) -> WireEvent {
    let (role, epoch, position) = match role {
        Role::Active { epoch } => (proto::Role::Active, epoch, 0),
        Role::Standby { epoch, position } => (proto::Role::Standby, epoch, position),
    };
    event(Event::Role(proto::RoleChanged { role: role.into(), epoch, position }))
}

pub fn draining(grace: Duration) -> WireEvent {
    event(Event::Draining(proto::Draining { grace: grace.try_into().ok() }))
}

fn event(event: Event) -> WireEvent {
    WireEvent::Other(proto::SubscribeEvent { event: Some(event) })
}
