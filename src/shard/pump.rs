use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::{Node, runtime};
use crate::limits;

impl Node {
    /// The task that serves this executor's rings and deadlines, as long as the process lives.
    pub async fn pump(self: Rc<Self>) {
        let mut frames = Vec::new();
        let doorbell = self.doorbell();
        loop {
            doorbell.unpark();
            if self.turn(&mut frames) {
                runtime::yield_now().await;
            } else {
                self.sleep().await;
            }
        }
    }

    /// Until the doorbell rings, the next deadline comes, or an earlier one is set.
    async fn sleep(&self) {
        let doorbell = self.doorbell();
        let heartbeat = self.clock.now() + limits::HEARTBEAT;
        let due = self.next_deadline().map_or(heartbeat, |due| due.min(heartbeat));
        self.deadline.set(Some(due));
        let mut timer = pin!(runtime::sleep_until(self.clock.instant(due)));
        let mut slept = false;
        poll_fn(|cx| {
            let has_waker = self.pump.borrow().as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            if !has_waker {
                *self.pump.borrow_mut() = Some(cx.waker().clone());
            }
            let is_due = timer.as_mut().poll(cx).is_ready();
            // Whatever wakes the task ends the sleep: the next turn looks at everything.
            if slept || is_due || !doorbell.park(cx.waker(), || self.has_work()) {
                return Poll::Ready(());
            }
            slept = true;
            Poll::Pending
        })
        .await;
    }
}
