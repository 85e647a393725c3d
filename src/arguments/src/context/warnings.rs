//! What is done with warnings: a warning is shown by every call that finds it, a note once, unless their code is
//! silenced or denied.
//!
//! ```
//! use stratoscope_arguments::context::warnings;
//!
//! warnings::deny("SC0701"); // texts that are in both splits: `fit!` stops instead of warning
//! warnings::silence("SC0407");
//! warnings::reset("SC0407");
//! ```
//!
//! These functions set the policy of the current [`RunContext`]. In a notebook, `%warnings deny SC0701` does the
//! same: the kernel calls [`deny_only`], and silences and counts what it shows itself.

use stratoscope_diagnostics::policy::{Level, Policy, Verdict};
use stratoscope_diagnostics::{Diagnostic, Result, Severity, policy};

use super::RunContext;

/// Turns the warnings of this code into errors: the call stops instead of going on.
pub fn deny(code: &str) {
    with_policy(|policy| policy.set(code, Some(Level::Denied)));
}

/// Shows no warnings of this code.
pub fn silence(code: &str) {
    with_policy(|policy| policy.set(code, Some(Level::Silenced)));
}

/// Undoes [`deny`] and [`silence`]. A note of this code that was shown before is shown once more.
pub fn reset(code: &str) {
    with_policy(|policy| policy.set(code, None));
}

/// Denies these codes and no others; silenced codes stay silenced.
pub fn deny_only(codes: &[String]) {
    with_policy(|policy| {
        for code in policy.codes(Level::Denied) {
            policy.set(&code, None);
        }
        for code in codes {
            policy.set(code, Some(Level::Denied));
        }
    });
}

/// A call of the user's begins: warnings that an earlier call has shown may be shown again.
pub fn begin_call() {
    // Those of an earlier call are of no run of this one.
    RunContext::current().take_noticed();
    with_policy(Policy::begin);
}

/// Shows a warning or a note to the observer of the current context; the caller goes on.
///
/// # Errors
/// The warning itself, where its code is denied.
pub fn notice(found: Diagnostic) -> Result<()> {
    let context = RunContext::current();
    let observer = context.observer();
    let verdict = context.warnings().judge(&found, None);
    match verdict {
        Verdict::Denied => return Err(Box::new(policy::denied(found))),
        Verdict::Silenced => {}
        Verdict::Repeated if !observer.counts_notices() => {}
        Verdict::Repeated | Verdict::Show => {
            if found.severity == Severity::Warning {
                context.note(&found);
            }
            observer.notice(found);
        }
    }
    Ok(())
}

fn with_policy<T>(use_it: impl FnOnce(&mut Policy) -> T) -> T {
    use_it(&mut RunContext::current().warnings())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_warning_is_the_error_of_the_call() {
        let _entered = RunContext::new().enter();
        let warning = |code: &str| Diagnostic::new(code, Severity::Warning, "41 texts in both");
        notice(warning("SC9701")).expect("a warning lets the call go on");
        deny("SC9701");
        let finding = notice(warning("SC9701")).expect_err("denied");
        assert_eq!(
            (finding.code.as_str(), finding.severity),
            ("SC9701", Severity::Error)
        );
        silence("SC9702");
        notice(warning("SC9702")).expect("silenced");
        deny_only(&["SC9702".to_owned()]);
        notice(warning("SC9701")).expect("no longer denied");
        notice(warning("SC9702")).expect_err("denied, though it was silenced");
        reset("SC9702");
        notice(warning("SC9702")).expect("shown again");
    }
}
