//! From text to atoms, in one pass: braces are expanded while they are read.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;
use std::sync::Arc;

use super::atom::{Atom, Class, Element, Segment};
use super::error::{PatternError, PatternErrorKind};
use crate::limits::{
    BRACE_ALTERNATIVES, BRACE_DEPTH, BRACE_EXPANSIONS, CLASS_RANGES, EXPANDED_CHARACTERS, PATTERN_BYTES,
    PATTERN_STARS, SEGMENT_ELEMENTS,
};

/// A topic pattern whose text was found valid. Clones share one copy of it.
///
/// Two patterns are equal when their texts are: `a` and `{a}` match the same topics but are not equal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// The first broken rule, read from the left; rules about whole expansions (stars, segments) come last.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternErrorKind::Empty.at(0));
        }
        if text.len() > PATTERN_BYTES {
            let bytes = text.len();
            let offset = text.floor_char_boundary(PATTERN_BYTES);
            return Err(PatternErrorKind::TooLong { bytes }.at(offset));
        }
        atoms(text)?;
        Ok(Self(text.into()))
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What the braces expand to, without repeats; a topic matches the pattern when it matches one of these.
    ///
    /// Only the text is kept, which is a small part of what it expands to: this reads it anew.
    pub fn atoms(&self) -> Vec<Atom> {
        let atoms = atoms(self.text());
        debug_assert!(atoms.is_ok(), "the text was valid before");
        atoms.unwrap_or_default()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text()).finish()
    }
}

/// One way through the braces of a sequence.
type Expansion = Vec<Piece>;

#[derive(Clone)]
struct Piece {
    /// Byte offset in the pattern.
    offset: usize,
    token: Token,
}

#[derive(Clone)]
enum Token {
    Star,
    Char(char),
    One(Class),
}

impl Piece {
    fn is_star(&self) -> bool {
        matches!(self.token, Token::Star)
    }

    fn is_char(&self) -> bool {
        matches!(self.token, Token::Char(_))
    }
}

struct Parser<'t> {
    rest: Peekable<CharIndices<'t>>,
}

