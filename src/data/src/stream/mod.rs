//! [`Stream`]: data that stays in its files. `fit!`, `start!` and `evaluate!` take it where they take a
//! [`Dataset`]; only the rows of a shuffle buffer and of the coming batches are in memory.
//!
//! Making a stream looks through its files once (`pass`): it counts rows and classes, checks every row, and writes down
//! where every 512th stands. So the number of steps is known before the first one, and a run that goes on at any step reads
//! from there (`order`). Texts become tokens when their batch is made (`encoded`).

mod batches;
mod counted;
mod division;
mod encoded;
mod inputs;
mod order;
mod shown;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use stratoscope_diagnostics::{Diagnostic, Result};

use crate::dataset::{Dataset, SkippedRows, index_of};
use crate::example::Example;
use crate::problem;
use crate::shards::AutoShardPolicy;
use crate::source::{BLOCK, Columns, Format, Index, Names};
use crate::summary::Head;

pub use batches::StreamBatches;
pub use encoded::{EncodedStream, StreamTokens};

use order::pieces;

/// Rows of the shuffle buffer.
const BUFFER: usize = 32 * BLOCK;
/// Blocks that are read together where all rows are gone through.
const TOGETHER: usize = 4;

/// Rows of one or several files that are read when they are needed. A clone shares what is known of the files.
///
/// ```no_run
/// use stratoscope_data::{Columns, Stream};
///
/// # fn main() -> stratoscope_diagnostics::Result<()> {
/// let columns = Columns::new().text("review").label("stars").skip_bad_rows();
/// let reviews = Stream::csv_with("reviews/*.csv", &columns)?.shuffle(50_000)?;
/// println!("{reviews}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Stream {
    index: Arc<Index>,
    names: Arc<Names>,
    /// Rows that are mixed at a time.
    buffer: usize,
    /// Which of its rows each worker has.
    pub(crate) auto_shard: AutoShardPolicy,
}

impl Stream {
    /// The rows of comma-separated files whose columns have common names (see [`Columns`]). The path may be a pattern, as
    /// for every reader here.
    ///
    /// # Errors
    /// SC0911 for a file that cannot be read as UTF-8, or not twice; SC0912 for a row with more or fewer fields than the
    /// header; SC0313 if a column is missing; SC0416 for rows without a label; SC0914 if there is no row; SC0520 if it is
    /// interrupted.
    pub fn csv(path: impl AsRef<Path>) -> Result<Self> {
        Self::csv_with(path, &Columns::new())
    }

