//! SPEC §3.7: dead letters.

use std::collections::HashMap;

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Message, Nack, OpenSubscription, PublishRequest};

use crate::support::*;

/// Gives a message up to `topic` after so many attempts.
fn giving_up(max_deliveries: u32, topic: &str, open: OpenSubscription) -> OpenSubscription {
    OpenSubscription { max_deliveries, dead_letter_topic: topic.into(), ..open }
}

fn discard(stream: &Stream, message: &Message) {
    let system_id = message.system_id.clone();
    stream.send(Command::Nack(Nack { system_id, discard: true, ..Default::default() }));
}

/// Receives so many deliveries and gives each back.
async fn nack_each(stream: &mut Stream, count: u32) {
    for _ in 0..count {
        let message = stream.message().await;
        stream.nack(&message);
    }
}

fn header<'a>(message: &'a Message, name: &str) -> &'a str {
    message.headers.get(&format!("tinybroker-dead-letter-{name}")).map_or("", String::as_str)
}

#[tokio::test]
async fn it_has_all_that_the_message_had_and_says_where_it_comes_from() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut morgue, _) = client.subscribe(balanced("morgue", &["dead.*"])).await;
    let (mut stream, id) = client.subscribe(giving_up(3, "dead.orders", balanced("g", &["order.*"]))).await;
    let published = client
        .try_publish(PublishRequest {
            message_id: "order-4711".into(),
            headers: HashMap::from([("trace".into(), "abc".into())]),
            ..message("order.placed", "one pizza")
        })
        .await
        .expect("confirmed");
    nack_each(&mut stream, 3).await;
    let letter = morgue.message().await;
    assert_eq!((letter.topic.as_str(), payload(&letter).as_str()), ("dead.orders", "one pizza"));
    assert_eq!((letter.message_id.as_str(), letter.delivery_attempt), ("order-4711", 1));
    assert_eq!((header(&letter, "subscription"), header(&letter, "topic")), (&*id, "order.placed"));
    assert_eq!((header(&letter, "reason"), header(&letter, "attempts")), ("max_deliveries", "3"));
    assert_eq!((letter.headers["trace"].as_str(), letter.headers.len()), ("abc", 5));
    assert!(letter.published_at.is_some());
    // A message of its own: a late ack of the old one never settles it.
    assert_ne!(letter.system_id, published.system_id);
    morgue.ack(&letter);
    let stats = broker.stats_when("its ack", |stats| stats.in_flight == 0).await;
    assert_eq!((stats.waiting, stats.counters["dead_lettered"]), (0, 1));
    stream.quiet().await;
}

#[tokio::test]
async fn without_an_id_of_its_publishers_it_keeps_the_brokers() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut morgue, id) = client.subscribe(balanced("morgue", &["dead"])).await;
    let (mut stream, _) = client.subscribe(giving_up(1, "dead", balanced("g", &["a"]))).await;
    let published = client.publish("a", "1").await;
    nack_each(&mut stream, 1).await;
    let letter = morgue.message().await;
    assert_eq!(letter.message_id, published.message_id);
    assert_eq!(client.ack(ack_by_message_id(&id, &letter.message_id)).await.expect("OK"), 1);
}

#[tokio::test]
async fn a_nack_that_discards_makes_one_at_once() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut morgue, _) = client.subscribe(multi(&["dead"])).await;
    let (mut stream, _) = client.subscribe(giving_up(0, "dead", balanced("g", &["a"]))).await;
    client.publish_numbers("a", 1, 2).await;
    let first = stream.message().await;
    stream.nack(&first);
    let again = stream.message().await;
    discard(&stream, &again);
    let letter = morgue.message().await;
    assert_eq!(payload(&letter), "1");
    assert_eq!((header(&letter, "reason"), header(&letter, "attempts")), ("discarded", "2"));
    assert_eq!(stream.payload().await, "2");
}

#[tokio::test]
async fn every_subscription_to_its_topic_gets_it() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut all = Vec::new();
    for number in 0..5 {
        all.push(client.subscribe(balanced(&format!("b{number}"), &["dead"])).await.0);
        all.push(client.subscribe(singleton(&format!("s{number}"), &["dead"])).await.0);
        all.push(client.subscribe(multi(&["d*"])).await.0);
    }
    for number in 0..4 {
        let open = giving_up(1, "dead", balanced(&format!("g{number}"), &["a"]));
        let (mut stream, _) = client.subscribe(open).await;
        client.publish("a", "1").await;
        nack_each(&mut stream, 1).await;
        for stream in &mut all {
            assert_eq!(stream.take().await, "1");
        }
    }
    assert_eq!(broker.stats().await.counters["dead_letters_unheard"], 0);
}

#[tokio::test]
async fn where_nobody_listens_it_is_dropped_and_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(giving_up(1, "dead", balanced("g", &["a"]))).await;
    client.publish_numbers("a", 1, 3).await;
    nack_each(&mut stream, 3).await;
    let stats = broker.stats_when("the counts", |stats| stats.counters["dead_letters_unheard"] == 3).await;
    assert_eq!((stats.counters["dead_lettered"], stats.counters["dropped_max_deliveries"]), (3, 0));
    assert_eq!((stats.waiting, stats.in_flight), (0, 0));
}

#[tokio::test]
async fn where_it_is_refused_it_is_dropped_and_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let full = OpenSubscription { max_pending: 1, ..balanced("morgue", &["dead"]) };
    let (mut morgue, _) = client.subscribe(full).await;
    let (mut witness, _) = client.subscribe(multi(&["dead"])).await;
    let (mut stream, _) = client.subscribe(giving_up(1, "dead", balanced("g", &["a"]))).await;
    client.publish_numbers("a", 1, 5).await;
    nack_each(&mut stream, 5).await;
    // One is in flight, one waits.
    broker.stats_when("the counts", |stats| stats.counters["dead_letters_refused"] == 3).await;
    assert_eq!([morgue.take().await, morgue.take().await], ["1", "2"]);
    morgue.quiet().await;
    // What was refused has been enqueued nowhere.
    assert_eq!([witness.payload().await, witness.payload().await], ["1", "2"]);
    witness.quiet().await;
}

