//! What comes is what was published, and what was confirmed.

use super::{Book, First, KINDS, Kind, LaneId, LedgerPlan, Promise, Violation};

#[test]
fn what_is_refused_or_unknown_or_unanswered_may_stay_away() {
    for kind in KINDS {
        let book = Book::new(kind, 0);
        let [refused, unknown, unanswered, confirmed] = [0, 1, 2, 3];
        book.send(4);
        book.ledger.refused(book.lane, refused);
        book.ledger.unknown(book.lane, unknown);
        book.ledger.confirmed(book.lane, confirmed, 1);
        assert_eq!(book.ledger.outstanding(), 2);
        book.run(&mut book.join(), &[(confirmed, 1)]);
        let verdict = book.ledger.finish();
        assert!(verdict.passed(), "{verdict:?}");
        assert_eq!((verdict.sent, verdict.refused, verdict.unknown), (4, 1, 2));
        assert_eq!(book.ledger.outstanding(), 1, "{unanswered} may still come");
    }
}

#[test]
fn that_an_outcome_is_unknown_may_be_told_late() {
    for kind in KINDS {
        let book = Book::new(kind, 0);
        book.send(3);
        let mut member = book.join();
        book.hold(&mut member, &[(2, 1)]);
        (0..3).for_each(|sequence| book.ledger.unknown(book.lane, sequence));
        assert_eq!(book.run(&mut member, &[(1, 1)]), [First]);
        member.acked(book.lane, 2, true);
        assert_eq!(book.broken(), []);
        assert_eq!(book.ledger.outstanding(), 0);
    }
}

#[test]
fn what_was_never_sent_must_not_come() {
    for kind in KINDS {
        let book = Book::new(kind, 1);
        assert_eq!(
            book.run(&mut book.join(), &[(0, 1), (1, 1), (u64::MAX, 1)]),
            [First, Violation, Violation]
        );
        assert_eq!(book.broken(), [(Promise::Unpublished, 2)]);
    }
}

#[test]
fn what_was_refused_must_not_come_before_or_after() {
    for kind in KINDS {
        let book = Book::new(kind, 0);
        book.send(3);
        let mut member = book.join();
        book.ledger.refused(book.lane, 0);
        assert_eq!(book.hold(&mut member, &[(0, 1), (1, 1)]), [Violation, First]);
        book.ledger.refused(book.lane, 1);
        member.acked(book.lane, 1, true);
        book.ledger.refused(book.lane, 2);
        assert_eq!(book.broken(), [(Promise::Unpublished, 2)]);
        assert_eq!(book.ledger.outstanding(), 0);
    }
}

#[test]
fn a_message_comes_only_to_its_audience() {
    let mut plan = LedgerPlan::new();
    let [first, second, third] = ["a", "b", "c"].map(|name| plan.receiver(name, Kind::Multi));
    let lane = plan.lane("lane", second..third, true);
    let nobody = plan.lane("nobody", first..first, true);
    let ledger = plan.build();
    assert_eq!((ledger.audience(lane), ledger.audience(nobody)), (1, 0));
    ledger.sent(lane, 1);
    let members = [first, second, third].map(|receiver| ledger.join(receiver));
    assert_eq!(members.map(|mut member| member.delivered(lane, 0, 1)), [Violation, First, Violation]);
    let mut group = LedgerPlan::new();
    let alone = group.receiver("alone", Kind::Multi);
    assert_eq!(group.build().join(alone).delivered(LaneId(7), 0, 1), Violation, "there is no such lane");
    assert_eq!(ledger.finish().broken.into_iter().collect::<Vec<_>>(), [(Promise::Misdelivered, 2)]);
}

#[test]
fn a_confirm_counts_the_audience_and_comes_once() {
    let book = Book::new(Kind::Multi, 2);
    book.run(&mut book.join(), &[(0, 1), (1, 1), (2, 1)]);
    assert_eq!(book.broken(), [(Promise::Unpublished, 1)]);

    let book = Book::new(Kind::Multi, 2);
    book.run(&mut book.join(), &[(0, 1), (1, 1)]);
    book.ledger.confirmed(book.lane, 1, 1);
    book.ledger.refused(book.lane, 1);
    book.ledger.unknown(book.lane, 2);
    book.send(2);
    book.ledger.confirmed(book.lane, 2, 0);
    book.ledger.confirmed(book.lane, 3, 1);
    let broken = [(Promise::Lost, 2), (Promise::Miscounted, 4)];
    assert_eq!(book.broken(), broken);
}

#[test]
fn outstanding_is_what_is_not_yet_final() {
    let book = Book::new(Kind::Balanced, 0);
    let outstanding = |expected| assert_eq!(book.ledger.outstanding(), expected);
    book.send(4);
    outstanding(4);
    let mut member = book.join();
    book.hold(&mut member, &[(0, 1), (1, 1)]);
    outstanding(4);
    member.acked(book.lane, 0, false);
    outstanding(3);
    member.acked(book.lane, 0, true);
    member.acked(book.lane, 0, true);
    outstanding(3);
    book.ledger.unknown(book.lane, 1);
    book.ledger.unknown(book.lane, 2);
    book.ledger.refused(book.lane, 3);
    outstanding(1);
    member.acked(book.lane, 1, false);
    outstanding(0);
    book.hold(&mut member, &[(2, 1)]);
    outstanding(1);
    member.died();
    let mut heir = book.join();
    book.hold(&mut heir, &[(1, 2)]);
    outstanding(2);
    book.run(&mut heir, &[(2, 2)]);
    heir.acked(book.lane, 1, true);
    outstanding(0);
    assert_eq!(book.broken(), []);
}
