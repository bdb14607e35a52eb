//! Nacks: what goes back, to where, and what it counts for.

use std::time::Duration;

use tinybroker::core::{Action, Counter, Nack, OpenSpec, SettleTarget, Settlement};
use tinybroker::model::Mode;

use crate::outcome::Told;
use crate::stage::{Stage, by_system_id, delivery, open};

const AT_ONCE: Nack = Nack { delay: Duration::ZERO, discard: false, keep_attempt: false };
const UNSTARTED: Nack = Nack { keep_attempt: true, ..AT_ONCE };

fn worker(max_in_flight: u32) -> OpenSpec {
    OpenSpec { max_in_flight, ..open(Mode::Balanced) }
}

fn attempt(message: u64, nth: u32, attempt: u32) -> Told {
    Told::Deliver { id: delivery(message, nth), attempt, epoch: 0 }
}

#[test]
fn a_nacked_message_goes_to_the_next_with_its_attempt_raised() {
    let mut stage = Stage::new();
    let [first, second] = [worker(1), worker(1)].map(|spec| stage.join(&spec));
    stage.publish_all([1]);
    assert_eq!(stage.deliveries(first), [delivery(1, 1)]);
    stage.told(second);
    stage.nack(first, &[delivery(1, 1)], AT_ONCE);
    assert_eq!(stage.told(second), [attempt(1, 2, 2)]);
    assert_eq!(stage.counted(Counter::Nacked), 1);
}

#[test]
fn a_nacked_message_returns_to_its_nacker_where_nobody_else_has_room() {
    let mut stage = Stage::new();
    let alone = stage.join(&worker(1));
    stage.publish_all([1, 2]);
    stage.told(alone);
    stage.nack(alone, &[delivery(1, 1)], AT_ONCE);
    assert_eq!(stage.told(alone), [attempt(1, 2, 2)], "its old place is before 2");
}

#[test]
fn of_many_that_are_nacked_each_takes_its_old_place() {
    let mut stage = Stage::new();
    let alone = stage.join(&worker(4));
    stage.publish_all(1..=6);
    assert_eq!(stage.received(alone), [1, 2, 3, 4]);
    let scrambled = [3, 1, 4].map(|number| delivery(number, 1));
    let nack = stage.nack_by_call(by_system_id(&scrambled), AT_ONCE);
    assert_eq!(nack, Settlement::Done { settled: 3 });
    assert_eq!(stage.deliveries(alone), [delivery(1, 2), delivery(3, 2), delivery(4, 2)]);
}

/// Else a command that names a redelivery could settle what it has itself brought about.
#[test]
fn what_a_command_puts_back_is_delivered_after_all_that_it_names() {
    let mut stage = Stage::new();
    let alone = stage.join(&worker(1));
    stage.publish_all([1]);
    let both = by_system_id(&[delivery(1, 1), delivery(1, 2)]);
    assert_eq!(stage.nack_by_call(both, AT_ONCE), Settlement::Done { settled: 1 });
    assert_eq!(stage.deliveries(alone), [delivery(1, 1), delivery(1, 2)]);
    assert_eq!(stage.counted(Counter::NackNotFound), 1);
}

#[test]
fn a_late_ack_of_a_nacked_delivery_settles_nothing() {
    let mut stage = Stage::new();
    let alone = stage.join(&worker(1));
    stage.publish_all([1]);
    let first = by_system_id(&[delivery(1, 1)]);
    assert_eq!(stage.nack_by_call(first.clone(), AT_ONCE), Settlement::Done { settled: 1 });
    assert_eq!(stage.ack_by_call(first.clone()), Settlement::NotInFlight);
    assert_eq!(stage.nack_by_call(first, AT_ONCE), Settlement::NotInFlight);
    assert_eq!(stage.deliveries(alone), [delivery(1, 1), delivery(1, 2)]);
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 2)])), Settlement::Done { settled: 1 });
}

#[test]
fn a_nack_of_what_was_acked_brings_nothing_back() {
    let mut stage = Stage::new();
    let alone = stage.join(&worker(1));
    stage.publish_all([1]);
    stage.told(alone);
    stage.ack(alone, by_system_id(&[delivery(1, 1)]));
    stage.nack(alone, &[delivery(1, 1)], AT_ONCE);
    assert_eq!(stage.told(alone), []);
    assert_eq!(stage.counted(Counter::NackNotFound), 1);
}

