//! How often a run should write a snapshot, and what is left of its time.
//!
//! A snapshot costs `d` seconds, and whatever was computed since the last one is lost with the run. With a mean time `M`
//! between failures, Young's first approximation of the best interval is `√(2·d·M)` (J. W. Young 1974, "A first order
//! approximation to the optimum checkpoint interval", Communications of the ACM 17, 530). Daly's, which is used here, holds
//! also where the interval is not small beside M (J. T. Daly 2006, "A higher order estimate of the optimum checkpoint
//! interval for restart dumps", Future Generation Computer Systems 22, 303, equation 37).

/// The seconds of work between two snapshots that lose the least time.
pub(super) fn best_interval(snapshot: f64, between_failures: f64) -> f64 {
    if snapshot >= 2.0 * between_failures {
        return between_failures;
    }
    let ratio = snapshot / (2.0 * between_failures);
    let young = (2.0 * snapshot * between_failures).sqrt();
    young * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - snapshot
}

/// The share of the time that is work which is not lost, with snapshots in this interval; Daly's equation 20. `restart`:
/// seconds until a run that has ended works again.
pub(super) fn useful_share(
    interval: f64,
    snapshot: f64,
    restart: f64,
    between_failures: f64,
) -> f64 {
    let of_mean = |seconds: f64| seconds / between_failures;
    let needed = between_failures * of_mean(restart).exp() * of_mean(interval + snapshot).exp_m1();
    interval / needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_youngs_where_snapshots_are_cheap() {
        let young = (2.0_f64 * 10.0 * 1e6).sqrt();
        let found = best_interval(10.0, 1e6);
        assert!((found / young - 1.0).abs() < 0.01, "{found} for {young}");
        // Of the paper: no interval is longer than the time between failures.
        assert_eq!(best_interval(500.0, 100.0), 100.0);
    }

    #[test]
    fn no_other_interval_leaves_more() {
        for (snapshot, mean) in [(5.0, 600.0), (60.0, 3600.0), (300.0, 86_400.0)] {
            let best = best_interval(snapshot, mean);
            let share = |interval: f64| useful_share(interval, snapshot, 30.0, mean);
            for factor in [0.25, 0.5, 0.8, 1.25, 2.0, 4.0] {
                assert!(
                    share(best) > share(factor * best),
                    "{snapshot}, {mean}, {factor}"
                );
            }
            assert!((0.0..1.0).contains(&share(best)));
        }
    }
}
