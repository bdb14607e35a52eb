//! SPEC §2: what a topic is.

use crate::support::*;

/// The topic is refused in words that say this, and the connection lives on.
async fn assert_refused(client: &Client, topic: &str, words: &[&str]) {
    let status = client.try_publish(message(topic, "x")).await.expect_err("no such topic can be");
    assert_invalid(&status, "topic", words);
    client.publish("fine", "x").await;
}

#[tokio::test]
async fn a_topic_exists_as_soon_as_somebody_publishes_to_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut all, _) = client.subscribe(multi(&["*"])).await;
    for topic in ["never.seen.before", "another"] {
        assert_eq!(client.publish(topic, "x").await.subscriptions, 1);
        assert_eq!(all.message().await.topic, topic);
    }
}

#[tokio::test]
async fn what_is_special_elsewhere_is_ordinary_in_a_topic() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut all, _) = client.subscribe(multi(&["*"])).await;
    for topic in ["[x]{y}\\", "$SYS.x", "café.☕", "a..b", ".", " ", "a/b", "a+b|c^", "\u{a0}\u{200b}"] {
        client.publish(topic, "x").await;
        assert_eq!(all.message().await.topic, topic);
    }
}

#[tokio::test]
async fn a_topic_has_1_to_1024_bytes() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut all, _) = client.subscribe(multi(&["*"])).await;
    // 512 characters of two bytes each.
    for topic in ["x", &"x".repeat(1024), &"é".repeat(512)] {
        client.publish(topic, "x").await;
        assert_eq!(all.message().await.topic, topic);
    }
    assert_refused(&client, "", &["empty", "1024"]).await;
    assert_refused(&client, &"x".repeat(1025), &["1025", "1024"]).await;
    assert_refused(&client, &"é".repeat(513), &["1026", "1024"]).await;
}

#[tokio::test]
async fn a_topic_has_no_control_characters() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (topic, character) in
        [("a\nb", "U+000A"), ("a\0", "U+0000"), ("a\u{7f}", "U+007F"), ("a\u{85}b", "U+0085")]
    {
        assert_refused(&client, topic, &["control character", character, "byte 1"]).await;
    }
}

#[tokio::test]
async fn publishing_to_a_wildcard_is_a_mistake_and_the_error_says_so() {
    let broker = Broker::start();
    let client = broker.client().await;
    assert_refused(&client, "order.*", &["wildcard", "`*`", "byte 6", "subscription"]).await;
    assert_refused(&client, "é?", &["wildcard", "`?`", "byte 2"]).await;
}
