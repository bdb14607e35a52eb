//! Literal texts, packed, and what hangs on them.

use fst::Streamer;
use fst::raw::{Builder, Fst, Stream};

use super::jumps::{Jumps, Place};

use crate::pattern::index::few::Few;
use crate::pattern::index::ids::{IdSet, Posting};

/// Postings by a literal text. Texts are numbered in their order: that is their rank.
pub(super) struct Literals {
    /// Text to twice its rank, plus one where a pair has it; none where there are no texts.
    ranks: Option<Fst<Vec<u8>>>,
    /// Into the middle of `ranks`, where there are many texts.
    jumps: Option<Jumps>,
    /// By rank.
    heads: Box<[Head]>,
    /// Where each list begins, and where the last one ends.
    starts: Box<[u32]>,
    lists: Box<[Posting]>,
}

/// What is added at a text: postings, and whether a pair has it from now on.
pub(super) type Added<'o> = (&'o [u8], &'o Few<Posting>, bool);

/// What hangs on a text: its only posting, or the number of a list, be it empty.
#[derive(Clone, Copy)]
struct Head(u32);

impl Head {
    fn only(posting: Posting) -> Self {
        Self(posting.bits() << 1)
    }

    fn list(number: usize) -> Self {
        Self((number as u32) << 1 | 1)
    }

    fn unpack(self) -> Result<Posting, usize> {
        if self.0 & 1 == 0 { Ok(Posting::from_bits(self.0 >> 1)) } else { Err((self.0 >> 1) as usize) }
    }
}

impl Default for Literals {
    fn default() -> Self {
        Packer::default().packed(0)
    }
}

impl Literals {
    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    pub fn postings(&self) -> usize {
        self.heads.len() - (self.starts.len() - 1) + self.lists.len()
    }

    /// All texts in their order.
    pub fn stream(&self) -> Option<Stream<'_>> {
        self.ranks.as_ref().map(Fst::stream)
    }

    /// What hangs on the text of a rank.
    pub fn at(&self, rank: u32) -> impl Iterator<Item = Posting> {
        let (only, list) = match self.heads[rank as usize].unpack() {
            Ok(only) => (Some(only), &[][..]),
            Err(list) => (None, &self.lists[self.starts[list] as usize..self.starts[list + 1] as usize]),
        };
        only.into_iter().chain(list.iter().copied())
    }

    pub fn rank(&self, text: &[u8]) -> Option<u32> {
        let value = self.ranks.as_ref()?.get(text)?;
        Some((value.value() / 2) as u32)
    }

    /// Where a walk along the bytes begins; none where only short texts can be found, or none. Walks that begin before
    /// one of them goes on wait for memory together.
    pub fn begin(&self, bytes: &[u8]) -> Option<Place> {
        match &self.jumps {
            Some(jumps) => jumps.after(bytes),
            None => Some(Place { len: 0, node: self.ranks.as_ref()?.root().addr(), value: 0 }),
        }
    }

    /// Visits each text that the bytes begin with, the shortest first: its rank, its length, and whether a pair has
    /// it. `from` is where the walk begins.
    pub fn walk(&self, from: Option<Place>, bytes: &[u8], mut visit: impl FnMut(u32, usize, bool)) {
        if let Some(others) = self.jumps.as_ref().and_then(Jumps::others) {
            walk(others, Place { len: 0, node: others.root().addr(), value: 0 }, bytes, &mut visit);
        }
        if let (Some(from), Some(ranks)) = (from, &self.ranks) {
            walk(ranks, from, bytes, visit);
        }
    }

    /// With what was added, texts in order, and without what is gone, and the new rank of each old one that is left.
    /// `in_pair` are the ranks that old pairs still need; there may be so many jumps.
    pub fn merged(
        &self,
        added: &[Added<'_>],
        in_pair: &IdSet,
        gone: &IdSet,
        most_jumps: usize,
    ) -> (Literals, Vec<u32>) {
        let mut new_ranks = vec![NO_RANK; self.len()];
        let mut packer = Packer::default();
        let mut added = added.iter().copied().peekable();
        let mut old = self.stream();
        while let Some((text, value)) = old.as_mut().and_then(Streamer::next) {
            while let Some(new) = added.next_if(|new| new.0 < text) {
                packer.add(std::iter::empty(), new);
            }
            let rank = (value.value() / 2) as u32;
            let new = added.next_if(|new| new.0 == text);
            let (_, postings, in_new_pair) = new.unwrap_or((text, &Few::None, false));
            let left = self.at(rank).filter(|posting| !gone.contains(posting.id()));
            new_ranks[rank as usize] =
                packer.add(left, (text, postings, in_new_pair || in_pair.contains(rank)));
        }
        for new in added {
            packer.add(std::iter::empty(), new);
        }
        (packer.packed(most_jumps), new_ranks)
    }
}

fn walk(ranks: &Fst<Vec<u8>>, from: Place, bytes: &[u8], mut visit: impl FnMut(u32, usize, bool)) {
    let Place { mut len, node, mut value } = from;
    let mut node = ranks.node(node);
    let mut rest = bytes[len..].iter();
    loop {
        if node.is_final() {
            let value = value + node.final_output().value();
            visit((value / 2) as u32, len, value % 2 != 0);
        }
        let Some(at) = rest.next().and_then(|byte| node.find_input(*byte)) else { return };
        let transition = node.transition(at);
        value += transition.out.value();
        node = ranks.node(transition.addr);
        len += 1;
    }
}

/// Takes texts in their order and gives each its rank.
#[derive(Default)]
struct Packer {
    ranks: Option<Builder<Vec<u8>>>,
    heads: Vec<Head>,
    starts: Vec<u32>,
    lists: Vec<Posting>,
    /// Scratch.
    list: Vec<Posting>,
}

/// That of a text which is left out.
const NO_RANK: u32 = u32::MAX;

impl Packer {
    /// Adds a text with what is left of its postings and what was added, unless there is neither.
    fn add(&mut self, left: impl Iterator<Item = Posting>, (text, added, in_pair): Added<'_>) -> u32 {
        self.list.clear();
        self.list.extend(left);
        self.list.extend(added.iter());
        let head = match self.list[..] {
            [] if !in_pair => return NO_RANK,
            [only] => Head::only(only),
            _ => {
                self.starts.push(self.lists.len() as u32);
                self.lists.extend_from_slice(&self.list);
                Head::list(self.starts.len() - 1)
            }
        };
        let rank = self.heads.len() as u32;
        self.heads.push(head);
        let inserted = self
            .ranks
            .get_or_insert_with(Builder::memory)
            .insert(text, u64::from(rank) * 2 + u64::from(in_pair));
        debug_assert!(inserted.is_ok(), "texts come in order and once, and memory takes all");
        rank
    }

    fn packed(mut self, most_jumps: usize) -> Literals {
        self.starts.push(self.lists.len() as u32);
        let (heads, starts, lists) = (self.heads.into(), self.starts.into(), self.lists.into());
        let ranks = self.ranks.map(Builder::into_fst);
        let jumps = ranks.as_ref().and_then(|ranks| Jumps::new(ranks, most_jumps));
        Literals { ranks, jumps, heads, starts, lists }
    }
}
