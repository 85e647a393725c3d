//! [`Columns`]: which columns of a file hold the text, the second text and the label.

use stratoscope_diagnostics::Result;

use crate::problem;

/// Which columns to read. Columns that are not named are found by their common names: `text`
/// and `label`; `sentence` and `label`; `sentence1`, `sentence2` and `label`; or MRPC's
/// `#1 String`, `#2 String` and `Quality`.
///
/// ```no_run
/// use stratoscope_data::{Columns, Dataset};
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let columns = Columns::new().text("question").label("topic");
/// let questions = Dataset::tsv_with("questions.tsv", &columns)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    text: Option<String>,
    pair: Option<String>,
    choices: Vec<String>,
    label: Wanted,
    weight: Option<String>,
    missing: Missing,
    skips_bad_rows: bool,
    encoding: Option<String>,
}

/// How a row without a label is handled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is an error.
    #[default]
    Refused,
    /// It is left out.
    Dropped,
    /// It has this label.
    Filled(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Wanted {
    #[default]
    Usual,
    Class(String),
    Value(String),
    /// Names of labels in one field, and what separates them.
    Several(String, String),
    /// A column for each label.
    OneHot(Vec<String>),
    Nothing,
}

/// Column indices, once the header is known; by default a text alone.
#[derive(Clone, Default)]
pub(crate) struct Chosen {
    pub(crate) text: usize,
    pub(crate) pair: Option<usize>,
    /// Of multiple choice: a column for each choice, or one with lists of them.
    pub(crate) choices: Vec<usize>,
    pub(crate) label: LabelColumn,
    /// A column for each label.
    pub(crate) one_hot: Vec<usize>,
    /// What the loss of a row is multiplied with.
    pub(crate) weight: Option<usize>,
}

impl Chosen {
    /// Whether the column of a label is also read as something else.
    pub(super) fn is_more_than_label(&self, column: usize) -> bool {
        let others = [Some(self.text), self.pair, self.weight];
        others.contains(&Some(column)) || self.choices.contains(&column)
    }

    /// All columns that are read, each once.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let others = [self.pair, self.label.column(), self.weight];
        let mut columns = vec![self.text];
        columns.extend(others.into_iter().flatten());
        columns.extend(&self.choices);
        columns.extend(&self.one_hot);
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

/// The kind of the labels, and their column.
#[derive(Clone, Copy, Default)]
pub(crate) enum LabelColumn {
    Class(usize),
    Value(usize),
    /// Names of labels.
    Several(usize),
    #[default]
    Absent,
}

impl LabelColumn {
    /// The column, whatever it has.
    pub(crate) fn column(self) -> Option<usize> {
        match self {
            Self::Class(column) | Self::Value(column) | Self::Several(column) => Some(column),
            Self::Absent => None,
        }
    }
}

/// Common names: text, second text, label. The first layout whose text columns all exist is used.
const LAYOUTS: &[(&str, Option<&str>, &str)] = &[
    ("text", None, "label"),
    ("#1 String", Some("#2 String"), "Quality"),
    ("sentence1", Some("sentence2"), "label"),
    ("sentence", None, "label"),
];

impl Columns {
    /// The common names.
    pub fn new() -> Self {
        Self::default()
    }

    /// The column of the text.
    pub fn text(mut self, name: impl Into<String>) -> Self {
        self.text = Some(name.into());
        self
    }

    /// The column of the second text of a pair.
    pub fn pair(mut self, name: impl Into<String>) -> Self {
        self.pair = Some(name.into());
        self
    }

    /// The columns of the texts to choose from, in their order, or one column with a JSON list of them. The label is the
    /// number of the right one, from 0.
    pub fn choices<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.choices = names.into_iter().map(Into::into).collect();
        self
    }

    /// The column of the class. Its distinct values, sorted, are the classes.
    pub fn label(mut self, name: impl Into<String>) -> Self {
        self.label = Wanted::Class(name.into());
        self
    }

    /// The column of a number to be predicted, for a regression.
    pub fn value(mut self, name: impl Into<String>) -> Self {
        self.label = Wanted::Value(name.into());
        self
    }

    /// The column that has the names of all labels of a row, with this text between two of them, or as a JSON list. A
    /// row without any is allowed.
    pub fn labels(mut self, name: impl Into<String>, separator: impl Into<String>) -> Self {
        self.label = Wanted::Several(name.into(), separator.into());
        self
    }

    /// A column for each label, with 1 (or `true`) where it holds and 0 elsewhere. Rows of exactly one label each have a
    /// class; otherwise each row has several labels, or none.
    pub fn one_hot<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.label = Wanted::OneHot(names.into_iter().map(Into::into).collect());
        self
    }

    /// The columns of one-hot labels.
    pub(crate) fn one_hot_names(&self) -> Option<&[String]> {
        match &self.label {
            Wanted::OneHot(names) => Some(names),
            _ => None,
        }
    }

    /// The column of what the loss of a row is multiplied with: a finite number of 0 or more.
    pub fn weight(mut self, name: impl Into<String>) -> Self {
        self.weight = Some(name.into());
        self
    }

    /// Whether a row has several labels.
    pub(crate) fn has_label_sets(&self) -> bool {
        matches!(self.label, Wanted::Several(..))
    }

    /// What separates the labels of a row.
    pub(crate) fn separator(&self) -> &str {
        match &self.label {
            Wanted::Several(_, separator) => separator,
            _ => ",",
        }
    }

    /// Leaves out rows whose label is empty, blank or `null`. Without this they are an error.
    pub fn drop_missing(mut self) -> Self {
        self.missing = Missing::Dropped;
        self
    }

    /// Gives this label to rows whose label is empty, blank or `null`.
    pub fn fill_missing(mut self, label: impl Into<String>) -> Self {
        self.missing = Missing::Filled(label.into());
        self
    }

    /// Skips rows that cannot be read, and counts them: the data set lists the first ones with their lines. Without this
    /// they are an error. Such are rows with more or fewer fields than the header, rows with a quote that is not closed, lines that are no JSON object or lack a
    /// key that is read, labels that are no numbers where numbers are to be predicted, and weights that are none.
    pub fn skip_bad_rows(mut self) -> Self {
        self.skips_bad_rows = true;
        self
    }

    /// How the letters of the file are written as bytes: `"latin-1"`, `"utf-16"`. Default: UTF-8, or UTF-16 where the file
    /// begins with its mark.
    pub fn encoding(mut self, name: impl Into<String>) -> Self {
        self.encoding = Some(name.into());
        self
    }

    /// The encoding that was named.
    pub(crate) fn encoding_name(&self) -> Option<&str> {
        self.encoding.as_deref()
    }

    /// Whether no column is named.
    pub(crate) fn are_usual(&self) -> bool {
        let encoding = None;
        Self {
            encoding,
            ..self.clone()
        } == Self::new()
    }

    /// Whether rows that cannot be read are skipped.
    pub(crate) fn skips_bad_rows(&self) -> bool {
        self.skips_bad_rows
    }

    /// How a row without a label is handled.
    pub(crate) fn missing(&self) -> &Missing {
        &self.missing
    }

    /// No labels, even if there is a column of that name.
    pub fn unlabelled(mut self) -> Self {
        self.label = Wanted::Nothing;
        self
    }

    /// Finds the columns in a header.
    pub(super) fn choose(&self, call: &str, source: &str, header: &[String]) -> Result<Chosen> {
        let find = |name: &str| header.iter().position(|column| column == name);
        let need = |name: &str| {
            let places = header.iter().enumerate();
            let places = places.filter(|(_, column)| *column == name);
            let places: Vec<usize> = places.map(|(place, _)| place).collect();
            match places[..] {
                [place] => Ok(place),
                [] => Err(problem::missing_column(call, source, name, header)),
                _ => Err(problem::duplicate_column(call, source, name, &places)),
            }
        };
        let layout = LAYOUTS.iter().find(|(text, pair, _)| {
            find(text).is_some() && pair.is_none_or(|pair| find(pair).is_some())
        });
        let (usual_text, usual_pair, usual_label) = layout.unwrap_or(&LAYOUTS[0]);
        let text = need(self.text.as_deref().unwrap_or(usual_text))?;
        let pair = match (&self.pair, usual_pair) {
            (Some(name), _) => Some(need(name)?),
            // If the caller named the text, no second text is added implicitly.
            (None, Some(name)) if self.text.is_none() => Some(need(name)?),
            (None, _) => None,
        };
        let choices = self.choices.iter().map(|name| need(name));
        let choices = choices.collect::<Result<_>>()?;
        let label = match &self.label {
            Wanted::Usual => LabelColumn::Class(need(usual_label)?),
            Wanted::Class(name) => LabelColumn::Class(need(name)?),
            Wanted::Value(name) => LabelColumn::Value(need(name)?),
            Wanted::Several(name, _) => LabelColumn::Several(need(name)?),
            Wanted::OneHot(_) | Wanted::Nothing => LabelColumn::Absent,
        };
        let one_hot = self.one_hot_names().unwrap_or_default().iter();
        let one_hot = one_hot.map(|name| need(name)).collect::<Result<_>>()?;
        let weight = self.weight.as_ref().map(|name| need(name)).transpose()?;
        Ok(Chosen {
            text,
            pair,
            choices,
            label,
            one_hot,
            weight,
        })
    }
}
