//! Work queues: who gets what, and what becomes of it when members die.

use tinybroker::core::{Input, OpenSpec};
use tinybroker::limits::{MEMBER_WINDOW_BYTES, MEMBER_WINDOW_MESSAGES};
use tinybroker::model::{MemberId, Mode};

use crate::outcome::Reply;
use crate::stage::{Stage, by_system_id, delivery, open};

fn worker(max_in_flight: u32) -> OpenSpec {
    OpenSpec { max_in_flight, ..open(Mode::Balanced) }
}

/// Publishes so many messages, each after the ack of the one before, and counts who got how many.
fn shares(stage: &mut Stage, workers: &[MemberId], messages: std::ops::Range<u64>) -> Vec<usize> {
    let mut shares = vec![0; workers.len()];
    for number in messages {
        stage.publish_all([number]);
        let served = stage.serve_one(workers);
        shares[workers.iter().position(|&worker| worker == served).expect("a worker")] += 1;
    }
    shares
}

#[test]
fn b05_even_means_even_over_a_join_and_a_leave() {
    let mut stage = Stage::new();
    let mut workers: Vec<MemberId> = (0..5).map(|_| stage.join(&worker(1))).collect();
    assert!(shares(&mut stage, &workers, 0..1000).iter().all(|share| share.abs_diff(200) <= 1));
    workers.push(stage.join(&worker(1)));
    assert!(shares(&mut stage, &workers, 1000..1600).iter().all(|share| share.abs_diff(100) <= 1));
    stage.leave(workers.remove(1));
    assert!(shares(&mut stage, &workers, 1600..2100).iter().all(|share| share.abs_diff(100) <= 1));
}

#[test]
fn b02_the_limit_is_per_stream_neither_ignored_nor_multiplied() {
    let mut stage = Stage::new();
    let workers: Vec<MemberId> = (0..8).map(|_| stage.join(&worker(1))).collect();
    stage.publish_all(0..1000);
    let first: Vec<_> = workers.iter().map(|&worker| stage.deliveries(worker)).collect();
    assert!(first.iter().all(|deliveries| deliveries.len() == 1));
    stage.ack(workers[3], by_system_id(&first[3]));
    let later: Vec<usize> = workers.iter().map(|&worker| stage.deliveries(worker).len()).collect();
    assert_eq!(later, [0, 0, 0, 1, 0, 0, 0, 0], "one more, on that stream");
}

#[test]
fn b01_a_newcomer_gets_its_share_of_the_backlog_at_once() {
    let mut stage = Stage::new();
    let early = stage.join(&worker(2));
    stage.publish_all(0..10);
    let late = stage.join(&worker(3));
    assert_eq!(stage.received(early), [0, 1]);
    assert_eq!(stage.received(late), [2, 3, 4]);
}

#[test]
fn b06_one_stuck_worker_does_not_stop_the_others() {
    let mut stage = Stage::new();
    let (stuck, quick) = (stage.join(&worker(1)), stage.join(&worker(1)));
    stage.publish_all([0]);
    assert_eq!(stage.received(stuck), [0]);
    for number in 1..100 {
        stage.publish_all([number]);
        assert_eq!(stage.serve_one(&[stuck, quick]), quick);
    }
    stage.leave(stuck);
    assert_eq!(stage.deliveries(quick), [delivery(0, 2)]);
}

#[test]
fn a05_no_share_is_kept_for_the_departed() {
    let mut stage = Stage::new();
    let workers: Vec<MemberId> = (0..4).map(|_| stage.join(&worker(1))).collect();
    shares(&mut stage, &workers, 0..10);
    workers[1..].iter().for_each(|&departed| stage.leave(departed));
    assert_eq!(shares(&mut stage, &workers, 10..410), [400, 0, 0, 0]);
}

