//! The request to stop is the process's: one test has all of it.

use stratoscope_diagnostics::work::request;
use stratoscope_evaluation::over_seeds;

#[test]
fn after_an_interrupt_the_trials_that_have_ended_are_the_result() {
    let found = over_seeds(0..5, |seed| {
        if seed == 2 {
            request();
        }
        Ok(seed as f64)
    });
    let found = found.expect("two seeds have ended");
    assert_eq!((found.runs.len(), found.left_out), (2, 3));
    assert!(found.to_plain().ends_with("interrupted: 3 seeds not run\n"));

    let first = over_seeds(0..5, |_| {
        request();
        Ok(0.0)
    });
    assert_eq!(first.expect_err("none has ended").code, "SC0520");
}
