//! What a row of a file is: an example, a row that is left out, or one that is wrong. The first pass over the files and
//! every later one ask here, so that all of them see the same examples.

use std::io;

use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_render::text;

use super::columnar::{ReadAs, TypedFile};
use super::columns::{Chosen, Columns, LabelColumn, Missing};
use super::raw::{Content, Format, Raw};
use super::row::{Bad, Fields, Given, Row, bad, of_question, question, tagged, unlabelled, wrong};
use super::rows::RawRows;
use super::values::Value;
use super::{choices, jsonl, one_hot};
use crate::label_sets::names_in;
use crate::{annotation, problem, weights};

/// What is wrong with bytes that are not UTF-8.
const NOT_TEXT: &str = "it is not UTF-8 text";

/// The columns of a file.
#[derive(Clone)]
pub(crate) struct Layout {
    /// The function that reads it, for messages.
    call: &'static str,
    format: Format,
    /// The file, for messages.
    source: String,
    header: Vec<String>,
    /// `None` before the first object of JSON Lines, and for tagged words a line each.
    meaning: Option<Meaning>,
    columns: Columns,
    /// The columns that are read.
    needed: Vec<usize>,
    /// Of typed rows what is known of the file.
    typed: Option<TypedFile>,
}

/// What the columns of a file make.
#[derive(Clone)]
enum Meaning {
    /// Texts, with labels or with choices.
    Texts(Chosen),
    /// Lists of words and of their tags.
    Lists([usize; 2]),
    /// A question, its context, and its answers.
    Questions([usize; 3]),
}

impl Layout {
    /// The columns of a file, whose header is read.
    ///
    /// # Errors
    /// SC0313 and SC0417 for columns, SC0914 for an empty file, SC0911 for one that is not text.
    pub(super) fn begin(
        call: &'static str,
        format: Format,
        source: &str,
        columns: &Columns,
        rows: &mut RawRows,
    ) -> Result<Self> {
        let mut layout = Self {
            call,
            format,
            source: source.to_owned(),
            header: Vec::new(),
            meaning: None,
            columns: columns.clone(),
            needed: Vec::new(),
            typed: None,
        };
        if let RawRows::Typed(rows) = rows {
            layout.header = rows.records().header();
            layout.choose(rows.records().words_and_tags())?;
            let typed = rows.select(&layout.wanted());
            layout.typed = Some(typed.map_err(|error| layout.unreadable(Some(1), &error))?);
        }
        if format == Format::Squad {
            layout.meaning = Some(Meaning::Questions([0, 1, 2]));
        }
        if format == Format::Text {
            layout.meaning = Some(Meaning::Texts(Chosen::default()));
        }
        if format.has_header() {
            let first = rows.next();
            let first = first.map_err(|error| layout.unreadable(Some(1), &error))?;
            layout.header = match first.map(|raw| raw.content) {
                Some(Content::Fields(fields)) => fields,
                Some(Content::Line(line)) if !line.trim().is_empty() => {
                    line.split('\t').map(str::to_owned).collect()
                }
                None | Some(Content::Line(_)) => return Err(layout.empty()),
                Some(Content::Wrong(reason)) => return Err(layout.refused(Some(1), reason)),
                Some(_) => return Err(layout.refused(Some(1), NOT_TEXT)),
            };
            layout.choose(None)?;
        }
        Ok(layout)
    }

    /// Finds the columns in the header. `lists`: those of words and of their tags, where there are such.
    fn choose(&mut self, lists: Option<[usize; 2]>) -> Result<()> {
        // Named columns are those of texts.
        let is_usual = self.columns.are_usual();
        let questions = (is_usual && self.format.has_structures())
            .then(|| jsonl::question_columns(&self.header))
            .flatten();
        self.meaning = Some(match (lists.filter(|_| is_usual), questions) {
            (Some(lists), _) => Meaning::Lists(lists),
            (None, Some(columns)) => Meaning::Questions(columns),
            (None, None) => {
                let columns = &self.columns;
                Meaning::Texts(columns.choose(self.call, &self.source, &self.header)?)
            }
        });
        self.needed = self.wanted().iter().map(|wanted| wanted.0).collect();
        Ok(())
    }

