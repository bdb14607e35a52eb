use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::node::Receiver;
use super::runtime::Accepted;
use super::{Clock, Layout, Merger, Node, NodeConfig, Owner, Phase, Shared};
use crate::core::{Answer, CoreConfig, DeadLetter, Input, MemberEvent, OpenSpec, Overflow, SharedOptions};
use crate::limits;
use crate::memory::Memory;
use crate::model::{MemberId, Message, MessageNumber, Mode, SubscriptionId, Ticket};
use crate::pattern::Pattern;
use crate::ring::{self, Mesh};

/// A frontend that keeps what it is told: of deliveries the number of the message, of answers that of the ticket.
#[derive(Default)]
struct Heard {
    deliveries: RefCell<Vec<u64>>,
    answers: RefCell<Vec<u64>>,
}

impl Receiver for Heard {
    fn member_event(&self, _: MemberId, event: MemberEvent) {
        let numbers = event.deliveries().iter().map(|delivery| delivery.message.number().as_u64());
        self.deliveries.borrow_mut().extend(numbers);
    }

    fn answer(&self, _: usize, ticket: Ticket, _: Answer) -> Vec<(usize, Input)> {
        self.answers.borrow_mut().push(ticket.number);
        Vec::new()
    }

    fn dead_letter(&self, _: Box<DeadLetter>) {}

    fn connection(&self, _: Accepted) {}

    fn phase(&self, _: Phase) {}
}

/// Subscriptions that one input hands a message out to.
const SLICE: usize = 2;

pub(super) fn core_config(fan_out_slice: usize) -> CoreConfig {
    CoreConfig {
        epoch: 0,
        max_pending_bytes: limits::MAX_PENDING_BYTES,
        near_full_messages: 1,
        near_full_bytes: limits::MESSAGE_COST,
        fan_out_slice,
    }
}

/// The executors of one process, all on this thread, each with a shard and a frontend.
fn executors(number: usize) -> Vec<(Rc<Node>, Rc<Heard>)> {
    executors_that_spin(number, Duration::ZERO)
}

fn executors_that_spin(number: usize, spin: Duration) -> Vec<(Rc<Node>, Rc<Heard>)> {
    let layout = Layout { cores: vec![0; number], shards: number, frontends: number };
    let mesh = Mesh::new(number, limits::RING_SLOTS);
    let (outlets, inlets) = ring::rings(&mesh.bells(), &mesh.bells(), limits::RING_SLOTS);
    let memory = Memory::new(number, 1);
    let shared =
        Arc::new(Shared::new(&layout, &core_config(SLICE), outlets, &mesh.bells(), Duration::ZERO, memory));
    let (merger, clock) = (Merger::start().expect("a thread"), Clock::start());
    let ends = mesh.into_ports().into_iter().zip(inlets);
    let executor = |(port, inlet)| {
        let (merger, shared) = (merger.clone(), shared.clone());
        let node = Node::new(NodeConfig { port, inlet, merger, shared, clock, spin });
        let heard = Rc::<Heard>::default();
        node.set_receiver(heard.clone());
        (node, heard)
    };
    ends.map(executor).collect()
}

/// The pump of this executor sleeps, as far as others can tell.
fn fall_asleep(node: &Node) {
    assert!(node.doorbell().park(Waker::noop(), || false));
}

fn turn(node: &Node) {
    node.doorbell().unpark();
    while node.turn(&mut Vec::new()) {}
}

/// A stream of this frontend, the only one of its number, that wants all and has room for all.
fn open(node: &Node, frontend: u16, number: u64) -> Input {
    let id = SubscriptionId::from_number(MessageNumber::from_u64(number));
    let claim = node.shared.directory.claim(&id, &Owner::Multi, 1).expect("a new id");
    std::mem::forget(claim);
    let spec = Box::new(spec(id, "*"));
    Input::Open { member: MemberId { frontend, number }, spec }
}

/// A MULTI stream that has room for all and asks no acks.
pub(super) fn spec(id: SubscriptionId, pattern: &str) -> OpenSpec {
    OpenSpec {
        subscription_id: None,
        id_if_new: id,
        mode: Mode::Multi,
        group: None,
        patterns: vec![Pattern::parse(pattern).expect("a pattern")],
        options: SharedOptions {
            max_pending: 1000,
            overflow: Overflow::Disconnect,
            linger: Duration::ZERO,
            ack_timeout: Duration::ZERO,
            max_deliveries: 0,
            dead_letter_topic: None,
        },
        max_in_flight: 0,
        control_events: false,
    }
}

