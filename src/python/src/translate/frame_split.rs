//! `train_test_split` of scikit-learn, data with its labels, and tables of predictions.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::frame::Column;
use super::thing::{Pipeline, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

impl Translator<'_> {
    /// `train_test_split(df, …)`, `train_test_split(x, y, …)`; `None`: it is something else.
    pub(crate) fn split_frame(
        &mut self,
        targets: &[Value],
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        let full = self.names.called(value)?;
        let call = value
            .call()
            .filter(|_| full == "sklearn.model_selection.train_test_split")?;
        let names: Vec<&str> = targets.iter().filter_map(Value::name).collect();
        if names.len() != targets.len() || call.starred.is_some() {
            return None;
        }
        match (call.arguments.as_slice(), names.as_slice()) {
            ([data], [train, test]) if self.is_data_set(data) || self.is_frame(data) => {
                let data = data.clone();
                Some(self.split_into(call, |it| it.pipeline(&data), [train, test], &[], span))
            }
            ([x, y], [x_train, x_test, y_train, y_test]) => {
                let (x, y) = (x.clone(), y.clone());
                let labels = [*y_train, *y_test];
                Some(self.split_into(
                    call,
                    |it| it.data_of(&x, Some(&y)),
                    [x_train, x_test],
                    &labels,
                    span,
                ))
            }
            _ => None,
        }
    }

    fn split_into(
        &mut self,
        call: &Call,
        data: impl FnOnce(&mut Self) -> Result<Pipeline, Why>,
        names: [&str; 2],
        labels: &[&str],
        span: CellSpan,
    ) -> Result<(), Why> {
        let data = data(self)?;
        for name in names.iter().chain(labels) {
            self.keeps_outside(name)?;
        }
        let given = |name: &str| {
            call.argument(name, usize::MAX)
                .filter(|it| it.kind != Kind::None)
        };
        let size = given("test_size").cloned();
        let share = match (&size, given("train_size")) {
            (Some(size), _) if matches!(size.kind, Kind::Int(_)) => {
                format!("{}.0 / {}.len() as f64", self.value(size)?, data.rust)
            }
            (Some(size), _) => self.float(size)?,
            (None, Some(size)) => format!("1.0 - {}", self.float(size)?),
            (None, None) => "0.25".to_owned(),
        };
        let seed = match given("random_state").cloned() {
            Some(seed) => self.value(&seed)?,
            None => "0".to_owned(),
        };
        let rust = match (given("stratify"), given("shuffle").map(|it| &it.kind)) {
            (Some(_), _) => format!("{}.stratified_split({share}, {seed})?", data.rust),
            (None, Some(Kind::Bool(false))) => format!("{}.split({share})?", data.rust),
            _ => format!("{}.shuffled({seed}).split({share})?", data.rust),
        };
        for keyword in &call.keywords {
            let known = [
                "test_size",
                "train_size",
                "random_state",
                "stratify",
                "shuffle",
            ];
            if known.contains(&keyword.name.as_str()) {
                see_whole(&keyword.value);
            }
        }
        call.see_all();
        let [train, test] = names.map(text::name);
        self.push(format!("let ({train}, {test}) = {rust};"), span);
        self.note(
            span,
            "the parts are drawn by other random numbers than those of scikit-learn",
        );
        if !labels.is_empty() {
            self.note(span, "a data set has its labels with it");
        }
        for (place, name) in names.iter().enumerate() {
            let part = Pipeline {
                rust: text::name(name),
                ..data.clone()
            };
            let own = part.rust.clone();
            self.things.insert((*name).to_owned(), Thing::Data(part));
            if let Some(labels) = labels.get(place) {
                self.things
                    .insert((*labels).to_owned(), Thing::LabelsOf(own));
            }
        }
        Ok(())
    }

    /// A data set that `x` and `y` are together: a set and its labels, or two columns of one.
    pub(crate) fn set_with_labels(
        &mut self,
        x: &Value,
        y: &Value,
    ) -> Option<Result<Pipeline, Why>> {
        if let Some(Thing::LabelsOf(set)) = y.name().and_then(|name| self.things.get(name)) {
            let set = set.clone();
            return Some(match x.name().is_some_and(|name| text::name(name) == set) {
                true => self.pipeline(x),
                false => Err(format!(
                    "`{}` has the labels of `{set}`",
                    self.source(y.span)
                )),
            });
        }
        match (self.column(x), self.column(y)) {
            (Some((a, Column::Text)), Some((b, Column::Label)))
                if self.source(a.span) == self.source(b.span) =>
            {
                let frame = a.clone();
                Some(self.pipeline(&frame))
            }
            _ if self.is_frame(x) => Some(Err(format!(
                "a data set has its labels with it: `{}` alone is given, without `{}`",
                self.source(x.span),
                self.source(y.span)
            ))),
            _ => None,
        }
    }

    /// Why a table with predictions is not made, and what writes them to a file.
    pub(crate) fn table_of_predictions(&self, call: &Call) -> Option<Why> {
        let Kind::Dict(items) = &call.arguments.first()?.kind else {
            return None;
        };
        let (_, predictions) = items.iter().find(|(_, value)| {
            let thing = value.name().and_then(|name| self.things.get(name));
            matches!(thing, Some(Thing::Predictions(_) | Thing::Classes(_)))
        })?;
        let name = predictions.name()?;
        let (list, header) = match self.things.get(name) {
            Some(Thing::Predictions(_)) => (format!("{}.labels()", text::name(name)), "id,label"),
            _ => (text::name(name), "id,class"),
        };
        Some(format!(
            "there are no data frames here; `let rows: String = {list}.iter().enumerate().map(|(id, label)| format!(\"{{id}},{{label}}\\n\")).collect();` \
             and `std::fs::write(\"submission.csv\", format!(\"{header}\\n{{rows}}\")).unwrap();` write the predictions, numbered from 0"
        ))
    }
}
