//! Random scripts: what may happen in a small world, and how often.

use std::fmt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample;
use tinybroker::core::{Action, Nack, Overflow};
use tinybroker::model::Mode;

pub const TOPICS: [&str; 5] = ["a.x", "a.y", "b.x", "b.y", "c"];
/// Sets of patterns, each sorted by text.
pub const PATTERNS: [&[&str]; 5] = [&["*"], &["a.*"], &["*.x"], &["a.?", "b.x", "{a,b}.x"], &["a.x"]];
/// For dead letters: the pattern `*` alone matches them, and where it is used there are none.
pub const DEAD_LETTER_TOPICS: [&str; 2] = ["dead.1", "dead.2"];
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
    pub ack_timeout_millis: u64,
    pub max_deliveries: u32,
    pub dead_letters: Option<u8>,
}

/// In what a later open does not agree.
#[derive(Debug, Clone, Copy)]
pub enum Twist {
    Mode,
    Patterns,
    MaxPending,
    Overflow,
    Linger,
    AckTimeout,
    MaxDeliveries,
    DeadLetters,
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
            Twist::AckTimeout => kind.ack_timeout_millis += 10,
            Twist::MaxDeliveries => kind.max_deliveries += 1,
            Twist::DeadLetters => {
                kind.dead_letters = if kind.dead_letters.is_none() { Some(0) } else { None }
            }
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

/// Who settles; in a stream with the subscription_id that its command gives.
#[derive(Debug, Clone, Copy)]
pub enum Settler {
    Stream { member: u8, given: GivenId },
    Call { subscription: u8 },
}

/// How far time moves on.
#[derive(Debug, Clone, Copy)]
pub enum Span {
    Millis(u64),
    /// To the next deadline,
    UntilDue,
    /// and to the last moment before it.
    UntilJustBeforeDue,
}

/// Which deliveries an ack, nack or extend names; numbers count round in what there is.
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
    Open {
        place: u8,
        given: GivenId,
        max_in_flight: u8,
        control_events: bool,
        twist: Option<Twist>,
    },
    Leave {
        member: u8,
    },
    Resign {
        member: u8,
    },
    Publish {
        topic: u8,
        size: Size,
        message_id: Option<u8>,
    },
    Burst {
        topic: u8,
        messages: u16,
    },
    Reserve {
        topic: u8,
        size: Size,
    },
    Commit {
        nth: u8,
    },
    Abort {
        nth: u8,
    },
    Settle {
        settler: Settler,
        pick: Pick,
        action: Action,
    },
    Credit {
        member: u8,
        messages: u16,
    },
    /// Without its tick, what is due comes with the next input.
    Advance {
        span: Span,
        tick: bool,
    },
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
    let ack_timeout = prop_oneof![3 => Just(0), 2 => Just(5), 2 => Just(20), 1 => Just(70)];
    let max_deliveries = prop_oneof![2 => Just(0), 4 => 1..4_u32];
    let dead_letters = option::of(0..DEAD_LETTER_TOPICS.len() as u8);
    let queue = (mode, 0..PATTERNS.len() as u8, max_pending, overflow, linger);
    (queue, ack_timeout, max_deliveries, dead_letters).prop_map(
        |(
            (mode, patterns, max_pending, overflow, linger_millis),
            ack_timeout_millis,
            max_deliveries,
            dead_letters,
        )| Kind {
            mode,
            patterns,
            max_pending,
            overflow,
            linger_millis,
            ack_timeout_millis,
            max_deliveries,
            // Those of a pattern that matches all would come back.
            dead_letters: dead_letters.filter(|_| patterns > 0),
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
        400 => (settler(), pick(), action())
            .prop_map(|(settler, pick, action)| Step::Settle { settler, pick, action }),
        90 => (any(), prop_oneof![9 => 1..4_u16, 1 => Just(2000)])
            .prop_map(|(member, messages)| Step::Credit { member, messages }),
        120 => (span(), proptest::bool::ANY).prop_map(|(span, tick)| Step::Advance { span, tick }),
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
        Just(Twist::AckTimeout),
        Just(Twist::MaxDeliveries),
        Just(Twist::DeadLetters),
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

fn settler() -> impl Strategy<Value = Settler> {
    let any = any::<u8>;
    prop_oneof![
        3 => (any(), given()).prop_map(|(member, given)| Settler::Stream { member, given }),
        2 => any().prop_map(|subscription| Settler::Call { subscription }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let millis = |choices: &'static [u64]| sample::select(choices).prop_map(Duration::from_millis);
    let flag = |percent: f64| proptest::bool::weighted(percent / 100.0);
    let nack = (millis(&[0, 0, 0, 1, 20, 20, 100]), flag(15.0), flag(30.0));
    prop_oneof![
        4 => Just(Action::Ack),
        5 => nack.prop_map(|(delay, discard, keep_attempt)| Action::Nack(Nack { delay, discard, keep_attempt })),
        2 => millis(&[0, 1, 20, 100]).prop_map(|ack_timeout| Action::Extend { ack_timeout }),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        3 => sample::select(&[5, 20, 100][..]).prop_map(Span::Millis),
        3 => Just(Span::UntilDue),
        1 => Just(Span::UntilJustBeforeDue),
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
