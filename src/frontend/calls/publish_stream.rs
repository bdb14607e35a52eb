use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, stream};

use super::unary::message;
use super::{Call, Task, failed};
use crate::frontend::confirms::ConfirmEvents;
use crate::frontend::grpc::{Deadline, Reply, frame};
use crate::frontend::net::Turn;
use crate::frontend::{Failure, convert, rpc};

/// Begins a stream of publishes.
pub fn publish_stream(call: Call, turn: Rc<Turn>) -> Task {
    let Call { frontend, mut messages, mut reply, deadline } = call;
    let reader = frontend.clone();
    let requests = stream::poll_fn(move |cx| {
        messages.poll_read(cx, |request| Ok(message(&reader, convert::Publish::read(request)?)))
    });
    match rpc::publish_stream::publish_stream(&frontend, turn, requests) {
        Ok((confirms, driver)) => {
            reply.begin();
            Box::pin(PublishStream { driver: Some(driver), confirms: Some(confirms), reply, deadline })
        }
        Err(failure) => failed(reply, failure),
    }
}

/// Both sides of a stream of publishes: each goes on while the other waits.
struct PublishStream {
    /// `None` once it has settled all that it read.
    driver: Option<LocalBoxFuture<'static, ()>>,
    /// `None` once the response is over.
    confirms: Option<ConfirmEvents>,
    reply: Reply,
    deadline: Option<Deadline>,
}

impl PublishStream {
    fn drive(&mut self, cx: &mut Context<'_>) {
        let Some(driver) = &mut self.driver else { return };
        match catch_unwind(AssertUnwindSafe(|| driver.as_mut().poll(cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) => self.driver = None,
            Err(_) => {
                self.reply.panicked();
                // It ends the response.
                self.driver = None;
            }
        }
    }

    fn respond(&mut self, cx: &mut Context<'_>) {
        let Some(confirms) = &mut self.confirms else { return };
        let confirm = || confirm(confirms, &mut self.reply, &mut self.deadline, cx);
        match catch_unwind(AssertUnwindSafe(confirm)) {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(Some(failure))) => self.reply.fail(failure),
            Ok(Poll::Ready(None)) => {}
            Err(_) => {
                let failure = self.reply.panicked();
                self.reply.fail(failure);
            }
        }
        self.confirms = None;
    }
}

/// Sends what is to be told. Ready when the response is over, or is to fail.
fn confirm(
    confirms: &mut ConfirmEvents,
    reply: &mut Reply,
    deadline: &mut Option<Deadline>,
    cx: &mut Context<'_>,
) -> Poll<Option<Failure>> {
    if let Some(deadline) = deadline
        && deadline.poll(cx).is_ready()
    {
        return Poll::Ready(Some(Failure::Deadline));
    }
    // Confirms wait for room, since later they tell more; the end does not.
    while !confirms.has_next() || reply.poll_room(cx).is_ready() {
        match confirms.poll_next_unpin(cx) {
            Poll::Pending => break,
            Poll::Ready(Some(Ok(next))) => reply.send(frame(&convert::confirm(next))),
            Poll::Ready(Some(Err(failure))) => return Poll::Ready(Some(failure)),
            Poll::Ready(None) => {
                reply.finish();
                return Poll::Ready(None);
            }
        }
    }
    reply.poll_gone(cx).map(|()| None)
}

impl Future for PublishStream {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.drive(cx);
        this.respond(cx);
        match (&this.driver, &this.confirms) {
            (None, None) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}
