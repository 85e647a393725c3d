//! SC0103 `invalid-argument-value`.

use crate::tensorflow::{self, Quote};
use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A literal that the argument cannot take, such as 0 for a count.
#[derive(Clone, Debug)]
pub struct InvalidArgumentValue {
    /// Name of the call without `!`.
    pub call: String,
    /// The argument.
    pub argument: String,
    /// The value as typed.
    pub given: String,
    /// What it must be, in words: `an integer ≥ 1`.
    pub expects: String,
    /// The place of the value.
    pub place: Place,
    /// A value that was probably meant, where one is near.
    pub replacement: Option<String>,
    /// The call's arguments; empty when raised at run time.
    pub arguments: Vec<ArgumentRow>,
}

impl InvalidArgumentValue {
    /// Stands for a value that is right in itself, but needs something beside it.
    const NOT_SHOWN: &'static str = "…";

    /// The argument with this value as it is written: `epochs = 3`, `Adam::new(1e-3)`, `.beta_1(0.9)`.
    fn written(&self, value: &str) -> String {
        match (self.call.strip_suffix("::new"), self.argument.as_str()) {
            (Some(optimizer), "learning_rate") => format!("{optimizer}::new({value})"),
            (Some(_), method) => format!(".{method}({value})"),
            (None, name) => format!("{name} = {value}"),
        }
    }

    /// The one line: `` `epochs = 0`: expected an integer ≥ 1 ``. The arguments of methods have no names.
    fn message(&self) -> String {
        let Self {
            call,
            argument,
            given,
            expects,
            ..
        } = self;
        let has_names = matches!(
            call.as_str(),
            "compile" | "fit" | "start" | "evaluate" | "add_lora"
        ) || call.contains("::");
        match (given.as_str(), has_names) {
            (Self::NOT_SHOWN, true) => format!("`{argument}` needs {expects}"),
            (Self::NOT_SHOWN, false) => format!("`{call}` needs {expects}"),
            (_, true) => format!("`{}`: expected {expects}", self.written(given)),
            (_, false) => format!("`{call}` expected {expects}, got {given}"),
        }
    }

    fn label(&self) -> String {
        match self.given == Self::NOT_SHOWN {
            true => format!("needs {}", self.expects),
            false => format!("expected {}", self.expects),
        }
    }

    /// What to write, where no value is near. What a value needs beside it is up to the caller.
    fn fix(&self) -> Option<String> {
        let is_switch = matches!(self.given.as_str(), "true" | "false");
        match self.argument.as_str() {
            "early_stopping" if is_switch => Some(
                "write after how many epochs without a better validation loss the run stops, as in `early_stopping = 3`; \
                 it needs `validation_data`"
                    .to_owned(),
            ),
            _ => (self.given != Self::NOT_SHOWN).then(|| format!("pass {}", self.expects)),
        }
    }

    /// Why a rate that can be written is still no good one.
    fn too_high(&self) -> Option<String> {
        /// From here on a step of Adam is larger than the weights it changes.
        const HIGH: f64 = 0.1;
        let optimizer = self.call.strip_suffix("::new")?;
        // The rate that was written, whatever is wrong with its sign or its type.
        let given = self.given.trim().trim_matches('"').trim_start_matches('-');
        let rate: f64 = given.trim().parse().ok()?;
        let is_adam = matches!(optimizer, "Adam" | "AdamW");
        (self.argument == "learning_rate" && is_adam && rate >= HIGH).then(|| {
            format!(
                "a rate of {rate:?} is too high: {optimizer} changes every weight by about the rate at every \
                 step, and weights are around 0.05; Keras's default is 1e-3, BERT is fine-tuned with 2e-5 to \
                 5e-5"
            )
        })
    }
}

impl Rule for InvalidArgumentValue {
    const PAGE: RulePage = RulePage {
        code: "SC0103",
        name: "invalid-argument-value",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A count of `compile!`, `fit!` or `evaluate!` (`steps_per_execution`, \
                `gradient_accumulation_steps`, `epochs`, `batch_size`, …) that is 0, negative, a fraction or a \
                string; a number of an optimizer outside its range, such as a negative rate. A count of 1 is \
                always accepted.",
        why: "A count of 0 has no meaning, and a fraction would have to be rounded silently.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 0)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 1)?;",
        tensorflow: tensorflow::page("SC0103"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let fix = self.fix();
        let diagnostic = Self::start(self.message())
            .label(self.place.clone(), self.label())
            .arguments(self.arguments.clone());
        let diagnostic = match &self.replacement {
            Some(value) => diagnostic.fix_edit(
                format!("write `{}`", self.written(value)),
                self.place.clone(),
                value.clone(),
            ),
            None => match fix {
                Some(fix) => diagnostic.fix(fix),
                None => diagnostic,
            },
        };
        let diagnostic = match self.too_high() {
            Some(note) => diagnostic.why(note),
            None => diagnostic,
        };
        match self.argument.as_str() {
            case @ "steps_per_execution" => diagnostic.tensorflow(Quote::case("SC0103", case)),
            // What is quoted is about 0.
            case @ "batch_size" if self.given.parse::<i64>().is_ok_and(|it| it <= 0) => {
                diagnostic.tensorflow(Quote::case("SC0103", case))
            }
            case @ "learning_rate" if self.given.trim_start().starts_with('-') => {
                diagnostic.tensorflow(Quote::case("SC0103", case))
            }
            _ => diagnostic,
        }
    }
}