impl Parser<'_> {
    /// Reads to the end of the text, or within braces (`depth` of them) up to the `,` or `}` that ends the
    /// alternative. At least one expansion, possibly empty.
    fn sequence(&mut self, depth: usize) -> Result<Vec<Expansion>, PatternError> {
        let mut expansions = vec![Expansion::new()];
        while let Some((offset, c)) = self.rest.next_if(|&(_, c)| depth == 0 || !matches!(c, ',' | '}')) {
            let token = match c {
                '{' => {
                    expansions = product(expansions, self.group(offset, depth + 1)?, offset)?;
                    continue;
                }
                '*' => Token::Star,
                '?' => Token::One(Class::any()),
                '[' => Token::One(self.class(offset)?),
                '\\' => Token::Char(self.escaped(offset)?),
                _ => Token::Char(c),
            };
            check_size(&expansions, expansions.len(), offset)?;
            for expansion in &mut expansions {
                let token = token.clone();
                expansion.push(Piece { offset, token });
            }
        }
        Ok(expansions)
    }

    /// Reads the alternatives and the `}` of a group whose `{` stands at `opener`.
    fn group(&mut self, opener: usize, depth: usize) -> Result<Vec<Expansion>, PatternError> {
        if depth > BRACE_DEPTH {
            return Err(PatternErrorKind::BracesTooDeep.at(opener));
        }
        let mut expansions = self.sequence(depth)?;
        let mut alternatives = 1;
        loop {
            match self.rest.next() {
                None => return Err(PatternErrorKind::UnclosedBrace.at(opener)),
                Some((_, '}')) => return Ok(expansions),
                Some((comma, _)) if alternatives == BRACE_ALTERNATIVES => {
                    return Err(PatternErrorKind::TooManyAlternatives.at(comma));
                }
                Some(_) => expansions.extend(self.sequence(depth)?),
            }
            alternatives += 1;
            if expansions.len() > BRACE_EXPANSIONS {
                return Err(PatternErrorKind::TooManyExpansions.at(opener));
            }
            check_size(&expansions, 0, opener)?;
        }
    }

    /// Reads the ranges and the `]` of a class whose `[` stands at `opener`.
    fn class(&mut self, opener: usize) -> Result<Class, PatternError> {
        let negated = self.rest.next_if(|&(_, c)| c == '!' || c == '^').is_some();
        let mut ranges = Vec::new();
        while self.rest.next_if(|&(_, c)| c == ']').is_none() {
            let (offset, low) = self.class_char(opener)?;
            if ranges.len() == CLASS_RANGES {
                return Err(PatternErrorKind::TooManyRanges.at(offset));
            }
            let high = if self.range_follows() {
                self.rest.next();
                self.class_char(opener)?.1
            } else {
                low
            };
            if low > high {
                return Err(PatternErrorKind::ReversedRange.at(offset));
            }
            ranges.push((low, high));
        }
        if ranges.is_empty() {
            return Err(PatternErrorKind::EmptyClass.at(opener));
        }
        Ok(Class::new(negated, ranges))
    }

    /// Reads one character of a class, with the offset it begins at.
    fn class_char(&mut self, opener: usize) -> Result<(usize, char), PatternError> {
        match self.rest.next() {
            None => Err(PatternErrorKind::UnclosedClass.at(opener)),
            Some((offset, '\\')) => Ok((offset, self.escaped(offset)?)),
            Some(plain) => Ok(plain),
        }
    }

    /// Whether a `-` comes next that makes a range: one that is not the last of its class.
    fn range_follows(&self) -> bool {
        let mut ahead = self.rest.clone().map(|(_, c)| c);
        ahead.next() == Some('-') && ahead.next() != Some(']')
    }

    /// Reads the character after the `\` at `offset`.
    fn escaped(&mut self, offset: usize) -> Result<char, PatternError> {
        match self.rest.next() {
            Some((_, c)) => Ok(c),
            None => Err(PatternErrorKind::TrailingEscape.at(offset)),
        }
    }
}

/// Every head followed by every tail; `opener` is the `{` of the group the tails come from.
fn product(
    heads: Vec<Expansion>,
    tails: Vec<Expansion>,
    opener: usize,
) -> Result<Vec<Expansion>, PatternError> {
    if heads.len() * tails.len() > BRACE_EXPANSIONS {
        return Err(PatternErrorKind::TooManyExpansions.at(opener));
    }
    let heads_with_tails = size(&heads) * (tails.len() - 1) + size(&tails) * heads.len();
    check_size(&heads, heads_with_tails, opener)?;
    let with_each_tail =
        |head: &Expansion| -> Vec<_> { tails.iter().map(|tail| [&head[..], tail].concat()).collect() };
    Ok(heads.iter().flat_map(with_each_tail).collect())
}

fn atoms(text: &str) -> Result<Vec<Atom>, PatternError> {
    let mut parser = Parser { rest: text.char_indices().peekable() };
    let mut atoms = Vec::new();
    for expansion in parser.sequence(0)? {
        let atom = atom(expansion)?;
        if !atoms.contains(&atom) {
            atoms.push(atom);
        }
    }
    Ok(atoms)
}

fn atom(mut expansion: Expansion) -> Result<Atom, PatternError> {
    expansion.dedup_by(|piece, before| piece.is_star() && before.is_star());
    let mut stars = expansion.iter().filter(|piece| piece.is_star());
    if let Some(star) = stars.nth(PATTERN_STARS) {
        return Err(PatternErrorKind::TooManyStars.at(star.offset));
    }
    let stretches: Vec<&[Piece]> = expansion.split(Piece::is_star).collect();
    if let [_, between @ .., _] = &stretches[..] {
        between.iter().try_for_each(|pieces| check_length(pieces))?;
    }
    Ok(Atom::new(stretches.into_iter().map(segment).collect()))
}