#[tokio::test]
async fn one_that_its_headers_make_too_large_is_dropped_and_counted() {
    let broker = Broker::with(&["--max-message-bytes", "1000"]);
    let client = broker.client().await;
    let (mut morgue, _) = client.subscribe(multi(&["dead"])).await;
    let (mut stream, _) = client.subscribe(giving_up(1, "dead", balanced("g", &["a"]))).await;
    client.publish("a", &"x".repeat(950)).await;
    client.publish("a", "small").await;
    nack_each(&mut stream, 2).await;
    assert_eq!(morgue.payload().await, "small");
    assert_eq!(broker.stats().await.counters["dead_letters_refused"], 1);
}

#[tokio::test]
async fn a_topic_that_its_own_patterns_match_is_invalid() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (patterns, topic) in [(&["a", "jobs.*"][..], "jobs.dead"), (&["dead"], "dead"), (&["*"], "any")] {
        let open = giving_up(1, topic, balanced("g", patterns));
        assert_invalid(&client.open(open).await.end().await, "dead_letter_topic", &["own pattern"]);
        client.publish("fine", "x").await;
    }
}

#[tokio::test]
async fn a_topic_that_is_none_is_invalid() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (topic, word) in [("dead.*", "wildcard"), ("a\nb", "U+000A"), (&*"x".repeat(1025), "1025")] {
        let open = giving_up(1, topic, balanced("g", &["a"]));
        assert_invalid(&client.open(open).await.end().await, "dead_letter_topic", &[word]);
        client.publish("fine", "x").await;
    }
}

#[tokio::test]
async fn dead_letters_die_too_and_the_last_death_is_told() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut last, _) = client.subscribe(balanced("last", &["dead.2"])).await;
    let (mut second, id) = client.subscribe(giving_up(2, "dead.2", balanced("second", &["dead.1"]))).await;
    let (mut first, _) = client.subscribe(giving_up(1, "dead.1", balanced("first", &["a"]))).await;
    let published = client.publish("a", "1").await;
    nack_each(&mut first, 1).await;
    nack_each(&mut second, 2).await;
    let letter = last.message().await;
    assert_eq!((payload(&letter).as_str(), letter.delivery_attempt), ("1", 1));
    assert_eq!(letter.message_id, published.message_id);
    assert_eq!((header(&letter, "subscription"), header(&letter, "topic")), (&*id, "dead.1"));
    assert_eq!((header(&letter, "attempts"), letter.headers.len()), ("2", 4));
}

#[tokio::test]
async fn leaving_is_an_attempt_also_for_the_last_member() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut morgue, _) = client.subscribe(multi(&["dead"])).await;
    let open = giving_up(2, "dead", OpenSubscription { max_in_flight: 2, ..balanced("g", &["a"]) });
    let (mut stream, _) = client.subscribe(open.clone()).await;
    client.publish_numbers("a", 1, 3).await;
    let (first, second) = (stream.message().await, stream.message().await);
    assert_eq!([payload(&first), payload(&second)], ["1", "2"]);
    stream.nack(&second);
    let again = stream.message().await;
    assert_eq!((payload(&again).as_str(), again.delivery_attempt), ("2", 2));
    // The group ends with it: 2 had its attempts, 1 and 3 had not.
    drop(stream);
    let letter = morgue.message().await;
    assert_eq!(payload(&letter), "2");
    assert_eq!((header(&letter, "reason"), header(&letter, "attempts")), ("max_deliveries", "2"));
    morgue.quiet().await;
    let stats = broker.stats_when("its end", |stats| stats.subscriptions == 1).await;
    assert_eq!(stats.counters["dropped_subscription_ended"], 1);
    assert_eq!(stats.counters["dropped_subscription_ended_in_flight"], 1);
}

#[tokio::test]
async fn where_others_stay_leaving_makes_one_too() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut morgue, _) = client.subscribe(multi(&["dead"])).await;
    let open = || giving_up(1, "dead", balanced("g", &["a"]));
    let (mut stream, _) = client.subscribe(open()).await;
    client.publish("a", "1").await;
    stream.message().await;
    let (mut other, _) = client.subscribe(open()).await;
    drop(stream);
    assert_eq!(morgue.payload().await, "1");
    other.quiet().await;
}

#[tokio::test]
async fn thousands_at_once_all_arrive() {
    const MESSAGES: u32 = 5000;
    let broker = Broker::start();
    let client = broker.client().await;
    let wide = |open| OpenSubscription { max_in_flight: MESSAGES, ..open };
    let (mut morgue, _) = client.subscribe(wide(balanced("morgue", &["dead"]))).await;
    let (mut stream, _) = client.subscribe(giving_up(1, "dead", wide(balanced("g", &["a"])))).await;
    let publisher = client.publisher().await;
    publisher.send_numbers("a", 1, MESSAGES);
    assert_eq!(publisher.finish().await.failures, []);
    for _ in 0..MESSAGES {
        stream.message().await;
    }
    drop(stream);
    let mut numbers = Vec::new();
    for _ in 0..MESSAGES {
        numbers.push(morgue.payload().await.parse::<u32>().expect("a number"));
    }
    numbers.sort();
    assert_eq!(numbers, (1..=MESSAGES).collect::<Vec<u32>>());
}
