use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::Poll;

use futures_util::FutureExt;

use super::{Deadline, Reply};
use crate::frontend::Failure;

/// Why a call has no result.
pub enum Ending {
    /// Nobody waits for one: the stream was reset, or its connection has ended.
    Gone,
    Failed(Failure),
}

impl From<Failure> for Ending {
    fn from(failure: Failure) -> Self {
        Ending::Failed(failure)
    }
}

/// Does the work of a call until its deadline, or its caller goes; a panic in it is the call's own failure.
pub async fn guarded<T>(
    reply: &mut Reply,
    deadline: &mut Option<Deadline>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Ending> {
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    poll_fn(|cx| {
        if let Poll::Ready(result) = work.as_mut().poll(cx) {
            return Poll::Ready(match result {
                Ok(result) => result.map_err(Ending::Failed),
                Err(_) => Err(Ending::Failed(reply.panicked())),
            });
        }
        if reply.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Ending::Gone));
        }
        match deadline {
            Some(deadline) => deadline.poll(cx).map(|()| Err(Ending::Failed(Failure::Deadline))),
            None => Poll::Pending,
        }
    })
    .await
}
