use ahash::AHashSet;
use smallvec::SmallVec;

use super::fields::Fields;
use super::{Command, Failure, SettleCommand, ack_timeout, duration, id_field};
use crate::core::{Action, Nack, SettleTarget};
use crate::model::{DeliveryId, SubscriptionId};
use crate::proto;

/// What a unary call settles, and how.
pub type SettleRequest = (SubscriptionId, SettleTarget, Action);

pub fn ack(request: proto::AckRequest) -> Result<SettleRequest, Failure> {
    let proto::AckRequest { subscription_id, system_id, message_id, system_ids } = request;
    let target = target(&system_id, &system_ids, &message_id)?;
    Ok((named(&subscription_id)?, target, Action::Ack))
}

pub fn nack(request: proto::NackRequest) -> Result<SettleRequest, Failure> {
    let target = target(&request.system_id, &request.system_ids, &request.message_id)?;
    let action = nack_action(request.delay, request.discard, request.keep_attempt)?;
    Ok((named(&request.subscription_id)?, target, action))
}

pub fn extend(request: proto::ExtendRequest) -> Result<SettleRequest, Failure> {
    let target = target(&request.system_id, &request.system_ids, &request.message_id)?;
    let action = Action::Extend { ack_timeout: ack_timeout(request.ack_timeout)? };
    Ok((named(&request.subscription_id)?, target, action))
}

pub fn ack_command(ack: proto::Ack) -> Result<Command, Failure> {
    let target = target(&ack.system_id, &ack.system_ids, &ack.message_id)?;
    command(&ack.subscription_id, target, Action::Ack)
}

pub fn nack_command(nack: proto::Nack) -> Result<Command, Failure> {
    let target = target(&nack.system_id, &nack.system_ids, &nack.message_id)?;
    command(&nack.subscription_id, target, nack_action(nack.delay, nack.discard, nack.keep_attempt)?)
}

pub fn extend_command(extend: proto::Extend) -> Result<Command, Failure> {
    let target = target(&extend.system_id, &extend.system_ids, &extend.message_id)?;
    let ack_timeout = ack_timeout(extend.ack_timeout)?;
    command(&extend.subscription_id, target, Action::Extend { ack_timeout })
}

fn command(subscription_id: &str, target: SettleTarget, action: Action) -> Result<Command, Failure> {
    let subscription_id = id_field("subscription_id", SubscriptionId::parse(subscription_id))?;
    Ok(match (subscription_id, target, action) {
        (None, SettleTarget::Deliveries { ids, unknown: 0 }, Action::Ack) => Command::Ack(ids),
        (subscription_id, target, action) => {
            Command::Settle(Box::new(SettleCommand { subscription_id, target, action }))
        }
    })
}

fn nack_action(
    delay: Option<prost_types::Duration>,
    discard: bool,
    keep_attempt: bool,
) -> Result<Action, Failure> {
    Ok(Action::Nack(Nack { delay: duration("delay", delay)?, discard, keep_attempt }))
}

/// The subscription of a unary call, which must be named.
fn named(subscription_id: &str) -> Result<SubscriptionId, Failure> {
    id_field("subscription_id", SubscriptionId::parse(subscription_id))?.ok_or_else(|| {
        Failure::invalid("subscription_id", "is empty; give the id of the first event of the stream")
    })
}

/// Reads an `Ack` of a stream in place.
pub fn read_ack(ack: &[u8]) -> Result<Command, Failure> {
    let (mut subscription_id, mut system_id, mut message_id) = ("", "", "");
    let mut named = Named::default();
    for field in Fields::of(ack) {
        match field? {
            (1, value) => subscription_id = value.text()?,
            (2, value) => system_id = value.text()?,
            (3, value) => message_id = value.text()?,
            (4, value) => named.add(value.text()?),
            _ => {}
        }
    }
    if !system_id.is_empty() {
        named.add(system_id);
    }
    // What is most common takes no detour: each move of what was just put together waits for it.
    if subscription_id.is_empty() && named.unknown == 0 && !named.ids.is_empty() {
        forget_repeats(&mut named.ids);
        return Ok(Command::Ack(named.ids));
    }
    command(subscription_id, named.target("", message_id)?, Action::Ack)
}

fn target(system_id: &str, system_ids: &[String], message_id: &str) -> Result<SettleTarget, Failure> {
    let mut named = Named::default();
    system_ids.iter().for_each(|text| named.add(text));
    named.target(system_id, message_id)
}

/// The deliveries that a command names by system_id.
#[derive(Default)]
struct Named {
    ids: SmallVec<[DeliveryId; 1]>,
    unknown: u32,
}

impl Named {
    fn add(&mut self, system_id: &str) {
        match DeliveryId::parse(system_id) {
            Some(id) => self.ids.push(id),
            None => self.unknown += 1,
        }
    }

    /// system_ids and system_id together, each once; message_id where both are empty.
    fn target(mut self, system_id: &str, message_id: &str) -> Result<SettleTarget, Failure> {
        if !system_id.is_empty() {
            self.add(system_id);
        }
        let Named { mut ids, unknown } = self;
        if !ids.is_empty() || unknown > 0 {
            forget_repeats(&mut ids);
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
}

/// A delivery that is named twice is settled once, and counts once.
fn forget_repeats(ids: &mut SmallVec<[DeliveryId; 1]>) {
    // Most name what they got in the order in which it came.
    if !ids.is_sorted_by(|one, next| one.message < next.message) {
        let mut seen = AHashSet::with_capacity(ids.len());
        ids.retain(|id| seen.insert(*id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MessageNumber;

    #[test]
    fn each_delivery_is_named_once_in_the_order_given() {
        let named = |system_id: &str, system_ids: &[&str]| {
            let system_ids: Vec<String> = system_ids.iter().map(|&id| id.into()).collect();
            match target(system_id, &system_ids, "other") {
                Ok(SettleTarget::Deliveries { ids, unknown }) => {
                    let texts: Vec<String> = ids.iter().map(DeliveryId::to_string).collect();
                    (texts.join(" "), unknown)
                }
                other => panic!("deliveries were named: {other:?}"),
            }
        };
        let [one, two, three] = [1, 2, 3].map(|number| MessageNumber::from_u64(number).to_string());
        assert_eq!(named(&one, &[]), (one.clone(), 0));
        assert_eq!(named("", &[&one, &two, &three]), (format!("{one} {two} {three}"), 0));
        assert_eq!(named(&two, &[&one, &two, &one]), (format!("{one} {two}"), 0));
        assert_eq!(named(&one, &[&one]), (one.clone(), 0));
        let again = format!("{one}.2");
        assert_eq!(named(&one, &[&again, "?", &one]), (format!("{again} {one}"), 1));
    }
}
