//! Scripts: what may happen in a small world.

mod draw;

use std::fmt;

use tinybroker::core::{Action, Overflow};
use tinybroker::model::Mode;

pub use draw::script;

pub const TOPICS: [&str; 5] = ["a.x", "a.y", "b.x", "b.y", "c"];
/// Sets of patterns, each sorted by text.
pub const PATTERNS: [&[&str]; 5] = [&["*"], &["a.*"], &["*.x"], &["a.?", "b.x", "{a,b}.x"], &["a.x"]];
/// For dead letters: the pattern `*` alone matches them, and where it is used there are none.
pub const DEAD_LETTER_TOPICS: [&str; 2] = ["dead.1", "dead.2"];
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
///
/// `Accept` is one shard's part of a publish that none may refuse; two and two messages of a `Run` have a topic, the
/// first has its size, the others are small; `Burst` is many publishes to connections that
/// take what they are sent; what is due after an `Advance` without its tick comes with the next input.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    Open { place: u8, given: GivenId, max_in_flight: u16, control_events: bool, twist: Option<Twist> },
    Leave { member: u8 },
    Resign { member: u8 },
    Publish { topic: u8, size: Size, message_id: Option<u8> },
    Run { messages: u8, topic: u8, size: Size, is_accept: bool },
    Burst { topic: u8, messages: u16 },
    Accept { topic: u8, size: Size },
    Reserve { topic: u8, size: Size },
    Commit { nth: u8 },
    Abort { nth: u8 },
    Settle { settler: Settler, pick: Pick, action: Action },
    Credit { member: u8, messages: u16 },
    Advance { span: Span, tick: bool },
    Drain,
}

#[derive(Clone)]
pub struct Script {
    /// Those in use: the fewer, the more members meet in one.
    pub places: Vec<Kind>,
    pub near_full_messages: u64,
    pub fan_out_slice: usize,
    pub steps: Vec<Step>,
}

/// A line a place that is used, a line a step.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_used = |at: usize| {
            self.steps
                .iter()
                .any(|step| matches!(step, Step::Open { place, .. } if usize::from(*place) % self.places.len() == at))
        };
        writeln!(f, "near full below {} messages", self.near_full_messages)?;
        writeln!(f, "{} subscriptions served in one go", self.fan_out_slice)?;
        for (at, kind) in self.places.iter().enumerate().filter(|(at, _)| is_used(*at)) {
            writeln!(f, "place {at}: {kind:?}")?;
        }
        self.steps.iter().enumerate().try_for_each(|(number, step)| writeln!(f, "{number:3} {step:?}"))
    }
}
