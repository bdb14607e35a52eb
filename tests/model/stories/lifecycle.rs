//! Subscriptions come, linger and end; members agree or are refused; the broker goes down.

use std::time::Duration;

use tinybroker::core::{Counter, EndReason, Input, OpenSpec, Overflow, Settlement};
use tinybroker::model::{GroupName, Mode, Topic};
use tinybroker::pattern::Pattern;

use crate::outcome::{Reply, Told};
use crate::stage::{Stage, by_system_id, delivery, id, open};

const LINGER: Duration = Duration::from_millis(100);
const NANO: Duration = Duration::from_nanos(1);

fn lingering(mode: Mode) -> OpenSpec {
    let mut spec = open(mode);
    spec.options.linger = LINGER;
    spec
}

#[test]
fn a_lingering_subscription_ends_at_its_deadline_exactly() {
    for mode in [Mode::Balanced, Mode::Singleton, Mode::Multi] {
        let mut stage = Stage::new();
        let member = stage.join(&lingering(mode));
        stage.leave(member);
        assert_eq!(stage.core.next_deadline(), Some(stage.now + LINGER));
        stage.wait(LINGER - NANO);
        assert_eq!(stage.publish(1), Reply::Published(1));
        stage.wait(NANO);
        assert_eq!(stage.publish(2), Reply::Published(0));
        assert_eq!(stage.core.next_deadline(), None);
        assert_eq!(stage.counted(Counter::DroppedEnded), 1);
    }
}

#[test]
fn who_comes_at_the_deadline_before_its_tick_finds_the_subscription_gone() {
    let mut stage = Stage::new();
    let member = stage.join(&lingering(Mode::Balanced));
    stage.publish_all([1]);
    stage.leave(member);
    stage.now = stage.now + LINGER;
    let late = stage.join(&lingering(Mode::Balanced));
    assert_eq!(stage.received(late), [0; 0]);
}

#[test]
fn who_leaves_hears_once_that_it_has_left_or_that_it_was_ended() {
    for mode in [Mode::Balanced, Mode::Singleton, Mode::Multi] {
        for (linger, holders) in [(Duration::ZERO, 1), (Duration::ZERO, 0), (LINGER, 0)] {
            let mut stage = Stage::new();
            let mut spec = open(mode);
            spec.options.linger = linger;
            let member = stage.join(&spec);
            stage.publish_all(1..=holders);
            stage.told(member);
            stage.leave(member);
            assert_eq!(stage.told(member), [Told::Left]);
            stage.leave(member);
            assert_eq!(stage.told(member), []);
        }
    }
    let mut stage = Stage::new();
    let ended = stage.join(&open(Mode::Balanced));
    stage.resign(ended);
    assert!(matches!(stage.told(ended)[..], [.., Told::End(EndReason::ResignOutsideSingleton { .. })]));
    stage.leave(ended);
    assert_eq!(stage.told(ended), [], "it has heard its end");
}

#[test]
fn a02_a_newcomer_gets_all_that_lingered_in_order() {
    let mut stage = Stage::new();
    let mut spec = OpenSpec { max_in_flight: 100, ..lingering(Mode::Balanced) };
    let first = stage.join(&OpenSpec { max_in_flight: 1, ..spec.clone() });
    stage.publish_all(1..=10);
    stage.leave(first);
    stage.wait(LINGER / 2);
    spec.subscription_id = Some(id("sub"));
    let next = stage.join(&spec);
    assert_eq!(stage.received(next), Vec::from_iter(1..=10));
    assert_eq!(stage.core.next_deadline(), None, "it lives as long as its member");
}

#[test]
fn a02_without_linger_a_newcomer_gets_nothing_of_what_was() {
    let mut stage = Stage::new();
    let first = stage.join(&open(Mode::Balanced));
    stage.publish_all(1..=10);
    stage.leave(first);
    let next = stage.join(&open(Mode::Balanced));
    stage.publish_all([11]);
    assert_eq!(stage.received(next), [11]);
    assert_eq!(stage.counted(Counter::DroppedEnded), 9);
    assert_eq!(stage.counted(Counter::DroppedEndedInFlight), 1);
}

#[test]
fn a_multi_stream_comes_back_to_its_subscription_by_its_id() {
    let mut stage = Stage::new();
    let spec = OpenSpec { subscription_id: Some(id("sub")), ..lingering(Mode::Multi) };
    let first = stage.join(&spec);
    stage.leave(first);
    stage.publish_all([1, 2]);
    let back = stage.join(&spec);
    assert_eq!(stage.received(back), [1, 2]);
}

