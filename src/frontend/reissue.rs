use std::rc::Rc;

use futures_channel::oneshot;
use smallvec::smallvec;

use super::hub::Frontend;
use super::publishing::Waiter;
use super::{FrontendCounter, convert};
use crate::model::Message;

impl Frontend {
    /// Publishes dead letters in the order in which they come, as long as the process lives.
    pub async fn publish_dead_letters(self: Rc<Self>) {
        loop {
            let letter = self.dead_letters.next().await;
            match convert::dead_letter(&letter, self.next_number(), &self.bounds, self.node.time.wall()) {
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
        self.count_in(&mut message);
        self.credits.take(message.cost()).await;
        let (settled, until_settled) = oneshot::channel();
        let way = self.way();
        let is_two_pass = way.is_two_pass();
        self.start_publish(way, smallvec![message], Waiter::DeadLetter(settled));
        self.node.flush();
        if is_two_pass {
            // The next one would overtake it, and might meet the room that is kept for it and be refused. What is
            // sent is nothing, but that it is over.
            let _ = until_settled.await;
        }
    }
}