/// A publish of this message by a frontend.
fn publish(frontend: u16, number: u64) -> Input {
    publish_run(frontend, number, 1)
}

/// A publish of so many messages, this the first.
fn publish_run(frontend: u16, first: u64, messages: u64) -> Input {
    let message = |number| Message::new(MessageNumber::from_u64(number), "a", None, 0, |_| ());
    let run = (first..first + messages).map(message).collect();
    Input::Publish { ticket: Ticket { frontend, number: first }, run }
}

/// A task that comes after a long sleep must not find the time at which the executor fell asleep.
#[test]
fn no_turn_leaves_its_time_behind() {
    let (node, _) = executors(1).remove(0);
    let turns: [&dyn Fn(&Node); 2] = [&|node| assert!(!node.turn(&mut Vec::new())), &Node::flush];
    for turn in turns {
        let early = node.time.now();
        assert_eq!(node.time.now(), early, "all of a turn happens at one moment");
        turn(&node);
        let after = node.time.clock.now();
        assert!(node.time.now() >= after, "the next one has a time of its own");
    }
}

#[test]
fn the_shard_of_a_sleeper_is_run_by_who_has_work_for_it() {
    let executors = executors(2);
    let [(near, heard), (far, _)] = &executors[..] else { panic!("two executors") };
    fall_asleep(far);
    near.submit(1, open(near, 0, 1));
    near.submit(1, publish(0, 7));
    assert_eq!(*heard.deliveries.borrow(), [7]);
    assert_eq!(*heard.answers.borrow(), [7]);
    assert!(!far.has_work(), "it may sleep on");
}

#[test]
fn who_is_awake_runs_its_shard_itself() {
    let executors = executors(2);
    let [(near, heard), (far, _)] = &executors[..] else { panic!("two executors") };
    near.submit(1, open(near, 0, 1));
    near.submit(1, publish(0, 7));
    near.flush();
    assert!(heard.answers.borrow().is_empty() && far.has_work());
    turn(far);
    turn(near);
    assert_eq!(*heard.answers.borrow(), [7]);
}

#[test]
fn nothing_overtakes_what_went_by_ring() {
    let executors = executors(2);
    let [(near, heard), (far, _)] = &executors[..] else { panic!("two executors") };
    near.submit(1, open(near, 0, 1));
    near.submit(1, publish(0, 1));
    // Not sent yet, then not taken yet.
    fall_asleep(far);
    near.submit(1, publish(0, 2));
    near.flush();
    fall_asleep(far);
    near.submit(1, publish(0, 3));
    near.flush();
    assert!(heard.answers.borrow().is_empty());
    turn(far);
    turn(near);
    fall_asleep(far);
    near.submit(1, publish(0, 4));
    assert_eq!(*heard.answers.borrow(), [1, 2, 3, 4]);
    assert_eq!(*heard.deliveries.borrow(), [1, 2, 3, 4]);
}

#[test]
fn what_a_shard_says_keeps_its_order_whoever_runs_it() {
    let executors = executors(3);
    let [(near, _), (home, heard), (other, heard_other)] = &executors[..] else { panic!("three executors") };
    home.submit(1, open(home, 1, 1));
    home.submit(1, publish(1, 1));
    home.flush();
    for number in [2, 4] {
        fall_asleep(home);
        near.submit(1, publish(0, number));
        assert!(home.has_work(), "one of its own streams is spoken to");
        // A task of its own comes before its pump.
        home.submit(1, publish(1, number + 1));
        home.flush();
    }
    assert_eq!(*heard.deliveries.borrow(), [1, 2, 3, 4, 5]);
    // The same for an executor that runs the shard while something is on its way to it.
    home.submit(1, open(home, 2, 2));
    home.submit(1, publish(1, 6));
    home.flush();
    fall_asleep(home);
    other.submit(1, publish(2, 7));
    assert_eq!(*heard_other.deliveries.borrow(), [6, 7]);
}

