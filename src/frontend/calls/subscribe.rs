use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};

use super::{Call, Task, failed};
use crate::frontend::grpc::{Deadline, Ending, Messages, Reply, put_framed};
use crate::frontend::hub::Frontend;
use crate::frontend::rpc::subscribe::Subscriber;
use crate::frontend::tasks::MarkedWaker;
use crate::frontend::{Failure, convert};
use crate::limits;

/// Begins a Subscribe stream.
pub fn subscribe(call: Call, subscriptions: &Rc<Cell<usize>>) -> Task {
    let Call { frontend, messages, mut reply, deadline } = call;
    let seated = Seat::take(subscriptions).and_then(|seat| Ok((seat, Subscriber::new(&frontend)?)));
    match seated {
        Ok((seat, subscriber)) => {
            reply.begin();
            Box::pin(Subscription {
                frontend,
                commands: Some(messages),
                subscriber,
                reply,
                deadline,
                opening: Deadline::after(limits::OPEN_TIMEOUT),
                http2: None,
                _seat: seat,
            })
        }
        Err(failure) => failed(reply, failure),
    }
}

type Http2Waker = (Arc<MarkedWaker>, Waker);

/// One Subscribe stream's place under the limit of its connection.
struct Seat(Rc<Cell<usize>>);

impl Seat {
    fn take(taken: &Rc<Cell<usize>>) -> Result<Seat, Failure> {
        let limit = limits::SUBSCRIPTIONS_PER_CONNECTION;
        if taken.get() >= limit {
            return Err(Failure::TooManySubscriptions { limit });
        }
        taken.set(taken.get() + 1);
        Ok(Seat(taken.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// One Subscribe stream. The response side decides about life and death: its end is leaving, and what the client said
/// before is done before.
struct Subscription {
    frontend: Rc<Frontend>,
    /// `None` once the client has ended them.
    commands: Option<Messages>,
    subscriber: Subscriber,
    reply: Reply,
    deadline: Option<Deadline>,
    /// Until when it must have said `open`; `None` once it has.
    opening: Option<Deadline>,
    /// How HTTP/2 wakes it: most often an event does, and then there is nothing to read.
    http2: Option<Http2Waker>,
    _seat: Seat,
}

impl Subscription {
    /// Ready when the stream is over.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        if is_over(&mut self.deadline, cx) {
            self.deadline = None;
            self.subscriber.expire();
        }
        let (mark, waker) = self.http2.take().unwrap_or_else(|| {
            let mark = MarkedWaker::new(cx);
            (mark.clone(), mark.into())
        });
        let http2 = &mut Context::from_waker(&waker);
        let ending = match mark.take_mark() && self.carry_out(http2).is_ready() {
            true => Poll::Ready(Ending::Gone),
            false => self.go_on(cx, http2),
        };
        self.http2 = Some((mark, waker));
        ending
    }

    /// Beside commands.
    fn go_on(&mut self, cx: &mut Context<'_>, http2: &mut Context<'_>) -> Poll<Ending> {
        if self.opening.is_some() {
            if self.subscriber.has_begun() {
                self.opening = None;
            } else if is_over(&mut self.opening, cx) {
                self.subscriber.end(Failure::OpenTimeout);
            }
        }
        self.respond(cx, http2)
    }

    /// Does what the client says. Ready when it has gone.
    fn carry_out(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_gone = self.carry_out_each(cx);
        self.subscriber.hand_on_acks();
        is_gone
    }

    fn carry_out_each(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let bounds = &self.frontend.bounds;
        while let Some(commands) = &mut self.commands {
            let carry_out = |command: &[u8]| {
                self.subscriber.carry_out(convert::read_command(command, bounds)?);
                Ok(())
            };
            match commands.poll_read(cx, carry_out) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) if commands.is_gone() => return Poll::Ready(()),
                Poll::Ready(None) => {
                    self.commands = None;
                    self.subscriber.commands_ended();
                }
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(failure))) => {
                    self.subscriber.end(failure);
                    commands.give_up();
                }
            }
        }
        // As long as commands may come, their end tells.
        self.reply.poll_gone(cx)
    }

    /// Sends what the stream is to be told, as far as there is room.
    fn respond(&mut self, cx: &mut Context<'_>, http2: &mut Context<'_>) -> Poll<Ending> {
        let session = self.subscriber.session();
        if session.poll_news(cx).is_pending() {
            return Poll::Pending;
        }
        if session.unread() > 0 {
            match self.reply.poll_room(http2) {
                Poll::Pending => {
                    session.ignore_news();
                    return Poll::Pending;
                }
                Poll::Ready(None) => return Poll::Ready(Ending::Gone),
                Poll::Ready(Some(())) => match self.next_events() {
                    Ok(events) => self.reply.send(events),
                    Err(failure) => return Poll::Ready(failure.into()),
                },
            }
        }
        if let Some(failure) = session.take_end() {
            return Poll::Ready(failure.into());
        }
        // What is left, and what comes, has its turn after the others on the connection.
        if session.poll_news(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// The next events in one piece, so many at most that others need not wait.
    fn next_events(&self) -> Result<Bytes, Failure> {
        let session = self.subscriber.session();
        let mut bytes = BytesMut::with_capacity(session.next_bytes(limits::EVENTS_CHUNK_BYTES));
        while bytes.len() < limits::EVENTS_CHUNK_BYTES
            && let Some(event) = session.take_event(&self.frontend.node)
        {
            put_framed(&mut bytes, |bytes| event.encode(bytes)).map_err(|_| Failure::Internal)?;
        }
        Ok(bytes.freeze())
    }
}

fn is_over(deadline: &mut Option<Deadline>, cx: &mut Context<'_>) -> bool {
    deadline.as_mut().is_some_and(|deadline| deadline.poll(cx).is_ready())
}

impl Future for Subscription {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        match catch_unwind(AssertUnwindSafe(|| this.advance(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ending::Gone)) => {}
            Ok(Poll::Ready(Ending::Failed(failure))) => this.reply.fail(failure),
            Err(_) => {
                let failure = this.reply.panicked();
                this.reply.fail(failure);
            }
        }
        Poll::Ready(())
    }
}
