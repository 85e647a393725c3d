//! Sizes, counts, shares and times as people read them.

/// A size with three significant digits: `86.7 MiB`. Below 1 KiB it is exact: `1023 B`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    // The next unit from 999.5 on, which would be shown with four digits.
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

/// A count, shortened from 10 000 on: `22.7 M`.
pub fn count(count: usize) -> String {
    match count {
        0..10_000 => crate::text::thousands(count),
        10_000..999_500 => format!("{:.0} k", count as f64 / 1e3),
        999_500..999_500_000 => format!("{:.1} M", count as f64 / 1e6),
        _ => format!("{:.1} G", count as f64 / 1e9),
    }
}

/// The dimensions of a tensor in a report: `384 × 1536`; `scalar` without dimensions. Messages use
/// [`text::shape`](crate::text::shape).
pub fn shape(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_owned();
    }
    shape
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(" × ")
}

/// A part of a whole: `3.2 %`.
pub fn share(part: u64, whole: u64) -> String {
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

/// A duration: `0.4 s`, `45 s`, `3 min 05 s`, `2 h 10 min`; `–` if it is not finite.
pub fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "–".to_owned();
    }
    let seconds = seconds.max(0.0);
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Days since 1970-01-01 as year, month and day of the Gregorian calendar.
pub fn civil(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    loop {
        let length = 365 + u64::from(leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
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

    #[test]
    fn durations() {
        let check = |duration: f64, text: &str| assert_eq!(seconds(duration), text);
        check(1.25, "1.2 s");
        check(9.97, "10 s");
        check(45.4, "45 s");
        check(185.0, "3 min 05 s");
        check(7800.0, "2 h 10 min");
        check(f64::NAN, "–");
    }
}
