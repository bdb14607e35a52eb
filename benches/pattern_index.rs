//! What it costs to find who wants a topic among up to a million patterns, to add and take patterns meanwhile, and to
//! hold them. Prints one line a figure; arguments choose sections by a part of their name.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tikv_jemallocator::Jemalloc;
use tinybroker::pattern::{Index, MergeJob, Merged, Pattern, Retired};

/// Counts the bytes that are live, as they were asked for.
struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static ALLOCATIONS: AtomicIsize = AtomicIsize::new(0);

fn grow(bytes: isize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
    ALLOCATIONS.fetch_add(1, Relaxed);
}

// SAFETY: every call goes to the broker's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size() as isize);
        unsafe { Jemalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size() as isize);
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Relaxed);
        unsafe { Jemalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size as isize - layout.size() as isize);
        unsafe { Jemalloc.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The CPU time of this thread: what other programs take of the core is left out.
fn cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("the clock is not negative")
}

type Text = fn(usize) -> String;

/// A mix as many tenants of one broker would have it: half begin with what they look for, a fifth are topics, three in
/// twenty have the star in the middle, two at the front, one has the rest.
fn mixed(number: usize) -> String {
    match number % 20 {
        0..10 => format!("tenant-{number}.order.*"),
        10..14 => format!("tenant-{number}.order.placed"),
        14..17 => format!("tenant-{number}.*.placed"),
        17..19 => format!("*.order-{number}"),
        _ if number % 40 < 20 => format!("tenant-{number}.order-?.*"),
        _ => format!("*-{number}.order-[0-9a-f]*.placed"),
    }
}

fn prefix_or_exact(number: usize) -> String {
    if number % 7 < 5 { format!("tenant-{number}.order.*") } else { format!("tenant-{number}.order.placed") }
}

fn shared_prefix(number: usize) -> String {
    format!("company.eu-west.production.{}", mixed(number).trim_start_matches('*'))
}

fn stars_first(number: usize) -> String {
    match number % 4 {
        0 => format!("*.order-{number}"),
        1 => format!("*.tenant-{number}.*"),
        2 => format!("*order.{number}.placed"),
        _ => format!("*-{number}.order-?*"),
    }
}

/// Topics near the patterns, each another one: about half of them match.
fn topic(text: Text, size: usize, nth: usize) -> String {
    let number = nth.wrapping_mul(7_919) % size;
    let plain = text(number).replace("[0-9a-f]", "a").replace('?', "7");
    let filled = plain.replace('*', &format!("x{nth}.order"));
    if nth.is_multiple_of(2) { filled } else { format!("{filled}.{nth}") }
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).expect("a pattern")
}

/// A builder thread: takes jobs, gives back results, drops what was replaced.
struct Builder {
    jobs: mpsc::Sender<MergeJob>,
    results: mpsc::Receiver<Merged>,
    waste: mpsc::Sender<Retired>,
}

impl Builder {
    fn start() -> Self {
        let (jobs, inbox) = mpsc::channel::<MergeJob>();
        let (outbox, results) = mpsc::channel();
        let (waste, retired) = mpsc::channel::<Retired>();
        thread::spawn(move || {
            inbox.iter().map(MergeJob::run).try_for_each(|merged| {
                let sent = outbox.send(merged);
                retired.try_iter().for_each(drop);
                sent
            })
        });
        Self { jobs, results, waste }
    }
}

fn merge(index: &mut Index<usize>) {
    if let Some(job) = index.begin_merge() {
        let merged = job.run();
        drop(index.finish_merge(merged));
    }
}

/// Each pattern held by a key of its own, merged as often as is due.
fn filled(text: Text, size: usize) -> Index<usize> {
    let mut index = Index::new();
    for number in 0..size {
        index.insert(number, &[pattern(&text(number))]).expect("there is room");
        if index.is_merge_due(false) {
            merge(&mut index);
        }
    }
    index
}

struct Cell {
    mean: f64,
    p99: u64,
    hits: usize,
}

