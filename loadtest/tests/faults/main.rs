//! The load test against brokers that keep the contract, and against ones that break it in a known way.
//!
//! Each test runs the real program. Most faults strike the messages [`STRUCK`], so it is known which ones the
//! ledger must name, how many they are, and that it may name nothing else.

mod deaths;
mod endings;
mod fake;
mod program;
mod promises;

use std::collections::BTreeMap;

use fake::{FakeBroker, Fault, STRUCK};
use program::{Said, run};
use serde_json::json;

/// Publishes in one row, so that a message's place is its sequence number.
const QUEUE: &str = "queue --publishers 1 --publish stream";
const FANOUT: &str = "fanout --subscribers 3 --connections 2 --publish stream";

/// A kind of broken promise: in JSON, and in words.
type Promise = (&'static str, &'static str);
const LOST: Promise = ("lost", "lost");
const DOUBLED: Promise = ("doubled", "doubled");
const TWO_HOLDERS: Promise = ("two_holders", "with two holders at once");
const REORDERED: Promise = ("reordered", "out of order");
const UNPUBLISHED: Promise = ("unpublished", "delivered though not published");
const MISDELIVERED: Promise = ("misdelivered", "delivered to a wrong receiver");
const MISCOUNTED: Promise = ("miscounted", "confirmed with a wrong count");
const MISNUMBERED: Promise = ("misnumbered", "delivered with a wrong attempt");
const UNSETTLED: Promise = ("unsettled", "delivered and not settled");

/// Where messages never settle, a run waits for as long as it may: all others must have settled by then.
const LOSSY: &str = "--rate 500 --drain 700ms";

/// A run against a broker of its own: a short one, and where the machine is too busy to get far in it, a longer one.
async fn against(fault: Fault, arguments: &str) -> Said {
    let short = against_for(fault, "300ms", arguments).await;
    let got_far = short.report.is_null() || STRUCK.iter().all(|&struck| short.count("sent") > struck + 1);
    if got_far { short } else { against_for(fault, "5s", arguments).await }
}

async fn against_for(fault: Fault, duration: &str, arguments: &str) -> Said {
    let broker = FakeBroker::start(fault);
    run(&format!("{arguments} --duration {duration} --warm-up 0s --broker {}", broker.address)).await
}

/// Passes, with every message delivered so many times.
async fn passes(fault: Fault, arguments: &str, copies: u64) {
    let said = against(fault, arguments).await;
    assert_eq!(said.code, 0, "{arguments}: {said}");
    assert!(said.words().ends_with("The ledger is in order."), "{said}");
    let sent = said.count("sent");
    assert!(sent > 0, "{said}");
    assert_eq!(said.count("delivered"), sent * copies, "{arguments}: {said}");
    for nothing in ["refused", "unknown", "redelivered"] {
        assert_eq!(said.count(nothing), 0, "{nothing}: {said}");
    }
    assert_eq!(said.verdict()["broken"], json!({}), "{said}");
}

/// Fails with exactly these broken promises, each named by the sequence numbers of its messages, at so many receivers.
async fn fails(fault: Fault, arguments: &str, broken: &[(Promise, [u64; 3])], receivers: u64) {
    let said = against(fault, arguments).await;
    assert_eq!(said.code, 1, "{arguments}: {said}");
    let words = said.words();
    assert!(words.ends_with("FAILED: the ledger shows broken promises."), "{said}");
    let verdict = said.verdict();
    let kinds: BTreeMap<_, _> =
        broken.iter().map(|((kind, _), named)| (kind, receivers * named.len() as u64)).collect();
    assert_eq!(verdict["broken"], json!(kinds), "{arguments}: {said}");
    let named: Vec<&str> =
        verdict["named"].as_array().expect("names").iter().filter_map(|name| name.as_str()).collect();
    for ((_, promise), sequences) in broken {
        for sequence in sequences {
            let begin = format!("{promise}: message {sequence} of lane \"");
            let mut about = named.iter().filter(|name| name.starts_with(&begin));
            assert!(about.any(|name| words.contains(name)), "{arguments}: `{begin}` is not said: {said}");
        }
    }
}

/// The run cannot be made, and one line says why.
fn cannot_be_made(said: &Said, why: &str) {
    assert_eq!(said.code, 3, "{said}");
    assert!(said.report.is_null(), "{said}");
    let lines: Vec<&str> = said.stderr.lines().collect();
    assert!(
        matches!(lines[..], [line] if line.starts_with("tinybroker-loadtest: ") && line.contains(why)),
        "{said}"
    );
}
