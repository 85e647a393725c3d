//! The settings of `%profile` and `%warnings` for a notebook. They live as long as the evaluator; a new cell process
//! does not change them.

use stratoscope_diagnostics::policy::{Policy, Verdict};
use stratoscope_diagnostics::{Diagnostic, Profile, policy};

/// How the diagnostics of a notebook are shown.
#[derive(Clone, Debug, Default)]
pub struct DiagnosticSettings {
    /// The version of TensorFlow whose messages the cards quote.
    pub profile: Option<Profile>,
    /// Which warnings are shown, silenced or denied.
    pub policy: Policy,
}

impl DiagnosticSettings {
    /// The diagnostic to show: an error if its code is denied; `None`: it is not shown. `line` is the line of the statement
    /// that raised it.
    pub fn judged(&mut self, diagnostic: Diagnostic, line: Option<usize>) -> Option<Diagnostic> {
        match self.policy.judge(&diagnostic, line) {
            Verdict::Show => Some(diagnostic),
            Verdict::Denied => Some(policy::denied(diagnostic)),
            Verdict::Repeated | Verdict::Silenced => None,
        }
    }
}