fn measure(index: &mut Index<usize>, topics: &[String]) -> Cell {
    let mut keys = Vec::new();
    let (first, second) = topics.split_at(topics.len() / 2);
    let mut hits = 0;
    let begun = cpu();
    for topic in first {
        keys.clear();
        index.matching(topic, &mut keys);
        hits += keys.len();
    }
    let mean = (cpu() - begun).as_nanos() as f64 / first.len() as f64;
    let mut each: Vec<u64> = Vec::with_capacity(second.len());
    for topic in second {
        keys.clear();
        let begun = Instant::now();
        index.matching(black_box(topic), &mut keys);
        each.push(begun.elapsed().as_nanos() as u64);
    }
    Cell { mean, p99: percentile(&mut each, 99), hits: hits * 100 / first.len() }
}

fn percentile(each: &mut [u64], percent: usize) -> u64 {
    each.sort_unstable();
    each[each.len() * percent / 100]
}

fn uncached(name: &str, text: Text, size: usize) {
    let mut index = filled(text, size);
    let topics: Vec<String> = (0..400_000).map(|nth| topic(text, size, nth)).collect();
    let state = |index: &mut Index<usize>, state: &str| {
        let Cell { mean, p99, hits } = measure(index, &topics);
        println!("{name} {size} {state}: mean {mean:.0} ns, p99 {p99} ns, {hits} % matched");
    };
    state(&mut index, "with overlay");
    merge(&mut index);
    state(&mut index, "merged");
}

fn cached() {
    let mut index = filled(mixed, 100_000);
    merge(&mut index);
    for count in [100, 10_000] {
        let topics: Vec<String> = (0..count).map(|nth| topic(mixed, 100_000, nth * 2)).collect();
        let mut keys = Vec::with_capacity(100);
        let mut pass = |index: &mut Index<usize>, rounds: usize| {
            let (begun, allocations) = (cpu(), ALLOCATIONS.load(Relaxed));
            for topic in topics.iter().cycle().take(rounds * count) {
                keys.clear();
                index.matching(black_box(topic), &mut keys);
            }
            let nanos = (cpu() - begun).as_nanos() as f64 / (rounds * count) as f64;
            (nanos, ALLOCATIONS.load(Relaxed) - allocations)
        };
        pass(&mut index, 3);
        let (nanos, allocations) = pass(&mut index, 2_000_000 / count);
        println!("cached hit, {count} topics: {nanos:.0} ns, {allocations} allocations");
    }
}

fn flat() {
    let mut index = filled(mixed, 10_000);
    let mut keys = Vec::new();
    let mut live = Vec::new();
    for nth in 0..5_000_000usize {
        keys.clear();
        // Each comes twice, so that all of them are remembered.
        let topic = topic(mixed, 10_000, nth / 2);
        index.matching(&topic, &mut keys);
        if nth % 1_000_000 == 999_999 {
            live.push(LIVE.load(Relaxed) / 1024);
        }
    }
    println!("2.5 million topics twice: KiB live after each million {live:?}");
}

fn cached_churn() {
    let mut index = filled(mixed, 100_000);
    merge(&mut index);
    let topics: Vec<String> = (0..1_000).map(|nth| topic(mixed, 100_000, nth * 2)).collect();
    let guests: Vec<Pattern> = (100_000..110_000).map(|number| pattern(&mixed(number))).collect();
    let mut guests = guests.iter().cycle();
    let mut keys = Vec::new();
    let mut last = None;
    let begun = cpu();
    let messages = 2_000_000;
    for nth in 0..messages {
        if nth % 200 == 0 {
            if let Some(guest) = last.take() {
                index.remove(usize::MAX, std::slice::from_ref(guest));
            }
            let guest = guests.next().expect("they cycle");
            index.insert(usize::MAX, std::slice::from_ref(guest)).expect("there is room");
            last = Some(guest);
        }
        keys.clear();
        index.matching(&topics[nth % topics.len()], &mut keys);
    }
    let nanos = (cpu() - begun).as_nanos() as f64 / messages as f64;
    println!("1,000 topics, a subscribe and an unsubscribe each 200 messages: {nanos:.0} ns a message");
}

