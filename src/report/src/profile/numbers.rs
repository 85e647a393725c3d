//! Numbers of a profile as text.

/// A share: `43 %`; below 10 % with a digit: `3.2 %`; `–` if it is not known.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        _ if !value.is_finite() => "–".to_owned(),
        value if value.abs() < 9.95 && value != 0.0 => format!("{value:.1} %"),
        value => format!("{value:.0} %"),
    }
}

/// A number with three digits and a prefix of a thousand: `70.6 GFLOP/s`; `–` if it is not known.
pub(super) fn rate(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    if !value.is_finite() || value <= 0.0 {
        return "–".to_owned();
    }
    let (mut value, mut prefix) = (value, 0);
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        value /= 1000.0;
        prefix += 1;
    }
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}{unit}", PREFIXES[prefix])
}

/// A duration with three digits: `12.3 ms`.
pub(super) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "–".to_owned();
    }
    let (value, unit) = match seconds.abs() {
        it if it >= 0.9995 => (seconds, "s"),
        it if it >= 0.9995e-3 => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "µs"),
    };
    match value.abs() {
        0.0 => "0 s".to_owned(),
        it if it < 9.995 => format!("{value:.2} {unit}"),
        it if it < 99.95 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(percent(0.034), "3.4 %");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(f64::NAN), "–");
        assert_eq!(rate(70.6e9, "FLOP/s"), "70.6 GFLOP/s");
        assert_eq!(rate(999.7, "B/s"), "1.00 kB/s");
        assert_eq!(rate(0.0, "B/s"), "–");
        assert_eq!(duration(0.012_34), "12.3 ms");
        assert_eq!(duration(2.0), "2.00 s");
        assert_eq!(duration(0.000_25), "250 µs");
        assert_eq!(duration(0.0), "0 s");
        assert_eq!(duration(f64::INFINITY), "–");
    }
}
