//! SPEC §3.11: REJECT, and what a publish that was refused or confirmed has done.

use tinybroker::proto::{NackRequest, OpenSubscription, OverflowPolicy};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::*;

fn bounded(max_pending: u64, open: OpenSubscription) -> OpenSubscription {
    OpenSubscription { max_pending, ..open }
}

async fn refused(client: &Client, topic: &str) -> Status {
    client.try_publish(message(topic, "refused")).await.expect_err("the subscription is full")
}

#[track_caller]
fn assert_full(status: &Status, subscription_id: &str, limit: u64) {
    assert_status(status, Code::ResourceExhausted, &[subscription_id, &format!("limit {limit}")]);
    let retry = status.get_details_retry_info().expect("RetryInfo comes with it");
    assert!(retry.retry_delay.is_some_and(|delay| !delay.is_zero()));
}

#[tokio::test]
async fn a_full_group_refuses_and_names_itself() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut member, id) = client.subscribe(bounded(2, balanced("g", &["a"]))).await;
    // One in flight does not count as waiting.
    client.publish_numbers("a", 1, 3).await;
    assert_full(&refused(&client, "a").await, &id, 2);
    // Others are not concerned.
    assert_eq!(client.publish("b", "x").await.subscriptions, 0);
    assert_eq!(member.take().await, "1");
    assert_eq!(member.take().await, "2");
    broker.stats_when("room", |stats| stats.waiting == 0).await;
    assert_eq!(client.publish("a", "4").await.subscriptions, 1);
    assert_eq!([member.take().await, member.take().await], ["3", "4"]);
    member.quiet().await;
    assert!(broker.stats().await.counters["refused_subscription_full"] >= 1);
}

#[tokio::test]
async fn the_servers_default_is_a_limit_too() {
    let broker = Broker::with(&["--max-pending", "2"]);
    let client = broker.client().await;
    let (mut member, id) = client.subscribe(balanced("g", &["a"])).await;
    client.publish_numbers("a", 1, 3).await;
    assert_full(&refused(&client, "a").await, &id, 2);
    assert_eq!([member.take().await, member.take().await, member.take().await], ["1", "2", "3"]);
    member.quiet().await;
}

#[tokio::test]
async fn multi_refuses_where_it_asked_to() {
    let broker = Broker::start();
    let client = broker.client().await;
    let overflow = OverflowPolicy::Reject.into();
    let open = OpenSubscription { max_in_flight: 1, overflow, ..bounded(1, multi(&["a"])) };
    let (mut stream, id) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 2).await;
    assert_full(&refused(&client, "a").await, &id, 1);
    assert_eq!([stream.take().await, stream.take().await], ["1", "2"]);
    stream.quiet().await;
}

#[tokio::test]
async fn what_was_refused_has_been_enqueued_nowhere() {
    let broker = Broker::start();
    let client = broker.client().await;
    // Groups and streams over all shards that match too and have room.
    let mut others = Vec::new();
    for number in 0..8 {
        let open = OpenSubscription { max_in_flight: 100, ..balanced(&format!("g{number}"), &["a"]) };
        others.push(client.subscribe(open).await.0);
        others.push(client.subscribe(multi(&["a"])).await.0);
    }
    for number in 0..6 {
        let full = bounded(1, balanced(&format!("full{number}"), &["a"]));
        let (mut member, id) = client.subscribe(full).await;
        for _ in 0..2 {
            assert_eq!(client.publish("a", "taken").await.subscriptions, 17);
        }
        for _ in 0..20 {
            assert_full(&refused(&client, "a").await, &id, 1);
        }
        assert_eq!([member.take().await, member.take().await], ["taken", "taken"]);
        member.quiet().await;
        drop(member);
        broker.stats_when("its end", |stats| stats.subscriptions == 16).await;
    }
    client.publish("a", "last").await;
    for stream in &mut others {
        for _ in 0..12 {
            assert_eq!(stream.take().await, "taken");
        }
        assert_eq!(stream.take().await, "last");
        stream.quiet().await;
    }
}

