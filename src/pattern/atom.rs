//! What a pattern is made of once it is parsed.

use std::sync::Arc;

use crate::limits::SELECTIVE_RUN_BYTES;

/// A pattern without braces: segments with one `*` between each two of them.
///
/// There is always at least one segment. The first is anchored at the start of the topic and the last at its
/// end (an only one at both); either may be empty. Those between may lie anywhere, in their order, and are
/// never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    segments: Box<[Segment]>,
}

/// A stretch of a pattern without `*`: matches a fixed number of characters.
///
/// Neighbouring elements are never both literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    elements: Box<[Element]>,
}

/// One part of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// This text, never empty.
    Literal(Box<str>),
    /// One character of the class.
    One(Class),
}

/// A set of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    negated: bool,
    /// One list for all expansions of a pattern; none of its own for `?`.
    ranges: Arc<[(char, char)]>,
}

impl Atom {
    pub(super) fn new(segments: Box<[Segment]>) -> Self {
        debug_assert!(!segments.is_empty());
        Self { segments }
    }

    /// The stretches between the stars, one more than there are stars.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The one topic this atom matches, where it has no wildcard. It may be the empty text (`{}`).
    pub fn literal(&self) -> Option<&str> {
        match &*self.segments {
            [only] => only.literal(),
            _ => None,
        }
    }

    /// The literal text that begins every topic this atom matches, up to the first wildcard.
    pub fn prefix(&self) -> &str {
        literal_of(self.segments.first().and_then(|s| s.elements.first()))
    }

    /// The literal text that ends every topic this atom matches, from the last wildcard on.
    ///
    /// Without wildcards it is the same text as the prefix.
    pub fn suffix(&self) -> &str {
        literal_of(self.segments.last().and_then(|s| s.elements.last()))
    }

    /// Whether this is `*`, which matches every topic.
    pub fn is_everything(&self) -> bool {
        matches!(&*self.segments, [first, last] if first.is_empty() && last.is_empty())
    }

    /// Whether nothing in this atom is worth looking up: a wildcard, but no literal run of
    /// [`SELECTIVE_RUN_BYTES`]. `*` is not unselective, since matching it takes no work.
    pub fn is_unselective(&self) -> bool {
        self.literal().is_none()
            && !self.is_everything()
            && self.literal_runs().all(|run| run.len() < SELECTIVE_RUN_BYTES)
    }

    /// The literal runs in order, never empty.
    pub fn literal_runs(&self) -> impl Iterator<Item = &str> {
        let elements = self.segments.iter().flat_map(|s| &s.elements);
        elements.filter_map(Element::literal)
    }
}

impl Segment {
    pub(super) fn new(elements: Box<[Element]>) -> Self {
        Self { elements }
    }

    /// The elements in order.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Whether the segment matches the empty text only.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The text of the segment, where it holds no `?` and no class.
    pub fn literal(&self) -> Option<&str> {
        match &*self.elements {
            [] => Some(""),
            [only] => only.literal(),
            _ => None,
        }
    }
}

impl Element {
    /// The text, of a literal.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Element::Literal(text) => Some(text),
            Element::One(_) => None,
        }
    }
}

impl Class {
    pub(super) fn new(negated: bool, ranges: Vec<(char, char)>) -> Self {
        Self { negated, ranges: ranges.into() }
    }

    /// What `?` stands for: every character.
    pub(super) fn any() -> Self {
        Self { negated: true, ranges: Arc::default() }
    }

    /// Whether it is what `?` stands for.
    pub(super) fn is_any(&self) -> bool {
        self.negated && self.ranges.is_empty()
    }

    /// The ranges that are listed, first and last character of each.
    pub(super) fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Whether it takes the characters that are not listed.
    pub(super) fn is_negated(&self) -> bool {
        self.negated
    }

    /// Whether the class accepts this character.
    pub fn contains(&self, c: char) -> bool {
        let listed = self.ranges.iter().any(|&(low, high)| low <= c && c <= high);
        listed != self.negated
    }
}

fn literal_of(element: Option<&Element>) -> &str {
    element.and_then(Element::literal).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;

    /// Literal, prefix and suffix of each atom of a pattern.
    fn shapes(text: &str) -> Vec<(Option<String>, String, String)> {
        let pattern = Pattern::parse(text).unwrap();
        let shape = |atom: &super::Atom| {
            let literal = atom.literal().map(str::to_owned);
            (literal, atom.prefix().to_owned(), atom.suffix().to_owned())
        };
        pattern.atoms().iter().map(shape).collect()
    }

    #[test]
    fn prefix_and_suffix_end_at_the_first_and_last_wildcard() {
        let shape = |text: &str, literal: Option<&str>, prefix: &str, suffix: &str| {
            let expected = (literal.map(str::to_owned), prefix.into(), suffix.into());
            assert_eq!(shapes(text), [expected], "{text}");
        };
        shape("abc", Some("abc"), "abc", "abc");
        shape(r"a\*c", Some("a*c"), "a*c", "a*c");
        shape("{}", Some(""), "", "");
        shape("ab*cd*ef", None, "ab", "ef");
        shape("ab?cd", None, "ab", "cd");
        shape("*", None, "", "");
        shape("?b*c[d]", None, "", "");
        shape("é*ü", None, "é", "ü");
    }

    #[test]
    fn unselective_is_no_long_literal_run_in_some_expansion() {
        let unselective =
            |text: &str| Pattern::parse(text).unwrap().atoms().iter().any(|atom| atom.is_unselective());
        for text in ["?", "a*", "ab*cd", "a?b", "[abc]*", "{abc*,a*}", "é*", "*?"] {
            assert!(unselective(text), "{text}");
        }
        for text in ["*", "**", "abc*", "*abc", "*abc*", "éa*", "{abc*,*abc}", "x?abc", "a", "{a,b}", "{*,a}"]
        {
            assert!(!unselective(text), "{text}");
        }
    }
}
