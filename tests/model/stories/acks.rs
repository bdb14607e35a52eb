//! Acks: what settles a delivery, what settles nothing, and what the caller is told.

use std::time::Duration;

use tinybroker::core::{Action, Counter, EndReason, Input, OpenSpec, Settle, SettleTarget, Settlement};
use tinybroker::model::Mode;

use crate::outcome::{Reply, Told};
use crate::stage::{Stage, by_system_id, delivery, id, open};

fn worker(max_in_flight: u32) -> OpenSpec {
    OpenSpec { max_in_flight, ..open(Mode::Balanced) }
}

#[test]
fn f01_an_ack_from_elsewhere_settles_once_and_the_next_message_comes_at_once() {
    let mut stage = Stage::new();
    let holder = stage.join(&worker(1));
    stage.publish_all([1, 2]);
    assert_eq!(stage.received(holder), [1]);
    let one = by_system_id(&[delivery(1, 1)]);
    assert_eq!(stage.ack_by_call(one.clone()), Settlement::Done { settled: 1 });
    assert_eq!(stage.received(holder), [2]);
    assert_eq!(stage.ack_by_call(one.clone()), Settlement::NotInFlight);
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(77, 1)])), Settlement::NotInFlight);
    let foreign = SettleTarget::Deliveries { ids: Default::default(), unknown: 1 };
    assert_eq!(stage.ack_by_call(foreign), Settlement::NotInFlight);
    assert_eq!(stage.settle_by_call("no-such", one, Action::Ack), Settlement::UnknownSubscription);
    assert_eq!(stage.counted(Counter::AckNotFound), 3);
}

#[test]
fn of_many_ids_those_in_flight_are_settled_and_counted() {
    let mut stage = Stage::new();
    let [first, second] = [worker(2), worker(2)].map(|spec| stage.join(&spec));
    stage.publish_all(1..=8);
    assert_eq!(stage.received(first), [1, 3]);
    assert_eq!(stage.received(second), [2, 4]);
    let ids = [1, 2, 4, 1, 99].map(|number| delivery(number, 1));
    let many = SettleTarget::Deliveries { ids: ids[..].into(), unknown: 1 };
    assert_eq!(stage.ack_by_call(many), Settlement::Done { settled: 3 });
    assert_eq!(stage.stats().in_flight, 4, "1 and the next three");
    assert_eq!(stage.counted(Counter::AckNotFound), 3);
}

#[test]
fn a_late_ack_of_a_taken_back_delivery_settles_nothing() {
    let mut stage = Stage::new();
    let [dying, heir] = [worker(1), worker(1)].map(|spec| stage.join(&spec));
    stage.publish_all([1]);
    assert_eq!(stage.deliveries(dying), [delivery(1, 1)]);
    stage.leave(dying);
    assert_eq!(stage.deliveries(heir), [delivery(1, 2)]);
    for stale in [delivery(1, 1), delivery(1, 3)] {
        assert_eq!(stage.ack_by_call(by_system_id(&[stale])), Settlement::NotInFlight);
    }
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 2)])), Settlement::Done { settled: 1 });
}

#[test]
fn message_id_acks_mean_the_earliest_delivery() {
    let mut stage = Stage::new();
    let [first, second] = [worker(1), worker(1)].map(|spec| stage.join(&spec));
    for number in [1, 2] {
        stage.publish_message(Stage::message(number, 10, Some("same")));
    }
    stage.leave(first);
    let third = stage.join(&worker(1));
    assert_eq!(stage.deliveries(second), [delivery(2, 1)]);
    assert_eq!(stage.deliveries(third), [delivery(1, 2)], "older, but delivered later");
    let same = SettleTarget::Message("same".into());
    assert_eq!(stage.ack_by_call(same.clone()), Settlement::Done { settled: 1 });
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(2, 1)])), Settlement::NotInFlight);
    assert_eq!(stage.ack_by_call(same.clone()), Settlement::Done { settled: 1 });
    assert_eq!(stage.ack_by_call(same), Settlement::NotInFlight);
}

#[test]
fn a_message_without_an_id_of_its_own_goes_by_the_brokers() {
    let mut stage = Stage::new();
    stage.join(&worker(1));
    stage.publish_all([1]);
    let brokers = delivery(1, 1).to_string();
    assert_eq!(stage.ack_by_call(SettleTarget::Message(brokers.into())), Settlement::Done { settled: 1 });
}

#[test]
fn in_a_stream_only_its_own_deliveries_can_be_settled() {
    let mut stage = Stage::new();
    let [first, second] = [worker(1), worker(1)].map(|spec| stage.join(&spec));
    for number in [1, 2] {
        stage.publish_message(Stage::message(number, 10, Some("same")));
    }
    stage.ack(second, by_system_id(&[delivery(1, 1)]));
    assert_eq!(stage.counted(Counter::Acked), 0);
    stage.ack(second, SettleTarget::Message("same".into()));
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(2, 1)])), Settlement::NotInFlight);
    stage.ack(first, by_system_id(&[delivery(1, 1)]));
    assert_eq!(stage.counted(Counter::Acked), 2);
}

#[test]
fn a_command_for_another_subscription_ends_its_stream_alone() {
    let mut stage = Stage::new();
    let [wrong, right] = [worker(1), worker(1)].map(|spec| stage.join(&spec));
    stage.publish_all([1]);
    stage.told(wrong);
    let (subscription_id, target) = (Some(id("other")), by_system_id(&[delivery(1, 1)]));
    let action = Action::Ack;
    stage.apply(Input::Settle(Box::new(Settle { member: wrong, subscription_id, target, action })));
    assert_eq!(stage.told(wrong), [Told::End(EndReason::OtherSubscription)]);
    assert_eq!(stage.deliveries(right), [delivery(1, 2)]);
}

#[test]
fn an_ack_that_was_not_asked_for_is_told_so() {
    let mut stage = Stage::new();
    let reader = stage.join(&open(Mode::Multi));
    assert_eq!(stage.publish(1), Reply::Published(1));
    assert_eq!(stage.received(reader), [1]);
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 1)])), Settlement::NotAsked);
    stage.ack(reader, by_system_id(&[delivery(1, 1)]));
    assert_eq!(stage.counted(Counter::AckNotFound), 0);
}

/// A caller who hears anything but NOT_FOUND takes the message for acked, and it comes back later.
#[test]
fn an_ack_of_what_a_lingering_multi_subscription_took_back_is_not_found() {
    let mut stage = Stage::new();
    let mut spec = OpenSpec { max_in_flight: 1, subscription_id: Some(id("sub")), ..open(Mode::Multi) };
    spec.options.linger = Duration::from_secs(1);
    let gone = stage.join(&spec);
    stage.publish_all([1]);
    stage.leave(gone);
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 1)])), Settlement::NotInFlight);
    let back = stage.join(&spec);
    assert_eq!(stage.deliveries(back), [delivery(1, 2)]);
}
