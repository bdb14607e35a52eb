use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};

use crate::frontend::credits::Take;
use crate::frontend::hub::{Frontend, PhaseWatch};
use crate::frontend::net::{Hold, Turn};
use crate::frontend::series::Series;
use crate::frontend::{Failure, FrontendCounter};
use crate::limits;
use crate::model::Message;
use crate::shard::Phase;
use crate::shard::runtime::{self, Sleep};

/// What a stream of publishes is told.
#[derive(Debug, Default)]
pub struct Confirm {
    /// Requests settled since the start of the stream.
    pub confirmed: u64,
    /// Those that failed since the last confirm, by their index in the stream.
    pub failures: Vec<(u64, Failure)>,
    /// How many of those settled since the last confirm reached no subscription.
    pub unheard: u64,
}

/// A stream of publishes: reads as far as credits go, and confirms what is settled whenever nothing more can be read.
///
/// ```text
///   reading ──message──▶ waiting for credit, and for a publish in two passes ──start──▶ reading
///      └──end, an error, or closing──▶ settling what was started ──▶ last confirm ──▶ over
/// ```
/// Who stops reading its confirms is not read from any more: the windows of HTTP/2 hold it back. Who sends faster than
/// the shards take is held back by its connection, from which nothing is read meanwhile.
pub struct PublishStream<R> {
    frontend: Rc<Frontend>,
    requests: R,
    series: Rc<Series>,
    /// The next message, and its place in the line for a credit.
    next: Option<(Arc<Message>, Take)>,
    phase: PhaseWatch,
    /// How the stream ends, once it reads no more.
    ending: Option<Result<(), Failure>>,
    /// Requests settled, as far as a confirm has said so.
    confirmed: u64,
    /// A confirm was sent after the end of the requests.
    is_told: bool,
    /// Until others have had their turn.
    rest: Option<Pin<Box<Sleep>>>,
    turn: Rc<Turn>,
    /// While there may be requests that were not read for another reason than that a confirm is due.
    hold: Option<Hold>,
}

/// A request as it was read: the outer error ends the stream, the inner one is that of the message alone.
pub type Request = Result<Result<Message, Failure>, Failure>;

pub fn publish_stream<R: Stream<Item = Request> + Unpin>(
    frontend: Rc<Frontend>,
    turn: Rc<Turn>,
    requests: R,
) -> Result<PublishStream<R>, Failure> {
    frontend.admit()?;
    Ok(PublishStream {
        phase: PhaseWatch::new(&frontend),
        frontend,
        requests,
        series: Rc::default(),
        next: None,
        ending: None,
        confirmed: 0,
        is_told: false,
        rest: None,
        turn,
        hold: None,
    })
}

impl<R: Stream<Item = Request> + Unpin> PublishStream<R> {
    /// Starts what can be started now, a bounded number of messages.
    fn advance(&mut self, cx: &mut Context<'_>) {
        if let Some(rest) = &mut self.rest {
            if rest.as_mut().poll(cx).is_pending() {
                return;
            }
            self.rest = None;
        }
        for _ in 0..limits::PUBLISH_STREAM_TURN {
            if self.start_next(cx).is_pending() || self.read(cx).is_pending() {
                return;
            }
        }
        let mut rest = Box::pin(runtime::yield_now());
        if rest.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        self.rest = Some(rest);
    }

    /// Starts the message that was read, if there is one; pending where it must wait.
    fn start_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((message, mut credit)) = self.next.take() else { return Poll::Ready(()) };
        if self.series.may_start() && Pin::new(&mut credit).poll(cx).is_ready() {
            self.series.start(&self.frontend, message);
            return Poll::Ready(());
        }
        self.next = Some((message, credit));
        Poll::Pending
    }

    /// Reads one request; pending where there is none now or will be none.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ending.is_some() {
            return Poll::Pending;
        }
        let request = match self.requests.poll_next_unpin(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => {
                self.ending = Some(Ok(()));
                return Poll::Pending;
            }
            Poll::Ready(Some(request)) => request,
        };
        match request {
            Err(failure) => self.ending = Some(Err(failure)),
            Ok(Err(failure)) => self.series.failed(&self.frontend, failure),
            Ok(Ok(message)) => {
                let credit = self.frontend.credits.take(message.cost());
                self.next = Some((Arc::new(message), credit));
            }
        }
        Poll::Ready(())
    }

    /// What has been settled since the last confirm.
    fn settled(&mut self) -> Option<Confirm> {
        let mut confirm = Confirm::default();
        while confirm.failures.len() < limits::CONFIRM_FAILURES
            && let Some((index, outcome)) = self.series.take_settled()
        {
            confirm.confirmed = index + 1;
            match outcome {
                Ok(subscriptions) => confirm.unheard += u64::from(subscriptions == 0),
                Err(failure) => confirm.failures.push((index, failure)),
            }
        }
        // After the end of the requests comes one confirm at least, also where there is nothing new to say.
        let is_last = self.is_settled() && matches!(self.ending, Some(Ok(()))) && !self.is_told;
        if confirm.confirmed == 0 && !is_last {
            return None;
        }
        self.is_told = is_last;
        self.confirmed = self.confirmed.max(confirm.confirmed);
        Some(Confirm { confirmed: self.confirmed, ..confirm })
    }

    fn is_settled(&self) -> bool {
        self.series.is_empty() && self.next.is_none()
    }
}

impl<R: Stream<Item = Request> + Unpin> PublishStream<R> {
    fn poll_confirm(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Confirm, Failure>>> {
        self.series.remember(cx);
        self.phase.remember(cx);
        if self.frontend.phase() == Phase::Closing {
            self.ending.get_or_insert(Err(Failure::ShuttingDown));
        }
        self.advance(cx);
        if let Some(confirm) = self.settled() {
            return Poll::Ready(Some(Ok(confirm)));
        }
        let is_settled = self.is_settled();
        match &mut self.ending {
            Some(ending) if is_settled => {
                let failure = std::mem::replace(ending, Ok(())).err();
                if failure.is_some() {
                    self.frontend.counters.count(FrontendCounter::CallsFailed);
                }
                Poll::Ready(failure.map(Err))
            }
            _ => Poll::Pending,
        }
    }
}

impl<R: Stream<Item = Request> + Unpin> Stream for PublishStream<R> {
    type Item = Result<Confirm, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.poll_confirm(cx);
        // With a confirm in hand it may not be asked again before the client reads: nothing is held then.
        let is_behind = polled.is_pending() && (self.next.is_some() || self.rest.is_some());
        let held = self.hold.take();
        self.hold = is_behind.then(|| held.unwrap_or_else(|| Hold::new(&self.turn)));
        polled
    }
}
