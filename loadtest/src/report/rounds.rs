//! Rounds of one and the same run, and which of them a report shows.

use super::{Run, units};

/// What rounds are put in order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rate,
    /// The median of the times that are told first: where the rate is given, or is not what is measured.
    Time,
}

impl By {
    fn of(run: &Run) -> By {
        if run.offered.is_none() && run.achieved.is_some() { By::Rate } else { By::Time }
    }

    fn value(self, run: &Run) -> Option<f64> {
        match self {
            By::Rate => run.achieved,
            By::Time => run.distributions.first().map(|times| times.p50_us),
        }
    }

    /// How the rounds differ; without a value where there is none.
    fn note(self, rounds: usize, least: Option<f64>, most: Option<f64>) -> String {
        let (what, write): (_, fn(f64) -> String) = match self {
            By::Rate => ("rate", units::rate),
            By::Time => ("p50", units::time),
        };
        let range = match (least, most) {
            (Some(least), Some(most)) => format!(", from {} to {}", write(least), write(most)),
            _ => String::new(),
        };
        format!("the round of the median {what} of {rounds}{range}; peak RSS and ledger are of all rounds")
    }
}

impl Run {
    /// The round in the middle (of an even number the upper one of the two there), with the verdicts and the peak memory
    /// of all, and all of them beside it. What was made once stays as it is; none where nothing was made.
    pub fn median(mut rounds: Vec<Run>) -> Option<Run> {
        if rounds.len() < 2 {
            return rounds.pop();
        }
        let by = By::of(rounds.first()?);
        let mut order: Vec<&Run> = rounds.iter().collect();
        order.sort_by(|a, b| by.value(a).unwrap_or(0.0).total_cmp(&by.value(b).unwrap_or(0.0)));
        let value = |run: Option<&&Run>| run.and_then(|run| by.value(run));
        let note = by.note(order.len(), value(order.first()), value(order.last()));
        let mut median = (*order.get(order.len() / 2)?).clone();
        let peak =
            rounds.iter().filter_map(|run| run.cost.as_ref()).map(|cost| cost.peak_resident_bytes).max();
        if let (Some(cost), Some(peak)) = (&mut median.cost, peak) {
            cost.peak_resident_bytes = peak;
        }
        median.notes.push(note);
        median.verdict = Default::default();
        rounds.iter().for_each(|round| median.verdict.add(&round.verdict));
        median.rounds = rounds;
        Some(median)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cost, sample};
    use super::*;
    use crate::ledger::{Promise, Verdict};

    fn run(achieved: f64, p50_us: f64, peak: u64) -> Run {
        let cost = Cost {
            source: "/proc",
            cpu_seconds: 1.0,
            cpu_us_per_message: None,
            cores: 1.0,
            peak_resident_bytes: peak,
        };
        Run {
            achieved: Some(achieved),
            distributions: vec![sample::distribution("delivery", 1_000, p50_us, 1.0)],
            cost: Some(cost),
            verdict: Verdict { sent: 7, ..Verdict::default() },
            ..Run::default()
        }
    }

    #[test]
    fn the_median_run_forgets_nothing_that_went_wrong_in_the_others() {
        let broken = Verdict {
            sent: 5,
            broken: [(Promise::Lost, 2)].into(),
            named: vec!["lost: messages 3 to 4".into()],
            ..Verdict::default()
        };
        let rounds = vec![run(9e3, 1.0, 10), Run { verdict: broken, ..run(1e3, 2.0, 30) }, run(4e3, 3.0, 20)];
        let median = Run::median(rounds).expect("a run");
        assert_eq!(median.achieved, Some(4e3));
        assert_eq!(median.cost.as_ref().map(|cost| cost.peak_resident_bytes), Some(30));
        assert_eq!(median.verdict.sent, 19);
        assert!(!median.passed());
        assert_eq!(median.verdict.named, ["lost: messages 3 to 4"]);
        let note =
            "the round of the median rate of 3, from 1 k/s to 9 k/s; peak RSS and ledger are of all rounds";
        assert_eq!(median.notes, [note]);
        let kept: Vec<_> = median.rounds.iter().filter_map(|round| round.achieved).collect();
        assert_eq!(kept, [9e3, 1e3, 4e3], "as they were made");
    }

    #[test]
    fn where_the_rate_is_given_or_not_measured_times_decide() {
        for rate in [(Some(1e3), Some(1e3)), (None, None)] {
            let at_rate = |p50_us| Run { offered: rate.0, achieved: rate.1, ..run(0.0, p50_us, 1) };
            let median = Run::median([500.0, 100.0, 300.0].map(at_rate).into()).expect("a run");
            let p50 = median.distributions[0].p50_us;
            assert!((299.0..=301.0).contains(&p50), "{p50}");
            assert!(median.notes[0].starts_with("the round of the median p50 of 3, from "), "{median:?}");
        }
    }

    #[test]
    fn what_was_made_once_stays_as_it_is() {
        let once = Run::median(vec![run(1.0, 1.0, 1)]).expect("a run");
        assert!(once.notes.is_empty() && once.rounds.is_empty());
        assert!(Run::median(Vec::new()).is_none());
    }
}