#[test]
fn a06_all_that_a_dead_member_held_comes_back_but_what_it_acked() {
    let mut stage = Stage::new();
    let dying = stage.join(&worker(50));
    stage.publish_all(1..=50);
    stage.ack(dying, by_system_id(&[delivery(7, 1), delivery(20, 1)]));
    let idle = stage.join(&worker(50));
    stage.leave(dying);
    let rest = (1..=50).filter(|number| ![7, 20].contains(number)).map(|number| delivery(number, 2));
    assert_eq!(stage.deliveries(idle), rest.collect::<Vec<_>>());
}

#[test]
fn a03_mass_eviction_clears_the_books() {
    let mut stage = Stage::new();
    let workers: Vec<MemberId> = (0..200).map(|_| stage.join(&worker(1))).collect();
    stage.publish_all(0..1200);
    let survivor = stage.join(&worker(1));
    assert_eq!(stage.received(survivor), [200]);
    // In an order that is neither that of joining nor its reverse.
    (0..200).for_each(|nth| stage.leave(workers[nth * 77 % 200]));
    stage.ack(survivor, by_system_id(&[delivery(200, 1)]));
    for number in (0..200).chain(201..1200) {
        let [id] = stage.deliveries(survivor)[..] else { panic!("one at a time") };
        assert_eq!(id.message.as_u64(), number);
        stage.apply(Input::Credit { member: survivor, messages: 1, bytes: 170 });
        stage.ack(survivor, by_system_id(&[id]));
    }
    let stats = stage.stats();
    assert_eq!((stats.waiting, stats.in_flight, stats.held_bytes), (0, 0, 0));
}

#[test]
fn returned_messages_take_their_old_place_in_whatever_order_members_die() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut stage = Stage::new();
        let workers = [worker(2), worker(2), worker(2)].map(|spec| stage.join(&spec));
        stage.publish_all(0..9);
        let heir = stage.join(&worker(1));
        stage.ack(heir, by_system_id(&[delivery(6, 1)]));
        assert_eq!(stage.received(heir), [6, 7]);
        order.into_iter().for_each(|nth| stage.leave(workers[nth]));
        stage.ack(heir, by_system_id(&[delivery(7, 1)]));
        let mut rest = Vec::new();
        while let [id] = stage.deliveries(heir)[..] {
            rest.push(id.message.as_u64());
            stage.ack(heir, by_system_id(&[id]));
        }
        assert_eq!(rest, [0, 1, 2, 3, 4, 5, 8], "members died in the order {order:?}");
    }
}

#[test]
fn a_window_of_messages_bounds_what_is_on_its_way() {
    let mut stage = Stage::new();
    let reader = stage.join(&OpenSpec { max_in_flight: 0, ..open(Mode::Multi) });
    let window = u64::from(MEMBER_WINDOW_MESSAGES);
    stage.publish_all(0..window + 10);
    assert_eq!(stage.received(reader).len() as u64, window);
    stage.apply(Input::Credit { member: reader, messages: 3, bytes: 3 * 170 });
    assert_eq!(stage.received(reader), [window, window + 1, window + 2]);
}

/// What a large message overdraws has to be taken before anything more is sent.
#[test]
fn one_message_may_overdraw_the_window_of_bytes_and_no_second_one() {
    let mut stage = Stage::new();
    let reader = stage.join(&worker(100));
    let large = MEMBER_WINDOW_BYTES as usize + 1;
    let small = Stage::message(0, 10, None);
    let cost = small.cost();
    assert_eq!(stage.publish_message(small), Reply::Published(1));
    for number in [1, 2] {
        assert_eq!(stage.publish_message(Stage::message(number, large, None)), Reply::Published(1));
    }
    assert_eq!(stage.received(reader), [0, 1]);
    stage.apply(Input::Credit { member: reader, messages: 1, bytes: cost });
    assert_eq!(stage.received(reader), [0; 0], "the first large one is still on its way");
    let cost = Stage::message(1, large, None).cost();
    stage.apply(Input::Credit { member: reader, messages: 1, bytes: cost });
    assert_eq!(stage.received(reader), [2]);
}
