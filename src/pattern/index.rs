//! Which subscriptions want a topic.

use std::hash::Hash;

use ahash::{AHashMap, AHashSet};
use thiserror::Error;

use super::atom::Atom;
use super::syntax::Pattern;
use crate::limits::{DISTINCT_PATTERNS, SELECTIVE_RUN_BYTES, UNSELECTIVE_PATTERNS};

/// The patterns of one shard and the keys (one a subscription) that hold them.
///
/// Each distinct text is matched once, however many keys hold it.
pub struct Index<K> {
    distinct_limit: usize,
    unselective_limit: usize,
    /// The keys that hold each pattern, ascending, never none.
    holders: AHashMap<Pattern, Vec<K>>,
    /// The patterns that name a topic outright, by that topic: `a` and `{a,b}` under `a`.
    exact: AHashMap<Box<str>, Vec<Pattern>>,
    /// All other patterns.
    globs: AHashSet<Pattern>,
    /// How many of `holders` are unselective.
    unselective: usize,
}

/// Why an index takes no more patterns.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum IndexError {
    /// The index would hold too many distinct patterns.
    #[error(
        "too many patterns: limit {limit} distinct ones on a shard; close unused subscriptions, \
         or let several use the same pattern"
    )]
    TooManyPatterns {
        /// Most distinct patterns.
        limit: usize,
    },
    /// The index would hold too many patterns that have to be tried on every topic.
    #[error(
        "too unselective: limit {limit} patterns on a shard without {SELECTIVE_RUN_BYTES} literal bytes \
         in a row; put more of the topic into the pattern, or subscribe to `*`"
    )]
    TooUnselective {
        /// Most unselective patterns.
        limit: usize,
    },
}

impl<K> Index<K> {
    /// An empty index with the default bounds.
    pub fn new() -> Self {
        Self::with_bounds(DISTINCT_PATTERNS, UNSELECTIVE_PATTERNS)
    }

    /// An empty index that holds at most so many distinct patterns, and so many unselective ones among them.
    pub fn with_bounds(distinct_limit: usize, unselective_limit: usize) -> Self {
        Self {
            distinct_limit,
            unselective_limit,
            holders: AHashMap::new(),
            exact: AHashMap::new(),
            globs: AHashSet::new(),
            unselective: 0,
        }
    }

    /// How many distinct patterns are held.
    pub fn patterns(&self) -> usize {
        self.holders.len()
    }

