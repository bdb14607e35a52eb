use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::credits::Take;
use super::hub::Frontend;
use super::series::Series;
use crate::core::Run;
use crate::limits;
use crate::model::Message;

/// Messages of a series that were read and are to start next, together where they may. They have no credits yet, so that
/// nobody waits for what they keep.
#[derive(Default)]
pub struct Unstarted {
    messages: Run,
    bytes: u64,
    /// Their place in the line for credits.
    credit: Option<Take>,
}

impl Unstarted {
    pub fn push(&mut self, message: Message) {
        self.bytes += message.cost();
        self.messages.push(message);
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// More would make the work of one input long.
    pub fn is_full(&self) -> bool {
        self.messages.len() >= limits::RUN_MESSAGES || self.bytes >= limits::RUN_BYTES
    }

    /// Starts what may start now. Pending as long as some wait for credits, or for a publish in two passes, of whose end
    /// the series tells.
    pub fn poll_start(&mut self, frontend: &Frontend, series: &Rc<Series>, cx: &mut Context<'_>) -> Poll<()> {
        while !self.messages.is_empty() {
            if !series.may_start() {
                // Others need not wait behind one that does not wait for a credit.
                self.credit = None;
                return Poll::Pending;
            }
            let way = frontend.way();
            let most = if way.is_two_pass() { 1 } else { self.messages.len() };
            let ready = self.take_credits(frontend, most, cx);
            if ready > 0 {
                frontend.start_in(series, way, self.take(ready));
            }
            if ready < most {
                return Poll::Pending;
            }
        }
        self.credit = None;
        Poll::Ready(())
    }

    /// Takes credits for the first messages, for so many at most. Returns for how many.
    fn take_credits(&mut self, frontend: &Frontend, most: usize, cx: &mut Context<'_>) -> usize {
        let credit = self.credit.get_or_insert_with(|| frontend.credits.take_some(0));
        let has_credit = |message: &&Message| {
            credit.again(message.cost());
            Pin::new(&mut *credit).poll(cx).is_ready()
        };
        self.messages[..most].iter().take_while(has_credit).count()
    }

    /// The first messages.
    fn take(&mut self, count: usize) -> Run {
        let run: Run = match count == self.messages.len() {
            true => std::mem::take(&mut self.messages),
            false => self.messages.drain(..count).collect(),
        };
        self.bytes = self.messages.iter().map(Message::cost).sum();
        run
    }
}
