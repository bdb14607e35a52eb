//! A subscription: a consumer group with its members, or one MULTI stream.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};

use tokio::sync::mpsc::UnboundedSender;

use super::fault::Fault;
use super::proto::subscribe_event::Event;
use super::proto::{DeliveryMode, Message, OpenSubscription, Role, RoleChanged, SubscribeEvent};

pub struct Subscription {
    pub id: String,
    pub group: String,
    mode: DeliveryMode,
    patterns: Vec<String>,
    /// BALANCED: the one whose turn it is first. SINGLETON: the active one first.
    pub members: VecDeque<Member>,
    /// By their place in the publish order.
    pub waiting: BTreeMap<u64, Queued>,
}

pub struct Member {
    pub number: u64,
    max_in_flight: usize,
    events: UnboundedSender<SubscribeEvent>,
    /// By system_id.
    held: HashMap<String, Queued>,
}

/// A message in a subscription.
#[derive(Clone)]
pub struct Queued {
    /// Its place in the publish order.
    pub place: u64,
    pub is_struck: bool,
    pub message: Message,
}

impl Subscription {
    pub fn new(id: String, open: &OpenSubscription) -> Self {
        Subscription {
            id,
            group: open.consumer_group.clone(),
            mode: open.mode(),
            patterns: open.topic_patterns.clone(),
            members: VecDeque::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// Whole topics, and beginnings of topics that end in `*`.
    pub fn matches(&self, topic: &str) -> bool {
        self.patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => topic.starts_with(beginning),
            None => topic == pattern,
        })
    }

    pub fn join(&mut self, number: u64, open: &OpenSubscription, events: UnboundedSender<SubscribeEvent>) {
        let max_in_flight = open.max_in_flight.max(1) as usize;
        self.members.push_back(Member { number, max_in_flight, events, held: HashMap::new() });
        let at = self.members.len() - 1;
        if self.mode != DeliveryMode::Singleton || at == 0 {
            self.welcome(at);
        } else if open.control_events {
            let role = Role::Standby.into();
            self.members[at].tell(Event::Role(RoleChanged { role, position: at as u32, epoch: 0 }));
        }
    }

    /// The first frame.
    fn welcome(&mut self, at: usize) {
        let id = self.id.clone();
        self.members[at].tell(Event::SubscriptionId(id));
    }

    pub fn leave(&mut self, number: u64, fault: Fault) {
        let Some(at) = self.members.iter().position(|member| member.number == number) else { return };
        let held = self.members.remove(at).into_iter().flat_map(|member| member.held.into_values());
        let mut back: Vec<Queued> = held.map(Queued::once_more).collect();
        match fault {
            Fault::BuryWithMember => back.clear(),
            Fault::TurnRound => turn_round(&mut back),
            Fault::ForgetAttempt => back.iter_mut().for_each(|queued| queued.message.delivery_attempt -= 1),
            _ => {}
        }
        self.waiting.extend(back.into_iter().map(|queued| (queued.place, queued)));
        if self.mode == DeliveryMode::Singleton && at == 0 && !self.members.is_empty() {
            self.welcome(0);
        }
    }

    /// At its place, or behind all that waits where that place has passed.
    pub fn enqueue(&mut self, queued: Queued) {
        let end = self.waiting.last_key_value().map_or(0, |(place, _)| place + 1);
        let place = queued.place.max(end);
        self.waiting.insert(place, Queued { place, ..queued });
    }

    /// Delivers what waits to those that have room.
    pub fn dispatch(&mut self, fault: Fault) {
        while let Some(at) = self.whose_turn() {
            let Some((_, queued)) = self.waiting.pop_first() else { return };
            self.deliver(at, queued, fault);
            if self.mode == DeliveryMode::Balanced {
                self.members.rotate_left(at + 1);
            }
        }
    }

    fn whose_turn(&self) -> Option<usize> {
        let has_room = |member: &Member| member.held.len() < member.max_in_flight;
        match self.mode {
            DeliveryMode::Balanced => self.members.iter().position(has_room),
            DeliveryMode::Singleton => self.members.front().filter(|member| has_room(member)).map(|_| 0),
            DeliveryMode::Multi | DeliveryMode::Unspecified => (!self.members.is_empty()).then_some(0),
        }
    }

    fn deliver(&mut self, at: usize, mut queued: Queued, fault: Fault) {
        let planted = if queued.is_struck { fault } else { Fault::None };
        if planted == Fault::Misnumber {
            queued.message.delivery_attempt += 1;
        }
        let asks_ack = matches!(self.mode, DeliveryMode::Balanced | DeliveryMode::Singleton);
        let other = (at + 1) % self.members.len();
        let to = match planted {
            Fault::Double => vec![at, at],
            Fault::TwoHolders => vec![at, other],
            Fault::TwoActive => vec![other],
            _ => vec![at],
        };
        for at in to {
            self.members[at].take(queued.clone(), asks_ack);
        }
    }

    /// Settles a delivery to one member, or to whichever has it; whether there was one.
    pub fn settle(&mut self, member: Option<u64>, system_id: &str, fault: Fault) -> bool {
        let is_asked = |one: &&mut Member| member.is_none_or(|number| one.number == number);
        let mut asked = self.members.iter_mut().filter(is_asked);
        let Some(queued) = asked.find_map(|member| member.held.remove(system_id)) else { return false };
        let planted = if queued.is_struck { fault } else { Fault::None };
        if planted == Fault::ForgetAck {
            self.waiting.insert(queued.place, Queued { is_struck: false, ..queued.once_more() });
        }
        planted != Fault::DenyAck
    }

    pub fn is_held(&self, system_id: &str) -> bool {
        self.members.iter().any(|member| member.held.contains_key(system_id))
    }
}

impl Member {
    fn take(&mut self, queued: Queued, asks_ack: bool) {
        self.tell(Event::Message(queued.message.clone()));
        if asks_ack {
            self.held.insert(queued.message.system_id.clone(), queued);
        }
    }

    fn tell(&self, event: Event) {
        // One whose stream has ended is about to leave.
        let _ = self.events.send(SubscribeEvent { event: Some(event) });
    }
}

impl Queued {
    /// For its next delivery.
    fn once_more(self) -> Queued {
        let mut message = self.message;
        message.delivery_attempt += 1;
        message.system_id = format!("{}.{}", message.message_id, message.delivery_attempt);
        Queued { message, ..self }
    }
}

/// Gives the first the place of the last, and so on.
fn turn_round(queue: &mut [Queued]) {
    let mut places: Vec<u64> = queue.iter().map(|queued| queued.place).collect();
    places.sort_unstable();
    queue.sort_unstable_by_key(|queued| Reverse(queued.place));
    queue.iter_mut().zip(places).for_each(|(queued, place)| queued.place = place);
}
