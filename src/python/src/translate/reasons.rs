//! Why something is left out, where the first word that is not known is not the cause: functions that are parts of a loop, classes of
//! callbacks, lists that an untranslated loop fills.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::thing::Thing;
use super::{Translator, Why};
use crate::model::{Class, Function, Statement, StatementKind, Value, each_value};

/// A function of the cell whose statements become a part of something else.
pub(crate) struct Part {
    /// Where it stands.
    span: CellSpan,
    /// The names in it.
    names: Vec<String>,
}

/// The callback of this product for a method of Keras's.
fn callback_of(method: &str) -> Option<&'static str> {
    Some(match method {
        "on_epoch_end" => "on_epoch_end(|epoch| …)",
        "on_train_batch_end" | "on_batch_end" => "on_batch_end(|batches| …)",
        "on_train_begin" => "on_train_begin(…)",
        "on_train_end" => "on_train_end(…)",
        _ => return None,
    })
}

/// Why a callback of Keras has no counterpart.
pub(crate) fn callback_not_here(name: &str) -> Option<Why> {
    Some(match name {
        "ReduceLROnPlateau" | "LearningRateScheduler" => format!(
            "there is no `{name}` here, and the learning rate stays what the optimizer sets; a schedule is given to the \
             optimizer, such as `warmup_linear(5e-5, 0.1)`"
        ),
        "LambdaCallback" => {
            "a function is a callback by itself here: `on_epoch_end(|epoch| …)` is called after each epoch".to_owned()
        }
        "BackupAndRestore" => {
            "a run goes on from its checkpoints: `fit!(…, checkpoint = \"folder\", every = 100, resume = true)?`".to_owned()
        }
        _ => return None,
    })
}

/// Why a class is not translated.
pub(crate) fn of_class(it: &Class, bases: &[String]) -> Why {
    let is_callback = bases.iter().any(|base| base == "keras.callbacks.Callback");
    let methods = it
        .body
        .iter()
        .filter_map(|statement| match &statement.kind {
            StatementKind::Function(function) => callback_of(&function.name),
            _ => None,
        });
    let methods: Vec<String> = methods.map(|it| format!("`{it}`")).collect();
    match (is_callback, methods.is_empty()) {
        (true, false) => format!(
            "a callback is a function here, not a class: {} in `callbacks` of `fit!`",
            methods.join(", ")
        ),
        (true, true) => "a callback is a function here, not a class: `on_epoch_end(|epoch| …)` is called after each epoch".to_owned(),
        (false, _) => "a class is translated where it is a subclass of `Model` with layers".to_owned(),
    }
}

