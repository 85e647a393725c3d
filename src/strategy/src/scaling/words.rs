//! Numbers of a prediction as text.

use stratoscope_render::units;

/// Three digits: `12.3 ms`; from 10 s on as [`units::seconds`], from two days on in days.
pub(super) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        0.0 => return "0".to_owned(),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s if s < 10.0 => (s, "s"),
        s if s < 172_800.0 => return units::seconds(s),
        s => (s / 86_400.0, "days"),
    };
    format!("{} {unit}", number(value))
}

/// Bits in a second: `1 Gb/s`.
pub(super) fn bits(bits: f64) -> String {
    let (value, unit) = match bits {
        b if b < 1e6 => (b / 1e3, "kb/s"),
        b if b < 1e9 => (b / 1e6, "Mb/s"),
        b => (b / 1e9, "Gb/s"),
    };
    format!("{} {unit}", number(value))
}

/// Three digits without zeros at the end: `12.3`, `16`.
pub(super) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `43 %`; `0.4 %` below 1.
pub(super) fn share(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if p > 0.0 && p < 0.95 => format!("{p:.1} %"),
        p if p < 100.0 && p > 99.5 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_units() {
        let times = [0.0, 35e-6, 0.0123, 2.5, 75.0, 864_000.0].map(time);
        assert_eq!(
            times,
            ["0", "35 µs", "12.3 ms", "2.5 s", "1 min 15 s", "10 days"]
        );
        let rates = [2e5, 2.5e7, 1e9, 1e11].map(bits);
        assert_eq!(rates, ["200 kb/s", "25 Mb/s", "1 Gb/s", "100 Gb/s"]);
        let shares = [0.0, 0.004, 0.43, 0.998, 1.0].map(share);
        assert_eq!(shares, ["0 %", "0.4 %", "43 %", "99.8 %", "100 %"]);
    }
}
