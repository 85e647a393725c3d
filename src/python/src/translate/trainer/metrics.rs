//! What is measured: `evaluate.load(…)`, functions of scikit-learn, and `compute_metrics`, which calls them.

use std::collections::BTreeSet;

use super::super::arguments::see_whole;
use super::super::call::Made;
use super::super::thing::Thing;
use super::super::{Translator, Why};
use super::part::Part;
use crate::model::{
    Call, Function, Kind, Statement, StatementKind, Value, each_statement, each_value,
};
use crate::trainer_rules;

/// A metric, and the name that `compute_metrics` gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    /// Its name in Python.
    pub key: String,
    /// As Rust: `macro_f1()`.
    pub rust: String,
}

impl Measure {
    fn of(key: &str, rust: &str) -> Self {
        Self {
            key: key.to_owned(),
            rust: rust.to_owned(),
        }
    }

    /// Its name here: `macro_f1`.
    pub fn name(&self) -> &str {
        self.rust.split('(').next().unwrap_or_default()
    }
}

/// Metrics by their names in `evaluate` and scikit-learn: the name, `average`, and what it is here.
const METRICS: &[(&[&str], &str, &str)] = &[
    (&["accuracy", "accuracy_score"], "", "accuracy()"),
    (&["f1", "f1_score"], "binary", "f1()"),
    (&["f1", "f1_score"], "macro", "macro_f1()"),
    (&["precision", "precision_score"], "binary", "precision()"),
    (&["recall", "recall_score"], "binary", "recall()"),
    (&["matthews_correlation", "matthews_corrcoef"], "", "mcc()"),
    (&["pearsonr"], "", "pearson()"),
    (&["spearmanr"], "", "spearman()"),
    (&["mse", "mean_squared_error"], "", "mse()"),
    (&["mae", "mean_absolute_error"], "", "mae()"),
    (&["root_mean_squared_error"], "", "rmse()"),
    (&["roc_auc", "roc_auc_score"], "", "auc()"),
    (&["perplexity"], "", "perplexity()"),
];

/// Metrics that are loaded by one name and have several values: the values by their keys.
const SEVERAL: &[(&str, &[(&str, &str)])] = &[
    (
        "seqeval",
        &[
            ("precision", "entity_precision()"),
            ("recall", "entity_recall()"),
            ("f1", "entity_f1()"),
            ("accuracy", "accuracy()"),
        ],
    ),
    (
        "squad",
        &[("exact_match", "exact_match()"), ("f1", "answer_f1()")],
    ),
    (
        "squad_v2",
        &[("exact", "exact_match()"), ("f1", "answer_f1()")],
    ),
    ("glue/mrpc", &[("accuracy", "accuracy()"), ("f1", "f1()")]),
    ("glue/qqp", &[("accuracy", "accuracy()"), ("f1", "f1()")]),
    ("glue/cola", &[("matthews_correlation", "mcc()")]),
    (
        "glue/stsb",
        &[("pearson", "pearson()"), ("spearmanr", "spearman()")],
    ),
    ("glue/sst2", &[("accuracy", "accuracy()")]),
    ("glue/mnli", &[("accuracy", "accuracy()")]),
    ("glue/qnli", &[("accuracy", "accuracy()")]),
    ("glue/rte", &[("accuracy", "accuracy()")]),
    ("glue/wnli", &[("accuracy", "accuracy()")]),
];

/// A metric by its name and `average`.
fn metric(name: &str, average: &str) -> Result<Measure, Why> {
    let mut known = METRICS
        .iter()
        .filter(|(names, ..)| names.contains(&name))
        .peekable();
    if known.peek().is_none() {
        return Err(format!(
            "there is no metric `{name}` here; a custom one is `Metric::mean_of(\"{name}\", |outputs, label| …)`"
        ));
    }
    let found = known.find(|(_, wanted, _)| *wanted == average || wanted.is_empty());
    let (names, _, rust) = found.ok_or_else(|| {
        format!("`{name}` with `average=\"{average}\"` is not here; `f1()` and `macro_f1()` are")
    })?;
    Ok(Measure::of(names[0], rust))
}

