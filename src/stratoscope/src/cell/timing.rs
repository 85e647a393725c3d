//! `%time`, `%%time` and `%timeit`: the time that a cell runs, without its compilation.

use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use stratoscope_workers::processor_time;

/// Number of runs of `%timeit`.
const RUNS: u32 = 7;
/// The least duration of a run: it repeats the body until then.
const SHORTEST_RUN: Duration = Duration::from_millis(100);

thread_local! {
    static CLOCK: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// Starts the clock, before the statements of the cell.
pub fn clock() {
    CLOCK.set(Some((Instant::now(), processor_time())));
}

/// Prints the time since [`clock`].
pub fn clocked() {
    if let Some((began, processor)) = CLOCK.take() {
        println!(
            "wall time {}, processor time {}",
            in_words(began.elapsed()),
            in_words(processor_time().saturating_sub(processor))
        );
    }
}

/// Runs `body` repeatedly and prints its mean time: `loops` times in each of `runs` runs, or as often as its time needs.
///
/// # Errors
/// The first error of the body.
pub fn timeit(
    loops: Option<u32>,
    runs: Option<u32>,
    mut body: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let wanted = loops;
    let mut run = |loops: u32| -> Result<Duration, Box<dyn Error>> {
        let began = Instant::now();
        for _ in 0..loops {
            black_box(&mut body)()?;
        }
        Ok(began.elapsed())
    };
    let mut loops = wanted.unwrap_or(1);
    let mut last = run(loops)?;
    while wanted.is_none() && last < SHORTEST_RUN && loops < 1_000_000_000 {
        loops *= 10;
        last = run(loops)?;
    }
    let mut seconds = vec![last.as_secs_f64() / f64::from(loops)];
    for _ in 1..runs.unwrap_or(RUNS) {
        seconds.push(run(loops)?.as_secs_f64() / f64::from(loops));
        if super::interrupted() {
            break;
        }
    }
    let count = seconds.len() as f64;
    let mean = seconds.iter().sum::<f64>() / count;
    let variance = seconds.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count;
    println!(
        "{} ± {} per loop (mean ± standard deviation of {count} runs, {loops} loops each)",
        in_words(Duration::from_secs_f64(mean)),
        in_words(Duration::from_secs_f64(variance.sqrt()))
    );
    Ok(())
}

/// Three digits and a unit.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let digits = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        for (nanoseconds, expected) in [
            (0, "0.00 ns"),
            (1, "1.00 ns"),
            (1_500, "1.50 µs"),
            (23_450_000, "23.4 ms"),
            (123_450_000_000, "123 s"),
        ] {
            assert_eq!(in_words(Duration::from_nanos(nanoseconds)), expected);
        }
    }

    #[test]
    fn code_is_repeated_as_often_as_options_say() {
        let mut called = 0;
        let result = timeit(Some(3), Some(2), || {
            called += 1;
            Ok(())
        });
        assert!(result.is_ok());
        assert_eq!(called, 6);
    }

    #[test]
    fn the_first_error_ends_the_runs() {
        let mut called = 0;
        let result = timeit(None, None, || {
            called += 1;
            Err("no".into())
        });
        assert!(result.is_err());
        assert_eq!(called, 1);
    }
}