impl Translator<'_> {
    /// Notes a function whose statements become a part of what calls it.
    pub(crate) fn note_part(&mut self, it: &Function, span: CellSpan) {
        let mut names = Vec::new();
        each_value(&it.body, &mut |value| {
            names.extend(value.name().map(str::to_owned))
        });
        self.parts.insert(it.name.clone(), Part { span, names });
    }

    /// The functions that statements use as their parts, also by way of others.
    fn parts_of(&self, body: &[Statement]) -> Vec<String> {
        let mut names = Vec::new();
        each_value(body, &mut |value| {
            names.extend(value.name().map(str::to_owned))
        });
        let mut found: Vec<String> = Vec::new();
        while let Some(name) = names.pop() {
            if let Some(part) = self.parts.get(&name)
                && !found.contains(&name)
            {
                names.extend(part.names.iter().cloned());
                found.push(name);
            }
        }
        found
    }

    /// Why a loop with a step by hand is not translated: what is missing in its functions comes first.
    pub(crate) fn cause_of_loop(&self, body: &[Statement], why: Why) -> Why {
        let parts = self.parts_of(body);
        let names = parts.iter().filter_map(|name| self.parts.get(name));
        let mut names = names.flat_map(|part| &part.names);
        names
            .find_map(|name| self.missing(name).filter(|_| !parts.contains(name)))
            .unwrap_or(why)
    }

    /// Names the functions that would have been a part of a loop that is left out.
    pub(crate) fn leave_parts(&mut self, statement: &Statement) {
        let StatementKind::For(_, _, body) = &statement.kind else {
            return;
        };
        let (first, last) = self.lines(statement.span);
        let mut parts: Vec<CellSpan> = Vec::new();
        for name in self.parts_of(body) {
            self.bodies.remove(&name);
            parts.extend(self.parts.remove(&name).map(|it| it.span));
        }
        parts.sort_by_key(|span| span.start);
        for span in parts {
            self.leave(
                span,
                format!(
                    "it is a part of the loop in lines {first} to {last}, which is not translated"
                ),
            );
        }
    }

    /// The functions of a loop that is translated are in the cell.
    pub(crate) fn used_parts(&mut self, body: &[Statement]) {
        for name in self.parts_of(body) {
            self.bodies.remove(&name);
        }
    }

    /// The arguments of a callback that is left out are left out with it.
    pub(crate) fn leave_arguments_of(&mut self, value: &Value) {
        let Some(call) = value.call() else {
            return;
        };
        let name = match self.names.full(&call.function) {
            Some(full) => full.rsplit('.').next().unwrap_or_default().to_owned(),
            None => call.function.name().unwrap_or("the callback").to_owned(),
        };
        let named = call.keywords.iter().map(|it| it.span);
        let spans: Vec<CellSpan> = call
            .arguments
            .iter()
            .map(|it| it.span)
            .chain(named)
            .collect();
        for span in spans {
            self.leave(span, format!("it belongs to `{name}`, which is left out"));
        }
        see_whole(value);
    }

    /// The lists that a statement, which is left out, would have filled.
    pub(crate) fn filled_by(&self, value: &Value) -> Option<String> {
        let methods = ["append", "extend", "insert"];
        let list = methods
            .iter()
            .find_map(|method| value.method(method))
            .and_then(|(object, _)| object.name());
        let is_list =
            |name: &&str| matches!(self.things.get(*name), Some(Thing::List | Thing::Texts));
        list.filter(is_list).map(str::to_owned)
    }

    /// An empty list has no type of its own; where nothing is added to it, its type is written.
    pub(crate) fn empty_lists(&mut self) {
        let lines = &mut self.translation.lines;
        let whole: String = lines
            .iter()
            .filter(|it| !it.is_comment)
            .map(|it| format!("{}\n", it.text))
            .collect();
        for line in lines.iter_mut() {
            let Some(name) = line
                .text
                .strip_prefix("let ")
                .and_then(|it| it.strip_suffix(" = vec![];"))
            else {
                continue;
            };
            let bare = name.trim_start_matches("mut ");
            let is_filled = ["push(", "extend(", "insert("]
                .iter()
                .any(|it| whole.contains(&format!("{bare}.{it}")));
            if !is_filled && !name.contains(':') {
                line.text = format!("let {name}: Vec<f64> = vec![];");
            }
        }
    }

    /// Why a loop is not translated.
    pub(crate) fn of_loop(&self, items: &Value) -> Why {
        let mut has_data = false;
        items.visit(&mut |inner| {
            has_data |= inner.name().is_some_and(|name| {
                let known = self.known.variables.get(name);
                matches!(self.things.get(name), Some(Thing::Data(_)))
                    || known.is_some_and(|it| it.ends_with("Dataset"))
            });
        });
        if has_data {
            return "a data set has no batches to go through: `for example in &data.examples` goes through its rows, each with \
                    `features` or `text`, and `label`"
                .to_owned();
        }
        let call = items.call().and_then(|call| call.function.name());
        match call {
            Some(name @ ("zip" | "enumerate" | "sorted" | "reversed")) => {
                format!("a loop over `{name}(…)` is translated for lists of the cell")
            }
            _ => "it goes over something that is no list of the cell".to_owned(),
        }
    }
}

/// What stands here for the measures of scikit-learn.
pub(crate) const MEASURES: &str = "metrics are arguments of `compile!`, such as `metrics = [accuracy()]`, which `evaluate!` measures; \
                        `model.predict(&data)?.assess(&data)?` has accuracy, F1 and every class, with intervals";