fn size(expansions: &[Expansion]) -> usize {
    expansions.iter().map(Expansion::len).sum()
}

/// Bounds what a short text expands to, as soon as `growth` would take it too far.
fn check_size(expansions: &[Expansion], growth: usize, offset: usize) -> Result<(), PatternError> {
    // A pattern that nothing multiplies is bounded by its bytes.
    if size(expansions) + growth > EXPANDED_CHARACTERS {
        return Err(PatternErrorKind::ExpandsTooFar.at(offset));
    }
    Ok(())
}

/// Bounds the work of looking for a segment, which grows with its length where text search cannot be used. The
/// first and the last segment of an atom are not looked for: their place is known.
fn check_length(pieces: &[Piece]) -> Result<(), PatternError> {
    match pieces.get(SEGMENT_ELEMENTS) {
        Some(piece) if !pieces.iter().all(Piece::is_char) => {
            Err(PatternErrorKind::SegmentTooLong.at(piece.offset))
        }
        _ => Ok(()),
    }
}

fn segment(pieces: &[Piece]) -> Segment {
    let mut elements = Vec::new();
    let mut run = String::new();
    for piece in pieces {
        match &piece.token {
            Token::Char(c) => run.push(*c),
            Token::One(class) => {
                push_literal(&mut elements, &mut run);
                elements.push(Element::One(class.clone()));
            }
            Token::Star => {}
        }
    }
    push_literal(&mut elements, &mut run);
    Segment::new(elements.into())
}

fn push_literal(elements: &mut Vec<Element>, run: &mut String) {
    if !run.is_empty() {
        elements.push(Element::Literal(std::mem::take(run).into()));
    }
}

#[cfg(test)]
mod tests {
    use super::PatternErrorKind::*;
    use super::*;

    fn refused(text: &str, kind: PatternErrorKind, offset: usize) {
        assert_eq!(Pattern::parse(text).err(), Some(kind.at(offset)), "{text}");
    }

    fn atoms(text: &str) -> usize {
        Pattern::parse(text).unwrap().atoms().len()
    }

    #[test]
    fn length() {
        refused("", Empty, 0);
        assert_eq!(atoms(&"a".repeat(256)), 1);
        refused(&"a".repeat(257), TooLong { bytes: 257 }, 256);
        refused(&("a".to_owned() + &"é".repeat(128)), TooLong { bytes: 257 }, 255);
    }

