use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use super::hub::Frontend;
use super::series::Outcome;
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
    /// Publishes dead letters as they come, as long as the process lives: one after the other, so that their order is
    /// kept and none is refused for the room that another has only reserved.
    pub async fn publish_dead_letters(self: Rc<Self>) {
        loop {
            let letter = self.dead_letters.next().await;
            match self.publish_dead_letter(&letter).await {
                Ok(0) => self.counters.count(FrontendCounter::DeadLettersUnheard),
                Ok(_) => {}
                Err(failure) => {
                    tracing::debug!(%failure, topic = %letter.topic, "a dead letter is dropped");
                    self.counters.count(FrontendCounter::DeadLettersRefused);
                }
            }
        }
    }

    async fn publish_dead_letter(&self, letter: &DeadLetter) -> Outcome {
        let mut message = convert::dead_letter(letter, self.next_number(), &self.bounds)?;
        // No limit is asked: it takes the place of the message that was given up.
        self.node.shared.memory.hold(&mut message);
        let mut publish = pin!(self.publish(Arc::new(message)));
        poll_fn(|cx| {
            let published = publish.as_mut().poll(cx);
            // This task has its turns beside those of connections: what it sends goes out with them.
            self.node.flush();
            published
        })
        .await
    }
}
