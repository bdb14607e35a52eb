//! Expansions without wildcards, by the one topic that each matches.

use super::few::Few;
use super::ids::Posting;
use super::registry::{PIECES, Registry};
use super::table::Table;

/// Postings by topic. The topics are not kept here: the patterns spell them.
pub(super) struct Exact {
    table: Table<Few<Posting>>,
}

impl Exact {
    pub fn new() -> Self {
        Self { table: Table::new(PIECES) }
    }

    /// What a pattern with this text is found by, where one of its expansions is this topic.
    pub fn posting(id: u32, atom: usize, text: &str, topic: &str) -> Posting {
        Posting::new(id, atom, text != topic)
    }

    pub fn insert<K: Copy + Ord>(&mut self, registry: &Registry<K>, topic: &str, posting: Posting) {
        let hash = registry.hash(topic);
        match self.table.find_mut(hash, |found| names(registry, found, topic)) {
            Some(found) => {
                found.insert(posting);
            }
            None => self.table.insert(hash, Few::One(posting)),
        }
    }

    pub fn remove<K: Copy + Ord>(&mut self, registry: &Registry<K>, topic: &str, posting: Posting) {
        let hash = registry.hash(topic);
        let Some(found) = self.table.find_mut(hash, |found| found.contains(posting)) else { return };
        found.remove(posting);
        if found.is_empty() {
            self.table.remove(hash, Few::is_empty);
        }
    }

    /// Appends what is this topic, which has this hash. Nothing of it need be verified.
    pub fn find<K: Copy + Ord>(
        &self,
        registry: &Registry<K>,
        hash: u64,
        topic: &str,
        found: &mut Vec<Posting>,
    ) {
        if let Some(postings) = self.table.find(hash, |found| names(registry, found, topic)) {
            found.extend(postings.iter().map(|posting| Posting::new(posting.id(), posting.atom(), false)));
        }
    }
}

/// Whether these are the postings of the topic: all are, if one is.
fn names<K: Copy + Ord>(registry: &Registry<K>, postings: &Few<Posting>, topic: &str) -> bool {
    postings.iter().next().is_some_and(|posting| match posting.verify() {
        false => registry.text(posting.id()) == Some(topic),
        true => registry.program(posting.id()).is_some_and(|p| p.atom_matches(posting.atom(), topic)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::verify::Program;
    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn texts_that_spell_one_topic_share_its_place() {
        let mut registry = Registry::new();
        let mut exact = Exact::new();
        let texts = ["a", r"\a", "{b,a}", "b", "{,c}"];
        let each = |registry: &Registry<u32>, change: &mut dyn FnMut(&str, Posting)| {
            for (id, text) in (0..).zip(texts) {
                assert_eq!(registry.text(id), Some(text));
                for (at, atom) in Pattern::parse(text).unwrap().atoms().iter().enumerate() {
                    let topic = atom.literal().unwrap();
                    change(topic, Exact::posting(id, at, text, topic));
                }
            }
        };
        for (id, text) in (0..).zip(texts) {
            let pattern = Pattern::parse(text).unwrap();
            let program = Arc::new(Program::new(pattern.atoms()));
            assert_eq!(registry.add(pattern, 0), Some(id));
            registry.keep_program(id, program);
            registry.hold(id, id);
        }
        each(&registry, &mut |topic, posting| exact.insert(&registry, topic, posting));
        let found = |exact: &Exact, topic: &str| {
            let mut found = Vec::new();
            exact.find(&registry, registry.hash(topic), topic, &mut found);
            assert!(found.iter().all(|posting| !posting.verify()));
            found.into_iter().map(Posting::id).collect::<Vec<_>>()
        };
        for (topic, wanted) in
            [("a", &[0, 1, 2][..]), ("b", &[2, 3]), ("", &[4]), ("c", &[4]), ("{b,a}", &[])]
        {
            assert_eq!(found(&exact, topic), wanted, "{topic}");
        }
        assert_eq!(exact.table.len(), 4);
        each(&registry, &mut |topic, posting| exact.remove(&registry, topic, posting));
        assert_eq!((exact.table.len(), found(&exact, "a").len()), (0, 0));
    }
}
