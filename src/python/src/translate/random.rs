//! Rows and labels of random numbers, as snippets make them to try a model: a data set of the same sizes.

use stratoscope_diagnostics::CellSpan;

use super::thing::{Pipeline, Thing};
use super::{Translator, Why, text};
use crate::model::{Kind, Value};

/// Rows of random numbers that wait for their labels.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// How many there are, and how many numbers each has.
    sizes: (i64, i64),
    seed: Option<String>,
    span: CellSpan,
}

/// What random numbers an array has.
enum Numbers {
    /// Whole numbers below this one.
    Classes(i64),
    Floats,
}

impl Translator<'_> {
    /// `x = np.random.rand(200, 8)`, and then `y = …` of it or of random numbers: `None` where it is something else.
    pub(crate) fn assign_random(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        // A block may run several times or not at all.
        if self.depth > 0 || self.in_function {
            return None;
        }
        if let Some(call) = value.call()
            && self.names.called(value).as_deref() == Some("numpy.random.default_rng")
        {
            let seed = call.argument("seed", 0).and_then(Value::integer);
            self.idle(
                span,
                "the seed is an argument of `make_classification` and `make_regression`",
            );
            let seed = seed.map(|it| it.unsigned_abs().to_string());
            self.things.insert(name.to_owned(), Thing::Generator(seed));
            return Some(Ok(()));
        }
        if let Some((shape, numbers, seed)) = self.random_array(value)
            && let [rows, columns] = shape.as_slice()
            && (*columns > 1 || matches!(numbers, Numbers::Floats))
            && !self
                .rows_of_numbers
                .values()
                .any(|it| it.sizes.0 == *rows && *columns == 1)
        {
            super::arguments::see_whole(value);
            let rows = Rows {
                sizes: (*rows, *columns),
                seed: seed.or_else(|| self.seed.clone()),
                span,
            };
            self.rows_of_numbers.insert(name.to_owned(), rows);
            self.things
                .insert(name.to_owned(), Thing::Missing(self.line(span.start)));
            return Some(Ok(()));
        }
        self.assign_labels(name, value, span)
    }

    /// `y = …` of rows of random numbers, which are a data set with these labels.
    fn assign_labels(
        &mut self,
        name: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let (rows_name, rows, made) = self.labels_of_random(value)?;
        super::arguments::see_whole(value);
        let (count, columns) = rows.sizes;
        let seed = rows.seed.clone().unwrap_or_else(|| "0".to_owned());
        let rust = match made {
            Some(classes) => format!("make_classification({count}, {columns}, {classes}, {seed})?"),
            None => format!("make_regression({count}, {columns}, {seed})?"),
        };
        self.rows_of_numbers.remove(&rows_name);
        let data = text::name(&rows_name);
        let whole = CellSpan {
            start: rows.span.start,
            end: span.end,
        };
        let lines = CellSpan {
            start: if self.line(span.start) == self.line(rows.span.start) + 1 {
                whole.start
            } else {
                span.start
            },
            end: span.end,
        };
        self.push(format!("let {data} = {rust};"), lines);
        self.note(
            span,
            format!(
                "`{data}` is a data set of the same sizes with labels of its own, and its numbers are others than those of numpy: rows near \
                 one center for each class, or a linear function of the numbers"
            ),
        );
        self.ended.remove(&rows_name);
        self.things
            .insert(rows_name.clone(), Thing::Data(Pipeline::of(data.clone())));
        self.things.insert(name.to_owned(), Thing::LabelsOf(data));
        let mut is_one_hot = false;
        value.visit(&mut |inner| {
            let full = self.names.called(inner);
            is_one_hot |= full.is_some_and(|it| it.ends_with("to_categorical"));
        });
        if is_one_hot {
            self.is_one_hot.insert(name.to_owned());
        }
        Some(Ok(()))
    }

    /// The rows that a value is the labels of, and how many classes; `None` for numbers to be predicted.
    fn labels_of_random(&self, value: &Value) -> Option<(String, Rows, Option<i64>)> {
        let mut inner = value;
        while let Some(converted) = self.converted(inner) {
            inner = converted;
        }
        if let Some(call) = inner.call()
            && self
                .names
                .called(inner)
                .is_some_and(|it| it.ends_with("to_categorical"))
        {
            return self.labels_of_random(call.arguments.first()?);
        }
        if let Some((shape, numbers, _)) = self.random_array(inner) {
            let rows = match shape.as_slice() {
                [rows] | [rows, 1] => *rows,
                _ => return None,
            };
            let mut known = self.rows_of_numbers.iter();
            let (name, found) = known.find(|(_, it)| it.sizes.0 == rows)?;
            let classes = match numbers {
                Numbers::Classes(classes) if classes >= 2 => Some(classes),
                Numbers::Classes(_) => return None,
                Numbers::Floats => None,
            };
            return Some((name.clone(), found.clone(), classes));
        }
        // A function of the rows alone, or with noise.
        let mut names = Vec::new();
        inner.visit(&mut |it| {
            names.extend(
                it.name()
                    .filter(|it| self.rows_of_numbers.contains_key(*it)),
            )
        });
        let name = (*names.first()?).to_owned();
        if names.iter().any(|it| *it != name) {
            return None;
        }
        let found = self.rows_of_numbers.get(&name)?.clone();
        let is_compared = |it: &Value| matches!(&it.kind, Kind::Binary(_, op, _) if matches!(*op, ">" | "<" | ">=" | "<="));
        let of_where = inner
            .call()
            .filter(|_| self.names.called(inner).as_deref() == Some("numpy.where"));
        let condition = of_where
            .and_then(|call| call.arguments.first())
            .unwrap_or(inner);
        let is_number = matches!(&inner.kind, Kind::Binary(_, "+" | "-" | "*" | "@", _))
            || self
                .names
                .called(inner)
                .is_some_and(|it| matches!(it.as_str(), "numpy.dot" | "numpy.sum" | "numpy.sin"))
            || inner.method("sum").is_some()
            || inner.method("dot").is_some();
        match (is_compared(condition), is_number) {
            (true, _) => Some((name, found, Some(2))),
            (false, true) => Some((name, found, None)),
            _ => None,
        }
    }

    /// The shape of an array of random numbers, what numbers it has, and the seed of its generator.
    fn random_array(&self, value: &Value) -> Option<(Vec<i64>, Numbers, Option<String>)> {
        let mut inner = value;
        while let Some(converted) = self.converted(inner) {
            inner = converted;
        }
        let call = inner.call()?;
        let full = self.names.called(inner).unwrap_or_default();
        let (name, seed) = match (full.strip_prefix("numpy.random."), &call.function.kind) {
            (Some(name), _) => (name.to_owned(), None),
            (None, Kind::Attribute(object, name)) => {
                match object.name().and_then(|it| self.things.get(it)) {
                    Some(Thing::Generator(seed)) => (name.clone(), seed.clone()),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let size = |at: usize| call.argument("size", at).or(call.argument("shape", at));
        let (shape, numbers) = match name.as_str() {
            "rand" | "randn" => (self.sizes(&call.arguments)?, Numbers::Floats),
            "random" | "random_sample" | "standard_normal" => {
                (self.shape_of(size(0)?)?, Numbers::Floats)
            }
            "normal" | "uniform" => (self.shape_of(size(2)?)?, Numbers::Floats),
            "randint" | "integers" => {
                let (low, high) = (call.argument("low", 0)?, call.argument("high", 1));
                let classes = match high.filter(|it| it.kind != Kind::None) {
                    Some(high) => self.integer(high)? - self.integer(low)?,
                    None => self.integer(low)?,
                };
                (self.shape_of(size(2)?)?, Numbers::Classes(classes))
            }
            "binomial" => (self.shape_of(size(2)?)?, Numbers::Classes(2)),
            "choice" => {
                let classes = match call.arguments.first()? {
                    list if list.elements().is_some() => {
                        i64::try_from(list.elements()?.len()).ok()?
                    }
                    count => self.integer(count)?,
                };
                (self.shape_of(size(1)?)?, Numbers::Classes(classes))
            }
            _ => return None,
        };
        Some((shape, numbers, seed))
    }

    fn shape_of(&self, size: &Value) -> Option<Vec<i64>> {
        match size.elements() {
            Some(sizes) => self.sizes(sizes),
            None => self.sizes(std::slice::from_ref(size)),
        }
    }

    fn sizes(&self, sizes: &[Value]) -> Option<Vec<i64>> {
        let sizes = sizes.iter().map(|it| self.integer(it).filter(|it| *it > 0));
        sizes.collect()
    }

    /// Names the rows that no labels follow, with what makes such data.
    pub(crate) fn unused_rows(&mut self) {
        for (_, rows) in std::mem::take(&mut self.rows_of_numbers) {
            let (count, columns) = rows.sizes;
            let seed = rows.seed.unwrap_or_else(|| "0".to_owned());
            self.leave_behind(
                rows.span,
                format!(
                    "there is no numpy here; `make_classification({count}, {columns}, 2, {seed})?` makes such rows with two classes, and \
                     `make_regression({count}, {columns}, {seed})?` with numbers to be predicted"
                ),
            );
        }
    }
}
