//! SPEC §3.7: max_deliveries, and what counts as an attempt.

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{Extend, Nack, OpenSubscription, Resign};

use crate::support::*;

fn most(max_deliveries: u32, open: OpenSubscription) -> OpenSubscription {
    OpenSubscription { max_deliveries, ..open }
}

#[tokio::test]
async fn after_so_many_attempts_it_is_dropped_and_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (open, topic) in [
        (balanced("b", &["b"]), "b"),
        (singleton("s", &["s"]), "s"),
        (OpenSubscription { max_in_flight: 1, ..multi(&["m"]) }, "m"),
    ] {
        let (mut stream, _) = client.subscribe(most(3, open)).await;
        client.publish_numbers(topic, 1, 2).await;
        for attempt in 1..=3 {
            let message = stream.due("1", attempt).await;
            stream.nack(&message);
        }
        stream.take_due("2", 1).await;
        stream.quiet().await;
    }
    let stats = broker.stats().await;
    assert_eq!(stats.counters["dropped_max_deliveries"], 3);
    assert_eq!((stats.waiting, stats.in_flight, stats.held_bytes), (0, 0, 0));
}

#[tokio::test]
async fn one_attempt_is_one() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(most(1, balanced("g", &["a"]))).await;
    client.publish_numbers("a", 1, 3).await;
    for number in ["1", "2", "3"] {
        let message = stream.due(number, 1).await;
        stream.nack(&message);
    }
    stream.quiet().await;
    assert_eq!(broker.stats().await.counters["dropped_max_deliveries"], 3);
}

#[tokio::test]
async fn nack_timeout_leaving_and_resigning_count_and_keep_attempt_does_not() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = || most(5, singleton("s", &["a"]));
    let (mut active, _) = client.subscribe(open()).await;
    client.publish_numbers("a", 1, 2).await;
    let system_id = active.due("1", 1).await.system_id;
    active.send(Command::Extend(Extend { system_id, ack_timeout: BRIEF, ..Default::default() }));
    let message = active.due("1", 2).await;
    active.nack(&message);
    let message = active.due("1", 3).await;
    let system_id = message.system_id;
    active.send(Command::Nack(Nack { system_id, keep_attempt: true, ..Default::default() }));
    active.due("1", 3).await;
    let mut heir = client.open(open()).await;
    broker.stats_when("a standby", |stats| stats.standbys == 1).await;
    drop(active);
    heir.subscription_id().await;
    heir.due("1", 4).await;
    heir.send(Command::Resign(Resign {}));
    heir.subscription_id().await;
    heir.due("1", 5).await;
    heir.send(Command::Resign(Resign {}));
    heir.subscription_id().await;
    heir.due("2", 1).await;
    let counters = broker.stats().await.counters;
    assert_eq!((counters["dropped_max_deliveries"], counters["delivered"]), (1, 7));
}

#[tokio::test]
async fn a_delay_is_no_refuge() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(most(1, balanced("g", &["a"]))).await;
    client.publish("a", "1").await;
    let system_id = stream.message().await.system_id;
    stream.send(Command::Nack(Nack { system_id, delay: ENDLESS, ..Default::default() }));
    let stats = broker.stats_when("the drop", |stats| stats.in_flight == 0).await;
    assert_eq!((stats.parked, stats.counters["dropped_max_deliveries"]), (0, 1));
}

#[tokio::test]
async fn zero_is_no_limit() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut stream, _) = client.subscribe(balanced("g", &["a"])).await;
    client.publish("a", "1").await;
    for attempt in 1..=100 {
        let message = stream.due("1", attempt).await;
        stream.nack(&message);
    }
}

#[tokio::test]
async fn each_subscription_counts_its_own() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut strict, _) = client.subscribe(most(1, balanced("strict", &["a"]))).await;
    let (mut patient, _) = client.subscribe(balanced("patient", &["a"])).await;
    client.publish("a", "1").await;
    let message = strict.due("1", 1).await;
    strict.nack(&message);
    for attempt in 1..=3 {
        let message = patient.due("1", attempt).await;
        patient.nack(&message);
    }
    strict.quiet().await;
}
