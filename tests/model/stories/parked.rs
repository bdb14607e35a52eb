//! Parked messages: nacked with a delay, they keep their place and wait for their time.

use std::time::Duration;

use tinybroker::core::{Counter, Input, Nack, OpenSpec, Settlement};
use tinybroker::model::{MemberId, Mode};

use crate::outcome::Told;
use crate::stage::{Stage, by_system_id, delivery, id, open};

pub const DELAY: Duration = Duration::from_millis(100);
const NANO: Duration = Duration::from_nanos(1);

pub fn delayed(delay: Duration) -> Nack {
    Nack { delay, ..Nack::default() }
}

fn member(mode: Mode, max_in_flight: u32) -> OpenSpec {
    OpenSpec { max_in_flight, ..open(mode) }
}

/// A member that has parked message 1 for `DELAY`.
pub fn parker(stage: &mut Stage, spec: &OpenSpec) -> MemberId {
    let member = stage.join(spec);
    stage.publish_all([1]);
    stage.told(member);
    stage.nack(member, &[delivery(1, 1)], delayed(DELAY));
    member
}

#[test]
fn a_parked_message_comes_back_at_its_time_exactly() {
    for mode in [Mode::Balanced, Mode::Singleton, Mode::Multi] {
        let mut stage = Stage::new();
        let alone = parker(&mut stage, &member(mode, 1));
        assert_eq!(stage.core.next_deadline(), Some(stage.now + DELAY));
        stage.wait(DELAY - NANO);
        assert_eq!(stage.told(alone), []);
        stage.wait(NANO);
        assert_eq!(stage.deliveries(alone), [delivery(1, 2)]);
        assert_eq!(stage.core.next_deadline(), None);
    }
}

#[test]
fn a_parked_message_that_is_due_comes_before_the_next_input_is_applied() {
    let mut stage = Stage::new();
    let alone = parker(&mut stage, &member(Mode::Balanced, 1));
    stage.now = stage.now + DELAY;
    stage.publish_all([2]);
    assert_eq!(stage.deliveries(alone), [delivery(1, 2)], "2 has to wait");
}

#[test]
fn a_parked_message_takes_nobodys_credit() {
    let mut stage = Stage::new();
    let alone = parker(&mut stage, &member(Mode::Balanced, 1));
    stage.publish_all([2]);
    assert_eq!(stage.received(alone), [2]);
    let stats = stage.stats();
    assert_eq!((stats.waiting, stats.parked, stats.in_flight), (1, 1, 1));
}

#[test]
fn outside_singleton_a_parked_message_holds_nobody_back() {
    for mode in [Mode::Balanced, Mode::Multi] {
        let mut stage = Stage::new();
        let alone = parker(&mut stage, &member(mode, 3));
        stage.publish_all([2, 3]);
        assert_eq!(stage.received(alone), [2, 3]);
    }
}

#[test]
fn when_its_time_has_come_it_takes_its_old_place() {
    let mut stage = Stage::new();
    let alone = parker(&mut stage, &member(Mode::Balanced, 1));
    stage.publish_all([2, 3, 4]);
    stage.wait(DELAY);
    assert_eq!(stage.received(alone), [2]);
    stage.ack(alone, by_system_id(&[delivery(2, 1)]));
    assert_eq!(stage.deliveries(alone), [delivery(1, 2)], "before 3 and 4");
}

#[test]
fn several_come_back_each_at_its_own_time() {
    let mut stage = Stage::new();
    let alone = stage.join(&member(Mode::Balanced, 3));
    stage.publish_all([1, 2, 3]);
    stage.told(alone);
    for (number, delay) in [(1, 3 * DELAY), (2, DELAY), (3, 2 * DELAY)] {
        stage.nack(alone, &[delivery(number, 1)], delayed(delay));
    }
    for number in [2, 3, 1] {
        stage.wait(DELAY);
        assert_eq!(stage.deliveries(alone), [delivery(number, 2)]);
    }
}