    /// The columns of texts.
    fn chosen(&self) -> Option<&Chosen> {
        match &self.meaning {
            Some(Meaning::Texts(chosen)) => Some(chosen),
            _ => None,
        }
    }

    pub(super) fn call(&self) -> &'static str {
        self.call
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// The file, for messages.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether rows are pairs of texts.
    pub(crate) fn is_paired(&self) -> bool {
        self.has_answers() || self.chosen().is_some_and(|it| it.pair.is_some())
    }

    /// What rows are, for messages: `pairs of texts with classes`.
    pub(super) fn kind(&self) -> String {
        let labels = match &self.meaning {
            None | Some(Meaning::Lists(_)) => "tags",
            Some(Meaning::Questions(_)) => "answers",
            Some(Meaning::Texts(chosen)) if !chosen.choices.is_empty() => "choices",
            Some(Meaning::Texts(chosen)) => match chosen.label {
                LabelColumn::Class(_) => "classes",
                LabelColumn::Value(_) => "numbers to predict",
                LabelColumn::Several(_) => "sets of labels",
                LabelColumn::Absent if !chosen.one_hot.is_empty() => "sets of labels",
                LabelColumn::Absent => "no labels",
            },
        };
        match self.is_paired() {
            true => format!("pairs of texts with {labels}"),
            false => format!("texts with {labels}"),
        }
    }

    /// Whether rows are words with tags.
    pub(crate) fn is_tagged(&self) -> bool {
        self.format == Format::Conll || matches!(self.meaning, Some(Meaning::Lists(_)))
    }

    /// Whether rows are questions with answers.
    pub(crate) fn has_answers(&self) -> bool {
        matches!(self.meaning, Some(Meaning::Questions(_)))
    }

    /// The name of the column of the label.
    pub(crate) fn label_column(&self) -> Option<&str> {
        let column = self.chosen()?.label.column()?;
        self.header.get(column).map(String::as_str)
    }

    /// The columns that are read, and as what.
    fn wanted(&self) -> Vec<(usize, ReadAs)> {
        let chosen = match &self.meaning {
            None => return Vec::new(),
            Some(Meaning::Lists(lists)) => return lists.map(|it| (it, ReadAs::List)).to_vec(),
            Some(Meaning::Questions([question, context, answers])) => {
                let answers = (*answers, ReadAs::Answers);
                return [(*question, ReadAs::Text), (*context, ReadAs::Text), answers].to_vec();
            }
            Some(Meaning::Texts(chosen)) => chosen,
        };
        let several = match chosen.label {
            LabelColumn::Several(label) => Some(label),
            _ => None,
        };
        let read_as = |column: usize| match chosen.choices.contains(&column) {
            true => (column, ReadAs::List),
            false if several == Some(column) => (column, ReadAs::List),
            false => (column, ReadAs::Text),
        };
        chosen.columns().into_iter().map(read_as).collect()
    }

    /// Of typed rows what is known of the file.
    pub(super) fn typed(&self) -> Option<&TypedFile> {
        self.typed.as_ref()
    }

    /// The classes that the file names, in their order.
    pub(crate) fn class_names(&self) -> Option<&[String]> {
        let label = match self.meaning.as_ref()? {
            Meaning::Lists([_, tags]) => *tags,
            // The label is the number of a choice, whatever name it has.
            Meaning::Texts(chosen) if !chosen.choices.is_empty() => return None,
            Meaning::Texts(chosen) => match chosen.label {
                LabelColumn::Class(label) | LabelColumn::Several(label) => label,
                LabelColumn::Value(_) | LabelColumn::Absent => return None,
            },
            Meaning::Questions(_) => return None,
        };
        self.typed()?.records().class_names(self.header.get(label)?)
    }

