//! What the broker said of itself each second, and what follows from it.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use crate::client::{Connection, rpc};
use crate::clock;
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::proto::{GetStatsRequest, GetStatsResponse};
use crate::report::Series;

const EVERY: clock::Nanos = 1_000_000_000;

/// What was sampled: seconds since the measurement began, less than 0 in the warm-up, and the answer.
pub type Samples = Arc<Mutex<Vec<(f64, GetStatsResponse)>>>;

/// A role that asks every second.
pub async fn sample(samples: Samples, station: Rc<Station>) -> Result<(), Failure> {
    let connection = Connection::open(&station.trial.address).await.doing("connecting to ask for metrics")?;
    let window = station.start().await;
    let mut due = window.start;
    loop {
        clock::sleep_until(due).await;
        let stats = ask(&connection).await?;
        let at = (clock::now() as f64 - window.measured_from as f64) / 1e9;
        samples.lock().unwrap_or_else(PoisonError::into_inner).push((at, stats));
        due += EVERY;
    }
}

pub async fn ask(connection: &Connection) -> Result<GetStatsResponse, Failure> {
    connection.unary(rpc::STATS, &GetStatsRequest {}).await.doing("asking the broker for its metrics")
}

/// What must be as it was before, when all load has gone.
pub fn gauges(stats: &GetStatsResponse) -> [(&'static str, u64); 8] {
    [
        ("connections", stats.connections),
        ("subscriptions", stats.subscriptions),
        ("members", stats.members),
        ("standbys", stats.standbys),
        ("patterns", stats.patterns),
        ("waiting", stats.waiting),
        ("in flight", stats.in_flight),
        ("held bytes", stats.held_bytes),
    ]
}

/// The gauges over time.
pub fn series(samples: &[(f64, GetStatsResponse)]) -> Vec<Series> {
    let Some((_, first)) = samples.first() else { return Vec::new() };
    let of = |(index, (name, _)): (usize, (&'static str, u64))| Series {
        name: name.into(),
        unit: if name == "held bytes" { "bytes" } else { name },
        points: samples.iter().map(|(at, stats)| (*at, gauges(stats)[index].1 as f64)).collect(),
    };
    gauges(first).into_iter().enumerate().map(of).collect()
}

/// How much a value grows an hour, by least squares over the second half of a measurement of so many seconds;
/// none where there are too few points to tell.
pub fn drift(points: &[(f64, f64)], seconds: f64) -> Option<f64> {
    let half: Vec<_> = points.iter().filter(|(at, _)| (seconds / 2.0..=seconds).contains(at)).collect();
    if half.len() < 3 {
        return None;
    }
    let count = half.len() as f64;
    let mean_at = half.iter().map(|(at, _)| at).sum::<f64>() / count;
    let mean = half.iter().map(|(_, value)| value).sum::<f64>() / count;
    let together: f64 = half.iter().map(|(at, value)| (at - mean_at) * (value - mean)).sum();
    let spread: f64 = half.iter().map(|(at, _)| (at - mean_at).powi(2)).sum();
    Some(together / spread * 3600.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_the_slope_of_the_second_half_alone() {
        // Grows fast, then by 2 a second, with noise that is even.
        let value = |at: u32| if at < 50 { 1e6 * f64::from(at) } else { 7.0 + 2.0 * f64::from(at) };
        let noise = |at: u32| if at % 4 < 2 { 1.0 } else { -1.0 };
        let points: Vec<_> = (0..120).map(|at| (f64::from(at), value(at) + noise(at))).collect();
        let drift = drift(&points, 100.0).expect("51 points");
        assert!((drift / 3600.0 - 2.0).abs() < 0.02, "{drift}");
    }

    #[test]
    fn too_few_points_have_no_drift() {
        assert_eq!(drift(&[(6.0, 1.0), (9.0, 2.0)], 10.0), None);
        assert_eq!(drift(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)], 10.0), None);
    }

    #[test]
    fn what_stays_the_same_does_not_drift() {
        let points: Vec<_> = (0..20).map(|at| (f64::from(at), 42.0)).collect();
        assert_eq!(drift(&points, 20.0), Some(0.0));
    }

    #[test]
    fn a_series_a_gauge_has_a_point_a_sample() {
        let stats = |members| GetStatsResponse { members, ..GetStatsResponse::default() };
        let series = series(&[(-1.0, stats(3)), (0.0, stats(4)), (2.0, stats(5))]);
        let members = series.iter().find(|series| series.name == "members").expect("a series");
        assert_eq!(members.points, [(-1.0, 3.0), (0.0, 4.0), (2.0, 5.0)]);
        assert_eq!(series.len(), gauges(&stats(0)).len());
    }
}
