//! What a message allocates on its way from request to ack, counted: one block, its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use prost::Message as _;
use smallvec::smallvec;
use tinybroker::core::{Core, CoreConfig, Effect, Input, MemberEvent, OpenSpec, Overflow, SharedOptions};
use tinybroker::frontend::WireEvent;
use tinybroker::frontend::convert::{self, Bounds, Command, Publish};
use tinybroker::limits::{MAX_PENDING, MAX_PENDING_BYTES, MESSAGE_BYTES, MESSAGE_COST};
use tinybroker::model::{GroupName, MemberId, MessageNumber, Mode, SubscriptionId, Ticket, Time};
use tinybroker::pattern::Pattern;
use tinybroker::proto;
use tinybroker::proto::subscribe_command::Command as WireCommand;

/// The system's allocator, counting what each thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may still allocate.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(block, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BOUNDS: Bounds = Bounds { max_message_bytes: MESSAGE_BYTES, max_pending: MAX_PENDING };
const WORKER: MemberId = MemberId { frontend: 0, number: 1 };

/// A core with a group of one worker, and what frontends do around it.
struct Path {
    core: Core,
    effects: Vec<Effect>,
    request: Vec<u8>,
    event: BytesMut,
    ack: Vec<u8>,
    number: u64,
}

impl Path {
    fn new() -> Self {
        let mut core = Core::new(CoreConfig {
            epoch: 0,
            max_pending_bytes: MAX_PENDING_BYTES,
            near_full_messages: 8192,
            near_full_bytes: MESSAGE_COST,
            fan_out_slice: 256,
        });
        let mut effects = Vec::new();
        let mut open = |number, spec| {
            let member = MemberId { frontend: 0, number };
            core.apply(Time::default(), Input::Open { member, spec: Box::new(spec) }, &mut effects);
        };
        open(WORKER.number, group("group", "tenant-7.*"));
        // Others who want other things; and with so many the core's own checks come seldom, which allocate.
        (0..40).for_each(|other| open(100 + other, group(&format!("group-{other}"), "tenant-8.*")));
        let request = proto::PublishRequest {
            topic: "tenant-7.order.placed".into(),
            payload: vec![7; 100].into(),
            ..Default::default()
        };
        let (event, ack) = (BytesMut::with_capacity(1024), Vec::with_capacity(128));
        Path { core, effects, request: request.encode_to_vec(), event, ack, number: 0 }
    }

    /// A request comes, its message is delivered, the event goes out, the ack comes back.
    fn one_message(&mut self) {
        self.number += 1;
        let publish = Publish::read(&self.request).expect("it is readable");
        let number = MessageNumber::from_u64(self.number);
        let message = publish.into_message(number, &BOUNDS, SystemTime::UNIX_EPOCH).expect("it is valid");
        let ticket = Ticket { frontend: 0, number: self.number };
        self.apply(Input::Publish { ticket, run: smallvec![message] });
        let delivered = self.effects.drain(..).find_map(|effect| match effect {
            Effect::Member(_, MemberEvent::Deliver(delivery)) => Some(delivery),
            _ => None,
        });
        let event = WireEvent::Message(delivered.expect("the worker waits"));
        self.event.clear();
        event.encode(&mut self.event).expect("there is room");
        drop(event);
        self.write_ack(number);
        let Ok(Command::Ack(ids)) = convert::read_command(&self.ack, &BOUNDS) else {
            panic!("it is an ack");
        };
        self.apply(Input::Ack { member: WORKER, ids });
        self.apply(Input::Credit { member: WORKER, messages: 1, bytes: 300 });
    }

    fn write_ack(&mut self, number: MessageNumber) {
        let text = number.text();
        let length = text.len() as u8;
        self.ack.clear();
        self.ack.extend([0x12, length + 2, 0x12, length]);
        self.ack.extend(text.bytes());
    }

    fn apply(&mut self, input: Input) {
        self.effects.clear();
        self.core.apply(Time::default(), input, &mut self.effects);
    }
}

fn group(name: &str, pattern: &str) -> OpenSpec {
    OpenSpec {
        subscription_id: None,
        id_if_new: SubscriptionId::parse(name).expect("short").expect("not empty"),
        mode: Mode::Balanced,
        group: GroupName::parse(name).expect("short"),
        patterns: vec![Pattern::parse(pattern).expect("a pattern")],
        options: SharedOptions {
            max_pending: MAX_PENDING,
            overflow: Overflow::Reject,
            linger: Duration::ZERO,
            ack_timeout: Duration::ZERO,
            max_deliveries: 0,
            dead_letter_topic: None,
        },
        max_in_flight: 1,
        control_events: false,
    }
}

#[test]
fn a_message_is_one_allocation_from_request_to_ack() {
    let mut path = Path::new();
    (0..1_000).for_each(|_| path.one_message());
    let before = ALLOCATIONS.get();
    (0..1_000).for_each(|_| path.one_message());
    let counted = ALLOCATIONS.get() - before;
    assert!((1_000..1_200).contains(&counted), "{counted} allocations for 1,000 messages");
    assert!(proto::SubscribeCommand::decode(&path.ack[..]).is_ok_and(|command| {
        matches!(command.command, Some(WireCommand::Ack(ack)) if ack.system_id.len() == 13)
    }));
}
