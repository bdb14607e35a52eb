use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use futures_channel::oneshot;

use super::hub::Frontend;
use super::publishing::{Publishing, Waiter};
use super::waker::WakerSlot;
use super::{FrontendCounter, convert};
use crate::core::DeadLetter;
use crate::model::Message;

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
    /// Publishes dead letters in the order in which they come, as long as the process lives.
    pub async fn publish_dead_letters(self: Rc<Self>) {
        loop {
            let letter = self.dead_letters.next().await;
            match convert::dead_letter(&letter, self.next_number(), &self.bounds) {
                Ok(message) => self.publish_dead_letter(message).await,
                Err(failure) => {
                    tracing::debug!(%failure, topic = %letter.topic, "a dead letter cannot be published");
                    self.counters.count(FrontendCounter::DeadLettersRefused);
                }
            }
        }
    }

    /// With a credit, like everybody. No limit of memory is asked: it takes the place of the message that was given up.
    async fn publish_dead_letter(&self, mut message: Message) {
        self.node.shared.memory.hold(&mut message);
        let message = Arc::new(message);
        self.credits.take(message.cost()).await;
        let (settled, until_settled) = oneshot::channel();
        let publishing = Publishing::new(&self.node.shared, message, Waiter::DeadLetter(settled));
        let is_two_pass = publishing.is_two_pass();
        self.start_publish(publishing);
        self.node.flush();
        if is_two_pass {
            // The next one would overtake it, and might meet the room that is kept for it and be refused. What is
            // sent is nothing, but that it is over.
            let _ = until_settled.await;
        }
    }
}
