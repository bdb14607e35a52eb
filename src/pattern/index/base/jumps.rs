//! A way into the middle of packed texts, without walking there byte by byte.

use ahash::RandomState;
use fst::raw::{Builder, Fst, Transition};
use fst::{IntoStreamer, Streamer};

/// Where the texts go on after the first bytes that they share: found by one look at a table instead of a walk that waits
/// for memory at each byte.
///
/// What all of these texts begin with is the stem; by the bytes after it, so many of them as the `depth`, one is
/// told from the other. The texts that are shorter or have another stem are kept once more, by themselves.
pub(super) struct Jumps {
    stem: Box<[u8]>,
    depth: usize,
    slots: Box<[Slot]>,
    hasher: RandomState,
    others: Option<Fst<Vec<u8>>>,
}

/// An entry of the table, which is searched from the place that the hash tells on.
#[derive(Clone, Copy)]
struct Slot {
    /// The bytes after the stem.
    head: [u64; 2],
    /// The address of the node, or [`FREE`].
    node: u32,
    /// What the walk there has added up.
    value: u32,
}

const FREE: u32 = u32::MAX;
const HEAD_BYTES: usize = size_of::<u128>();
/// Of so many texts one may be kept once more.
const OTHERS_AMONG: usize = 8;

/// Where a walk goes on.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// How many bytes lead there.
    pub len: usize,
    /// The address of the node.
    pub node: usize,
    /// What the way there has added up.
    pub value: u64,
}

impl Jumps {
    /// For the texts of which there are so many, numbered in their order; at most so many places to jump to. None where
    /// that would not help.
    pub fn new(texts: &Fst<Vec<u8>>, most: usize) -> Option<Self> {
        let count = texts.len();
        if texts.as_bytes().len() >= FREE as usize {
            return None;
        }
        let (stem, first) = stem(texts, count);
        let mut others: Vec<(Vec<u8>, u64)> = Vec::new();
        let mut slots = vec![first];
        let mut depth = 0;
        while depth < HEAD_BYTES {
            let (next, ended) = step(texts, &slots, depth);
            if next.len() > most || others.len() + ended.len() > count / OTHERS_AMONG {
                break;
            }
            let text = |slot: &Slot| [&stem[..], &slot.head().to_le_bytes()[..depth]].concat();
            others.extend(ended.iter().map(|slot| (text(slot), u64::from(slot.value))));
            slots = next;
            depth += 1;
        }
        if stem.len() + depth == 0 {
            return None;
        }
        others.sort_unstable();
        let others = packed(texts, &stem, others);
        let mut jumps = Self {
            stem: stem.into(),
            depth,
            // Three in four are used.
            slots: vec![Slot::new(0, FREE, 0); slots.len() + slots.len() / 3 + 1].into(),
            hasher: RandomState::new(),
            others,
        };
        slots.into_iter().for_each(|slot| jumps.insert(slot));
        Some(jumps)
    }

    /// The texts that no jump leads to.
    pub fn others(&self) -> Option<&Fst<Vec<u8>>> {
        self.others.as_ref()
    }

