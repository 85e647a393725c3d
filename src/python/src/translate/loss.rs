//! Losses and metrics. Keras's cross-entropies take probabilities by default; here it is always written.

use stratoscope_diagnostics::arguments::{IdentifierKind, foreign_identifier};
use stratoscope_diagnostics::check::suggest;
use stratoscope_diagnostics::rules::UnknownIdentifier;
use stratoscope_diagnostics::{CellSpan, Place, Rule};

use super::arguments::without_effect;
use super::thing::{LossFacts, Thing};
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};

/// The names of the text forms and of the types.
const LOSSES: &[(&str, &str)] = &[
    (
        "sparse_categorical_crossentropy",
        "SparseCategoricalCrossentropy",
    ),
    ("categorical_crossentropy", "CategoricalCrossentropy"),
    ("binary_crossentropy", "BinaryCrossentropy"),
    ("mean_squared_error", "MeanSquaredError"),
    ("mean_absolute_error", "MeanAbsoluteError"),
    ("huber", "Huber"),
    ("log_cosh", "LogCosh"),
    ("kl_divergence", "KlDivergence"),
    ("hinge", "Hinge"),
    ("squared_hinge", "SquaredHinge"),
];

/// The type of a loss by any of Keras's names for it.
fn loss_type(name: &str) -> Option<&'static str> {
    let canonical = IdentifierKind::Loss.canonical(name)?;
    let same = LOSSES
        .iter()
        .find(|(text, class)| *text == canonical || *class == name);
    same.map(|(_, class)| *class)
}

