//! Where the expansions of a pattern shall be found.
//!
//! An expansion that has to be tried hangs on that of its anchors on which fewest such hang. A few may hang on each: so
//! many that nobody who does not mean to comes to more. Those that come to a more crowded anchor are counted all together,
//! since one topic can hold hundreds of anchors that are made to nest or to overlap; and so are all that hang on a pair, of
//! which it can hold tens of thousands.

use super::Index;
use super::anchor::{Anchor, Choices, choices};
use super::bounds::IndexError;
use super::ids::Posting;
use crate::limits::{ALIKE_PATTERNS, SIMILAR_PATTERNS};
use crate::pattern::Atom;

/// By what an expansion is found.
pub(super) enum Place<'a> {
    /// The one topic it matches.
    Topic(&'a str),
    /// A text it hangs on; `verify` as in [`Choices`].
    Anchor { anchor: Anchor<'a>, verify: bool, crowded: bool },
}

impl<K: Copy + Ord> Index<K> {
    /// By what each expansion of a pattern shall be found.
    pub(super) fn places<'a>(&self, atoms: &'a [Atom]) -> Result<Vec<Place<'a>>, IndexError> {
        let mut places = Vec::with_capacity(atoms.len());
        for atom in atoms {
            let place = self.place(atom, &places)?;
            places.push(place);
        }
        let crowded = places.iter().filter(|place| matches!(place, Place::Anchor { crowded: true, .. }));
        self.bounds.check_crowd(crowded.count())?;
        Ok(places)
    }

    fn place<'a>(&self, atom: &'a Atom, before: &[Place<'a>]) -> Result<Place<'a>, IndexError> {
        if let Some(topic) = atom.literal() {
            return Ok(Place::Topic(topic));
        }
        let Choices { anchors, verify } = choices(atom);
        let mut anchors = anchors.into_iter();
        if !verify {
            let anchor = anchors.next().unwrap_or(Anchor::Prefix(&[]));
            return Ok(Place::Anchor { anchor, verify, crowded: false });
        }
        let crowd = |anchor: Anchor<'_>, is_such: &dyn Fn(Posting) -> bool| {
            let of_pair = if matches!(anchor, Anchor::Pair(..)) { ALIKE_PATTERNS } else { 0 };
            of_pair + self.count(anchor, is_such) + siblings(before, anchor)
        };
        let crowds = anchors.map(|anchor| (crowd(anchor, &Posting::verify), anchor));
        let (mut least, anchor) = crowds.min_by_key(|(crowd, _)| *crowd).unwrap_or((0, Anchor::Prefix(&[])));
        if least >= ALIKE_PATTERNS {
            // Of those that the base names some may be gone.
            least = crowd(anchor, &|posting| posting.verify() && self.registry.is_held(posting.id()));
        }
        if least >= SIMILAR_PATTERNS {
            return Err(IndexError::TooSimilar { limit: SIMILAR_PATTERNS });
        }
        Ok(Place::Anchor { anchor, verify, crowded: least >= ALIKE_PATTERNS })
    }

    /// How many such postings hang on an anchor.
    fn count(&self, anchor: Anchor<'_>, is_such: impl Fn(Posting) -> bool) -> usize {
        let overlays = [Some(&self.overlay), self.frozen.as_deref()];
        let new = overlays.into_iter().flatten().flat_map(|overlay| overlay.at(anchor));
        self.base.at(anchor).chain(new).filter(|posting| is_such(*posting)).count()
    }
}

/// How many expansions of the same pattern will have to be tried there.
fn siblings(before: &[Place<'_>], anchor: Anchor<'_>) -> usize {
    let is_there = |place: &&Place<'_>| matches!(place, Place::Anchor { anchor: other, verify: true, .. } if *other == anchor);
    before.iter().filter(is_there).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CROWDED_PATTERNS;
    use crate::pattern::index::tests::{matching, merge, parsed};

    #[test]
    fn patterns_that_only_wildcards_tell_apart_are_bounded() {
        let mut index = Index::new();
        let letter = |n: usize| char::from(b'a' + (n / 200) as u8);
        let text = |n: usize| format!("abc*{}[{}]", "?".repeat(n % 200 + 1), letter(n));
        for n in 0..SIMILAR_PATTERNS {
            index.insert(n as u32, &parsed(&[&text(n)])).unwrap();
            if n == SIMILAR_PATTERNS / 2 {
                let merged = index.begin_merge().unwrap().run();
                drop(index.finish_merge(merged));
            }
        }
        let one_more = text(SIMILAR_PATTERNS);
        let refused = index.insert(0, &parsed(&["xyz", &one_more]));
        assert_eq!(refused, Err(IndexError::TooSimilar { limit: SIMILAR_PATTERNS }));
        assert!(matching(&mut index, "xyz").is_empty());
        // Whatever else finds it, or room that somebody makes, also in the base.
        index.insert(0, &parsed(&["abc*?other", "abc*"])).unwrap();
        index.remove(7, &parsed(&[&text(7)]));
        index.insert(0, &parsed(&[&one_more])).unwrap();
    }

    #[test]
    fn patterns_on_crowded_texts_are_bounded_all_together() {
        let mut index = Index::new();
        let letter = |n: usize| char::from(b'c' + n as u8);
        let text = |run: usize, n: usize| {
            parsed(&[&format!("{}[{}{}]*", "ab".repeat(run + 2), letter(n / 20), letter(n % 20))])
        };
        // A few on each text are free.
        let free = (0..100).flat_map(|run| (0..ALIKE_PATTERNS).map(move |n| (run, n)));
        free.for_each(|(run, n)| index.insert(0, &text(run, n)).unwrap());
        let mut crowd = (0..100).flat_map(|run| (ALIKE_PATTERNS..100).map(move |n| (run, n)));
        for (at, (run, n)) in crowd.by_ref().take(CROWDED_PATTERNS).enumerate() {
            index.insert(0, &text(run, n)).unwrap();
            if at == CROWDED_PATTERNS / 2 {
                merge(&mut index);
            }
        }
        let (run, n) = crowd.next().unwrap();
        let refused = Err(IndexError::TooCrowded { limit: CROWDED_PATTERNS });
        assert_eq!(index.insert(0, &text(run, n)), refused);
        // A pattern that expands to more than are free on a text counts with the others; another text is free.
        let several = parsed(&["xyz{?,[a],[b],[c],[d]}*"]);
        assert_eq!(index.insert(0, &several), refused);
        index.insert(0, &parsed(&["xyz{?,[a],[b],[c]}*"])).unwrap();
        // Who goes makes room, from base and overlay.
        for other in [0, run - 1] {
            assert_eq!(index.insert(0, &text(run, n)), refused);
            index.remove(0, &text(other, 50));
            index.insert(0, &text(run, n)).unwrap();
            index.remove(0, &text(run, n));
            index.insert(0, &text(other, 50)).unwrap();
        }
    }
}
