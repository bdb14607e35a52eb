//! globset: prefixes, suffixes and literals in automata and hash tables of their own, all else in a set of regexes.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Rival;

pub struct Globs(GlobSet);

impl Rival for Globs {
    const NAME: &str = "globset";

    fn translate(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn build(texts: &[String]) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for text in texts {
            let glob = GlobBuilder::new(text).literal_separator(false).build();
            set.add(glob.map_err(|error| error.to_string())?);
        }
        set.build().map(Self).map_err(|error| error.kind().to_string())
    }

    fn matching(&mut self, topic: &str, found: &mut Vec<usize>) {
        self.0.matches_into(topic, found);
    }
}