impl Translator<'_> {
    /// A loss: a text, a class of Keras's, a function of Keras's, or a name that is one.
    pub(crate) fn loss(&mut self, value: &Value) -> Result<LossFacts, Why> {
        if let Some(text) = value.text() {
            return match loss_type(text) {
                Some(class) => Ok(facts(class, false, "", value.span)),
                None => {
                    self.unknown(IdentifierKind::Loss, text, value.span);
                    Err(format!("there is no loss `{text}`"))
                }
            };
        }
        if let Some(name) = value.name()
            && let Some(Thing::Loss(known)) = self.things.get(name).cloned()
        {
            return Ok(LossFacts {
                rust: self.value(value)?,
                ..known
            });
        }
        let called = self.names.called(value);
        let full = called.clone().or_else(|| self.names.full(value));
        let full = full.filter(|full| full.starts_with("keras.losses."));
        match (full, value.call()) {
            (Some(full), call) => {
                let name = full.rsplit('.').next().unwrap_or_default();
                let class = loss_type(name).ok_or(format!("there is no loss `{name}` here"))?;
                match call {
                    Some(call) => self.loss_class(class, call),
                    None => Ok(facts(class, false, "", value.span)),
                }
            }
            _ => {
                let name = value
                    .name()
                    .ok_or("a custom loss is not translated")?
                    .to_owned();
                let rust = self.value(value)?;
                self.free(
                    &name,
                    "a loss, such as `SparseCategoricalCrossentropy { from_logits: true }`",
                )?;
                Ok(LossFacts {
                    name: String::new(),
                    rust,
                    from_logits: None,
                    span: value.span,
                })
            }
        }
    }

    fn loss_class(&mut self, class: &'static str, call: &Call) -> Result<LossFacts, Why> {
        call.see_all();
        let is_entropy = class.ends_with("Crossentropy");
        // The second argument of the sparse one is another in each version.
        let order: &[&str] = match class {
            "SparseCategoricalCrossentropy" => &["from_logits"],
            "Huber" => &["delta", "reduction", "name"],
            _ if is_entropy => &["from_logits", "label_smoothing"],
            _ => &["reduction", "name"],
        };
        let call = call
            .named(order)
            .ok_or("the arguments of the loss are not all named")?;
        let (mut from_logits, mut span, mut method) = (false, call.span, String::new());
        let mut delta = None;
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                "from_logits" if is_entropy => {
                    let Kind::Bool(given) = keyword.value.kind else {
                        return Err("`from_logits` is not written as `True` or `False`".to_owned());
                    };
                    (from_logits, span) = (given, keyword.span);
                }
                "label_smoothing" if is_entropy => {
                    let share = self.float(&keyword.value)?;
                    if keyword.value.number() == Some(0.0) {
                        self.idle(keyword.span, "it is the default");
                    } else {
                        method = format!(".label_smoothing({share})");
                    }
                }
                "delta" if class == "Huber" => delta = Some(self.float(&keyword.value)?),
                "reduction" if is_mean(self, &keyword.value) => {
                    self.idle(keyword.span, "a loss is the mean over the batch");
                }
                name if let Some(why) = without_effect(name, &keyword.value) => {
                    self.idle(keyword.span, why);
                }
                name => {
                    let why = format!("the loss has no `{name}` here: it is made without it");
                    self.leave_argument(keyword, why);
                }
            }
        }
        let mut loss = facts(class, from_logits, &method, span);
        if let Some(delta) = delta {
            loss.rust = format!("Huber {{ delta: {delta} }}");
        }
        Ok(loss)
    }

    /// A list of metrics, or one.
    pub(crate) fn metrics(&mut self, value: &Value) -> Result<String, Why> {
        if let Some(name) = value.name() {
            let is_known = matches!(self.things.get(name), Some(Thing::Metrics));
            let rust = self.value(value)?;
            return match is_known && self.is_moved_again(name) {
                true => Ok(format!("{rust}.clone()")),
                false => Ok(rust),
            };
        }
        let one = [value.clone()];
        let values = value.elements().unwrap_or(&one);
        let mut written = Vec::new();
        for value in values {
            match self.metric(value) {
                Ok(metric) if written.contains(&metric) => {}
                Ok(metric) => written.push(metric),
                Err(why) => self.leave(value.span, why),
            }
        }
        Ok(format!("[{}]", written.join(", ")))
    }

    /// A metric: a text, or a class of Keras's.
    pub(crate) fn metric(&mut self, value: &Value) -> Result<String, Why> {
        if let Some(name) = value.name() {
            return match self.things.get(name) {
                Some(Thing::Metrics) => self.value(value),
                _ => Err("it is no metric that is known from the cell".to_owned()),
            };
        }
        let full = self.names.called(value).or_else(|| self.names.full(value));
        let given = match (value.text(), full) {
            (Some(text), _) => text.to_owned(),
            (None, Some(full)) if full.starts_with("keras.metrics.") => {
                full.rsplit('.').next().unwrap_or_default().to_owned()
            }
            _ => return Err("a custom metric is not translated".to_owned()),
        };
        let Some(name) = IdentifierKind::Metric.canonical(&given) else {
            if value.text().is_some() {
                self.unknown(IdentifierKind::Metric, &given, value.span);
            }
            return Err(format!("there is no metric `{given}` here"));
        };
        // What is called AUC in Keras is its approximation; `auc()` is exact.
        let name = if name == "auc" { "keras_auc" } else { name };
        if let Some(call) = value.call() {
            self.arguments_of_metric(name, call)?;
        }
        Ok(match name {
            "top_k_accuracy" => {
                let k = value.call().and_then(|call| call.argument("k", 0));
                let k = k.map_or(Ok("5".to_owned()), |k| self.value(k))?;
                format!("top_k_accuracy({k})")
            }
            name => format!("{name}()"),
        })
    }

    /// SC0105.
    pub(crate) fn unknown(&mut self, kind: IdentifierKind, given: &str, span: CellSpan) {
        let mut similar = suggest::similar(given, kind.names().iter().copied());
        let foreign = foreign_identifier(kind, given);
        if let Some((name, _)) = foreign {
            similar.retain(|other| other != name);
            similar.insert(0, name.to_owned());
        }
        let facts = UnknownIdentifier {
            kind: kind.word().to_owned(),
            given: given.to_owned(),
            place: Place::Span(span),
            similar,
            known: kind.names().iter().map(|name| (*name).to_owned()).collect(),
            hint: foreign.map(|(_, hint)| hint.to_owned()),
            arguments: Vec::new(),
        };
        self.find(facts.diagnostic());
    }

    /// The arguments of a metric change what it measures; `k` is the one that is here.
    fn arguments_of_metric(&mut self, name: &str, call: &Call) -> Result<(), Why> {
        call.see_all();
        let order: &[&str] = match name {
            "top_k_accuracy" => &["k", "name", "dtype"],
            // Their first argument is a threshold, or says how exact the area is.
            "precision" | "recall" => &["thresholds"],
            "keras_auc" => &["num_thresholds", "curve"],
            _ => &["name", "dtype"],
        };
        let call = call.named(order);
        let call = call.ok_or("the arguments of the metric are not all named")?;
        for given in &call.keywords {
            // The defaults of Keras, which are what is measured here.
            let is_default = match (name, given.name.as_str()) {
                ("top_k_accuracy", "k") => continue,
                ("accuracy", "threshold") | ("precision" | "recall", "thresholds") => {
                    given.value.number() == Some(0.5)
                }
                ("keras_auc", "num_thresholds") => given.value.integer() == Some(200),
                ("keras_auc", "curve") => given.value.text() == Some("ROC"),
                _ => false,
            };
            let why = is_default.then_some("it is the default");
            match why.or(without_effect(&given.name, &given.value)) {
                Some(why) => self.idle(given.span, why),
                None => return Err(format!("`{name}()` has no `{}` here", given.name)),
            }
        }
        Ok(())
    }
}

/// Whether a reduction is the mean over the batch, which is what the losses do here.
fn is_mean(translator: &Translator<'_>, value: &Value) -> bool {
    let text = match value.text() {
        Some(text) => text.to_owned(),
        None => translator.names.full(value).unwrap_or_default(),
    };
    let last = text.rsplit('.').next().unwrap_or_default().to_lowercase();
    matches!(last.as_str(), "auto" | "sum_over_batch_size" | "mean")
}

fn facts(class: &str, from_logits: bool, method: &str, span: CellSpan) -> LossFacts {
    let (rust, from_logits) = match class {
        "Huber" => ("Huber { delta: 1.0 }".to_owned(), None),
        // Keras's has no setting: it takes probabilities.
        "KlDivergence" => (
            "KlDivergence { from_logits: false }".to_owned(),
            Some(false),
        ),
        class if class.ends_with("Crossentropy") => (
            format!("{class} {{ from_logits: {from_logits} }}{method}"),
            Some(from_logits),
        ),
        class => (class.to_owned(), None),
    };
    LossFacts {
        name: class.to_owned(),
        rust,
        from_logits,
        span,
    }
}
