//! Messages come in the order that is owed, and each attempt by its number.

use super::{Again, Book, First, GROUPS, KINDS, Kind, LedgerPlan, Promise, Violation};

#[test]
fn first_attempts_come_in_publish_order() {
    for kind in KINDS {
        let book = Book::new(kind, 2);
        assert_eq!(book.run(&mut book.join(), &[(1, 1), (0, 1)]), [First, Violation]);
        let verdict = book.ledger.finish();
        assert!(
            verdict.named[0].starts_with("out of order: message 0 of lane \"lane\" came to "),
            "{verdict:?}"
        );
        assert!(verdict.named[0].ends_with("\"receiver\" after message 1"), "{verdict:?}");

        let book = Book::with(kind, 2, false, true);
        assert_eq!(book.run(&mut book.join(), &[(1, 1), (0, 1)]), [First; 2], "this lane has no order");
        assert_eq!(book.broken(), []);
    }
}

#[test]
fn order_is_owed_to_each_member_of_a_balanced_group_and_on_each_lane_alone() {
    let mut plan = LedgerPlan::new();
    let group = plan.receiver("group", Kind::Balanced);
    let lanes = ["a", "b"].map(|name| plan.lane(name, group..=group, true));
    let ledger = plan.build();
    let (mut first, mut second) = (ledger.join(group), ledger.join(group));
    for lane in lanes {
        ledger.sent(lane, 3);
    }
    assert_eq!(first.delivered(lanes[0], 2, 1), First);
    assert_eq!(first.delivered(lanes[1], 0, 1), First);
    assert_eq!(second.delivered(lanes[0], 1, 1), First);
    assert_eq!(second.delivered(lanes[0], 0, 1), Violation);
}

#[test]
fn a_first_attempt_is_younger_than_all_that_came_before_it() {
    let book = Book::new(Kind::Balanced, 4);
    let (mut first, mut second) = (book.join(), book.join());
    book.hold(&mut first, &[(0, 1), (3, 1)]);
    book.join().died();
    first.died();
    // 1 and 2 were waiting when 3 came back: they had to come before it, though members have died.
    assert_eq!(book.run(&mut second, &[(3, 2), (1, 1), (0, 2), (2, 1)])[1], Violation);
    assert_eq!(book.broken(), [(Promise::Reordered, 3)], "0 came back with 3");
}

#[test]
fn a_member_may_go_back_once_for_each_death() {
    let book = Book::new(Kind::Balanced, 6);
    let (mut first, mut second, mut third) = (book.join(), book.join(), book.join());
    book.hold(&mut first, &[(1, 1)]);
    book.hold(&mut second, &[(0, 1)]);
    assert_eq!(book.run(&mut third, &[(5, 1)]), [First]);
    first.died();
    assert_eq!(book.run(&mut third, &[(1, 2)]), [Again]);
    second.died();
    assert_eq!(book.run(&mut third, &[(0, 2)]), [Again]);
    // 4, 3 and 2 were in the sockets of the dead: at most two steps back, and both are taken.
    assert_eq!(book.run(&mut third, &[(4, 2), (3, 2), (2, 2)]), [First, Violation, Violation]);
    assert_eq!(book.broken(), [(Promise::Reordered, 2)]);
}

#[test]
fn what_one_member_held_comes_back_in_order() {
    let book = Book::new(Kind::Balanced, 5);
    let (mut first, mut second, mut third) = (book.join(), book.join(), book.join());
    book.hold(&mut first, &[(0, 1), (1, 1), (2, 1), (3, 1)]);
    first.acked(book.lane, 0, false);
    (0..3).for_each(|_| book.join().died());
    first.died();
    assert_eq!(book.hold(&mut second, &[(2, 2)]), [Again]);
    let got = book.run(&mut third, &[(3, 2), (0, 2), (1, 2)]);
    assert_eq!(got, [Again, Violation, Violation], "0 came back too, for its ack was lost");
    second.died();
    assert_eq!(book.run(&mut third, &[(2, 3), (4, 1)]), [Again, First], "the second had it in between");
    assert_eq!(book.broken(), [(Promise::Reordered, 2)]);
}

#[test]
fn a_singleton_member_never_goes_back() {
    for held in [[].as_slice(), &[(0, 1), (1, 1)]] {
        let book = Book::new(Kind::Singleton, 3);
        let (mut first, mut second) = (book.join(), book.join());
        book.hold(&mut first, held);
        first.died();
        let got = book.run(&mut second, &[(1, 2), (0, 2), (2, 1)]);
        assert_eq!(got[1..], [Violation, First], "whether the dead had read them or not");
        assert_eq!(book.broken(), [(Promise::Reordered, 1)]);
    }
}

#[test]
fn a_singleton_group_skips_nothing_over_a_promotion() {
    let book = Book::new(Kind::Singleton, 3);
    let (mut first, mut second) = (book.join(), book.join());
    book.hold(&mut first, &[(0, 1), (2, 1)]);
    first.died();
    assert_eq!(book.run(&mut second, &[(0, 2), (1, 1), (2, 2)]), [Again, Violation, Again]);
    assert_eq!(book.broken(), [(Promise::Reordered, 1)]);
}

#[test]
fn an_unknown_publish_takes_no_part_in_the_order() {
    for kind in KINDS {
        let book = Book::new(kind, 0);
        book.send(3);
        book.ledger.unknown(book.lane, 0);
        book.ledger.unknown(book.lane, 2);
        book.ledger.confirmed(book.lane, 1, 1);
        assert_eq!(book.run(&mut book.join(), &[(2, 1), (1, 1), (0, 1)]), [First; 3]);
        assert_eq!(book.broken(), []);
    }
}

#[test]
fn attempts_are_numbered_by_deaths() {
    for kind in KINDS {
        let book = Book::new(kind, 3);
        let got = book.run(&mut book.join(), &[(0, 0), (1, 2), (2, 1)]);
        assert_eq!(got, [Violation, Violation, First]);
        assert_eq!(book.broken(), [(Promise::Misnumbered, 2)]);
    }
    for kind in GROUPS {
        let book = Book::new(kind, 4);
        let mut first = book.join();
        book.hold(&mut first, &[(0, 1), (1, 1)]);
        first.died();
        // The dead member had 2 in its socket and 3 may have been too, but not twice.
        let deliveries = [(0, 2), (1, 1), (2, 2), (3, 3)];
        assert_eq!(book.run(&mut book.join(), &deliveries), [Again, Violation, First, Violation]);
        assert_eq!(book.broken(), [(Promise::Misnumbered, 2)]);
    }
}
