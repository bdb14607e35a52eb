//! Where a value lies on an axis, and which values the axis names.

/// What an axis can show at all; what is beyond is left out like what is no number.
const LIMIT: f64 = 1e18;

/// Steps of a logarithmic axis within a decade.
const FINE: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
const MEDIUM: [f64; 3] = [1.0, 2.0, 5.0];
const DECADES: [f64; 1] = [1.0];

/// Names on a logarithmic axis, at most.
const MOST_TICKS: usize = 9;

/// A range of values, laid out from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    Linear { low: f64, high: f64 },
    Log { low: f64, high: f64 },
}

impl Scale {
    /// Zero and all values, with round ends, and the round values on the way.
    pub fn linear(values: impl IntoIterator<Item = f64>) -> (Scale, Vec<f64>) {
        let (low, high) = range(values).map_or((0.0, 1.0), |(low, high)| (low.min(0.0), high.max(0.0)));
        let step = round_step((high - low) / 5.0);
        let (first, last) = ((low / step).floor(), (high / step).ceil().max(1.0));
        let ticks = (0..=(last - first) as usize).map(|index| (first + index as f64) * step).collect();
        (Scale::Linear { low: first * step, high: last * step }, ticks)
    }

    /// From the least to the greatest value, and the round values between.
    pub fn between(values: impl IntoIterator<Item = f64>) -> (Scale, Vec<f64>) {
        let Some((low, high)) = range(values).filter(|(low, high)| low < high) else {
            return Scale::linear([]);
        };
        let step = round_step((high - low) / 6.0);
        let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
        let ticks = (0..=(last - first) as usize).map(|index| (first + index as f64) * step).collect();
        (Scale::Linear { low, high }, ticks)
    }

    /// All values above zero, with round ends, and the round values on the way.
    pub fn log(values: impl IntoIterator<Item = f64>) -> (Scale, Vec<f64>) {
        let (low, high) = range(values.into_iter().filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
        let mut ticks = log_ticks(low, high, &FINE);
        if ticks.len() > MOST_TICKS {
            ticks = log_ticks(low, high, &MEDIUM);
        }
        let [low, .., high] = ticks[..] else { return (Scale::Log { low, high }, ticks) };
        if ticks.len() > MOST_TICKS {
            ticks = log_ticks(low, high, &DECADES);
            ticks.retain(|tick| (low..=high).contains(tick));
        }
        let sparse = ticks.len().div_ceil(MOST_TICKS);
        (Scale::Log { low, high }, ticks.into_iter().step_by(sparse).collect())
    }

    /// The place of a value, from 0 to 1; what lies outside is set to the nearer end. None where it is no number.
    pub fn place(self, value: f64) -> Option<f64> {
        if !shown(value) {
            return None;
        }
        let place = match self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => (value.max(low).ln() - low.ln()) / (high.ln() - low.ln()),
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
    }
}

fn shown(value: f64) -> bool {
    value.abs() < LIMIT
}

fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|value| shown(*value)).fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// The next larger of 1, 2, 2.5 and 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    if least <= 0.0 {
        return 0.5;
    }
    let decade = 10f64.powf(least.log10().floor());
    let fits = |step: &f64| *step * decade >= least * (1.0 - 1e-9);
    decade * [1.0, 2.0, 2.5, 5.0].into_iter().find(fits).unwrap_or(10.0)
}

/// The steps from the last at or below `low` to the first at or above `high`, two at least.
fn log_ticks(low: f64, high: f64, steps: &[f64]) -> Vec<f64> {
    let decades = (low.log10().floor() as i32)..=(high.log10().floor() as i32 + 1);
    let all: Vec<f64> =
        decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade))).collect();
    let first = all.iter().rposition(|tick| *tick <= low * (1.0 + 1e-9)).unwrap_or(0);
    let last = all.iter().position(|tick| *tick >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
    all[first..=last.max(first + 1).min(all.len() - 1)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ends_are_round_and_hold_all() {
        let (scale, ticks) = Scale::linear([3.0, 87.0]);
        assert_eq!(scale, Scale::Linear { low: 0.0, high: 100.0 });
        assert_eq!(ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(scale.place(50.0), Some(0.5));
        assert_eq!(Scale::linear([-5.0, 5.0]).0, Scale::Linear { low: -6.0, high: 6.0 });
    }

    #[test]
    fn log_steps_follow_the_range() {
        assert_eq!(Scale::log([80.0, 12_000.0]).1, [50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4]);
        assert_eq!(Scale::log([2.0, 3e5]).1, [10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!(Scale::log([210.0, 290.0]).1, [200.0, 300.0]);
        let (scale, ticks) = Scale::log([35.0, 14_000.0]);
        assert_eq!((scale, ticks), (Scale::Log { low: 20.0, high: 2e4 }, vec![100.0, 1e3, 1e4]));
    }

    #[test]
    fn one_value_no_value_and_zero_make_an_axis() {
        for values in [vec![], vec![0.0], vec![7.0], vec![1e-9], vec![f64::NAN, f64::INFINITY, f64::MAX]] {
            for (scale, ticks) in [Scale::linear(values.clone()), Scale::log(values.clone())] {
                let (Scale::Linear { low, high } | Scale::Log { low, high }) = scale;
                assert!(low < high && low.is_finite() && high.is_finite(), "{values:?}: {scale:?}");
                assert!(ticks.len() >= 2 && ticks.len() <= 2 * MOST_TICKS, "{values:?}: {ticks:?}");
            }
        }
    }

    #[test]
    fn places_are_shares_or_nothing() {
        let (scale, _) = Scale::log([1.0, 1e4]);
        assert_eq!(scale.place(100.0).map(|place| (place * 1e6).round()), Some(500_000.0));
        assert_eq!(scale.place(0.0), Some(0.0), "below the axis: its low end");
        assert_eq!(scale.place(1e9), Some(1.0));
        assert_eq!([f64::NAN, f64::INFINITY, f64::MAX].map(|value| scale.place(value)), [None; 3]);
    }
}
