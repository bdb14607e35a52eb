//! The tables of the user's reference, and the matcher against two others that share no code with it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Pattern, PatternErrorKind};

const REFERENCE: &str = include_str!("../../docs/patterns.md");

fn matches(pattern: &str, topic: &str) -> bool {
    Pattern::parse(pattern).unwrap().matches(topic)
}

/// The cells of the table under a heading of the reference, code marks taken off; its head first.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = REFERENCE.split_once(&format!("\n## {heading}\n")).unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|'));
    let cell = |cell: &'static str| cell.trim().trim_matches('`').trim();
    rows.filter(|row| !row.starts_with("| ---"))
        .map(|row| row.trim_matches('|').split('|').map(cell).collect())
        .collect()
}

#[test]
fn dots_in_odd_places() {
    let rows = table("Dots in odd places");
    let topics = &rows[0][1..];
    assert_eq!(topics, ["a..b", ".a", "a.", ".", "a.b.c"]);
    for row in &rows[1..] {
        for (topic, cell) in topics.iter().zip(&row[1..]) {
            assert_eq!(matches(row[0], topic), *cell == "yes", "{} on {topic}", row[0]);
        }
    }
    let patterns: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(patterns, ["a.*", "*.b", "a.*.c", "*", "**", "a*", "*a", "a.*b"]);
    assert_eq!(Pattern::parse("").unwrap_err().kind, PatternErrorKind::Empty);
    // Nobody can publish to the empty topic; what a pattern would say of it is defined all the same.
    assert!(matches("*", "") && matches("**", "") && !matches("a*", "") && !matches("a.*", ""));
}

#[test]
fn examples_of_the_reference() {
    for row in &table("Syntax")[1..] {
        let examples = |cell: &'static str| cell.split(", ").map(|topic| topic.trim_matches('`'));
        let [pattern, _, matched, others] = row[..] else {
            panic!("{row:?}");
        };
        assert!(examples(matched).all(|topic| matches(pattern, topic)), "{row:?}");
        assert!(!examples(others).any(|topic| matches(pattern, topic)), "{row:?}");
    }
}

#[test]
fn errors_of_the_reference() {
    let rows = table("Errors");
    for row in &rows[1..] {
        assert_eq!(Pattern::parse(row[0]).unwrap_err().to_string(), row[1], "{}", row[0]);
    }
    assert!(rows.len() > 6);
}

#[test]
fn dollar_is_plain() {
    let matched = |pattern: &str| {
        let topics = ["$SYS.x", "$x", "x$"];
        topics.iter().filter(|topic| matches(pattern, topic)).count()
    };
    assert_eq!([matched("*"), matched("$*"), matched("$SYS.*")], [3, 2, 1]);
}

#[test]
fn regex_leftovers_are_plain() {
    let topics = [
        "a.b", "axb", "aab", "a+b", "a(b", "ab", "a", "b", "a?b", "{a,b}", "[ab]", "*", "^a$", "a|b", r"\*",
        "",
    ];
    let table: [(&str, &[&str]); 9] = [
        ("a.b", &["a.b"]),
        ("a+b", &["a+b"]),
        ("a(b", &["a(b"]),
        ("[ab]", &["a", "b"]),
        ("a?b", &["a.b", "axb", "aab", "a+b", "a(b", "a?b", "a|b"]),
        ("{a,b}", &["a", "b"]),
        (r"\*", &["*"]),
        ("^a$", &["^a$"]),
        ("a|b", &["a|b"]),
    ];
    for (pattern, wanted) in table {
        let found = topics.iter().filter(|topic| matches(pattern, topic));
        assert!(found.eq(wanted), "{pattern}");
    }
}

#[test]
fn characters_and_line_ends() {
    let (nfc, nfd) = ("caf\u{e9}", "cafe\u{301}");
    assert!(matches("caf*", nfc) && matches("caf*", nfd));
    assert!(!matches(nfc, nfd) && !matches(nfd, nfc));
    assert!(matches("caf?", nfc) && !matches("caf?", nfd) && matches("caf??", nfd));
    assert!(matches("*☕*", "☕") && matches("*☕*", "a☕\nb") && !matches("*☕*", "a"));
    assert!(matches("*\n*", "a\nb") && !matches("*\n*", "ab"));
    assert!(matches("a*b", "a\n\0\r\nb") && matches("a?b", "a\0b") && matches("a[!x]b", "a\nb"));
    assert!(matches("*a", &("☕".repeat(70_000) + "a")));
}

