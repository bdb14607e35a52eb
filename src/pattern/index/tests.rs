//! What an index as a whole must get right; random scripts are in `tests/pattern_index`.

use super::journal::MOST_CHANGES;
use super::*;

pub(super) fn parsed(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|t| Pattern::parse(t).unwrap()).collect()
}

pub(super) fn matching(index: &mut Index<u32>, topic: &str) -> Vec<u32> {
    let mut keys = Vec::new();
    index.matching(topic, &mut keys);
    keys
}

#[test]
fn a_key_comes_once_however_many_of_its_patterns_match() {
    let mut index = Index::new();
    index.insert(7, &parsed(&["a.b", "a.*", "*", "{*,a.b}", "*"])).unwrap();
    index.insert(3, &parsed(&["a.*", r"a\.b"])).unwrap();
    assert_eq!(index.patterns(), 5);
    assert_eq!(matching(&mut index, "a.b"), [3, 7]);
    assert_eq!(matching(&mut index, "b"), [7]);
}

#[test]
fn appends_and_leaves_what_was_there() {
    let mut index = Index::new();
    index.insert(2, &parsed(&["a", "a*"])).unwrap();
    index.insert(1, &parsed(&["a"])).unwrap();
    let mut keys = vec![9, 9, 1];
    index.matching("a", &mut keys);
    assert_eq!(keys, [9, 9, 1, 1, 2]);
    index.matching("x", &mut keys);
    assert_eq!(keys, [9, 9, 1, 1, 2]);
}

#[test]
fn removal_forgets_a_pattern_with_its_last_holder() {
    let mut index = Index::new();
    let patterns = parsed(&["{a,b}", "x*", "a"]);
    index.insert(1, &patterns).unwrap();
    index.insert(2, &patterns).unwrap();
    index.remove(1, &patterns);
    index.remove(1, &patterns);
    index.remove(3, &patterns);
    assert_eq!(matching(&mut index, "a"), [2]);
    assert_eq!(matching(&mut index, "xy"), [2]);
    index.remove(2, &patterns[..1]);
    assert_eq!(matching(&mut index, "a"), [2]);
    assert!(matching(&mut index, "b").is_empty());
    index.remove(2, &patterns);
    assert!(index.is_empty());
    assert_eq!((index.overlay.len(), index.bounds.distinct()), (0, 0));
}

#[test]
fn a_bound_refuses_all_of_the_patterns_or_none() {
    let mut index = Index::with_bounds(3, 1);
    index.insert(1, &parsed(&["aaa*", "bbb"])).unwrap();
    let refused = index.insert(2, &parsed(&["ccc", "ddd"]));
    assert_eq!(refused, Err(IndexError::TooManyPatterns { limit: 3 }));
    let refused = index.insert(2, &parsed(&["a?", "b?"]));
    assert_eq!(refused, Err(IndexError::TooManyPatterns { limit: 3 }));
    assert_eq!(index.patterns(), 2);
    assert!(matching(&mut index, "ccc").is_empty());

    // What is held already takes no room, and a repeat takes it once.
    index.insert(2, &parsed(&["aaa*", "a?", "bbb", "a?"])).unwrap();
    index.insert(3, &parsed(&["a?"])).unwrap();
    index.remove(1, &parsed(&["bbb"]));
    index.remove(2, &parsed(&["bbb"]));
    let refused = index.insert(3, &parsed(&["b?"]));
    assert_eq!(refused, Err(IndexError::TooUnselective { limit: 1 }));
    index.insert(3, &parsed(&["*"])).unwrap();
    index.remove(2, &parsed(&["a?"]));
    index.remove(3, &parsed(&["a?"]));
    index.insert(3, &parsed(&["b?"])).unwrap();
}

#[test]
fn errors_say_what_to_do() {
    assert_eq!(
        IndexError::TooManyPatterns { limit: 5 }.to_string(),
        "too many patterns: limit 5 distinct ones on a shard, braces expanded; \
         close unused subscriptions, or let several use the same pattern"
    );
    assert_eq!(
        IndexError::TooUnselective { limit: 5 }.to_string(),
        "too unselective: limit 5 patterns on a shard without 3 literal bytes in a row, braces expanded; \
         put more of the topic into the pattern, or subscribe to `*`"
    );
    assert_eq!(
        IndexError::TooCrowded { limit: 5 }.to_string(),
        "too many similar: limit 5 patterns on a shard that come after 4 with the same literal bytes and differ from \
         them in `?`, classes or short texts, braces expanded; put more of the topic into the pattern"
    );
}

#[test]
fn each_expansion_counts_towards_the_bounds() {
    let mut index = Index::with_bounds(5, 2);
    let refused = index.insert(1, &parsed(&["{a,b,c}{x,y}"]));
    assert_eq!(refused, Err(IndexError::TooManyPatterns { limit: 5 }));
    let refused = index.insert(1, &parsed(&["{a,b,c}*"]));
    assert_eq!(refused, Err(IndexError::TooUnselective { limit: 2 }));
    index.insert(1, &parsed(&["{a,b,c,d,e}"])).unwrap();
    assert_eq!(index.patterns(), 1);
    index.remove(1, &parsed(&["{a,b,c,d,e}"]));
    index.insert(1, &parsed(&["{a,b}*", "{abc*,*abc}"])).unwrap();
}

