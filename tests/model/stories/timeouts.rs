//! Timeouts: who holds a message too long loses it, unless it asks for more time.

use std::time::Duration;

use tinybroker::core::{Counter, Input, Nack, OpenSpec, SettleTarget, Settlement};
use tinybroker::limits::MEMBER_WINDOW_BYTES;
use tinybroker::model::{MemberId, Mode};

use crate::outcome::{Reply, Told};
use crate::stage::{Stage, by_system_id, delivery, id, open};

const TIMEOUT: Duration = Duration::from_millis(100);
const NANO: Duration = Duration::from_nanos(1);
const USUAL: Duration = Duration::ZERO;

fn timed(mode: Mode, max_in_flight: u32) -> OpenSpec {
    let mut spec = OpenSpec { max_in_flight, ..open(mode) };
    spec.options.ack_timeout = TIMEOUT;
    spec
}

/// A member that has held message 1 since now.
fn holder(stage: &mut Stage, spec: &OpenSpec) -> MemberId {
    let member = stage.join(spec);
    stage.publish_all([1]);
    assert_eq!(stage.deliveries(member), [delivery(1, 1)]);
    member
}

#[test]
fn a_delivery_is_taken_back_at_its_timeout_exactly() {
    for mode in [Mode::Balanced, Mode::Singleton, Mode::Multi] {
        let mut stage = Stage::new();
        let alone = holder(&mut stage, &timed(mode, 1));
        assert_eq!(stage.core.next_deadline(), Some(stage.now + TIMEOUT));
        stage.wait(TIMEOUT - NANO);
        assert_eq!(stage.told(alone), []);
        stage.wait(NANO);
        assert_eq!(stage.deliveries(alone), [delivery(1, 2)]);
        assert_eq!(stage.counted(Counter::TimedOut), 1);
        assert_eq!(stage.core.next_deadline(), Some(stage.now + TIMEOUT), "a redelivery has all its time");
    }
}

#[test]
fn what_timed_out_goes_to_the_next_with_its_attempt_raised() {
    let mut stage = Stage::new();
    let stuck = holder(&mut stage, &timed(Mode::Balanced, 1));
    let quick = stage.join(&timed(Mode::Balanced, 1));
    stage.told(quick);
    stage.wait(TIMEOUT);
    assert_eq!(stage.told(quick), [Told::Deliver { id: delivery(1, 2), attempt: 2, epoch: 0 }]);
    assert_eq!(stage.told(stuck), []);
}

#[test]
fn an_ack_after_the_timeout_is_not_found_and_leaves_the_redelivery_alone() {
    let mut stage = Stage::new();
    let slow = holder(&mut stage, &timed(Mode::Balanced, 1));
    stage.wait(TIMEOUT);
    stage.ack(slow, by_system_id(&[delivery(1, 1)]));
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 1)])), Settlement::NotInFlight);
    assert_eq!(stage.counted(Counter::AckNotFound), 2);
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 2)])), Settlement::Done { settled: 1 });
}

#[test]
fn who_acks_at_the_deadline_before_its_tick_is_late() {
    let mut stage = Stage::new();
    holder(&mut stage, &timed(Mode::Balanced, 1));
    stage.now = stage.now + TIMEOUT;
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 1)])), Settlement::NotInFlight);
}

#[test]
fn who_acks_just_before_the_deadline_is_in_time() {
    let mut stage = Stage::new();
    holder(&mut stage, &timed(Mode::Balanced, 1));
    stage.now = stage.now + (TIMEOUT - NANO);
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 1)])), Settlement::Done { settled: 1 });
    assert_eq!(stage.core.next_deadline(), None, "nothing is due for what was acked");
}

#[test]
fn an_extend_starts_the_subscriptions_timeout_anew() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &timed(Mode::Balanced, 1));
    stage.wait(TIMEOUT - NANO);
    let held = by_system_id(&[delivery(1, 1)]);
    assert_eq!(stage.extend_by_call(held, USUAL), Settlement::Done { settled: 1 });
    stage.wait(TIMEOUT - NANO);
    assert_eq!(stage.told(alone), []);
    stage.wait(NANO);
    assert_eq!(stage.deliveries(alone), [delivery(1, 2)]);
    assert_eq!(stage.counted(Counter::Extended), 1);
}

#[test]
fn an_extend_may_name_a_longer_time_or_a_shorter_one() {
    for asked in [TIMEOUT * 3, TIMEOUT / 3] {
        let mut stage = Stage::new();
        let alone = holder(&mut stage, &timed(Mode::Balanced, 1));
        let same = SettleTarget::Message(delivery(1, 1).to_string().into());
        assert_eq!(stage.extend_by_call(same, asked), Settlement::Done { settled: 1 });
        assert_eq!(stage.core.next_deadline(), Some(stage.now + asked));
        stage.wait(asked - NANO);
        assert_eq!(stage.told(alone), []);
        stage.wait(NANO);
        assert_eq!(stage.deliveries(alone), [delivery(1, 2)]);
        assert_eq!(stage.core.next_deadline(), Some(stage.now + TIMEOUT), "asked for one delivery alone");
    }
}

