//! Between the wire contract and the model: the only files that know both. Bad input ends here.
//!
//! `open`, `settle` and `publish` are what comes in, `events` what goes out; the hot half of that is
//! [`super::event`].

mod events;
mod fields;
mod open;
mod publish;
mod settle;

use std::time::Duration;

pub use events::{draining, lagged, role, started};
pub use open::OpenRequest;
pub use publish::{Publish, confirm, dead_letter, put_batch_response};
pub use settle::{SettleRequest, ack, extend, nack};

use fields::{Fields, Value};
use prost::Message as _;
use smallvec::SmallVec;

use super::Failure;
use crate::core::{Action, SettleTarget};
use crate::limits;
use crate::model::{DeliveryId, SubscriptionId};
use crate::proto;
use crate::proto::subscribe_command::Command as WireCommand;

/// A decoded command of a Subscribe stream.
#[derive(Debug)]
pub enum Command {
    Open(Box<OpenRequest>),
    /// Acks that name deliveries of this broker's, and no subscription: most commands are.
    Ack(SmallVec<[DeliveryId; 1]>),
    Settle(Box<SettleCommand>),
    Resign,
    /// Empty or from a later version of the contract.
    Unknown,
}

/// Any ack, nack or extend.
#[derive(Debug)]
pub struct SettleCommand {
    pub subscription_id: Option<SubscriptionId>,
    pub target: SettleTarget,
    pub action: Action,
}

/// What the broker bounds by its options.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub max_message_bytes: usize,
    /// Default and ceiling of max_pending.
    pub max_pending: u64,
}

/// Reads a `SubscribeCommand`: an ack in place, anything else as prost does.
pub fn read_command(command: &[u8], bounds: &Bounds) -> Result<Command, Failure> {
    let mut fields = Fields::of(command);
    if let (Some(Ok((ACK, Value::Bytes(ack)))), None) = (fields.next(), fields.next()) {
        return settle::read_ack(ack);
    }
    read_seldom(command, bounds)
}

/// What is no ack.
#[inline(never)]
fn read_seldom(command: &[u8], bounds: &Bounds) -> Result<Command, Failure> {
    let command = proto::SubscribeCommand::decode(command).map_err(Failure::unreadable)?;
    match command.command {
        None => Ok(Command::Unknown),
        Some(WireCommand::Open(open)) => Ok(Command::Open(Box::new(open::request(open, bounds)?))),
        Some(WireCommand::Ack(ack)) => settle::ack_command(ack),
        Some(WireCommand::Nack(nack)) => settle::nack_command(nack),
        Some(WireCommand::Extend(extend)) => settle::extend_command(extend),
        Some(WireCommand::Resign(_)) => Ok(Command::Resign),
    }
}

/// The field of an ack in a command.
const ACK: u32 = 2;

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

/// A time after which a delivery is taken back; so short a one that no client could keep it is a mistake.
fn ack_timeout(given: Option<prost_types::Duration>) -> Result<Duration, Failure> {
    let timeout = duration("ack_timeout", given)?;
    if !timeout.is_zero() && timeout < limits::ACK_TIMEOUT {
        return Err(Failure::invalid(
            "ack_timeout",
            format!("is {timeout:?}; give at least {:?}", limits::ACK_TIMEOUT),
        ));
    }
    Ok(timeout)
}

fn id_field<T>(field: &'static str, parsed: Result<T, crate::model::IdError>) -> Result<T, Failure> {
    parsed.map_err(|error| Failure::invalid(field, error))
}

fn invalid_topic(field: &'static str, error: &crate::model::TopicError) -> Failure {
    // The texts begin with what they are about already.
    let text = error.to_string();
    Failure::invalid(field, text.strip_prefix("topic ").unwrap_or(&text))
}
