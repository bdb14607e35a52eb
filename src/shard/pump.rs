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
            if self.turn(&mut frames) || self.spins() {
                runtime::yield_now().await;
            } else {
                self.sleep().await;
            }
        }
    }

    /// Until the doorbell rings, the next deadline comes, or an earlier one is set.
    async fn sleep(&self) {
        let doorbell = self.doorbell();
        let is_idle = self.is_idle();
        let heartbeat = self.time.now() + if is_idle { limits::HEARTBEAT } else { limits::LULL };
        let due = self.next_deadline().map_or(heartbeat, |due| due.min(heartbeat));
        if let Some(seat) = self.seat() {
            seat.sleeps_until(due);
        }
        self.dozes.set(is_idle);
        let mut timer = pin!(runtime::sleep_until(self.time.clock.instant(due)));
        let mut slept = false;
        self.time.go_on();
        poll_fn(|cx| {
            // Whatever wakes the task ends the sleep: the next turn looks at everything.
            let has_work = || self.has_work() || self.next_deadline().is_some_and(|earlier| earlier < due);
            let is_due = timer.as_mut().poll(cx).is_ready();
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
        self.worked_at.set(self.time.now());
        if self.dozes.replace(false) {
            self.doorbell().ring();
        }
    }

    /// Whether nothing was done for a while.
    pub(super) fn is_idle(&self) -> bool {
        self.time.now().since(self.worked_at.get()) >= limits::LULL
    }

    /// Whether something was done a moment ago and the next thing is waited for awake.
    pub(super) fn spins(&self) -> bool {
        let spins = !self.spin.is_zero() && self.time.now().since(self.worked_at.get()) < self.spin;
        self.time.go_on();
        spins
    }
}
