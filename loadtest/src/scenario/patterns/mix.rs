//! Patterns as applications write them, and topics of which each matches exactly one.
//!
//! Every pattern belongs to a device of a customer, `c0002a.d1f3`, whose name stands in it literally; a topic has one
//! such name. Neither part is the pattern's own: it takes both to tell it from the others.

/// Devices of one customer.
const DEVICES: u32 = 4096;

/// So many patterns, of which any twenty in a row have the shapes of the whole.
#[derive(Debug, Clone)]
pub struct Mix {
    /// Begins or ends every topic, so that runs on one broker do not meet.
    root: String,
    patterns: u32,
}

/// What a pattern looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `a.b.*`
    Prefix,
    /// `a.b.c`
    Exact,
    /// `a.*.b`
    Middle,
    /// `*.b.c`
    Suffix,
    /// `a.shard-?.b`
    Character,
    /// `a.shard-[0-9].b`
    Class,
}

impl Shape {
    fn of(number: u32) -> Shape {
        match number % 20 {
            0..10 => Shape::Prefix,
            10..14 => Shape::Exact,
            14..17 => Shape::Middle,
            17..19 => Shape::Suffix,
            _ if (number / 20).is_multiple_of(2) => Shape::Character,
            _ => Shape::Class,
        }
    }
}

impl Mix {
    pub fn new(root: String, patterns: u32) -> Self {
        Mix { root, patterns }
    }

    pub fn pattern(&self, number: u32) -> String {
        let (root, device) = (&self.root, device(number));
        match Shape::of(number) {
            Shape::Prefix => format!("{root}.{device}.*"),
            Shape::Exact => format!("{root}.{device}.status"),
            Shape::Middle => format!("{root}.{device}.*.failed"),
            Shape::Suffix => format!("*.{device}.{root}"),
            Shape::Character => format!("{root}.{device}.shard-?.moved"),
            Shape::Class => format!("{root}.{device}.shard-[0-9].moved"),
        }
    }

    /// One that this pattern matches and no other does.
    pub fn topic(&self, number: u32) -> String {
        let (root, device) = (&self.root, device(number));
        match Shape::of(number) {
            Shape::Prefix => format!("{root}.{device}.order.created"),
            Shape::Exact => format!("{root}.{device}.status"),
            Shape::Middle => format!("{root}.{device}.payment.eu-west.failed"),
            Shape::Suffix => format!("alert.{device}.{root}"),
            Shape::Character | Shape::Class => format!("{root}.{device}.shard-7.moved"),
        }
    }

    /// So many of the patterns' numbers, or all of them, spread evenly over all patterns and shapes.
    pub fn spread(&self, count: u32) -> impl Iterator<Item = u32> {
        let patterns = u64::from(self.patterns);
        let stride = stride(self.patterns);
        (0..u64::from(count.min(self.patterns))).map(move |step| (step * stride % patterns) as u32)
    }
}

fn device(number: u32) -> String {
    format!("c{:05x}.d{:03x}", number / DEVICES, number % DEVICES)
}

/// A step that reaches every pattern before it repeats, and the shapes in turns.
fn stride(patterns: u32) -> u64 {
    let patterns = u64::from(patterns);
    let golden = (patterns as f64 * 0.618) as u64;
    let is_fit = |step: &u64| gcd(*step, patterns) == 1 && gcd(*step, 20) == 1;
    (golden.max(1)..).find(is_fit).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// What the contract says of `*`, `?` and a class of one range, and nothing more.
    fn matches(pattern: &[u8], topic: &[u8]) -> bool {
        match (pattern, topic) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=topic.len()).any(|taken| matches(rest, &topic[taken..])),
            ([b'?', rest @ ..], [_, topic @ ..]) => matches(rest, topic),
            ([b'[', low, b'-', high, b']', rest @ ..], [byte, topic @ ..]) => {
                (low..=high).contains(&byte) && matches(rest, topic)
            }
            ([literal, rest @ ..], [byte, topic @ ..]) => literal == byte && matches(rest, topic),
            _ => false,
        }
    }

    #[test]
    fn a_topic_matches_its_pattern_and_no_other() {
        let mix = Mix::new("loadtest.0badcafe.patterns".into(), 1_000_000);
        // Neighbours, and others far away: same customer, same device number, same shape.
        let numbers: Vec<u32> = (0..200).chain(4_090..4_110).chain(mix.spread(400)).collect();
        let numbers: HashSet<u32> = numbers.into_iter().collect();
        for &number in &numbers {
            let topic = mix.topic(number);
            assert!(matches(mix.pattern(number).as_bytes(), topic.as_bytes()), "{topic}");
            for &other in numbers.iter().filter(|&&other| other != number) {
                let pattern = mix.pattern(other);
                assert!(!matches(pattern.as_bytes(), topic.as_bytes()), "{topic} matches {pattern} too");
            }
        }
    }

    #[test]
    fn the_shapes_are_those_of_applications() {
        let count =
            |patterns: &[String], is: fn(&str) -> bool| patterns.iter().filter(|text| is(text)).count();
        let mix = Mix::new("root".into(), 2_000);
        let of =
            |numbers: Vec<u32>| numbers.into_iter().map(|number| mix.pattern(number)).collect::<Vec<_>>();
        let (all, some) = (of((0..2_000).collect()), of(mix.spread(1_000).collect()));
        for (patterns, hundredth) in [(all, 20), (some, 10)] {
            assert_eq!(count(&patterns, |text| text.ends_with(".*")), 50 * hundredth);
            assert_eq!(count(&patterns, |text| text.ends_with(".status")), 20 * hundredth);
            assert_eq!(count(&patterns, |text| text.contains(".*.")), 15 * hundredth);
            assert_eq!(count(&patterns, |text| text.starts_with("*.")), 10 * hundredth);
            assert_eq!(count(&patterns, |text| text.contains(['?', '['])), 5 * hundredth);
            let is_selective = |text: &str| text.split(['*', '?', '[']).any(|run| run.len() >= 3);
            assert_eq!(count(&patterns, is_selective), 100 * hundredth);
        }
    }

    #[test]
    fn spread_numbers_are_distinct_whatever_the_count() {
        for patterns in [1, 2, 7, 20, 256, 10_000, 99_999] {
            let mix = Mix::new("root".into(), patterns);
            for count in [1, patterns / 3 + 1, patterns, patterns + 1] {
                let spread: HashSet<u32> = mix.spread(count).collect();
                assert_eq!(spread.len() as u32, count.min(patterns), "{count} of {patterns}");
                assert!(spread.iter().all(|&number| number < patterns));
            }
        }
    }
}
