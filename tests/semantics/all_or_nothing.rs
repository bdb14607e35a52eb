//! SPEC §3.11: a publish that was refused has been enqueued nowhere; one that was confirmed is in the queue of every
//! subscription counted in `subscriptions`. Also where many publishers race for the last places.

use std::collections::BTreeSet;
use std::time::Duration;

use tinybroker::proto::{OpenSubscription, PublishFailure};
use tonic::Code;

use crate::support::*;

/// Groups that refuse when they are full, on all shards.
const GROUPS: u32 = 6;
const MAX_PENDING: u64 = 15;
const ROUNDS: u32 = 25;
/// Messages that each publisher sends at once.
const BURST: u32 = 20;
const REST: Duration = Duration::from_millis(15);
/// What is published last.
const END: &str = "end";

/// What became of the messages of one publisher.
#[derive(Default)]
struct Outcome {
    confirmed: Vec<String>,
    refused: usize,
}

impl Outcome {
    fn confirmed(&mut self, text: String, subscriptions: u32) {
        assert_eq!(subscriptions, GROUPS, "{text} is in all groups");
        self.confirmed.push(text);
    }

    fn refused(&mut self, code: i32, words: &str) {
        assert_eq!(code, Code::ResourceExhausted as i32, "{words}");
        assert!(words.contains("is full"), "{words}");
        self.refused += 1;
    }

    /// Texts of a series, and those of them that failed.
    fn series(&mut self, texts: Vec<String>, failures: &[PublishFailure]) {
        failures.iter().for_each(|failure| self.refused(failure.code, &failure.message));
        let failed: BTreeSet<u64> = failures.iter().map(|failure| failure.index).collect();
        let went = (0..).zip(texts).filter(|(index, _)| !failed.contains(index));
        self.confirmed.extend(went.map(|(_, text)| text));
    }
}

fn texts(name: &str, round: u32) -> impl Iterator<Item = String> {
    (0..BURST).map(move |number| format!("{name} {round} {number}"))
}

async fn by_call(client: Client, name: &'static str) -> Outcome {
    let mut outcome = Outcome::default();
    for round in 0..ROUNDS {
        let calls = texts(name, round).map(|text| {
            let client = client.clone();
            tokio::spawn(async move { (client.try_publish(message("a", &text)).await, text) })
        });
        for call in calls.collect::<Vec<_>>() {
            match call.await.expect("no panic") {
                (Ok(answer), text) => outcome.confirmed(text, answer.subscriptions),
                (Err(status), _) => outcome.refused(status.code() as i32, status.message()),
            }
        }
    }
    outcome
}

async fn by_batch(client: Client, name: &'static str) -> Outcome {
    let mut outcome = Outcome::default();
    for round in 0..ROUNDS {
        let batch = texts(name, round).map(|text| message("a", &text)).collect();
        let answer = client.publish_batch(batch).await;
        for (index, result) in (0..).zip(&answer.results) {
            if !answer.failures.iter().any(|failure| failure.index == index) {
                assert_eq!(result.subscriptions, GROUPS, "message {index} of a batch is in all groups");
            }
        }
        outcome.series(texts(name, round).collect(), &answer.failures);
    }
    outcome
}

async fn by_stream(client: Client, name: &'static str) -> Outcome {
    let mut publisher = client.publisher().await;
    let mut sent = Vec::new();
    for round in 0..ROUNDS {
        for text in texts(name, round) {
            publisher.send(message("a", &text));
            sent.push(text);
        }
        publisher.settled(sent.len() as u64).await;
    }
    let told = publisher.finish().await;
    assert_eq!(told.unheard, 0);
    let mut outcome = Outcome::default();
    outcome.series(sent, &told.failures);
    outcome
}

/// Takes all that comes to one group up to the end, now and then with a rest.
async fn drain(mut stream: Stream, number: u32) -> Vec<String> {
    let mut taken = Vec::new();
    loop {
        let text = stream.take().await;
        if text == END {
            return taken;
        }
        taken.push(text);
        // Each group rests at other times, so that each is full at times while others have room.
        if (taken.len() as u32 + number * 7).is_multiple_of(40) {
            tokio::time::sleep(REST).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_publishers_fill_all_groups_alike() {
    let broker = Broker::start();
    let mut drains = Vec::new();
    for number in 0..GROUPS {
        let open = OpenSubscription {
            max_pending: MAX_PENDING,
            max_in_flight: 1 + number % 3,
            ..balanced(&format!("group {number}"), &["a"])
        };
        let (stream, _) = broker.client().await.subscribe(open).await;
        drains.push(tokio::spawn(drain(stream, number)));
    }
    let mut publishers = Vec::new();
    for name in ["call 1", "call 2"] {
        publishers.push(tokio::spawn(by_call(broker.client().await, name)));
    }
    for name in ["batch 1", "batch 2"] {
        publishers.push(tokio::spawn(by_batch(broker.client().await, name)));
    }
    for name in ["stream 1", "stream 2"] {
        publishers.push(tokio::spawn(by_stream(broker.client().await, name)));
    }
    let mut confirmed = Vec::new();
    let mut refused = 0;
    for publisher in publishers {
        let outcome = publisher.await.expect("no panic");
        assert!(outcome.refused > 0 && !outcome.confirmed.is_empty(), "each has met both");
        confirmed.extend(outcome.confirmed);
        refused += outcome.refused;
    }
    assert_eq!(confirmed.len() + refused, (6 * ROUNDS * BURST) as usize);
    let client = broker.client().await;
    while client.try_publish(message("a", END)).await.is_err() {
        tokio::time::sleep(REST).await;
    }
    confirmed.sort();
    for (number, drain) in drains.into_iter().enumerate() {
        let mut taken = drain.await.expect("no panic");
        assert_order(&taken);
        taken.sort();
        assert_eq!(taken, confirmed, "group {number}");
    }
    let stats = broker.stats_when("the acks", |stats| stats.in_flight == 0).await;
    assert_eq!((stats.waiting, stats.message_bytes), (0, 0));
    assert_eq!(stats.counters["accepted"], (confirmed.len() as u64 + 1) * u64::from(GROUPS));
}

/// What came by one batch or stream came in its order.
fn assert_order(taken: &[String]) {
    for name in ["batch 1", "batch 2", "stream 1", "stream 2"] {
        let own = taken.iter().filter_map(|text| text.strip_prefix(name));
        let places: Vec<(u32, u32)> = own
            .map(|text| {
                let mut parts = text.split_whitespace().map(|part| part.parse().expect("a number"));
                (parts.next().expect("a round"), parts.next().expect("a place"))
            })
            .collect();
        assert!(places.is_sorted(), "{name}: {places:?}");
    }
}
