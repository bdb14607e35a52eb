use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll};

use super::Failure;
use super::waker::WakerSlot;

/// Publishes that keep their order: the messages of one stream or batch. Lives on its frontend's executor.
///
/// What goes to the shards in one pass stays in order by itself, since every shard takes inputs in the order in which
/// they were sent. A publish in two passes is overtaken by what is sent between them: until it is settled nothing
/// more may start.
#[derive(Default)]
pub struct Series {
    state: RefCell<State>,
    waiter: WakerSlot,
}

#[derive(Default)]
struct State {
    /// How each went, in order, from the first that nobody has taken yet; `None`: not settled. Failures are boxed, since
    /// there is one of these a message.
    outcomes: VecDeque<Option<Result<u32, Box<Failure>>>>,
    /// The index in the series of the first of them.
    first: u64,
    /// The index of the publish that is under way in two passes.
    two_pass: Option<u64>,
}

/// How many subscriptions took a message, or why none did.
pub type Outcome = Result<u32, Failure>;

impl Series {
    /// The next message fails before it is published.
    pub fn failed(&self, failure: Failure) {
        self.state.borrow_mut().outcomes.push_back(Some(Err(Box::new(failure))));
    }

    /// Whether the next message may start.
    pub fn may_start(&self) -> bool {
        self.state.borrow().two_pass.is_none()
    }

    /// The index in the series of the next message.
    pub fn next_index(&self) -> u64 {
        let state = self.state.borrow();
        state.first + state.outcomes.len() as u64
    }

    /// The next message starts.
    pub fn started(&self, is_two_pass: bool) {
        debug_assert!(self.may_start(), "nothing overtakes a publish in two passes");
        let index = self.next_index();
        let mut state = self.state.borrow_mut();
        state.outcomes.push_back(None);
        state.two_pass = is_two_pass.then_some(index);
    }

    /// A message that was started is settled.
    pub(super) fn settle(&self, index: u64, outcome: Outcome) {
        let mut state = self.state.borrow_mut();
        if state.two_pass == Some(index) {
            state.two_pass = None;
        }
        let place = index.checked_sub(state.first).and_then(|place| usize::try_from(place).ok());
        if let Some(slot) = place.and_then(|place| state.outcomes.get_mut(place)) {
            debug_assert!(slot.is_none(), "a message is settled once");
            *slot = Some(outcome.map_err(Box::new));
        }
        drop(state);
        self.waiter.wake();
    }

    /// The outcome of the next message in order, with its index, if it is settled.
    pub fn take_settled(&self) -> Option<(u64, Outcome)> {
        let mut state = self.state.borrow_mut();
        let outcome = state.outcomes.front_mut()?.take()?;
        state.outcomes.pop_front();
        state.first += 1;
        Some((state.first - 1, outcome.map_err(|failure| *failure)))
    }

    /// Whether every message that was started is settled and its outcome taken.
    pub fn is_empty(&self) -> bool {
        self.state.borrow().outcomes.is_empty()
    }

    /// Wakes this task from now on when a message is settled.
    pub fn remember(&self, cx: &Context<'_>) {
        self.waiter.remember(cx);
    }

    /// Until the next message may start.
    pub async fn ready(&self) {
        self.until(|| self.may_start()).await;
    }

    /// Until every message that was started is settled.
    pub async fn settled(&self) {
        self.until(|| self.state.borrow().outcomes.iter().all(Option::is_some)).await;
    }

    async fn until(&self, done: impl Fn() -> bool) {
        std::future::poll_fn(|cx| {
            self.remember(cx);
            if done() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
