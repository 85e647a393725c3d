//! SC1013 `python-cell`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A cell of Python.
#[derive(Clone, Debug)]
pub struct PythonCell {
    /// The first line that shows it, as typed.
    pub line: String,
    /// Where that stands.
    pub place: Place,
    /// Lines of Python, and what is written here in their place.
    pub forms: Vec<(String, String)>,
}

impl Rule for PythonCell {
    const PAGE: RulePage = RulePage {
        code: "SC1013",
        name: "python-cell",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A cell of Python: `import`, `def`, `with …:`, indented blocks.",
        why: "The names of the DSL are Keras's, so Keras cells are pasted into notebooks; but the language is \
              Rust, and rustc's errors about Python code do not help.",
        bad: "for number in range(3):\n    print(number)",
        good: "for number in 0..3 {\n    println!(\"{number}\");\n}",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Self::start("this is Python; the cells of this notebook are Rust")
            .label(self.place.clone(), "Python")
            .why(
                "calls and arguments have Keras's names, the language is Rust: `let` binds a variable, `{ … }` \
                 is a block, `;` ends a statement, `?` returns an error",
            );
        if self.forms.is_empty() {
            return diagnostic
                .fix("write the cell in Rust; `%help` and Tab show what is available");
        }
        self.forms
            .iter()
            .fold(diagnostic, |diagnostic, (python, rust)| {
                diagnostic.fix(format!("`{}`: {rust}", text::excerpt(python, 40)))
            })
    }
}
