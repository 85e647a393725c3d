//! What a program computes by hand and one call gives here: the share of right answers, and lists that a loop makes.

use stratoscope_diagnostics::check::iterator_form;

use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};

/// Functions of a mean, of a sum, of a comparison.
const MEANS: [&str; 8] = [
    "numpy.mean",
    "numpy.average",
    "tensorflow.reduce_mean",
    "tensorflow.math.reduce_mean",
    "keras.ops.mean",
    "keras.backend.mean",
    "torch.mean",
    "statistics.mean",
];
const SUMS: [&str; 5] = [
    "numpy.sum",
    "numpy.count_nonzero",
    "tensorflow.reduce_sum",
    "tensorflow.math.reduce_sum",
    "torch.sum",
];
const EQUALS: [&str; 5] = [
    "numpy.equal",
    "tensorflow.equal",
    "tensorflow.math.equal",
    "torch.eq",
    "keras.ops.equal",
];
/// Functions and methods that make an array or a number of another type.
const CONVERSIONS: [&str; 17] = [
    "all", "array", "asarray", "astype", "cast", "cpu", "detach", "flatten", "float", "int",
    "item", "long", "numpy", "ravel", "round", "squeeze", "tolist",
];

impl Translator<'_> {
    /// Why a share of right answers is not computed as it is written, and what counts them.
    pub(crate) fn share_by_hand(&self, value: &Value) -> Option<Why> {
        let (predictions, labels) = self.share(value)?;
        let mut predicted = None;
        predictions.visit(&mut |inner| {
            if let Some((model, call)) = inner.method("predict") {
                let x = call.argument("x", 0);
                predicted = model
                    .name()
                    .zip(x)
                    .map(|(name, x)| (name.to_owned(), x.clone()));
            }
        });
        let counted = match predicted {
            Some((model, x)) => {
                let thing = x.name().and_then(|name| self.things.get(name));
                let (x, y) = (self.source(x.span), self.source(labels.span));
                match thing {
                    Some(Thing::Data(_)) => format!("evaluate!({model}, {x})?"),
                    _ => format!("evaluate!({model}, Dataset::from_arrays(&{x}, &{y})?)?"),
                }
            }
            None => "evaluate!(model, data)?".to_owned(),
        };
        Some(format!(
            "the share of right answers is counted by `{counted}`, with `metrics = [accuracy()]` of `compile!`; for predictions it is \
             `predictions.assess(&data)?.accuracy()`, with an interval"
        ))
    }

    pub(crate) fn share<'v>(&self, value: &'v Value) -> Option<(&'v Value, &'v Value)> {
        if let Kind::Binary(left, op, right) = &value.kind {
            return match *op {
                "/" => self.count(left),
                "*" => self.share(left).or_else(|| self.share(right)),
                _ => None,
            };
        }
        let call = value.call()?;
        match self.names.called(value) {
            Some(full) if MEANS.contains(&full.as_str()) => self.compared(call.arguments.first()?),
            _ => match method(value) {
                Some((object, "mean")) => self.compared(object),
                _ => self.share(self.converted(value)?),
            },
        }
    }

    fn count<'v>(&self, value: &'v Value) -> Option<(&'v Value, &'v Value)> {
        let call = value.call()?;
        let is_sum = call.function.name() == Some("sum");
        match self.names.called(value) {
            Some(full) if SUMS.contains(&full.as_str()) => self.compared(call.arguments.first()?),
            _ if is_sum => self.compared(call.arguments.first()?),
            _ => match method(value) {
                Some((object, "sum")) => self.compared(object),
                _ => self.count(self.converted(value)?),
            },
        }
    }

    /// The two sides of `predictions == labels`, the predictions first.
    fn compared<'v>(&self, value: &'v Value) -> Option<(&'v Value, &'v Value)> {
        let sides = |left: &'v Value, right: &'v Value| {
            if self.are_classes(left) {
                Some((left, right))
            } else {
                self.are_classes(right).then_some((right, left))
            }
        };
        match &value.kind {
            Kind::Binary(left, "==", right) => sides(left, right),
            Kind::Call(call) => match (self.names.called(value), call.arguments.as_slice()) {
                (Some(full), [left, right]) if EQUALS.contains(&full.as_str()) => {
                    sides(left, right)
                }
                _ => match (method(value), call.arguments.as_slice()) {
                    (Some((object, "eq" | "equal")), [other]) => sides(object, other),
                    _ => self.compared(self.converted(value)?),
                },
            },
            _ => None,
        }
    }

    /// Whether a value has the classes that a model predicts.
    fn are_classes(&self, value: &Value) -> bool {
        let is_last = |name: &str| {
            let full = self.names.called(value);
            full.is_some_and(|full| full.rsplit('.').next() == Some(name))
        };
        match &value.kind {
            Kind::Name(name) if matches!(self.things.get(name), Some(Thing::Classes(_))) => true,
            Kind::Name(name) => {
                let name = name.to_lowercase();
                name.contains("pred") || name.ends_with("hat") || name == "outputs"
            }
            Kind::Binary(left, ">" | ">=", _) => {
                let mut is_predicted = self.are_classes(left);
                left.visit(&mut |inner| is_predicted |= inner.method("predict").is_some());
                is_predicted
            }
            Kind::Attribute(object, _) | Kind::Index(object, _) => self.are_classes(object),
            Kind::Call(_) if is_last("argmax") || value.method("argmax").is_some() => true,
            Kind::Call(_) => self.converted(value).is_some_and(|it| self.are_classes(it)),
            _ => false,
        }
    }

    /// What a conversion is made of: `x` of `x.astype("int")`, `float(x)`, `tf.cast(x, tf.float32)`.
    pub(crate) fn converted<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let call = value.call()?;
        let is_conversion = |name: &str| CONVERSIONS.contains(&name);
        match self.names.called(value) {
            Some(full) => {
                let last = full.rsplit('.').next()?;
                call.arguments.first().filter(|_| is_conversion(last))
            }
            None => match method(value) {
                Some((object, name)) => is_conversion(name).then_some(object),
                None => {
                    let name = call.function.name()?;
                    call.arguments.first().filter(|_| is_conversion(name))
                }
            },
        }
    }

    /// Why a list that a loop makes is not translated, with the iterator that makes it.
    pub(crate) fn made_by_a_loop(&self, value: &Value, what: &str) -> Why {
        match iterator_form(self.source(value.span)) {
            Some(form) => format!("{what} is not translated; an iterator makes it: `{form}`"),
            None => format!("{what} is not translated"),
        }
    }
}

