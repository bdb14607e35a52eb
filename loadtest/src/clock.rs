//! One clock for all threads of the load test: nanoseconds since its start.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A moment, in nanoseconds since the start of the program.
pub type Nanos = u64;

pub fn now() -> Nanos {
    ORIGIN.elapsed().as_nanos() as Nanos
}

pub fn nanos(duration: Duration) -> Nanos {
    duration.as_nanos() as Nanos
}

pub fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos)
}

/// Sleeps until a moment, as exactly as the runtime's timer can: to about a millisecond.
pub async fn sleep_until(moment: Nanos) {
    tokio::time::sleep_until((*ORIGIN + duration(moment)).into()).await;
}
