//! Topic patterns: globs over the whole topic.
//!
//! | write | means |
//! | --- | --- |
//! | `*`, `**` | any run of characters, also none; dots and line ends included |
//! | `?` | exactly one character |
//! | `[a-z]`, `[abc]` | one character of the class; `-` first or last is itself |
//! | `[!abc]`, `[^abc]` | one character that is not in the class |
//! | `{a,b}` | either alternative; may nest, an alternative may be empty |
//! | `\x` | the character `x`, whatever it is; in classes too |
//! | anything else | itself: also `.` `$` `+` `\|`, a lone `]` or `}`, and `,` outside braces |
//!
//! A character is a Unicode scalar value. Nothing is normalised and case counts.
//!
//! A [`Pattern`] is parsed once into [`Atom`]s, patterns without braces. [`Pattern::matches`] is the definition
//! of what a pattern means; [`Index`] answers the same question for many patterns at a time. Bounds are in
//! [`limits`](crate::limits), the reference for users is `docs/patterns.md`.

mod atom;
mod error;
mod index;
mod matcher;
mod syntax;
#[cfg(test)]
mod tests;

pub use atom::{Atom, Class, Element, Segment};
pub use error::{PatternError, PatternErrorKind};
pub use index::{Index, IndexError, MergeJob, Merged, Retired};
pub use syntax::Pattern;
