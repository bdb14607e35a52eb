use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::limits;

/// What one frontend may have outstanding at the shards. Lives on its executor.
///
/// The bound keeps rings and memory within limits, and it is what "near full" is measured against.
/// Who comes first is served first: a large message waits for its room, and nobody overtakes it.
#[derive(Debug)]
pub struct Credits {
    messages: Cell<u64>,
    bytes: Cell<u64>,
    max_bytes: u64,
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    next_number: Cell<u64>,
}

impl Credits {
    pub fn new(messages: u64, bytes: u64) -> Self {
        Credits {
            messages: Cell::new(messages),
            bytes: Cell::new(bytes),
            max_bytes: bytes,
            waiting: RefCell::default(),
            next_number: Cell::new(0),
        }
    }

    /// Waits until one more message of this cost may be outstanding, and takes its place.
    pub fn take(self: &Rc<Self>, cost: u64) -> Take {
        self.take_most(1, cost)
    }

    /// The same for some messages, one after the other, while others wait: see [`Take::again`].
    pub fn take_some(self: &Rc<Self>, cost: u64) -> Take {
        self.take_most(limits::CREDITS_IN_ONE_GO, cost)
    }

    fn take_most(self: &Rc<Self>, most: usize, cost: u64) -> Take {
        // A message above the whole bound takes all of it.
        Take { credits: self.clone(), cost: cost.min(self.max_bytes), number: None, most, taken: 0 }
    }

    /// Of so many messages, with all that they took.
    pub fn give_back(&self, messages: u64, bytes: u64) {
        self.messages.set(self.messages.get() + messages);
        self.bytes.set(self.bytes.get() + bytes.min(self.max_bytes));
        self.wake_first();
    }

    fn wake_first(&self) {
        if let Some((_, waker)) = self.waiting.borrow().front() {
            waker.wake_by_ref();
        }
    }

    fn try_take(&self, cost: u64) -> bool {
        let has_room = self.messages.get() > 0 && self.bytes.get() >= cost;
        if has_room {
            self.messages.set(self.messages.get() - 1);
            self.bytes.set(self.bytes.get() - cost);
        }
        has_room
    }
}

/// A place in the line for credits.
pub struct Take {
    credits: Rc<Credits>,
    cost: u64,
    /// Its number in the line, once it waits.
    number: Option<u64>,
    /// Credits that it may take before it goes to the end of the line.
    most: usize,
    taken: usize,
}

impl Take {
    /// One more, from the same place as far as it may take more.
    pub fn again(&mut self, cost: u64) {
        self.cost = cost.min(self.credits.max_bytes);
    }

    fn leave(&mut self) {
        self.taken = 0;
        let Some(number) = self.number.take() else { return };
        let mut waiting = self.credits.waiting.borrow_mut();
        let place = waiting.iter().position(|&(other, _)| other == number);
        let left = place.and_then(|place| waiting.remove(place));
        drop(waiting);
        if left.is_some() {
            // There may be room for the next one.
            self.credits.wake_first();
        }
    }
}

impl Future for Take {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let credits = &this.credits;
        let first = credits.waiting.borrow().front().map(|&(number, _)| number);
        // One that waits nowhere while nobody else waits is first too.
        if first == this.number && credits.try_take(this.cost) {
            this.taken += 1;
            if this.taken == this.most {
                this.leave();
            }
            return Poll::Ready(());
        }
        let mut waiting = credits.waiting.borrow_mut();
        match this.number {
            Some(number) => {
                if let Some((_, waker)) = waiting.iter_mut().find(|(other, _)| *other == number) {
                    waker.clone_from(cx.waker());
                }
            }
            None => {
                let number = credits.next_number.replace(credits.next_number.get() + 1);
                waiting.push_back((number, cx.waker().clone()));
                this.number = Some(number);
            }
        }
        Poll::Pending
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn who_comes_first_is_served_first() {
        let credits = Rc::new(Credits::new(10, 100));
        assert_eq!(credits.take(60).now_or_never(), Some(()));
        let (mut large, mut small) = (credits.take(50), credits.take(1));
        assert_eq!((&mut large).now_or_never(), None);
        assert_eq!((&mut small).now_or_never(), None, "a small one does not overtake");
        credits.give_back(1, 60);
        assert_eq!((&mut small).now_or_never(), None);
        assert_eq!((&mut large).now_or_never(), Some(()));
        assert_eq!((&mut small).now_or_never(), Some(()));
    }

    #[test]
    fn who_goes_away_makes_room_in_the_line() {
        let credits = Rc::new(Credits::new(1, 100));
        assert_eq!(credits.take(1).now_or_never(), Some(()));
        let (mut first, mut second) = (credits.take(1), credits.take(1));
        assert_eq!((&mut first).now_or_never(), None);
        assert_eq!((&mut second).now_or_never(), None);
        credits.give_back(1, 1);
        drop(first);
        assert_eq!((&mut second).now_or_never(), Some(()));
    }
    #[test]
    fn who_has_much_to_send_takes_some_in_one_go_and_lines_up_again() {
        let credits = Rc::new(Credits::new(1, 100));
        assert_eq!(credits.take(0).now_or_never(), Some(()));
        let (mut much, mut one) = (credits.take_some(0), credits.take(0));
        assert_eq!((&mut much).now_or_never(), None);
        assert_eq!((&mut one).now_or_never(), None);
        for _ in 0..limits::CREDITS_IN_ONE_GO {
            credits.give_back(1, 0);
            assert_eq!((&mut one).now_or_never(), None);
            assert_eq!((&mut much).now_or_never(), Some(()));
            much.again(0);
        }
        assert_eq!((&mut much).now_or_never(), None);
        credits.give_back(1, 0);
        assert_eq!((&mut much).now_or_never(), None);
        assert_eq!((&mut one).now_or_never(), Some(()));
        credits.give_back(1, 0);
        assert_eq!((&mut much).now_or_never(), Some(()));
    }
}
