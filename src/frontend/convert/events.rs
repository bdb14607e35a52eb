use std::time::Duration;

use crate::core::Role;
use crate::frontend::WireEvent;
use crate::model::SubscriptionId;
use crate::proto;
use crate::proto::subscribe_event::Event;

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
    WireEvent::Other(Box::new(proto::SubscribeEvent { event: Some(event) }))
}
