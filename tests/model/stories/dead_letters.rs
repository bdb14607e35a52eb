//! Messages that are given up: after all their attempts, or because somebody says so.

use std::time::Duration;

use tinybroker::core::{Counter, Effect, GivenUp, Input, Nack, OpenSpec, Overflow};
use tinybroker::model::{MemberId, Mode, Topic};

use crate::outcome::{Reply, Told};
use crate::stage::{Stage, by_system_id, delivery, open};

const TIMEOUT: Duration = Duration::from_millis(100);
const AT_ONCE: Nack = Nack { delay: Duration::ZERO, discard: false, keep_attempt: false };
const DISCARD: Nack = Nack { discard: true, ..AT_ONCE };

fn attempts(mode: Mode, max_deliveries: u32) -> OpenSpec {
    let mut spec = open(mode);
    spec.options.max_deliveries = max_deliveries;
    spec.options.dead_letter_topic = Some(Topic::parse("dead").expect("a topic"));
    spec
}

fn without_topic(mut spec: OpenSpec) -> OpenSpec {
    spec.options.dead_letter_topic = None;
    spec
}

/// A member that holds message 1.
fn holder(stage: &mut Stage, spec: &OpenSpec) -> MemberId {
    let member = stage.join(spec);
    stage.publish_all([1]);
    stage.told(member);
    member
}

#[test]
fn after_max_deliveries_attempts_a_message_becomes_a_dead_letter() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 3));
    for nth in 1..=2 {
        stage.nack(alone, &[delivery(1, nth)], AT_ONCE);
        assert_eq!(stage.deliveries(alone), [delivery(1, nth + 1)]);
        assert_eq!(stage.dead_letters(), []);
    }
    stage.nack(alone, &[delivery(1, 3)], AT_ONCE);
    assert_eq!(stage.told(alone), []);
    assert_eq!(stage.dead_letters(), [(1, GivenUp::MaxDeliveries, 3)]);
    assert_eq!(stage.counted(Counter::DeadLettered), 1);
    assert_eq!(stage.stats().held_bytes, 0);
}

#[test]
fn a_dead_letter_says_where_it_comes_from_and_where_it_goes() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 1));
    let mut effects = Vec::new();
    stage.core.apply(stage.now, Input::Leave { member: alone }, &mut effects);
    let [Effect::DeadLetter(letter), Effect::Ended(ended), Effect::Member(..)] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((letter.topic.as_str(), letter.message.topic()), ("dead", "topic"));
    assert_eq!(&letter.subscription, ended);
}

#[test]
fn without_a_topic_a_message_is_dropped_and_counted() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &without_topic(attempts(Mode::Balanced, 1)));
    stage.nack(alone, &[delivery(1, 1)], AT_ONCE);
    stage.publish_all([2]);
    stage.nack(alone, &[delivery(2, 1)], DISCARD);
    assert_eq!(stage.dead_letters(), []);
    let counters = [Counter::DroppedMaxDeliveries, Counter::DroppedDiscarded, Counter::DeadLettered];
    assert_eq!(counters.map(|counter| stage.counted(counter)), [1, 1, 0]);
}

#[test]
fn without_max_deliveries_there_is_no_limit() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 0));
    for nth in 1..=1000 {
        stage.nack(alone, &[delivery(1, nth)], AT_ONCE);
    }
    assert_eq!(stage.dead_letters(), []);
    assert_eq!(stage.stats().in_flight, 1);
}

#[test]
fn leaving_timing_out_nacks_and_resigning_all_count_as_attempts() {
    let mut stage = Stage::new();
    let mut spec = attempts(Mode::Singleton, 4);
    spec.options.ack_timeout = TIMEOUT;
    let [first, second, third] = [(), (), ()].map(|()| stage.join(&spec));
    stage.publish_all([1]);
    stage.leave(first);
    stage.wait(TIMEOUT);
    stage.nack(second, &[delivery(1, 3)], AT_ONCE);
    assert_eq!(stage.deliveries(second), [2, 3, 4].map(|nth| delivery(1, nth)));
    assert_eq!(stage.dead_letters(), []);
    stage.resign(second);
    assert_eq!(stage.dead_letters(), [(1, GivenUp::MaxDeliveries, 4)]);
    assert_eq!(stage.deliveries(third), []);
}

