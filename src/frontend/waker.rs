use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};

/// The task that waits for something, if one does.
#[derive(Debug, Default)]
pub struct WakerSlot {
    waker: RefCell<Option<Waker>>,
    /// It was woken and has not asked to be woken since: it will look at everything anyway.
    is_awake: Cell<bool>,
}

impl WakerSlot {
    /// Wakes this task from now on. To be called by each of its turns, before it looks or before it waits.
    pub fn remember(&self, cx: &Context<'_>) {
        self.is_awake.set(false);
        let mut waker = self.waker.borrow_mut();
        if waker.as_ref().is_none_or(|old| !old.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Wakes nobody from now on.
    pub fn forget(&self) {
        self.waker.take();
    }

    /// Wakes the task, once a turn of it.
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow()
            && !self.is_awake.replace(true)
        {
            waker.wake_by_ref();
        }
    }
}
