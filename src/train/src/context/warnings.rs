//! What is done with the warnings of this process: each is shown by every call that finds it, notes once,
//! unless their code is silenced or denied.
//!
//! ```
//! use stratoscope_train::warnings;
//!
//! warnings::deny("SC0701"); // texts that are in both splits: `fit!` stops instead of warning
//! warnings::silence("SC0407");
//! warnings::reset("SC0407");
//! ```
//!
//! A notebook says `%warnings deny SC0701`; its kernel then calls [`deny_only`], and silences and
//! counts what it shows itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use stratoscope_diagnostics::policy::{Level, Policy, Verdict};
use stratoscope_diagnostics::{Diagnostic, Result, policy};

use crate::context::events::observer;

static POLICY: Mutex<Option<Policy>> = Mutex::new(None);

/// Makes errors of the warnings of this code: what would go on with a warning stops.
pub fn deny(code: &str) {
    with_policy(|policy| policy.set(code, Some(Level::Denied)));
}

/// Tells nothing of the warnings of this code.
pub fn silence(code: &str) {
    with_policy(|policy| policy.set(code, Some(Level::Silenced)));
}

/// Takes [`deny`] and [`silence`] back; what this code has told before is told once more.
pub fn reset(code: &str) {
    with_policy(|policy| policy.set(code, None));
}

/// Denies these codes and no others; what is silenced stays so.
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

/// A call of the user's begins: what an earlier one has shown may be shown again.
pub(crate) fn begin_call() {
    with_policy(Policy::begin);
}

/// Tells of a warning or a note, to whoever observes the process; the caller goes on.
///
/// # Errors
/// The warning itself, where its code is denied.
pub(crate) fn notice(found: Diagnostic) -> Result<()> {
    let observer = observer();
    match with_policy(|policy| policy.judge(&found, None)) {
        Verdict::Denied => return Err(Box::new(policy::denied(found))),
        Verdict::Silenced => {}
        Verdict::Repeated if !observer.counts_notices() => {}
        Verdict::Repeated | Verdict::Show => observer.notice(found),
    }
    Ok(())
}

fn with_policy<T>(use_it: impl FnOnce(&mut Policy) -> T) -> T {
    let mut policy: MutexGuard<'_, Option<Policy>> =
        POLICY.lock().unwrap_or_else(PoisonError::into_inner);
    use_it(policy.get_or_insert_default())
}

#[cfg(test)]
mod tests {
    use stratoscope_diagnostics::Severity;

    use super::*;

    /// The policy is the process's, so these codes are this test's own.
    #[test]
    fn a_denied_warning_is_the_error_of_the_call() {
        let warning = |code: &str| Diagnostic::new(code, Severity::Warning, "41 texts in both");
        notice(warning("SC9701")).expect("a warning lets the call go on");
        deny("SC9701");
        let told = notice(warning("SC9701")).expect_err("denied");
        assert_eq!(
            (told.code.as_str(), told.severity),
            ("SC9701", Severity::Error)
        );
        silence("SC9702");
        notice(warning("SC9702")).expect("silenced");
        deny_only(&["SC9702".to_owned()]);
        notice(warning("SC9701")).expect("no longer denied");
        notice(warning("SC9702")).expect_err("denied, though it was silenced");
        reset("SC9702");
        notice(warning("SC9702")).expect("told again");
    }
}