/// `sum(p == l for p, l in zip(predictions, labels))`
pub(crate) fn counts_equal(call: &Call) -> bool {
    let element = call.arguments.first().and_then(|it| match &it.kind {
        Kind::Comprehension(it) => Some(&it.element),
        _ => None,
    });
    element.is_some_and(|it| matches!(it.kind, Kind::Binary(_, "==", _)))
}

/// The object of a method, and its name.
fn method(value: &Value) -> Option<(&Value, &str)> {
    match &value.call()?.function.kind {
        Kind::Attribute(object, name) => Some((object, name)),
        _ => None,
    }
}

/// Why a method of a data frame has no counterpart, and what is there instead: of the innermost call of a chain.
pub(crate) fn of_data_frame(object: &Value, name: &str) -> Option<Why> {
    let inner = method(object).and_then(|(object, name)| of_data_frame(object, name));
    if inner.is_some() {
        return inner;
    }
    let instead = match name {
        "groupby" => {
            "data sets are not grouped: `data.class_counts()` counts the examples of each class, and `data.filter(|example| …)` chooses some"
        }
        "value_counts" | "nunique" => "`data.class_counts()` counts the examples of each class",
        "describe" | "info" => {
            "a data set as the last line of a cell shows its size, its classes and its first rows"
        }
        "isnull" | "isna" | "dropna" | "fillna" => {
            "missing values are decided when a file is read: `Dataset::csv_with(path, &Columns::new().drop_missing())?`"
        }
        "to_csv" | "to_json" | "to_parquet" => {
            "a list of lines is written by `std::fs::write(\"data.txt\", lines.join(\"\\n\")).unwrap();`, such as that of `predictions.labels()`"
        }
        "iterrows" | "itertuples" => "`for example in &data.examples` goes through the rows",
        "sort_values" => {
            "the examples are a list that can be sorted: `data.examples.sort_by_key(|example| example.class())`"
        }
        "drop_duplicates" => "`data.dedupe()` leaves out the examples that are there twice",
        "pivot_table" | "merge" | "corr" | "set_index" | "reset_index" => {
            "there are no data frames here; `Table::new([…])` shows a table of computed values"
        }
        _ => return None,
    };
    Some(instead.to_owned())
}
