//! One clock for all threads and processes of the load test: the machine's, which never goes back.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// A moment, in nanoseconds since the machine's start; the same for all processes on it.
pub type Nanos = u64;

pub fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as Nanos * 1_000_000_000 + now.tv_nsec as Nanos
}

pub fn nanos(duration: Duration) -> Nanos {
    duration.as_nanos() as Nanos
}

pub fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos)
}

/// Sleeps until a moment, as exactly as the runtime's timer can: to about a millisecond.
pub async fn sleep_until(moment: Nanos) {
    tokio::time::sleep_until(Instant::now() + duration(moment.saturating_sub(now()))).await;
}
