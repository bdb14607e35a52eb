use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use futures_channel::oneshot;

use super::hub::Frontend;
use super::series::Outcome;
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
<<<<<<< HEAD
    /// Publishes dead letters as they come, as long as the process lives: one after the other, so that their order is
    /// kept and none is refused for the room that another has only reserved.
    pub async fn publish_dead_letters(self: Rc<Self>) {
        loop {
            let letter = self.dead_letters.next().await;
            match self.publish_dead_letter(&letter).await {
                Ok(0) => self.counters.count(FrontendCounter::DeadLettersUnheard),
                Ok(_) => {}
=======
    /// Publishes dead letters in the order in which they come, as long as the process lives.
    pub async fn publish_dead_letters(self: Rc<Self>) {
        loop {
            let letter = self.dead_letters.next().await;
            match convert::dead_letter(&letter, self.next_number(), &self.bounds) {
                Ok(message) => self.publish_dead_letter(message).await,
>>>>>>> sem
                Err(failure) => {
                    tracing::debug!(%failure, topic = %letter.topic, "a dead letter is dropped");
                    self.counters.count(FrontendCounter::DeadLettersRefused);
                }
            }
        }
    }

<<<<<<< HEAD
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
=======
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
>>>>>>> sem
    }
}