    /// What a row is. The first object of JSON Lines decides the columns.
    ///
    /// # Errors
    /// SC0313 and SC0417 for the columns of the first object; SC0911 and SC0912 for a line that is no word with its tag.
    pub(super) fn first_row(&mut self, raw: Raw) -> Result<Row> {
        if let Content::Unfit(unfit) = raw.content {
            return Err(unfit.problem(self.call, &self.source));
        }
        if let (None, Content::Line(line)) = (&self.meaning, &raw.content)
            && let Ok(first) = jsonl::object(line)
        {
            if jsonl::is_by_columns(&first) {
                return Err(jsonl::by_columns(&self.source));
            }
            self.header = jsonl::columns(&first);
            self.choose(jsonl::words_and_tags(&self.header, &first))?;
        }
        Ok(self.row(raw))
    }

    /// What a row is.
    pub(super) fn row(&self, raw: Raw) -> Row {
        let line = raw.at.line;
        match (raw.content, self.format) {
            (Content::NotText, _) => bad(NOT_TEXT, format!("line {line} is not UTF-8 text")),
            (Content::Wrong(reason), _) => wrong(line, reason),
            (Content::Unfit(_), _) => bad("it is no word with its tag", format!("line {line}")),
            (Content::Words(words, tags), _) => tagged(words, tags),
            (Content::Question(asked, context), _) => of_question(asked, context),
            (Content::Values(values), _) => self.of_values(line, &values),
            (Content::Fields(fields), _) => self.of_fields(line, fields),
            (Content::Line(text), Format::Text) => unlabelled(text),
            (Content::Line(text), Format::Jsonl) => {
                match jsonl::fields(&text, &self.header, &self.needed) {
                    Ok(fields) => self.of_fields(line, fields),
                    Err(reason) => wrong(line, reason),
                }
            }
            (Content::Line(text), _) => {
                self.of_fields(line, text.split('\t').map(str::to_owned).collect())
            }
        }
    }

    /// A row of the typed values of the wanted columns.
    fn of_values(&self, line: usize, values: &[Value]) -> Row {
        let Some(typed) = &self.typed else {
            return wrong(line, "it has no columns".to_owned());
        };
        if let Some(Meaning::Lists(lists)) = &self.meaning {
            let list = |at: usize| typed.records().texts(lists[at], &values[at]);
            return match (list(0), list(1)) {
                (Ok(words), Ok(tags)) => self.of_words(line, words, tags),
                (Err(reason), _) | (_, Err(reason)) => wrong(line, reason),
            };
        }
        match typed.fields(values) {
            Ok(fields) => self.of_fields(line, fields),
            Err(reason) => wrong(line, reason),
        }
    }

    /// A row of as many fields as columns.
    fn of_fields(&self, line: usize, fields: Vec<String>) -> Row {
        if self.format.has_header() && fields.len() != self.header.len() {
            return Row::Bad(Bad::Ragged(fields));
        }
        match &self.meaning {
            Some(Meaning::Lists(lists)) => {
                let list = |at: usize| {
                    let column = lists[at];
                    let list = jsonl::texts(fields.get(column).map_or("", String::as_str));
                    list.ok_or_else(|| format!("the column `{}` is no list", self.header[column]))
                };
                match (list(0), list(1)) {
                    (Ok(words), Ok(tags)) => self.of_words(line, words, tags),
                    (Err(reason), _) | (_, Err(reason)) => wrong(line, reason),
                }
            }
            Some(Meaning::Questions(columns)) => question(line, &fields, *columns),
            Some(Meaning::Texts(chosen)) if !chosen.choices.is_empty() => {
                self.prompt(line, fields, chosen)
            }
            Some(Meaning::Texts(chosen)) => self.labelled(line, fields, chosen),
            // The first object cannot be read.
            None => bad("it is not a JSON object", format!("line {line}")),
        }
    }

    /// Words with their tags.
    fn of_words(&self, line: usize, words: Vec<String>, tags: Vec<String>) -> Row {
        match annotation::unfit(&words, &tags) {
            Some(what) => wrong(line, format!("it has {what}")),
            None => tagged(words, tags),
        }
    }

