use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};

use crate::frontend::Failure;
use crate::frontend::confirms::{ConfirmEvents, Confirms};
use crate::frontend::hub::{Frontend, PhaseWatch};
use crate::frontend::net::{Hold, Turn};
use crate::frontend::series::Series;
use crate::frontend::unstarted::Unstarted;
use crate::limits;
use crate::model::Message;
use crate::shard::Phase;
use crate::shard::runtime;

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
        unstarted: Unstarted::default(),
        failed: None,
        ending: None,
        rests: false,
        turn,
        hold: None,
    };
    Ok((ConfirmEvents::new(confirms), driver.boxed_local()))
}

/// Publishes as fast as credits allow, and has confirmed what is settled whenever nothing more can be read.
///
/// ```text
///   reading ──messages──▶ waiting for credits, and for a publish in two passes ──start──▶ reading
///      └──end, an error, nobody there, or closing──▶ settling what was started ──▶ last confirm ──▶ over
/// ```
/// It is a task of its own, since the response side is not asked while the client does not read: what waits for a
/// credit must go on, or all who come after it would wait too.
struct Driver<R> {
    frontend: Rc<Frontend>,
    requests: R,
    series: Rc<Series>,
    confirms: Rc<Confirms>,
    unstarted: Unstarted,
    /// What came behind them was no message: it fails when they have started.
    failed: Option<Failure>,
    phase: PhaseWatch,
    /// How the stream ends, once it reads no more.
    ending: Option<Result<(), Failure>>,
    /// It has had its turn, and comes back behind others.
    rests: bool,
    turn: Rc<Turn>,
    /// While it cannot keep up with what comes.
    hold: Option<Hold>,
}

impl<R: Stream<Item = Request> + Unpin> Driver<R> {
    /// Starts what can be started now, a bounded number of messages.
    fn advance(&mut self, cx: &mut Context<'_>) {
        self.rests = false;
        if self.start(cx).is_pending() {
            return;
        }
        for _ in 0..limits::PUBLISH_STREAM_TURN {
            let is_last = self.read(cx).is_pending();
            let is_due = is_last || self.failed.is_some() || self.unstarted.is_full();
            if is_due && self.start(cx).is_pending() || is_last {
                return;
            }
        }
        if self.start(cx).is_pending() {
            return;
        }
        self.rests = true;
        runtime::come_back(cx);
    }

    /// Starts the messages that were read; pending where some must wait.
    fn start(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.unstarted.poll_start(&self.frontend, &self.series, cx));
        if let Some(failure) = self.failed.take() {
            self.frontend.fail_in(&self.series, failure);
        }
        Poll::Ready(())
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
            Ok(Err(failure)) => self.failed = Some(failure),
            Ok(Ok(message)) => self.unstarted.push(message),
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
        if !this.unstarted.is_empty() || this.rests {
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