    /// Whether no pattern is held.
    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Ord + Hash> Index<K> {
    /// Adds all of the patterns of one subscription, or none of them. Repeats, and patterns that the key
    /// holds already, change nothing.
    ///
    /// # Errors
    ///
    /// A bound would be passed. Patterns that are held already, by whichever key, count for nothing.
    pub fn insert(&mut self, key: K, patterns: &[Pattern]) -> Result<(), IndexError> {
        self.check_room(patterns)?;
        for pattern in patterns {
            let keys = self.holders.entry(pattern.clone()).or_default();
            let unseen = keys.is_empty();
            if let Err(place) = keys.binary_search(&key) {
                keys.insert(place, key);
            }
            if unseen {
                self.link(pattern);
            }
        }
        Ok(())
    }

    /// Takes patterns from a key. Those it does not hold are passed over.
    pub fn remove(&mut self, key: K, patterns: &[Pattern]) {
        for pattern in patterns {
            let Some(keys) = self.holders.get_mut(pattern) else {
                continue;
            };
            if let Ok(place) = keys.binary_search(&key) {
                keys.remove(place);
            }
            if keys.is_empty() {
                self.holders.remove(pattern);
                self.unlink(pattern);
            }
        }
    }

    /// Appends to `keys` each key that holds at least one matching pattern, once, ascending. What `keys` held
    /// before stays as it was.
    pub fn matching(&mut self, topic: &str, keys: &mut Vec<K>) {
        let start = keys.len();
        let exact = self.exact.get(topic).into_iter().flatten();
        let globs = self.globs.iter().filter(|pattern| pattern.matches(topic));
        for pattern in exact.chain(globs) {
            keys.extend(self.holders.get(pattern).into_iter().flatten());
        }
        keys[start..].sort_unstable();
        // `dedup_by` asks about each element but the first, in order: this keeps it off what was there before.
        let mut position = 0;
        keys.dedup_by(|key, before| {
            position += 1;
            position > start && key == before
        });
    }

    fn check_room(&self, patterns: &[Pattern]) -> Result<(), IndexError> {
        let unseen = patterns.iter().filter(|p| !self.holders.contains_key(*p));
        let unseen: AHashSet<&Pattern> = unseen.collect();
        if self.patterns() + unseen.len() > self.distinct_limit {
            let limit = self.distinct_limit;
            return Err(IndexError::TooManyPatterns { limit });
        }
        let unselective = unseen.iter().filter(|p| p.is_unselective()).count();
        if self.unselective + unselective > self.unselective_limit {
            let limit = self.unselective_limit;
            return Err(IndexError::TooUnselective { limit });
        }
        Ok(())
    }

    /// Makes a pattern findable that just got its first holder.
    fn link(&mut self, pattern: &Pattern) {
        self.unselective += usize::from(pattern.is_unselective());
        match topics_named(pattern) {
            Some(topics) => {
                for topic in topics {
                    let named = self.exact.entry(topic.into()).or_default();
                    named.push(pattern.clone());
                }
            }
            None => {
                self.globs.insert(pattern.clone());
            }
        }
    }

    /// Undoes [`link`](Self::link) for a pattern that just lost its last holder.
    fn unlink(&mut self, pattern: &Pattern) {
        self.unselective -= usize::from(pattern.is_unselective());
        let Some(topics) = topics_named(pattern) else {
            self.globs.remove(pattern);
            return;
        };
        for topic in topics {
            if let Some(named) = self.exact.get_mut(topic) {
                named.retain(|other| other != pattern);
                if named.is_empty() {
                    self.exact.remove(topic);
                }
            }
        }
    }
}

/// The only topics a pattern matches, where none of its expansions has a wildcard.
fn topics_named(pattern: &Pattern) -> Option<Vec<&str>> {
    pattern.atoms().iter().map(Atom::literal).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|t| Pattern::parse(t).unwrap()).collect()
    }

    fn matching(index: &mut Index<u32>, topic: &str) -> Vec<u32> {
        let mut keys = Vec::new();
        index.matching(topic, &mut keys);
        keys
    }

    #[test]
    fn a_key_comes_once_however_many_of_its_patterns_match() {
        let mut index = Index::new();
        index.insert(7, &parsed(&["a.b", "a.*", "*", "{*,a.b}", "*"])).unwrap();
        index.insert(3, &parsed(&["a.*", r"a\.b"])).unwrap();
        assert_eq!(index.patterns(), 5);
        assert_eq!(matching(&mut index, "a.b"), [3, 7]);
        assert_eq!(matching(&mut index, "b"), [7]);
    }

    #[test]
    fn appends_and_leaves_what_was_there() {
        let mut index = Index::new();
        index.insert(2, &parsed(&["a", "a*"])).unwrap();
        index.insert(1, &parsed(&["a"])).unwrap();
        let mut keys = vec![9, 9, 1];
        index.matching("a", &mut keys);
        assert_eq!(keys, [9, 9, 1, 1, 2]);
        index.matching("x", &mut keys);
        assert_eq!(keys, [9, 9, 1, 1, 2]);
    }

    #[test]
    fn removal_forgets_a_pattern_with_its_last_holder() {
        let mut index = Index::new();
        let patterns = parsed(&["{a,b}", "x*", "a"]);
        index.insert(1, &patterns).unwrap();
        index.insert(2, &patterns).unwrap();
        index.remove(1, &patterns);
        index.remove(1, &patterns);
        index.remove(3, &patterns);
        assert_eq!(matching(&mut index, "a"), [2]);
        assert_eq!(matching(&mut index, "xy"), [2]);
        index.remove(2, &patterns[..1]);
        assert_eq!(matching(&mut index, "a"), [2]);
        assert!(matching(&mut index, "b").is_empty());
        index.remove(2, &patterns);
        assert!(index.is_empty());
        assert!(index.exact.is_empty() && index.globs.is_empty() && index.unselective == 0);
    }

    #[test]
    fn a_bound_refuses_all_of_the_patterns_or_none() {
        let mut index = Index::with_bounds(3, 1);
        index.insert(1, &parsed(&["aaa*", "bbb"])).unwrap();
        let refused = index.insert(2, &parsed(&["ccc", "ddd"]));
        assert_eq!(refused, Err(IndexError::TooManyPatterns { limit: 3 }));
        let refused = index.insert(2, &parsed(&["a?", "b?"]));
        assert_eq!(refused, Err(IndexError::TooManyPatterns { limit: 3 }));
        assert_eq!(index.patterns(), 2);
        assert!(matching(&mut index, "ccc").is_empty());

        // What is held already takes no room, and a repeat takes it once.
        index.insert(2, &parsed(&["aaa*", "a?", "bbb", "a?"])).unwrap();
        index.insert(3, &parsed(&["a?"])).unwrap();
        index.remove(1, &parsed(&["bbb"]));
        index.remove(2, &parsed(&["bbb"]));
        let refused = index.insert(3, &parsed(&["b?"]));
        assert_eq!(refused, Err(IndexError::TooUnselective { limit: 1 }));
        index.insert(3, &parsed(&["*"])).unwrap();
        index.remove(2, &parsed(&["a?"]));
        index.remove(3, &parsed(&["a?"]));
        index.insert(3, &parsed(&["b?"])).unwrap();
    }

    #[test]
    fn errors_say_what_to_do() {
        assert_eq!(
            IndexError::TooManyPatterns { limit: 5 }.to_string(),
            "too many patterns: limit 5 distinct ones on a shard; \
             close unused subscriptions, or let several use the same pattern"
        );
        assert_eq!(
            IndexError::TooUnselective { limit: 5 }.to_string(),
            "too unselective: limit 5 patterns on a shard without 3 literal bytes in a row; \
             put more of the topic into the pattern, or subscribe to `*`"
        );
    }

    /// One step of a script: a key takes or gives back patterns.
    type Step = (bool, u32, Vec<String>);

    fn scripts() -> impl Strategy<Value = Vec<Step>> {
        let pattern = "[ab.*?]{1,4}|\\{[ab*]{0,2},[ab*]{0,2}\\}";
        let patterns = prop::collection::vec(pattern, 0..4);
        prop::collection::vec((prop::bool::weighted(0.6), 0..6u32, patterns), 1..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn agrees_with_matching_each_pattern(
            script in scripts(),
            topics in prop::collection::vec("[ab.]{0,4}", 5),
        ) {
            let mut index = Index::new();
            let mut held: AHashSet<(u32, String)> = AHashSet::new();
            for (adds, key, texts) in script {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                let patterns = parsed(&texts);
                let pairs = texts.iter().map(|text| (key, text.to_string()));
                if adds {
                    index.insert(key, &patterns).unwrap();
                    held.extend(pairs);
                } else {
                    index.remove(key, &patterns);
                    pairs.for_each(|pair| { held.remove(&pair); });
                }
                let distinct: AHashSet<&String> = held.iter().map(|(_, text)| text).collect();
                prop_assert_eq!(index.patterns(), distinct.len());
                for topic in &topics {
                    let wanted = held.iter().filter(|(_, text)| Pattern::parse(text).unwrap().matches(topic));
                    let mut wanted: Vec<u32> = wanted.map(|(key, _)| *key).collect();
                    wanted.sort_unstable();
                    wanted.dedup();
                    prop_assert_eq!(matching(&mut index, topic), wanted, "topic {:?}", topic);
                }
            }
        }
    }
}
