//! What the delivery core needs for one input with all its effects: no thread, no socket, no encoding.

mod common;
#[path = "common/cpu_time.rs"]
mod cpu_time;

use std::collections::VecDeque;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use smallvec::smallvec;
use tinybroker::core::{Core, CoreConfig, Delivery, Effect, Input, OpenSpec, Overflow, SharedOptions};
use tinybroker::limits::{MAX_PENDING, MAX_PENDING_BYTES, MEMBER_WINDOW_MESSAGES, MESSAGE_COST};
use tinybroker::model::{
    DeliveryId, GroupName, MemberId, Message, MessageNumber, Mode, SubscriptionId, Ticket, Time,
};
use tinybroker::pattern::Pattern;

use cpu_time::CpuTime;

const TOPIC: &str = "order.placed";
const BODY_BYTES: usize = 100;
/// Deliveries that a connection takes before it says so: half a window, as the frontends do.
const CREDIT: u32 = MEMBER_WINDOW_MESSAGES / 2;

/// A core with its clients: they publish, take what comes, and say so.
struct World {
    core: Core,
    effects: Vec<Effect>,
    numbers: u64,
    /// What is published, over and over: as many as the core ever holds at a time, or more.
    messages: Vec<Message>,
    published: usize,
    /// Deliveries that no connection has taken.
    untaken: u64,
    /// What was delivered and not yet acked, oldest first.
    in_flight: VecDeque<(MemberId, DeliveryId)>,
}

