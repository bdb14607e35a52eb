use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

use super::waker::WakerSlot;
use crate::core::DeadLetter;

/// Messages that subscriptions have given up, until they are published anew. Lives on its frontend's executor.
#[derive(Default)]
pub struct DeadLetters {
    queue: RefCell<VecDeque<Box<DeadLetter>>>,
    publisher: WakerSlot,
}

impl DeadLetters {
    pub fn push(&self, letter: Box<DeadLetter>) {
        self.queue.borrow_mut().push_back(letter);
        self.publisher.wake();
    }

    pub async fn next(&self) -> Box<DeadLetter> {
        poll_fn(|cx| {
            if let Some(letter) = self.queue.borrow_mut().pop_front() {
                return Poll::Ready(letter);
            }
            self.publisher.remember(cx);
            Poll::Pending
        })
        .await
    }
}
