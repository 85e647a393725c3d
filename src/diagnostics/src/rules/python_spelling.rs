//! SC0127 `python-spelling`.

use crate::{Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage};

/// A word or a sign of Python in a cell that is Rust otherwise.
#[derive(Clone, Debug)]
pub struct PythonSpelling {
    /// The first one, as typed.
    pub given: String,
    /// What Rust has in its place, a sentence.
    pub reason: String,
    /// Where all of them stand.
    pub places: Vec<Place>,
    /// What to write.
    pub fix: Fix,
}

impl Rule for PythonSpelling {
    const PAGE: RulePage = RulePage {
        code: "SC0127",
        name: "python-spelling",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A Rust cell with Python syntax in it: `'text'`, `f\"{x}\"`, `# comment`, `and`, `or`, `not`, `elif`, `None` \
                for an argument.",
        why: "rustc reads `'text'` as a character literal that is too long and `#` as an attribute.",
        bad: "let name = 'all-MiniLM-L6-v2';",
        good: "let name = \"all-MiniLM-L6-v2\";",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!("`{}` is Python syntax", self.given));
        for place in &self.places {
            diagnostic = diagnostic.label(place.clone(), "Python");
        }
        let mut diagnostic = diagnostic.why(self.reason.clone());
        diagnostic.fixes.push(self.fix.clone());
        diagnostic
    }
}
