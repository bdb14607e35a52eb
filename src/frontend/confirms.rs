use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::Stream;

use super::Failure;
use super::series::Outcome;
use super::waker::WakerSlot;
use crate::limits;

/// What a stream of publishes is told.
#[derive(Debug, Default)]
pub struct Confirm {
    /// Requests settled since the start of the stream.
    pub confirmed: u64,
    /// Those that failed since the last confirm, by their index in the stream.
    pub failures: Vec<(u64, Failure)>,
    /// How many of those settled since the last confirm reached no subscription.
    pub unheard: u64,
}

/// What a stream of publishes has yet to tell.
///
/// Two tasks meet here, both on the executor of the connection: the driver publishes, the response side takes confirms.
/// They are cumulative, so whoever reads seldom gets fewer of them, and only failures take memory.
#[derive(Default)]
pub struct Confirms {
    next: RefCell<Confirm>,
    /// There is something to tell in it.
    is_due: Cell<bool>,
    end: RefCell<Option<Result<(), Failure>>>,
    /// The response side is gone.
    is_gone: Cell<bool>,
    reader: WakerSlot,
    driver: WakerSlot,
}

impl Confirms {
    /// The next request in order is settled.
    pub fn settled(&self, index: u64, outcome: Outcome) {
        let mut next = self.next.borrow_mut();
        next.confirmed = index + 1;
        match outcome {
            Ok(subscriptions) => next.unheard += u64::from(subscriptions == 0),
            Err(failure) => next.failures.push((index, failure)),
        }
        drop(next);
        self.is_due.set(true);
    }

    /// As many failures as one confirm may hold have not been read.
    pub fn is_full(&self) -> bool {
        self.next.borrow().failures.len() >= limits::CONFIRM_FAILURES && !self.is_gone()
    }

    /// Nothing more is settled; where all went well a last confirm says so.
    pub fn end(&self, result: Result<(), Failure>) {
        if result.is_ok() {
            self.is_due.set(true);
        }
        self.end.borrow_mut().get_or_insert(result);
        self.reader.wake();
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Wakes the response side, if there is something to tell.
    pub fn tell(&self) {
        if self.is_due.get() {
            self.reader.wake();
        }
    }

    /// Wakes this task from now on when there is room for failures again, or the response side is gone.
    pub fn remember_driver(&self, cx: &Context<'_>) {
        self.driver.remember(cx);
    }

    fn take(&self) -> Option<Confirm> {
        if !self.is_due.take() {
            return None;
        }
        let was_full = self.is_full();
        let confirmed = self.next.borrow().confirmed;
        let confirm = self.next.replace(Confirm { confirmed, ..Confirm::default() });
        if was_full {
            self.driver.wake();
        }
        Some(confirm)
    }
}

/// The response side of a stream of publishes. Dropping it ends the reading.
pub struct ConfirmEvents {
    confirms: Rc<Confirms>,
}

impl ConfirmEvents {
    pub fn new(confirms: Rc<Confirms>) -> Self {
        ConfirmEvents { confirms }
    }

    /// Whether the next is a confirm, and can be taken now.
    pub fn has_next(&self) -> bool {
        self.confirms.is_due.get()
    }
}

impl Stream for ConfirmEvents {
    type Item = Result<Confirm, Failure>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(confirm) = self.confirms.take() {
            return Poll::Ready(Some(Ok(confirm)));
        }
        match &mut *self.confirms.end.borrow_mut() {
            Some(end) => Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err)),
            None => {
                self.confirms.reader.remember(cx);
                Poll::Pending
            }
        }
    }
}

impl Drop for ConfirmEvents {
    fn drop(&mut self) {
        self.confirms.is_gone.set(true);
        self.confirms.driver.wake();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn stream() -> (Rc<Confirms>, ConfirmEvents) {
        let confirms = Rc::<Confirms>::default();
        (confirms.clone(), ConfirmEvents::new(confirms))
    }

    fn next(events: &mut ConfirmEvents) -> Option<Option<Result<Confirm, Failure>>> {
        events.next().now_or_never()
    }

    #[test]
    fn what_nobody_reads_is_told_in_one() {
        let (confirms, mut events) = stream();
        assert!(next(&mut events).is_none());
        for index in 0..100_000 {
            confirms.settled(index, Ok(u32::from(index % 2 == 0)));
        }
        confirms.settled(100_000, Err(Failure::ShuttingDown));
        let confirm = next(&mut events).flatten().and_then(Result::ok).unwrap_or_default();
        assert_eq!((confirm.confirmed, confirm.unheard), (100_001, 50_000));
        assert_eq!(confirm.failures, [(100_000, Failure::ShuttingDown)]);
        assert!(next(&mut events).is_none(), "once");
        confirms.end(Ok(()));
        let last = next(&mut events).flatten().and_then(Result::ok).unwrap_or_default();
        assert_eq!((last.confirmed, last.unheard, last.failures), (100_001, 0, vec![]));
        assert_eq!(next(&mut events).map(|end| end.is_none()), Some(true));
    }

    #[test]
    fn failures_that_nobody_reads_fill_it() {
        let (confirms, mut events) = stream();
        for index in 0..limits::CONFIRM_FAILURES as u64 {
            assert!(!confirms.is_full());
            confirms.settled(index, Err(Failure::ShuttingDown));
        }
        assert!(confirms.is_full());
        assert!(next(&mut events).is_some());
        assert!(!confirms.is_full());
    }

    #[test]
    fn an_error_comes_after_what_was_settled() {
        let (confirms, mut events) = stream();
        confirms.settled(0, Ok(1));
        confirms.end(Err(Failure::ShuttingDown));
        confirms.end(Ok(()));
        assert_eq!(next(&mut events).flatten().and_then(Result::ok).map(|last| last.confirmed), Some(1));
        let end = next(&mut events).flatten().and_then(Result::err);
        assert_eq!(end, Some(Failure::ShuttingDown));
    }
}