#[test]
fn in_singleton_a_parked_message_holds_back_all_behind_it() {
    let mut stage = Stage::new();
    let leader = parker(&mut stage, &member(Mode::Singleton, 10));
    stage.publish_all([2, 3]);
    assert_eq!(stage.told(leader), []);
    stage.wait(DELAY);
    assert_eq!(stage.deliveries(leader), [delivery(1, 2), delivery(2, 1), delivery(3, 1)]);
}

#[test]
fn in_singleton_what_was_published_before_a_parked_message_goes_on() {
    let mut stage = Stage::new();
    let leader = stage.join(&member(Mode::Singleton, 2));
    stage.publish_all([1, 2, 3]);
    stage.told(leader);
    stage.nack(leader, &[delivery(2, 1)], delayed(DELAY));
    assert_eq!(stage.told(leader), [], "3 is behind 2");
    stage.nack(leader, &[delivery(1, 1)], Nack::default());
    assert_eq!(stage.deliveries(leader), [delivery(1, 2)]);
    stage.wait(DELAY);
    assert_eq!(stage.deliveries(leader), [delivery(2, 2)]);
}

/// The one due first is not the first in order: it waits behind the other.
#[test]
fn in_singleton_two_parked_messages_return_in_publish_order() {
    let mut stage = Stage::new();
    let leader = stage.join(&member(Mode::Singleton, 2));
    stage.publish_all([1, 2]);
    stage.told(leader);
    stage.nack(leader, &[delivery(1, 1)], delayed(2 * DELAY));
    stage.nack(leader, &[delivery(2, 1)], delayed(DELAY));
    stage.wait(DELAY);
    assert_eq!(stage.told(leader), []);
    assert_eq!(stage.stats().parked, 1);
    stage.wait(DELAY);
    assert_eq!(stage.deliveries(leader), [delivery(1, 2), delivery(2, 2)]);
}

#[test]
fn a_promotion_passes_the_parked_message_on_and_what_was_in_flight_behind_it_waits() {
    let mut stage = Stage::new();
    let [leader, next] = [(), ()].map(|()| stage.join(&member(Mode::Singleton, 3)));
    stage.publish_all([1, 2, 3, 4]);
    assert_eq!(stage.received(leader), [1, 2, 3]);
    stage.nack(leader, &[delivery(2, 1)], delayed(DELAY));
    stage.told(next);
    stage.leave(leader);
    let first = Told::Deliver { id: delivery(1, 2), attempt: 2, epoch: 102 };
    assert_eq!(stage.told(next), [Told::Started(id("sub")), first], "promoted at once, 1 alone is before 2");
    stage.wait(DELAY);
    assert_eq!(stage.deliveries(next), [delivery(2, 2), delivery(3, 2)]);
    stage.ack(next, by_system_id(&[delivery(1, 2)]));
    assert_eq!(stage.deliveries(next), [delivery(4, 1)]);
}

#[test]
fn resign_while_something_is_parked_hands_over_at_once_and_the_rest_at_its_time() {
    let mut stage = Stage::new();
    let [leader, next] = [(), ()].map(|()| stage.join(&member(Mode::Singleton, 1)));
    stage.publish_all([1, 2]);
    stage.nack(leader, &[delivery(1, 1)], delayed(DELAY));
    stage.told(leader);
    stage.told(next);
    stage.resign(leader);
    assert_eq!(stage.told(next), [Told::Started(id("sub"))]);
    stage.wait(DELAY);
    assert_eq!(stage.told(next), [Told::Deliver { id: delivery(1, 2), attempt: 2, epoch: 102 }]);
    assert_eq!(stage.told(leader), []);
}

#[test]
fn epochs_grow_with_each_promotion_whatever_is_parked() {
    let mut stage = Stage::new();
    let mut spec = member(Mode::Singleton, 1);
    spec.options.linger = 10 * DELAY;
    let mut last = 0;
    let mut leader = parker(&mut stage, &spec);
    for suffix in 2..6 {
        stage.leave(leader);
        leader = stage.join(&spec);
        stage.wait(DELAY);
        let Some(Told::Deliver { id, epoch, .. }) = stage.told(leader).pop() else { panic!("a delivery") };
        assert_eq!(id, delivery(1, suffix));
        assert!(epoch > last, "{epoch} after {last}");
        last = epoch;
        stage.nack(leader, &[id], delayed(DELAY));
    }
}

