//! SPEC §3.4: resign.

use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::{OpenSubscription, Resign, Role};
use tonic::Code;

use crate::support::*;

fn candidate() -> OpenSubscription {
    OpenSubscription { max_in_flight: 2, ..singleton("s", &["a"]) }
}

fn watcher() -> OpenSubscription {
    OpenSubscription { control_events: true, ..candidate() }
}

#[tokio::test]
async fn the_active_member_hands_over_and_goes_to_the_end_of_the_line() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut first, id) = client.subscribe(watcher()).await;
    let epoch = first.role().await.epoch;
    let mut second = client.open(watcher()).await;
    assert_eq!(second.role().await.position, 1);
    let mut third = client.open(watcher()).await;
    assert_eq!(third.role().await.position, 2);

    first.send(Command::Resign(Resign {}));
    assert_eq!(second.subscription_id().await, id);
    let role = second.role().await;
    assert_eq!((role.role(), role.position), (Role::Active, 0));
    assert!(role.epoch > epoch);
    for (stream, position) in [(&mut third, 1), (&mut first, 2)] {
        let told = stream.role().await;
        assert_eq!((told.role(), told.epoch, told.position), (Role::Standby, role.epoch, position));
    }
}

#[tokio::test]
async fn its_unacked_messages_go_to_the_next_as_if_it_had_left() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut first, id) = client.subscribe(candidate()).await;
    let mut second = client.open(candidate()).await;
    broker.stats_when("a standby", |stats| stats.standbys == 1).await;
    client.publish_numbers("a", 1, 4).await;
    let held = [first.message().await, first.message().await];
    first.send(Command::Resign(Resign {}));
    assert_eq!(second.subscription_id().await, id);
    for (number, attempt) in [("1", 2), ("2", 2)] {
        let message = second.message().await;
        assert_eq!((payload(&message).as_str(), message.delivery_attempt), (number, attempt));
        assert!(message.epoch > held[0].epoch);
    }
    // A late ack of the old leader settles nothing.
    let late = client.ack(ack_by_system_id(&id, &held[0].system_id)).await.expect_err("taken back");
    assert_status(&late, Code::NotFound, &[]);
    first.quiet().await;
    // It is in the line, and becomes active again.
    drop(second);
    assert_eq!(first.subscription_id().await, id);
    let message = first.message().await;
    assert_eq!((payload(&message).as_str(), message.delivery_attempt), ("1", 3));
}

#[tokio::test]
async fn with_nobody_waiting_it_is_promoted_anew_with_a_new_epoch() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut alone, id) = client.subscribe(watcher()).await;
    let epoch = alone.role().await.epoch;
    client.publish("a", "1").await;
    assert_eq!(alone.message().await.epoch, epoch);
    alone.send(Command::Resign(Resign {}));
    assert_eq!(alone.subscription_id().await, id);
    let role = alone.role().await;
    assert_eq!((role.role(), role.position), (Role::Active, 0));
    assert!(role.epoch > epoch);
    let again = alone.message().await;
    assert_eq!((again.epoch, again.delivery_attempt), (role.epoch, 2));
}

#[tokio::test]
async fn from_a_standby_it_is_ignored_and_counted() {
    let broker = Broker::start();
    let client = broker.client().await;
    let (mut active, _) = client.subscribe(candidate()).await;
    let mut standby = client.open(candidate()).await;
    standby.send(Command::Resign(Resign {}));
    broker.stats_when("the count", |stats| stats.counters["resign_ignored"] == 1).await;
    standby.quiet().await;
    client.publish("a", "1").await;
    assert_eq!(active.take().await, "1");
    drop(active);
    standby.subscription_id().await;
}

#[tokio::test]
async fn outside_singleton_it_ends_the_stream() {
    let broker = Broker::start();
    let client = broker.client().await;
    for (open, mode) in [(multi(&["a"]), "MULTI"), (balanced("g", &["a"]), "BALANCED")] {
        let (mut stream, _) = client.subscribe(open).await;
        stream.send(Command::Resign(Resign {}));
        assert_invalid(&stream.end().await, "resign", &["SINGLETON", mode]);
        client.publish("fine", "x").await;
    }
    broker.stats_when("their leaving", |stats| stats.members == 0).await;
}
