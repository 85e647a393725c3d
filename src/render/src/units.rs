//! Sizes and counts as people read them.

/// `86.7 MiB`, three digits that count; whole numbers below 1 KiB.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    // 1023.95 would be shown as 1024.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// `22.7 M`: a count of numbers.
pub(super) fn count(count: usize) -> String {
    match count {
        0..10_000 => stratoscope_diagnostics::words::thousands(count),
        10_000..999_500 => format!("{:.0} k", count as f64 / 1e3),
        999_500..999_500_000 => format!("{:.1} M", count as f64 / 1e6),
        _ => format!("{:.1} G", count as f64 / 1e9),
    }
}

/// `384 × 1536`; `scalar` without dimensions.
pub(super) fn shape(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_owned();
    }
    shape
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(" × ")
}

/// `3.2 %` of a capacity.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "< 0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        let check = |size: u64, text: &str| assert_eq!(bytes(size), text);
        check(0, "0 B");
        check(1023, "1023 B");
        check(1024, "1.00 KiB");
        check(1536, "1.50 KiB");
        check(46_884_864, "44.7 MiB");
        check(90_852_128, "86.6 MiB");
        check(1_073_741_823, "1.00 GiB");
        check(25_769_803_776, "24.0 GiB");
        check(u64::MAX, "16384 PiB");
    }

    #[test]
    fn counts_shapes_and_shares() {
        assert_eq!(count(9_999), "9999");
        assert_eq!(count(22_713_216), "22.7 M");
        assert_eq!(count(46_000), "46 k");
        assert_eq!(shape(&[]), "scalar");
        assert_eq!(shape(&[384, 1536]), "384 × 1536");
        assert_eq!(share(1, 3), "33 %");
        assert_eq!(share(1, 5_000), "< 0.1 %");
        assert_eq!(share(0, 5), "0 %");
        assert_eq!(share(5, 0), "0 %");
    }
}