#[test]
fn a_timeout_of_the_last_attempt_makes_a_dead_letter() {
    let mut stage = Stage::new();
    let mut spec = attempts(Mode::Balanced, 1);
    spec.options.ack_timeout = TIMEOUT;
    let alone = holder(&mut stage, &spec);
    stage.wait(TIMEOUT);
    assert_eq!(stage.dead_letters(), [(1, GivenUp::MaxDeliveries, 1)]);
    assert_eq!(stage.told(alone), []);
    assert_eq!(stage.core.next_deadline(), None);
    stage.publish_all([2]);
    assert_eq!(stage.received(alone), [2], "it has room again");
}

#[test]
fn keep_attempt_never_makes_a_dead_letter() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 1));
    for nth in 1..=50 {
        stage.nack(alone, &[delivery(1, nth)], Nack { keep_attempt: true, ..AT_ONCE });
        assert_eq!(stage.told(alone), [Told::Deliver { id: delivery(1, nth + 1), attempt: 1, epoch: 0 }]);
    }
    stage.nack(alone, &[delivery(1, 51)], AT_ONCE);
    assert_eq!(stage.dead_letters(), [(1, GivenUp::MaxDeliveries, 1)]);
}

#[test]
fn a_discard_gives_up_at_once_whatever_else_the_nack_says() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 0));
    stage.nack(alone, &[delivery(1, 1)], AT_ONCE);
    let all = Nack { delay: TIMEOUT, discard: true, keep_attempt: true };
    stage.nack(alone, &[delivery(1, 2)], all);
    assert_eq!(stage.dead_letters(), [(1, GivenUp::Discarded, 2)]);
    assert_eq!(stage.core.next_deadline(), None);
    assert_eq!(stage.counted(Counter::Nacked), 2);
}

#[test]
fn a_discard_on_the_last_attempt_is_a_discard() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 1));
    stage.nack(alone, &[delivery(1, 1)], DISCARD);
    assert_eq!(stage.dead_letters(), [(1, GivenUp::Discarded, 1)]);
}

#[test]
fn a_delayed_nack_of_the_last_attempt_parks_nothing() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 1));
    stage.nack(alone, &[delivery(1, 1)], Nack { delay: TIMEOUT, ..AT_ONCE });
    assert_eq!(stage.dead_letters(), [(1, GivenUp::MaxDeliveries, 1)]);
    assert_eq!(stage.stats().parked, 0);
}

#[test]
fn in_singleton_a_dead_letter_holds_nobody_back() {
    let mut stage = Stage::new();
    let leader = holder(&mut stage, &attempts(Mode::Singleton, 2));
    stage.publish_all([2]);
    stage.nack(leader, &[delivery(1, 1)], Nack { delay: TIMEOUT, ..AT_ONCE });
    assert_eq!(stage.told(leader), []);
    stage.wait(TIMEOUT);
    stage.nack(leader, &[delivery(1, 2)], AT_ONCE);
    assert_eq!(stage.deliveries(leader), [delivery(1, 2), delivery(2, 1)]);
}

#[test]
fn the_last_members_leaving_gives_up_what_was_on_its_last_attempt_and_drops_the_rest() {
    let mut stage = Stage::new();
    let spec = OpenSpec { max_in_flight: 3, ..attempts(Mode::Balanced, 2) };
    let alone = stage.join(&spec);
    stage.publish_all(1..=5);
    stage.nack(alone, &[delivery(3, 1)], AT_ONCE);
    stage.nack(alone, &[delivery(1, 1)], AT_ONCE);
    assert_eq!(stage.stats().in_flight, 3);
    stage.leave(alone);
    let given_up = [1, 3].map(|number| (number, GivenUp::MaxDeliveries, 2));
    assert_eq!(stage.dead_letters(), given_up, "in publish order");
    let counters = [Counter::DroppedEnded, Counter::DroppedEndedInFlight];
    assert_eq!(counters.map(|counter| stage.counted(counter)), [2, 1]);
}

