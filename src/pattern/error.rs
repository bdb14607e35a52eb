//! Why a text is not a pattern.

use std::fmt;

use crate::limits::{
    BRACE_ALTERNATIVES, BRACE_DEPTH, BRACE_EXPANSIONS, CLASS_RANGES, EXPANDED_CHARACTERS, PATTERN_BYTES,
    PATTERN_STARS, SEGMENT_ELEMENTS,
};

/// Why a text is not a pattern, and where.
///
/// The message is one short line of printable ASCII and never repeats the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Byte offset in the pattern of the character that broke the rule; always on a character boundary.
    pub offset: usize,
    /// The rule that was broken.
    pub kind: PatternErrorKind,
}

/// The rules a pattern can break, with what [`PatternError::offset`] points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternErrorKind {
    /// No text at all; offset 0.
    Empty,
    /// More than [`PATTERN_BYTES`]; the first character that does not fit.
    TooLong {
        /// Length of the pattern in bytes.
        bytes: usize,
    },
    /// Nothing follows a `\`; the `\`.
    TrailingEscape,
    /// A `[` without its `]`; the `[`.
    UnclosedClass,
    /// `[]`, `[!]` or `[^]`; the `[`.
    EmptyClass,
    /// A range such as `z-a`; its first character.
    ReversedRange,
    /// More than [`CLASS_RANGES`] in one class; the first that is too many.
    TooManyRanges,
    /// A `{` without its `}`; the `{`.
    UnclosedBrace,
    /// Braces within braces deeper than [`BRACE_DEPTH`]; the `{` that is too deep.
    BracesTooDeep,
    /// More than [`BRACE_ALTERNATIVES`] in one group; the `,` before the first that is too many.
    TooManyAlternatives,
    /// More than [`BRACE_EXPANSIONS`] in all; the `{` of the group that goes over it.
    TooManyExpansions,
    /// More than [`EXPANDED_CHARACTERS`] in all expansions together; the character, or the `{` of the group,
    /// that goes over it.
    ExpandsTooFar,
    /// More than [`PATTERN_STARS`] in one expansion; the first `*` that is too many.
    TooManyStars,
    /// More than [`SEGMENT_ELEMENTS`] between two `*`, a `?` or a class among them; the first too many.
    SegmentTooLong,
}

impl PatternErrorKind {
    pub(super) fn at(self, offset: usize) -> PatternError {
        PatternError { offset, kind: self }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use PatternErrorKind::*;
        let at = self.offset;
        match self.kind {
            Empty => write!(f, "pattern is empty; write `*` to match every topic"),
            TooLong { bytes } => write!(f, "pattern is {bytes} bytes; limit {PATTERN_BYTES}"),
            TrailingEscape => {
                write!(f, r"nothing follows `\` at byte {at}; write `\\` for the character itself")
            }
            UnclosedClass => write!(f, r"unclosed `[` at byte {at}; write `\[` for the character itself"),
            EmptyClass => write!(f, r"empty class at byte {at}; write `\[` or `\]` for the character itself"),
            ReversedRange => write!(f, "reversed range at byte {at}; the lower character comes first"),
            TooManyRanges => write!(f, "too many ranges in a class at byte {at}; limit {CLASS_RANGES}"),
            UnclosedBrace => write!(f, r"unclosed `{{` at byte {at}; write `\{{` for the character itself"),
            BracesTooDeep => write!(f, "braces nested too deep at byte {at}; limit {BRACE_DEPTH}"),
            TooManyAlternatives => {
                write!(f, "too many alternatives in a group at byte {at}; limit {BRACE_ALTERNATIVES}")
            }
            TooManyExpansions => {
                write!(f, "braces expand to too many patterns at byte {at}; limit {BRACE_EXPANSIONS}")
            }
            ExpandsTooFar => {
                write!(f, "braces expand to too many characters at byte {at}; limit {EXPANDED_CHARACTERS}")
            }
            TooManyStars => write!(f, "too many `*` at byte {at}; limit {PATTERN_STARS}"),
            SegmentTooLong => write!(
                f,
                "too many characters between two `*` with `?` or a class among them \
                 at byte {at}; limit {SEGMENT_ELEMENTS}"
            ),
        }
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_rule_figure_and_offset() {
        let text = |kind: PatternErrorKind, offset| kind.at(offset).to_string();
        assert_eq!(text(PatternErrorKind::TooLong { bytes: 300 }, 256), "pattern is 300 bytes; limit 256");
        assert_eq!(
            text(PatternErrorKind::UnclosedClass, 4),
            r"unclosed `[` at byte 4; write `\[` for the character itself"
        );
        assert_eq!(
            text(PatternErrorKind::UnclosedBrace, 0),
            r"unclosed `{` at byte 0; write `\{` for the character itself"
        );
        assert_eq!(
            text(PatternErrorKind::SegmentTooLong, 65),
            "too many characters between two `*` with `?` or a class among them at byte 65; limit 64"
        );
    }
}