#[test]
fn the_last_members_leaving_drops_what_it_has_parked() {
    let mut stage = Stage::new();
    let alone = parker(&mut stage, &open(Mode::Balanced));
    stage.leave(alone);
    assert_eq!(stage.counted(Counter::DroppedEnded), 1);
    assert_eq!(stage.core.next_deadline(), None);
}

#[test]
fn with_linger_a_parked_message_waits_for_the_next_member_and_for_its_time() {
    let mut stage = Stage::new();
    let mut spec = open(Mode::Balanced);
    spec.options.linger = 10 * DELAY;
    let gone = parker(&mut stage, &spec);
    stage.leave(gone);
    assert_eq!(stage.core.next_deadline(), Some(stage.now + DELAY), "sooner than its end");
    stage.wait(DELAY - NANO);
    let back = stage.join(&spec);
    assert_eq!(stage.deliveries(back), []);
    stage.wait(NANO);
    assert_eq!(stage.deliveries(back), [delivery(1, 2)]);
}

#[test]
fn a_message_whose_time_comes_while_nobody_is_there_waits_like_any_other() {
    let mut stage = Stage::new();
    let mut spec = member(Mode::Singleton, 2);
    spec.options.linger = 2 * DELAY;
    let gone = parker(&mut stage, &spec);
    stage.leave(gone);
    stage.publish_all([2]);
    stage.wait(DELAY);
    assert_eq!(stage.stats().parked, 0);
    assert_eq!(stage.core.next_deadline(), Some(stage.now + DELAY), "the end of its linger");
    let back = stage.join(&spec);
    assert_eq!(stage.deliveries(back), [delivery(1, 2), delivery(2, 1)]);
}

#[test]
fn the_end_of_linger_drops_what_is_parked() {
    let mut stage = Stage::new();
    let mut spec = open(Mode::Balanced);
    spec.options.linger = DELAY / 2;
    let gone = parker(&mut stage, &spec);
    stage.leave(gone);
    stage.wait(DELAY / 2);
    assert_eq!(stage.counted(Counter::DroppedEnded), 1);
    assert!(stage.core.is_empty());
    assert_eq!(stage.core.next_deadline(), None);
}

#[test]
fn an_ack_of_a_parked_message_is_not_found() {
    let mut stage = Stage::new();
    let alone = parker(&mut stage, &open(Mode::Balanced));
    for suffix in [1, 2] {
        assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, suffix)])), Settlement::NotInFlight);
    }
    stage.wait(DELAY);
    assert_eq!(stage.deliveries(alone), [delivery(1, 2)]);
}

#[test]
fn a_parked_message_is_ready_at_its_time_while_the_broker_drains_and_goes_to_nobody() {
    let mut stage = Stage::new();
    let alone = parker(&mut stage, &open(Mode::Balanced));
    stage.apply(Input::Drain { grace: Duration::from_secs(5) });
    stage.wait(DELAY);
    assert_eq!(stage.told(alone), []);
    assert_eq!(stage.stats().parked, 0);
}

/// More than one input sees to: the deadline stays due until all are ready, each exactly once.
#[test]
fn many_that_are_due_at_once_are_readied_in_slices() {
    let mut stage = Stage::new();
    let alone = stage.join(&member(Mode::Multi, 3000));
    for slice in [0..1000, 1000..2000, 2000..3000] {
        stage.publish_all(slice);
        let bytes = 1000 * Stage::message(0, 10, None).cost();
        stage.apply(Input::Credit { member: alone, messages: 1000, bytes });
    }
    let all: Vec<_> = (0..3000).map(|number| delivery(number, 1)).collect();
    assert_eq!(stage.deliveries(alone), all);
    stage.nack(alone, &all, delayed(DELAY));
    stage.wait(DELAY);
    let mut slices = 1;
    while slices < 10 && stage.core.next_deadline().is_some_and(|due| due <= stage.now) {
        stage.wait(Duration::ZERO);
        slices += 1;
    }
    assert!((2..10).contains(&slices), "{slices} slices");
    let stats = stage.stats();
    assert_eq!(stats.parked, 0);
    assert_eq!(stats.waiting + stats.in_flight, 3000);
}
