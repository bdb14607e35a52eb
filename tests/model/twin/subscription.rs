//! What a subscription holds, and what can be said of it by looking.

use tinybroker::core::{OpenSpec, Role};
use tinybroker::limits;
use tinybroker::model::{DeliveryId, MemberId, Message, Mode, SubscriptionId, Time};

/// A message in one subscription.
#[derive(Clone)]
pub struct Item {
    /// In publish order.
    pub place: u64,
    pub message: Message,
    pub deliveries: u32,
    pub attempts: u32,
    /// A delayed nack: nobody gets it before.
    pub parked_until: Option<Time>,
}

impl Item {
    pub fn delivery_id(&self) -> DeliveryId {
        DeliveryId { message: self.message.number(), delivery: self.deliveries }
    }

    pub fn is_called(&self, message_id: &str) -> bool {
        match self.message.message_id() {
            Some(own) => own == message_id,
            None => self.message.number().to_string() == message_id,
        }
    }
}

/// A delivery that was not settled yet.
pub struct Held {
    pub holder: MemberId,
    pub item: Item,
    /// When it is taken back.
    pub due: Option<Time>,
}

pub struct Member {
    pub id: MemberId,
    pub max_in_flight: usize,
    pub control_events: bool,
    pub told_role: Option<Role>,
    /// Costs of what was sent to it and its connection has not taken yet.
    pub untaken: Vec<u64>,
}

pub struct Subscription {
    pub serial: u64,
    /// Where it lies among the others: a message is handed out in this order.
    pub place: usize,
    pub id: SubscriptionId,
    pub spec: OpenSpec,
    /// Whether its last stream asked for acks.
    pub asks_acks: bool,
    /// In publish order, parked messages too.
    pub waiting: Vec<Item>,
    /// In order of delivery.
    pub in_flight: Vec<Held>,
    /// SINGLETON: in order of succession. The first is active as soon as it was promoted.
    pub members: Vec<Member>,
    pub active: Option<MemberId>,
    pub epoch: u64,
    /// BALANCED: members with room, the next to be served first.
    pub round: Vec<MemberId>,
    pub lagged: u64,
    pub ends_at: Option<Time>,
}

impl Subscription {
    pub fn mode(&self) -> Mode {
        self.spec.mode
    }

    pub fn member(&mut self, id: MemberId) -> &mut Member {
        self.members.iter_mut().find(|member| member.id == id).expect("is a member")
    }

    fn has_room(&self, member: &Member) -> bool {
        let holds = self.in_flight.iter().filter(|held| held.holder == member.id).count();
        (member.max_in_flight == 0 || holds < member.max_in_flight)
            && member.untaken.len() < limits::MEMBER_WINDOW_MESSAGES as usize
            && member.untaken.iter().sum::<u64>() < limits::MEMBER_WINDOW_BYTES
    }

    /// Who has lost room leaves the round, who has got room goes to its end.
    pub fn update_round(&mut self) {
        let roomy = self.members.iter().filter(|member| self.has_room(member)).map(|member| member.id);
        let roomy: Vec<MemberId> = roomy.collect();
        self.round.retain(|id| roomy.contains(id));
        for id in roomy {
            if !self.round.contains(&id) {
                self.round.push(id);
            }
        }
    }

    pub fn next_receiver(&self) -> Option<MemberId> {
        match self.mode() {
            Mode::Balanced => self.round.first().copied(),
            _ => self.members.first().filter(|member| self.has_room(member)).map(|member| member.id),
        }
    }

    /// Where in `waiting` the message is that may be delivered next. A parked one is passed over, but
    /// in SINGLETON it holds back all behind it.
    pub fn next_ready(&self) -> Option<usize> {
        let at = self.waiting.iter().position(|item| item.parked_until.is_none());
        at.filter(|&at| self.mode() != Mode::Singleton || at == 0)
    }

    /// Ends a delivery.
    pub fn take(&mut self, at: usize) -> Item {
        let item = self.in_flight.remove(at).item;
        self.update_round();
        item
    }

    pub fn waiting_bytes(&self) -> u64 {
        self.waiting.iter().map(|item| item.message.cost()).sum()
    }

    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight.iter().map(|held| held.item.message.cost()).sum()
    }

    /// All moments at which something is due here.
    pub fn dues(&self) -> impl Iterator<Item = Time> {
        let timeouts = self.in_flight.iter().filter_map(|held| held.due);
        let parked = self.waiting.iter().filter_map(|item| item.parked_until);
        self.ends_at.into_iter().chain(timeouts).chain(parked)
    }
}
