//! The readers of data sets: each collects all rows of its files.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Diagnostic, Result};

use super::columns::Columns;
use super::pass::{Pass, Stored};
use super::raw::Format;
use super::row::Given;
use super::rows::RawRows;
use super::{LARGEST_FILE_BYTES, csv, encoding, files, foreign, jsonl};
use crate::dataset::{Dataset, index_of};
use crate::example::Example;
use crate::problem;
use crate::shards::AutoShardPolicy;

/// What a file begins with that is compressed with gzip.
const GZIP: &[u8] = b"\x1f\x8b";

/// What one does, and has done.
const VERB: (&str, &str) = ("reading rows of", "read rows of");

impl Dataset {
    /// Reads a comma-separated file whose columns have common names (see [`Columns`]). Where the header has no comma but
    /// `;` or tabs, these separate the fields, which the data set says when it is shown.
    ///
    /// # Errors
    /// As [`Dataset::tsv`].
    pub fn csv(path: impl AsRef<Path>) -> Result<Self> {
        Self::csv_with(path, &Columns::new())
    }

    /// [`Self::csv`] with named columns.
    ///
    /// # Errors
    /// As [`Dataset::tsv`].
    pub fn csv_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        let call = "Dataset::csv";
        collected(call, Format::Csv, path.as_ref(), columns, |path| {
            let text = read_encoded(call, path, columns.encoding_name())?;
            let remark = csv::remark(&text);
            Ok((of_text(call, Format::Csv, path, text)?, remark))
        })
    }

    /// Reads a tab-separated file whose columns have common names (see [`Columns`]).
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, SC0912 for a row with more or fewer fields than
    /// the header, SC0313 if a column is missing, SC0914 if there is no row.
    pub fn tsv(path: impl AsRef<Path>) -> Result<Self> {
        Self::tsv_with(path, &Columns::new())
    }

    /// [`Self::tsv`] with named columns.
    ///
    /// # Errors
    /// As [`Dataset::tsv`].
    pub fn tsv_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        read("Dataset::tsv", Format::Tsv, path.as_ref(), columns)
    }

    /// [`Self::tsv_with`] with the classes numbered by a list of names, such as that of another split.
    ///
    /// # Errors
    /// As [`Dataset::tsv`]; SC0913 for a label that is not in the list.
    pub fn tsv_with_labels(path: impl AsRef<Path>, label_names: &[String]) -> Result<Self> {
        Self::tsv(path)?.with_label_names(label_names)
    }

    /// Reads a file of JSON objects, one per line, whose keys have common names (see
    /// [`Columns`]). Labels may be strings, numbers or booleans. The keys `question`, `context` and `answers` make
    /// questions, whose answers are an object of lists `text` and `answer_start`, as Hugging Face's `datasets` writes
    /// SQuAD, or a list of objects. Lists under `tokens` or `words`, and under `ner_tags`, `tags`, `pos_tags` or `labels`,
    /// are words with their tags. A file that is one JSON array of such objects is read alike.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, or a line is no object or lacks a key that is read,
    /// SC0313 if a key is missing from the first line, SC0432 for an answer that does not stand where its line
    /// says, SC0914 if there is no line.
    pub fn jsonl(path: impl AsRef<Path>) -> Result<Self> {
        Self::jsonl_with(path, &Columns::new())
    }

    /// [`Self::jsonl`] with named keys.
    ///
    /// # Errors
    /// As [`Dataset::jsonl`].
    pub fn jsonl_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        let call = jsonl::CALL;
        collected(call, Format::Jsonl, path.as_ref(), columns, |path| {
            let text = read_encoded(call, path, columns.encoding_name())?;
            let lines = jsonl::lines_of_array(&path.display().to_string(), &text)?;
            let remark = lines
                .is_some()
                .then_some("it is a JSON array; line 1 is its first object");
            let rows = of_text(call, Format::Jsonl, path, lines.unwrap_or(text))?;
            Ok((rows, remark.map(str::to_owned)))
        })
    }

    /// Reads a file of texts, one a line, without labels. Blank lines are left out.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, SC0914 if there is no line.
    pub fn text(path: impl AsRef<Path>) -> Result<Self> {
        read(
            "Dataset::text",
            Format::Text,
            path.as_ref(),
            &Columns::new(),
        )
    }

    /// Reads a file of tagged words, the word first and the tag last; of CoNLL-U, the files of Universal Dependencies, words
    /// and their parts of speech (UPOS). Lines that begin with `-DOCSTART-`, and lines of comment (`# …`) before a
    /// sentence, are skipped. The tags are numbered `O` first, then by entity.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as UTF-8, has a line with one column or a sentence without end, SC0912
    /// for a line with more or fewer columns than the first, SC0914 if there is no word.
    pub fn conll(path: impl AsRef<Path>) -> Result<Self> {
        read(
            "Dataset::conll",
            Format::Conll,
            path.as_ref(),
            &Columns::new(),
        )
    }

    /// Reads a file of SQuAD: articles of paragraphs with questions. A question that `is_impossible`, or has no answer, is
    /// one without an answer.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read as such JSON, with its line; SC0432 for an answer that does not stand where
    /// `answer_start` says; SC0914 if there is no question.
    pub fn squad(path: impl AsRef<Path>) -> Result<Self> {
        read(
            "Dataset::squad",
            Format::Squad,
            path.as_ref(),
            &Columns::new(),
        )
    }

    /// Reads a Parquet file, compressed with Snappy, gzip, zstd, LZ4 or Brotli or not at all. Its columns decide what is
    /// made: lists `tokens` and `ner_tags` are tagged words; `question`, `context` and `answers` are questions; else the
    /// columns of texts and labels have common names (see [`Columns`]). In messages a row is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read, SC0313 for a missing column, SC0416 for rows without a label, SC0432 for an
    /// answer that does not stand where the file says, SC0914 if there is no row.
    pub fn parquet(path: impl AsRef<Path>) -> Result<Self> {
        Self::parquet_with(path, &Columns::new())
    }

    /// [`Self::parquet`] with named columns, which are those of texts.
    ///
    /// # Errors
    /// As [`Self::parquet`].
    pub fn parquet_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        typed("Dataset::parquet", Format::Parquet, path.as_ref(), columns)
    }

    /// Reads an Arrow file: one of the cache of Hugging Face's `datasets` (the stream format), or of polars or Feather (the
    /// file format), compressed with LZ4 or zstd or not at all; or a folder of `save_to_disk`. Its columns decide what is made,
    /// as with [`Self::parquet`]. In messages a row is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 if the file cannot be read, SC0313 for a missing column, SC0416 for rows without a label, SC0432 for an
    /// answer that does not stand where the file says, SC0914 if there is no row.
    pub fn arrow(path: impl AsRef<Path>) -> Result<Self> {
        Self::arrow_with(path, &Columns::new())
    }

    /// [`Self::arrow`] with named columns, which are those of texts.
    ///
    /// # Errors
    /// As [`Self::arrow`].
    pub fn arrow_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        typed("Dataset::arrow", Format::Arrow, path.as_ref(), columns)
    }

    /// Reads text in memory whose columns have common names; `source` names it in messages.
    pub(crate) fn tsv_text(call: &'static str, source: &str, text: &str) -> Result<Self> {
        embedded(call, Format::Tsv, source, text)
    }

    /// Reads tagged words in memory; `source` names them in messages.
    pub(super) fn conll_text(source: &str, text: &str) -> Result<Self> {
        embedded("Dataset::conll", Format::Conll, source, text)
    }

    /// Reads questions in memory; `source` names them in messages.
    pub(super) fn squad_text(source: &str, text: &str) -> Result<Self> {
        embedded("Dataset::squad", Format::Squad, source, text)
    }
}