pub(super) fn merge<K: Copy + Ord>(index: &mut Index<K>) {
    let merged = index.begin_merge().unwrap().run();
    drop(index.finish_merge(merged));
}

#[test]
fn what_comes_and_goes_during_a_merge_is_there_and_gone_after_it() {
    let mut index = Index::new();
    let all = parsed(&["a*", "*b", "a*b", "*abb*", "ab?*", "axb", "{x,a}*b"]);
    for (key, pattern) in (0..).zip(&all) {
        index.insert(key, std::slice::from_ref(pattern)).unwrap();
        index.insert(key + 10, std::slice::from_ref(pattern)).unwrap();
        if key == 2 {
            merge(&mut index);
        }
    }
    let job = index.begin_merge().unwrap();
    assert!(index.begin_merge().is_none());
    // From the base, from what is being merged, and what came since.
    index.remove(0, &all[..1]);
    index.remove(10, &all[..1]);
    index.remove(3, &all[3..4]);
    index.remove(13, &all[3..4]);
    index.insert(20, &parsed(&["ab*", "*bb"])).unwrap();
    index.insert(21, &parsed(&["abb"])).unwrap();
    index.remove(20, &parsed(&["*bb"]));
    let wanted = [1, 2, 4, 6, 11, 12, 14, 16, 20, 21];
    assert_eq!(matching(&mut index, "abb"), wanted);
    let merged = std::thread::spawn(move || job.run()).join().unwrap();
    drop(index.finish_merge(merged));
    assert_eq!(matching(&mut index, "abb"), wanted);
    merge(&mut index);
    assert_eq!(matching(&mut index, "abb"), wanted);
    assert_eq!(index.base.len(), 6);
    // What was gone may come back.
    index.insert(0, &all[..1]).unwrap();
    assert_eq!(matching(&mut index, "abb"), [&[0][..], &wanted].concat());
}

#[test]
fn a_merge_gives_ids_back_once_nothing_names_them() {
    let mut index = Index::new();
    let many: Vec<Pattern> = (0..1_000).map(|n| Pattern::parse(&format!("many.{n}.*")).unwrap()).collect();
    for _ in 0..10 {
        index.insert(0, &many).unwrap();
        merge(&mut index);
        index.remove(0, &many);
        assert_eq!(index.gone.len(), many.len());
        // Their ids are still in the base: others get new ones.
        index.insert(1, &many).unwrap();
        assert_eq!(matching(&mut index, "many.7.x"), [1]);
        index.remove(1, &many);
        merge(&mut index);
        assert_eq!((index.base.len(), index.gone.len(), index.overlay.len()), (0, 0, 0));
        assert!(index.begin_merge().is_none());
    }
    // Twice as many as were held, and those that rest.
    assert!(index.registry.ids() <= 2 * many.len() + 200, "{}", index.registry.ids());
}

#[test]
fn a_merge_is_due_by_what_changed() {
    let mut index = Index::new();
    let many: Vec<Pattern> =
        (0..=MERGE_CHANGES).map(|n| Pattern::parse(&format!("many.{n}.*")).unwrap()).collect();
    index.insert(0, &many[..IDLE_MERGE_CHANGES]).unwrap();
    assert!(!index.is_merge_due(true) && !index.is_merge_due(false));
    index.insert(0, &many[..MERGE_CHANGES]).unwrap();
    assert!(index.is_merge_due(true) && !index.is_merge_due(false));
    index.insert(0, &many).unwrap();
    assert!(index.is_merge_due(false));
    let job = index.begin_merge().unwrap();
    assert!(!index.is_merge_due(true));
    drop(index.finish_merge(job.run()));
    // Removals make one due too: otherwise a base would hold on to what is gone.
    index.remove(0, &many[..IDLE_MERGE_CHANGES]);
    assert!(!index.is_merge_due(true));
    index.remove(0, &many);
    assert!(index.is_merge_due(true) && index.is_merge_due(false));
}

/// Asks until the answer is remembered.
fn remember(index: &mut Index<u32>, topic: &str) {
    for _ in 0..3 {
        matching(index, topic);
    }
    let hash = index.registry.hash(topic);
    assert!(index.cache.find(hash, topic, &index.journal, |_| true).is_some());
}

#[test]
fn a_remembered_answer_follows_what_comes_and_goes() {
    let mut index = Index::new();
    for topic in ["ab", "none"] {
        remember(&mut index, topic);
        assert!(matching(&mut index, topic).is_empty());
    }
    index.insert(1, &parsed(&["a*"])).unwrap();
    assert_eq!(matching(&mut index, "ab"), [1]);
    // A second holder, and one that leaves, are no change at all.
    index.insert(2, &parsed(&["a*"])).unwrap();
    index.remove(1, &parsed(&["a*"]));
    assert_eq!(matching(&mut index, "ab"), [2]);
    for n in 0..MOST_CHANGES as u32 + 1 {
        index.insert(10 + n, &parsed(&[&format!("?b{}", "*".repeat(n as usize + 1))])).unwrap();
    }
    assert_eq!(matching(&mut index, "ab").len(), MOST_CHANGES as usize + 2);
    assert!(matching(&mut index, "none").is_empty());
    index.remove(2, &parsed(&["a*"]));
    assert_eq!(matching(&mut index, "ab")[0], 10);
}

