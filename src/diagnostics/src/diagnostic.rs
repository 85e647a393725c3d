//! One value for every error and warning the product shows. It is renderer-neutral: facts, places
//! and fixes, no markup. [`crate::render`] turns it into HTML, ANSI, plain text or JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::unhandled::Watch;
use crate::{Edit, Fix, FixKind, Profile};
use stratoscope_render::text;

mod answer;
mod formats;
mod strategies;

pub use answer::Answer;
pub use strategies::UnnamedStrategy;

/// A range of bytes in the text of the cell as its author typed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CellSpan {
    /// First byte, counted from 0.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The cell stops.
    Error,
    /// The cell goes on; something is probably not what was meant.
    Warning,
    /// The cell goes on; worth knowing.
    Note,
}

/// Where a label points. A process that runs cells does not know their text, so it names the
/// place; whoever has the text resolves the name to a span (see [`crate::check::resolve`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Bytes of the cell.
    Span(CellSpan),
    /// The argument `name` (its name and value) of a call of `call!` or `call(…)`.
    Argument {
        /// Name without `!`: `compile`, `fit`, `evaluate`, `AdamW::new`.
        call: String,
        /// The argument's name as typed.
        name: String,
    },
    /// The value of a field in an argument of a call: `false` in `loss = L { from_logits: false }`.
    Field {
        /// As in [`Self::Argument`].
        call: String,
        /// The argument.
        argument: String,
        /// The field.
        field: String,
    },
    /// An operand of a call, if it is written as this number: 4 in `Dense(4)`. Of several such calls
    /// the last one before or in the statement at `line` is meant.
    Operand {
        /// The last name of its path: `from_pretrained`, `Dense`.
        call: String,
        /// Counted from 0.
        index: usize,
        /// The number.
        value: usize,
        /// The line of the statement that holds the call, counted from 1.
        line: usize,
    },
    /// The first operand of `call!`: the model.
    Model {
        /// Name without `!`.
        call: String,
    },
    /// The whole call.
    Call {
        /// Name without `!`.
        call: String,
    },
    /// A line of the cell, counted from 1.
    Line(usize),
    /// A place in a file, such as the row of a dataset.
    File {
        /// The path as the user gave it.
        path: String,
        /// Counted from 1.
        line: Option<usize>,
    },
}

impl Place {
    /// The bytes `start..end` of the cell.
    pub fn span(start: usize, end: usize) -> Self {
        Self::Span(CellSpan { start, end })
    }

    /// The argument `name` of `call`.
    pub fn argument(call: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Argument {
            call: call.into(),
            name: name.into(),
        }
    }

    /// A field in the argument `argument` of `call`.
    pub fn field(call: &str, argument: &str, field: &str) -> Self {
        Self::Field {
            call: call.to_owned(),
            argument: argument.to_owned(),
            field: field.to_owned(),
        }
    }

    /// The model that `call` was given.
    pub fn model(call: impl Into<String>) -> Self {
        Self::Model { call: call.into() }
    }

    /// The whole of `call`.
    pub fn call(call: impl Into<String>) -> Self {
        Self::Call { call: call.into() }
    }

    /// A line of a file, counted from 1.
    pub fn file(path: impl Into<String>, line: Option<usize>) -> Self {
        Self::File {
            path: path.into(),
            line,
        }
    }
}

/// A place and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// A few words, shown beside the underline.
    pub text: String,
}

/// How an argument was passed, for the table of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentState {
    /// Written in the call, and accepted.
    Given,
    /// Not written: the default holds.
    Default,
    /// Written and wrong: unknown name, wrong value or in conflict.
    Invalid,
}

/// One row of the table of parameters beside what was passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentRow {
    /// The argument's name.
    pub name: String,
    /// Its type in words: `optimizer`, `integer ≥ 1`.
    pub expects: String,
    /// Its default in words.
    pub default: String,
    /// The text that was passed.
    pub given: Option<String>,
    /// How it stands.
    pub state: ArgumentState,
}

/// A line of evidence: what was measured or seen, such as the offending rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What the value is.
    pub name: String,
    /// The value, with its unit.
    pub value: String,
}

/// An error, a warning or a note, as shown to its reader.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Stable code, such as `SC0102`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// One line that stands alone; lower case, no final dot, names in backticks.
    pub message: String,
    /// Places, the first one primary.
    pub labels: Vec<Label>,
    /// Why this is so, a sentence each.
    pub why: Vec<String>,
    /// What was measured or seen.
    pub evidence: Vec<Evidence>,
    /// The parameters beside what was passed; empty where no call is at fault.
    pub arguments: Vec<ArgumentRow>,
    /// Fixes, best first.
    pub fixes: Vec<Fix>,
    /// What TensorFlow does with the same program.
    pub tensorflow: Option<String>,
    /// The same for each version whose exact words are known; a card shows the one of `profile`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The version to be shown: whoever shows a diagnostic sets it, whoever finds it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// A rendered placement to show in the card (HTML, plain), as SC0201 does.
    pub figure: Option<Figure>,
    /// What else is wrong with the same call, each with a card of its own after this one's. Only
    /// this one is the error of the cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Diagnostic>,
    /// The strategies that its texts name and that only the text of the cell has a variable for: see
    /// [`name_strategies`](crate::check::name_strategies).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnamed: Vec<UnnamedStrategy>,
    /// Whether somebody has looked at it: see [`unhandled`](crate::unhandled).
    #[serde(skip)]
    #[doc(hidden)]
    pub watch: Watch,
}

/// Something drawn that belongs to the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// Static HTML with literal inline styles, escaped by whoever made it.
    pub html: String,
    /// The same as text.
    pub plain: String,
}

