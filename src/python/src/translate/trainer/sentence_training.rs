//! How models of `sentence_transformers` are trained: losses, pairs and triplets of texts, `model.fit(train_objectives=…)`.
//! `SentenceTransformerTrainer` is a `Trainer` with such a loss.

use stratoscope_diagnostics::CellSpan;

use super::super::call::Made;
use super::super::fit::add;
use super::super::thing::{Pipeline, Thing};
use super::super::{Translator, Why, text};
use super::compile::{Plan, RunLength, WarmUp};
use super::in_order;
use super::part::Part;
use crate::model::{Call, Kind, Value};

/// A number that a loss takes: its name there, its default, its name here.
type Number = (&'static str, &'static str, &'static str);

/// Losses that have another name here, and their number.
const LOSSES: &[(&str, &str, Option<Number>)] = &[
    ("CosineSimilarityLoss", "MeanSquaredError", None),
    (
        "MultipleNegativesRankingLoss",
        "MultipleNegativesRanking",
        Some(("scale", "20.0", "scale")),
    ),
    (
        "CachedMultipleNegativesRankingLoss",
        "MultipleNegativesRanking",
        Some(("scale", "20.0", "scale")),
    ),
    (
        "MultipleNegativesSymmetricRankingLoss",
        "MultipleNegativesSymmetricRanking",
        Some(("scale", "20.0", "scale")),
    ),
    (
        "TripletLoss",
        "TripletMargin",
        Some(("triplet_margin", "5.0", "margin")),
    ),
];

/// The schedules of `model.fit`, as transformers names them.
const SCHEDULES: &[(&str, &str)] = &[
    ("warmuplinear", "linear"),
    ("constantlr", "constant"),
    ("warmupconstant", "constant_with_warmup"),
    ("warmupcosine", "cosine"),
];

/// The parameters of `model.fit` in their order.
const OF_FIT: &[&str] = &[
    "train_objectives",
    "evaluator",
    "epochs",
    "steps_per_epoch",
    "scheduler",
    "warmup_steps",
    "optimizer_class",
    "optimizer_params",
    "weight_decay",
    "evaluation_steps",
    "output_path",
    "save_best_model",
    "max_grad_norm",
    "use_amp",
    "callback",
    "show_progress_bar",
    "checkpoint_path",
    "checkpoint_save_steps",
    "checkpoint_save_total_limit",
];

const NO_LABELS: &str = "pairs of texts that are computed from other data are those of a file here: `Dataset::csv_with(\"pairs.csv\", \
                         &Columns::new().text(\"first\").pair(\"second\").unlabelled())?`";

impl Translator<'_> {
    /// `losses.CosineSimilarityLoss(model)`.
    pub(crate) fn sentence_loss(&mut self, class: &str, call: &Call) -> Result<Made, Why> {
        let Some((_, ours, number)) = LOSSES.iter().find(|(name, ..)| *name == class) else {
            return Err(format!(
                "there is no `{class}` here; for pairs with a similarity there is `MeanSquaredError`, for texts that belong together \
                 `MultipleNegativesRanking` and `TripletMargin`"
            ));
        };
        call.argument("model", 0);
        let rust = match number {
            None => (*ours).to_owned(),
            Some((name, default, field)) => {
                let value = match call.keyword(name) {
                    Some(given) => self.float(&given.value.clone())?,
                    None => (*default).to_owned(),
                };
                format!("{ours} {{ {field}: {value} }}")
            }
        };
        if class.starts_with("Cached") {
            self.note(
                call.span,
                "the whole batch is in memory here; loss and gradients are those of the cached loss",
            );
        }
        if class == "TripletLoss" {
            self.note(
                call.span,
                "vectors have length 1 here, so that distances are at most 2: a margin of 0.5 is a usual one",
            );
        }
        for keyword in call.unseen_keywords().cloned().collect::<Vec<_>>() {
            match keyword.name.as_str() {
                "mini_batch_size" => self.idle(keyword.span, "the batch is computed at once"),
                _ => self.leave_argument(
                    &keyword,
                    "the losses here compare cosines, or distances of vectors of length 1"
                        .to_owned(),
                ),
            }
        }
        call.see_all();
        Ok((
            String::new(),
            Thing::Part(Box::new(Part::SentenceLoss(rust))),
        ))
    }

    /// The loss in a value: a name of the cell, or the call that makes it.
    pub(crate) fn sentence_loss_of(&mut self, value: &Value) -> Result<String, Why> {
        let thing = match value.name().and_then(|name| self.things.get(name)) {
            Some(thing) => thing.clone(),
            None => self.made(value)?.1,
        };
        match thing {
            Thing::Part(part) => match *part {
                Part::SentenceLoss(rust) => Ok(rust),
                other => Err(format!("its loss is {}", other.word())),
            },
            Thing::Missing(_) => Err(self.value(value).err().unwrap_or_default()),
            other => Err(format!("its loss is {}", other.word())),
        }
    }

    /// `[InputExample(texts=["a", "b"], label=0.8), …]`; `None`: another value.
    pub(crate) fn input_examples(&mut self, value: &Value) -> Option<Result<Pipeline, Why>> {
        let is_example = |value: &Value| {
            let full = self.names.called(value).unwrap_or_default();
            full.starts_with("sentence_transformers") && full.ends_with("InputExample")
        };
        if let Kind::Comprehension(inner) = &value.kind {
            return is_example(&inner.element).then(|| Err(NO_LABELS.to_owned()));
        }
        let elements = value.elements()?;
        if elements.is_empty() || !elements.iter().all(is_example) {
            return None;
        }
        Some(self.examples_given(elements))
    }

    fn examples_given(&mut self, elements: &[Value]) -> Result<Pipeline, Why> {
        let mut rows = Vec::new();
        for call in elements.iter().filter_map(Value::call) {
            let texts = call.argument("texts", 1).and_then(Value::elements);
            let texts = texts.ok_or("the texts of an example are not written out")?;
            let texts: Result<Vec<String>, Why> = texts.iter().map(|it| self.value(it)).collect();
            let label = match call.argument("label", 2) {
                Some(label) => Some(self.float(&label.clone())?),
                None => None,
            };
            rows.push((texts?, label));
        }
        dataset(&rows).map(Pipeline::of)
    }

    /// The columns of a data set of pairs or triplets, `{"anchor": […], "positive": […]}`; `None`: other columns.
    pub(crate) fn pairs_of_columns(
        &mut self,
        items: &[(Value, Value)],
    ) -> Option<Result<Pipeline, Why>> {
        let column = |names: &[&str]| {
            let found =
                (items.iter()).find(|(key, _)| names.contains(&key.text().unwrap_or_default()));
            found.map(|(_, values)| values.clone())
        };
        let anchors = column(&["anchor", "query", "sentence1", "sentence_A"])?;
        let others = [column(&["positive", "answer", "sentence2", "sentence_B"])?];
        let negatives = column(&["negative"]);
        let scores = column(&["score", "label", "similarity"]);
        let known = 2 + usize::from(negatives.is_some()) + usize::from(scores.is_some());
        if known != items.len() {
            return None;
        }
        let texts: Vec<Value> = std::iter::once(anchors)
            .chain(others)
            .chain(negatives)
            .collect();
        Some(self.rows_of_columns(&texts, scores.as_ref()))
    }

    fn rows_of_columns(
        &mut self,
        texts: &[Value],
        scores: Option<&Value>,
    ) -> Result<Pipeline, Why> {
        let written = |column: &Value| column.elements().map(<[Value]>::to_vec);
        let columns: Option<Vec<Vec<Value>>> = texts.iter().map(written).collect();
        let columns = columns.ok_or(NO_LABELS)?;
        let scores = match scores {
            Some(scores) => Some(written(scores).ok_or(NO_LABELS)?),
            None => None,
        };
        let count = columns[0].len();
        let lengths = columns.iter().chain(&scores).map(Vec::len);
        if lengths.into_iter().any(|length| length != count) {
            return Err("its columns have different lengths".to_owned());
        }
        let mut rows = Vec::new();
        for row in 0..count {
            let texts: Result<Vec<String>, Why> =
                columns.iter().map(|it| self.value(&it[row])).collect();
            let score = match &scores {
                Some(scores) => Some(self.float(&scores[row])?),
                None => None,
            };
            rows.push((texts?, score));
        }
        dataset(&rows).map(Pipeline::of)
    }

    /// `model.fit(train_objectives=[(loader, loss)], …)` of `sentence_transformers`: `compile!` and `fit!`.
    pub(crate) fn fit_of_sentences(&mut self, model: &Value, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let given = |name: &str| {
            let place = OF_FIT.iter().position(|it| *it == name);
            let value = call.argument(name, place.unwrap_or(usize::MAX)).cloned();
            value.filter(|it| it.kind != Kind::None)
        };
        let rust = self.model_name(model)?;
        let objectives = given("train_objectives").unwrap_or_else(|| model.clone());
        let (loader, loss) = match objectives.elements() {
            Some([one]) => match &one.kind {
                Kind::Tuple(pair) if pair.len() == 2 => (pair[0].clone(), pair[1].clone()),
                _ => return Err("an objective is not written as `(loader, loss)`".to_owned()),
            },
            Some(_) => {
                return Err("a model is trained with one data set and one loss at a time: a `compile!` and a `fit!` for each".to_owned());
            }
            None => return Err("its objectives are not written out".to_owned()),
        };
        let loss = self.sentence_loss_of(&loss)?;
        let data = self.pipeline(&loader)?;
        let data = self.named_data(data, "pairs", call.span);
        let epochs = match given("epochs") {
            Some(epochs) => self.value(&epochs)?,
            None => "1".to_owned(),
        };
        let steps = match given("steps_per_epoch") {
            Some(steps) => Some(self.value(&steps)?),
            None => None,
        };
        let optimizer =
            self.optimizer_of_sentences(&given, (&data, &epochs, steps.as_deref()), call.span)?;
        if let Some(name) = model.name() {
            self.uncompiled.remove(name);
        }
        let parts = [format!("optimizer = {optimizer}"), format!("loss = {loss}")];
        self.push(text::call("compile!", &rust, &parts, "?;"), call.span);
        let mut parts = vec![format!("epochs = {epochs}")];
        if let Some(steps) = steps {
            add(&mut parts, "steps_per_epoch", steps);
        }
        self.of_pipeline("fit", &data, &mut parts);
        if let Some(folder) = given("checkpoint_path") {
            let folder = self.value(&folder)?;
            add(&mut parts, "checkpoint", folder);
            if let Some(every) = given("checkpoint_save_steps") {
                let every = self.value(&every)?;
                add(&mut parts, "every", every);
            }
        }
        if let Some(seed) = self.seed.clone() {
            add(&mut parts, "seed", seed);
        }
        in_order("fit", &mut parts);
        let first = format!("{rust}, {}", data.rust);
        self.push(text::call("fit!", &first, &parts, "?;"), call.span);
        if data.max_length.is_none() {
            self.note(
                call.span,
                "`fit!` cuts texts at 64 tokens unless `max_length` says otherwise; sentence-transformers cuts at the length in the checkpoint",
            );
        }
        self.rest_of_fit(call);
        if let (Some(folder), None) = (given("output_path"), given("evaluator")) {
            let folder = self.value(&folder)?;
            self.push(format!("{rust}.save_pretrained({folder})?;"), call.span);
        }
        Ok((String::new(), Thing::Folded))
    }

    /// AdamW with the schedule, the decay and the clipping of `model.fit`.
    fn optimizer_of_sentences(
        &mut self,
        given: &dyn Fn(&str) -> Option<Value>,
        (data, epochs, steps): (&Pipeline, &str, Option<&str>),
        span: CellSpan,
    ) -> Result<String, Why> {
        if given("optimizer_class").is_some() {
            return Err(
                "its optimizer is the `optimizer` of `compile!`, such as `AdamW::new(2e-5)`"
                    .to_owned(),
            );
        }
        let rate = match given("optimizer_params").map(|it| it.kind) {
            None => "2e-5".to_owned(),
            Some(Kind::Dict(items)) => match items.as_slice() {
                [(key, rate)] if key.text() == Some("lr") => self.float(&rate.clone())?,
                _ => return Err("only `lr` of `optimizer_params` is known here".to_owned()),
            },
            Some(_) => return Err("`optimizer_params` is not written out".to_owned()),
        };
        let scheduler = given("scheduler");
        let scheduler = match scheduler.as_ref() {
            None => "warmuplinear".to_owned(),
            Some(name) => name
                .text()
                .ok_or("its `scheduler` is not written as a text")?
                .to_lowercase(),
        };
        let kind = (SCHEDULES.iter()).find(|(name, _)| *name == scheduler);
        let Some((_, kind)) = kind else {
            return Err(format!("there is no schedule `{scheduler}` here"));
        };
        let warm_up = match given("warmup_steps") {
            Some(steps) if steps.number() == Some(0.0) => WarmUp::None,
            Some(steps) => WarmUp::Steps(self.value(&steps)?),
            None if *kind == "constant" => WarmUp::None,
            None => {
                self.note(
                    span,
                    "sentence-transformers warms up for 10000 steps by default, and most runs end before; a tenth of the run is written here",
                );
                WarmUp::Share("0.1".to_owned())
            }
        };
        let batch = data.batch.clone().unwrap_or_else(|| "32".to_owned());
        let length = match steps {
            Some(steps) => RunLength::Steps(match epochs {
                "1" => steps.to_owned(),
                epochs => format!("{} * {}", text::factor(steps), text::factor(epochs)),
            }),
            None => RunLength::Epochs(epochs.to_owned(), Some(data.rust.clone())),
        };
        let plan = Plan {
            rate,
            kind: (*kind).to_owned(),
            warm_up,
            length,
            batch,
            accumulation: None,
        };
        let schedule = self.schedule_of(&plan, span)?;
        let decay = match given("weight_decay") {
            Some(decay) => self.float(&decay)?,
            None => "0.01".to_owned(),
        };
        let norm = match given("max_grad_norm") {
            Some(norm) => self.float(&norm)?,
            None => "1.0".to_owned(),
        };
        Ok(format!(
            "AdamW::new({schedule}).weight_decay({decay}).global_clipnorm({norm})"
        ))
    }

    /// Names the arguments of `model.fit` that no other call has.
    fn rest_of_fit(&mut self, call: &Call) {
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                _ if keyword.value.kind == Kind::None => {}
                "evaluator" => self.leave_argument(
                    keyword,
                    "`metrics` of `compile!` and `validation_data` of `fit!` measure a model after each epoch".to_owned(),
                ),
                "callback" => self.leave_argument(
                    keyword,
                    "`on_epoch_end(|epoch| …)` in `callbacks` of `fit!` is called after each epoch".to_owned(),
                ),
                "use_amp" if keyword.value.kind != Kind::Bool(false) => self.leave_argument(
                    keyword,
                    "the precision is set before the model is made: `set_global_policy(\"mixed_float16\")?`".to_owned(),
                ),
                "show_progress_bar" => self.idle(keyword.span, "`fit!` shows its progress"),
                "use_amp" => self.idle(keyword.span, "it is the default"),
                "evaluation_steps" | "save_best_model" | "checkpoint_save_total_limit" => {
                    self.idle(keyword.span, "`fit!` validates after each epoch, and keeps its last three checkpoints");
                }
                name if OF_FIT.contains(&name) => {}
                _ => self.leave_argument(keyword, "`model.fit` of sentence-transformers has no such argument".to_owned()),
            }
        }
    }
}

