//! SPEC §2: which topics a pattern matches.

use crate::support::*;

/// Pattern, topics that it matches, topics that it does not match.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Each pattern alone against its topics: how many subscriptions took a message tells.
async fn assert_rows(rows: &[Row]) {
    let broker = Broker::start();
    let client = broker.client().await;
    for (pattern, matching, others) in rows {
        let (stream, _) = client.subscribe(multi(&[pattern])).await;
        for (topics, subscriptions) in [(matching, 1), (others, 0)] {
            for topic in *topics {
                let taken = client.publish(topic, "x").await.subscriptions;
                assert_eq!(taken, subscriptions, "{pattern:?} on {topic:?}");
            }
        }
        drop(stream);
        broker.stats_when("the stream's end", |stats| stats.subscriptions == 0).await;
    }
}

#[tokio::test]
async fn stars_take_any_run_of_characters() {
    assert_rows(&[
        ("payment.*", &["payment.charge.succeeded", "payment."], &["payment", "x.payment.a"]),
        ("a**b", &["ab", "a.x.b"], &["abc"]),
        ("*", &["a..b", ".a", ".", "a.b.c", "$SYS.x"], &[]),
        ("*a*b*", &["ab", "xaybz"], &["ba"]),
        ("charge", &["charge"], &["payment.charge", "charges"]),
    ])
    .await;
}

#[tokio::test]
async fn dots_divide_nothing() {
    const TOPICS: [&str; 5] = ["a..b", ".a", "a.", ".", "a.b.c"];
    let broker = Broker::start();
    let client = broker.client().await;
    for (pattern, expected) in [
        ("a.*", [1, 0, 1, 0, 1]),
        ("*.b", [1, 0, 0, 0, 0]),
        ("a.*.c", [0, 0, 0, 0, 1]),
        ("**", [1, 1, 1, 1, 1]),
        ("a*", [1, 0, 1, 0, 1]),
        ("*a", [0, 1, 0, 0, 0]),
        ("a.*b", [1, 0, 0, 0, 0]),
    ] {
        let (stream, _) = client.subscribe(multi(&[pattern])).await;
        for (topic, subscriptions) in TOPICS.into_iter().zip(expected) {
            let taken = client.publish(topic, "x").await.subscriptions;
            assert_eq!(taken, subscriptions, "{pattern:?} on {topic:?}");
        }
        drop(stream);
        broker.stats_when("the stream's end", |stats| stats.subscriptions == 0).await;
    }
}

#[tokio::test]
async fn a_question_mark_and_a_class_take_one_character() {
    assert_rows(&[
        ("a?c", &["abc", "a.c", "aéc", "a☕c"], &["ac", "abbc"]),
        ("v[0-9a]", &["v7", "va"], &["vb", "v77", "v"]),
        ("v[!0-9]", &["vb", "v.", "vé"], &["v7", "v"]),
        ("v[^0-9]", &["vb"], &["v7"]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[-a]", &["a", "-"], &["b"]),
        ("[{},]x", &["{x", "}x", ",x"], &["ax"]),
        ("[à-ü]", &["é"], &["e"]),
    ])
    .await;
}

#[tokio::test]
async fn braces_hold_alternatives() {
    assert_rows(&[
        ("{eu,us}.order", &["eu.order", "us.order"], &["order", "eu,us.order"]),
        ("order{,.{new,old}}", &["order", "order.new", "order.old"], &["order.", "order.x"]),
        ("{a*,b?}", &["a", "axx", "bx"], &["b", "bxx"]),
        ("a,b", &["a,b"], &["a", "b"]),
    ])
    .await;
}

#[tokio::test]
async fn a_backslash_takes_the_next_character_literally() {
    assert_rows(&[
        (r"\{a\}", &["{a}"], &["a"]),
        (r"\[a]", &["[a]"], &["a"]),
        (r"a\\b", &[r"a\b"], &["ab"]),
        (r"[\]\-x]", &["]", "-", "x"], &[r"\"]),
        (r"{a\,b,c}", &["a,b", "c"], &["a", "b"]),
        ("a]}", &["a]}"], &["a"]),
    ])
    .await;
}

#[tokio::test]
async fn nothing_else_is_special() {
    assert_rows(&[
        ("a.b", &["a.b"], &["axb"]),
        ("a+b", &["a+b"], &["aab", "ab"]),
        ("a(b", &["a(b"], &["ab"]),
        ("^a$", &["^a$"], &["a"]),
        ("a|b", &["a|b"], &["a", "b"]),
        ("$*", &["$SYS.x", "$x"], &["x$"]),
        ("$SYS.*", &["$SYS.x"], &["$x"]),
        ("Order", &["Order"], &["order", "ORDER"]),
        // Composed and decomposed are different characters.
        ("caf?", &["caf\u{e9}"], &["cafe\u{301}"]),
        ("caf*", &["caf\u{e9}", "cafe\u{301}"], &[]),
    ])
    .await;
}

#[tokio::test]
async fn a_subscription_gets_a_message_once_however_many_patterns_match() {
    let broker = Broker::start();
    let client = broker.client().await;
    let patterns = &["order.*", "*", "order.placed", "{order,x}.*", "order.*"];
    let (mut stream, _) = client.subscribe(multi(patterns)).await;
    for number in ["1", "2"] {
        assert_eq!(client.publish("order.placed", number).await.subscriptions, 1);
        assert_eq!(stream.payload().await, number);
    }
    stream.quiet().await;
}

#[tokio::test]
async fn no_pattern_makes_matching_explode() {
    let broker = Broker::start();
    let client = broker.client().await;
    let greedy = "*a".repeat(15) + "*b";
    let (mut stream, _) = client.subscribe(multi(&["*a*a*a*a*b", &greedy])).await;
    for _ in 0..100 {
        assert_eq!(client.publish(&"a".repeat(1024), "x").await.subscriptions, 0);
    }
    client.publish(&("a".repeat(1023) + "b"), "hit").await;
    assert_eq!(stream.payload().await, "hit");
}
