//! Patterns and topics that overlap in many ways.

use tinybroker::pattern::{Element, Pattern};

use crate::chance::Chance;

/// Words of each script's language: literals that are prefixes, suffixes and parts of each other.
const LANGUAGES: [&[&str]; 5] = [
    &["a", "b", "ab", "aba"],
    &["a", "aa", "aaa", "aaaaaaa", "b"],
    &["or", "order", "order.", ".", "placed", ".placed", "eu", "er.pl"],
    &["é", "éa", "☕", "☕é", "e\u{301}", "é☕é", "\u{10ffff}"],
    &["abc", "bca", "cab", "abcabcabcabcabcabcabc", "c"],
];

/// In bytes.
const LONG_TOPIC: usize = 1000;

pub struct Texts {
    words: &'static [&'static str],
    pub patterns: Vec<Pattern>,
    pub topics: Vec<String>,
}

impl Texts {
    /// Distinct patterns, and topics of which many are made from one of them.
    pub fn new(chance: &mut Chance, patterns: usize, topics: usize) -> Self {
        let mut texts = Self { words: *chance.pick(&LANGUAGES), patterns: Vec::new(), topics: Vec::new() };
        while texts.patterns.len() < patterns {
            let text = texts.pattern(chance);
            if let Ok(pattern) = Pattern::parse(&text)
                && !texts.patterns.contains(&pattern)
            {
                texts.patterns.push(pattern);
            }
        }
        for _ in 0..topics {
            let topic = if chance.one_in(3) { texts.run(chance, 4) } else { texts.hit(chance) };
            // Long ones are matched in other ways.
            let times = if chance.one_in(6) { 1 + LONG_TOPIC / (topic.len() + 1) } else { 1 };
            texts.topics.push(topic.repeat(times));
        }
        texts
    }

    fn word(&self, chance: &mut Chance) -> &'static str {
        self.words[chance.below(self.words.len())]
    }

    fn run(&self, chance: &mut Chance, most: usize) -> String {
        (0..chance.below(most + 1)).map(|_| self.word(chance)).collect()
    }

    fn pattern(&self, chance: &mut Chance) -> String {
        match chance.below(24) {
            0..4 => format!("{}{}*", self.word(chance), self.run(chance, 2)),
            4..7 => format!("*{}{}", self.word(chance), self.run(chance, 2)),
            7..11 => format!("{}*{}", self.run(chance, 2), self.run(chance, 2)),
            11 | 12 => format!("*{}{}*", self.word(chance), self.run(chance, 1)),
            13..15 => self.run(chance, 3),
            _ => self.parts(chance, 6, 2),
        }
    }

    /// Anything at all.
    fn parts(&self, chance: &mut Chance, most: usize, depth: usize) -> String {
        let part = |chance: &mut Chance| match chance.below(13) {
            0..5 => self.word(chance).to_owned(),
            5..8 => "*".to_owned(),
            8 => "?".to_owned(),
            9 => self.class(chance),
            10 => format!("\\{}", self.word(chance)),
            _ if depth == 0 => self.word(chance).to_owned(),
            _ => {
                let alternatives = 1 + chance.below(3);
                let alternatives: Vec<String> =
                    (0..alternatives).map(|_| self.parts(chance, 3, depth - 1)).collect();
                format!("{{{}}}", alternatives.join(","))
            }
        };
        (0..chance.below(most + 1)).map(|_| part(chance)).collect()
    }

    fn class(&self, chance: &mut Chance) -> String {
        let mut letter = || self.word(chance).chars().next().unwrap_or('a');
        let (one, other, third) = (letter(), letter(), letter());
        let negated = if chance.one_in(3) { "!" } else { "" };
        format!("[{negated}{}-{}{third}]", one.min(other), one.max(other))
    }

    /// A topic that one of the patterns matches, or nearly.
    fn hit(&self, chance: &mut Chance) -> String {
        let atoms = chance.pick(&self.patterns).atoms();
        let atom = chance.pick(&atoms);
        let mut topic = String::new();
        for (at, segment) in atom.segments().iter().enumerate() {
            if at > 0 {
                topic += &self.run(chance, 2);
            }
            for element in segment.elements() {
                match element {
                    Element::Literal(text) => topic += text,
                    Element::One(class) => {
                        let letters = self.words.iter().flat_map(|word| word.chars());
                        let fitting: Vec<char> = letters.filter(|c| class.contains(*c)).collect();
                        topic.push(if fitting.is_empty() { 'x' } else { *chance.pick(&fitting) });
                    }
                }
            }
        }
        if chance.one_in(4) {
            topic.pop();
        }
        topic
    }
}
