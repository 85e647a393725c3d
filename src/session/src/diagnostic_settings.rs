//! What `%profile` and `%warnings` set for a notebook. Lives as long as the evaluator; a new cell
//! process changes nothing of it.

use stratoscope_diagnostics::policy::{Policy, Verdict};
use stratoscope_diagnostics::{Diagnostic, Profile, policy};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The version of TensorFlow whose words the cards quote.
    pub profile: Option<Profile>,
    /// What is done with warnings.
    pub policy: Policy,
}

impl Settings {
    /// The diagnostic as it is to be shown: an error if its code is denied. `None`: not at all.
    /// `line`: that of the statement that found it.
    pub fn judged(&mut self, found: Diagnostic, line: Option<usize>) -> Option<Diagnostic> {
        match self.policy.judge(&found, line) {
            Verdict::Show => Some(found),
            Verdict::Denied => Some(policy::denied(found)),
            Verdict::Repeated | Verdict::Silenced => None,
        }
    }
}
