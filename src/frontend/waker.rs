use std::cell::RefCell;
use std::task::{Context, Waker};

/// The task that waits for something, if one does.
#[derive(Debug, Default)]
pub struct WakerSlot(RefCell<Option<Waker>>);

impl WakerSlot {
    /// Wakes this task from now on.
    pub fn remember(&self, cx: &Context<'_>) {
        let mut slot = self.0.borrow_mut();
        if slot.as_ref().is_none_or(|old| !old.will_wake(cx.waker())) {
            *slot = Some(cx.waker().clone());
        }
    }

    /// Wakes nobody from now on.
    pub fn forget(&self) {
        self.0.take();
    }

    pub fn wake(&self) {
        if let Some(waker) = &*self.0.borrow() {
            waker.wake_by_ref();
        }
    }
}