impl Diagnostic {
    /// Whether a fix of it has edits, which a front end can apply.
    pub fn has_edits(&self) -> bool {
        self.fixes.iter().any(|fix| !fix.edits.is_empty())
    }

    /// Whether it is displayed as a card, so that the error of the cell needs not repeat it: a diagnostic of ours, or one of
    /// rustc's with a fix that can be applied.
    pub fn is_shown_as_card(&self) -> bool {
        self.code.starts_with("SC") || self.has_edits()
    }

    /// A diagnostic that has only a code and its one line.
    pub fn new(code: &str, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            severity,
            message: message.into(),
            labels: Vec::new(),
            why: Vec::new(),
            evidence: Vec::new(),
            arguments: Vec::new(),
            fixes: Vec::new(),
            tensorflow: None,
            answers: Vec::new(),
            profile: None,
            figure: None,
            related: Vec::new(),
            unnamed: Vec::new(),
            watch: Watch::default(),
        }
    }

    /// Adds a place; the first one added is the primary one.
    pub fn label(mut self, place: Place, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            place,
            text: text.into(),
        });
        self
    }

    /// Adds a sentence to the reasons.
    pub fn why(mut self, text: impl Into<String>) -> Self {
        self.why.push(text.into());
        self
    }

    /// Adds a measured fact.
    pub fn evidence(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.evidence.push(Evidence {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    /// Adds a suggestion: ``did you mean `name`?``.
    pub fn suggest(mut self, name: impl fmt::Display) -> Self {
        self.fixes.push(Fix {
            kind: FixKind::Suggestion,
            title: format!("did you mean `{name}`?"),
            edits: Vec::new(),
        });
        self
    }

    /// Adds a suggestion that replaces the text at a place.
    pub fn suggest_edit(
        self,
        name: impl fmt::Display,
        place: Place,
        replacement: impl Into<String>,
    ) -> Self {
        let mut diagnostic = self.suggest(name);
        if let Some(fix) = diagnostic.fixes.last_mut() {
            fix.edits.push(Edit {
                place,
                replacement: replacement.into(),
            });
        }
        diagnostic
    }

    /// As [`Self::suggest_edit`] for a place in the text. A place by name is a whole argument or call, which the edit would
    /// replace: then the suggestion is in words.
    pub fn suggest_edit_of_span(
        self,
        name: impl fmt::Display,
        place: Place,
        replacement: impl Into<String>,
    ) -> Self {
        match place {
            Place::Span(_) => self.suggest_edit(name, place, replacement),
            _ => self.suggest(name),
        }
    }

    /// Adds a fix in words.
    pub fn fix(mut self, title: impl Into<String>) -> Self {
        self.fixes.push(Fix {
            kind: FixKind::Change,
            title: title.into(),
            edits: Vec::new(),
        });
        self
    }

    /// As [`Self::fix_edit`] for a place in the text; in words for a place by name, as with
    /// [`Self::suggest_edit_of_span`].
    pub fn fix_edit_of_span(
        self,
        title: impl Into<String>,
        place: Place,
        replacement: impl Into<String>,
    ) -> Self {
        match place {
            Place::Span(_) => self.fix_edit(title, place, replacement),
            _ => self.fix(title),
        }
    }

    /// Adds a fix that is one edit.
    pub fn fix_edit(
        mut self,
        title: impl Into<String>,
        place: Place,
        replacement: impl Into<String>,
    ) -> Self {
        let edits = vec![Edit {
            place,
            replacement: replacement.into(),
        }];
        self.fixes.push(Fix {
            kind: FixKind::Change,
            title: title.into(),
            edits,
        });
        self
    }

    /// Sets the table of arguments.
    pub fn arguments(mut self, rows: Vec<ArgumentRow>) -> Self {
        self.arguments = rows;
        self
    }

    /// Sets what TensorFlow does: a [`Quote`](crate::tensorflow::Quote) of the tables. An empty one says
    /// nothing.
    pub fn tensorflow(mut self, quote: impl Into<String>) -> Self {
        self.tensorflow = Some(quote.into()).filter(|text| !text.is_empty());
        self
    }

    /// Sets what each version of TensorFlow does.
    pub fn with_answers(mut self, answer: impl Fn(Profile) -> Answer) -> Self {
        self.answers = Profile::ALL.into_iter().map(answer).collect();
        self
    }

    /// Chooses the version whose answer is shown, here and in what is related.
    pub fn in_profile(mut self, profile: Option<Profile>) -> Self {
        self.profile = profile;
        let related = self.related.into_iter();
        self.related = related.map(|other| other.in_profile(profile)).collect();
        self
    }

    /// The answer of the chosen version, where it is known.
    pub fn answer(&self) -> Option<&Answer> {
        let profile = self.profile?;
        self.answers.iter().find(|answer| answer.profile == profile)
    }

    /// Adds a drawing.
    pub fn figure(mut self, figure: Figure) -> Self {
        self.figure = Some(figure);
        self
    }

    /// Adds something else that is wrong with the same call.
    pub fn related(mut self, other: Diagnostic) -> Self {
        self.related.push(other);
        self
    }

    /// The value of Jupyter's `evalue`: the message and, where there is one, the did-you-mean.
    pub fn one_line(&self) -> String {
        match self.fixes.first() {
            Some(fix) if fix.kind == FixKind::Suggestion => {
                text::visible(&format!("{}; {}", self.message, fix.title))
            }
            _ => text::visible(&self.message),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// What every fallible public function of the project returns.
pub type Result<T, E = Box<Diagnostic>> = std::result::Result<T, E>;
