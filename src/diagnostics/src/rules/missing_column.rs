//! SC0313 `missing-column`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A column that the dataset was asked for and does not have.
#[derive(Clone, Debug)]
pub struct MissingColumn {
    /// The column asked for: `label`.
    pub column: String,
    /// The columns that are there.
    pub found: Vec<String>,
    /// The file.
    pub path: String,
    /// The function that reads the file: `Dataset::csv`; `None` where data in memory has no such column.
    pub reader: Option<String>,
}

/// Names of columns that often hold the text, the most common first.
const TEXTS: &[&str] = &[
    "text",
    "sentence",
    "review",
    "content",
    "message",
    "comment",
    "tweet",
    "body",
    "document",
    "description",
    "question",
    "title",
    "headline",
    "sms",
    "v2",
];
/// Names of columns that often hold the label.
const LABELS: &[&str] = &[
    "label",
    "labels",
    "sentiment",
    "target",
    "class",
    "category",
    "rating",
    "stars",
    "score",
    "topic",
    "tag",
    "intent",
    "emotion",
    "polarity",
    "y",
    "v1",
];

impl MissingColumn {
    /// The first column of one of these names.
    fn named(&self, names: &[&str]) -> Option<&str> {
        let found = names.iter().find_map(|name| {
            let is_it = |column: &&String| column.eq_ignore_ascii_case(name);
            self.found.iter().find(is_it)
        });
        found.map(String::as_str)
    }

    /// Whether the first line of a table is a row: of its fields none is a usual name, and one is a sentence or a number.
    fn has_no_header(&self) -> bool {
        let reader = self.reader.as_deref().unwrap_or_default();
        let is_table = ["::csv", "::tsv"].iter().any(|it| reader.contains(it));
        let is_value = |field: &String| {
            field.split_whitespace().count() >= 3 || field.trim().parse::<f64>().is_ok()
        };
        let is_named = self.named(TEXTS).or(self.named(LABELS)).is_some();
        is_table && !is_named && self.found.iter().any(is_value)
    }

    /// Whether a label is missing and no other column can hold it: numbers of rows do not.
    fn is_unlabelled(&self) -> bool {
        const NUMBERS: [&str; 6] = ["", "id", "idx", "index", "guid", "uid"];
        let text = self.named(TEXTS);
        let mut others = self.found.iter().filter(|it| Some(it.as_str()) != text);
        let is_number = |it: &String| {
            let name = it.to_lowercase();
            NUMBERS.contains(&name.as_str()) || name.starts_with("unnamed")
        };
        self.column == "label" && text.is_some() && others.all(is_number)
    }

    /// The columns that probably hold the text and the label.
    fn probable(&self) -> Option<[&str; 2]> {
        let beside = |taken: &str| {
            let mut others = self.found.iter().filter(|column| *column != taken);
            others.next().map(String::as_str)
        };
        if self.is_unlabelled() {
            return None;
        }
        match (self.named(TEXTS), self.named(LABELS)) {
            (Some(text), Some(label)) => Some([text, label]),
            (Some(text), None) => Some([text, beside(text)?]),
            (None, Some(label)) => Some([beside(label)?, label]),
            (None, None) => match &self.found[..] {
                [text, label, ..] => Some([text, label]),
                _ => None,
            },
        }
    }

    /// The call that names the columns of the file.
    fn call(&self) -> Option<String> {
        let reader = self.reader.as_deref()?;
        let takes_columns = ["csv", "tsv", "jsonl", "parquet", "arrow"];
        let format = reader.split("::").nth(1)?.trim_end_matches("_with");
        let [text, label] = self.probable()?;
        takes_columns.contains(&format).then(|| {
            format!(
                "{}_with({:?}, &Columns::new().text({text:?}).label({label:?}))?",
                reader.trim_end_matches("_with"),
                self.path
            )
        })
    }

    /// What separates the fields of a header that was read as one column.
    fn separator(&self) -> Option<char> {
        match &self.found[..] {
            [only] => [';', '\t', ',', '|']
                .into_iter()
                .find(|sign| only.contains(*sign)),
            _ => None,
        }
    }