#[tokio::test]
async fn many_publishers_at_once_fill_it_to_its_limit_and_not_beyond() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut member, _) = client.subscribe(bounded(10, balanced("g", &["a"]))).await;
    let (mut witness, _) = client.subscribe(multi(&["a"])).await;
    // While the member waits, publishes under way keep room that they will not need: what is confirmed would be a
    // matter of chance.
    client.publish("a", "first").await;
    let first = member.message().await;
    assert_eq!(witness.payload().await, "first");
    let mut calls = tokio::task::JoinSet::new();
    for publisher in 0..4 {
        let client = broker.client().await;
        for number in 0..25 {
            let client = client.clone();
            let text = format!("{publisher}-{number}");
            calls.spawn(async move { client.try_publish(message("a", &text)).await.map(|_| text) });
        }
    }
    let mut confirmed = Vec::new();
    while let Some(call) = calls.join_next().await {
        match call.expect("no panic") {
            Ok(text) => confirmed.push(text),
            Err(status) => assert_status(&status, Code::ResourceExhausted, &["limit 10"]),
        }
    }
    assert_eq!(confirmed.len(), 10, "ten wait beside the one in flight");
    member.ack(&first);
    let (mut taken, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        taken.push(member.take().await);
        seen.push(witness.payload().await);
    }
    witness.quiet().await;
    member.quiet().await;
    for texts in [&mut confirmed, &mut taken, &mut seen] {
        texts.sort();
    }
    assert_eq!((&taken, &seen), (&confirmed, &confirmed));
}

#[tokio::test]
async fn what_returns_to_a_full_queue_is_kept_and_counts() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = |max_in_flight| OpenSubscription { max_in_flight, ..bounded(2, balanced("g", &["a"])) };
    let (mut holder, id) = client.subscribe(open(3)).await;
    client.publish_numbers("a", 1, 5).await;
    for _ in 0..3 {
        holder.message().await;
    }
    let (late, _) = client.subscribe(open(1)).await;
    drop(holder);
    let mut late = late;
    // Holds 4; 5 waits, and 1 to 3 came back.
    let held = late.message().await;
    broker.stats_when("the return", |stats| stats.waiting == 4).await;
    assert_full(&refused(&client, "a").await, &id, 2);
    late.ack(&held);
    for number in ["1", "2", "3", "5"] {
        assert_eq!(late.take().await, number);
    }
    broker.stats_when("room", |stats| stats.waiting == 0).await;
    client.publish("a", "6").await;
    assert_eq!(late.take().await, "6");
}

#[tokio::test]
async fn what_is_parked_counts_and_what_is_in_flight_does_not() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { max_in_flight: 2, ..bounded(2, balanced("g", &["a"])) };
    let (mut member, id) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 2).await;
    for _ in 0..2 {
        let system_id = member.message().await.system_id;
        let nack =
            NackRequest { subscription_id: id.clone(), system_id, delay: ENDLESS, ..Default::default() };
        client.nack(nack).await.expect("it is in flight");
    }
    // Both members' places are free, and both places of the queue are taken.
    let stats = broker.stats().await;
    assert_eq!((stats.parked, stats.waiting, stats.in_flight), (2, 2, 0));
    assert_full(&refused(&client, "a").await, &id, 2);
    member.quiet().await;
}

#[tokio::test]
async fn bytes_are_a_limit_too() {
    let broker = Broker::with(&["--max-pending-bytes", "5000000"]);
    let client = broker.client().await;
    let (mut member, id) = client.subscribe(balanced("g", &["a"])).await;
    let big = "x".repeat(2_000_000);
    // One in flight, two that wait.
    for _ in 0..3 {
        client.publish("a", &big).await;
    }
    let status = client.try_publish(message("a", &big)).await.expect_err("its bytes are full");
    assert_full(&status, &id, 5_000_000);
    assert_status(&status, Code::ResourceExhausted, &["bytes"]);
    client.publish("a", "small").await;
    for bytes in [big.len(), big.len(), big.len(), "small".len()] {
        assert_eq!(member.take().await.len(), bytes);
    }
}

#[tokio::test]
async fn nobody_listening_is_no_error_and_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    assert_eq!(client.publish("a", "1").await.subscriptions, 0);
    let (_member, _) = client.subscribe(balanced("g", &["b"])).await;
    assert_eq!(client.publish("a", "2").await.subscriptions, 0);
    let counters = broker.stats().await.counters;
    assert_eq!((counters["published"], counters["unheard"]), (2, 2));
}