    /// Where the texts go on that begin as the bytes do.
    pub fn after(&self, bytes: &[u8]) -> Option<Place> {
        let rest = bytes.strip_prefix(&*self.stem)?;
        let head = head(rest.get(..self.depth)?);
        let mut at = self.place(head);
        loop {
            let slot = self.slots[at];
            if slot.node == FREE {
                return None;
            }
            if slot.head() == head {
                let len = self.stem.len() + self.depth;
                return Some(Place { len, node: slot.node as usize, value: u64::from(slot.value) });
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    fn insert(&mut self, slot: Slot) {
        let mut at = self.place(slot.head());
        while self.slots[at].node != FREE {
            at = (at + 1) % self.slots.len();
        }
        self.slots[at] = slot;
    }

    /// Where in the table a head is searched from.
    fn place(&self, head: u128) -> usize {
        let hash = self.hasher.hash_one(head);
        ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize
    }
}

impl Slot {
    fn new(head: u128, node: u32, value: u32) -> Self {
        Self { head: [head as u64, (head >> 64) as u64], node, value }
    }

    fn head(&self) -> u128 {
        u128::from(self.head[0]) | u128::from(self.head[1]) << 64
    }

    /// One byte further.
    fn next(&self, depth: usize, to: Transition) -> Self {
        let head = self.head() | u128::from(to.inp) << (8 * depth);
        Self::new(head, to.addr as u32, self.value + to.out.value() as u32)
    }
}

fn head(bytes: &[u8]) -> u128 {
    let mut head = [0; HEAD_BYTES];
    head[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(head)
}

/// What nearly all texts begin with, and where that leads.
fn stem(texts: &Fst<Vec<u8>>, count: usize) -> (Vec<u8>, Slot) {
    let mut stem = Vec::new();
    let mut node = texts.root();
    let mut slot = Slot::new(0, node.addr() as u32, 0);
    // Texts below a node are neighbours, and the first of them has what the walk there adds up: ranks are doubled.
    let mut end = 2 * count as u32;
    loop {
        let values: Vec<u32> = node.transitions().map(|to| slot.value + to.out.value() as u32).collect();
        let ends = values.iter().skip(1).copied().chain([end]);
        let largest = values.iter().zip(ends).enumerate().max_by_key(|(_, (value, end))| *end - *value);
        let Some((at, (value, its_end))) = largest else { return (stem, slot) };
        if ((its_end - value) / 2) as usize <= count - count / OTHERS_AMONG {
            return (stem, slot);
        }
        let to = node.transition(at);
        stem.push(to.inp);
        end = its_end;
        slot = Slot::new(0, to.addr as u32, *value);
        node = texts.node(to.addr);
    }
}

/// One byte further from each place, and the texts that end at one.
fn step(texts: &Fst<Vec<u8>>, slots: &[Slot], depth: usize) -> (Vec<Slot>, Vec<Slot>) {
    let node = |slot: &Slot| texts.node(slot.node as usize);
    let mut next = Vec::with_capacity(slots.iter().map(|slot| node(slot).len()).sum());
    let mut ended = Vec::new();
    for slot in slots {
        let node = node(slot);
        if node.is_final() {
            ended.push(Slot { value: slot.value + node.final_output().value() as u32, ..*slot });
        }
        next.extend(node.transitions().map(|to| slot.next(depth, to)));
    }
    (next, ended)
}

/// The texts with another stem and the short ones, which are in order.
fn packed(texts: &Fst<Vec<u8>>, stem: &[u8], short: Vec<(Vec<u8>, u64)>) -> Option<Fst<Vec<u8>>> {
    let mut others: Option<Builder<Vec<u8>>> = None;
    let mut add = |text: &[u8], value: u64| {
        let added = others.get_or_insert_with(Builder::memory).insert(text, value);
        debug_assert!(added.is_ok(), "texts come in order and once, and memory takes all");
    };
    // What lies before and behind all texts with the stem; without one, all have it.
    let (before, behind) = match stem.split_last() {
        None => (None, None),
        Some((last, rest)) => {
            let next = [rest, &[last + 1]].concat();
            (Some(texts.range().lt(stem)), Some(texts.range().ge(next)))
        }
    };
    let mut before = before.map(IntoStreamer::into_stream);
    while let Some((text, value)) = before.as_mut().and_then(Streamer::next) {
        add(text, value.value());
    }
    short.iter().for_each(|(text, value)| add(text, *value));
    let mut behind = behind.map(IntoStreamer::into_stream);
    while let Some((text, value)) = behind.as_mut().and_then(Streamer::next) {
        add(text, value.value());
    }
    others.map(Builder::into_fst)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of the texts that the topic begins with, by jumps.
    fn found(texts: &Fst<Vec<u8>>, jumps: &Jumps, topic: &[u8]) -> Vec<usize> {
        let mut found = Vec::new();
        let mut walk = |texts: &Fst<Vec<u8>>, node: usize, mut len: usize| {
            let mut node = texts.node(node);
            loop {
                if node.is_final() {
                    found.push(len);
                }
                let Some(at) = topic.get(len).and_then(|byte| node.find_input(*byte)) else { return };
                node = texts.node(node.transition(at).addr);
                len += 1;
            }
        };
        if let Some(others) = jumps.others() {
            walk(others, others.root().addr(), 0);
        }
        if let Some(place) = jumps.after(topic) {
            walk(texts, place.node, place.len);
            // What the way adds up is that of the texts there.
            let mut stream = texts.range().ge(&topic[..place.len]).into_stream();
            assert_eq!(stream.next().map(|(_, first)| first.value()), Some(place.value));
        }
        found
    }

    fn check(texts: &[String], most: usize, jumped: &str, topics: &[&str]) {
        let mut sorted: Vec<&String> = texts.iter().collect();
        sorted.sort();
        let mut builder = Builder::memory();
        (0..).zip(&sorted).for_each(|(rank, text)| builder.insert(text, 2 * rank).unwrap());
        let fst = builder.into_fst();
        let jumps = Jumps::new(&fst, most).unwrap();
        assert_eq!(jumps.after(jumped.as_bytes()).map(|place| place.len), Some(jumped.len()));
        for topic in topics.iter().copied().chain(texts.iter().map(String::as_str)) {
            for topic in [topic, &format!("{topic}1.order")] {
                let mut wanted: Vec<usize> =
                    texts.iter().filter(|text| topic.starts_with(*text)).map(String::len).collect();
                wanted.sort();
                assert_eq!(found(&fst, &jumps, topic.as_bytes()), wanted, "{topic}");
            }
        }
    }

    #[test]
    fn every_text_is_found_by_a_jump_or_among_the_others() {
        let mut texts: Vec<String> = (0..1_000).map(|n| format!("company.tenant-{n:04}.order.")).collect();
        check(
            &texts,
            2_000,
            "company.tenant-0012.order.",
            &["", "company.tenant-0", "company.tenant-0012.orde"],
        );
        // Fewer places than there are tenants: some digits are left to the walk.
        check(&texts, 100, "company.tenant-001", &["company.tenant-1", "company.tenant-9999.order.x"]);
        // With another stem, shorter than it, and within what is jumped over.
        let others =
            ["", "a", "company", "company.tenant-", "company.tenant-00", "company.tenant-0012", "zzz"];
        texts.extend(others.map(str::to_owned));
        check(
            &texts,
            2_000,
            "company.tenant-0012.order.",
            &["b", "zz", "company.u", "company.tenant-0012.o"],
        );
    }

    #[test]
    fn there_are_none_where_nothing_would_be_jumped_over() {
        let mut builder = Builder::memory();
        (b'a'..=b'z').for_each(|c| builder.insert([c], u64::from(c - b'a') * 2).unwrap());
        assert!(Jumps::new(&builder.into_fst(), 10).is_none());
    }
}
