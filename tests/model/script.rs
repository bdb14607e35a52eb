//! Random scripts: what may happen in a small world, and how often.

use std::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tinybroker::core::Overflow;
use tinybroker::model::Mode;

pub const TOPICS: [&str; 5] = ["a.x", "a.y", "b.x", "b.y", "c"];
/// Sets of patterns, each sorted by text.
pub const PATTERNS: [&[&str]; 5] = [&["*"], &["a.*"], &["*.x"], &["a.?", "b.x", "{a,b}.x"], &["a.x"]];
/// Longest script: short ones are drawn too, so that what fails can shrink to nothing.
const STEPS: usize = 260;
/// Groups, then MULTI streams.
pub const PLACES: usize = 8;
pub const STREAMS: usize = 4;

/// What the members of one place agree on.
#[derive(Debug, Clone)]
pub struct Kind {
    pub mode: Mode,
    pub patterns: u8,
    pub max_pending: u64,
    pub overflow: Overflow,
    pub linger_millis: u64,
}

/// In what a later open does not agree.
#[derive(Debug, Clone, Copy)]
pub enum Twist {
    Mode,
    Patterns,
    MaxPending,
    Overflow,
    Linger,
}

impl Twist {
    pub fn apply(self, kind: &mut Kind) {
        match self {
            Twist::Mode => {
                kind.mode = match kind.mode {
                    Mode::Multi => Mode::Multi,
                    Mode::Balanced => Mode::Singleton,
                    Mode::Singleton => Mode::Balanced,
                }
            }
            Twist::Patterns => kind.patterns = (kind.patterns + 1) % PATTERNS.len() as u8,
            Twist::MaxPending => kind.max_pending += 1,
            Twist::Overflow => {
                let turned = kind.overflow == Overflow::Reject;
                kind.overflow = if turned { Overflow::DropOldest } else { Overflow::Reject };
            }
            Twist::Linger => kind.linger_millis += 10,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum GivenId {
    None,
    Own,
    /// That of another place, mostly.
    Other(u8),
}

/// Cost of a message beside a member's window of bytes.
#[derive(Debug, Clone, Copy)]
pub enum Size {
    Small,
    Large,
    /// Larger than the whole window.
    Huge,
}

/// Which deliveries an ack names; numbers count round in what there is.
#[derive(Debug, Clone, Copy)]
pub enum Pick {
    InFlight(u8),
    Several(u8),
    /// Any delivery so far: mostly a settled or taken back one.
    Delivered(u8),
    /// The suffix after a delivery's.
    NotYet(u8),
    MessageId(u8),
    BrokersMessageId(u8),
}

/// Members and subscriptions are counted round among those that are there.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Open { place: u8, given: GivenId, max_in_flight: u8, control_events: bool, twist: Option<Twist> },
    Leave { member: u8 },
    Resign { member: u8 },
    Publish { topic: u8, size: Size, message_id: Option<u8> },
    Burst { topic: u8, messages: u16 },
    Reserve { topic: u8, size: Size },
    Commit { nth: u8 },
    Abort { nth: u8 },
    Ack { member: u8, given: GivenId, pick: Pick },
    Settle { subscription: u8, pick: Pick },
    Credit { member: u8, messages: u16 },
    Advance { millis: u64 },
    Drain,
}

#[derive(Clone)]
pub struct Script {
    pub places: Vec<Kind>,
    pub near_full_messages: u64,
    pub steps: Vec<Step>,
}

/// A line a place that is used, a line a step.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_used = |at: usize| {
            self.steps
                .iter()
                .any(|step| matches!(step, Step::Open { place, .. } if usize::from(*place) == at))
        };
        writeln!(f, "near full below {} messages", self.near_full_messages)?;
        for (at, kind) in self.places.iter().enumerate().filter(|(at, _)| is_used(*at)) {
            writeln!(f, "place {at}: {kind:?}")?;
        }
        self.steps.iter().enumerate().try_for_each(|(number, step)| writeln!(f, "{number:3} {step:?}"))
    }
}

