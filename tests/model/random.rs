//! Random scripts, each from its own seed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::{panic, thread};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use tinybroker::core::Counter;

use crate::script::{Script, script};
use crate::world;

/// Steps in all, where `TINYBROKER_MODEL_STEPS` does not say.
const STEPS: u64 = 200_000;
/// Steps of a script on average.
const STEPS_PER_SCRIPT: u64 = 130;
/// Tries to make a failing script smaller.
const SHRINKING: u32 = 20_000;

/// What enough scripts come across, every counter beside, or the model is blind somewhere.
const MUST_BE_SEEN: [&str; 27] = [
    "Answer Full Bytes",
    "Answer Full Messages",
    "Answer Published",
    "Answer Reserved",
    "Answer Run Published Full Messages",
    "Answer Settled Done",
    "Answer Settled NotAsked",
    "Answer Settled NotInFlight",
    "Answer Settled UnknownSubscription",
    "Created",
    "DeadLetter Discarded",
    "DeadLetter MaxDeliveries",
    "Ended",
    "Member Attached",
    "Member Deliver",
    "Member Differs",
    "Member Draining",
    "Member End OtherSubscription",
    "Member End Overflow",
    "Member End OverflowBytes",
    "Member End ResignOutsideSingleton",
    "Member IdInUse",
    "Member Lagged",
    "Member Left",
    "Member Role Active",
    "Member Role Standby",
    "Member Started",
];

thread_local! {
    /// While a script shrinks, each try that fails would print its panic.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// `TINYBROKER_MODEL_SEED` is the seed of the first script; the others follow it.
#[test]
fn the_core_does_what_its_naive_twin_does() {
    let first = number_from_env("TINYBROKER_MODEL_SEED", 1);
    let scripts = number_from_env("TINYBROKER_MODEL_STEPS", STEPS).div_ceil(STEPS_PER_SCRIPT);
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            usual(info);
        }
    }));
    let lanes = thread::available_parallelism().map_or(1, NonZero::get);
    let seen = thread::scope(|scope| {
        let seeds = |lane| (first..first + scripts).skip(lane).step_by(lanes);
        let lanes: Vec<_> = (0..lanes).map(|lane| scope.spawn(move || play(seeds(lane)))).collect();
        let seen = lanes.into_iter().map(|lane| lane.join().expect("what fails is told"));
        seen.collect::<Result<Vec<_>, String>>()
    });
    let seen: BTreeSet<String> =
        seen.unwrap_or_else(|failure| panic!("{failure}")).into_iter().flatten().collect();
    let counters = Counter::ALL.map(|(_, name)| name);
    for kind in MUST_BE_SEEN.into_iter().chain(counters) {
        assert!(scripts < 300 || seen.contains(kind), "{kind} was never seen: {seen:#?}");
    }
}

/// A script from each seed, until one fails. Returns what was seen.
fn play(seeds: impl Iterator<Item = u64>) -> Result<BTreeSet<String>, String> {
    let seen = RefCell::new(BTreeSet::new());
    for seed in seeds {
        run(seed, &seen).map_err(|failure| {
            format!(
                "{failure}\nagain: TINYBROKER_MODEL_SEED={seed} TINYBROKER_MODEL_STEPS=1 cargo test --test model twin"
            )
        })?;
    }
    Ok(seen.into_inner())
}

/// One script from one seed; where it fails, a smallest one that fails too.
fn run(seed: u64, seen: &RefCell<BTreeSet<String>>) -> Result<(), String> {
    let config =
        Config { cases: 1, max_shrink_iters: SHRINKING, failure_persistence: None, ..Config::default() };
    let halves = [seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), (seed + 1).wrapping_mul(0xD1B5_4A32_D192_ED03)];
    let bytes = halves.map(u64::to_le_bytes).concat();
    // ChaCha would take half the time of a debug build.
    let rng = TestRng::from_seed(RngAlgorithm::XorShift, &bytes);
    QUIET.set(true);
    let outcome = TestRunner::new_with_rng(config, rng)
        .run(&script(), |script| world::run(&script, &mut seen.borrow_mut()).map_err(TestCaseError::fail));
    let outcome = outcome.map_err(|failure| match failure {
        TestError::Fail(reason, script) => shortest(script, reason.to_string()),
        TestError::Abort(reason) => reason.to_string(),
    });
    QUIET.set(false);
    outcome
}

/// Leaves out steps as long as the script still fails: proptest has tried each only once.
fn shortest(mut script: Script, mut failure: String) -> String {
    let mut length = usize::MAX;
    while script.steps.len() < length {
        length = script.steps.len();
        for at in (0..length).rev() {
            let mut shorter = script.clone();
            shorter.steps.remove(at);
            if let Some(how) = how_it_fails(&shorter) {
                (script, failure) = (shorter, how);
            }
        }
    }
    format!("{failure}\nin the script: {script:?}")
}

fn how_it_fails(script: &Script) -> Option<String> {
    match panic::catch_unwind(|| world::run(script, &mut BTreeSet::new())) {
        Ok(outcome) => outcome.err(),
        Err(panic) => panic.downcast::<String>().map_or(Some("a panic".to_owned()), |text| Some(*text)),
    }
}

fn number_from_env(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}
