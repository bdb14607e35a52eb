use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll};

use smallvec::SmallVec;

use super::Failure;
use super::waker::WakerSlot;
use crate::core::Published;

/// Publishes that keep their order: the messages of one stream or batch. Lives on its frontend's executor.
///
/// Messages start in runs, each of which is settled as a whole.
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
    /// In order, from the first of which not all outcomes were taken; `None`: not settled.
    parts: VecDeque<Option<Part>>,
    /// The number of the first of them.
    first: u64,
    /// Messages whose outcomes were taken.
    taken: u64,
    /// The number of the part that is under way in two passes.
    two_pass: Option<u64>,
}

/// How a part of a series went.
enum Part {
    /// Messages that were started together, those whose outcomes were taken left out.
    Run(smallvec::IntoIter<[Published; 1]>),
    /// One that failed before it was published.
    Failed(Box<Failure>),
}

/// How many subscriptions took a message, or why none did.
pub type Outcome = Result<u32, Failure>;

impl Series {
    /// The next message fails before it is published.
    pub fn failed(&self, failure: Failure) {
        self.state.borrow_mut().parts.push_back(Some(Part::Failed(Box::new(failure))));
    }

    /// Whether the next run may start.
    pub fn may_start(&self) -> bool {
        self.state.borrow().two_pass.is_none()
    }

    /// The next run starts. Returns its number.
    pub fn started(&self, is_two_pass: bool) -> u64 {
        debug_assert!(self.may_start(), "nothing overtakes a publish in two passes");
        let mut state = self.state.borrow_mut();
        let number = state.first + state.parts.len() as u64;
        state.parts.push_back(None);
        state.two_pass = is_two_pass.then_some(number);
        number
    }

    /// A run that was started is settled.
    pub(super) fn settle(&self, number: u64, run: SmallVec<[Published; 1]>) {
        let mut state = self.state.borrow_mut();
        if state.two_pass == Some(number) {
            state.two_pass = None;
        }
        let place = number.checked_sub(state.first).and_then(|place| usize::try_from(place).ok());
        if let Some(slot) = place.and_then(|place| state.parts.get_mut(place)) {
            debug_assert!(slot.is_none(), "a run is settled once");
            *slot = Some(Part::Run(run.into_iter()));
        }
        drop(state);
        self.waiter.wake();
    }

    /// The outcome of the next message in order, with its index in the series, if it is settled.
    pub fn take_settled(&self) -> Option<(u64, Outcome)> {
        let mut state = self.state.borrow_mut();
        loop {
            let part = state.parts.front_mut()?.as_mut()?;
            let outcome = match part {
                Part::Run(run) => run.next().map(|published| published.map_err(|refusal| (*refusal).into())),
                Part::Failed(_) => None,
            };
            let outcome = match outcome {
                Some(outcome) => outcome,
                None => {
                    let part = state.parts.pop_front();
                    state.first += 1;
                    let Some(Some(Part::Failed(failure))) = part else { continue };
                    Err(*failure)
                }
            };
            state.taken += 1;
            return Some((state.taken - 1, outcome));
        }
    }

    /// Whether every message that was started is settled and its outcome taken.
    pub fn is_empty(&self) -> bool {
        self.state.borrow().parts.is_empty()
    }

    /// Wakes this task from now on when a message is settled.
    pub fn remember(&self, cx: &Context<'_>) {
        self.waiter.remember(cx);
    }

    /// Until every message that was started is settled.
    pub async fn settled(&self) {
        std::future::poll_fn(|cx| {
            self.remember(cx);
            let is_settled = self.state.borrow().parts.iter().all(Option::is_some);
            if is_settled { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
