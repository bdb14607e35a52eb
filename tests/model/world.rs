//! A small world in which a core and its twin live through the same script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smallvec::SmallVec;
use tinybroker::core::{
    Answer, Core, CoreConfig, Effect, Input, OpenSpec, Settle, SettleTarget, SharedOptions,
};
use tinybroker::model::{
    DeliveryId, GroupName, MemberId, Message, MessageNumber, Mode, SubscriptionId, Ticket, Time, Topic,
};
use tinybroker::pattern::Pattern;

use crate::outcome::{Outcome, Told, compare};
use crate::script::{self, GivenId, Kind, Pick, Script, Size, Step, Twist};
use crate::twin::{Figures, Member, Subscription, Twin};

/// Members at a time, so that groups are small and steps meet.
const MEMBERS: usize = 9;
/// Room for three of the largest messages.
const MAX_PENDING_BYTES: u64 = 1024 * 1024;

static ZEROS: [u8; 300 * 1024] = [0; 300 * 1024];

pub struct World<'a> {
    script: &'a Script,
    core: Core,
    twin: Twin,
    now: Time,
    /// The last number given to a member, a message or a ticket.
    numbers: u64,
    /// Every delivery so far.
    delivered: Vec<DeliveryId>,
    reserved: Vec<Ticket>,
    seen: BTreeSet<String>,
}

/// Lives through a script, and adds to `seen` the kinds of what was said.
///
/// # Errors
///
/// The first step at which the core and its twin part, and how.
pub fn run(script: &Script, seen: &mut BTreeSet<String>) -> Result<(), String> {
    let mut world = World::new(script);
    for (number, step) in script.steps.iter().enumerate() {
        world.take(step).map_err(|parted| format!("step {number}, {step:?}: {parted}"))?;
    }
    seen.extend(world.seen);
    Ok(())
}

impl<'a> World<'a> {
    fn new(script: &'a Script) -> Self {
        let config = CoreConfig {
            epoch: 1000,
            max_pending_bytes: MAX_PENDING_BYTES,
            near_full_messages: script.near_full_messages,
            near_full_bytes: 310 * 1024,
        };
        World {
            script,
            core: Core::new(config.clone()),
            twin: Twin::new(config),
            now: Time::default(),
            numbers: 0,
            delivered: Vec::new(),
            reserved: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Advance { millis } => {
                self.now = self.now + Duration::from_millis(*millis);
                self.apply(Input::Tick)
            }
            Step::Burst { topic, messages } => (0..*messages).try_for_each(|_| {
                let (ticket, message) = (self.ticket(), self.message(*topic, Size::Small, None));
                self.apply(Input::Publish { ticket, message })
            }),
            _ => match self.input(step) {
                Some(input) => self.apply(input),
                None => Ok(()),
            },
        }
    }

    /// Applies to both and compares all that can be seen.
    fn apply(&mut self, input: Input) -> Result<(), String> {
        let twin = self.twin.apply(self.now, &input);
        let mut effects: Vec<Effect> = Vec::new();
        self.core.apply(self.now, input, &mut effects);
        self.core.check();
        let core: Vec<Outcome> = effects.into_iter().map(Outcome::from).collect();
        self.remember(&core);
        compare(core, twin)?;
        let (core, twin) = (self.core_figures(), self.twin.figures());
        if core == twin { Ok(()) } else { Err(format!("\ncore has {core:?}\ntwin has {twin:?}")) }
    }

    fn remember(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            self.seen.insert(outcome.kind());
            if let Outcome::Member(_, Told::Deliver { id, .. }) = outcome {
                self.delivered.push(*id);
            }
        }
    }

    fn core_figures(&mut self) -> Figures {
        let mut effects = Vec::new();
        let ticket = self.ticket();
        self.core.apply(self.now, Input::Stats { ticket }, &mut effects);
        let Some(Effect::Answer(_, Answer::Stats(stats))) = effects.pop() else {
            panic!("stats are answered at once")
        };
        assert_eq!(self.core.in_flight(), stats.in_flight);
        assert_eq!(self.core.is_empty(), stats.subscriptions == 0);
        Figures {
            subscriptions: stats.subscriptions,
            members: stats.members,
            standbys: stats.standbys,
            waiting: stats.waiting,
            in_flight: stats.in_flight,
            held_bytes: stats.held_bytes,
            near_full: self.core.is_near_full(),
            next_deadline: self.core.next_deadline(),
            counters: stats.counters.named().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
        }
    }
}