pub fn script() -> impl Strategy<Value = Script> {
    (vec(kind(), PLACES), 1..4_u64, vec(step(), 1..STEPS)).prop_map(
        |(mut places, near_full_messages, steps)| {
            places[PLACES - STREAMS..].iter_mut().for_each(|kind| kind.mode = Mode::Multi);
            Script { places, near_full_messages, steps }
        },
    )
}

fn kind() -> impl Strategy<Value = Kind> {
    let mode = prop_oneof![Just(Mode::Balanced), Just(Mode::Singleton)];
    let overflow = prop_oneof![
        3 => Just(Overflow::Reject),
        2 => Just(Overflow::DropOldest),
        2 => Just(Overflow::DropNewest),
        2 => Just(Overflow::Disconnect),
    ];
    let linger = prop_oneof![2 => Just(0), 1 => Just(20), 1 => Just(100)];
    let max_pending = prop_oneof![1 => 1..3_u64, 3 => 3..8_u64, 1 => Just(1000)];
    (mode, 0..PATTERNS.len() as u8, max_pending, overflow, linger).prop_map(
        |(mode, patterns, max_pending, overflow, linger_millis)| Kind {
            mode,
            patterns,
            max_pending,
            overflow,
            linger_millis,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let topic = || 0..TOPICS.len() as u8;
    let any = any::<u8>;
    prop_oneof![
        140 => open(),
        80 => any().prop_map(|member| Step::Leave { member }),
        30 => any().prop_map(|member| Step::Resign { member }),
        300 => (topic(), size(), option::of(0..3_u8))
            .prop_map(|(topic, size, message_id)| Step::Publish { topic, size, message_id }),
        1 => (topic(), 500..1200_u16).prop_map(|(topic, messages)| Step::Burst { topic, messages }),
        40 => (topic(), size()).prop_map(|(topic, size)| Step::Reserve { topic, size }),
        30 => any().prop_map(|nth| Step::Commit { nth }),
        15 => any().prop_map(|nth| Step::Abort { nth }),
        150 => (any(), given(), pick()).prop_map(|(member, given, pick)| Step::Ack { member, given, pick }),
        120 => (any(), pick()).prop_map(|(subscription, pick)| Step::Settle { subscription, pick }),
        90 => (any(), prop_oneof![9 => 1..4_u16, 1 => Just(2000)])
            .prop_map(|(member, messages)| Step::Credit { member, messages }),
        50 => prop_oneof![Just(5), Just(20), Just(100)].prop_map(|millis| Step::Advance { millis }),
        1 => Just(Step::Drain),
    ]
}

fn open() -> impl Strategy<Value = Step> {
    let twist = prop_oneof![
        Just(Twist::Mode),
        Just(Twist::Patterns),
        Just(Twist::MaxPending),
        Just(Twist::Overflow),
        Just(Twist::Linger),
    ];
    (0..PLACES as u8, given(), 0..4_u8, any::<bool>(), option::weighted(0.1, twist)).prop_map(
        |(place, given, max_in_flight, control_events, twist)| Step::Open {
            place,
            given,
            max_in_flight,
            control_events,
            twist,
        },
    )
}

fn given() -> impl Strategy<Value = GivenId> {
    prop_oneof![
        10 => Just(GivenId::None),
        10 => Just(GivenId::Own),
        1 => (0..PLACES as u8).prop_map(GivenId::Other),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![6 => Just(Size::Small), 2 => Just(Size::Large), 1 => Just(Size::Huge)]
}

fn pick() -> impl Strategy<Value = Pick> {
    let nth = any::<u8>;
    prop_oneof![
        6 => nth().prop_map(Pick::InFlight),
        2 => nth().prop_map(Pick::Several),
        2 => nth().prop_map(Pick::Delivered),
        1 => nth().prop_map(Pick::NotYet),
        2 => (0..3_u8).prop_map(Pick::MessageId),
        1 => nth().prop_map(Pick::BrokersMessageId),
    ]
}
