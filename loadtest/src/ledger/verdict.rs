//! What a ledger has to say at the end.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// How many broken promises of a kind are told one by one; the rest are counted.
const NAMED: usize = 10;

/// A promise that can be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// A confirmed message never came, or never came again after the death of its holder.
    Lost,
    /// A message came twice to one receiver though nobody who had it died.
    Doubled,
    /// A message was with two living members of one group at once, or a SINGLETON group had two active ones.
    TwoHolders,
    /// A message came before one that was published earlier.
    Reordered,
    /// A message came that was never sent, or whose publish was refused.
    Unpublished,
    /// A message came to a receiver that it was not meant for.
    Misdelivered,
    /// A confirm counted other subscriptions than the message was meant for, or no message that awaited one.
    Miscounted,
    /// The attempt that a delivery was said to be cannot be.
    Misnumbered,
    /// A delivered message could not be settled.
    Unsettled,
    /// What a member had when it died came to others too late, or its place to one whose turn it was not.
    NotHandedOn,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Promise::Lost => "lost",
            Promise::Doubled => "doubled",
            Promise::TwoHolders => "with two holders at once",
            Promise::Reordered => "out of order",
            Promise::Unpublished => "delivered though not published",
            Promise::Misdelivered => "delivered to a wrong receiver",
            Promise::Miscounted => "confirmed with a wrong count",
            Promise::Misnumbered => "delivered with a wrong attempt",
            Promise::Unsettled => "delivered and not settled",
            Promise::NotHandedOn => "not handed on as it should be",
        })
    }
}

/// What was sent and what came of it, and every promise that was broken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Messages sent, refused ones included.
    pub sent: u64,
    /// Of those, publishes that the broker refused.
    pub refused: u64,
    /// Publishes whose outcome the publisher never learned: each may have come or not.
    pub unknown: u64,
    /// Deliveries, redeliveries included.
    pub delivered: u64,
    /// Deliveries of a message that its receiver had had before, each after the death of one that held it.
    pub redelivered: u64,
    /// How often each promise was broken.
    pub broken: BTreeMap<Promise, u64>,
    /// The first of each kind, by name.
    pub named: Vec<String>,
}

impl Verdict {
    /// Adds what the broker says to be in flight when everything was acked.
    pub fn left_in_flight(&mut self, deliveries: u64) {
        if deliveries > 0 {
            *self.broken.entry(Promise::Unsettled).or_default() += deliveries;
            self.named.push(format!(
                "{}: the broker has {deliveries} in flight, all of them acked",
                Promise::Unsettled
            ));
        }
    }

    /// Adds what another run of the same kind has to say.
    pub fn add(&mut self, other: &Verdict) {
        self.sent += other.sent;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.delivered += other.delivered;
        self.redelivered += other.redelivered;
        for (promise, count) in &other.broken {
            *self.broken.entry(*promise).or_default() += count;
        }
        self.named.extend(other.named.iter().cloned());
    }

    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Broken promises, as they come in.
#[derive(Debug, Clone, Default)]
pub struct Breaches(BTreeMap<Promise, Breach>);

#[derive(Debug, Clone, Default)]
struct Breach {
    count: u64,
    named: Vec<Named>,
}

/// Messages in a row of which the same is to be said.
#[derive(Debug, Clone)]
struct Named {
    first: u64,
    last: u64,
    what: String,
}

impl Breaches {
    /// `what` follows the message: `of lane "a" never came to "b"`.
    pub fn report(&mut self, promise: Promise, sequence: u64, what: String) {
        let Breach { count, named } = self.0.entry(promise).or_default();
        *count += 1;
        if let Some(row) =
            named.iter_mut().find(|row| row.last.checked_add(1) == Some(sequence) && row.what == what)
        {
            row.last = sequence;
        } else if named.len() < NAMED {
            named.push(Named { first: sequence, last: sequence, what });
        }
    }

    pub fn counts(&self) -> BTreeMap<Promise, u64> {
        self.0.iter().map(|(&promise, breach)| (promise, breach.count)).collect()
    }

    pub fn names(&self) -> Vec<String> {
        let name = |(promise, breach): (&Promise, &Breach)| {
            let promise = *promise;
            breach.named.clone().into_iter().map(move |named| format!("{promise}: {named}"))
        };
        self.0.iter().flat_map(name).collect()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named { first, last, what } = self;
        if first == last {
            write!(f, "message {first} {what}")
        } else {
            write!(f, "messages {first} to {last} {what}")
        }
    }
}