/// From what a step says to what happens, in the light of what the twin knows.
impl World<'_> {
    /// `None` where nobody is there to whom it could happen.
    fn input(&mut self, step: &Step) -> Option<Input> {
        Some(match *step {
            Step::Advance { .. } | Step::Burst { .. } => return None,
            Step::Open { place, given, max_in_flight, control_events, twist } => {
                if self.members().len() >= MEMBERS {
                    return None;
                }
                let spec = self.spec(place, given, max_in_flight, control_events, twist);
                Input::Open { member: self.member_id(), spec: Box::new(spec) }
            }
            Step::Leave { member } => Input::Leave { member: self.pick_member(member)?.id },
            Step::Resign { member } => Input::Resign { member: self.pick_member(member)?.id },
            Step::Publish { topic, size, message_id } => {
                Input::Publish { ticket: self.ticket(), message: self.message(topic, size, message_id) }
            }
            Step::Reserve { topic, size } => {
                let (ticket, message) = (self.ticket(), self.message(topic, size, None));
                self.reserved.push(ticket);
                Input::Reserve { ticket, message }
            }
            Step::Commit { nth } => Input::Commit { ticket: *pick(&self.reserved, nth)? },
            Step::Abort { nth } => Input::Abort { ticket: *pick(&self.reserved, nth)? },
            Step::Ack { member, given, pick } => self.ack(self.pick_member(member)?.id, given, pick),
            Step::Settle { subscription, pick } => self.settle(subscription, pick),
            Step::Credit { member, messages } => {
                let Member { id, untaken, .. } = self.pick_member(member)?;
                let taken = &untaken[..untaken.len().min(usize::from(messages))];
                Input::Credit { member: *id, messages: taken.len() as u32, bytes: taken.iter().sum() }
            }
            Step::Drain => Input::Drain { grace: Duration::from_secs(5) },
        })
    }

    fn ack(&self, member: MemberId, given: GivenId, what: Pick) -> Input {
        let subscription_id = match given {
            GivenId::None => None,
            GivenId::Own => self.subscription_of(member),
            GivenId::Other(other) => Some(id_of(usize::from(other))),
        };
        Input::Ack { member, subscription_id, target: self.target(Some(member), what) }
    }

    fn settle(&mut self, subscription: u8, what: Pick) -> Input {
        let ticket = self.ticket();
        let known = pick(&self.twin.subscriptions, subscription);
        let subscription_id = known.map_or_else(|| id_of(usize::MAX), |known| known.id.clone());
        Input::Settle(Box::new(Settle { ticket, subscription_id, target: self.target(None, what) }))
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn ticket(&mut self) -> Ticket {
        Ticket { frontend: 0, number: self.next_number() }
    }

    fn member_id(&mut self) -> MemberId {
        MemberId { frontend: 0, number: self.next_number() }
    }

    fn message(&mut self, topic: u8, size: Size, message_id: Option<u8>) -> Arc<Message> {
        let bytes = match size {
            Size::Small => 10,
            Size::Large => 100 * 1024,
            Size::Huge => 300 * 1024,
        };
        Arc::new(Message {
            number: MessageNumber::from_u64(self.next_number()),
            topic: Topic::parse(script::TOPICS[usize::from(topic)]).expect("a topic"),
            message_id: message_id.map(|id| format!("m{id}").into()),
            body: Bytes::from_static(&ZEROS[..bytes]),
        })
    }

    fn spec(
        &mut self,
        place: u8,
        given: GivenId,
        max_in_flight: u8,
        control_events: bool,
        twist: Option<Twist>,
    ) -> OpenSpec {
        let place = usize::from(place);
        let mut kind = self.script.places[place].clone();
        if let Some(twist) = twist {
            twist.apply(&mut kind);
        }
        let is_stream = kind.mode == Mode::Multi;
        let subscription_id = match given {
            GivenId::None => None,
            GivenId::Own => Some(id_of(place)),
            GivenId::Other(other) => Some(id_of(usize::from(other))),
        };
        let made = SubscriptionId::from_number(MessageNumber::from_u64(self.next_number()));
        OpenSpec {
            id_if_new: subscription_id.clone().unwrap_or(made),
            subscription_id,
            mode: kind.mode,
            group: (!is_stream).then(|| text(GroupName::parse(&format!("group-{place}")))),
            patterns: patterns(&kind),
            options: SharedOptions {
                max_pending: kind.max_pending,
                overflow: kind.overflow,
                linger: Duration::from_millis(kind.linger_millis),
            },
            max_in_flight: if is_stream { max_in_flight.into() } else { u32::from(max_in_flight.max(1)) },
            control_events,
        }
    }

    fn members(&self) -> Vec<&Member> {
        self.twin.subscriptions.iter().flat_map(|s| &s.members).collect()
    }

    fn pick_member(&self, nth: u8) -> Option<&Member> {
        pick(&self.members(), nth).copied()
    }

    fn subscription_of(&self, member: MemberId) -> Option<SubscriptionId> {
        let of = |s: &&Subscription| s.members.iter().any(|m| m.id == member);
        self.twin.subscriptions.iter().find(of).map(|s| s.id.clone())
    }

    /// What an ack names; mostly what is in flight at `holder`, where given.
    fn target(&self, holder: Option<MemberId>, what: Pick) -> SettleTarget {
        let in_flight = self.twin.subscriptions.iter().flat_map(|s| &s.in_flight);
        let own = in_flight.filter(|(at, _)| holder.is_none_or(|holder| holder == *at));
        let own: Vec<DeliveryId> = own.map(|(_, item)| item.delivery_id()).collect();
        let any = &self.delivered;
        let some = |ids: SmallVec<[DeliveryId; 1]>| SettleTarget::Deliveries { ids, unknown: 0 };
        match what {
            Pick::InFlight(nth) => some(pick(&own, nth).copied().into_iter().collect()),
            Pick::Several(nth) => {
                let ids = own.iter().skip(usize::from(nth) % 3).chain(pick(any, nth));
                SettleTarget::Deliveries { ids: ids.copied().collect(), unknown: 1 }
            }
            Pick::Delivered(nth) => some(pick(any, nth).copied().into_iter().collect()),
            Pick::NotYet(nth) => {
                let later = |id: &DeliveryId| DeliveryId { delivery: id.delivery + 1, ..*id };
                some(pick(any, nth).map(later).into_iter().collect())
            }
            Pick::MessageId(id) => SettleTarget::Message(format!("m{id}").into()),
            Pick::BrokersMessageId(nth) => {
                let text = pick(any, nth).map_or_else(|| "none".to_owned(), |id| id.message.to_string());
                SettleTarget::Message(text.into())
            }
        }
    }
}

fn patterns(kind: &Kind) -> Vec<Pattern> {
    let texts = script::PATTERNS[usize::from(kind.patterns)];
    texts.iter().map(|text| Pattern::parse(text).expect("a pattern")).collect()
}

fn id_of(place: usize) -> SubscriptionId {
    text(SubscriptionId::parse(&format!("id-{place}")))
}

fn text<T, E: std::fmt::Debug>(parsed: Result<Option<T>, E>) -> T {
    parsed.expect("within bounds").expect("not empty")
}

fn pick<T>(from: &[T], nth: u8) -> Option<&T> {
    from.get(usize::from(nth).checked_rem(from.len())?)
}
