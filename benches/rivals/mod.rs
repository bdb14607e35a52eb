//! Other ways to find which of many patterns match a topic.

mod globs;
mod regex;
mod trie;

pub use globs::Globs;
pub use regex::Regexes;
pub use trie::Trie;

/// Patterns by their position in what it was built from.
pub trait Rival: Sized {
    const NAME: &str;

    /// Where a pattern means the same to it, or near enough for the topics here, that pattern as it is written for it.
    fn translate(text: &str) -> Option<String>;

    /// # Errors
    ///
    /// Why it cannot hold them, in a short line.
    fn build(texts: &[String]) -> Result<Self, String>;

    /// Appends the positions of the patterns that match, each once, in any order.
    fn matching(&mut self, topic: &str, found: &mut Vec<usize>);
}
