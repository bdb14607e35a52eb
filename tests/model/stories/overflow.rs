//! Full subscriptions: who is refused, what is dropped, who is told, and that the accounts add up.

use tinybroker::core::{Counter, EndReason, Input, OpenSpec, Overflow, PublishRefusal};
use tinybroker::model::{MemberId, Mode};

use crate::outcome::{Reply, Told};
use crate::stage::{MAX_PENDING_BYTES, Stage, by_system_id, delivery, id, open};

fn full_at(max_pending: u64, overflow: Overflow) -> OpenSpec {
    let mut spec = open(Mode::Balanced);
    spec.options.max_pending = max_pending;
    spec.options.overflow = overflow;
    spec
}

/// A member that holds message 0, so that all that follows waits.
fn busy_member(stage: &mut Stage, spec: &OpenSpec) -> MemberId {
    let member = stage.join(spec);
    stage.publish_all([0]);
    stage.told(member);
    member
}

#[test]
fn reject_refuses_the_publish_everywhere_and_names_the_full_subscription() {
    let mut stage = Stage::new();
    busy_member(&mut stage, &full_at(2, Overflow::Reject));
    stage.publish_all([1, 2]);
    let reader = stage.join(&OpenSpec { id_if_new: id("reader"), ..open(Mode::Multi) });
    let refusal = PublishRefusal::Messages { subscription: id("sub"), waiting: 2, limit: 2 };
    assert_eq!(stage.publish(3), Reply::Full(vec![refusal]));
    assert_eq!(stage.received(reader), [0; 0], "enqueued nowhere");
    assert_eq!(stage.counted(Counter::RefusedFull), 1);
}

#[test]
fn reject_refuses_by_bytes_too() {
    let mut stage = Stage::new();
    busy_member(&mut stage, &full_at(100, Overflow::Reject));
    let half = MAX_PENDING_BYTES as usize / 2;
    assert_eq!(stage.publish_message(Stage::message(1, half, None)), Reply::Published(1));
    let waiting = Stage::message(1, half, None).cost();
    let refusal = PublishRefusal::Bytes { subscription: id("sub"), waiting, limit: MAX_PENDING_BYTES };
    assert_eq!(stage.publish_message(Stage::message(2, half, None)), Reply::Full(vec![refusal]));
}

#[test]
fn what_returns_to_a_full_queue_is_kept_and_counts_for_later_publishes() {
    let mut stage = Stage::new();
    let [dying, heir] = [(), ()].map(|()| stage.join(&full_at(2, Overflow::Reject)));
    stage.publish_all(0..4);
    stage.told(heir);
    stage.leave(dying);
    let refusal = PublishRefusal::Messages { subscription: id("sub"), waiting: 3, limit: 2 };
    assert_eq!(stage.publish(4), Reply::Full(vec![refusal]));
    stage.ack(heir, by_system_id(&[delivery(1, 1)]));
    assert_eq!(stage.deliveries(heir), [delivery(0, 2)]);
}

#[test]
fn drop_oldest_drops_from_the_front_and_the_next_event_tells() {
    let mut stage = Stage::new();
    let member = busy_member(&mut stage, &full_at(2, Overflow::DropOldest));
    stage.publish_all(1..=5);
    stage.ack(member, by_system_id(&[delivery(0, 1)]));
    let told = stage.told(member);
    assert_eq!(told[0], Told::Lagged(3));
    assert_eq!(told[1], Told::Deliver { id: delivery(4, 1), attempt: 1, epoch: 0 });
    stage.ack(member, by_system_id(&[delivery(4, 1)]));
    assert_eq!(stage.deliveries(member), [delivery(5, 1)], "told once");
    assert_eq!(stage.counted(Counter::DroppedOldest), 3);
}

#[test]
fn drop_newest_drops_what_comes_and_does_not_count_it_as_taken() {
    let mut stage = Stage::new();
    let member = busy_member(&mut stage, &full_at(2, Overflow::DropNewest));
    stage.publish_all([1, 2]);
    assert_eq!(stage.publish(3), Reply::Published(0));
    stage.ack(member, by_system_id(&[delivery(0, 1)]));
    let told = stage.told(member);
    assert_eq!(told[0], Told::Lagged(1));
    assert_eq!(told[1], Told::Deliver { id: delivery(1, 1), attempt: 1, epoch: 0 });
    assert_eq!(stage.counted(Counter::DroppedNewest), 1);
}

#[test]
fn disconnect_ends_every_members_stream_and_frees_the_id_at_once() {
    let mut stage = Stage::new();
    let mut spec = full_at(2, Overflow::Disconnect);
    spec.subscription_id = Some(id("sub"));
    spec.options.linger = std::time::Duration::from_secs(60);
    let members = [spec.clone(), spec.clone()].map(|spec| stage.join(&spec));
    stage.publish_all(0..4);
    members.iter().for_each(|&member| drop(stage.told(member)));
    assert_eq!(stage.publish(4), Reply::Published(0), "the publish itself succeeds");
    for member in members {
        assert_eq!(stage.told(member), [Told::End(EndReason::Overflow { behind: 2, limit: 2 })]);
    }
    assert!(stage.core.is_empty());
    assert_eq!(stage.counted(Counter::DroppedDisconnect), 2);
    let multi = OpenSpec { subscription_id: Some(id("sub")), ..open(Mode::Multi) };
    let next = stage.join(&multi);
    assert_eq!(stage.told(next), [Told::Attached, Told::Started(id("sub"))]);
    members.into_iter().for_each(|member| stage.leave(member));
    assert_eq!(stage.stats().members, 1, "the late death of an old stream touches nobody else");
}

