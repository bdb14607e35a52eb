//! A message for many: all have it in their queue at once, and are served in slices.

use tinybroker::core::{Input, OpenSpec, Overflow};
use tinybroker::model::{MemberId, Mode, Time};

use crate::outcome::Reply;
use crate::stage::{FAN_OUT_SLICE, Stage, delivery, id, open};

fn streams(stage: &mut Stage, count: usize) -> Vec<MemberId> {
    let spec = |nth| OpenSpec { id_if_new: id(&format!("stream-{nth}")), ..open(Mode::Multi) };
    (0..count).map(|nth| stage.join(&spec(nth))).collect()
}

fn how_many_received(stage: &mut Stage, members: &[MemberId]) -> usize {
    members.iter().filter(|member| !stage.deliveries(**member).is_empty()).count()
}

#[test]
fn a_publish_is_confirmed_with_all_and_handed_out_in_slices() {
    let mut stage = Stage::new();
    let members = streams(&mut stage, 2 * FAN_OUT_SLICE + 1);
    assert_eq!(stage.publish(1), Reply::Published(members.len() as u32));
    for _ in 0..2 {
        assert_eq!(how_many_received(&mut stage, &members), FAN_OUT_SLICE);
        assert_eq!(stage.core.next_deadline(), Some(Time::default()), "a tick is due at once");
        stage.apply(Input::Tick);
    }
    assert_eq!(how_many_received(&mut stage, &members), 1);
    assert_eq!(stage.core.next_deadline(), None);
}

#[test]
fn what_waits_for_its_slice_keeps_its_order() {
    let mut stage = Stage::new();
    let last = *streams(&mut stage, FAN_OUT_SLICE + 1).last().expect("there are some");
    stage.publish(1);
    stage.publish(2);
    assert_eq!(stage.deliveries(last), []);
    stage.apply(Input::Tick);
    assert_eq!(stage.deliveries(last), [delivery(1, 1), delivery(2, 1)]);
}

#[test]
fn who_leaves_before_its_slice_takes_nobody_elses_turn() {
    let mut stage = Stage::new();
    let members = streams(&mut stage, FAN_OUT_SLICE + 2);
    stage.publish(1);
    stage.leave(members[FAN_OUT_SLICE]);
    let heir = stage.join(&OpenSpec { id_if_new: id("heir"), ..open(Mode::Multi) });
    stage.apply(Input::Tick);
    assert_eq!(stage.deliveries(members[FAN_OUT_SLICE + 1]), [delivery(1, 1)]);
    assert_eq!(stage.deliveries(heir), [], "in the place of who left, and came later");
}

#[test]
fn a_wait_for_the_slice_never_counts_as_a_slow_reader() {
    for overflow in [Overflow::Reject, Overflow::DropOldest, Overflow::DropNewest, Overflow::Disconnect] {
        let mut stage = Stage::new();
        streams(&mut stage, FAN_OUT_SLICE);
        let mut small = OpenSpec { id_if_new: id("small"), ..open(Mode::Multi) };
        small.options.max_pending = 3;
        small.options.overflow = overflow;
        let small = stage.join(&small);
        for number in 0..20 {
            assert_eq!(stage.publish(number), Reply::Published(FAN_OUT_SLICE as u32 + 1), "{overflow:?}");
        }
        stage.apply(Input::Tick);
        assert_eq!(stage.deliveries(small).len(), 20, "{overflow:?}");
    }
}
