//! Each promise: that its breach is caught, and that what lies next to it and is right is not.

mod delivery;
mod order;
mod publishing;
mod world;

use std::sync::Arc;

use super::{Delivered, Kind, LaneId, Ledger, LedgerPlan, Member, Promise, ReceiverId};
use Delivered::{Again, First, Violation};
use world::{Fault, World};

const KINDS: [Kind; 3] = [Kind::Balanced, Kind::Singleton, Kind::Multi];
const GROUPS: [Kind; 2] = [Kind::Balanced, Kind::Singleton];

/// One ordered lane to one receiver, some messages of which are sent and confirmed.
struct Book {
    ledger: Arc<Ledger>,
    receiver: ReceiverId,
    lane: LaneId,
}

impl Book {
    fn new(kind: Kind, sent: u64) -> Self {
        Self::with(kind, sent, true, true)
    }

    fn with(kind: Kind, sent: u64, ordered: bool, may_die: bool) -> Self {
        let mut plan = LedgerPlan::new();
        plan.members_may_die(may_die);
        let receiver = plan.receiver("receiver", kind);
        let lane = plan.lane("lane", receiver..=receiver, ordered);
        let book = Book { ledger: plan.build(), receiver, lane };
        book.send(sent).for_each(|sequence| book.ledger.confirmed(lane, sequence, 1));
        book
    }

    fn send(&self, count: u64) -> std::ops::Range<u64> {
        let first = self.ledger.sent(self.lane, count);
        first..first + count
    }

    fn join(&self) -> Member {
        self.ledger.join(self.receiver)
    }

    fn broken(&self) -> Vec<(Promise, u64)> {
        self.ledger.finish().broken.into_iter().collect()
    }

    /// What a member gets, as (sequence, attempt), each acked at once.
    fn run(&self, member: &mut Member, deliveries: &[(u64, u32)]) -> Vec<Delivered> {
        let deliver = |&(sequence, attempt): &(u64, u32)| {
            let delivered = member.delivered(self.lane, sequence, attempt);
            member.acked(self.lane, sequence, true);
            delivered
        };
        deliveries.iter().map(deliver).collect()
    }

    /// What a member gets, as (sequence, attempt), and holds.
    fn hold(&self, member: &mut Member, deliveries: &[(u64, u32)]) -> Vec<Delivered> {
        deliveries.iter().map(|&(sequence, attempt)| member.delivered(self.lane, sequence, attempt)).collect()
    }
}

#[test]
fn a_run_in_order_passes_and_is_counted() {
    for kind in KINDS {
        let book = Book::new(kind, 3);
        let deliveries = [(0, 1), (1, 1), (2, 1)];
        assert_eq!(book.run(&mut book.join(), &deliveries), [First; 3]);
        let verdict = book.ledger.finish();
        assert!(verdict.passed(), "{verdict:?}");
        assert_eq!((verdict.sent, verdict.delivered, verdict.redelivered), (3, 3, 0));
        assert_eq!(verdict, book.ledger.finish(), "asking changes nothing");
    }
}

#[test]
fn ten_of_a_kind_are_named_and_rows_are_told_as_one() {
    let book = Book::with(Kind::Multi, 100, false, false);
    let mut member = book.join();
    let twice =
        (0..100).filter(|sequence| sequence % 4 != 0).flat_map(|sequence| [(sequence, 1), (sequence, 1)]);
    book.run(&mut member, &twice.collect::<Vec<_>>());
    let verdict = book.ledger.finish();
    assert_eq!(verdict.broken[&Promise::Doubled], 75);
    assert_eq!(verdict.broken[&Promise::Lost], 25);
    assert_eq!(verdict.named.len(), 20);
    assert_eq!(
        verdict.named[10],
        "doubled: messages 1 to 3 of lane \"lane\" came to \"receiver\" when it was final there"
    );
}

#[test]
fn rows_are_of_one_kind() {
    let mut plan = LedgerPlan::new();
    let receivers = ["a", "b"].map(|name| plan.receiver(name, Kind::Multi));
    let lane = plan.lane("lane", .., true);
    let ledger = plan.build();
    ledger.sent(lane, 2);
    (0..2).for_each(|sequence| ledger.confirmed(lane, sequence, 2));
    ledger.join(receivers[0]).delivered(lane, 1, 1);
    ledger.join(receivers[1]).delivered(lane, 0, 1);
    assert_eq!(
        ledger.finish().named,
        [
            "lost: message 0 of lane \"lane\" never came to \"a\"",
            "lost: message 1 of lane \"lane\" never came to \"b\"",
        ]
    );
}

#[test]
fn a_broker_that_keeps_its_promises_never_alarms() {
    let mut redelivered = 0;
    for seed in 0..60 {
        for (kind, members_die) in
            [(Kind::Balanced, true), (Kind::Balanced, false), (Kind::Singleton, true), (Kind::Multi, false)]
        {
            let mut world = World::new(seed, kind, members_die, None);
            let (verdict, _) = world.live(1500);
            assert!(verdict.passed() && world.violations == 0, "{kind:?}, seed {seed}: {verdict:#?}");
            assert_eq!(verdict, world.expected, "{kind:?}, seed {seed}");
            assert_eq!(world.ledger.outstanding(), 0, "{kind:?}, seed {seed}");
            redelivered += verdict.redelivered;
        }
    }
    assert!(redelivered > 1000, "{redelivered} redeliveries: deaths were of little matter");
}

#[test]
fn a_broken_promise_always_alarms() {
    let faults = [
        (Fault::Lose, Promise::Lost),
        (Fault::Double, Promise::Doubled),
        (Fault::Share, Promise::TwoHolders),
        (Fault::Swap, Promise::Reordered),
        (Fault::Ghost, Promise::Unpublished),
    ];
    let kinds =
        [(Kind::Balanced, true), (Kind::Balanced, false), (Kind::Singleton, true), (Kind::Multi, false)];
    for seed in 0..30 {
        for (kind, members_die) in kinds {
            for (fault, promise) in
                faults.into_iter().filter(|(fault, _)| (kind, *fault) != (Kind::Multi, Fault::Share))
            {
                let (verdict, was_planted) = World::new(seed, kind, members_die, Some(fault)).live(1500);
                assert!(was_planted, "{fault:?}, {kind:?}, seed {seed}");
                assert!(
                    verdict.broken.contains_key(&promise),
                    "{fault:?}, {kind:?}, seed {seed}: {verdict:#?}"
                );
            }
        }
    }
}
