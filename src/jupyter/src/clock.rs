//! Dates in the format of message headers.

use std::time::{SystemTime, UNIX_EPOCH};

use stratoscope_render::units::civil;

/// The present moment in ISO 8601, UTC, with microseconds.
pub fn now() -> String {
    let elapsed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format(elapsed.as_secs(), elapsed.subsec_micros())
}

fn format(seconds: u64, microseconds: u32) -> String {
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{microseconds:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(format(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(format(951_782_399, 7), "2000-02-28T23:59:59.000007Z");
        assert_eq!(format(951_782_400, 0), "2000-02-29T00:00:00.000000Z");
        assert_eq!(
            format(1_735_689_599, 999_999),
            "2024-12-31T23:59:59.999999Z"
        );
        assert_eq!(format(4_107_542_400, 0), "2100-03-01T00:00:00.000000Z");
    }
}
