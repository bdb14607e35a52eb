//! What all benchmarks share: how long each measures.

use std::time::Duration;

use criterion::Criterion;
use criterion::measurement::Measurement;

/// Short enough that all benchmarks together take some two minutes; the command line overrides each.
pub fn criterion<M: Measurement + 'static>(clock: M) -> Criterion<M> {
    Criterion::default()
        .with_measurement(clock)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(50)
        .nresamples(10_000)
        .configure_from_args()
}
