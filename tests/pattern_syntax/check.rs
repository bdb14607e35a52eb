//! What must hold of a pattern and a topic, whatever they are.

use tinybroker::limits::{BRACE_EXPANSIONS, PATTERN_BYTES};
use tinybroker::pattern::{Atom, Element, Pattern, PatternError};

use crate::reference;

/// One for each value that a byte has in its lower half, those more often that matter more.
const CHARS: [char; 32] = [
    'a', 'b', 'c', 'a', 'b', '.', 'é', '☕', '*', '*', '*', '?', '?', '[', ']', '[', ']', '-', '!', '^', '{',
    '}', '{', '}', ',', ',', '\\', 'a', '\n', '~', ' ', '0',
];
/// What follows the pattern in the bytes.
pub const END: u8 = 0xFF;

/// Takes the bytes before the first 255 as a pattern, a character each, and makes a topic of it with those behind. Returns
/// whether they match; none where the pattern is refused.
pub fn run(bytes: &[u8]) -> Option<bool> {
    let end = bytes.iter().position(|byte| *byte == END).unwrap_or(bytes.len());
    let (before, behind) = bytes.split_at(end);
    let text: String = before.iter().map(|byte| char_of(*byte)).collect();
    let pattern = match Pattern::parse(&text) {
        Ok(pattern) => pattern,
        Err(error) => {
            check_error(&text, error);
            return None;
        }
    };
    assert!(text.len() <= PATTERN_BYTES && pattern.text() == text);
    let atoms = pattern.atoms();
    assert!((1..=BRACE_EXPANSIONS).contains(&atoms.len()), "{text:?} becomes {} atoms", atoms.len());
    let mut choices = behind.iter().copied();
    let atom = &atoms[usize::from(choices.next().unwrap_or(0)) % atoms.len()];
    let topic = topic(atom, &mut choices);
    let is_match = pattern.matches(&topic);
    assert_eq!(is_match, reference::matches(&text, &topic), "{text:?} on {topic:?}");
    Some(is_match)
}

fn char_of(byte: u8) -> char {
    CHARS[usize::from(byte) % CHARS.len()]
}

/// The bytes that become this pattern, for which all its characters must be among those that a byte can be.
#[cfg(test)]
pub fn bytes_of(text: &str) -> Vec<u8> {
    let byte = |c| CHARS.iter().position(|known| *known == c).expect("a character of a byte") as u8;
    text.chars().map(byte).collect()
}

/// The message is one short line of printable ASCII, and points into the text.
fn check_error(text: &str, error: PatternError) {
    let line = error.to_string();
    assert!(line.len() < 120 && line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}: {line:?}");
    assert!(text.is_char_boundary(error.offset) && error.offset < text.len().max(1), "{text:?}: {error:?}");
}

/// A topic that the atom matches, or nearly.
fn topic(atom: &Atom, choices: &mut impl Iterator<Item = u8>) -> String {
    let mut topic = String::new();
    for (at, segment) in atom.segments().iter().enumerate() {
        if at > 0 {
            let stretch = choices.next().unwrap_or(0) % 4;
            topic.extend((0..stretch).map_while(|_| choices.next()).map(char_of));
        }
        for element in segment.elements() {
            match element {
                Element::Literal(text) => topic += text,
                Element::One(class) => {
                    let mut fitting = CHARS.into_iter().filter(|c| class.contains(*c)).cycle();
                    topic.extend(fitting.nth(usize::from(choices.next().unwrap_or(0) % 32)));
                }
            }
        }
    }
    // What is left changes it.
    match choices.next().unwrap_or(0) % 4 {
        1 => {
            topic.pop();
            topic.extend(choices.next().map(char_of));
        }
        2 => topic.extend(choices.next().map(char_of)),
        3 => topic = topic.chars().skip(1).collect(),
        _ => {}
    }
    topic
}
