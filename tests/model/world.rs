//! A small world in which a core and its twin live through the same script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use smallvec::SmallVec;
use tinybroker::core::{
    Action, Answer, Core, CoreConfig, Effect, Input, OpenSpec, SettleCall, SettleTarget, SharedOptions, Stats,
};
use tinybroker::model::{
    DeliveryId, GroupName, MemberId, Message, MessageNumber, Mode, SubscriptionId, Ticket, Time, Topic,
};
use tinybroker::pattern::Pattern;

use crate::outcome::{Outcome, Told, compare};
use crate::script::{self, GivenId, Kind, Pick, Script, Settler, Size, Span, Step, Twist};
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

/// Lives through a script, and adds to `seen` the kinds of what was said and counted.
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
    seen.extend(world.twin.figures().counters.into_keys().map(str::to_owned));
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
            Step::Advance { span, tick } => {
                self.advance(*span);
                if !tick {
                    return Ok(());
                }
                self.say(Input::Tick)?;
            }
            Step::Burst { topic, messages } => {
                for _ in 0..*messages {
                    let (ticket, message) = (self.ticket(), self.message(*topic, Size::Small, None));
                    self.say(Input::Publish { ticket, message })?;
                }
            }
            _ => {
                let Some(input) = self.input(step) else { return Ok(()) };
                self.say(input)?;
            }
        }
        self.core.check();
        self.compare_figures()
    }

    fn advance(&mut self, span: Span) {
        let until_due = self.core.next_deadline().map_or(Duration::ZERO, |due| due.since(self.now));
        self.now = self.now
            + match span {
                Span::Millis(millis) => Duration::from_millis(millis),
                Span::UntilDue => until_due,
                Span::UntilJustBeforeDue => until_due.saturating_sub(Duration::from_nanos(1)),
            };
    }

    /// Tells both and compares what they say. Returns the figures, where they were asked for.
    fn say(&mut self, input: Input) -> Result<Option<Box<Stats>>, String> {
        let twin = self.twin.apply(self.now, &input);
        let mut effects: Vec<Effect> = Vec::new();
        self.core.apply(self.now, input, &mut effects);
        let stats = effects.iter().find_map(|effect| match effect {
            Effect::Answer(_, Answer::Stats(stats)) => Some(stats.clone()),
            _ => None,
        });
        let core: Vec<Outcome> = effects.into_iter().map(Outcome::from).collect();
        self.remember(&core);
        compare(core, twin)?;
        Ok(stats)
    }

    /// Compares what can be seen from outside.
    fn compare_figures(&mut self) -> Result<(), String> {
        let ticket = self.ticket();
        let stats = self.say(Input::Stats { ticket })?.expect("stats are answered at once");
        let (core, twin) = (self.figures(&stats), self.twin.figures());
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

    fn figures(&self, stats: &Stats) -> Figures {
        assert_eq!(self.core.in_flight(), stats.in_flight);
        assert_eq!(self.core.is_empty(), stats.subscriptions == 0);
        let counters = stats.counters.named().filter(|(_, count)| *count > 0);
        Figures {
            subscriptions: stats.subscriptions,
            members: stats.members,
            standbys: stats.standbys,
            waiting: stats.waiting,
            parked: stats.parked,
            in_flight: stats.in_flight,
            held_bytes: stats.held_bytes,
            near_full: self.core.is_near_full(),
            next_deadline: self.core.next_deadline(),
            counters: counters.collect::<BTreeMap<_, _>>(),
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
            Step::Settle { settler: Settler::Stream { member, given }, pick, action } => {
                self.settle(self.pick_member(member)?.id, given, pick, action)
            }
            Step::Settle { settler: Settler::Call { subscription }, pick, action } => {
                self.settle_call(subscription, pick, action)
            }
            Step::Credit { member, messages } => {
                let Member { id, untaken, .. } = self.pick_member(member)?;
                let taken = &untaken[..untaken.len().min(usize::from(messages))];
                Input::Credit { member: *id, messages: taken.len() as u32, bytes: taken.iter().sum() }
            }
            Step::Drain => Input::Drain { grace: Duration::from_secs(5) },
        })
    }

    fn settle(&self, member: MemberId, given: GivenId, what: Pick, action: Action) -> Input {
        let subscription_id = match given {
            GivenId::None => None,
            GivenId::Own => self.subscription_of(member),
            GivenId::Other(other) => Some(id_of(usize::from(other))),
        };
        Input::Settle { member, subscription_id, target: self.target(Some(member), what), action }
    }

    fn settle_call(&mut self, subscription: u8, what: Pick, action: Action) -> Input {
        let ticket = self.ticket();
        let known = pick(&self.twin.subscriptions, subscription);
        let subscription_id = known.map_or_else(|| id_of(usize::MAX), |known| known.id.clone());
        let target = self.target(None, what);
        Input::SettleCall(Box::new(SettleCall { ticket, subscription_id, target, action }))
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
                ack_timeout: Duration::from_millis(kind.ack_timeout_millis),
                max_deliveries: kind.max_deliveries,
                dead_letter_topic: kind
                    .dead_letters
                    .map(|nth| Topic::parse(script::DEAD_LETTER_TOPICS[usize::from(nth)]).expect("a topic")),
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
        let own = in_flight.filter(|held| holder.is_none_or(|holder| holder == held.holder));
        let own: Vec<DeliveryId> = own.map(|held| held.item.delivery_id()).collect();
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
