//! Which three or four bytes the inner texts begin with.

use fst::Streamer;

use super::literals::Literals;
use crate::pattern::index::grams::{self, Gram};

/// A set of grams that may hold others too.
pub(super) struct Grams {
    /// A bit for each gram.
    words: Box<[u64]>,
    bits: u32,
    /// Whether some texts have only three bytes.
    short: bool,
}

/// Bits for each text; most share their grams with others.
const BITS_PER_TEXT: usize = 8;

impl Grams {
    /// Those of all texts.
    pub fn of(texts: &Literals) -> Self {
        let size = (texts.len() * BITS_PER_TEXT).next_power_of_two().max(64);
        let mut grams = Self { words: vec![0; size / 64].into(), bits: size.trailing_zeros(), short: false };
        let mut stream = texts.stream();
        while let Some((text, _)) = stream.as_mut().and_then(Streamer::next) {
            let Some((gram, short)) = Gram::of(text) else { continue };
            grams.short |= short;
            let bit = gram.spread(grams.bits);
            grams.words[bit / 64] |= 1 << (bit % 64);
        }
        grams
    }

    /// Where in the topic a text may begin.
    pub fn places(&self, topic: &[u8]) -> impl Iterator<Item = usize> {
        let holds = |gram: Gram| {
            let bit = gram.spread(self.bits);
            self.words[bit / 64] >> (bit % 64) & 1 != 0
        };
        grams::places(topic, self.short, holds)
    }
}
