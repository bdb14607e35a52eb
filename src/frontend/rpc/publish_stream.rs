use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};

use crate::frontend::Failure;
use crate::frontend::confirms::{ConfirmEvents, Confirms};
use crate::frontend::credits::Take;
use crate::frontend::hub::{Frontend, PhaseWatch};
use crate::frontend::net::{Hold, Turn};
use crate::frontend::series::Series;
use crate::limits;
use crate::model::Message;
use crate::shard::Phase;
use crate::shard::runtime::{self, Sleep};

/// A request as it was read: the outer error ends the stream, the inner one is that of the message alone.
pub type Request = Result<Result<Message, Failure>, Failure>;

/// Begins a stream of publishes: its confirms, and the driver that publishes, to be run to its end.
pub fn publish_stream(
    frontend: &Rc<Frontend>,
    turn: Rc<Turn>,
    requests: impl Stream<Item = Request> + Unpin + 'static,
) -> Result<(ConfirmEvents, LocalBoxFuture<'static, ()>), Failure> {
    frontend.admit()?;
    let confirms = Rc::<Confirms>::default();
    let driver = Driver {
        phase: PhaseWatch::new(frontend),
        frontend: frontend.clone(),
        requests,
        series: Rc::default(),
        confirms: confirms.clone(),
        next: None,
        credit: None,
        ending: None,
        rest: None,
        turn,
        hold: None,
    };
    Ok((ConfirmEvents::new(confirms), driver.boxed_local()))
}

/// Publishes as fast as credits allow, and has confirmed what is settled whenever nothing more can be read.
///
/// ```text
///   reading ──message──▶ waiting for credit, and for a publish in two passes ──start──▶ reading
///      └──end, an error, nobody there, or closing──▶ settling what was started ──▶ last confirm ──▶ over
/// ```
/// It is a task of its own, since the response side is not asked while the client does not read: what waits for a
/// credit must go on, or all who come after it would wait too.
struct Driver<R> {
    frontend: Rc<Frontend>,
    requests: R,
    series: Rc<Series>,
    confirms: Rc<Confirms>,
    /// The next message.
    next: Option<Arc<Message>>,
    /// Its place in the line for credits.
    credit: Option<Take>,
    phase: PhaseWatch,
    /// How the stream ends, once it reads no more.
    ending: Option<Result<(), Failure>>,
    /// Until others have had their turn.
    rest: Option<Pin<Box<Sleep>>>,
    turn: Rc<Turn>,
    /// While it cannot keep up with what comes.
    hold: Option<Hold>,
}

impl<R: Stream<Item = Request> + Unpin> Driver<R> {
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
        let Some(message) = self.next.take() else { return Poll::Ready(()) };
        if self.series.may_start() && self.poll_credit(message.cost(), cx).is_ready() {
            self.frontend.start_in(&self.series, message);
            return Poll::Ready(());
        }
        self.next = Some(message);
        Poll::Pending
    }

    fn poll_credit(&mut self, cost: u64, cx: &mut Context<'_>) -> Poll<()> {
        let credit = self.credit.get_or_insert_with(|| self.frontend.credits.take_some(cost));
        credit.again(cost);
        Pin::new(credit).poll(cx)
    }

    /// Reads one request; pending where there is none now, will be none, or its failure could not be told.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ending.is_some() || self.confirms.is_full() {
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
            Ok(Err(failure)) => self.frontend.fail_in(&self.series, failure),
            Ok(Ok(message)) => self.next = Some(Arc::new(message)),
        }
        Poll::Ready(())
    }

    /// Has confirmed what is settled.
    fn confirm(&self) {
        while !self.confirms.is_full()
            && let Some((index, outcome)) = self.series.take_settled()
        {
            self.confirms.settled(index, outcome);
        }
        self.confirms.tell();
    }
}

impl<R: Stream<Item = Request> + Unpin> Future for Driver<R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.series.remember(cx);
        this.phase.remember(cx);
        this.confirms.remember_driver(cx);
        if this.confirms.is_gone() {
            this.ending.get_or_insert(Ok(()));
        } else if this.frontend.phase() == Phase::Closing {
            this.ending.get_or_insert(Err(Failure::ShuttingDown));
        }
        this.advance(cx);
        this.confirm();
        if this.next.is_none() || !this.series.may_start() {
            // Others need not wait behind one that does not wait for a credit.
            this.credit = None;
        }
        if this.next.is_some() || this.rest.is_some() {
            this.hold.get_or_insert_with(|| Hold::new(&this.turn));
            return Poll::Pending;
        }
        this.hold = None;
        match this.ending.take_if(|_| this.series.is_empty()) {
            Some(ending) => {
                this.confirms.end(ending);
                Poll::Ready(())
            }
            None => Poll::Pending,
        }
    }
}

impl<R> Drop for Driver<R> {
    /// However the driver ends, also by a panic, the stream does.
    fn drop(&mut self) {
        self.confirms.end(Err(Failure::Internal));
    }
}