impl World {
    fn new(messages: usize) -> Self {
        let config = CoreConfig {
            epoch: 0,
            max_pending_bytes: MAX_PENDING_BYTES,
            near_full_messages: 8192,
            near_full_bytes: MESSAGE_COST,
            fan_out_slice: usize::MAX,
        };
        World {
            core: Core::new(config),
            effects: Vec::new(),
            numbers: 0,
            messages: (0..messages as u64).map(message).collect(),
            published: 0,
            untaken: 0,
            in_flight: VecDeque::new(),
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn apply(&mut self, input: Input) {
        self.effects.clear();
        self.core.apply(Time::default(), input, &mut self.effects);
        self.untaken += deliveries(&self.effects).count() as u64;
    }

    /// Applies an input and remembers what it has delivered, to be acked.
    fn apply_for_acks(&mut self, input: Input) {
        self.apply(input);
        self.in_flight.extend(deliveries(&self.effects));
    }

    fn open(&mut self, spec: &OpenSpec) -> MemberId {
        let member = MemberId { frontend: 0, number: self.number() };
        self.apply_for_acks(Input::Open { member, spec: Box::new(spec.clone()) });
        member
    }

    fn publication(&mut self) -> Input {
        let message = self.messages[self.published % self.messages.len()].clone();
        self.published += 1;
        Input::Publish { ticket: Ticket { frontend: 0, number: self.number() }, run: smallvec![message] }
    }

    fn publish(&mut self) {
        let input = self.publication();
        self.apply_for_acks(input);
    }

    /// Acks what was delivered first.
    fn ack(&mut self) {
        let Some((member, id)) = self.in_flight.pop_front() else { panic!("something is in flight") };
        self.apply_for_acks(Input::Ack { member, ids: smallvec![id] });
    }

    /// Each connection tells what it has taken, when that is half a window.
    fn take(&mut self, members: u64) {
        if self.untaken < u64::from(CREDIT) * members {
            return;
        }
        self.untaken = 0;
        let bytes = u64::from(CREDIT) * self.messages[0].cost();
        for number in 1..=members {
            let member = MemberId { frontend: 0, number };
            self.apply(Input::Credit { member, messages: CREDIT, bytes });
        }
    }
}

fn deliveries(effects: &[Effect]) -> impl Iterator<Item = (MemberId, DeliveryId)> {
    let events = effects.iter().filter_map(|effect| match effect {
        Effect::Member(member, event) => Some((*member, event)),
        _ => None,
    });
    events.flat_map(|(member, event)| {
        let id = |delivery: &Delivery| DeliveryId {
            message: delivery.message.number(),
            delivery: delivery.delivery,
        };
        event.deliveries().iter().map(move |delivery| (member, id(delivery)))
    })
}

fn message(number: u64) -> Message {
    Message::new(MessageNumber::from_u64(number), TOPIC, None, BODY_BYTES, |_| ())
}

fn spec(mode: Mode, name: &str, pattern: &str, max_in_flight: u32) -> OpenSpec {
    OpenSpec {
        subscription_id: None,
        id_if_new: SubscriptionId::parse(name).expect("short").expect("not empty"),
        mode,
        group: mode.is_group().then(|| GroupName::parse(name).expect("short").expect("not empty")),
        patterns: vec![Pattern::parse(pattern).expect("a pattern")],
        options: SharedOptions {
            max_pending: MAX_PENDING,
            overflow: Overflow::default_of(mode),
            linger: Duration::ZERO,
            ack_timeout: Duration::ZERO,
            max_deliveries: 0,
            dead_letter_topic: None,
        },
        max_in_flight,
        control_events: false,
    }
}

/// A publish to one group and the ack of its oldest delivery, while so many are in flight and wait.
fn publish_and_ack(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("core_apply/publish_and_ack");
    group.throughput(Throughput::Elements(1));
    for (in_flight, waiting) in [(1, 0), (256, 0), (1, 10), (1, 100_000)] {
        let mut world = World::new(in_flight + waiting + 1024);
        world.open(&spec(Mode::Balanced, "workers", TOPIC, in_flight as u32));
        for _ in 0..in_flight + waiting {
            world.publish();
        }
        // With nothing waiting the ack comes first, so that there is room for what is published.
        let ack_first = waiting == 0;
        group.bench_function(format!("{in_flight}_in_flight/{waiting}_waiting"), |b| {
            b.iter(|| {
                if ack_first {
                    world.ack();
                    world.publish();
                } else {
                    world.publish();
                    world.ack();
                }
                world.take(1);
            });
        });
        assert_eq!(world.core.in_flight(), in_flight as u64, "each publish was delivered in its turn");
    }
    group.finish();
}

/// A publish to as many MULTI subscriptions without acks: one element is one delivery.
fn fan_out(c: &mut Criterion<CpuTime>) {
    const SUBSCRIPTIONS: u64 = 50;
    let mut world = World::new(1024);
    for number in 0..SUBSCRIPTIONS {
        world.open(&spec(Mode::Multi, &format!("listener-{number}"), "order.*", 0));
    }
    let mut group = c.benchmark_group("core_apply/fan_out");
    group.throughput(Throughput::Elements(SUBSCRIPTIONS));
    group.bench_function(format!("{SUBSCRIPTIONS}_subscriptions"), |b| {
        b.iter(|| {
            let input = world.publication();
            world.apply(input);
            assert_eq!(world.effects.len() as u64, SUBSCRIPTIONS + 1, "each delivers, and one answers");
            world.take(SUBSCRIPTIONS);
        });
    });
    group.finish();
}

/// A subscription of its own comes and goes beside a thousand others.
fn open_and_leave(c: &mut Criterion<CpuTime>) {
    let mut world = World::new(1);
    for number in 0..1000 {
        world.open(&spec(Mode::Multi, &format!("tenant-{number}"), &format!("tenant-{number}.*"), 0));
    }
    let passer_by = spec(Mode::Multi, "passer-by", "visit.*", 0);
    let mut group = c.benchmark_group("core_apply/open_and_leave");
    group.throughput(Throughput::Elements(1));
    group.bench_function("1000_others", |b| {
        b.iter(|| {
            let member = world.open(&passer_by);
            world.apply(Input::Leave { member });
        });
    });
    group.finish();
}

/// A member joins a group, the one that holds all messages leaves, and all go to the new one: one
/// element is one redelivery.
fn redelivery(c: &mut Criterion<CpuTime>) {
    const HELD: usize = 256;
    let mut world = World::new(HELD);
    let worker = spec(Mode::Balanced, "workers", TOPIC, HELD as u32);
    let mut holder = world.open(&worker);
    for _ in 0..HELD {
        world.publish();
    }
    let mut group = c.benchmark_group("core_apply/redelivery");
    group.throughput(Throughput::Elements(HELD as u64));
    group.bench_function(format!("{HELD}_in_flight"), |b| {
        b.iter(|| {
            let leaver = std::mem::replace(&mut holder, world.open(&worker));
            world.apply(Input::Leave { member: leaver });
            assert_eq!(world.effects.len(), HELD, "each is delivered again");
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = common::criterion(CpuTime);
    targets = publish_and_ack, fan_out, open_and_leave, redelivery
}
criterion_main!(benches);