impl Translator<'_> {
    /// `evaluate.load("accuracy")`, `load_metric("glue", "mrpc")`, `evaluate.combine([…])`.
    pub(crate) fn loaded_metric(&mut self, call: &Call) -> Result<Made, Why> {
        let given = call
            .argument("path", 0)
            .or(call.keyword("evaluations").map(|it| &it.value));
        let given = given.ok_or("it names no metric")?;
        let task = call.argument("config_name", 1).and_then(Value::text);
        let one = [given.clone()];
        let mut measures = Vec::new();
        for value in given.elements().unwrap_or(&one) {
            let name = value.text().ok_or("the metric is not written as a text")?;
            let full = match task {
                Some(task) => format!("{name}/{task}"),
                None => name.to_owned(),
            };
            match SEVERAL.iter().find(|(known, _)| *known == full) {
                Some((_, several)) => {
                    measures.extend(several.iter().map(|(key, rust)| Measure::of(key, rust)))
                }
                None => measures.push(metric(name, "binary")?),
            }
        }
        call.see_all();
        self.hub.unused_metrics.push(call.span);
        self.push("// The metrics stand in `compile!`.", call.span);
        Ok((
            String::new(),
            Thing::Part(Box::new(Part::Measures(measures))),
        ))
    }

    /// The metrics of `compute_metrics=…`.
    pub(crate) fn measures_of(&mut self, function: &Value) -> Result<Vec<Measure>, Why> {
        let name = function
            .name()
            .ok_or("its `compute_metrics` is no function of the cell")?;
        match self.things.get(name) {
            Some(Thing::Part(part)) => match &**part {
                Part::Measures(measures) => {
                    let measures = measures.clone();
                    self.hub.unused_metrics.clear();
                    Ok(measures)
                }
                other => Err(format!(
                    "`{name}` is {}, which computes no metrics",
                    other.word()
                )),
            },
            Some(Thing::Missing(_)) => {
                // The run is not another one without its metrics.
                let why = self.missing(name).unwrap_or_default();
                self.leave(function.span, why);
                Ok(Vec::new())
            }
            _ => {
                self.leave(function.span, format!("`{name}` is not made in this cell; `metrics = [accuracy()]` of `compile!` names the metrics"));
                Ok(Vec::new())
            }
        }
    }

    /// Whether a function computes metrics.
    pub(crate) fn is_metric_function(&self, it: &Function) -> bool {
        let mut found = self.hub.metric_functions.contains(&it.name);
        each_value(&it.body, &mut |value| {
            let computes = value
                .method("compute")
                .is_some_and(|(object, _)| self.measures_named(object).is_some());
            found |= computes && it.parameters.len() == 1;
        });
        found
    }

    fn measures_named(&self, object: &Value) -> Option<&Vec<Measure>> {
        match object.name().and_then(|name| self.things.get(name))? {
            Thing::Part(part) => match &**part {
                Part::Measures(measures) => Some(measures),
                _ => None,
            },
            _ => None,
        }
    }

    /// `def compute_metrics(eval_pred):`.
    pub(crate) fn metric_function(
        &mut self,
        it: &Function,
        span: stratoscope_diagnostics::CellSpan,
    ) -> Result<(), Why> {
        let mut measures: Vec<Measure> = Vec::new();
        let mut unknown: Vec<(stratoscope_diagnostics::CellSpan, Why)> = Vec::new();
        let classes = from_argmax(&it.body);
        let mut calls: Vec<(&Value, &Call)> = Vec::new();
        each_value(&it.body, &mut |value| {
            if let Some(call) = value.call() {
                calls.push((value, call));
            }
        });
        for (value, call) in calls {
            match self.measured(value, call) {
                None => {}
                Some(Ok(found)) => {
                    if found.iter().any(|it| it.rust == "auc()") {
                        self.check_probabilities(call, &classes);
                    }
                    measures.extend(found);
                }
                Some(Err(why)) => unknown.push((call.span, why)),
            }
        }
        if measures.is_empty() && unknown.is_empty() && means_of_equality(&it.body) {
            measures.push(Measure::of("accuracy", "accuracy()"));
        }
        if measures.is_empty() {
            let first = unknown.into_iter().next().map(|(_, why)| why);
            return Err(first.unwrap_or_else(|| "it computes no metric that is known here; `Metric::mean_of(\"name\", |outputs, label| …)` makes one".to_owned()));
        }
        self.names_of_results(&it.body, &mut measures);
        self.check_ignored_labels(it, &measures);
        measures.dedup_by(|a, b| a.rust == b.rust);
        let names: Vec<&str> = measures.iter().map(|it| it.rust.as_str()).collect();
        self.skip_comments(span.end);
        self.push(
            format!(
                "// `{}`: metrics = [{}] of `compile!`.",
                it.name,
                names.join(", ")
            ),
            span,
        );
        for (at, why) in unknown {
            self.leave(at, why);
        }
        each_value(&it.body, &mut see_whole);
        self.things.insert(
            it.name.clone(),
            Thing::Part(Box::new(Part::Measures(measures))),
        );
        Ok(())
    }

    /// The metrics that a call computes; `None` where it computes none.
    fn measured(&self, value: &Value, call: &Call) -> Option<Result<Vec<Measure>, Why>> {
        let average = call.keyword("average").map(|it| &it.value);
        let average = match average.map(|it| (&it.kind, it.text())) {
            None => "binary",
            Some((_, Some(text))) => text,
            Some(_) => "None",
        };
        if let Some((object, _)) = value.method("compute") {
            let loaded = match self.measures_named(object) {
                Some(measures) => measures.clone(),
                None => return None,
            };
            let again = loaded.into_iter().map(|it| match it.rust.as_str() {
                "f1()" | "precision()" | "recall()" if average != "binary" => {
                    metric(&it.key, average)
                }
                _ => Ok(it),
            });
            return Some(again.collect());
        }
        let full = self.names.full(&call.function)?;
        let name = full
            .strip_prefix("sklearn.metrics.")
            .or(full.strip_prefix("scipy.stats."))?;
        Some(match name {
            "precision_recall_fscore_support" => ["precision", "recall", "f1"]
                .iter()
                .map(|name| metric(name, average))
                .collect(),
            "classification_report" | "confusion_matrix" => Err(format!(
                "`{name}` is no number; `model.confusion_matrix(&data)?` counts the classes after the run"
            )),
            name => metric(name, average).map(|it| vec![it]),
        })
    }

    /// The names under which a dictionary returns the metrics: `{"acc": accuracy_score(…)}`.
    fn names_of_results(&self, body: &[Statement], measures: &mut [Measure]) {
        let Some(StatementKind::Return(Some(value))) = body.last().map(|it| &it.kind) else {
            return;
        };
        let Kind::Dict(items) = &value.kind else {
            return;
        };
        for (key, value) in items {
            let Some(key) = key.text() else {
                continue;
            };
            let mut made = value;
            if let Some(name) = value.name() {
                each_statement(body, &mut |statement| {
                    if let StatementKind::Assign(targets, value) = &statement.kind
                        && targets.iter().any(|it| it.name() == Some(name))
                    {
                        made = value;
                    }
                });
            }
            let inner = match &made.kind {
                Kind::Index(object, _) => &**object,
                _ => made,
            };
            if let Some(Ok(found)) = inner.call().and_then(|call| self.measured(inner, call))
                && let [one] = found.as_slice()
            {
                for measure in measures.iter_mut().filter(|it| it.rust == one.rust) {
                    measure.key = key.to_owned();
                }
            }
        }
    }

    /// SC0142: an area under the curve of classes.
    fn check_probabilities(&mut self, call: &Call, classes: &BTreeSet<String>) {
        let scores = call
            .argument("y_score", 1)
            .or(call.keyword("prediction_scores").map(|it| &it.value));
        let Some(scores) = scores.cloned() else {
            return;
        };
        let mut is_class = false;
        scores.visit(&mut |value| {
            is_class |= value.name().is_some_and(|name| classes.contains(name)) || is_argmax(value);
        });
        if is_class {
            let found = trainer_rules::classes_for_probabilities(scores.span, call.span);
            self.find(found);
        }
    }

    /// SC0145: a metric of tags that counts labels of −100.
    fn check_ignored_labels(&mut self, it: &Function, measures: &[Measure]) {
        let is_of_tags = self
            .hub
            .heads
            .values()
            .any(|head| *head == super::part::HeadKind::Tokens)
            || measures.iter().any(|it| it.rust.starts_with("entity_"));
        let mut filters = false;
        let source = self.source(it.body.first().map_or(
            stratoscope_diagnostics::CellSpan { start: 0, end: 0 },
            |first| {
                let end = it.body.last().map_or(first.span.end, |last| last.span.end);
                stratoscope_diagnostics::CellSpan {
                    start: first.span.start,
                    end,
                }
            },
        ));
        filters |= source.contains("-100") || source.contains("!= ") || source.contains(">= 0");
        if is_of_tags && !filters {
            let at = it
                .body
                .last()
                .map(|last| last.span)
                .unwrap_or(stratoscope_diagnostics::CellSpan { start: 0, end: 0 });
            let found = trainer_rules::ignored_labels_counted(at);
            self.find(found);
        }
    }
}

/// Whether a value is an `argmax`.
fn is_argmax(value: &Value) -> bool {
    value
        .call()
        .and_then(|call| call.function.path())
        .is_some_and(|path| path.last() == Some(&"argmax"))
        || value.method("argmax").is_some()
}

/// The names that a block gives to an `argmax`.
fn from_argmax(body: &[Statement]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    each_statement(body, &mut |statement| {
        if let StatementKind::Assign(targets, value) = &statement.kind {
            let mut is_class = false;
            value.visit(&mut |inner| is_class |= is_argmax(inner));
            if is_class {
                names.extend(targets.iter().filter_map(|it| it.name().map(str::to_owned)));
            }
        }
    });
    names
}

/// `(predictions == labels).mean()`.
fn means_of_equality(body: &[Statement]) -> bool {
    let mut found = false;
    each_value(body, &mut |value| {
        let is_mean = value.method("mean").map(|(object, _)| object);
        let is_mean = is_mean.or_else(|| {
            let call = value.call()?;
            (call.function.path()?.last() == Some(&"mean")).then(|| call.arguments.first())?
        });
        if let Some(object) = is_mean {
            object.visit(&mut |inner| found |= matches!(inner.kind, Kind::Binary(_, "==", _)));
        }
    });
    found
}
