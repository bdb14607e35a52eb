//! How much an index takes.

use std::collections::HashSet;

use thiserror::Error;

use super::ids::Posting;
use crate::limits::{ALIKE_PATTERNS, CROWDED_PATTERNS, SELECTIVE_RUN_BYTES};
use crate::pattern::Atom;

/// What may be held, and how much of it is. Each expansion of braces counts.
pub(super) struct Bounds {
    distinct_limit: usize,
    unselective_limit: usize,
    distinct: usize,
    unselective: usize,
    /// What hangs on crowded anchors.
    crowded: HashSet<Posting>,
}

/// Why an index takes no more patterns.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum IndexError {
    /// The index would hold too many distinct patterns.
    #[error(
        "too many patterns: limit {limit} distinct ones on a shard, braces expanded; close unused \
         subscriptions, or let several use the same pattern"
    )]
    TooManyPatterns {
        /// Most distinct patterns.
        limit: usize,
    },
    /// The index would hold too many patterns that have to be tried on every topic.
    #[error(
        "too unselective: limit {limit} patterns on a shard without {SELECTIVE_RUN_BYTES} literal bytes \
         in a row, braces expanded; put more of the topic into the pattern, or subscribe to `*`"
    )]
    TooUnselective {
        /// Most unselective patterns.
        limit: usize,
    },
    /// The index would hold too many patterns that have to be tried on the same topics.
    #[error(
        "too similar: limit {limit} patterns on a shard that have the same literal bytes and differ in `?`, \
         classes or short texts, braces expanded; put more of the topic into the pattern"
    )]
    TooSimilar {
        /// Most similar patterns.
        limit: usize,
    },
    /// The index would hold too many patterns that others are similar to.
    #[error(
        "too many similar: limit {limit} patterns on a shard that come after {ALIKE_PATTERNS} with the same literal \
         bytes and differ from them in `?`, classes or short texts, braces expanded; put more of the topic into the \
         pattern"
    )]
    TooCrowded {
        /// Most of them.
        limit: usize,
    },
}

impl Bounds {
    pub fn new(distinct_limit: usize, unselective_limit: usize) -> Self {
        Self { distinct_limit, unselective_limit, distinct: 0, unselective: 0, crowded: HashSet::new() }
    }

    /// How many are held.
    #[cfg(test)]
    pub fn distinct(&self) -> usize {
        self.distinct
    }

    /// What it means that no id is left.
    pub fn too_many(&self) -> IndexError {
        IndexError::TooManyPatterns { limit: self.distinct_limit }
    }

    /// Whether there is room for the expansions of one more pattern.
    pub fn check(&self, atoms: &[Atom]) -> Result<(), IndexError> {
        if self.distinct + atoms.len() > self.distinct_limit {
            return Err(self.too_many());
        }
        let added = unselective(atoms);
        if added > 0 && self.unselective + added > self.unselective_limit {
            let limit = self.unselective_limit;
            return Err(IndexError::TooUnselective { limit });
        }
        Ok(())
    }

    /// Whether there is room for so many more on crowded anchors.
    pub fn check_crowd(&self, added: usize) -> Result<(), IndexError> {
        let limit = CROWDED_PATTERNS;
        if added > 0 && self.crowded.len() + added > limit {
            Err(IndexError::TooCrowded { limit })
        } else {
            Ok(())
        }
    }

    pub fn enter_crowd(&mut self, posting: Posting) {
        self.crowded.insert(posting);
    }

    /// Does nothing where it was not in it.
    pub fn leave_crowd(&mut self, posting: Posting) {
        self.crowded.remove(&posting);
    }

    pub fn count(&mut self, atoms: &[Atom]) {
        self.distinct += atoms.len();
        self.unselective += unselective(atoms);
    }

    pub fn discount(&mut self, atoms: &[Atom]) {
        self.distinct -= atoms.len();
        self.unselective -= unselective(atoms);
    }
}

fn unselective(atoms: &[Atom]) -> usize {
    atoms.iter().filter(|atom| atom.is_unselective()).count()
}
