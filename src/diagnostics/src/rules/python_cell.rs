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
        why: "The names of the DSL are Keras's, so that cells are pasted from there; but the language is Rust, \
              and rustc's errors about Python help nobody.",
        bad: "for number in range(3):\n    print(number)",
        good: "for number in 0..3 {\n    println!(\"{number}\");\n}",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start("this is Python; the cells of this notebook are Rust")
            .label(self.place.clone(), "Python")
            .why(
                "calls and arguments have Keras's names, the language is Rust: `let` binds a variable, `{ … }` \
                 is a block, `;` ends a statement, a `?` hands an error on",
            );
        if self.forms.is_empty() {
            return told.fix("write the cell in Rust; `%help` and Tab show what there is");
        }
        self.forms.iter().fold(told, |told, (python, rust)| {
            told.fix(format!("`{}`: {rust}", text::excerpt(python, 40)))
        })
    }
}