/// Why a class or function of scikit-learn has no counterpart, by its path or its name alone, and what is there instead.
pub(crate) fn of_sklearn(full: &str) -> Option<Why> {
    const OF_TEXTS: [&str; 7] = [
        "TfidfVectorizer",
        "CountVectorizer",
        "HashingVectorizer",
        "TfidfTransformer",
        "MultinomialNB",
        "make_pipeline",
        "Pipeline",
    ];
    const MODELS: [&str; 7] = [
        "LogisticRegression",
        "LinearSVC",
        "SVC",
        "RandomForestClassifier",
        "SGDClassifier",
        "KNeighborsClassifier",
        "DecisionTreeClassifier",
    ];
    // A word of a path is no name: `tree` alone is anything.
    const FOLDERS_OF_TEXTS: [&str; 2] = ["feature_extraction", "pipeline"];
    const FOLDERS_OF_MODELS: [&str; 8] = [
        "linear_model",
        "svm",
        "ensemble",
        "neighbors",
        "tree",
        "naive_bayes",
        "neural_network",
        "xgboost",
    ];
    let last = full.rsplit('.').next()?;
    let folders = &full[..full.len() - last.len()];
    let is_under = |words: &[&str]| folders.split('.').any(|it| words.contains(&it));
    Some(match last {
        "StandardScaler" | "MinMaxScaler" | "RobustScaler" | "Normalizer" => {
            "the numbers of a data set are scaled by hand: `data.map(|mut example| { example.features = \
             example.features.iter().map(|x| (x - 0.5) / 0.3).collect(); example })` with a mean of 0.5 and a deviation of 0.3"
                .to_owned()
        }
        "LabelEncoder" | "OneHotEncoder" | "LabelBinarizer" => {
            "classes have the names of their labels, and numbers from 0 in the order of these: `data.label_names`".to_owned()
        }
        _ if OF_TEXTS.contains(&last) || is_under(&FOLDERS_OF_TEXTS) => format!(
            "there is no `{last}` here: a BERT reads the texts themselves, `BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", data.num_labels())?` \
             of `Dataset::from_rows(texts, labels)?`, with `compile!` and `fit!`; `model.predict(&dev)?.assess(&dev)?.classes()` is the report of its classes"
        ),
        _ if MODELS.contains(&last) || is_under(&FOLDERS_OF_MODELS) => format!(
            "there is no `{last}` here: a linear model is one layer, `Sequential([Dense(2).activation(\"softmax\").input_shape(4)])?`, and texts are classified by \
             `BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 2)?`; `model.predict(&dev)?.assess(&dev)?` is the report"
        ),
        _ => return None,
    })
}

/// What `fit!` does of a loop that a program distributes.
pub(crate) const OF_REPLICAS: &str = "`fit!` of a model that is made in the scope runs each step on all replicas and averages the loss over the whole batch: \
                                     `fit!(model, data, batch_size = 32)?`, whose `batch_size` counts the examples of all replicas";

/// Why a method of a strategy has no counterpart.
pub(crate) fn of_replicas(object: &Value, method: &str) -> Option<Why> {
    let is_strategy = object.name().is_some_and(|name| name.contains("strategy"));
    let is_step = matches!(
        method,
        "run" | "reduce" | "experimental_run_v2" | "gather" | "experimental_local_results"
    );
    (is_strategy && is_step).then(|| OF_REPLICAS.to_owned())
}

/// Whether statements are a part of a step that a program distributes by itself.
pub(crate) fn distributes_a_step(body: &[Statement]) -> bool {
    let mut found = false;
    each_value(body, &mut |value| {
        if let Some(call) = value.call()
            && let crate::model::Kind::Attribute(object, method) = &call.function.kind
        {
            found |= of_replicas(object, method).is_some() || method == "compute_average_loss";
        }
    });
    found
}

/// Whether scikit-learn has a measure of this name.
pub(crate) fn is_measure(name: &str) -> bool {
    matches!(name, "classification_report" | "confusion_matrix") || name.ends_with("_score")
}

/// Why a function of numpy has no counterpart, and what is there instead.
pub(crate) fn of_numpy(full: &str) -> Why {
    let name = full.rsplit('.').next().unwrap_or_default();
    let instead = match name {
        "argmax" => {
            return "predictions have their classes: `model.predict(…)?.labels()`".to_owned();
        }
        "mean" | "average" => "`values.iter().sum::<f64>() / values.len() as f64` is a mean",
        "std" | "var" => {
            "a deviation is computed from the mean: `values.iter().map(|x| (x - mean).powi(2)).sum::<f64>()`"
        }
        "sum" => "`values.iter().sum::<f64>()` is a sum",
        "max" | "min" | "amax" | "amin" => "`values.iter().copied().reduce(f64::max)` is a maximum",
        "concatenate" | "vstack" | "hstack" | "stack" => "`[a, b].concat()` makes one list of two",
        "load" | "loadtxt" | "genfromtxt" | "save" | "savez" => {
            "`Dataset::csv(\"data.csv\")?` reads columns of numbers; files of numpy are not read"
        }
        "unique" | "bincount" => "`data.class_counts()` counts the examples of each class",
        "expand_dims" | "reshape" | "squeeze" | "transpose" => {
            "rows are lists of numbers, `Vec<Vec<f64>>`; tensors have `reshape`"
        }
        "rand" | "randn" | "random" | "normal" | "uniform" | "randint" | "choice"
        | "permutation" | "shuffle" => {
            "`make_classification(rows, features, classes, seed)?` and `make_regression(rows, features, seed)?` make random data to try"
        }
        _ => "lists of numbers are `Vec<f64>`, and their iterators have sums and maxima",
    };
    format!("there is no numpy here; {instead}")
}
