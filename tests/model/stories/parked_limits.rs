//! Parked messages at the limits of their subscription: they count, and they are dropped like any other.

use tinybroker::core::{Counter, EndReason, OpenSpec, Overflow, PublishRefusal};
use tinybroker::model::Mode;

use super::parked::{DELAY, delayed, parker};
use crate::outcome::{Reply, Told};
use crate::stage::{MAX_PENDING_BYTES, NEAR_FULL_MESSAGES, Stage, by_system_id, delivery, id, open};

fn limited(mode: Mode, max_pending: u64, overflow: Overflow) -> OpenSpec {
    let mut spec = open(mode);
    spec.options.max_pending = max_pending;
    spec.options.overflow = overflow;
    spec
}

#[test]
fn parked_messages_count_in_max_pending() {
    let mut stage = Stage::new();
    let alone = parker(&mut stage, &limited(Mode::Balanced, 2, Overflow::Reject));
    stage.publish_all([2, 3]);
    assert_eq!(stage.received(alone), [2]);
    let refusal = PublishRefusal::Messages { subscription: id("sub"), waiting: 2, limit: 2 };
    assert_eq!(stage.publish(4), Reply::Full(vec![refusal]), "1 is parked, 3 waits");
}

/// Else a publish over several shards could be refused by one of them after all.
#[test]
fn parked_messages_bring_a_subscription_near_full() {
    let mut stage = Stage::new();
    let alone = stage.join(&limited(Mode::Balanced, NEAR_FULL_MESSAGES + 1, Overflow::Reject));
    for number in [1, 2] {
        assert!(!stage.core.is_near_full());
        stage.publish_all([number]);
        stage.nack(alone, &[delivery(number, 1)], delayed(DELAY));
    }
    assert!(stage.core.is_near_full());
}

#[test]
fn parked_messages_count_in_bytes() {
    let mut stage = Stage::new();
    let alone = stage.join(&open(Mode::Balanced));
    let half = MAX_PENDING_BYTES as usize / 2;
    stage.publish_message(Stage::message(1, half, None));
    stage.nack(alone, &[delivery(1, 1)], delayed(DELAY));
    let waiting = Stage::message(1, half, None).cost();
    let refusal = PublishRefusal::Bytes { subscription: id("sub"), waiting, limit: MAX_PENDING_BYTES };
    assert_eq!(stage.publish_message(Stage::message(2, half, None)), Reply::Full(vec![refusal]));
}

#[test]
fn drop_oldest_drops_a_parked_message_that_was_published_first() {
    let mut stage = Stage::new();
    let alone =
        stage.join(&OpenSpec { max_in_flight: 2, ..limited(Mode::Balanced, 2, Overflow::DropOldest) });
    stage.publish_all([1, 2]);
    stage.nack(alone, &[delivery(2, 1)], delayed(DELAY));
    stage.nack(alone, &[delivery(1, 1)], delayed(2 * DELAY));
    stage.told(alone);
    stage.publish_all([3]);
    assert_eq!(stage.told(alone)[0], Told::Lagged(1));
    assert_eq!(stage.stats().parked, 1);
    stage.wait(DELAY);
    assert_eq!(stage.deliveries(alone), [delivery(2, 2)]);
    assert_eq!(stage.core.next_deadline(), None, "what was dropped is due no more");
}

#[test]
fn drop_oldest_drops_an_older_one_that_waits_before_a_parked_one() {
    let mut stage = Stage::new();
    let spec = OpenSpec { max_in_flight: 2, ..limited(Mode::Balanced, 2, Overflow::DropOldest) };
    let [first, second] = [(), ()].map(|()| stage.join(&spec));
    stage.publish_all([1, 2, 3, 4]);
    assert_eq!([stage.received(first), stage.received(second)], [[1, 3], [2, 4]]);
    stage.nack(first, &[delivery(3, 1)], delayed(DELAY));
    stage.leave(first);
    stage.publish_all([5]);
    let stats = stage.stats();
    assert_eq!((stats.waiting, stats.parked), (2, 1), "1 was dropped");
    stage.wait(DELAY);
    stage.ack(second, by_system_id(&[delivery(2, 1), delivery(4, 1)]));
    assert_eq!(stage.deliveries(second), [delivery(3, 2), delivery(5, 1)]);
}

#[test]
fn in_singleton_what_a_dropped_parked_message_held_back_is_free() {
    let mut stage = Stage::new();
    let leader = parker(&mut stage, &limited(Mode::Singleton, 1, Overflow::DropOldest));
    stage.publish_all([2]);
    let told = stage.told(leader);
    assert_eq!(told[0], Told::Lagged(1));
    assert_eq!(told[1], Told::Deliver { id: delivery(2, 1), attempt: 1, epoch: 101 });
}

#[test]
fn disconnect_counts_parked_messages_as_behind_and_drops_them() {
    let mut stage = Stage::new();
    let leader = parker(&mut stage, &limited(Mode::Singleton, 2, Overflow::Disconnect));
    stage.publish_all([2]);
    assert_eq!(stage.publish(3), Reply::Published(0));
    assert_eq!(stage.told(leader), [Told::End(EndReason::Overflow { behind: 2, limit: 2 })]);
    assert_eq!(stage.counted(Counter::DroppedDisconnect), 2);
    assert_eq!(stage.core.next_deadline(), None);
}
