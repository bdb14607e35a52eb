//! What a member says of what it sees. One that is a process of its own says it to its parent, a line each.

use std::fmt;
use std::str::FromStr;

use crate::clock::Nanos;
use crate::ledger::LaneId;

/// One thing that a member saw or did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The broker knows of it: as a standby, or beside `Active`.
    Present,
    /// Its first frame came: it gets messages from now on.
    Active {
        at: Nanos,
    },
    Took(Taken),
    /// From now on it acks nothing.
    Holding,
}

/// A message that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub at: Nanos,
    pub lane: LaneId,
    pub sequence: u64,
    pub attempt: u32,
    /// When its publish was meant to happen.
    pub intended: Nanos,
    /// Whether the ack follows at once.
    pub acks: bool,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Present => f.write_str("present"),
            Word::Active { at } => write!(f, "active {at}"),
            Word::Took(Taken { at, lane, sequence, attempt, intended, acks }) => {
                write!(f, "took {at} {} {sequence} {attempt} {intended} {}", lane.0, u8::from(*acks))
            }
            Word::Holding => f.write_str("holding"),
        }
    }
}

/// A line that is none of a member's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a member's process said `{0}`, which means nothing")]
pub struct Meaningless(String);

impl FromStr for Word {
    type Err = Meaningless;

    fn from_str(line: &str) -> Result<Self, Meaningless> {
        read(line).ok_or_else(|| Meaningless(line.to_owned()))
    }
}

fn read(line: &str) -> Option<Word> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let numbers: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(match (name, numbers.as_slice()) {
        ("present", []) => Word::Present,
        ("active", &[at]) => Word::Active { at },
        ("holding", []) => Word::Holding,
        ("took", &[at, lane, sequence, attempt, intended, acks]) => Word::Took(Taken {
            at,
            lane: LaneId(lane.try_into().ok()?),
            sequence,
            attempt: attempt.try_into().ok()?,
            intended,
            acks: acks != 0,
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_means_what_was_said() {
        let taken =
            Taken { at: u64::MAX, lane: LaneId(7), sequence: 1 << 40, attempt: 2, intended: 3, acks: true };
        let kept = Taken { acks: false, ..taken };
        for word in
            [Word::Present, Word::Active { at: 5 }, Word::Took(taken), Word::Took(kept), Word::Holding]
        {
            assert_eq!(word.to_string().parse(), Ok(word));
        }
    }

    #[test]
    fn a_torn_line_means_nothing() {
        let line = "took 12 3 4 1 5 0";
        assert!(line.parse::<Word>().is_ok());
        for torn in
            ["", "took", "took 12 3 4 1 5", "took 12 3 4 1 5 ", "took 12 3 4 -1 5 0", "active", "activ"]
        {
            assert_eq!(torn.parse::<Word>(), Err(Meaningless(torn.to_owned())));
        }
    }
}
