//! One script: what happens to an index, and to a twin that tries every pattern.

use std::collections::BTreeSet;

use tinybroker::pattern::{Index, MergeJob, Merged, Pattern};

use crate::chance::Chance;
use crate::texts::Texts;

/// Answers that a script gave.
#[derive(Default)]
pub struct Run {
    pub compared: u64,
    /// Those that named somebody.
    pub matched: u64,
}

const PATTERNS: usize = 24;
const TOPICS: usize = 24;
const STEPS: usize = 600;

struct World {
    chance: Chance,
    index: Index<u32>,
    texts: Texts,
    /// How many there are; with few of them patterns lose their last holder often.
    keys: usize,
    /// By pattern and topic.
    matches: Vec<[bool; TOPICS]>,
    /// The keys of each pattern.
    holders: [BTreeSet<u32>; PATTERNS],
    merge: Option<Merge>,
    run: Run,
}

/// A merge under way, whose work is done sooner or later.
enum Merge {
    Begun(MergeJob),
    Done(Merged),
}

pub fn run(mut chance: Chance) -> Run {
    let texts = Texts::new(&mut chance, PATTERNS, TOPICS);
    let keys = *chance.pick(&[1, 1, 2, 6]);
    let mut world = World {
        chance,
        keys,
        index: Index::with_bounds(1_000_000, 1_000_000),
        matches: texts.patterns.iter().map(|pattern| row(pattern, &texts.topics)).collect(),
        texts,
        holders: Default::default(),
        merge: None,
        run: Run::default(),
    };
    // Some scripts change much, others ask much.
    let restlessness = 1 + world.chance.below(15);
    for _ in 0..STEPS {
        if world.chance.is_over() {
            break;
        }
        if world.chance.below(60) < restlessness { world.change() } else { world.compare() }
    }
    world.run
}

fn row(pattern: &Pattern, topics: &[String]) -> [bool; TOPICS] {
    let atoms = pattern.atoms();
    std::array::from_fn(|topic| atoms.iter().any(|atom| atom.matches(&topics[topic])))
}

impl World {
    fn change(&mut self) {
        match self.chance.below(40) {
            0..18 => self.insert(),
            18..35 => self.remove(),
            35 => self.remove_all_of_one(),
            36 | 37 => self.begin_or_work(),
            38 => self.finish(),
            _ => self.churn(),
        }
        let held = self.holders.iter().filter(|keys| !keys.is_empty()).count();
        assert_eq!(self.index.patterns(), held);
    }

    fn some(&mut self) -> (u32, Vec<usize>) {
        let key = self.chance.below(self.keys) as u32;
        let patterns = (0..1 + self.chance.below(3)).map(|_| self.chance.below(PATTERNS)).collect();
        (key, patterns)
    }

    fn of(&self, numbers: &[usize]) -> Vec<Pattern> {
        numbers.iter().map(|number| self.texts.patterns[*number].clone()).collect()
    }

    fn insert(&mut self) {
        let (key, numbers) = self.some();
        self.index.insert(key, &self.of(&numbers)).expect("there is room");
        numbers.iter().for_each(|number| {
            self.holders[*number].insert(key);
        });
    }

    fn remove(&mut self) {
        let (key, numbers) = self.some();
        self.index.remove(key, &self.of(&numbers));
        numbers.iter().for_each(|number| {
            self.holders[*number].remove(&key);
        });
    }

    fn remove_all_of_one(&mut self) {
        let key = self.chance.below(self.keys) as u32;
        self.index.remove(key, &self.texts.patterns);
        self.holders.iter_mut().for_each(|keys| {
            keys.remove(&key);
        });
    }

    fn begin_or_work(&mut self) {
        self.merge = match self.merge.take() {
            None => self.index.begin_merge().map(Merge::Begun),
            Some(merge) => {
                assert!(self.index.begin_merge().is_none(), "one merge at a time");
                Some(Merge::Done(merge.done()))
            }
        };
    }

    fn finish(&mut self) {
        if let Some(merge) = self.merge.take() {
            drop(self.index.finish_merge(merge.done()));
        }
    }

    /// So much coming and going that answers get out of date and ids are used again, whether or not it is looked at.
    fn churn(&mut self) {
        let looks = self.chance.one_in(2);
        for _ in 0..self.chance.below(500) {
            if self.chance.one_in(2) {
                self.insert()
            } else {
                self.remove()
            }
            if looks && self.chance.one_in(2) {
                self.compare();
            }
        }
        (0..TOPICS).for_each(|topic| self.compare_on(topic));
    }

    fn compare(&mut self) {
        let topic = self.chance.below(TOPICS);
        self.compare_on(topic);
    }

    fn compare_on(&mut self, topic: usize) {
        let matching = (0..PATTERNS).filter(|pattern| self.matches[*pattern][topic]);
        let wanted: BTreeSet<u32> = matching.flat_map(|pattern| &self.holders[pattern]).copied().collect();
        let mut keys = vec![u32::MAX; 2];
        self.index.matching(&self.texts.topics[topic], &mut keys);
        let is_right = keys[..2] == [u32::MAX; 2] && keys[2..].iter().eq(&wanted);
        assert!(is_right, "{:?}: {keys:?}, wanted {wanted:?}", self.texts.topics[topic]);
        self.run.compared += 1;
        self.run.matched += u64::from(!wanted.is_empty());
    }
}

impl Merge {
    fn done(self) -> Merged {
        match self {
            Merge::Begun(job) => job.run(),
            Merge::Done(merged) => merged,
        }
    }
}
