//! A way into the middle of packed texts, without walking there byte by byte.

use ahash::RandomState;
use fst::raw::{Builder, Fst, Node};
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
/// Fewer texts are walked through in the processor's cache.
const FEW_TEXTS: usize = 4096;
/// Of so many texts one may be kept once more.
const OTHERS_AMONG: usize = 8;

/// Where a walk has come to.
#[derive(Clone, Copy)]
struct Place {
    head: u128,
    node: usize,
    value: u64,
}

impl Jumps {
    /// For the texts of which there are so many, numbered in their order; at most so many places to jump to. None where
    /// that would not help.
    pub fn new(texts: &Fst<Vec<u8>>, most: usize) -> Option<Self> {
        let count = texts.len();
        if count < FEW_TEXTS || texts.as_bytes().len() >= FREE as usize {
            return None;
        }
        let (stem, place) = stem(texts, count);
        let mut others: Vec<(Vec<u8>, u64)> = Vec::new();
        let mut places = vec![place];
        let mut depth = 0;
        while depth < HEAD_BYTES {
            let (next, ended) = step(texts, &places, depth);
            if next.len() > most || others.len() + ended.len() > count / OTHERS_AMONG {
                break;
            }
            let text = |place: &Place| [&stem[..], &place.head.to_le_bytes()[..depth]].concat();
            others.extend(ended.iter().map(|place| (text(place), place.value)));
            places = next;
            depth += 1;
        }
        if stem.len() + depth < 4 {
            return None;
        }
        others.sort_unstable();
        let others = packed(texts, &stem, others);
        let mut jumps = Self {
            stem: stem.into(),
            depth,
            // Three in four are used.
            slots: vec![Slot { head: [0; 2], node: FREE, value: 0 }; places.len() + places.len() / 3 + 1].into(),
            hasher: RandomState::new(),
            others,
        };
        places.iter().for_each(|place| jumps.insert(place));
        Some(jumps)
    }

    /// The texts that no jump leads to.
    pub fn others(&self) -> Option<&Fst<Vec<u8>>> {
        self.others.as_ref()
    }

    /// Where the texts go on that begin as the bytes do: how many bytes in, at which node, and with which value.
    pub fn after<'t>(&self, texts: &'t Fst<Vec<u8>>, bytes: &[u8]) -> Option<(usize, Node<'t>, u64)> {
        let rest = bytes.strip_prefix(&*self.stem)?;
        let head = head(rest.get(..self.depth)?);
        let mut at = self.place(head);
        loop {
            let slot = self.slots[at];
            if slot.node == FREE {
                return None;
            }
            if slot.head == halves(head) {
                let node = texts.node(slot.node as usize);
                return Some((self.stem.len() + self.depth, node, u64::from(slot.value)));
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    fn insert(&mut self, place: &Place) {
        let mut at = self.place(place.head);
        while self.slots[at].node != FREE {
            at = (at + 1) % self.slots.len();
        }
        self.slots[at] =
            Slot { head: halves(place.head), node: place.node as u32, value: place.value as u32 };
    }

    /// Where in the table a head is searched from.
    fn place(&self, head: u128) -> usize {
        let hash = self.hasher.hash_one(head);
        (u128::from(hash) * self.slots.len() as u128 >> 64) as usize
    }
}

fn head(bytes: &[u8]) -> u128 {
    let mut head = [0; HEAD_BYTES];
    head[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(head)
}

fn halves(head: u128) -> [u64; 2] {
    [head as u64, (head >> 64) as u64]
}

/// What nearly all texts begin with, and where that leads.
fn stem(texts: &Fst<Vec<u8>>, count: usize) -> (Vec<u8>, Place) {
    let mut stem = Vec::new();
    let mut node = texts.root();
    let mut place = Place { head: 0, node: node.addr(), value: 0 };
    // Texts below a node are neighbours, and the least of them has what the walk there adds up: ranks are doubled.
    let mut end = 2 * count as u64;
    loop {
        let values: Vec<u64> = node.transitions().map(|next| place.value + next.out.value()).collect();
        let ends = values.iter().skip(1).copied().chain([end]);
        let largest = values.iter().zip(ends).enumerate().max_by_key(|(_, (value, end))| *end - *value);
        let Some((at, (value, its_end))) = largest else { return (stem, place) };
        if (its_end - value) / 2 < (count - count / OTHERS_AMONG) as u64 {
            return (stem, place);
        }
        let next = node.transition(at);
        stem.push(next.inp);
        (place.value, end) = (*value, its_end);
        node = texts.node(next.addr);
        place.node = next.addr;
    }
}

/// One byte further from each place, and where texts end at the places.
fn step(texts: &Fst<Vec<u8>>, places: &[Place], depth: usize) -> (Vec<Place>, Vec<Place>) {
    let (mut next, mut ended) = (Vec::new(), Vec::new());
    for place in places {
        let node = texts.node(place.node);
        if node.is_final() {
            ended.push(Place { value: place.value + node.final_output().value(), ..*place });
        }
        next.extend(node.transitions().map(|to| Place {
            head: place.head | u128::from(to.inp) << (8 * depth),
            node: to.addr,
            value: place.value + to.out.value(),
        }));
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