/// Reads a tab-separated file whose first line is a row; `header` is the line that it lacks.
pub(super) fn tsv_without_header(path: &Path, header: &str, columns: &Columns) -> Result<Dataset> {
    let (call, format) = ("Dataset::tsv", Format::Tsv);
    collected(call, format, path, columns, |path| {
        let text = read_encoded(call, path, None)?;
        // The header is no line of the file.
        let rows = RawRows::of_text(format!("{header}\n{text}"), format, 0);
        Ok((rows.map_err(|error| unreadable(call, path, error))?, None))
    })
}

/// Reads the text of files.
fn read(call: &'static str, format: Format, path: &Path, columns: &Columns) -> Result<Dataset> {
    collected(call, format, path, columns, |path| {
        let text = read_encoded(call, path, columns.encoding_name())?;
        Ok((of_text(call, format, path, text)?, None))
    })
}

/// Reads the typed values of files.
fn typed(call: &'static str, format: Format, path: &Path, columns: &Columns) -> Result<Dataset> {
    collected(call, format, path, columns, |path| {
        let file = files::open(path).map_err(|reason| unreadable(call, path, reason))?;
        let rows = RawRows::typed(file, format, true);
        Ok((rows.map_err(|error| unreadable(call, path, error))?, None))
    })
}

/// The rows of a text.
fn of_text(call: &str, format: Format, path: &Path, text: String) -> Result<RawRows> {
    RawRows::of_text(text, format, 1).map_err(|error| unreadable(call, path, error))
}

/// The rows of a text that is a part of the program.
fn embedded(call: &'static str, format: Format, source: &str, text: &str) -> Result<Dataset> {
    let columns = Columns::new();
    let work = Work::begin(VERB, text.len(), Unit::Bytes);
    let mut pass = Pass::new(call, format, &columns, work, Some(Vec::new()));
    let rows = of_text(call, format, Path::new(source), text.to_owned())?;
    pass.rows(source, text.len() as u64, rows)?;
    let mut data = pass.data(source.to_owned(), true)?;
    data.examples.iter_mut().for_each(|it| it.file = None);
    Ok(data)
}

