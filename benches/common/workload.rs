//! Patterns as the tenants of one broker would have them, and topics near them.

use tinybroker::pattern::{Index, Pattern};

const SERVICES: [&str; 7] = ["order", "payment", "invoice", "shipment", "refund", "customer", "stock"];
const EVENTS: [&str; 5] = ["created", "placed", "failed", "settled", "archived"];

/// A kind of patterns, each told by its number, and so many of them.
#[derive(Clone, Copy)]
pub struct Workload {
    pub text: fn(usize) -> String,
    pub size: usize,
}

impl Workload {
    pub fn pattern(&self, number: usize) -> Pattern {
        Pattern::parse(&(self.text)(number)).expect("a pattern")
    }

    /// A topic that comes once only and that a pattern from anywhere in the index matches, or nearly: every other one
    /// goes on where the pattern ends.
    pub fn topic(&self, nth: usize) -> String {
        let text = (self.text)(nth.wrapping_mul(7_919) % self.size);
        let mut topic = String::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '*' => topic += &format!("{}-{nth}", SERVICES[nth % 3]),
                '?' => topic.push('7'),
                // Of a class the first character, of braces the first alternative.
                '[' => {
                    topic.extend(rest.next());
                    rest.find(|c| *c == ']');
                }
                ',' => {
                    rest.find(|c| *c == '}');
                }
                '{' | '}' => {}
                _ => topic.push(c),
            }
        }
        let came_before = nth >= self.size && !text.contains(['*', '?', '[', '{']);
        if nth % 2 == 1 || came_before {
            topic += &format!(".{nth}");
        }
        topic
    }
}

/// Of twenty patterns ten begin with what they look for, four are topics, three have the star in the middle, two have it
/// in front, and one has the rest: `?`, a class, several stars, braces. A tenant has four, and no order among the tenants.
pub fn mixed(number: usize) -> String {
    let tenant = scattered(number / 4);
    let service = SERVICES[number % SERVICES.len()];
    let event = EVENTS[number % EVENTS.len()];
    match number % 20 {
        0..10 => format!("tenant-{tenant}.{service}.*"),
        10..14 => format!("tenant-{tenant}.{service}.{event}"),
        14..17 => format!("tenant-{tenant}.*.{event}"),
        17..19 => format!("*.{service}-{tenant}"),
        _ => match number / 20 % 4 {
            0 => format!("tenant-{tenant}.{service}-?.*"),
            1 => format!("tenant-{tenant}.{service}-[0-9a-f].{event}"),
            2 => format!("*-{tenant}.*.{service}.*"),
            _ => format!("tenant-{tenant}.{{{service},ledger}}.{event}.*"),
        },
    }
}

/// A number of up to ten digits, another one for each.
pub fn scattered(number: usize) -> u32 {
    (number as u32).wrapping_mul(0x9E37_79B1)
}

/// Packs all that the index holds into its base.
pub fn merge(index: &mut Index<usize>) {
    if let Some(job) = index.begin_merge() {
        let merged = job.run();
        drop(index.finish_merge(merged));
    }
}
