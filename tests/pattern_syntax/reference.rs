//! What the text of a pattern means, read character by character and without any thought of speed.

use std::collections::BTreeSet;

/// Whether a pattern that was found valid matches the whole topic.
pub fn matches(pattern: &str, topic: &str) -> bool {
    let [pattern, topic] = [pattern, topic].map(|text| text.chars().collect::<Vec<_>>());
    ends(&pattern, &topic, [0].into()).contains(&topic.len())
}

/// Where in the topic a match may end that begins at one of these places.
fn ends(mut pattern: &[char], topic: &[char], mut places: BTreeSet<usize>) -> BTreeSet<usize> {
    while let Some((first, rest)) = pattern.split_first() {
        let after = |accepts: &dyn Fn(char) -> bool| {
            let fitting = places.iter().filter(|at| topic.get(**at).is_some_and(|c| accepts(*c)));
            fitting.map(|at| at + 1).collect()
        };
        (places, pattern) = match first {
            '*' => (places.first().map_or(0..0, |first| *first..topic.len() + 1).collect(), rest),
            '?' => (after(&|_| true), rest),
            '\\' => (after(&|c| c == rest[0]), &rest[1..]),
            '[' => {
                let (accepted, rest) = class(rest);
                (after(&|c| accepted(c)), rest)
            }
            '{' => {
                let (alternatives, rest) = group(rest);
                let each = alternatives.into_iter().flat_map(|one| ends(one, topic, places.clone()));
                (each.collect(), rest)
            }
            plain => (after(&|c| c == *plain), rest),
        };
    }
    places
}

/// What a class accepts that begins here, behind its `[`, and what follows its `]`.
fn class(text: &[char]) -> (impl Fn(char) -> bool, &[char]) {
    let is_negated = matches!(text[0], '!' | '^');
    let mut rest = if is_negated { &text[1..] } else { text };
    let mut ranges = Vec::new();
    while rest[0] != ']' {
        let (low, behind) = plain_or_escaped(rest);
        let (high, behind) = match behind {
            ['-', next, ..] if *next != ']' => plain_or_escaped(&behind[1..]),
            _ => (low, behind),
        };
        ranges.push(low..=high);
        rest = behind;
    }
    (move |c| ranges.iter().any(|range| range.contains(&c)) != is_negated, &rest[1..])
}

fn plain_or_escaped(text: &[char]) -> (char, &[char]) {
    match text {
        ['\\', escaped, rest @ ..] => (*escaped, rest),
        _ => (text[0], &text[1..]),
    }
}

/// The alternatives of a group that begins here, behind its `{`, and what follows its `}`.
fn group(text: &[char]) -> (Vec<&[char]>, &[char]) {
    let (mut alternatives, mut begin, mut at, mut depth) = (Vec::new(), 0, 0, 0);
    loop {
        match text[at] {
            '\\' => at += 1,
            '[' => at = text.len() - class(&text[at + 1..]).1.len() - 1,
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            end @ (',' | '}') if depth == 0 => {
                alternatives.push(&text[begin..at]);
                begin = at + 1;
                if end == '}' {
                    return (alternatives, &text[begin..]);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
