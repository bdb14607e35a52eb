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
    ///
    /// The runtime may go to sleep with tasks that are ready to run, where a completion comes in the few instructions
    /// between its look at sockets and the first task (glommio 0.9.0, `run_task_queues`). Whatever timer fires next
    /// makes it run them, so while there is work one is always near; and since the pump's own wake can be lost that
    /// way too, a second one stands behind it.
    async fn sleep(&self) {
        let doorbell = self.doorbell();
        let is_busy = self.is_busy.replace(false);
        let heartbeat = if is_busy { limits::BUSY_HEARTBEAT } else { limits::HEARTBEAT };
        let heartbeat = self.time.clock.now() + heartbeat;
        let due = self.next_deadline().map_or(heartbeat, |due| due.min(heartbeat));
        if let Some(seat) = self.seat() {
            seat.sleeps_until(due);
        }
        self.dozes.set(!is_busy);
        let mut timer = pin!(runtime::sleep_until(self.time.clock.instant(due)));
        let mut backstop = pin!(runtime::sleep_until(self.time.clock.instant(due + limits::BUSY_HEARTBEAT)));
        let mut slept = false;
        poll_fn(|cx| {
            let is_due = timer.as_mut().poll(cx).is_ready() || backstop.as_mut().poll(cx).is_ready();
            // Whatever wakes the task ends the sleep: the next turn looks at everything.
            let has_work = || self.has_work() || self.next_deadline().is_some_and(|earlier| earlier < due);
            if slept || is_due || !doorbell.park(cx.waker(), has_work) {
                return Poll::Ready(());
            }
            slept = true;
            Poll::Pending
        })
        .await;
        self.dozes.set(false);
        if let Some(seat) = self.seat() {
            seat.woke_up();
        }
    }

    /// A task of this executor has done something: from now on the pump looks around often.
    pub(super) fn note_work(&self) {
        if !self.is_busy.replace(true) && self.dozes.replace(false) {
            self.doorbell().ring();
        }
    }
}
