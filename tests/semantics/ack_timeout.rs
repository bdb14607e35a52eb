//! SPEC §3.7 and §3.13: ack_timeout.

use tinybroker::proto::OpenSubscription;
use tonic::Code;

use crate::support::*;

fn brief(open: OpenSubscription) -> OpenSubscription {
    OpenSubscription { ack_timeout: BRIEF, ..open }
}

#[tokio::test]
async fn what_is_held_too_long_goes_to_others_and_the_holder_stays_a_member() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut holder, id) = client.subscribe(brief(balanced("g", &["a"]))).await;
    client.publish("a", "1").await;
    let held = holder.message().await;
    let (mut other, _) = client.subscribe(brief(balanced("g", &["a"]))).await;
    // It goes round until somebody acks it; the other gets it sooner or later.
    let again = other.message().await;
    assert_eq!(payload(&again), "1");
    assert!(again.delivery_attempt > 1);
    let late = client.ack(ack_by_system_id(&id, &held.system_id)).await.expect_err("it was taken back");
    assert_status(&late, Code::NotFound, &[]);
    let stats = broker.stats().await;
    assert_eq!(stats.members, 2);
    assert!(stats.counters["timed_out"] >= 1);
}

#[tokio::test]
async fn it_works_in_every_mode_and_on_every_shard_with_nothing_else_to_do() {
    let broker = Broker::start();
    let client = broker.client().await;
    let mut opens = vec![OpenSubscription { max_in_flight: 1, ..multi(&["a"]) }];
    for number in 0..4 {
        opens.push(balanced(&format!("b{number}"), &["a"]));
        opens.push(singleton(&format!("s{number}"), &["a"]));
    }
    for open in opens {
        let (mut stream, id) = client.subscribe(brief(open)).await;
        let published = client.publish("a", "1").await;
        let mut message = stream.message().await;
        for attempt in 2..=3 {
            message = stream.message().await;
            assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("1", attempt));
            assert_eq!(message.system_id, format!("{}.{attempt}", published.system_id));
        }
        let _ = client.ack(ack_by_system_id(&id, &message.system_id)).await;
        drop(stream);
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
}

#[tokio::test]
async fn it_takes_its_old_place() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { ack_timeout: millis(3000), ..balanced("g", &["a"]) };
    let (mut holder, _) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 3).await;
    holder.due("1", 1).await;
    // It comes back before what has waited all the time.
    for (number, attempt) in [("1", 2), ("2", 1), ("3", 1)] {
        holder.take_due(number, attempt).await;
    }
}

#[tokio::test]
async fn what_was_acked_in_time_never_comes_again() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { ack_timeout: millis(3000), max_in_flight: 2, ..balanced("g", &["a"]) };
    let (mut stream, id) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 2).await;
    let (acked, _held) = (stream.message().await, stream.message().await);
    assert_eq!(client.ack(ack_by_system_id(&id, &acked.system_id)).await.expect("in time"), 1);
    // When the other comes back the time of the first is over too.
    let again = stream.message().await;
    assert_eq!((payload(&again).as_str(), again.delivery_attempt), ("2", 2));
    stream.ack(&again);
    stream.quiet().await;
}

#[tokio::test]
async fn the_time_runs_from_each_delivery() {
    let broker = Broker::start();
    let client = broker.client().await;
    let open = OpenSubscription { ack_timeout: BRIEF, ..balanced("g", &["a"]) };
    let (mut stream, _) = client.subscribe(open).await;
    client.publish_numbers("a", 1, 2).await;
    // While 1 goes round, 2 waits, and is delivered once 1 is acked.
    let mut message = stream.message().await;
    while message.delivery_attempt < 3 {
        message = stream.message().await;
        assert_eq!(payload(&message), "1");
    }
    loop {
        stream.ack(&message);
        message = stream.message().await;
        if payload(&message) == "2" {
            break;
        }
    }
    assert_eq!(message.delivery_attempt, 1);
}

#[tokio::test]
async fn without_one_a_member_may_hold_a_message() {
    let broker = Broker::start();
    let client = broker.client().await;
    let zero = Some(prost_types::Duration::default());
    for (ack_timeout, group) in [(None, "unset"), (zero, "zero")] {
        let open = || OpenSubscription { ack_timeout, ..balanced(group, &["a"]) };
        let (mut holder, id) = client.subscribe(open()).await;
        client.publish("a", "1").await;
        let held = holder.message().await;
        let (mut other, _) = client.subscribe(open()).await;
        other.quiet().await;
        assert_eq!(client.ack(ack_by_system_id(&id, &held.system_id)).await.expect("still its own"), 1);
        drop((holder, other));
        broker.stats_when("its end", |stats| stats.subscriptions == 0).await;
    }
}