/// Which prefixes of the topic each prefix of the pattern matches, one row of the table at a time.
fn reference(pattern: &str, topic: &str) -> bool {
    let topic: Vec<char> = topic.chars().collect();
    let mut row: Vec<bool> = (0..=topic.len()).map(|end| end == 0).collect();
    for p in pattern.chars() {
        let above = row.clone();
        for end in 0..row.len() {
            row[end] = match p {
                '*' => above[end] || end > 0 && row[end - 1],
                _ => end > 0 && above[end - 1] && (p == '?' || p == topic[end - 1]),
            };
        }
    }
    row[topic.len()]
}

/// A pattern as a tree, to be written down in the whole syntax and matched without parsing.
#[derive(Clone, Debug)]
enum Node {
    Char(char),
    Star,
    Any,
    Class { negated: bool, ranges: Vec<(char, char)> },
    Group(Vec<Vec<Node>>),
}

const TREE_CHARS: &str = "ab.é,}]-![*\\";

fn write(nodes: &[Node]) -> String {
    let escaped = |c: &char| match c {
        'a' | 'b' | '.' | 'é' => c.to_string(),
        _ => format!("\\{c}"),
    };
    let each = nodes.iter().map(|node| match node {
        Node::Char(c) => escaped(c),
        Node::Star => "*".to_owned(),
        Node::Any => "?".to_owned(),
        Node::Class { negated, ranges } => {
            let range = |(low, high): &(char, char)| format!("{}-{}", escaped(low), escaped(high));
            let ranges: String = ranges.iter().map(range).collect();
            format!("[{}{ranges}]", if *negated { "!" } else { "" })
        }
        Node::Group(alternatives) => {
            let alternatives: Vec<String> = alternatives.iter().map(|a| write(a)).collect();
            format!("{{{}}}", alternatives.join(","))
        }
    });
    each.collect()
}

/// Where a match of the nodes may end that begins at one of these places.
fn ends(nodes: &[Node], topic: &[char], starts: BTreeSet<usize>) -> BTreeSet<usize> {
    nodes.iter().fold(starts, |starts, node| {
        let after_one = |accepts: &dyn Fn(char) -> bool| {
            let fitting = starts.iter().filter(|at| topic.get(**at).is_some_and(|c| accepts(*c)));
            fitting.map(|at| at + 1).collect()
        };
        match node {
            Node::Char(wanted) => after_one(&|c| c == *wanted),
            Node::Any => after_one(&|_| true),
            Node::Star => starts.iter().flat_map(|at| *at..=topic.len()).collect(),
            Node::Class { negated, ranges } => {
                after_one(&|c| ranges.iter().any(|r| (r.0..=r.1).contains(&c)) != *negated)
            }
            Node::Group(alternatives) => {
                let each = alternatives.iter().map(|a| ends(a, topic, starts.clone()));
                each.flatten().collect()
            }
        }
    })
}

fn trees() -> impl Strategy<Value = Vec<Node>> {
    let one_char = || prop::sample::select(TREE_CHARS.chars().collect::<Vec<_>>());
    let range = (one_char(), one_char()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let ranges = prop::collection::vec(range, 1..4);
    let class = (any::<bool>(), ranges).prop_map(|(negated, ranges)| Node::Class { negated, ranges });
    let leaf = prop_oneof![
        4 => one_char().prop_map(Node::Char),
        3 => Just(Node::Star),
        1 => Just(Node::Any),
        2 => class,
    ];
    let node = leaf.prop_recursive(2, 16, 3, |inner| {
        let alternative = prop::collection::vec(inner, 0..3);
        prop::collection::vec(alternative, 1..4).prop_map(Node::Group)
    });
    prop::collection::vec(node, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn agrees_with_the_table_matcher(pattern in "[ab.*?é]{1,8}", topic in "[ab.é]{0,8}") {
        prop_assert_eq!(matches(&pattern, &topic), reference(&pattern, &topic));
    }

    #[test]
    fn agrees_with_the_tree(tree in trees(), topic in r"[ab.é,}\[*\\-]{0,5}") {
        let topic_chars: Vec<char> = topic.chars().collect();
        let wanted = ends(&tree, &topic_chars, [0].into()).contains(&topic_chars.len());
        match Pattern::parse(&write(&tree)) {
            Ok(pattern) => prop_assert_eq!(pattern.matches(&topic), wanted),
            Err(error) => prop_assert_eq!(error.kind, PatternErrorKind::TooManyExpansions),
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused_in_a_short_line(text in r"([\[\]{}!^,*?\\ab-]|\PC|\n){0,80}") {
        match Pattern::parse(&text) {
            Ok(pattern) => {
                prop_assert_eq!(pattern.text(), &text);
                pattern.matches(&text);
            }
            Err(error) => {
                let line = error.to_string();
                prop_assert!(text.is_char_boundary(error.offset));
                prop_assert!(error.offset < text.len().max(1));
                prop_assert!(line.len() < 120 && line.bytes().all(|b| (b' '..=b'~').contains(&b)));
            }
        }
    }
}
