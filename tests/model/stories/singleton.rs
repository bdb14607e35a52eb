//! Leader election: who is active, what it is told, and what its successor gets.

use std::time::Duration;

use tinybroker::core::{Counter, OpenSpec, Role};
use tinybroker::model::{MemberId, Mode};

use crate::outcome::Told;
use crate::stage::{Stage, by_system_id, delivery, id, open};

fn candidate(max_in_flight: u32) -> OpenSpec {
    OpenSpec { max_in_flight, ..open(Mode::Singleton) }
}

fn watcher() -> OpenSpec {
    OpenSpec { control_events: true, ..candidate(1) }
}

fn started() -> Told {
    Told::Started(id("sub"))
}

fn active(epoch: u64) -> Told {
    Told::Role(Role::Active { epoch })
}

fn standby(epoch: u64, position: u32) -> Told {
    Told::Role(Role::Standby { epoch, position })
}

/// The epoch of the newest delivery to a member.
fn epoch_of_last(stage: &mut Stage, member: MemberId) -> u64 {
    let told = stage.told(member);
    let newest = told.iter().rev().find_map(|told| match told {
        Told::Deliver { epoch, .. } => Some(*epoch),
        _ => None,
    });
    newest.expect("a delivery")
}

#[test]
fn c01_the_first_message_reaches_the_first_member_alone() {
    let mut stage = Stage::new();
    let first = stage.join(&candidate(1));
    let second = stage.join(&candidate(1));
    for number in 0..500 {
        stage.publish_all([number]);
        assert_eq!(stage.serve_one(&[first, second]), first);
    }
}

#[test]
fn c02_a_newcomer_does_not_unseat_the_leader() {
    let mut stage = Stage::new();
    let leader = stage.join(&candidate(1));
    stage.publish_all([1]);
    let newcomers = [candidate(1), candidate(5)].map(|spec| stage.join(&spec));
    stage.publish_all(2..102);
    assert_eq!(stage.received(leader), [1], "held un-acked, delivered once");
    for newcomer in newcomers {
        assert_eq!(stage.told(newcomer), [Told::Attached], "a standby hears nothing");
    }
}

#[test]
fn c04_the_successor_of_a_crashed_leader_gets_its_unacked_work_first() {
    let mut stage = Stage::new();
    let [leader, next, last] = [candidate(2), candidate(100), candidate(100)].map(|spec| stage.join(&spec));
    stage.publish_all(1..=20);
    for number in 1..=4 {
        stage.ack(leader, by_system_id(&[delivery(number, 1)]));
    }
    assert_eq!(stage.received(leader), [1, 2, 3, 4, 5, 6]);
    assert_eq!(stage.told(next), [Told::Attached]);
    stage.leave(leader);
    let told = stage.told(next);
    assert_eq!(told[0], started(), "its first frame comes before any message");
    let got = told[1..].iter().map(|told| match told {
        Told::Deliver { id, attempt, epoch } => (id.message.as_u64(), id.delivery, *attempt, *epoch),
        other => panic!("{other:?}"),
    });
    let redelivered = (5..=6).map(|number| (number, 2, 2, 102));
    assert_eq!(
        got.collect::<Vec<_>>(),
        redelivered.chain((7..=20).map(|number| (number, 1, 1, 102))).collect::<Vec<_>>()
    );
    assert_eq!(stage.told(last), [Told::Attached]);
}

#[test]
fn c08_standbys_that_left_are_never_promoted() {
    let mut stage = Stage::new();
    let members = [candidate(1), candidate(1), candidate(1), candidate(1)].map(|spec| stage.join(&spec));
    let [leader, cancelled, killed, last] = members;
    stage.publish_all([1, 2]);
    stage.leave(cancelled);
    stage.leave(killed);
    stage.leave(leader);
    assert_eq!(stage.deliveries(last), [delivery(1, 2)]);
    assert_eq!(stage.told(cancelled), [Told::Attached, Told::Left]);
    assert_eq!(stage.told(killed), [Told::Attached, Told::Left]);
}

#[test]
fn who_asks_is_told_its_role_at_once_and_at_each_change() {
    let mut stage = Stage::new();
    let [first, second, third] = [watcher(), watcher(), watcher()].map(|spec| stage.join(&spec));
    assert_eq!(stage.told(first), [Told::Attached, started(), active(101)]);
    assert_eq!(stage.told(second), [Told::Attached, standby(101, 1)]);
    assert_eq!(stage.told(third), [Told::Attached, standby(101, 2)]);
    stage.resign(first);
    assert_eq!(stage.told(second), [started(), active(102)]);
    assert_eq!(stage.told(third), [standby(102, 1)]);
    assert_eq!(stage.told(first), [standby(102, 2)]);
    stage.leave(third);
    assert_eq!(stage.told(second), [], "nothing has changed for the active one");
    assert_eq!(stage.told(first), [standby(102, 1)]);
}

#[test]
fn a_resigned_leaders_work_goes_to_the_next_and_its_late_ack_settles_nothing() {
    let mut stage = Stage::new();
    let [first, second] = [candidate(2), candidate(2)].map(|spec| stage.join(&spec));
    stage.publish_all(1..=3);
    stage.resign(first);
    assert_eq!(stage.deliveries(second), [delivery(1, 2), delivery(2, 2)]);
    stage.ack(first, by_system_id(&[delivery(1, 1), delivery(1, 2)]));
    assert_eq!(stage.counted(Counter::Acked), 0);
    assert_eq!(stage.counted(Counter::AckNotFound), 2);
}

#[test]
fn resign_alone_promotes_anew_with_a_new_epoch() {
    let mut stage = Stage::new();
    let alone = stage.join(&watcher());
    stage.publish_all([1]);
    stage.told(alone);
    stage.resign(alone);
    let redelivery = Told::Deliver { id: delivery(1, 2), attempt: 2, epoch: 102 };
    assert_eq!(stage.told(alone), [started(), active(102), redelivery]);
}

#[test]
fn resign_of_a_standby_is_ignored_and_counted() {
    let mut stage = Stage::new();
    let [leader, second, third] = [watcher(), watcher(), watcher()].map(|spec| stage.join(&spec));
    [leader, second, third].into_iter().for_each(|member| drop(stage.told(member)));
    stage.resign(second);
    assert_eq!([leader, second, third].map(|member| stage.told(member).len()), [0, 0, 0]);
    assert_eq!(stage.counted(Counter::ResignIgnored), 1);
    stage.leave(leader);
    assert_eq!(stage.told(second)[..1], [started()], "it kept its place in the line");
}

#[test]
fn epochs_grow_also_when_the_group_empties_and_returns() {
    let mut stage = Stage::new();
    let mut last = 100;
    for linger in [Duration::ZERO, Duration::from_secs(1)] {
        let mut spec = candidate(1);
        spec.options.linger = linger;
        for number in 0..3 {
            let member = stage.join(&spec);
            stage.publish(number + linger.as_secs() * 10);
            let epoch = epoch_of_last(&mut stage, member);
            assert!(epoch > last, "{epoch} after {last}");
            last = epoch;
            stage.leave(member);
        }
        stage.wait(linger);
    }
}
