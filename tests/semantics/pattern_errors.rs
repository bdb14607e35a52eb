//! SPEC §2: what is no pattern, and how it is said.

use tonic::Code;

use crate::support::*;

/// The patterns are refused in words that say this, and the connection lives on.
async fn assert_refused(client: &Client, patterns: &[&str], words: &[&str]) {
    let status = client.open(multi(patterns)).await.end().await;
    assert_invalid(&status, "topic_patterns", words);
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn each_error_names_the_rule_and_the_byte_of_the_offending_character() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (pattern, words) in [
        ("", ["empty", ""]),
        (r"abc\", [r"nothing follows `\`", "byte 3"]),
        ("abc.[", ["unclosed `[`", "byte 4"]),
        ("é[a", ["unclosed `[`", "byte 2"]),
        ("abc.{a,b", ["unclosed `{`", "byte 4"]),
        ("a[]", ["empty class", "byte 1"]),
        ("a[!]", ["empty class", "byte 1"]),
        ("a[^]", ["empty class", "byte 1"]),
        ("[z-a]", ["reversed range", "byte 1"]),
    ] {
        assert_refused(&client, &[pattern], &words).await;
    }
}

#[tokio::test]
async fn the_error_tells_which_pattern_is_meant() {
    let broker = Broker::start();
    let client = broker.client().await;
    assert_refused(&client, &["order.*", "abc.["], &["[1]", "byte 4"]).await;
}

#[tokio::test]
async fn each_limit_is_named_with_its_figure() {
    let broker = Broker::start();
    let client = broker.client().await;
    let class = format!("[{}]", ('a'..='z').chain('A'..='G').collect::<String>());
    for (pattern, words) in [
        ("x".repeat(257), ["257", "256"]),
        ("*a".repeat(17), ["too many `*` at byte 32", "16"]),
        ("{a,{b,{c}}}".into(), ["nested too deep at byte 6", "2"]),
        (format!("{{{}}}", ",".repeat(16)), ["too many alternatives in a group at byte 16", "16"]),
        ("{a,b}".repeat(7), ["too many patterns at byte 30", "64"]),
        (class, ["too many ranges in a class at byte 33", "32"]),
        (format!("*?{}*", "a".repeat(64)), ["byte 65", "64"]),
    ] {
        assert_refused(&client, &[&pattern], &words).await;
    }
}

#[tokio::test]
async fn what_is_just_within_the_limits_is_taken() {
    let broker = Broker::start();
    let client = broker.client().await;
    for pattern in ["x".repeat(256), "*a".repeat(16), "{abc,abd}".repeat(6)] {
        client.subscribe(multi(&[&pattern])).await;
    }
}

#[tokio::test]
async fn a_subscription_has_1_to_256_patterns() {
    let broker = Broker::start();
    let client = broker.client().await;
    let patterns: Vec<_> = (0..257).map(|number| format!("topic.{number}")).collect();
    let patterns: Vec<_> = patterns.iter().map(String::as_str).collect();
    assert_refused(&client, &[], &["empty"]).await;
    assert_refused(&client, &patterns, &["257", "256"]).await;
    client.subscribe(multi(&patterns[..256])).await;
}

#[tokio::test]
async fn patterns_beyond_what_the_server_holds_are_resource_exhausted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let letters = "abcdefghijklm";
    let pairs = letters.chars().flat_map(|one| letters.chars().map(move |two| format!("{one}?{two}*")));
    let unselective: Vec<_> = pairs.take(129).collect();
    let unselective: Vec<_> = unselective.iter().map(String::as_str).collect();
    let status = client.open(multi(&unselective)).await.end().await;
    assert_status(&status, Code::ResourceExhausted, &["128"]);
    // Nothing of the refused open is left.
    client.subscribe(multi(&unselective[..128])).await;
}