#[test]
fn keep_attempt_raises_the_suffix_and_not_the_attempt() {
    let mut stage = Stage::new();
    let alone = stage.join(&worker(1));
    stage.publish_all([1]);
    stage.told(alone);
    stage.nack(alone, &[delivery(1, 1)], UNSTARTED);
    assert_eq!(stage.told(alone), [attempt(1, 2, 1)]);
    stage.nack(alone, &[delivery(1, 2)], AT_ONCE);
    assert_eq!(stage.told(alone), [attempt(1, 3, 2)]);
    stage.nack(alone, &[delivery(1, 3)], UNSTARTED);
    assert_eq!(stage.told(alone), [attempt(1, 4, 2)]);
    assert_eq!(stage.counted(Counter::Redelivered), 3);
}

#[test]
fn a_nack_by_message_id_means_the_earliest_delivery() {
    let mut stage = Stage::new();
    let [first, second] = [worker(1), worker(1)].map(|spec| stage.join(&spec));
    for number in [1, 2] {
        stage.publish_message(Stage::message(number, 10, Some("same")));
    }
    stage.told(first);
    stage.told(second);
    let same = || SettleTarget::Message("same".into());
    assert_eq!(stage.nack_by_call(same(), UNSTARTED), Settlement::Done { settled: 1 });
    assert_eq!(stage.deliveries(first), [delivery(1, 2)], "now the later one");
    assert_eq!(stage.nack_by_call(same(), UNSTARTED), Settlement::Done { settled: 1 });
    assert_eq!(stage.deliveries(second), [delivery(2, 2)]);
}

#[test]
fn in_a_stream_only_its_own_deliveries_can_be_nacked_or_extended() {
    let mut stage = Stage::new();
    let mut spec = worker(1);
    spec.options.ack_timeout = Duration::from_secs(1);
    let [first, second] = [(), ()].map(|()| stage.join(&spec));
    stage.publish_all([1, 2]);
    stage.told(first);
    stage.told(second);
    stage.wait(Duration::from_millis(500));
    stage.nack(second, &[delivery(1, 1)], AT_ONCE);
    let extend = Action::Extend { ack_timeout: Duration::ZERO };
    stage.settle(second, by_system_id(&[delivery(1, 1)]), extend);
    stage.wait(Duration::from_millis(499));
    assert_eq!([stage.told(first), stage.told(second)], [[], []]);
    stage.wait(Duration::from_millis(1));
    assert_eq!(stage.counted(Counter::TimedOut), 2, "neither nacked nor extended");
    assert_eq!([Counter::NackNotFound, Counter::ExtendNotFound].map(|c| stage.counted(c)), [1, 1]);
}

#[test]
fn a_nack_or_extend_that_was_not_asked_for_is_told_so() {
    let mut stage = Stage::new();
    let reader = stage.join(&open(Mode::Multi));
    stage.publish_all([1]);
    stage.told(reader);
    let sent = by_system_id(&[delivery(1, 1)]);
    assert_eq!(stage.nack_by_call(sent.clone(), AT_ONCE), Settlement::NotAsked);
    assert_eq!(stage.extend_by_call(sent, Duration::from_secs(1)), Settlement::NotAsked);
    stage.nack(reader, &[delivery(1, 1)], AT_ONCE);
    assert_eq!(stage.told(reader), [], "what was sent is gone");
    assert_eq!([Counter::NackNotFound, Counter::ExtendNotFound].map(|c| stage.counted(c)), [0, 0]);
}

#[test]
fn a_multi_stream_that_asks_for_acks_can_nack() {
    let mut stage = Stage::new();
    let spec = OpenSpec { max_in_flight: 1, ..open(Mode::Multi) };
    let reader = stage.join(&spec);
    stage.publish_all([1, 2]);
    stage.told(reader);
    stage.nack(reader, &[delivery(1, 1)], AT_ONCE);
    assert_eq!(stage.deliveries(reader), [delivery(1, 2)]);
}

/// What is nacked while the broker goes down is no longer waited for, and goes to nobody.
#[test]
fn a_nack_while_draining_ends_the_delivery_and_makes_none() {
    let mut stage = Stage::new();
    let alone = stage.join(&worker(1));
    stage.publish_all([1]);
    stage.told(alone);
    stage.apply(tinybroker::core::Input::Drain { grace: Duration::from_secs(5) });
    assert_eq!(stage.nack_by_call(by_system_id(&[delivery(1, 1)]), AT_ONCE), Settlement::Done { settled: 1 });
    assert_eq!(stage.told(alone), []);
    assert_eq!(stage.core.in_flight(), 0);
}