    /// What is written as the label, or is put in its place where nothing is; else what becomes of the row.
    fn written_label(
        &self,
        fields: &mut [String],
        column: usize,
        chosen: &Chosen,
    ) -> std::result::Result<String, Row> {
        let written = fields.get(column).map_or("", |field| field.trim());
        match (written.is_empty(), self.columns.missing()) {
            (false, _) if chosen.is_more_than_label(column) => Ok(fields[column].clone()),
            (false, _) => Ok(std::mem::take(&mut fields[column])),
            (true, Missing::Filled(label)) => Ok(label.clone()),
            (true, Missing::Dropped) => Err(Row::Dropped),
            (true, Missing::Refused) => Err(Row::Unlabelled),
        }
    }

    /// What the loss of a row is multiplied with, or what becomes of the row.
    fn weight(
        &self,
        line: usize,
        fields: &[String],
        chosen: &Chosen,
    ) -> std::result::Result<f32, Row> {
        let weight = weights::written(&self.header, fields, chosen.weight);
        weight.map_err(|reason| wrong(line, reason))
    }

    /// A prompt with texts to choose from.
    fn prompt(&self, line: usize, mut fields: Vec<String>, chosen: &Chosen) -> Row {
        if let Some(column) = chosen.label.column() {
            match self.written_label(&mut fields, column, chosen) {
                Ok(label) => fields[column] = label,
                Err(row) => return row,
            }
        }
        let weight = match self.weight(line, &fields, chosen) {
            Ok(weight) => weight,
            Err(row) => return row,
        };
        match choices::written(&self.header, &fields, chosen) {
            Ok((choices, right)) => Row::Example(Fields {
                text: std::mem::take(&mut fields[chosen.text]),
                pair: None,
                label: Given::Choice { choices, right },
                weight,
            }),
            Err(reason) => wrong(line, reason),
        }
    }

    fn labelled(&self, line: usize, mut fields: Vec<String>, chosen: &Chosen) -> Row {
        let written = match chosen.label {
            LabelColumn::Class(column) | LabelColumn::Value(column) => {
                match self.written_label(&mut fields, column, chosen) {
                    Ok(label) => label,
                    Err(row) => return row,
                }
            }
            LabelColumn::Several(_) | LabelColumn::Absent => String::new(),
        };
        let weight = match self.weight(line, &fields, chosen) {
            Ok(weight) => weight,
            Err(row) => return row,
        };
        let label = match chosen.label {
            LabelColumn::Class(_) => Given::Class(written),
            LabelColumn::Value(column) => match written.trim().parse::<f32>() {
                Ok(value) if value.is_finite() => Given::Value(value),
                _ => {
                    let name = self.header.get(column).map_or("", String::as_str);
                    let shown = text::excerpt(&written, 40);
                    return bad(
                        format!("`{shown}` in column `{name}` is not a number"),
                        format!("line {line} has `{shown}` as {name}, which is no number"),
                    );
                }
            },
            LabelColumn::Several(column) => {
                let written = fields.get(column).map_or("", String::as_str);
                match names_in(written, self.columns.separator()) {
                    Ok(names) => Given::Several(names),
                    Err(reason) => return wrong(line, reason),
                }
            }
            LabelColumn::Absent if chosen.one_hot.is_empty() => Given::Nothing,
            LabelColumn::Absent => match one_hot::written(&self.header, &fields, &chosen.one_hot) {
                Ok(names) => Given::Several(names),
                Err(reason) => return wrong(line, reason),
            },
        };
        let mut take = |column: usize| fields.get_mut(column).map(std::mem::take);
        Row::Example(Fields {
            pair: chosen.pair.and_then(&mut take),
            text: take(chosen.text).unwrap_or_default(),
            label,
            weight,
        })
    }

    /// SC0911, for what the system says.
    pub(super) fn unreadable(&self, line: Option<usize>, error: &io::Error) -> Box<Diagnostic> {
        self.refused(line, error.to_string())
    }

    /// SC0911.
    pub(super) fn refused(
        &self,
        line: Option<usize>,
        reason: impl Into<String>,
    ) -> Box<Diagnostic> {
        problem::unreadable(self.call, &self.source, line, reason)
    }

    /// SC0914.
    pub(super) fn empty(&self) -> Box<Diagnostic> {
        problem::empty(&self.source, self.call)
    }
}