    /// [`Self::csv`] with named columns.
    ///
    /// # Errors
    /// As [`Self::csv`].
    pub fn csv_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        Self::of("Stream::csv", Format::Csv, path.as_ref(), columns)
    }

    /// The rows of tab-separated files without quoting, as [`Dataset::tsv`] reads them.
    ///
    /// # Errors
    /// As [`Self::csv`].
    pub fn tsv(path: impl AsRef<Path>) -> Result<Self> {
        Self::tsv_with(path, &Columns::new())
    }

    /// [`Self::tsv`] with named columns.
    ///
    /// # Errors
    /// As [`Self::csv_with`].
    pub fn tsv_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        Self::of("Stream::tsv", Format::Tsv, path.as_ref(), columns)
    }

    /// The objects of JSON Lines, as [`Dataset::jsonl`] reads them: texts, or questions with their answers.
    ///
    /// # Errors
    /// As [`Self::csv`]; SC0911 for a line that is no object or lacks a key of the first one; SC0432 for an answer that does
    /// not stand where its line says.
    pub fn jsonl(path: impl AsRef<Path>) -> Result<Self> {
        Self::jsonl_with(path, &Columns::new())
    }

    /// [`Self::jsonl`] with named keys.
    ///
    /// # Errors
    /// As [`Self::csv_with`].
    pub fn jsonl_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        Self::of("Stream::jsonl", Format::Jsonl, path.as_ref(), columns)
    }

    /// The rows of Parquet files: words with tags, or questions with answers, where they have the columns of both as
    /// [`Dataset::parquet`] reads them, else texts whose columns have common names (see [`Columns`]), as
    /// [`Dataset::parquet_with`] reads them. Only the columns
    /// that are needed are read, and of these the pages that hold the rows. In messages a row is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 for a file that is no Parquet or is damaged, or a row whose values are no texts; SC0432 for an answer that does
    /// not stand where its row says; else as [`Self::csv`].
    pub fn parquet(path: impl AsRef<Path>) -> Result<Self> {
        Self::parquet_with(path, &Columns::new())
    }

    /// [`Self::parquet`] with named columns.
    ///
    /// # Errors
    /// As [`Self::parquet`].
    pub fn parquet_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        Self::of("Stream::parquet", Format::Parquet, path.as_ref(), columns)
    }

    /// The rows of Arrow files: those of the cache of Hugging Face's `datasets`, and Feather files. What their columns make
    /// is as of [`Self::parquet`]. A batch of rows is decoded for any row of it.
    ///
    /// # Errors
    /// SC0911 for a file that is no Arrow or is damaged, or a row whose values are no texts; else as [`Self::csv`].
    pub fn arrow(path: impl AsRef<Path>) -> Result<Self> {
        Self::arrow_with(path, &Columns::new())
    }

    /// [`Self::arrow`] with named columns.
    ///
    /// # Errors
    /// As [`Self::arrow`].
    pub fn arrow_with(path: impl AsRef<Path>, columns: &Columns) -> Result<Self> {
        Self::of("Stream::arrow", Format::Arrow, path.as_ref(), columns)
    }

    /// The sentences of files of tagged words, as [`Dataset::conll`] reads them: for `BertForTokenClassification`.
    ///
    /// # Errors
    /// SC0911 for a file that cannot be read as UTF-8, or a line that is no word with its tag; SC0912 for a line with other
    /// columns than those before; SC0914 if there is no sentence; SC0520 if it is interrupted.
    pub fn conll(path: impl AsRef<Path>) -> Result<Self> {
        Self::of(
            "Stream::conll",
            Format::Conll,
            path.as_ref(),
            &Columns::new(),
        )
    }

    /// The questions of files of SQuAD, as [`Dataset::squad`] reads them: for `BertForQuestionAnswering`. Each file is gone
    /// through paragraph by paragraph; in messages a question is a line, counted from 1.
    ///
    /// # Errors
    /// SC0911 for a file that cannot be read as such JSON; SC0432 for an answer that does not stand where the file says;
    /// SC0914 if there is no question; SC0520 if it is interrupted.
    pub fn squad(path: impl AsRef<Path>) -> Result<Self> {
        Self::of(
            "Stream::squad",
            Format::Squad,
            path.as_ref(),
            &Columns::new(),
        )
    }

    /// A text a line, without labels: for a masked language model. Blank lines are left out.
    ///
    /// # Errors
    /// SC0911 for a file that cannot be read as UTF-8, SC0914 if there is no line.
    pub fn text(path: impl AsRef<Path>) -> Result<Self> {
        Self::of("Stream::text", Format::Text, path.as_ref(), &Columns::new())
    }

    fn of(call: &'static str, format: Format, path: &Path, columns: &Columns) -> Result<Self> {
        let unread = match (columns.encoding_name(), columns.one_hot_names()) {
            (Some(encoding), _) => Some((
                format!("a stream reads UTF-8, and `encoding` names `{encoding}`"),
                "read it into memory with `Dataset`, or write it as UTF-8",
            )),
            (None, Some(_)) => Some((
                "a stream has its labels in one column, not in one for each label".to_owned(),
                "read it into memory with `Dataset`, or join the columns in one with the names of the labels",
            )),
            (None, None) => None,
        };
        if let Some((reason, fix)) = unread {
            let path = path.to_string_lossy();
            return Err(problem::unreadable_with(call, &path, &reason, fix));
        }
        let index = Arc::new(Index::of(call, format, path, columns)?);
        let stream = Self {
            names: Arc::new(Names::new(index.label_names.clone(), None)),
            index: Arc::clone(&index),
            buffer: BUFFER,
            auto_shard: AutoShardPolicy::default(),
        };
        match &index.class_order {
            Some(names) => stream.with_label_names(names),
            None => Ok(stream),
        }
    }

    /// Sets how many rows `fit!` mixes at a time: more rows mix better and take more memory. An epoch reads blocks of 512
    /// rows from all over the files in a random order; as many of them as the buffer holds are mixed row by row. With a
    /// buffer of all rows the order is that of a data set in memory. Default: 16 384.
    ///
    /// # Errors
    /// SC0915 for 0.
    pub fn shuffle(self, buffer: usize) -> Result<Self> {
        if buffer == 0 {
            let place = problem::call("shuffle");
            return Err(problem::bad_size(place, "buffer", buffer, "at least 1"));
        }
        Ok(Self { buffer, ..self })
    }

    /// The same rows, divided over the workers of a `MultiWorkerMirroredStrategy` in this way, as
    /// [`Dataset::auto_shard`] does. Workers share the buffer, of which each has 512 rows at least.
    #[must_use]
    pub fn auto_shard(self, policy: AutoShardPolicy) -> Self {
        Self {
            auto_shard: policy,
            ..self
        }
    }

    /// The files and the rows of each, in the order of their names.
    pub fn files(&self) -> Vec<(&str, Range<usize>)> {
        let files = self.index.files.iter();
        let mut files: Vec<_> = files
            .map(|it| (it.layout.source(), it.rows.clone()))
            .collect();
        files.sort_by_key(|(name, _)| *name);
        files
    }

    /// How many examples there are: the rows of all files without those that were skipped or dropped.
    pub fn len(&self) -> usize {
        self.index.rows
    }

    /// Whether there are none, which no stream is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path or pattern as it was given.
    pub fn source(&self) -> &str {
        &self.index.source
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.index.bytes
    }

    /// The name of each class, by index; empty when the labels are numbers or absent.
    pub fn label_names(&self) -> &[String] {
        &self.names.list
    }

    /// How many classes there are: 0 when the labels are numbers or absent.
    pub fn num_labels(&self) -> usize {
        self.names.list.len()
    }

    /// How many examples each class has, in the order of the names; of tagged words, how many words.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.num_labels()];
        for (of_files, count) in self.index.class_counts.iter().enumerate() {
            counts[self.names.class(of_files)] += count;
        }
        counts
    }

    /// The lowest and the highest number, where numbers are to be predicted.
    pub fn value_range(&self) -> Option<(f32, f32)> {
        self.index.values
    }

    /// The lowest and the highest weight of a row, as [`Columns::weight`] reads them; `None` where all count alike.
    pub fn weights(&self) -> Option<(f32, f32)> {
        self.index.weights
    }

    /// Whether a row has several labels, as [`Columns::labels`] reads them.
    pub fn has_label_sets(&self) -> bool {
        self.index.has_label_sets
    }

    /// How many texts each prompt has to choose from, as [`Columns::choices`] reads them; `None` where rows are no prompts.
    pub fn choices(&self) -> Option<usize> {
        self.index.choices
    }

    /// Whether the examples are questions with answers.
    pub fn has_answers(&self) -> bool {
        self.index.has_answers()
    }

    /// Whether the examples are words with tags.
    pub fn is_tagged(&self) -> bool {
        self.index.is_tagged()
    }

    /// Whether the examples are pairs of texts.
    pub fn is_paired(&self) -> bool {
        self.index.is_paired()
    }

    /// Rows that cannot be read and were skipped, as [`Columns::skip_bad_rows`] asks for.
    pub fn skipped(&self) -> &SkippedRows {
        &self.index.skipped
    }

    /// Renumbers the classes by a list of names, such as that of a trained model.
    ///
    /// # Errors
    /// SC0913 if there is a class that is not in the list; SC0911 if a file has changed.
    pub fn with_label_names(&self, label_names: &[String]) -> Result<Self> {
        let class_of = index_of(label_names);
        let own = self.index.label_names.iter();
        let numbers: Vec<Option<usize>> = own
            .map(|name| class_of.get(name.as_str()).copied())
            .collect();
        if let Some(unknown) = numbers.iter().position(Option::is_none) {
            let plain = Self {
                names: Arc::new(Names::new(self.index.label_names.clone(), None)),
                ..self.clone()
            };
            let first = plain.find(|example| {
                let set = example.classes().unwrap_or_default();
                let mut words = example.words().unwrap_or_default().iter();
                example.class() == Some(unknown)
                    || set.contains(&unknown)
                    || words.any(|word| word.tag == Some(unknown))
            })?;
            let rows = numbers.iter().zip(&self.index.class_counts);
            let rows = rows
                .filter(|(number, _)| number.is_none())
                .map(|(_, rows)| rows);
            let name = &self.index.label_names[unknown];
            let example = first.unwrap_or_else(|| Example::new(""));
            return Err(problem::unknown_label(
                self.source(),
                &example,
                name,
                label_names,
                rows.sum(),
            ));
        }
        let numbers = numbers.into_iter().flatten().collect();
        Ok(Self {
            names: Arc::new(Names::new(label_names.to_vec(), Some(numbers))),
            ..self.clone()
        })
    }

    /// The first `count` examples, or all if there are fewer, as a data set in memory.
    ///
    /// # Errors
    /// SC0911 if a file has changed.
    pub fn first(&self, count: usize) -> Result<Dataset> {
        let wanted: Vec<Range<usize>> = pieces(0..count.min(self.len())).collect();
        Ok(self.portion(self.index.read(&wanted, &self.names)?))
    }

    /// The first `count` examples as a table: `stream.head(5)?`.
    ///
    /// # Errors
    /// SC0911 if a file has changed.
    pub fn head(&self, count: usize) -> Result<Head> {
        Ok(Head::of(self.first(count)?, self.len()))
    }

    /// The first example that a function finds.
    ///
    /// # Errors
    /// SC0911 if a file has changed.
    pub fn find(&self, is_meant: impl Fn(&Example) -> bool) -> Result<Option<Example>> {
        for portion in self.portions() {
            if let Some(found) = portion?.examples.into_iter().find(&is_meant) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// All examples in the order of the files, some at a time.
    pub fn portions(&self) -> impl Iterator<Item = Result<Dataset>> + '_ {
        let size = TOGETHER * BLOCK;
        (0..self.len()).step_by(size).map(move |first| {
            let rows = first..(first + size).min(self.len());
            let wanted: Vec<Range<usize>> = pieces(rows).collect();
            Ok(self.portion(self.index.read(&wanted, &self.names)?))
        })
    }

    fn portion(&self, examples: Vec<Example>) -> Dataset {
        Dataset {
            examples,
            label_names: self.names.list.clone(),
            source: self.source().to_owned(),
            skipped: SkippedRows::default(),
            remarks: Vec::new(),
            auto_shard: self.auto_shard,
        }
    }

    /// SC0911 for texts that have become others.
    fn changed(&self) -> Box<Diagnostic> {
        let (call, source) = (self.index.call(), self.source());
        let reason = "its texts have changed; make the stream anew";
        problem::unreadable(call, source, None, reason)
    }

    /// Whether the rows of a file are among them.
    pub(crate) fn reads(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else {
            return false;
        };
        let mut files = self.index.files.iter();
        files.any(|file| file.path.canonicalize().is_ok_and(|it| it == path))
    }
}