#[test]
fn what_a_shard_has_not_sent_yet_is_not_overtaken() {
    let executors = executors(2);
    let [(near, heard), (home, heard_at_home)] = &executors[..] else { panic!("two executors") };
    home.submit(1, open(home, 0, 1));
    home.submit(1, open(home, 1, 2));
    turn(home);
    turn(near);
    // A task of the home's is in the middle of its turn while the pump sleeps.
    home.submit(1, publish(1, 1));
    fall_asleep(home);
    near.submit(1, publish(0, 2));
    assert_eq!(*heard.deliveries.borrow(), [1, 2]);
    home.submit(1, publish(1, 3));
    assert_eq!(*heard_at_home.deliveries.borrow(), [1, 2, 3]);
    home.flush();
    turn(near);
    assert_eq!(*heard.deliveries.borrow(), [1, 2, 3]);
}

#[test]
fn much_work_goes_by_ring() {
    let executors = executors(2);
    let [(near, heard), (far, _)] = &executors[..] else { panic!("two executors") };
    let submit = |numbers: std::ops::Range<u64>| {
        fall_asleep(far);
        numbers.for_each(|number| near.submit(1, publish(0, number)));
        let answered = heard.answers.borrow().len();
        near.flush();
        turn(far);
        turn(near);
        answered
    };
    let bound = limits::ERRANDS_IN_ONE_TURN;
    let many = 3 * bound as u64;
    assert_eq!(submit(0..many), bound);
    // From who had much to do more is to be expected; and again after a turn with little.
    assert_eq!(submit(many..many + 1), 3 * bound);
    assert_eq!(submit(many + 1..many + 2), 3 * bound + 2);
    assert!(heard.answers.borrow().iter().copied().eq(0..many + 2));
}

#[test]
fn a_long_run_is_much_work() {
    let executors = executors(2);
    let [(near, heard), (far, _)] = &executors[..] else { panic!("two executors") };
    fall_asleep(far);
    near.submit(1, open(near, 0, 1));
    near.submit(1, publish_run(0, 1, limits::ERRANDS_IN_ONE_TURN as u64 + 1));
    near.flush();
    assert!(heard.answers.borrow().is_empty() && far.has_work());
}

#[test]
fn many_long_runs_take_several_turns() {
    let executors = executors(2);
    let [(near, heard), (far, _)] = &executors[..] else { panic!("two executors") };
    let (run, runs) = (limits::RUN_MESSAGES as u64, 40);
    assert!(run * runs > 2 * limits::PUMP_TURN_ITEMS as u64);
    for nth in 0..runs {
        near.submit(1, publish_run(0, nth * run, run));
        near.flush();
    }
    assert!(far.turn(&mut Vec::new()), "more is waiting");
    turn(near);
    assert_eq!(heard.answers.borrow().len(), limits::PUMP_TURN_ITEMS / limits::RUN_MESSAGES);
    turn(far);
    turn(near);
    assert_eq!(heard.answers.borrow().len() as u64, runs);
}

#[test]
fn a_sleeper_is_woken_for_what_is_due_before_it_wakes() {
    let executors = executors(2);
    let [(near, heard), (far, _)] = &executors[..] else { panic!("two executors") };
    let seat = far.seat().expect("a shard");
    for number in 0..=SLICE as u64 {
        fall_asleep(far);
        seat.sleeps_until(far.time.clock.now() + Duration::from_secs(60));
        near.submit(1, open(near, 0, number));
        near.flush();
        assert!(far.doorbell().ring(), "it sleeps: nothing is due");
    }
    fall_asleep(far);
    near.submit(1, publish(0, 7));
    assert_eq!(heard.deliveries.borrow().len(), SLICE);
    assert!(!far.doorbell().ring(), "it was rung for: one subscription is left");
    turn(far);
    turn(near);
    assert_eq!(*heard.deliveries.borrow(), [7; SLICE + 1]);
}

#[test]
fn an_executor_is_idle_once_nothing_was_done_for_a_while() {
    let (node, _) = executors(1).remove(0);
    let begun = std::time::Instant::now();
    while !node.is_idle() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never is");
        node.time.go_on();
        std::thread::yield_now();
    }
    node.note_work();
    assert!(!node.is_idle());
}

#[test]
fn an_executor_that_is_to_spin_does_so_after_work() {
    let hour = Duration::from_secs(3600);
    for (spin, spins) in [(Duration::ZERO, false), (hour, true)] {
        let (node, _) = executors_that_spin(1, spin).remove(0);
        node.note_work();
        assert_eq!(node.spins(), spins, "{spin:?}");
    }
}
