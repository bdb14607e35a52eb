//! The last patterns that came: what a remembered answer may lack.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ids::Id;
use super::verify::Program;

/// An answer that more patterns than this have come after is found anew.
pub(super) const MOST_CHANGES: u64 = 64;

/// Patterns in the order in which they came. What goes is not written down: whoever reads an id asks whether its
/// pattern is still held.
#[derive(Default)]
pub(super) struct Journal {
    changes: u64,
    last: VecDeque<(Id, Arc<Program>)>,
}

impl Journal {
    /// How many have come so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub fn write(&mut self, id: Id, program: Arc<Program>) {
        if self.last.len() as u64 == MOST_CHANGES {
            self.last.pop_front();
        }
        self.last.push_back((id, program));
        self.changes += 1;
    }

    /// What has come after so many changes; none where that is too much.
    pub fn since(&self, changes: u64) -> Option<impl Iterator<Item = (Id, &Program)>> {
        let unseen = self.changes - changes;
        (unseen <= MOST_CHANGES).then(|| {
            let seen = self.last.len() - unseen as usize;
            self.last.iter().skip(seen).map(|(id, program)| (*id, &**program))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_the_last_changes_or_that_there_were_too_many() {
        let mut journal = Journal::default();
        let ids =
            |journal: &Journal, since| Some(journal.since(since)?.map(|(id, _)| id).collect::<Vec<_>>());
        assert_eq!(ids(&journal, 0), Some(vec![]));
        (0..100).for_each(|id| journal.write(id, Arc::new(Program::new(Vec::new()))));
        assert_eq!(journal.changes(), 100);
        assert_eq!(ids(&journal, 100), Some(vec![]));
        assert_eq!(ids(&journal, 97), Some(vec![97, 98, 99]));
        assert_eq!(ids(&journal, 36), Some((36..100).collect()));
        assert_eq!(ids(&journal, 35), None);
    }
}
