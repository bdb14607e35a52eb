//! Places on the drawing, turned into strokes.

use std::fmt::Write;

/// Width of a strip whose values are drawn as one, where there are too many.
const STRIP: f64 = 3.0;

/// A stroke through places; one begins anew after each place that is none.
pub fn path(places: &[Option<(f64, f64)>]) -> String {
    let mut path = String::new();
    let mut joined = false;
    for place in places {
        if let Some((x, y)) = place {
            // Writing to a string cannot fail.
            let _ = write!(path, "{}{} {}", if joined { 'L' } else { 'M' }, number(*x), number(*y));
        }
        joined = place.is_some();
    }
    path
}

/// The places that share a strip of the plot.
pub struct Column {
    pub x: f64,
    pub top: f64,
    pub bottom: f64,
    pub mean: f64,
}

/// Places in the order of x, strip by strip.
pub fn columns(places: &[Option<(f64, f64)>]) -> Vec<Column> {
    let places: Vec<(f64, f64)> = places.iter().flatten().copied().collect();
    let strips = places.chunk_by(|a, b| (a.0 / STRIP).floor() == (b.0 / STRIP).floor());
    let column = |strip: &[(f64, f64)]| {
        let mean = |pick: fn(&(f64, f64)) -> f64| strip.iter().map(pick).sum::<f64>() / strip.len() as f64;
        let heights = || strip.iter().map(|(_, y)| *y);
        Column {
            x: mean(|(x, _)| *x),
            top: heights().fold(f64::MAX, f64::min),
            bottom: heights().fold(0.0, f64::max),
            mean: mean(|(_, y)| *y),
        }
    };
    strips.map(column).collect()
}

/// A coordinate, as exact as anybody can see.
pub fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_begins_a_new_stroke() {
        let places = [Some((0.0, 9.96)), Some((1.0, 2.0)), None, Some((4.0, 1.0)), Some((5.0, 2.0))];
        assert_eq!(path(&places), "M0.0 10.0L1.0 2.0M4.0 1.0L5.0 2.0");
        assert_eq!(path(&[None]), "");
    }

    #[test]
    fn a_strip_keeps_its_peaks() {
        let height = |index: i32| if index == 555 { 1.0 } else { 25.0 };
        let places: Vec<_> = (0..1_000).map(|index| Some((f64::from(index) / 10.0, height(index)))).collect();
        let columns = columns(&places);
        assert_eq!(columns.len(), 34);
        let peaks: Vec<_> = columns.iter().filter(|column| column.top < 25.0).collect();
        assert_eq!(peaks.len(), 1);
        assert_eq!((peaks[0].top, peaks[0].bottom, peaks[0].mean), (1.0, 25.0, 24.2));
        assert!(columns.is_sorted_by(|a, b| a.x < b.x));
    }
}