/// A data set of written rows: texts and a similarity each.
fn dataset(rows: &[(Vec<String>, Option<String>)]) -> Result<String, Why> {
    let count = rows.first().map_or(0, |row| row.0.len());
    let is_labelled = rows.iter().all(|row| row.1.is_some());
    let is_unlabelled = rows.iter().all(|row| row.1.is_none());
    if rows.iter().any(|row| row.0.len() != count) || !(is_labelled || is_unlabelled) {
        return Err("its examples are of different kinds".to_owned());
    }
    let (head, tail) = match (count, is_labelled) {
        (2, true) => ("Dataset::from_examples([", "], Vec::new(), \"pairs\")"),
        (2, false) => ("Dataset::from_pairs([", "])"),
        (3, false) => ("Dataset::from_triplets([", "])"),
        _ => {
            return Err("an example has two texts and a similarity, two texts that belong together, or these and one that does not".to_owned());
        }
    };
    let lines = rows.iter().map(|(texts, label)| match label {
        Some(label) => format!(
            "    Example::new({}).with_pair({}).with_label(Label::Value({label})),",
            texts[0], texts[1]
        ),
        None => format!("    ({}),", texts.join(", ")),
    });
    let lines: Vec<String> = lines.collect();
    Ok(format!("{head}\n{}\n{tail}", lines.join("\n")))
}