#[test]
fn a_remembered_answer_does_not_name_who_got_an_id_later() {
    let mut index = Index::new();
    index.insert(1, &parsed(&["a*"])).unwrap();
    remember(&mut index, "ab");
    index.remove(1, &parsed(&["a*"]));
    // The answer is asked for all the time, so it is never far out of date.
    let mut reused = false;
    for n in 0..1_000 {
        let pattern = parsed(&[&format!("other.{n}.*")]);
        index.insert(7, &pattern).unwrap();
        reused |= index.registry.find(pattern[0].text()) == Some(0);
        assert!(matching(&mut index, "ab").is_empty(), "after {n}");
        if n % 2 == 0 {
            index.remove(7, &pattern);
        }
    }
    assert!(reused, "its id came round");
}

#[test]
fn ends_do_not_overlap_wherever_they_are_kept() {
    let mut index = Index::new();
    index.insert(1, &parsed(&["ab*ba"])).unwrap();
    for _ in 0..2 {
        assert!(matching(&mut index, "aba").is_empty());
        assert_eq!(matching(&mut index, "abba"), [1]);
        index.begin_merge().map(|job| index.finish_merge(job.run()));
    }
}

#[test]
fn a_job_may_go_to_another_thread() {
    fn crosses<T: Send + 'static>() {}
    crosses::<MergeJob>();
    crosses::<Merged>();
    crosses::<Retired>();
}

/// Cost by what is looked at: a search collects what hangs on the texts of its topic, and nothing else.
#[test]
fn what_does_not_match_is_not_looked_at() {
    let mut index = Index::new();
    let shapes: [fn(usize) -> String; 5] = [
        |n| format!("tenant-{n}.order.*"),
        |n| format!("tenant-{n}.*.placed"),
        |n| format!("*.order-{n}"),
        |n| format!("*.invoice-{n}.*"),
        |n| format!("tenant-{n}.order-?[0-9].*"),
    ];
    for n in 0..2_000 {
        for (key, shape) in (0..).zip(shapes) {
            index.insert(n as u32 * 5 + key, &parsed(&[&shape(n)])).unwrap();
        }
    }
    for merged in [false, true] {
        if merged {
            let job = index.begin_merge().unwrap();
            drop(index.finish_merge(job.run()));
        }
        for (topic, matched) in [("tenant-77.order.placed", 2), ("a.invoice-1999.b", 1), ("nobody", 0)] {
            // Each time as if it came first.
            index.search(index.registry.hash(topic), topic);
            assert_eq!(index.scratch.matched.len(), matched, "{topic}, merged: {merged}");
            let looked_at = index.scratch.found.len();
            assert!(looked_at <= matched + 2, "{topic}: {looked_at} of 10,000 patterns, merged: {merged}");
        }
    }
}

/// So many that have to be tried, on topics so long, that the index looks where their characters lie.
#[test]
fn many_tries_on_a_long_topic_agree_with_the_plain_matcher() {
    let mut index = Index::with_bounds(10_000, 10_000);
    let words = ["a", "b", "ab.", "ba", "é", "?", "[a-b]", "[!.]", "*", "abc"];
    let word = |n: usize, place: usize| words[(n * 7 + n / 10 * 3 + place * (n % 5 + 1)) % words.len()];
    let texts =
        (0..400).map(|n| format!("*{}*", (0..n % 7 + 1).map(|place| word(n, place)).collect::<String>()));
    let patterns: Vec<Pattern> = texts.filter_map(|text| Pattern::parse(&text).ok()).collect();
    for (key, pattern) in (0..).zip(&patterns) {
        // Some are too many of a kind.
        let _ = index.insert(key, std::slice::from_ref(pattern));
    }
    let held: Vec<u32> = (0..patterns.len() as u32)
        .filter(|key| index.registry.find(patterns[*key as usize].text()).is_some())
        .collect();
    assert!(held.len() > 200, "{}", held.len());
    for part in ["a", "ab.", "é", "abcé", "ba.abcab", ".é.", "b"] {
        for len in [1, 40, 600, TOPIC_BYTES, 2 * TOPIC_BYTES] {
            let topic = part.repeat((len / part.len()).max(1));
            let wanted = held.iter().copied().filter(|key| patterns[*key as usize].matches(&topic));
            assert!(matching(&mut index, &topic).into_iter().eq(wanted), "{topic}");
            let tries = index.scratch.found.iter().filter(|posting| posting.verify()).count();
            assert!(
                ![600, TOPIC_BYTES].contains(&len) || is_worth_reading(&topic, tries),
                "{tries} tries on {topic}"
            );
        }
    }
}
