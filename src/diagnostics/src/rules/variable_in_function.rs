//! SC1015 `variable-in-function`.

use crate::{Diagnostic, Edit, Fix, FixKind, Place, Rule, RulePage, Severity, Stage};

/// A function that uses a variable of the notebook.
#[derive(Clone, Debug)]
pub struct VariableInFunction {
    /// The function.
    pub function: String,
    /// The variables.
    pub names: Vec<String>,
    /// The parameters that would pass them, such as `data: &Dataset`.
    pub parameters: String,
    /// Where the variables are used, each at its first place.
    pub places: Vec<Place>,
    /// The function's name.
    pub function_place: Place,
    /// Its signature and its calls, changed; empty if a call is not in the cell's text.
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
        let quoted: Vec<String> = self.names.iter().map(|it| format!("`{it}`")).collect();
        let (word, all, it) = match quoted.as_slice() {
            [one] => ("variable", one.clone(), "it"),
            several => {
                let (last, first) = several
                    .split_last()
                    .map_or(("", several), |(last, first)| (last.as_str(), first));
                (
                    "variables",
                    format!("{} and {last}", first.join(", ")),
                    "them",
                )
            }
        };
        let diagnostic = Self::start(format!(
            "the function `{}` does not see the {word} {all} of the notebook",
            self.function
        ));
        let places = self.places.iter();
        let mut diagnostic = places.fold(diagnostic, |diagnostic, place| {
            diagnostic.label(place.clone(), "a variable of the notebook")
        })
        .label(self.function_place.clone(), "this function")
        .why("a function sees its parameters only; a closure in one cell sees the variables around it, too");
        diagnostic.fixes.push(Fix {
            kind: FixKind::Change,
            title: format!(
                "pass {it}: `fn {}({}) {{ … }}`, and to its calls as well",
                self.function, self.parameters
            ),
            edits: self.edits.clone(),
        });
        diagnostic
    }
}