fn load(size: usize, seconds: u64) {
    // Room for those that come.
    let size = size - 10_000;
    let mut index = filled(mixed, size);
    merge(&mut index);
    let builder = Builder::start();
    let (mut takes, mut gives, mut matches) = (Vec::new(), Vec::new(), Vec::new());
    let (mut longest, mut merges) = (Duration::ZERO, Vec::new());
    let mut timed = |into: &mut Vec<u64>, work: &mut dyn FnMut()| {
        let (begun, used) = (Instant::now(), cpu());
        work();
        longest = longest.max(cpu() - used);
        into.push(begun.elapsed().as_nanos() as u64);
    };
    let begun = Instant::now();
    let mut keys = Vec::new();
    for pair in 0..seconds * 5_000 {
        while begun.elapsed() < Duration::from_micros(pair * 200) {
            thread::yield_now();
        }
        let number = size + pair as usize;
        let guest = [pattern(&mixed(number))];
        timed(&mut takes, &mut || index.insert(number, &guest).expect("there is room"));
        // Any of the old goes, nearly always from the base, each time another.
        let old = pair as usize * 7_919 % size;
        let pattern = [pattern(&mixed(old))];
        timed(&mut gives, &mut || index.remove(old, &pattern));
        let topic = topic(mixed, size, pair as usize);
        timed(&mut matches, &mut || {
            keys.clear();
            index.matching(&topic, &mut keys);
        });
        let mut step = Vec::new();
        if index.is_merge_due(false) || pair == 5_000 {
            timed(&mut step, &mut || {
                index.begin_merge().into_iter().for_each(|job| builder.jobs.send(job).expect("it runs"));
            });
        }
        if let Ok(merged) = builder.results.try_recv() {
            let mut merged = Some(merged);
            timed(&mut step, &mut || {
                let retired = merged.take().map(|merged| index.finish_merge(merged));
                retired.into_iter().for_each(|retired| builder.waste.send(retired).expect("it runs"));
            });
        }
        merges.append(&mut step);
    }
    println!("merge steps {merges:?} ns");
    for (name, each) in [("subscribe", &mut takes), ("unsubscribe", &mut gives), ("match", &mut matches)] {
        let mean = each.iter().sum::<u64>() / each.len() as u64;
        println!(
            "5,000 pairs a second at {size}, {name}: mean {mean} ns, p99 {}, max {}",
            percentile(each, 99),
            each[each.len() - 1]
        );
    }
    println!("longest CPU pause {longest:?}");
}

fn memory(size: usize) {
    let before = LIVE.load(Relaxed);
    let mut index = Index::new();
    let mut text_bytes = 0;
    let mut peak = 0;
    let mut building = Duration::ZERO;
    for number in 0..size {
        let text = mixed(number);
        text_bytes += text.len() as isize;
        index.insert(number, &[pattern(&text)]).expect("there is room");
        if index.is_merge_due(false) || number + 1 == size {
            PEAK.store(LIVE.load(Relaxed), Relaxed);
            let begun = cpu();
            merge(&mut index);
            building = cpu() - begun;
            peak = PEAK.load(Relaxed) - before - text_bytes;
        }
    }
    let steady = LIVE.load(Relaxed) - before - text_bytes;
    println!(
        "{size} held: {} bytes a pattern, {} at the peak of the last merge, which took {building:?}",
        steady / size as isize,
        peak / size as isize
    );
    let mut index = Index::new();
    for number in 0..size {
        index.insert(number, &[pattern(&mixed(number))]).expect("there is room");
    }
    let begun = cpu();
    merge(&mut index);
    println!("{size} built at once: {:?}", cpu() - begun);
}

fn inserts(size: usize) {
    let mut index = Index::with_bounds(size + 1, 0);
    let mut each = Vec::with_capacity(size);
    let mut longest = Duration::ZERO;
    for number in 0..size {
        let pattern = [pattern(&mixed(number))];
        let (begun, used) = (Instant::now(), cpu());
        index.insert(number, &pattern).expect("there is room");
        longest = longest.max(cpu() - used);
        each.push(begun.elapsed().as_nanos() as u64);
        if index.is_merge_due(false) {
            merge(&mut index);
        }
    }
    let mean = each.iter().sum::<u64>() / size as u64;
    println!(
        "filling to {size}: mean {mean} ns, p99 {}, longest CPU pause {longest:?}",
        percentile(&mut each, 99)
    );
    let one = [pattern("popular.*")];
    let mut each: Vec<u64> = Vec::with_capacity(size);
    for key in 0..size {
        let begun = Instant::now();
        index.insert(key, &one).expect("there is room");
        each.push(begun.elapsed().as_nanos() as u64);
    }
    println!("{size} holders of one pattern: p99 {} ns, max {}", percentile(&mut each, 99), each[size - 1]);
}

