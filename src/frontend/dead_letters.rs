use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use super::hub::Frontend;
use super::publishing::{Publishing, Waiter};
use super::waker::WakerSlot;
use super::{FrontendCounter, convert};
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

    async fn next(&self) -> Box<DeadLetter> {
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

impl Frontend {
    /// Publishes dead letters as they come, with credits like everybody's, as long as the process lives.
    pub async fn publish_dead_letters(self: Rc<Self>) {
        loop {
            let letter = self.dead_letters.next().await;
            match convert::dead_letter(&letter, self.next_number(), &self.bounds) {
                Ok(mut message) => {
                    // No limit is asked: it takes the place of the message that was given up.
                    self.node.shared.memory.hold(&mut message);
                    let message = Arc::new(message);
                    self.credits.take(message.cost()).await;
                    self.start_publish(Publishing::new(&self.node.shared, message, Waiter::Nobody));
                    self.node.flush();
                }
                Err(failure) => {
                    tracing::debug!(%failure, topic = %letter.topic, "a dead letter cannot be published");
                    self.counters.count(FrontendCounter::DeadLettersRefused);
                }
            }
        }
    }
}