#[test]
fn the_last_members_leaving_counts_as_max_deliveries_where_there_is_no_topic() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &without_topic(attempts(Mode::Balanced, 1)));
    stage.leave(alone);
    let counters = [Counter::DroppedMaxDeliveries, Counter::DroppedEndedInFlight];
    assert_eq!(counters.map(|counter| stage.counted(counter)), [1, 0]);
}

#[test]
fn with_linger_only_what_was_on_its_last_attempt_is_given_up() {
    let mut stage = Stage::new();
    let mut spec = OpenSpec { max_in_flight: 2, ..attempts(Mode::Balanced, 2) };
    spec.options.linger = TIMEOUT;
    let gone = stage.join(&spec);
    stage.publish_all([1, 2]);
    stage.nack(gone, &[delivery(2, 1)], AT_ONCE);
    stage.leave(gone);
    assert_eq!(stage.dead_letters(), [(2, GivenUp::MaxDeliveries, 2)]);
    let back = stage.join(&spec);
    assert_eq!(stage.deliveries(back), [delivery(1, 2)]);
}

#[test]
fn disconnect_gives_up_what_was_on_its_last_attempt() {
    let mut stage = Stage::new();
    let mut spec = OpenSpec { max_in_flight: 2, ..attempts(Mode::Balanced, 1) };
    spec.options.max_pending = 1;
    spec.options.overflow = Overflow::Disconnect;
    let [first, second] = [(), ()].map(|()| stage.join(&OpenSpec { max_in_flight: 1, ..spec.clone() }));
    stage.publish_all([1, 2, 3]);
    assert_eq!([stage.received(first), stage.received(second)], [[1], [2]]);
    assert_eq!(stage.publish(4), Reply::Published(0));
    let given_up = [1, 2].map(|number| (number, GivenUp::MaxDeliveries, 1));
    assert_eq!(stage.dead_letters(), given_up);
    let counters = [Counter::DroppedDisconnect, Counter::DroppedEndedInFlight];
    assert_eq!(counters.map(|counter| stage.counted(counter)), [1, 0]);
}

#[test]
fn dead_letters_go_on_while_the_broker_drains() {
    let mut stage = Stage::new();
    let alone = holder(&mut stage, &attempts(Mode::Balanced, 1));
    stage.apply(Input::Drain { grace: Duration::from_secs(5) });
    stage.nack(alone, &[delivery(1, 1)], AT_ONCE);
    assert_eq!(stage.dead_letters(), [(1, GivenUp::MaxDeliveries, 1)]);
}

#[test]
fn the_accounts_add_up_after_every_way_to_give_up() {
    let mut stage = Stage::new();
    for (spec, first) in
        [attempts(Mode::Balanced, 1), without_topic(attempts(Mode::Balanced, 1))].into_iter().zip([0, 10])
    {
        let member = stage.join(&OpenSpec { max_in_flight: 4, ..spec });
        stage.publish_all(first..first + 6);
        stage.ack(member, by_system_id(&[delivery(first, 1)]));
        stage.nack(member, &[delivery(first + 1, 1)], DISCARD);
        stage.nack(member, &[delivery(first + 2, 1)], AT_ONCE);
        stage.leave(member);
    }
    let stats = stage.stats();
    let count = |counter| stats.counters.get(counter);
    assert_eq!(count(Counter::DeadLettered), 5, "one discarded, one nacked, three held");
    assert_eq!((count(Counter::DroppedDiscarded), count(Counter::DroppedMaxDeliveries)), (1, 4));
    assert_eq!(count(Counter::Accepted), 12);
    assert_eq!((stats.subscriptions, stats.in_flight, stats.held_bytes), (0, 0, 0));
}
