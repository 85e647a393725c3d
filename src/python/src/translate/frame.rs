//! Data frames of pandas that are read from a file: here they are data sets, which keep the text and the label of each row.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::call::Made;
use super::thing::{Pipeline, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Statement, Value, each_value};

const TEXTS: [&str; 10] = [
    "text", "sentence", "review", "content", "comment", "tweet", "message", "body", "title",
    "question",
];
const LABELS: [&str; 9] = [
    "label",
    "labels",
    "target",
    "class",
    "category",
    "sentiment",
    "stars",
    "rating",
    "topic",
];
pub(super) const OTHER_COLUMNS: &str = "a data set keeps the text and the label of each row";

/// What a cell says about the columns of its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    text: Option<String>,
    label: Option<String>,
    /// Rows with missing values are left out.
    drops_missing: bool,
}

impl Columns {
    /// Reads all statements of a cell.
    pub fn of(statements: &[Statement]) -> Self {
        let mut columns = Self::default();
        let (mut used, mut renamed, mut of_labels) = (Vec::new(), Vec::new(), Vec::new());
        each_value(statements, &mut |value| {
            if let Kind::Index(_, key) = &value.kind {
                used.extend(key.text().map(str::to_owned));
            }
            let Some(call) = value.call() else { return };
            if let Some(list) = call.keyword("usecols").and_then(|it| it.value.elements()) {
                used.extend(list.iter().filter_map(|it| it.text().map(str::to_owned)));
            }
            if let Some(Kind::Dict(items)) = call.keyword("columns").map(|it| &it.value.kind) {
                let names = items.iter();
                renamed.extend(names.filter_map(|(old, new)| {
                    Some((old.text()?.to_owned(), new.text()?.to_owned()))
                }));
            }
            columns.drops_missing |= value.method("dropna").is_some();
            let stratified = call.keyword("stratify").map(|it| &it.value);
            let counted = ["value_counts", "nunique", "unique"]
                .iter()
                .find_map(|name| value.method(name).map(|(object, _)| object));
            for it in stratified.into_iter().chain(counted) {
                if let Kind::Index(_, key) = &it.kind {
                    of_labels.extend(key.text().map(str::to_owned));
                }
            }
        });
        let old = |name: String| {
            let found = renamed.iter().find(|(_, new)| *new == name);
            found.map_or(name.clone(), |(old, _)| old.clone())
        };
        let news = renamed.iter().map(|(_, new)| new.clone());
        let all: Vec<String> = used.iter().cloned().chain(news).collect();
        let known = |names: &[&str]| {
            let found = names
                .iter()
                .find(|name| all.iter().any(|it| it.eq_ignore_ascii_case(name)));
            found.and_then(|name| all.iter().find(|it| it.eq_ignore_ascii_case(name)).cloned())
        };
        columns.label = of_labels
            .first()
            .cloned()
            .or_else(|| known(&LABELS))
            .map(old);
        columns.text = known(&TEXTS).map(old);
        columns
    }

    pub(super) fn in_rust(&self) -> String {
        let mut rust = String::new();
        let text = self
            .text
            .as_deref()
            .filter(|it| !matches!(*it, "text" | "sentence"));
        let label = self.label.as_deref().filter(|it| *it != "label");
        if text.is_some() || label.is_some() {
            if let Some(name) = &self.text {
                rust += &format!(".text({})", text::text(name));
            }
            if let Some(name) = &self.label {
                rust += &format!(".label({})", text::text(name));
            }
        }
        if self.drops_missing {
            rust += ".drop_missing()";
        }
        rust
    }
}