#[test]
fn a_later_member_that_does_not_agree_is_told_in_what() {
    let mut stage = Stage::new();
    let first = stage.join(&open(Mode::Balanced));
    let differing = |change: &dyn Fn(&mut OpenSpec)| {
        let mut spec = open(Mode::Balanced);
        change(&mut spec);
        spec
    };
    let dead = || Topic::parse("dead").expect("a topic");
    let cases: [(&'static str, OpenSpec); 9] = [
        ("mode", differing(&|spec| spec.mode = Mode::Singleton)),
        ("subscription_id", differing(&|spec| spec.subscription_id = Some(id("mine")))),
        ("set of topic_patterns", differing(&|spec| spec.patterns.push(Pattern::parse("a").expect("one")))),
        ("max_pending", differing(&|spec| spec.options.max_pending += 1)),
        ("overflow policy", differing(&|spec| spec.options.overflow = Overflow::DropNewest)),
        ("linger", differing(&|spec| spec.options.linger = LINGER)),
        ("ack_timeout", differing(&|spec| spec.options.ack_timeout = LINGER)),
        ("max_deliveries", differing(&|spec| spec.options.max_deliveries = 3)),
        ("dead_letter_topic", differing(&|spec| spec.options.dead_letter_topic = Some(dead()))),
    ];
    for (what, spec) in cases {
        let refused = stage.join(&spec);
        assert_eq!(stage.told(refused), [Told::Differs(vec![what])]);
    }
    let own = OpenSpec { max_in_flight: 7, control_events: true, ..open(Mode::Balanced) };
    let agreeing = stage.join(&own);
    assert_eq!(stage.told(agreeing), [Told::Attached, Told::Started(id("sub"))]);
    assert_eq!(stage.stats().members, 2);
    stage.leave(first);
}

#[test]
fn an_id_in_use_is_refused_to_another_group_and_to_another_stream() {
    let mut stage = Stage::new();
    let named = |mode| OpenSpec { subscription_id: Some(id("sub")), ..lingering(mode) };
    let group = stage.join(&named(Mode::Balanced));
    let other = GroupName::parse("other").expect("short");
    let refused = [OpenSpec { group: other, ..named(Mode::Balanced) }, named(Mode::Multi)];
    for spec in &refused {
        let member = stage.join(spec);
        assert_eq!(stage.told(member), [Told::IdInUse("consumer group")]);
    }
    stage.leave(group);
    stage.wait(LINGER);
    let stream = stage.join(&named(Mode::Multi));
    let second = stage.join(&named(Mode::Multi));
    assert_eq!(stage.told(second), [Told::IdInUse("MULTI stream")]);
    stage.leave(stream);
    let group = stage.join(&named(Mode::Balanced));
    assert_eq!(stage.told(group), [Told::IdInUse("MULTI stream")], "it lingers for its own stream");
}

#[test]
fn resign_outside_singleton_ends_the_stream() {
    for (mode, name) in [(Mode::Balanced, "BALANCED"), (Mode::Multi, "MULTI")] {
        let mut stage = Stage::new();
        let member = stage.join(&open(mode));
        stage.told(member);
        stage.resign(member);
        let reason = EndReason::ResignOutsideSingleton { mode: name };
        assert_eq!(stage.told(member), [Told::End(reason)]);
        assert!(stage.core.is_empty());
    }
}

#[test]
fn a_draining_broker_settles_and_takes_back_but_delivers_nothing_new() {
    let mut stage = Stage::new();
    let worker = OpenSpec { max_in_flight: 2, ..open(Mode::Balanced) };
    let asking = stage.join(&OpenSpec { control_events: true, ..worker.clone() });
    let silent = stage.join(&worker);
    stage.publish_all(1..=6);
    assert_eq!(stage.received(asking), [1, 3]);
    assert_eq!(stage.received(silent), [2, 4]);
    let grace = Duration::from_secs(5);
    stage.apply(Input::Drain { grace });
    assert_eq!(stage.told(asking), [Told::Draining(grace)]);
    assert_eq!(stage.ack_by_call(by_system_id(&[delivery(1, 1)])), Settlement::Done { settled: 1 });
    stage.leave(asking);
    assert_eq!(stage.told(silent), []);
    assert_eq!(stage.core.in_flight(), 2, "what the broker waits for");
}

#[test]
fn a_draining_broker_promotes_nobody() {
    let mut stage = Stage::new();
    let replica = OpenSpec { control_events: true, ..open(Mode::Singleton) };
    let (leader, standby) = (stage.join(&replica), stage.join(&replica));
    let grace = Duration::from_secs(5);
    stage.apply(Input::Drain { grace });
    stage.told(standby);
    stage.leave(leader);
    assert_eq!(stage.told(standby), []);
}

#[test]
fn nothing_touches_who_has_left() {
    let mut stage = Stage::new();
    let gone = stage.join(&open(Mode::Balanced));
    stage.leave(gone);
    stage.told(gone);
    stage.leave(gone);
    stage.resign(gone);
    stage.ack(gone, by_system_id(&[delivery(1, 1)]));
    stage.apply(Input::Credit { member: gone, messages: 1, bytes: 1 });
    assert_eq!(stage.told(gone), []);
}
