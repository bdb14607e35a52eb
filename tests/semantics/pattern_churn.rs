//! Patterns that come and go by the thousand, so that shards pack their index anew all the while, and what a broker
//! promises meanwhile.
//!
//! `TINYBROKER_CHURN_ROUNDS` and `TINYBROKER_CHURN_PATTERNS` set how long the tests are and how many patterns are there
//! beside those that are looked at.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tonic::Code;

use crate::chance::Chance;
use crate::reference;
use crate::support::*;

const LAYOUT: [&str; 4] = ["--shards", "2", "--frontends", "2"];
/// Patterns of one subscription, the most that it may have.
const EACH: usize = 256;
/// Merges that a test must have seen.
const MERGES: u64 = 3;
/// Long enough for a shard to find that it has nothing to do, and to begin a merge.
const PAUSE: Duration = tinybroker::limits::LULL.saturating_mul(4);

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn rounds(default: usize) -> usize {
    setting("TINYBROKER_CHURN_ROUNDS", default)
}

async fn merges(broker: &Broker) -> u64 {
    broker.stats().await.counters["pattern_index_merges"]
}

/// Subscriptions of many patterns, of which the oldest leaves whenever a new one comes.
struct Churn {
    client: Client,
    live: VecDeque<Stream>,
    most: usize,
    next: usize,
    pattern: fn(usize) -> String,
}

impl Churn {
    async fn new(broker: &Broker, pattern: fn(usize) -> String) -> Self {
        let most = setting("TINYBROKER_CHURN_PATTERNS", 24 * EACH).div_ceil(EACH);
        let mut churn =
            Churn { client: broker.client().await, live: VecDeque::new(), most, next: 0, pattern };
        for _ in 0..most {
            churn.step().await;
        }
        churn
    }

    async fn step(&mut self) {
        let patterns: Vec<String> = (self.next..self.next + EACH).map(self.pattern).collect();
        self.next += EACH;
        let open = multi(&patterns.iter().map(String::as_str).collect::<Vec<_>>());
        self.live.push_back(self.client.subscribe(open).await.0);
        if self.live.len() > self.most {
            self.live.pop_front();
        }
    }
}

/// Ends a stream and hears so.
async fn end(mut stream: Stream) {
    stream.send(tinybroker::proto::subscribe_command::Command::Open(multi(&["second"])));
    assert_eq!(stream.end().await.code(), Code::InvalidArgument, "one stream is one subscription");
}

/// A subscription of each mode, on one executor, gets what is published on another as soon as it has its id; and a
/// publish meets nobody once the stream's end is told.
async fn assert_heard_from_first_event_to_end(subscriber: &Client, publisher: &Client, round: usize) {
    let pattern = format!("round-{round}.*");
    let topic = format!("round-{round}.placed");
    let patterns = [pattern.as_str()];
    for open in [multi(&patterns), balanced("g", &patterns), singleton("g", &patterns)] {
        let mode = open.mode();
        let (mut stream, _) = subscriber.subscribe(open).await;
        assert_eq!(publisher.publish(&topic, "heard").await.subscriptions, 1, "{mode:?} {round}");
        stream.due("heard", 1).await;
        end(stream).await;
        assert_eq!(publisher.publish(&topic, "unheard").await.subscriptions, 0, "{mode:?} {round}");
    }
}

#[tokio::test]
async fn who_has_its_id_is_heard_from_elsewhere_at_once() {
    let broker = Broker::with(&LAYOUT);
    // The one that has fewest connections gets the next: these two are on different frontends.
    let (subscriber, publisher) = (broker.client().await, broker.client().await);
    for round in 0..rounds(40) {
        assert_heard_from_first_event_to_end(&subscriber, &publisher, round).await;
    }
}

#[tokio::test]
async fn who_has_its_id_is_heard_from_elsewhere_at_once_while_patterns_are_merged() {
    let broker = Broker::with(&LAYOUT);
    let (subscriber, publisher) = (broker.client().await, broker.client().await);
    let mut churn = Churn::new(&broker, |number| format!("device-{number}.*.moved")).await;
    let (before, deadline) = (merges(&broker).await, Instant::now() + LIMIT);
    let mut round = 0;
    while round < rounds(40) || merges(&broker).await < before + MERGES {
        assert!(round < rounds(40) || Instant::now() < deadline, "nothing is merged");
        tokio::join!(churn.step(), assert_heard_from_first_event_to_end(&subscriber, &publisher, round));
        if round.is_multiple_of(4) {
            tokio::time::sleep(PAUSE).await;
        }
        round += 1;
    }
    println!("{} merges in {round} rounds", merges(&broker).await - before);
}