/// Single patterns, and sets within the bounds, on the longest topics.
fn worst() {
    let a = "a".repeat(1024);
    let e = "é".repeat(512);
    let one = |name: &str, texts: &[String], topic: &str| {
        let mut index = Index::new();
        let mut refused = 0;
        for (number, text) in texts.iter().enumerate() {
            refused += usize::from(index.insert(number, &[pattern(text)]).is_err());
        }
        for state in ["overlay", "base"] {
            let mut keys = Vec::new();
            let (mut best, rounds) = (Duration::MAX, 50);
            for round in 0..rounds {
                keys.clear();
                // Another topic each time, of the same length.
                let topic = format!("{}{round:02}", &topic[..topic.len() - 2]);
                let begun = cpu();
                index.matching(&topic, &mut keys);
                best = best.min(cpu() - begun);
            }
            println!(
                "{name}, {} patterns, {refused} refused, in the {state}: {best:?}, {} matched",
                texts.len(),
                keys.len()
            );
            merge(&mut index);
        }
    };
    let repeat = |text: &str, times: usize| text.repeat(times);
    let single = |text: String| vec![text];
    one("no pattern that matches", &single("zzz*".into()), &a);
    one("stars", &single(repeat("*a", 15) + "*b?"), &a);
    one("stars found", &single(repeat("*aaa", 15) + "*"), &a);
    one("a late class", &single("*".to_owned() + &repeat("?", 60) + "[bcd]*"), &a);
    one("classes", &single("*".to_owned() + &repeat("[a-z]", 40) + "[0-9]b*"), &a);
    one(
        "characters of two bytes",
        &single("*".to_owned() + &repeat("?", 40) + "[b-d]*"),
        &(e[..1022].to_owned() + "aa"),
    );
    one("64 expansions", &single("*{a,b}{?,[ab]}{?,[ac]}{?,[ad]}{?,[ae]}{?,[af]}[xy]*".into()), &a);
    let classes = |n: usize| format!("[x-z{}{}]", char::from(b'A' + (n % 26) as u8), n / 26 % 10);
    let unselective: Vec<String> = (0..128).map(|n| format!("*a?{}*", classes(n))).collect();
    one("unselective", &unselective, &a);
    let similar: Vec<String> =
        (0..10_000).map(|n| format!("*aaa*??{}{}*", classes(n), classes(n / 260))).collect();
    one("similar", &similar, &a);
    let nested: Vec<String> = (1..250)
        .flat_map(|n| {
            [
                format!("{}*zz", repeat("a", n)),
                format!("zz*{}", repeat("a", n)),
                format!("*{}*", repeat("a", n)),
            ]
        })
        .collect();
    one("nested", &nested, &a);
    let nested: Vec<String> = (1..250)
        .flat_map(|n| [format!("{}*{n}z", repeat("a", n)), format!("z{n}*{}", repeat("a", n))])
        .collect();
    one("nested ends", &nested, &a);
}

fn main() {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let section = |name: &str, run: &dyn Fn()| {
        if chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str())) {
            run();
        }
    };
    section("cached", &cached);
    section("churn", &cached_churn);
    section("worst", &worst);
    for size in [10_000, 100_000, 1_000_000] {
        section(&format!("mixed_{}k", size / 1000), &|| uncached("mixed", mixed, size));
    }
    section("prefix_or_exact", &|| uncached("prefix or exact", prefix_or_exact, 1_000_000));
    section("shared_prefix", &|| uncached("all share a prefix", shared_prefix, 1_000_000));
    section("stars_first", &|| uncached("all begin with a star", stars_first, 1_000_000));
    section("memory", &|| memory(1_000_000));
    section("inserts", &|| inserts(1_000_000));
    section("load", &|| load(1_000_000, 20));
    section("flat", &flat);
}