#[test]
fn an_extend_after_the_timeout_is_not_found_and_leaves_the_redelivery_alone() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &timed(Mode::Balanced, 1));
    stage.wait(TIMEOUT);
    assert_eq!(stage.deliveries(alone), [delivery(1, 2)]);
    let due = stage.core.next_deadline();
    let late = by_system_id(&[delivery(1, 1)]);
    assert_eq!(stage.extend_by_call(late, TIMEOUT * 9), Settlement::NotInFlight);
    assert_eq!(stage.core.next_deadline(), due);
    assert_eq!(stage.counted(Counter::ExtendNotFound), 1);
}

#[test]
fn of_many_that_are_named_those_in_flight_are_extended() {
    let mut stage = Stage::new();
    let alone = stage.join(&timed(Mode::Balanced, 3));
    stage.publish_all([1, 2, 3]);
    stage.told(alone);
    stage.wait(TIMEOUT / 2);
    let some = by_system_id(&[delivery(1, 1), delivery(3, 1), delivery(9, 1)]);
    assert_eq!(stage.extend_by_call(some, USUAL), Settlement::Done { settled: 2 });
    stage.wait(TIMEOUT / 2);
    assert_eq!(stage.deliveries(alone), [delivery(2, 2)]);
}

#[test]
fn without_a_timeout_a_member_may_hold_a_message_for_ever() {
    let mut stage = Stage::new();
    let mut spec = timed(Mode::Balanced, 1);
    spec.options.ack_timeout = Duration::ZERO;
    let alone = holder(&mut stage, &spec);
    assert_eq!(stage.core.next_deadline(), None);
    stage.wait(Duration::from_secs(3600 * 24 * 365));
    assert_eq!(stage.told(alone), []);
    let held = || by_system_id(&[delivery(1, 1)]);
    stage.extend_by_call(held(), TIMEOUT);
    assert_eq!(stage.core.next_deadline(), Some(stage.now + TIMEOUT), "it has asked for one itself");
    stage.extend_by_call(held(), USUAL);
    assert_eq!(stage.core.next_deadline(), None);
    assert_eq!(stage.ack_by_call(held()), Settlement::Done { settled: 1 });
}

#[test]
fn a_timed_out_member_has_room_again() {
    let mut stage = Stage::new();
    let stuck = holder(&mut stage, &timed(Mode::Balanced, 1));
    let quick = stage.join(&timed(Mode::Balanced, 1));
    stage.wait(TIMEOUT);
    assert_eq!(stage.deliveries(quick), [delivery(1, 2)]);
    stage.publish_all([2]);
    assert_eq!(stage.received(stuck), [2]);
}

#[test]
fn what_returns_by_timeout_takes_its_old_place() {
    let mut stage = Stage::new();
    let alone = stage.join(&timed(Mode::Balanced, 2));
    stage.publish_all([1, 2]);
    stage.wait(TIMEOUT / 2);
    stage.ack(alone, by_system_id(&[delivery(2, 1)]));
    stage.publish_all([3, 4]);
    assert_eq!(stage.received(alone), [1, 2, 3]);
    stage.wait(TIMEOUT / 2);
    assert_eq!(stage.deliveries(alone), [delivery(1, 2)], "before 4");
}

#[test]
fn in_singleton_what_times_out_behind_a_parked_message_waits_for_it() {
    let mut stage = Stage::new();
    let leader = stage.join(&timed(Mode::Singleton, 2));
    stage.publish_all([1, 2]);
    stage.told(leader);
    stage.nack(leader, &[delivery(1, 1)], Nack { delay: 2 * TIMEOUT, ..Nack::default() });
    stage.wait(TIMEOUT);
    assert_eq!(stage.told(leader), []);
    stage.wait(TIMEOUT);
    assert_eq!(stage.deliveries(leader), [delivery(1, 2), delivery(2, 2)]);
}

#[test]
fn a_resigned_leaders_timeouts_are_gone() {
    let mut stage = Stage::new();
    let leader = holder(&mut stage, &timed(Mode::Singleton, 1));
    let next = stage.join(&timed(Mode::Singleton, 1));
    stage.wait(TIMEOUT / 2);
    stage.resign(leader);
    assert_eq!(stage.deliveries(next), [delivery(1, 2)]);
    stage.wait(TIMEOUT - NANO);
    assert_eq!(stage.counted(Counter::TimedOut), 0);
    stage.wait(NANO);
    assert_eq!(stage.counted(Counter::TimedOut), 1, "that of the redelivery");
}

#[test]
fn timeouts_while_draining_return_messages_that_nobody_gets() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &timed(Mode::Balanced, 1));
    stage.apply(Input::Drain { grace: Duration::from_secs(5) });
    stage.wait(TIMEOUT);
    assert_eq!(stage.told(alone), []);
    assert_eq!(stage.core.in_flight(), 0, "nothing to wait for");
    assert_eq!(stage.stats().waiting, 1);
}

