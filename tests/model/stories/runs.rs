//! Messages that are published in one input: each is published for itself.

use tinybroker::core::{Counter, Input, PublishRefusal, Run};
use tinybroker::model::{Mode, Ticket};

use crate::outcome::Reply;
use crate::stage::{Stage, by_system_id, delivery, id, open};

const TICKET: Ticket = Ticket { frontend: 0, number: 1 << 40 };

fn run(numbers: impl IntoIterator<Item = u64>) -> Run {
    numbers.into_iter().map(|number| Stage::message(number, 10, None)).collect()
}

#[test]
fn the_messages_of_a_run_keep_their_order() {
    let mut stage = Stage::new();
    let mut spec = open(Mode::Balanced);
    spec.max_in_flight = 2;
    let member = stage.join(&spec);
    let reply = stage.apply(Input::Publish { ticket: TICKET, run: run(1..=5) });
    assert_eq!(reply, Some(Reply::Run(vec![Reply::Published(1); 5])));
    assert_eq!(stage.received(member), [1, 2]);
    stage.ack(member, by_system_id(&[delivery(1, 1), delivery(2, 1)]));
    assert_eq!(stage.received(member), [3, 4]);
}

#[test]
fn what_has_no_room_is_refused_and_the_others_are_not() {
    let mut stage = Stage::new();
    let mut spec = open(Mode::Balanced);
    spec.options.max_pending = 2;
    let member = stage.join(&spec);
    let refused = PublishRefusal::Messages { subscription: id("sub"), waiting: 2, limit: 2 };
    let refused = Reply::Full(vec![refused]);
    let reply = stage.apply(Input::Publish { ticket: TICKET, run: run(1..=4) });
    let taken = Reply::Published(1);
    // The first is in flight, two wait.
    assert_eq!(reply, Some(Reply::Run(vec![taken.clone(), taken.clone(), taken, refused])));
    assert_eq!(stage.counted(Counter::RefusedFull), 1);
    let reply = stage.apply(Input::Accept { ticket: TICKET, run: run(5..=6) });
    assert_eq!(reply, Some(Reply::Run(vec![Reply::Published(1); 2])), "what no shard may refuse is taken");
    for number in [1, 2, 3, 5, 6] {
        assert_eq!(stage.received(member), [number]);
        stage.ack(member, by_system_id(&[delivery(number, 1)]));
    }
}

#[test]
fn acks_in_one_settle_each_delivery_once() {
    let mut stage = Stage::new();
    let mut spec = open(Mode::Balanced);
    spec.max_in_flight = 3;
    let member = stage.join(&spec);
    stage.apply(Input::Publish { ticket: TICKET, run: run(1..=5) });
    let ids = [1, 2, 2, 9].map(|number| delivery(number, 1));
    stage.apply(Input::Ack { member, ids: ids.into_iter().collect() });
    assert_eq!(stage.received(member), [1, 2, 3, 4, 5]);
    assert_eq!((stage.counted(Counter::Acked), stage.counted(Counter::AckNotFound)), (2, 2));
}