    /// The ways out, best first.
    fn ways_out(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        if let Some(sign) = self.separator() {
            let shown = if sign == '\t' {
                "a tab".to_owned()
            } else {
                format!("`{sign}`")
            };
            let is_stream = self
                .reader
                .as_ref()
                .is_some_and(|it| it.starts_with("Stream"));
            let fix = match (sign, is_stream) {
                (',', true) => "read it by `Stream::csv(…)?`",
                (',', false) => "read it by `Dataset::csv(…)?`",
                ('\t', true) => "read it by `Stream::tsv(…)?`",
                ('\t', false) => "read it by `Dataset::tsv(…)?`",
                _ => "read it by `Dataset::csv(…)?`, which sees the separator",
            };
            return diagnostic
                .why(format!("its fields are separated by {shown}"))
                .fix(fix);
        }
        if self.has_no_header() {
            let names = match self.found.len() {
                2 => "text,label".to_owned(),
                others => vec!["text", "label"]
                    .into_iter()
                    .chain(vec!["other"; others.max(2) - 2])
                    .collect::<Vec<_>>()
                    .join(","),
            };
            return diagnostic
                .why("its first line looks like a row: the file has no header")
                .fix(format!(
                    "write the names of the columns above it: `!sed -i '1i {names}' {:?}`",
                    self.path
                ));
        }
        if self.is_unlabelled()
            && let Some(text) = self.named(TEXTS)
        {
            diagnostic = diagnostic.fix(format!(
                "read it without labels, to predict them: `{}_with({:?}, &Columns::new().text({text:?}).unlabelled())?`",
                self.reader.as_deref().unwrap_or_default().trim_end_matches("_with"),
                self.path
            ));
        }
        if let Some(call) = self.call() {
            diagnostic = diagnostic.fix(format!("name the columns: `{call}`"));
        }
        diagnostic.fix(match &self.reader {
            Some(_) => format!("or rename the column to `{}`", self.column),
            None => format!(
                "rename the column to `{}`, or name the column that is meant",
                self.column
            ),
        })
    }
}

impl Rule for MissingColumn {
    const PAGE: RulePage = RulePage {
        code: "SC0313",
        name: "missing-column",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "A dataset without a requested column, such as the labels.",
        why: "Without labels there is nothing to learn, and a text column used as the label is noise.",
        bad: "let train = Dataset::tsv(\"reviews.tsv\")?; // columns: text, target",
        good: "let train = Dataset::tsv(\"labelled.tsv\")?; // columns: text, label",
        tensorflow: tensorflow::page("SC0313"),
    };

    const GIVEN: &'static [&'static str] = &[
        "std::fs::write(\"reviews.tsv\", \"text\\ttarget\\na fine game\\tgood\\n\")?;\n\
         std::fs::write(\"labelled.tsv\", \"text\\tlabel\\na fine game\\tgood\\n\")?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let near =
            crate::check::suggest::similar(&self.column, self.found.iter().map(String::as_str));
        let diagnostic = Self::start(format!(
            "no `{}` column; found {}",
            self.column,
            text::visible(&text::names(&self.found, 12))
        ))
        .label(Place::file(&self.path, Some(1)), "the header")
        .evidence("file", self.path.clone());
        let diagnostic = match near.first() {
            Some(name) => diagnostic.suggest(name),
            None => diagnostic,
        };
        let diagnostic = self.ways_out(diagnostic);
        match &self.reader {
            // A file that is read here has nothing to do with the labels of `fit`.
            Some(_) => diagnostic,
            None => diagnostic
                .tensorflow(Quote::of("SC0313"))
                .with_answers(answer),
        }
    }
}

/// docs/keras-semantics.md E21, for data without targets.
fn answer(profile: Profile) -> Answer {
    let says = match profile {
        Profile::Tf23 | Profile::Tf24 => "ValueError: No gradients provided for any variable: […].",
        Profile::TfKeras218 => {
            "ValueError: Target data is missing. Your model was compiled with loss=<…>, and therefore \
             expects target data to be provided in `fit()`."
        }
        Profile::Keras3 => "ValueError: None values not supported.",
    };
    Answer::says(profile, "compiles; `fit` fails", says)
}
