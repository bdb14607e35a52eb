//! A message comes once, to one member, and is settled.

use super::{Again, Book, First, GROUPS, KINDS, Kind, Promise, Violation};

#[test]
fn a_confirmed_message_that_never_comes_is_lost() {
    for kind in KINDS {
        let book = Book::new(kind, 500);
        book.run(&mut book.join(), &[(0, 1), (2, 1), (3, 1)]);
        let verdict = book.ledger.finish();
        assert_eq!(verdict.broken.into_iter().collect::<Vec<_>>(), [(Promise::Lost, 497)]);
        assert_eq!(
            verdict.named,
            [
                "lost: message 1 of lane \"lane\" never came to \"receiver\"",
                "lost: messages 4 to 499 of lane \"lane\" never came to \"receiver\"",
            ]
        );
    }
}

#[test]
fn what_a_dead_member_held_is_lost_unless_it_comes_again() {
    for kind in GROUPS {
        let book = Book::new(kind, 3);
        let mut first = book.join();
        book.hold(&mut first, &[(0, 1), (1, 1), (2, 1)]);
        first.acked(book.lane, 0, false);
        first.died();
        assert_eq!(book.run(&mut book.join(), &[(1, 2)]), [Again]);
        let verdict = book.ledger.finish();
        assert_eq!(verdict.redelivered, 1);
        assert_eq!(
            verdict.named,
            ["lost: message 2 of lane \"lane\" never came again after the death of member 0 of \"receiver\"",]
        );
    }
}

#[test]
fn a_delivery_of_what_is_final_doubles_it() {
    for (kind, may_die) in [(Kind::Balanced, false), (Kind::Singleton, true), (Kind::Multi, false)] {
        let book = Book::with(kind, 2, true, may_die);
        assert_eq!(book.run(&mut book.join(), &[(0, 1), (1, 1), (1, 2)]), [First, First, Violation]);
        assert_eq!(book.broken(), [(Promise::Doubled, 1)]);
    }
}

#[test]
fn a_certain_ack_is_final_even_after_its_members_death() {
    for kind in GROUPS {
        let book = Book::new(kind, 2);
        let mut first = book.join();
        book.hold(&mut first, &[(0, 1), (1, 1)]);
        (0..2).for_each(|sequence| first.acked(book.lane, sequence, false));
        first.acked(book.lane, 0, true);
        first.died();
        assert_eq!(book.run(&mut book.join(), &[(0, 2), (1, 2)]), [Violation, Again]);
        assert_eq!(book.broken(), [(Promise::Doubled, 1)]);
    }
}

#[test]
fn an_uncertain_ack_is_final_while_its_member_lives() {
    let book = Book::new(Kind::Balanced, 1);
    let (mut first, mut second) = (book.join(), book.join());
    book.hold(&mut first, &[(0, 1)]);
    first.acked(book.lane, 0, false);
    assert_eq!(book.hold(&mut second, &[(0, 2)]), [Violation]);
    assert_eq!(book.broken(), [(Promise::Doubled, 1)]);
}

#[test]
fn a_member_that_holds_a_message_must_not_get_it_again() {
    for kind in GROUPS {
        let book = Book::new(kind, 1);
        let mut member = book.join();
        assert_eq!(book.hold(&mut member, &[(0, 1), (0, 2)]), [First, Violation]);
        member.acked(book.lane, 0, true);
        assert_eq!(book.broken(), [(Promise::Doubled, 1)]);
    }
}

#[test]
fn nobody_gets_what_a_living_member_holds() {
    for kind in GROUPS {
        let book = Book::new(kind, 1);
        let (mut first, mut second) = (book.join(), book.join());
        book.hold(&mut first, &[(0, 1)]);
        assert_eq!(book.run(&mut second, &[(0, 2)]), [Violation]);
        first.acked(book.lane, 0, true);
        let verdict = book.ledger.finish();
        assert_eq!(
            verdict.named,
            ["with two holders at once: message 0 of lane \"lane\" \
            came to member 1 of \"receiver\" while member 0 held it"]
        );
    }
}

#[test]
fn a_singleton_group_has_one_active_member() {
    let book = Book::new(Kind::Singleton, 3);
    let (mut first, mut second, mut third) = (book.join(), book.join(), book.join());
    assert_eq!(book.run(&mut first, &[(0, 1)]), [First]);
    first.died();
    assert_eq!(book.run(&mut second, &[(1, 1)]), [First], "the first has died");
    assert_eq!(book.run(&mut third, &[(2, 1)]), [Violation], "the second has not");
    assert_eq!(book.broken(), [(Promise::TwoHolders, 1)]);
}

#[test]
fn what_came_must_be_settled() {
    for kind in GROUPS {
        let book = Book::new(kind, 2);
        book.send(1);
        book.ledger.unknown(book.lane, 2);
        let (mut member, mut other) = (book.join(), book.join());
        book.hold(&mut member, &[(0, 1), (2, 1)]);
        other.acked(book.lane, 0, true);
        member.acked(book.lane, 1, true);
        let broken = [(Promise::Lost, 1), (Promise::Unsettled, 2)];
        assert_eq!(book.broken(), broken, "an ack by who does not hold it settles nothing");
        assert_eq!(book.ledger.outstanding(), 3);
        let mut heir = book.join();
        member.acked(book.lane, 0, false);
        member.acked(book.lane, 2, false);
        member.died();
        book.run(&mut heir, &[(1, 2)]);
        assert_eq!(book.broken(), []);
        assert_eq!(book.ledger.outstanding(), 0);
    }
}

#[test]
#[should_panic(expected = "\"receiver\" must stay to the end")]
fn a_multi_subscriber_must_stay() {
    Book::new(Kind::Multi, 0).join().died();
}

#[test]
#[should_panic(expected = "\"receiver\" has one member")]
fn a_multi_subscriber_is_alone() {
    let book = Book::new(Kind::Multi, 0);
    let _members = [book.join(), book.join()];
}

#[test]
#[should_panic(expected = "the plan must say that members may die")]
fn a_death_must_be_planned() {
    Book::with(Kind::Balanced, 0, true, false).join().died();
}