impl Translator<'_> {
    /// Whether a value is a data frame: a data set of the cell or of the notebook, or a part of one.
    pub(crate) fn is_frame(&self, value: &Value) -> bool {
        match &value.kind {
            Kind::Name(name) => match self.things.get(name) {
                Some(thing) => matches!(thing, Thing::Data(data) if !data.is_tensorflow),
                None => {
                    let known = self.known.variables.get(name);
                    known.is_some_and(|it| it.rsplit("::").next() == Some("Dataset"))
                }
            },
            Kind::Index(object, key) => is_columns(key) && self.is_frame(object),
            Kind::Call(call) => match &call.function.kind {
                Kind::Attribute(object, step) if is_step(step) => self.is_frame(object),
                _ => self.reads_frame(value),
            },
            _ => false,
        }
    }

    /// `pd.read_csv(…)` and others like it.
    pub(crate) fn reads_frame(&self, value: &Value) -> bool {
        let full = self.names.called(value);
        full.is_some_and(|full| full.starts_with("pandas.read_"))
    }

    /// A step of a data frame; `None`: it is something else.
    pub(crate) fn step_of_frame(
        &mut self,
        step: &str,
        call: &Call,
        data: &mut Pipeline,
    ) -> Option<Result<(), Why>> {
        match step {
            "dropna" => {
                self.idle_arguments(call, "rows without a text or a label are left out");
                self.note(
                    call.span,
                    "rows without a label are left out where the file is read, by `drop_missing()`",
                );
                data.rust += ".filter(|example| !example.text.is_empty())";
            }
            "drop_duplicates" => {
                self.idle_arguments(call, "of rows with the same text the first one stays");
                data.rust += ".dedupe()";
            }
            "sample" => return Some(self.sampled(call, data)),
            "rename" => self.idle_arguments(call, "columns are named where the file is read"),
            "drop" if self.drops_labels(call) => {
                return Some(Err(
                    "a data set has its labels with it, and `fit!` takes both".to_owned(),
                ));
            }
            "reset_index" | "copy" | "drop" | "set_index" => {
                self.idle_arguments(call, OTHER_COLUMNS);
            }
            _ => return None,
        }
        Some(Ok(()))
    }

    fn drops_labels(&self, call: &Call) -> bool {
        let mut found = false;
        let named = call.keywords.iter().map(|it| &it.value);
        for value in call.arguments.iter().chain(named) {
            value.visit(&mut |inner| {
                let name = inner.text().unwrap_or_default();
                found |= self.columns.label.as_deref() == Some(name) || LABELS.contains(&name);
            });
        }
        found
    }

    /// `df.sample(frac=1, random_state=42)`.
    fn sampled(&mut self, call: &Call, data: &mut Pipeline) -> Result<(), Why> {
        let seed = match call
            .argument("random_state", 4)
            .filter(|it| it.kind != Kind::None)
        {
            Some(seed) => self.value(seed)?,
            None => "0".to_owned(),
        };
        let before = std::mem::take(&mut data.rust);
        data.rust = format!("{before}.shuffled({seed})");
        if let Some(count) = call.argument("n", 0) {
            data.rust += &format!(".take({})", self.value(count)?);
        } else if let Some(share) = call.argument("frac", 1) {
            if share.number() != Some(1.0) {
                let share = self.float(share)?;
                data.rust += &format!(".take(({before}.len() as f64 * {share}).round() as usize)");
            }
        } else {
            data.rust += ".take(1)";
        }
        self.note(
            call.span,
            "the order is drawn by other random numbers than those of pandas",
        );
        Ok(())
    }

    /// The column of a data frame: `df["label"]`.
    pub(crate) fn column<'v>(&self, value: &'v Value) -> Option<(&'v Value, Column)> {
        let (object, name) = match &value.kind {
            Kind::Index(object, key) => (object, key.text()?),
            Kind::Attribute(object, name) => (object, name.as_str()),
            _ => return None,
        };
        if !self.is_frame(object) {
            return None;
        }
        let is = |known: &Option<String>, names: &[&str]| {
            known.as_deref() == Some(name) || names.iter().any(|it| name.eq_ignore_ascii_case(it))
        };
        if is(&self.columns.label, &LABELS) {
            return Some((object, Column::Label));
        }
        is(&self.columns.text, &TEXTS).then_some((object, Column::Text))
    }

    /// `df.dropna(inplace=True)`: the name has the changed data set. `None`: it is something else.
    pub(crate) fn changed_in_place(
        &mut self,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let inplace = value.call()?.keyword("inplace")?;
        if inplace.value.kind != Kind::Bool(true) || !self.is_frame(value) {
            return None;
        }
        let mut root = value;
        while let Kind::Attribute(object, _) = &root.call()?.function.kind {
            root = object;
            if root.name().is_some() {
                break;
            }
        }
        let name = root.name()?.to_owned();
        Some(
            self.pipeline(value)
                .and_then(|data| self.assign_data(&name, value, data, span)),
        )
    }

    /// `df.head(100)` that gets a name.
    pub(crate) fn first_of_frame(&mut self, frame: &Value, call: &Call) -> Result<Pipeline, Why> {
        let mut data = self.pipeline(frame)?;
        let count = match call.argument("n", 0) {
            Some(count) => self.value(count)?,
            None => "5".to_owned(),
        };
        data.rust = format!("{}.take({count})", data.rust);
        Ok(data)
    }

    /// A method of a data frame or of one of its columns that makes no data set; `None`: it is something else.
    pub(crate) fn method_of_frame(
        &mut self,
        object: &Value,
        method: &str,
        call: &Call,
    ) -> Result<Option<Made>, Why> {
        if method == "head" && self.is_frame(object) {
            let count = match call.argument("n", 0) {
                Some(count) => self.value(count)?,
                None => "5".to_owned(),
            };
            let data = self.pipeline(object)?;
            return Ok(Some((
                format!("{}.head({count})", data.rust),
                Thing::Assessment,
            )));
        }
        let object = match &object.kind {
            // `df["text"].values.tolist()`
            Kind::Attribute(column, values) if values == "values" => column,
            _ => object,
        };
        let Some((frame, column)) = self.column(object) else {
            return Ok(None);
        };
        let frame = self.pipeline(&frame.clone())?.rust;
        Ok(Some(match (method, column) {
            ("value_counts", Column::Label) => {
                self.note(call.span, "the counts are in the order of `label_names`");
                (format!("{frame}.class_counts()"), Thing::Value)
            }
            ("nunique", Column::Label) => (format!("{frame}.num_labels()"), Thing::Int(None)),
            ("unique", Column::Label) => (format!("{frame}.label_names.clone()"), Thing::Value),
            ("tolist" | "to_list" | "to_numpy", _) => listed(&frame, column),
            _ => return Ok(None),
        }))
    }

    /// `df["text"]`, `df["text"].values`: a list. `None`: it is something else.
    pub(crate) fn list_of_column(&mut self, value: &Value) -> Result<Option<Made>, Why> {
        let of = match &value.kind {
            Kind::Attribute(column, values) if values == "values" => column,
            Kind::Index(..) => value,
            _ => return Ok(None),
        };
        let Some((frame, column)) = self.column(of) else {
            return Ok(None);
        };
        let frame = self.pipeline(&frame.clone())?.rust;
        Ok(Some(listed(&frame, column)))
    }

    /// `df.shape`, `df.shape[0]`: the number of rows.
    pub(crate) fn rows_of_frame(&mut self, value: &Value) -> Result<Option<String>, Why> {
        let shape = match &value.kind {
            Kind::Index(shape, at) if at.integer() == Some(0) => shape,
            _ => value,
        };
        let Kind::Attribute(frame, name) = &shape.kind else {
            return Ok(None);
        };
        if name != "shape" || !self.is_frame(frame) {
            return Ok(None);
        }
        if std::ptr::eq(shape, value) {
            self.note(
                value.span,
                "a data set has a text and a label in each row, and `len()` counts the rows",
            );
        }
        Ok(Some(format!("{}.len()", self.pipeline(frame)?.rust)))
    }

    /// `df["label"] = …`: classes have their numbers by themselves, and texts are changed. `None`: it is something else.
    pub(crate) fn set_column(
        &mut self,
        target: &Value,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let (frame, column) = self.column(target)?;
        let name = frame.name()?;
        let frame = text::name(name);
        let whole = self.source(target.span).to_owned();
        let mut reads_itself = false;
        value.visit(&mut |inner| reads_itself |= self.source(inner.span) == whole);
        let is_lower = value.method("lower").is_some();
        let is_strip = value.method("strip").is_some();
        Some(match column {
            Column::Label if reads_itself => {
                see_whole(value);
                self.idle(
                    span,
                    "classes have the names of their labels, and numbers from 0 in the order of these",
                );
                Ok(())
            }
            Column::Text if reads_itself && (is_lower || is_strip) => {
                see_whole(value);
                let change = if is_lower {
                    "to_lowercase()"
                } else {
                    "trim().to_owned()"
                };
                self.push(
                    format!(
                        "let {frame} = {frame}.map(|mut example| {{\n    example.text = example.text.{change};\n    example\n}});"
                    ),
                    span,
                );
                Ok(())
            }
            _ => Err(format!(
                "`{frame}.map(|mut example| {{ example.text = example.text.to_lowercase(); example }})` changes the rows of a data set"
            )),
        })
    }
}

/// What a column of a data frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Text,
    Label,
}

/// The values of a column as a list.
fn listed(frame: &str, column: Column) -> Made {
    match column {
        Column::Label => (
            format!(
                "{frame}.examples.iter().filter_map(|example| example.class()).collect::<Vec<usize>>()"
            ),
            Thing::List,
        ),
        Column::Text => (
            format!(
                "{frame}.examples.iter().map(|example| example.text.clone()).collect::<Vec<String>>()"
            ),
            Thing::Texts,
        ),
    }
}

/// `[["text", "label"]]`
pub(crate) fn is_columns(key: &Value) -> bool {
    matches!(&key.kind, Kind::List(names) if names.iter().all(|it| it.text().is_some()))
}

/// Steps that make a data frame of a data frame.
pub(crate) fn is_step(step: &str) -> bool {
    matches!(
        step,
        "dropna"
            | "drop_duplicates"
            | "sample"
            | "rename"
            | "reset_index"
            | "copy"
            | "drop"
            | "set_index"
    )
}

/// `df.rename(…)`
pub(crate) fn is_step_of_frame(value: &Value) -> bool {
    let method = value.call().map(|call| &call.function.kind);
    matches!(method, Some(Kind::Attribute(_, step)) if is_step(step))
}
