//! SC1015 `variable-in-function`.

use crate::{Diagnostic, Edit, Fix, FixKind, Place, Rule, RulePage, Severity, Stage};

/// A function that uses a variable of the notebook.
#[derive(Clone, Debug)]
pub struct VariableInFunction {
    /// The function.
    pub function: String,
    /// The variable.
    pub name: String,
    /// The parameter that would pass it, such as `data: &Dataset`.
    pub parameter: String,
    /// Where the variable is used.
    pub place: Place,
    /// The function's name.
    pub function_place: Place,
    /// Its signature, changed; empty where calls would have to change too.
    pub edits: Vec<Edit>,
}

impl Rule for VariableInFunction {
    const PAGE: RulePage = RulePage {
        code: "SC1015",
        name: "variable-in-function",
        severity: Severity::Error,
        stage: Stage::Start,
        finds: "A function that uses a variable of the notebook.",
        why: "A Rust function sees only its parameters, not the variables around it. A Python function sees both.",
        bad: "let numbers = vec![1.0, 2.0];\nfn total() -> f64 { numbers.iter().sum() }",
        good: "let numbers = vec![1.0, 2.0];\nfn total(numbers: &Vec<f64>) -> f64 { numbers.iter().sum() }",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Self::start(format!(
            "the function `{}` does not see the variable `{}` of the notebook",
            self.function, self.name
        ))
        .label(self.place.clone(), "a variable of the notebook")
        .label(self.function_place.clone(), "this function")
        .why("a function sees its parameters only; a closure in one cell sees the variables around it, too");
        diagnostic.fixes.push(Fix {
            kind: FixKind::Change,
            title: format!(
                "pass it: `fn {}({}) {{ … }}`, and to its calls as well",
                self.function, self.parameter
            ),
            edits: self.edits.clone(),
        });
        diagnostic
    }
}
