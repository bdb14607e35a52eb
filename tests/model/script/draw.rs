//! How scripts are drawn: what happens how often.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample;
use tinybroker::core::{Action, Nack, Overflow};
use tinybroker::model::Mode;

use super::{
    DEAD_LETTER_TOPICS, GivenId, Kind, PATTERNS, PLACES, Pick, STREAMS, Script, Settler, Size, Span, Step,
    TOPICS, Twist,
};

/// Longest script: short ones are drawn too, so that what fails can shrink to nothing.
const STEPS: usize = 260;
const LARGE_STEPS: usize = 60;

pub fn script() -> impl Strategy<Value = Script> {
    prop_oneof![150 => small(), 1 => large()]
}

fn small() -> impl Strategy<Value = Script> {
    let used = prop_oneof![2 => Just(1), 2 => Just(2), 1 => Just(4), 3 => Just(PLACES)];
    (vec(kind(), PLACES), used, 1..4_u64, 1..5_usize, vec(step(), 1..STEPS)).prop_map(
        |(mut places, used, near_full_messages, fan_out_slice, steps)| {
            places[PLACES - STREAMS..].iter_mut().for_each(|kind| kind.mode = Mode::Multi);
            places.truncate(used);
            Script { places, near_full_messages, fan_out_slice, steps }
        },
    )
}

/// More in one subscription than is seen to at once. Rare: a step takes as long as a thousand others.
fn large() -> impl Strategy<Value = Script> {
    let mode = sample::select(&[Mode::Multi, Mode::Balanced, Mode::Singleton][..]);
    let burst = (1100..1400_u16).prop_map(|messages| Step::Burst { topic: 0, messages });
    let steps = vec(prop_oneof![8 => step(), 1 => burst], 1..LARGE_STEPS);
    (kind(), mode, 1..4_u64, steps).prop_map(|(kind, mode, near_full_messages, mut steps)| {
        for step in &mut steps {
            if let Step::Open { max_in_flight, .. } = step {
                *max_in_flight *= 1000;
            }
        }
        Script {
            places: vec![Kind { mode, patterns: 0, ..kind }],
            near_full_messages,
            fan_out_slice: 1,
            steps,
        }
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    let mode = prop_oneof![Just(Mode::Balanced), Just(Mode::Singleton)];
    let overflow = prop_oneof![
        3 => Just(Overflow::Reject),
        2 => Just(Overflow::DropOldest),
        2 => Just(Overflow::DropNewest),
        2 => Just(Overflow::Disconnect),
    ];
    let linger = prop_oneof![2 => Just(0), 1 => Just(20), 1 => Just(100)];
    let max_pending = prop_oneof![1 => 1..3_u64, 3 => 3..8_u64, 1 => Just(1000)];
    let ack_timeout = prop_oneof![3 => Just(0), 2 => Just(5), 2 => Just(20), 1 => Just(70)];
    let max_deliveries = prop_oneof![2 => Just(0), 4 => 1..4_u32];
    let dead_letters = option::of(0..DEAD_LETTER_TOPICS.len() as u8);
    let queue = (mode, 0..PATTERNS.len() as u8, max_pending, overflow, linger);
    (queue, ack_timeout, max_deliveries, dead_letters).prop_map(
        |(
            (mode, patterns, max_pending, overflow, linger_millis),
            ack_timeout_millis,
            max_deliveries,
            dead_letters,
        )| Kind {
            mode,
            patterns,
            max_pending,
            overflow,
            linger_millis,
            ack_timeout_millis,
            max_deliveries,
            // Those of a pattern that matches all would come back.
            dead_letters: dead_letters.filter(|_| patterns > 0),
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let topic = || 0..TOPICS.len() as u8;
    let any = any::<u8>;
    prop_oneof![
        140 => open(),
        80 => any().prop_map(|member| Step::Leave { member }),
        30 => any().prop_map(|member| Step::Resign { member }),
        300 => (topic(), size(), option::of(0..3_u8))
            .prop_map(|(topic, size, message_id)| Step::Publish { topic, size, message_id }),
        60 => (2..9_u8, topic(), size(), proptest::bool::weighted(0.2)).prop_map(
            |(messages, topic, size, is_accept)| Step::Run { messages, topic, size, is_accept }
        ),
        20 => (topic(), size()).prop_map(|(topic, size)| Step::Accept { topic, size }),
        40 => (topic(), size()).prop_map(|(topic, size)| Step::Reserve { topic, size }),
        30 => any().prop_map(|nth| Step::Commit { nth }),
        15 => any().prop_map(|nth| Step::Abort { nth }),
        400 => (settler(), pick(), action())
            .prop_map(|(settler, pick, action)| Step::Settle { settler, pick, action }),
        90 => (any(), prop_oneof![9 => 1..4_u16, 1 => Just(2000)])
            .prop_map(|(member, messages)| Step::Credit { member, messages }),
        120 => (span(), proptest::bool::ANY).prop_map(|(span, tick)| Step::Advance { span, tick }),
        1 => Just(Step::Drain),
    ]
}

fn open() -> impl Strategy<Value = Step> {
    let twist = prop_oneof![
        Just(Twist::Mode),
        Just(Twist::Patterns),
        Just(Twist::MaxPending),
        Just(Twist::Overflow),
        Just(Twist::Linger),
        Just(Twist::AckTimeout),
        Just(Twist::MaxDeliveries),
        Just(Twist::DeadLetters),
    ];
    (0..PLACES as u8, given(), 0..5_u16, any::<bool>(), option::weighted(0.1, twist)).prop_map(
        |(place, given, max_in_flight, control_events, twist)| Step::Open {
            place,
            given,
            max_in_flight,
            control_events,
            twist,
        },
    )
}

fn given() -> impl Strategy<Value = GivenId> {
    prop_oneof![
        10 => Just(GivenId::None),
        10 => Just(GivenId::Own),
        1 => (0..PLACES as u8).prop_map(GivenId::Other),
    ]
}

fn settler() -> impl Strategy<Value = Settler> {
    let any = any::<u8>;
    prop_oneof![
        3 => (any(), given()).prop_map(|(member, given)| Settler::Stream { member, given }),
        2 => any().prop_map(|subscription| Settler::Call { subscription }),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let millis = |choices: &'static [u64]| sample::select(choices).prop_map(Duration::from_millis);
    let flag = |percent: f64| proptest::bool::weighted(percent / 100.0);
    let nack = (millis(&[0, 0, 1, 20, 20, 100, 400]), flag(15.0), flag(30.0));
    prop_oneof![
        4 => Just(Action::Ack),
        5 => nack.prop_map(|(delay, discard, keep_attempt)| Action::Nack(Nack { delay, discard, keep_attempt })),
        2 => millis(&[0, 1, 20, 100]).prop_map(|ack_timeout| Action::Extend { ack_timeout }),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        3 => sample::select(&[5, 20, 100][..]).prop_map(Span::Millis),
        3 => Just(Span::UntilDue),
        1 => Just(Span::UntilJustBeforeDue),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![6 => Just(Size::Small), 2 => Just(Size::Large), 1 => Just(Size::Huge)]
}

fn pick() -> impl Strategy<Value = Pick> {
    let nth = any::<u8>;
    prop_oneof![
        12 => nth().prop_map(Pick::InFlight),
        3 => nth().prop_map(Pick::Several),
        2 => nth().prop_map(Pick::Delivered),
        1 => nth().prop_map(Pick::NotYet),
        2 => (0..3_u8).prop_map(Pick::MessageId),
        1 => nth().prop_map(Pick::BrokersMessageId),
    ]
}
