//! A trie of the segments between dots, as brokers have whose wildcards stand for whole segments: `*` is one segment, `>` at
//! the end one or more. What looks a topic up goes down the child of its segment and that of `*` at each level.

use ahash::AHashMap;

use super::Rival;

#[derive(Default)]
pub struct Trie {
    root: Node,
}

#[derive(Default)]
struct Node {
    children: AHashMap<Box<str>, Node>,
    star: Option<Box<Node>>,
    /// Patterns that end here.
    here: Vec<usize>,
    /// Patterns that end here with `>`.
    below: Vec<usize>,
}

impl Rival for Trie {
    const NAME: &str = "trie of segments";

    /// A star must have a segment for itself; the last segment may then be any rest but an empty one.
    fn translate(text: &str) -> Option<String> {
        let is_plain = |segment: &str| segment == "*" || !segment.contains(['*', '?', '[', '{', '\\']);
        if !text.split('.').all(is_plain) {
            return None;
        }
        Some(text.strip_suffix('*').map_or_else(|| text.to_owned(), |before| format!("{before}>")))
    }

    fn build(texts: &[String]) -> Result<Self, String> {
        let mut trie = Self::default();
        texts.iter().enumerate().for_each(|(number, text)| trie.root.insert(text, number));
        Ok(trie)
    }

    fn matching(&mut self, topic: &str, found: &mut Vec<usize>) {
        self.root.find(Some(topic), found);
    }
}

impl Node {
    fn insert(&mut self, text: &str, number: usize) {
        let mut node = self;
        for segment in text.split('.') {
            node = match segment {
                ">" => return node.below.push(number),
                "*" => node.star.get_or_insert_default(),
                _ => node.children.entry(segment.into()).or_default(),
            };
        }
        node.here.push(number);
    }

    fn find(&self, rest: Option<&str>, found: &mut Vec<usize>) {
        let Some(rest) = rest else {
            found.extend_from_slice(&self.here);
            return;
        };
        found.extend_from_slice(&self.below);
        let (segment, rest) = rest.split_once('.').map_or((rest, None), |(one, rest)| (one, Some(rest)));
        if let Some(child) = self.children.get(segment) {
            child.find(rest, found);
        }
        if let Some(star) = &self.star {
            star.find(rest, found);
        }
    }
}
