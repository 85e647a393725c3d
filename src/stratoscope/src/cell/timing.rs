//! `%time`, `%%time` and `%timeit`: the time that cells take to run, without that to compile them.

use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// `%timeit` repeats a run of loops this often.
const RUNS: u32 = 7;
/// A run of loops takes at least this long, if one loop does not take longer.
const SHORTEST_RUN: Duration = Duration::from_millis(100);

thread_local! {
    static CLOCK: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// The cell's own statements begin.
pub fn clock() {
    CLOCK.set(Some((Instant::now(), processor_time())));
}

/// They are over: prints what they took.
pub fn clocked() {
    if let Some((began, processor)) = CLOCK.take() {
        println!(
            "wall time {}, processor time {}",
            told(began.elapsed()),
            told(processor_time().saturating_sub(processor))
        );
    }
}

/// Runs `body` until its time is known, and prints it.
///
/// # Errors
/// The first of the body.
pub fn timeit(mut body: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let mut run = |loops: u32| -> Result<Duration, Box<dyn Error>> {
        let began = Instant::now();
        for _ in 0..loops {
            black_box(&mut body)()?;
        }
        Ok(began.elapsed())
    };
    let mut loops = 1;
    let mut last = run(loops)?;
    while last < SHORTEST_RUN && loops < 1_000_000_000 {
        loops *= 10;
        last = run(loops)?;
    }
    let mut seconds = vec![last.as_secs_f64() / f64::from(loops)];
    for _ in 1..RUNS {
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
        told(Duration::from_secs_f64(mean)),
        told(Duration::from_secs_f64(variance.sqrt()))
    );
    Ok(())
}

/// What all threads of this process have computed.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a plain system call that writes the one value.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Three digits and a unit.
fn told(time: Duration) -> String {
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
            assert_eq!(told(Duration::from_nanos(nanoseconds)), expected);
        }
    }

    #[test]
    fn the_first_error_ends_the_loops() {
        let mut called = 0;
        let result = timeit(|| {
            called += 1;
            Err("no".into())
        });
        assert!(result.is_err());
        assert_eq!(called, 1);
    }
}