/// SC0911 for a file.
fn unreadable(call: &str, path: &Path, reason: impl ToString) -> Box<Diagnostic> {
    problem::unreadable(call, &path.to_string_lossy(), None, reason.to_string())
}

/// All rows of a file, or of all files that a pattern names in the order of their names, as one data set. `open` gives the
/// rows of a file, and what it decided by itself.
///
/// # Errors
/// As [`Index::of`](super::Index::of); what `open` ends with; SC0913 for a class that is not among those that the files name.
fn collected(
    call: &'static str,
    format: Format,
    path: &Path,
    columns: &Columns,
    open: impl Fn(&Path) -> Result<(RawRows, Option<String>)>,
) -> Result<Dataset> {
    let files = files::of(call, format, path)?;
    let work = Work::begin(VERB, files::bytes(&files), Unit::Bytes);
    let mut pass = Pass::new(call, format, columns, work, Some(Vec::new()));
    let mut remarks = Vec::new();
    for file in &files {
        let (rows, remark) = open(file)?;
        let bytes = file.metadata().map_or(0, |it| it.len());
        pass.rows(&file.to_string_lossy(), bytes, rows)?;
        remarks.extend(remark.filter(|remark| !remarks.contains(remark)));
    }
    let data = pass.data(path.to_string_lossy().into_owned(), files.len() == 1)?;
    Ok(Dataset { remarks, ..data })
}

impl Pass<'_> {
    /// The rows as a data set. `is_one_file`: of several files a line does not say which.
    fn data(self, source: String, is_one_file: bool) -> Result<Dataset> {
        let label_names = self.label_names()?;
        self.work.finished();
        let names: Vec<Arc<str>> = label_names
            .iter()
            .map(|name| name.as_str().into())
            .collect();
        let class_of = index_of(&label_names);
        let class = |name: &str| class_of.get(name).copied();
        // Columns of labels of which each row has one are classes.
        let has_one_each = self.columns.one_hot_names().is_some() && !self.has_sets;
        let has_lines = is_one_file && self.format.has_lines();
        let rows = self.in_memory.unwrap_or_default().into_iter().enumerate();
        let examples = rows.filter_map(
            |(
                row,
                Stored {
                    file,
                    line,
                    mut fields,
                },
            )| {
                if let (true, Given::Several(names)) = (has_one_each, &fields.label) {
                    fields.label = Given::Class(names.concat());
                }
                Some(Example {
                    row,
                    line: has_lines.then_some(line),
                    file: Some(file),
                    ..fields.example(class, &names)?
                })
            },
        );
        let data = Dataset {
            examples: examples.collect(),
            label_names: label_names.clone(),
            source,
            skipped: self.skipped,
            remarks: Vec::new(),
            auto_shard: AutoShardPolicy::default(),
        };
        match self.order.into_names() {
            Some(names) => data.with_label_names(&names),
            None => Ok(data),
        }
    }
}

/// The content of a file that is compressed with gzip, up to one byte more than is read of a file.
fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(LARGEST_FILE_BYTES + 1)
        .read_to_end(&mut content)?;
    Ok(content)
}

/// Reads a whole file as text, unpacked and without a byte order mark. The columns may name its encoding.
fn read_encoded(call: &'static str, path: &Path, encoding: Option<&str>) -> Result<String> {
    let name = path.display().to_string();
    let unreadable = |reason: String| problem::unreadable(call, &name, None, reason);
    let file = files::open(path).map_err(unreadable)?;
    let metadata = file
        .metadata()
        .map_err(|error| unreadable(error.to_string()))?;
    let too_large = format!("it is larger than {} GiB", LARGEST_FILE_BYTES >> 30);
    if metadata.len() > LARGEST_FILE_BYTES {
        return Err(unreadable(too_large));
    }
    let mut bytes = Vec::new();
    // A file may grow while it is read.
    file.take(LARGEST_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.starts_with(GZIP) {
        let reason = |error: io::Error| {
            unreadable(format!("it is compressed with gzip, and damaged: {error}"))
        };
        bytes = unpacked(&bytes).map_err(reason)?;
    }
    if bytes.len() as u64 > LARGEST_FILE_BYTES {
        return Err(unreadable(too_large));
    }
    let has_columns = call != "Dataset::text";
    if let Some((reason, way)) = foreign::foreign(&bytes, &name, has_columns) {
        return Err(problem::unreadable_with(call, &name, reason, &way));
    }
    encoding::decoded(bytes, encoding).map_err(|undecoded| {
        let problem = problem::unreadable(call, &name, undecoded.line, undecoded.reason);
        let word = undecoded.word.as_deref();
        match undecoded.probably {
            Some(probably) => problem::in_encoding(problem, call, &name, (probably, word)),
            None => problem,
        }
    })
}
