//! What a pattern means: the plain matcher that every faster one is checked against.

use super::atom::{Atom, Element, Segment};
use super::syntax::Pattern;

impl Pattern {
    /// Whether the pattern matches the whole topic.
    ///
    /// Time is at most the length of the pattern times the length of the topic, for each expansion of its
    /// braces.
    pub fn matches(&self, topic: &str) -> bool {
        self.atoms().iter().any(|atom| atom.matches(topic))
    }
}

impl Atom {
    /// Whether the atom matches the whole topic.
    pub fn matches(&self, topic: &str) -> bool {
        match self.segments() {
            [] => false,
            [only] => only.strip_prefix(topic) == Some(""),
            [first, between @ .., last] => first
                .strip_prefix(topic)
                // The leftmost place leaves the most text to the segments that follow, so no other need be
                // tried: this is what keeps `*a*a*a*a*b` cheap.
                .and_then(|rest| {
                    let mut between = between.iter();
                    between.try_fold(rest, |rest, segment| segment.strip_through(rest))
                })
                .is_some_and(|rest| last.strip_suffix(rest).is_some()),
        }
    }
}

impl Segment {
    /// What follows the segment, where the text begins with it.
    pub(super) fn strip_prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut elements = self.elements().iter();
        elements.try_fold(text, |rest, element| element.strip_prefix(rest))
    }

    /// What comes before the segment, where the text ends with it.
    pub(super) fn strip_suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut elements = self.elements().iter().rev();
        elements.try_fold(text, |rest, element| element.strip_suffix(rest))
    }

    /// What follows the leftmost place of the segment in the text. The segment is not empty.
    fn strip_through<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut starts = text.char_indices().map(|(start, _)| &text[start..]);
        starts.find_map(|tail| self.strip_prefix(tail))
    }
}

impl Element {
    pub(super) fn strip_prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Element::Literal(literal) => text.strip_prefix(&**literal),
            Element::One(class) => text.strip_prefix(|c| class.contains(c)),
        }
    }

    pub(super) fn strip_suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Element::Literal(literal) => text.strip_suffix(&**literal),
            Element::One(class) => text.strip_suffix(|c| class.contains(c)),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(topic)
    }

    /// Each row: a pattern, topics it matches, topics it does not.
    fn check(rows: &[(&str, &[&str], &[&str])]) {
        for (pattern, matched, others) in rows {
            for topic in *matched {
                assert!(matches(pattern, topic), "{pattern} on {topic:?}");
            }
            for topic in *others {
                assert!(!matches(pattern, topic), "{pattern} on {topic:?}");
            }
        }
    }

    #[test]
    fn stars() {
        check(&[
            ("payment.*", &["payment.", "payment.charge.succeeded"], &["payment", "a.payment.b"]),
            ("a**b", &["ab", "axyb"], &["a", "abx"]),
            ("a*b*c", &["abc", "axbxc", "abbcbc"], &["acb", "ac"]),
            // The prefix and the suffix may not share characters, nor may the segments between.
            ("ab*ba", &["abba", "abxba"], &["aba"]),
            ("*ab*ab*", &["abab", "xabyabz"], &["ab", "aba"]),
            ("aa*aa*aa", &["aaaaaa", "aaaaaaa"], &["aaaaa"]),
            ("*a?*", &["ab", "xaa"], &["a", "ba"]),
            ("*?b", &["ab", "bb"], &["b", "ba"]),
        ]);
    }

    #[test]
    fn one_character() {
        check(&[
            ("?", &["a", "é", "☕", "\n"], &["", "ab", "e\u{301}"]),
            ("a?c", &["abc", "aéc", "a.c"], &["ac", "abbc"]),
            ("??", &["é☕", "e\u{301}"], &["é", "☕"]),
        ]);
    }

    #[test]
    fn classes() {
        check(&[
            ("[a-c]", &["a", "b", "c"], &["d", "-", "", "ab", "A"]),
            ("[!a-c]", &["d", "é", "\n", "!"], &["a", "b", "c", ""]),
            ("[^a]", &["b", "^"], &["a"]),
            ("[a^!]", &["a", "^", "!"], &["b"]),
            ("[-a]", &["-", "a"], &["b"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[!-a]", &["b"], &["-", "a"]),
            ("[a-c-e]", &["a", "b", "c", "-", "e"], &["d"]),
            ("[+--]", &["+", ",", "-"], &["."]),
            (r"[a\-c]", &["a", "-", "c"], &["b"]),
            (r"[\]\\]", &["]", "\\"], &["["]),
            (r"[\!a]", &["!", "a"], &["b"]),
            ("[[{},*?]", &["[", "{", "}", ",", "*", "?"], &["a"]),
            ("[à-ü]", &["é", "ü"], &["e", "a"]),
            ("*[0-9]x*", &["a12x", "1x1x"], &["x1", "xx"]),
            ("[a]]", &["a]"], &["a"]),
        ]);
    }

    #[test]
    fn braces() {
        check(&[
            ("{a,b}", &["a", "b"], &["", "ab", ",", "{a,b}"]),
            ("x{,.y}z", &["xz", "x.yz"], &["x", "xyz"]),
            ("{,a}{,b}", &["", "a", "b", "ab"], &["ba"]),
            ("x{}y", &["xy"], &["x{}y"]),
            ("{a{b,c},{d,}e}f", &["abf", "acf", "def", "ef"], &["af", "df", "abcf"]),
            ("{*.a,b*}c", &["x.ac", "bxc"], &["xac", "ac"]),
            ("{*,a}*", &["", "a", "b"], &[]),
            (r"{a\,b,\}}", &["a,b", "}"], &["a", "b"]),
            ("{[a,}],z}", &["a", ",", "}", "z"], &["[a"]),
            ("a,b", &["a,b"], &["a", "b"]),
            ("a}", &["a}"], &["a"]),
            ("a]", &["a]"], &["a"]),
            ("{a}}", &["a}"], &["a"]),
        ]);
    }

    #[test]
    fn escapes_and_plain_characters() {
        check(&[
            (r"\*", &["*"], &["a", r"\*"]),
            (r"\a\é\\", &[r"aé\"], &["aé"]),
            (r"\{a,b\}", &["{a,b}"], &["a"]),
            (r"\[a]", &["[a]"], &["a"]),
            ("a.b", &["a.b"], &["axb", "A.b", "A.B"]),
        ]);
    }

    #[test]
    fn many_stars_end() {
        // Backtracking would take years.
        let topic = "a".repeat(1024);
        let many = "*a".repeat(15) + "*b";
        let late = "*".to_owned() + &"?".repeat(60) + "b*";
        let braces = "{?,a}".repeat(6) + "*" + &"[ab]".repeat(23) + "b*";
        for pattern in ["*a*a*a*a*b", &many, &late, &braces] {
            assert!(!matches(pattern, &topic), "{pattern}");
        }
    }
}
