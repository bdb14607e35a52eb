//! Numbers as people read them: three digits and a fitting unit.

/// Stands where there is no number.
pub const NONE: &str = "–";

const COUNTS: [(f64, &str); 5] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
const BYTES: [(f64, &str); 5] = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];
const TIMES: [(f64, &str); 5] = [(1.0, "µs"), (1e3, "ms"), (1e6, "s"), (60e6, "min"), (3600e6, "h")];

/// Outside of these, plain digits would fill a line.
const SMALL: f64 = 1e-4;
const HUGE: f64 = 1e15;

/// As in `12.3 k`.
pub fn count(value: f64) -> String {
    scaled(value, &COUNTS)
}

/// As in `12.3 k/s`.
pub fn rate(per_second: f64) -> String {
    if per_second.is_finite() { format!("{}/s", count(per_second)) } else { NONE.to_owned() }
}

/// As in `312 µs` and `4.1 ms`.
pub fn time(us: f64) -> String {
    scaled(us, &TIMES)
}

/// As in `14.2 MB`.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, &BYTES)
}

/// As in `62.5 %`.
pub fn share(share: f64) -> String {
    if share.is_finite() { format!("{} %", scaled(share * 100.0, &COUNTS[..1])) } else { NONE.to_owned() }
}

/// Cores kept busy, as in `0.86`.
pub fn cores(cores: f64) -> String {
    if cores.is_finite() { format!("{cores:.2}") } else { NONE.to_owned() }
}

/// A number whose unit is told by name.
pub fn value(value: f64, unit: &str) -> String {
    match unit {
        "us" | "µs" => time(value),
        "ms" => time(value * 1e3),
        "s" | "seconds" => time(value * 1e6),
        "bytes" => bytes(value),
        "bytes/s" if value.is_finite() => format!("{}/s", bytes(value)),
        "share" => share(value),
        "/s" => rate(value),
        unit => format!("{} {unit}", count(value)).trim_end().to_owned(),
    }
}

/// How an axis of a unit is named, and what stands at its ticks.
pub fn axis(unit: &str) -> (&str, fn(f64) -> String) {
    match unit {
        "us" | "µs" => ("", time),
        "ms" => ("", |tick| value(tick, "ms")),
        "s" | "seconds" => ("", |tick| value(tick, "s")),
        "bytes" => ("", bytes),
        "share" => ("", share),
        "/s" => ("", rate),
        unit => (unit, count),
    }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value != 0.0 && !(SMALL..HUGE).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    // Rounded first: 999.9 µs are 1 ms.
    let rounded = three_digits(value);
    let fits = |(size, _): &&(f64, &str)| rounded.abs() >= *size;
    let (size, unit) = units.iter().rev().find(fits).unwrap_or(&units[0]);
    format!("{} {unit}", three_digits(rounded / size)).trim_end().to_owned()
}

fn three_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let digits = value.abs().log10().floor() as i32;
    if digits > 2 {
        let step = 10f64.powi(digits - 2);
        (value / step).round() * step
    } else {
        let parts = 10f64.powi(2 - digits);
        (value * parts).round() / parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_fitting_unit() {
        assert_eq!(rate(12_345.0), "12.3 k/s");
        assert_eq!(rate(1_239_999.0), "1.24 M/s");
        assert_eq!(rate(7.0), "7/s");
        assert_eq!(time(312.4), "312 µs");
        assert_eq!(time(4_100.0), "4.1 ms");
        assert_eq!(time(90e6), "1.5 min");
        assert_eq!(time(0.168), "0.168 µs");
        assert_eq!(bytes(14_203_111.0), "14.2 MB");
        assert_eq!(share(0.6254), "62.5 %");
        assert_eq!(count(290_000.0), "290 k");
    }

    #[test]
    fn rounding_carries_into_the_next_unit() {
        assert_eq!(time(999.9), "1 ms");
        assert_eq!(count(999_600.0), "1 M");
    }

    #[test]
    fn what_is_no_number_is_none() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!([count(number), rate(number), time(number), bytes(number), share(number)], [NONE; 5]);
        }
    }

    #[test]
    fn extremes_stay_short() {
        for number in [0.0, -0.0, 1e-300, -3.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE] {
            assert!(count(number).len() <= 12, "{}", count(number));
        }
        assert_eq!(time(0.0), "0 µs");
    }

    #[test]
    fn units_are_told_by_name() {
        assert_eq!(value(1.5, "seconds"), "1.5 s");
        assert_eq!(value(0.25, "share"), "25 %");
        assert_eq!(value(1_500.0, "messages/s"), "1.5 k messages/s");
        assert_eq!(value(3.0, ""), "3");
    }
}
