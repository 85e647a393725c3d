//! What a step does: where its time goes for the host, which kernels the device runs, and how long the device works.

use std::error::Error;
use std::time::Instant;

use stratoscope_gpu::{count_launches, time_launches};

use crate::training::{WARMUP, arguments, model};
use crate::{Arguments, median, milliseconds, network, row};

/// Kernels in the table; the log has all.
const SHOWN_KERNELS: usize = 5;
/// Steps whose kernels are timed.
const TIMED_STEPS: usize = 4;

pub fn profile(asked: &Arguments) -> Result<(), Box<dyn Error>> {
    let model = model(asked)?;
    let steps = WARMUP + 2 * asked.steps + 1 + TIMED_STEPS;
    let data = network::labelled(asked.batch * steps, asked.seq);
    let run = model.start(&data, arguments(asked))?;
    run.step(WARMUP)?;
    let (mut seconds, mut of_thread, mut of_process) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..asked.steps {
        let begun = (Instant::now(), processor_time(true), processor_time(false));
        run.step(1)?;
        seconds.push(begun.0.elapsed().as_secs_f64());
        of_thread.push(processor_time(true) - begun.1);
        of_process.push(processor_time(false) - begun.2);
    }
    let step = median(seconds);
    let profile = run.profile(asked.steps)?;
    println!("{}", profile.to_plain());
    let (outcome, launches) = count_launches(|| run.step(1));
    outcome?;
    let (outcome, times) = time_launches(|| run.step(TIMED_STEPS));
    outcome?;
    let device = times.time().as_secs_f64() / TIMED_STEPS as f64;

    let mut kernels: Vec<_> = times.by_kernel.iter().collect();
    kernels.sort_by_key(|(_, kernel)| std::cmp::Reverse(kernel.time));
    for (name, kernel) in &kernels {
        let each = kernel.time.as_secs_f64() / TIMED_STEPS as f64;
        println!(
            "{:10.3} ms {:6} launches a step  {name}",
            each * 1e3,
            kernel.launches / TIMED_STEPS
        );
    }
    let what = |of: &str| format!("{of}; train {}", asked.shape());
    row(
        &what("a step, and the device's work in it"),
        &format!(
            "{}; the device works {} ({:.0} % of it, by {}), {} launches",
            milliseconds(step),
            milliseconds(device),
            100.0 * device / step,
            match times.by_device {
                true => "its own clock",
                false => "the host's clock, submission included",
            },
            launches.total(),
        ),
    );
    if times.unmeasured > 0 {
        let of = format!("{} of the timed steps", times.unmeasured);
        row(&what("launches that the device did not time"), &of);
    }
    row(
        &what("processor time of a step"),
        &format!(
            "{} of the thread that drives it, {} of all threads",
            milliseconds(median(of_thread)),
            milliseconds(median(of_process))
        ),
    );
    let phases: Vec<String> = (profile.phases.iter())
        .map(|it| format!("{} {}", it.phase.words(), milliseconds(it.seconds)))
        .collect();
    row(&what("phases by the host's clock"), &phases.join(", "));
    row(&what("verdict of run.profile"), &profile.verdict.sentence);
    let most = kernels.iter().take(SHOWN_KERNELS).map(|(name, kernel)| {
        let each = kernel.time.as_secs_f64() / TIMED_STEPS as f64;
        format!("`{name}` {}", milliseconds(each))
    });
    let most: Vec<String> = most.collect();
    row(&what("kernels that take most, in a step"), &most.join(", "));
    Ok(())
}

/// The processor time so far of this thread, or of all threads of the process; 0 where it is not known.
fn processor_time(of_thread: bool) -> f64 {
    #[cfg(target_os = "linux")]
    {
        let clock = match of_thread {
            true => libc::CLOCK_THREAD_CPUTIME_ID,
            false => libc::CLOCK_PROCESS_CPUTIME_ID,
        };
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the clock writes a time to a valid place.
        if unsafe { libc::clock_gettime(clock, &mut time) } == 0 {
            return time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        }
    }
    let _ = of_thread;
    0.0
}