    #[test]
    fn escapes() {
        refused("\\", TrailingEscape, 0);
        refused(r"é\\\", TrailingEscape, 4);
        refused(r"[a\", TrailingEscape, 2);
        refused(r"{a,\", TrailingEscape, 3);
        assert_eq!(atoms(r"a\\"), 1);
    }

    #[test]
    fn classes() {
        for text in ["é[", "é[a", "é[!", "é[^", "é[a-", r"é[a\]", "é[a-z", "é[-"] {
            refused(text, UnclosedClass, 2);
        }
        for text in ["é[]", "é[!]", "é[^]", "é[]a]", "é[!]a]"] {
            refused(text, EmptyClass, 2);
        }
        refused("[z-a]", ReversedRange, 1);
        refused("[!a-cé-e]", ReversedRange, 5);
        refused(r"[\z-a]", ReversedRange, 1);
        refused("[a--]", ReversedRange, 1);

        let chars: String = ('a'..='z').chain('0'..='5').collect();
        assert_eq!(atoms(&format!("[{chars}]")), 1);
        assert_eq!(atoms(&format!("[^{}]", "a-z".repeat(32))), 1);
        refused(&format!("[{chars}\\6]"), TooManyRanges, 33);
        refused(&format!("[^{}]", "a-z".repeat(33)), TooManyRanges, 98);
    }

    #[test]
    fn braces() {
        refused("é{a,b", UnclosedBrace, 2);
        refused("{a,{b}", UnclosedBrace, 0);
        refused("{a,{b", UnclosedBrace, 3);
        refused(r"{a\}", UnclosedBrace, 0);
        refused("{[}", UnclosedClass, 1);
        assert_eq!(atoms("{{a,b},c}"), 3);
        refused("{{{a}}}", BracesTooDeep, 2);
        assert_eq!(atoms(r"{{\{a}}"), 1);

        let alternatives = |n: usize| vec!["a"; n].join(",");
        assert_eq!(atoms(&format!("{{{}}}", alternatives(16))), 1);
        refused(&format!("{{{}}}", alternatives(17)), TooManyAlternatives, 32);
        refused(&format!("{{{}}}", ",".repeat(16)), TooManyAlternatives, 16);
    }

    #[test]
    fn expansions() {
        assert_eq!(atoms("{a,b}{c,d}"), 4);
        assert_eq!(atoms(&"{a,b}".repeat(6)), 64);
        refused(&"{a,b}".repeat(7), TooManyExpansions, 30);
        let group = "{a,b,c,d,e,f,g,h}";
        assert_eq!(atoms(&group.repeat(2)), 64);
        refused(&format!("x{{{}y}}", group.repeat(3)), TooManyExpansions, 36);
        refused(&format!("x{{{0},{0}}}", group.repeat(2)), TooManyExpansions, 1);
        let many = "{a,b}".repeat(6);
        assert_eq!(atoms(&format!("{many}{}", "x".repeat(26))), 64);
        refused(&format!("{many}{}", "x".repeat(27)), ExpandsTooFar, 56);
        refused(&format!("{}{many}", "x".repeat(27)), ExpandsTooFar, 52);
        refused(&format!("{{{many}{},a}}", "[x-z]".repeat(27)), ExpandsTooFar, 161);
        // Repeats are matched once, but counted as they are written.
        assert_eq!(atoms("{a,{a,a}}"), 1);
        refused(&"{,}".repeat(7), TooManyExpansions, 18);
    }

    #[test]
    fn stars() {
        assert_eq!(atoms(&"*".repeat(256)), 1);
        assert_eq!(atoms(&"*a".repeat(16)), 1);
        refused(&"**a".repeat(17), TooManyStars, 48);
        // Stars are counted after the braces are expanded, and so are the runs they collapse to.
        assert_eq!(atoms(&format!("{{{},{}}}", "*a".repeat(16), "*b".repeat(16))), 2);
        assert_eq!(atoms(&format!("{}{{*,b}}*", "*a".repeat(15))), 2);
        refused(&format!("{}{{*,b}}b*", "*a".repeat(15)), TooManyStars, 36);
        assert_eq!(Pattern::parse("a*{*,}*b").unwrap().atoms()[0].segments().len(), 2);
    }

    #[test]
    fn segments() {
        let between = |middle: &str| format!("é*{middle}*");
        assert_eq!(atoms(&between(&"?".repeat(64))), 1);
        refused(&between(&"?".repeat(65)), SegmentTooLong, 67);
        refused(&between(&("a".repeat(65) + "[b]")), SegmentTooLong, 67);
        refused(&between(&("é".repeat(62) + "[ab]?a")), SegmentTooLong, 132);
        assert_eq!(atoms(&between(&"a".repeat(200))), 1);
        // Ends are not looked for.
        assert_eq!(atoms(&"?".repeat(200)), 1);
        assert_eq!(atoms(&format!("{0}*{0}", "?".repeat(100))), 1);
    }

    #[test]
    fn patterns_are_their_texts() {
        fn shared<T: Clone + Send + Sync + Eq + std::hash::Hash>(_: &T) {}
        let pattern = Pattern::parse("{a}").unwrap();
        shared(&pattern);
        assert_eq!(pattern.text(), "{a}");
        assert_eq!(pattern, Pattern::parse("{a}").unwrap());
        assert_ne!(pattern, Pattern::parse("a").unwrap());
        assert_eq!(format!("{pattern:?}"), r#"Pattern("{a}")"#);
    }
}