/// What patterns and topics are made of, so that they often match, and more often nearly.
const WORDS: [&str; 8] = ["a", "b", ".", "ab", "ba.", "a.b", "abab", "b..a"];

fn run(chance: &mut Chance, most: usize) -> String {
    (0..1 + chance.below(most)).map(|_| *chance.pick(&WORDS)).collect()
}

fn pattern(chance: &mut Chance) -> String {
    let part = |chance: &mut Chance| match chance.below(12) {
        0..6 => run(chance, 3),
        6..9 => "*".to_owned(),
        9 => chance.pick(&["?", "[ab]", "[!a]"]).to_string(),
        10 => format!("{{{},{}}}", run(chance, 2), run(chance, 2)),
        _ => "**".to_owned(),
    };
    (0..1 + chance.below(4)).map(|_| part(chance)).collect()
}

/// Like those that are looked at, and never matching: no topic has a digit.
fn near(number: usize) -> String {
    let [first, last] = [WORDS[number % 8], WORDS[number / 8 % 8]];
    match number / 64 % 4 {
        0 => format!("{first}{last}{number:06}*"),
        1 => format!("*{number:06}{first}{last}"),
        2 => format!("{first}*{number:06}*{last}"),
        _ => format!("{first}{last}?{number:06}.[ab]"),
    }
}

/// Subscriptions with a few patterns each, and which topics they must get.
struct Watched {
    client: Client,
    live: Vec<(Vec<String>, Stream)>,
    chance: Chance,
    added: usize,
}

impl Watched {
    async fn change(&mut self) {
        let is_removed = !self.live.is_empty() && self.chance.below(48) < self.live.len();
        if is_removed {
            let at = self.chance.below(self.live.len());
            end(self.live.swap_remove(at).1).await;
            return;
        }
        let patterns: Vec<String> =
            (0..1 + self.chance.below(3)).map(|_| pattern(&mut self.chance)).collect();
        let open = multi(&patterns.iter().map(String::as_str).collect::<Vec<_>>());
        let (stream, _) = self.client.subscribe(open).await;
        self.live.push((patterns, stream));
        self.added += 1;
    }

    /// Publishes to a topic; how many got it.
    async fn compare(&mut self) -> u32 {
        let topic = run(&mut self.chance, 5);
        let taken = self.client.publish(&topic, "x").await.subscriptions;
        let mut wanted = 0;
        for (patterns, stream) in &mut self.live {
            if patterns.iter().any(|pattern| reference::matches(pattern, &topic)) {
                wanted += 1;
                // What it should not have got would have come before.
                assert_eq!(stream.message().await.topic, topic, "to {patterns:?}");
            }
        }
        assert_eq!(taken, wanted, "{topic:?}");
        wanted
    }
}

#[tokio::test]
async fn the_index_agrees_with_trying_each_pattern_while_patterns_come_go_and_are_merged() {
    let broker = Broker::with(&LAYOUT);
    let client = broker.client().await;
    let mut churn = Churn::new(&broker, near).await;
    let mut watched = Watched { client, live: Vec::new(), chance: Chance::of_seed(1), added: 0 };
    let (before, deadline) = (merges(&broker).await, Instant::now() + LIMIT);
    let (mut round, mut heard) = (0, 0);
    while round < rounds(40) || merges(&broker).await < before + MERGES {
        assert!(round < rounds(40) || Instant::now() < deadline, "nothing is merged");
        churn.step().await;
        churn.step().await;
        tokio::time::sleep(PAUSE).await;
        for _ in 0..4 {
            watched.change().await;
            watched.change().await;
            heard += watched.compare().await;
        }
        round += 1;
    }
    println!("{} merges in {round} rounds", merges(&broker).await - before);
    assert!(watched.added > round && heard > 2 * round as u32, "{} added, {heard} heard", watched.added);
    for (_, stream) in &mut watched.live {
        assert!(tokio::time::timeout(Duration::ZERO, stream.next()).await.is_err(), "too much came");
    }
}
