use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// What one frontend may have outstanding at the shards. Lives on its executor.
///
/// The bound keeps rings and memory within limits, and it is what "near full" is measured against.
#[derive(Debug)]
pub struct Credits {
    messages: Cell<u64>,
    bytes: Cell<u64>,
    max_bytes: u64,
    waiting: RefCell<VecDeque<Waker>>,
}

impl Credits {
    pub fn new(messages: u64, bytes: u64) -> Self {
        Credits {
            messages: Cell::new(messages),
            bytes: Cell::new(bytes),
            max_bytes: bytes,
            waiting: RefCell::default(),
        }
    }

    /// Waits until one more message of this cost may be outstanding, and takes its place.
    pub async fn take(&self, cost: u64) {
        // A message above the whole bound takes all of it.
        let cost = cost.min(self.max_bytes);
        poll_fn(|cx| {
            if self.messages.get() > 0 && self.bytes.get() >= cost {
                self.messages.set(self.messages.get() - 1);
                self.bytes.set(self.bytes.get() - cost);
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push_back(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    pub fn give_back(&self, cost: u64) {
        self.messages.set(self.messages.get() + 1);
        self.bytes.set(self.bytes.get() + cost.min(self.max_bytes));
        // All of them: those who still find no room wait anew.
        for waker in self.waiting.take() {
            waker.wake();
        }
    }
}