#[test]
fn room_that_was_reserved_is_there_at_the_commit_and_free_after_an_abort() {
    let mut stage = Stage::new();
    let member = busy_member(&mut stage, &full_at(2, Overflow::Reject));
    let [first, second] = [1, 2].map(|number| stage.reserve(Stage::message(number, 10, None)));
    assert_eq!([&first.1, &second.1], [&Reply::Reserved, &Reply::Reserved]);
    let refusal = PublishRefusal::Messages { subscription: id("sub"), waiting: 2, limit: 2 };
    assert_eq!(stage.publish(3), Reply::Full(vec![refusal]));
    assert_eq!(stage.apply(Input::Commit { ticket: second.0 }), Some(Reply::Published(1)));
    assert_eq!(stage.apply(Input::Abort { ticket: first.0 }), None);
    assert_eq!(stage.publish(4), Reply::Published(1));
    stage.ack(member, by_system_id(&[delivery(0, 1)]));
    stage.ack(member, by_system_id(&[delivery(2, 1)]));
    assert_eq!(stage.received(member), [2, 4]);
}

#[test]
fn a_reservation_in_a_subscription_that_has_ended_is_taken_by_nobody() {
    let mut stage = Stage::new();
    let member = stage.join(&full_at(2, Overflow::Reject));
    let (ticket, _) = stage.reserve(Stage::message(1, 10, None));
    stage.leave(member);
    let successor = stage.join(&full_at(2, Overflow::Reject));
    assert_eq!(stage.apply(Input::Commit { ticket }), Some(Reply::Published(0)));
    assert_eq!(stage.received(successor), [0; 0]);
}

/// Else one shard would refuse what another has in its queues already.
#[test]
fn the_part_of_a_publish_that_none_may_refuse_is_taken_beyond_the_limit() {
    let mut stage = Stage::new();
    busy_member(&mut stage, &full_at(1, Overflow::Reject));
    stage.publish_all([1]);
    assert_eq!(stage.accept(2), Reply::Published(1));
    assert!(matches!(stage.publish(3), Reply::Full(_)), "what may be refused is");
    assert_eq!(stage.counted(Counter::RefusedFull), 1);
}

/// Room is kept for those who refuse: whoever drops or disconnects has nothing to keep it for.
#[test]
fn a_reservation_elsewhere_neither_disconnects_nor_drops() {
    let mut stage = Stage::new();
    let member = busy_member(&mut stage, &full_at(2, Overflow::Disconnect));
    stage.publish_all([1]);
    let (ticket, reply) = stage.reserve(Stage::message(2, 10, None));
    assert_eq!(reply, Reply::Reserved);
    assert_eq!(stage.publish(3), Reply::Published(1), "one waits, and there is room for two");
    assert_eq!(stage.told(member), []);
    stage.apply(Input::Abort { ticket });

    let mut stage = Stage::new();
    busy_member(&mut stage, &full_at(1, Overflow::DropOldest));
    let (ticket, _) = stage.reserve(Stage::message(1, 10, None));
    assert_eq!(stage.publish(2), Reply::Published(1), "nothing waits, and there is room for one");
    assert_eq!(stage.apply(Input::Commit { ticket }), Some(Reply::Published(1)));
    assert_eq!(stage.counted(Counter::DroppedNewest), 0);
}

/// Else every publish would go on to ask twice, until the next one comes to this subscription.
#[test]
fn a_subscription_that_was_emptied_is_no_longer_near_full() {
    let mut stage = Stage::new();
    let mut spec = open(Mode::Multi);
    spec.options.max_pending = 4;
    spec.options.overflow = Overflow::Reject;
    stage.join(&spec);
    assert!(!stage.core.is_near_full());
    stage.publish_all([1]);
    assert!(!stage.core.is_near_full(), "sent and gone");
}

#[test]
fn i06_the_accounts_add_up_after_everything() {
    let mut stage = Stage::new();
    let policies = [Overflow::DropOldest, Overflow::DropNewest, Overflow::Reject, Overflow::Disconnect];
    for (policy, first) in policies.into_iter().zip([0, 100, 200, 300]) {
        let spec = OpenSpec { max_in_flight: 2, ..full_at(3, policy) };
        let members = [spec.clone(), spec.clone()].map(|spec| stage.join(&spec));
        (first..first + 12).for_each(|number| drop(stage.publish(number)));
        stage.ack(members[0], by_system_id(&[delivery(first, 1)]));
        members.into_iter().for_each(|member| stage.leave(member));
    }
    let reader = stage.join(&open(Mode::Multi));
    stage.publish_all([400]);
    stage.leave(reader);
    let counters = stage.stats().counters;
    let gone = [
        Counter::Acked,
        Counter::SentUnacked,
        Counter::DroppedEnded,
        Counter::DroppedEndedInFlight,
        Counter::DroppedDisconnect,
        Counter::DroppedOldest,
    ];
    let gone: Vec<u64> = gone.into_iter().map(|counter| counters.get(counter)).collect();
    assert!(gone.iter().all(|count| *count > 0), "each way to go was gone: {gone:?}");
    assert_eq!(counters.get(Counter::Accepted), gone.iter().sum::<u64>());
    let stats = stage.stats();
    assert_eq!((stats.subscriptions, stats.members, stats.held_bytes), (0, 0, 0));
}
