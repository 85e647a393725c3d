//! The steps of a pipeline: most of them are arguments of `fit!`, and some make another data set.

use super::arguments::see_whole;
use super::thing::{Pipeline, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};
use crate::rules;

/// What becomes of the names of columns.
pub(crate) const COLUMNS: &str = "`fit!` takes the texts and labels of the data set";
/// What decides an order that no part of the data shows.
const SEED: &str = "`seed` of `fit!` decides the order";
/// Where a data set is divided.
pub(crate) const SPLIT: &str = "`let (train, dev) = data.split(0.2)?;` or `data.stratified_split(0.2, 0)?`, with the shares of the classes, cuts off a part";

impl Translator<'_> {
    /// One step of a pipeline.
    pub(crate) fn step(
        &mut self,
        object: &Value,
        step: &str,
        call: &Call,
    ) -> Result<Pipeline, Why> {
        if step == "experimental_distribute_dataset" {
            return self.pipeline(call.argument("dataset", 0).ok_or("it gets no data set")?);
        }
        if step == "prepare_tf_dataset" {
            let data = call.argument("dataset", 0).ok_or("it gets no data set")?;
            let mut data = self.pipeline(data)?;
            // The defaults of Hugging Face.
            data.batch = Some("8".to_owned());
            data.shuffle = Some(true);
            self.arguments_of_batches(call, &["dataset", "batch_size", "shuffle"], &mut data)?;
            return Ok(data);
        }
        let mut data = self.pipeline(object)?;
        data.shuffle = data.shuffle.or(data.is_tensorflow.then_some(false));
        match step {
            "with_options" => self.with_options(call, &mut data),
            "prefetch" => self.idle_arguments(call, "`fit!` reads ahead by itself"),
            "cache" => self.idle_arguments(call, "`fit!` keeps what it has tokenized"),
            "rename_column" if self.renamed(call) => {}
            "rename_column" | "remove_columns" | "set_format" | "with_format" => {
                self.idle_arguments(call, COLUMNS);
            }
            "shuffle" => {
                self.shuffle_arguments(call);
                data.shuffle = Some(true);
                data.shuffled = Some(Box::new(call.clone()));
            }
            "batch" | "padded_batch" => {
                let size = call
                    .argument("batch_size", 0)
                    .ok_or("`batch` has no size")?;
                data.batch = Some(self.size_of_batch(size)?);
                if let Some(drops) = call.written("drop_remainder", 1) {
                    self.idle(
                        drops,
                        "a short last batch is not dropped here: it counts by its examples",
                    );
                }
            }
            "map" => self.mapped(call, &mut data)?,
            "filter" => {
                let condition = self.filtered(call)?;
                self.shuffle_now(&mut data)?;
                data.rust = format!("{}.filter({condition})", data.rust);
            }
            "to_tf_dataset" => {
                // The columns came first once.
                let is_old = call
                    .arguments
                    .first()
                    .is_some_and(|it| it.text().is_some() || it.elements().is_some());
                let names = match is_old {
                    true => ["columns", "batch_size", "shuffle"],
                    false => ["batch_size", "columns", "shuffle"],
                };
                data.shuffle = Some(false);
                self.arguments_of_batches(call, &names, &mut data)?;
            }
            "train_test_split" => {
                return Err(SPLIT.to_owned());
            }
            "take" | "skip" | "select" | "shard" => self.part(step, call, &mut data)?,
            "repeat" => match call.argument("count", 0) {
                Some(count) => data.rust = format!("{}.repeat({})?", data.rust, self.value(count)?),
                None => self.note(
                    call.span,
                    "a data set is finite here: `epochs` of `fit!` says how often it is read",
                ),
            },
            other if let Some(done) = self.step_of_frame(other, call, &mut data) => done?,
            other => return Err(format!("there is no step `{other}` here")),
        }
        Ok(data)
    }

    /// Says where a column is named, if one becomes the text or the label.
    fn renamed(&mut self, call: &Call) -> bool {
        let names = (
            call.argument("original_column_name", 0)
                .and_then(Value::text),
            call.argument("new_column_name", 1).and_then(Value::text),
        );
        let (column, role) = match names {
            (Some(old), Some("label" | "labels")) => (old, "label"),
            (Some(old), Some("text" | "sentence")) => (old, "text"),
            _ => return false,
        };
        // These are found by their names.
        if matches!(column, "label" | "labels" | "text" | "sentence") {
            return false;
        }
        let column = text::text(column);
        call.see_all();
        self.note(
            call.span,
            format!(
                "columns are named where the file is read: `Dataset::csv_with(\"….csv\", &Columns::new().{role}({column}))?`"
            ),
        );
        true
    }

    /// The condition of a `filter`: of the text, its length, or the label of a row.
    fn filtered(&mut self, call: &Call) -> Result<String, Why> {
        const WHY: &str = "a condition of `filter` is translated where it compares the text, its length or the label; \
                           `data.filter(|it| it.text.len() > 10)` is one";
        let function = call
            .argument("function", 0)
            .ok_or("`filter` gets no function")?;
        let Kind::Lambda(names, body) = &function.kind else {
            return Err(WHY.to_owned());
        };
        let [row] = names.as_slice() else {
            return Err(WHY.to_owned());
        };
        let condition = self.condition_of_row(body, row).ok_or(WHY)?;
        see_whole(function);
        for name in ["num_proc", "batched", "desc", "load_from_cache_file"] {
            if let Some(keyword) = call.keyword(name) {
                self.idle(keyword.span, "`filter` goes through the examples in memory");
            }
        }
        Ok(format!("|{}| {condition}", text::name(row)))
    }

    fn condition_of_row(&self, value: &Value, row: &str) -> Option<String> {
        let Kind::Binary(left, op, right) = &value.kind else {
            return None;
        };
        if matches!(*op, "and" | "or") {
            let sides = (
                self.condition_of_row(left, row)?,
                self.condition_of_row(right, row)?,
            );
            let op = if *op == "and" { "&&" } else { "||" };
            return Some(format!("({} {op} {})", sides.0, sides.1));
        }
        let column = |it: &Value| match &it.kind {
            Kind::Index(object, key) if object.name() == Some(row) => match key.text()? {
                "text" | "sentence" | "review" | "content" => Some("text"),
                "label" | "labels" => Some("label"),
                _ => None,
            },
            _ => None,
        };
        let name = text::name(row);
        let is_compared = matches!(*op, "==" | "!=" | "<" | "<=" | ">" | ">=");
        if let ("in" | "not in", Some(part), Some("text")) = (*op, left.text(), column(right)) {
            let sign = if *op == "in" { "" } else { "!" };
            return Some(format!("{sign}{name}.text.contains({})", text::text(part)));
        }
        let length = left.call().filter(|it| it.function.name() == Some("len"));
        let of_length = length.and_then(|it| column(it.arguments.first()?));
        match (of_length, column(left)) {
            (Some("text"), _) if is_compared => {
                let count = right.integer()?;
                Some(format!("{name}.text.chars().count() {op} {count}"))
            }
            (None, Some("label")) if matches!(*op, "==" | "!=") => {
                let class = right.integer().filter(|it| *it >= 0)?;
                Some(format!("{name}.class() {op} Some({class})"))
            }
            (None, Some("text")) if matches!(*op, "==" | "!=") => {
                Some(format!("{name}.text {op} {}", text::text(right.text()?)))
            }
            (None, Some("text")) if *op == "is not" && right.kind == Kind::None => {
                Some(format!("!{name}.text.is_empty()"))
            }
            _ => None,
        }
    }

    /// What sets nothing: a buffer, and the seed unless a part is taken.
    fn shuffle_arguments(&mut self, call: &Call) {
        if let Some(size) = call.written("buffer_size", 0) {
            self.idle(size, "all examples are shuffled, not a buffer of them");
        }
        if let Some(seed) = call.written("seed", 1) {
            self.idle(seed, SEED);
        }
    }

    /// A part of a data set: of what was shuffled before, it is a part of the shuffled examples.
    fn part(&mut self, step: &str, call: &Call, data: &mut Pipeline) -> Result<(), Why> {
        let part = match step {
            "take" | "skip" => {
                let count = call.argument("count", 0).ok_or("it has no count")?;
                let count = self.typed(count)?;
                match &data.batch {
                    Some(batch) => {
                        format!("{step}({} * {})", count.operand(), text::factor(batch))
                    }
                    None => format!("{step}({})", count.rust),
                }
            }
            "select" => {
                let range = call.arguments.first().and_then(Value::call);
                let range = range
                    .filter(|it| it.function.name() == Some("range") && it.arguments.len() == 1);
                let count = range.ok_or("`select` is translated for `range(n)` only")?;
                call.see_all();
                count.see_all();
                format!("take({})", self.value(&count.arguments[0])?)
            }
            _ if data.is_tensorflow && data.batch.is_none() => {
                let part = |name: &str, place: usize| {
                    call.argument(name, place)
                        .ok_or_else(|| format!("`shard` has no `{name}`"))
                };
                let (count, index) = (part("num_shards", 0)?, part("index", 1)?);
                let (count, index) = (self.value(count)?, self.value(index)?);
                format!("shard({count}, {index})?")
            }
            _ => {
                return Err(
                    "`shard` takes every n-th example here, as `tf.data` does before `batch`"
                        .to_owned(),
                );
            }
        };
        self.shuffle_now(data)?;
        data.rust = format!("{}.{part}", data.rust);
        Ok(())
    }

    /// Writes a `shuffle` whose order is seen by what follows; `fit!` alone would shuffle what is left.
    fn shuffle_now(&mut self, data: &mut Pipeline) -> Result<(), Why> {
        let Some(shuffle) = data.shuffled.take() else {
            return Ok(());
        };
        // The first argument of `tf.data` is the size of a buffer.
        let seed = shuffle.argument("seed", 1);
        if let Some(span) = shuffle.written("seed", 1) {
            // It is in the cell now.
            let (line, words) = (self.line(span.start), self.source(span).to_owned());
            let idle = &mut self.translation.idle;
            idle.retain(|it| it.line != line || it.text != words || it.why != SEED);
        }
        let seed = match seed.filter(|it| it.kind != Kind::None) {
            None => "0".to_owned(),
            Some(seed) => match self.integer(seed) {
                Some(number) => number.unsigned_abs().to_string(),
                None => format!("{} as u64", self.typed(seed)?.operand()),
            },
        };
        data.rust = format!("{}.shuffled({seed})", data.rust);
        self.note(
            shuffle.span,
            "`shuffled` puts all examples into an order that stays; that of `tf.data` is new in every epoch, and its numbers \
             are others",
        );
        Ok(())
    }

    /// The size of a batch.
    fn size_of_batch(&mut self, size: &Value) -> Result<String, Why> {
        let rust = self.value(size)?;
        if let Some(name) = size.name()
            && !self.things.contains_key(name)
        {
            self.free(name, "a whole number, such as `32`")?;
        }
        Ok(rust)
    }

    /// The size of batches and whether they are shuffled, by the names of the arguments in their order.
    fn arguments_of_batches(
        &mut self,
        call: &Call,
        names: &[&str],
        data: &mut Pipeline,
    ) -> Result<(), Why> {
        let given = |name: &str| {
            let place = names.iter().position(|it| *it == name)?;
            call.argument(name, place)
                .filter(|it| it.kind != Kind::None)
        };
        if let Some(size) = given("batch_size") {
            data.batch = Some(self.size_of_batch(size)?);
        }
        if let Some(columns) = given("columns") {
            self.idle(columns.span, COLUMNS);
        }
        given("dataset");
        match given("shuffle").map(|it| &it.kind) {
            Some(Kind::Bool(shuffle)) => data.shuffle = Some(*shuffle),
            Some(_) => return Err("`shuffle` is `True` or `False` here".to_owned()),
            None => {}
        }
        match data.shuffle {
            // The order of a `shuffle` before it stays.
            Some(false) => self.shuffle_now(data),
            // A part of it is one of the shuffled data; no argument names a seed.
            Some(true) => {
                data.shuffled.get_or_insert_with(|| {
                    Box::new(Call {
                        function: call.function.clone(),
                        arguments: Vec::new(),
                        keywords: Vec::new(),
                        starred: None,
                        spread: None,
                        span: call.span,
                        seen: call.seen.clone(),
                    })
                });
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// `map(function)`: a function that only tokenizes is what `fit!` does.
    pub(crate) fn mapped(&mut self, call: &Call, data: &mut Pipeline) -> Result<(), Why> {
        let function = call
            .argument("function", 0)
            .or(call.keyword("map_func").map(|it| &it.value))
            .ok_or("`map` gets no function")?;
        if let Some(batch) = call.keyword("batch_size") {
            self.idle(batch.span, "`fit!` tokenizes all texts at once");
        }
        if let Some(calls) = call.written("num_parallel_calls", 1) {
            self.idle(calls, "`fit!` reads ahead by itself");
        }
        let found = match &function.kind {
            Kind::Name(name) => match self.things.get(name).cloned() {
                Some(Thing::Tokenizes(length, span)) => Some((length, span)),
                Some(Thing::Missing(_)) => {
                    return Err(self.value(function).err().unwrap_or_default());
                }
                _ => None,
            },
            Kind::Lambda(_, body) => self.tokenizes(body)?,
            _ => None,
        };
        let Some((length, span)) = found else {
            return Err(
                "a function of `map` is translated where it only calls the tokenizer".to_owned(),
            );
        };
        if data.is_tensorflow {
            let found = rules::tokenizer_in_map(span, call.span);
            self.find(found);
        }
        if data.is_tensorflow
            && let Some(batched) = call.keyword("batched")
        {
            self.note(
                batched.span,
                "`map` of `tf.data` has no `batched`; that of Hugging Face's `datasets` has",
            );
        }
        data.max_length = length.or(data.max_length.take());
        Ok(())
    }
}