#[test]
fn the_end_of_a_subscription_takes_its_deadlines_along() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &timed(Mode::Balanced, 1));
    stage.leave(alone);
    assert_eq!(stage.core.next_deadline(), None);
    stage.wait(TIMEOUT);
    assert_eq!(stage.counted(Counter::TimedOut), 0);
}

#[test]
fn what_is_due_in_several_subscriptions_at_one_moment_is_done_at_once() {
    let mut stage = Stage::new();
    let readers = ["one", "two", "three"].map(|name| {
        let spec = OpenSpec { id_if_new: id(name), ..timed(Mode::Multi, 1) };
        stage.join(&spec)
    });
    assert_eq!(stage.publish(1), Reply::Published(3));
    stage.wait(TIMEOUT);
    for reader in readers {
        assert_eq!(stage.deliveries(reader), [delivery(1, 1), delivery(1, 2)]);
    }
}

/// A stream that comes back after its linger finds what it held, and no old timeout.
#[test]
fn what_was_held_when_the_last_member_left_lingers_without_a_timeout() {
    let mut stage = Stage::new();
    let mut spec = timed(Mode::Balanced, 1);
    spec.options.linger = 3 * TIMEOUT;
    let gone = holder(&mut stage, &spec);
    stage.leave(gone);
    assert_eq!(stage.core.next_deadline(), Some(stage.now + 3 * TIMEOUT));
    stage.wait(2 * TIMEOUT);
    let back = stage.join(&spec);
    assert_eq!(stage.deliveries(back), [delivery(1, 2)]);
    assert_eq!(stage.core.next_deadline(), Some(stage.now + TIMEOUT));
}

/// The time runs from the delivery, not from when the message was published or became ready.
#[test]
fn what_waited_for_its_connection_has_all_its_time() {
    let mut stage = Stage::new();
    let slow = stage.join(&timed(Mode::Balanced, 2));
    let large = MEMBER_WINDOW_BYTES as usize;
    for number in [1, 2] {
        stage.publish_message(Stage::message(number, large, None));
    }
    stage.ack(slow, by_system_id(&[delivery(1, 1)]));
    stage.wait(TIMEOUT * 2);
    assert_eq!(stage.received(slow), [1], "its connection has taken nothing yet");
    assert_eq!(stage.core.next_deadline(), None);
    let bytes = Stage::message(1, large, None).cost();
    stage.apply(Input::Credit { member: slow, messages: 1, bytes });
    assert_eq!(stage.received(slow), [2]);
    assert_eq!(stage.core.next_deadline(), Some(stage.now + TIMEOUT));
}

/// A connection takes so many messages that it was sent.
fn taken(member: MemberId, messages: u32) -> Input {
    let bytes = u64::from(messages) * Stage::message(0, 10, None).cost();
    Input::Credit { member, messages, bytes }
}

/// A leader that holds many messages since one moment, after it has held and acked as many others.
fn holder_of_many(stage: &mut Stage, numbers: std::ops::Range<u64>) -> MemberId {
    let leader = stage.join(&timed(Mode::Singleton, 10_000));
    let hold = |stage: &mut Stage, number| {
        stage.publish_all([number]);
        stage.apply(taken(leader, 1));
    };
    let earlier = numbers.clone().map(|number| number + 1_000_000);
    earlier.clone().for_each(|number| hold(stage, number));
    let earlier: Vec<_> = earlier.map(|number| delivery(number, 1)).collect();
    stage.ack(leader, by_system_id(&earlier));
    numbers.for_each(|number| hold(stage, number));
    stage.told(leader);
    leader
}

/// More than one input sees to: the deadline stays due until all are taken back, in publish order.
#[test]
fn many_timeouts_at_once_are_worked_off_in_slices_and_in_order() {
    let mut stage = Stage::new();
    let leader = holder_of_many(&mut stage, 0..3000);
    stage.wait(TIMEOUT);
    let mut slices = 1;
    while slices < 10 && stage.core.next_deadline() == Some(stage.now) {
        stage.apply(taken(leader, 1024));
        slices += 1;
    }
    assert!((2..10).contains(&slices), "{slices} slices");
    stage.apply(taken(leader, 1024));
    let redelivered = stage.deliveries(leader);
    assert_eq!(redelivered.len(), 3000, "each once");
    assert!(redelivered.is_sorted_by_key(|id| id.message), "SINGLETON keeps publish order");
    assert_eq!(stage.core.next_deadline(), Some(stage.now + TIMEOUT));
}

/// What is overdue and not yet taken back is still in flight: nobody else has it.
#[test]
fn what_a_slice_has_left_can_still_be_acked() {
    let mut stage = Stage::new();
    holder_of_many(&mut stage, 0..2000);
    stage.now = stage.now + TIMEOUT;
    let first_and_last = by_system_id(&[delivery(0, 1), delivery(1999, 1)]);
    assert_eq!(stage.ack_by_call(first_and_last), Settlement::Done { settled: 1 });
}
