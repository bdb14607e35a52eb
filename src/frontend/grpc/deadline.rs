use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::shard::runtime::{self, Sleep};

/// When a call is over. Its timer is set by the first poll, for the task that polls it, and not looked after again.
pub struct Deadline {
    at: Instant,
    timer: Option<Sleep>,
}

impl Deadline {
    /// None where it lies beyond all time.
    pub fn after(span: Duration) -> Option<Self> {
        Some(Deadline { at: Instant::now().checked_add(span)?, timer: None })
    }

    /// To be polled by one task alone.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        match self.timer {
            Some(_) => Poll::Pending,
            None => Pin::new(self.timer.insert(runtime::sleep_until(self.at))).poll(cx),
        }
    }
}
