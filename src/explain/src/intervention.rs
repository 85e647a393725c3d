//! Predictions with changed activations: an ablated head, a scaled layer, the activations of one text patched into another.
//! Source of patching: Vig et al. 2020, "Investigating gender bias in language models using causal mediation analysis"; Meng et
//! al. 2022, "Locating and editing factual associations in GPT".

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Tensor;
use stratoscope_bert::SequenceClassifier;
use stratoscope_bert::taps::{
    Activations, Change, Changes, EMBEDDINGS, NewValue, Taps, is_named, of_heads, of_layer,
};
use stratoscope_data::Encoding;
use stratoscope_diagnostics::rules::{ChangeNotFinite, NothingToChange};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_models::ModelOf;
use stratoscope_render::text::excerpt;

use crate::explanation::name_of;
use crate::patching::{self, PatchMap};
use crate::text::ExplainedText;
use crate::view::{ROWS, View, largest, probabilities};

const CALL: &str = "predict_with";
/// Letters of a text whose activations are patched, in the description of the change.
const MAX_SHOWN: usize = 40;

/// What is to be changed about a prediction: `|it| it.head(3, 5).scale(0.0)`. Several changes are made in their order.
#[derive(Debug, Default)]
pub struct ActivationEdits {
    wanted: Vec<Wanted>,
}

/// A change as written.
#[derive(Debug)]
struct Wanted {
    output: String,
    /// The layer that was named, if any.
    layer: Option<usize>,
    head: Option<usize>,
    token: Option<usize>,
    example: Option<usize>,
    value: WantedValue,
}

#[derive(Debug)]
enum WantedValue {
    Known(NewValue),
    Of(ExplainedText),
}

impl ActivationEdits {
    fn output_of(&mut self, output: String, layer: Option<usize>) -> EditedOutput<'_> {
        EditedOutput {
            wanted: Wanted {
                output,
                layer,
                head: None,
                token: None,
                example: None,
                value: WantedValue::Known(NewValue::Scale(1.0.into())),
            },
            edits: self,
        }
    }

    /// The output of an encoder layer, counted from 0: `it.layer(3).patch_from("another text")`.
    pub fn layer(&mut self, layer: usize) -> EditedOutput<'_> {
        self.output_of(of_layer(layer), Some(layer))
    }

    /// The output of an attention head before the heads are mixed, both counted from 0: `it.head(3, 5).scale(0.0)`.
    pub fn head(&mut self, layer: usize, head: usize) -> EditedOutput<'_> {
        let mut edited = self.output_of(of_heads(layer), Some(layer));
        edited.wanted.head = Some(head);
        edited
    }

    /// What the encoder begins with.
    pub fn embeddings(&mut self) -> EditedOutput<'_> {
        self.output_of(EMBEDDINGS.to_owned(), None)
    }

    /// Any output, by its name or the end of it: `it.output("pooler").scale(0.0)`.
    pub fn output(&mut self, name: impl Into<String>) -> EditedOutput<'_> {
        self.output_of(name.into(), None)
    }
}

/// A part of an output that is being chosen.
#[derive(Debug)]
#[must_use = "say what becomes of it: `.scale(0.0)`, `.set(0.0)` or `.patch_from(\"another text\")`"]
pub struct EditedOutput<'a> {
    edits: &'a mut ActivationEdits,
    wanted: Wanted,
}

impl EditedOutput<'_> {
    /// Only one position of each text, counted from 0: that of `[CLS]`.
    pub fn token(mut self, token: usize) -> Self {
        self.wanted.token = Some(token);
        self
    }

    /// Only one of the texts, counted from 0.
    pub fn example(mut self, example: usize) -> Self {
        self.wanted.example = Some(example);
        self
    }

    /// Multiplies the numbers: 0 ablates.
    pub fn scale(self, factor: impl Into<f64>) {
        let factor = factor.into() as f32;
        self.becomes(WantedValue::Known(NewValue::Scale(factor.into())));
    }

    /// Puts this number in place of each.
    pub fn set(self, number: impl Into<f64>) {
        let number = number.into() as f32;
        self.becomes(WantedValue::Known(NewValue::Set(number.into())));
    }

    /// Puts the numbers of another text in place, position by position, as far as both go.
    pub fn patch_from(self, text: impl Into<ExplainedText>) {
        self.becomes(WantedValue::Of(text.into()));
    }

    fn becomes(mut self, value: WantedValue) {
        self.wanted.value = value;
        self.edits.wanted.push(self.wanted);
    }
}

/// What a model answers for a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The predicted class; its number where the model has no names.
    pub label: String,
    /// The probability of every class.
    pub probabilities: Vec<f64>,
    /// The outputs of the last layer.
    pub logits: Vec<f64>,
}

impl Answer {
    fn of(view: &View, logits: Vec<f64>) -> Self {
        let probabilities = probabilities(&logits);
        Self {
            label: name_of(view, largest(&logits)),
            probabilities,
            logits,
        }
    }

    /// The probability of the predicted class.
    pub fn probability(&self) -> f64 {
        self.probabilities
            .get(largest(&self.logits))
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// The predictions of some texts, and those with changed activations. Shown, they stand side by side.
#[derive(Clone, PartialEq)]
pub struct ChangedPredictions {
    /// The changes, in words.
    pub changes: Vec<String>,
    /// The texts.
    pub texts: Vec<String>,
    /// Without a change.
    pub before: Vec<Answer>,
    /// With the changes.
    pub after: Vec<Answer>,
}

/// Interventions on the activations of a classifier.
pub trait InterveneOnActivations {
    /// Predicts texts with changed activations, beside the plain predictions:
    /// `model.predict_with(["a chess game"], |it| it.head(3, 5).scale(0.0))?`. The model stays as it is.
    ///
    /// # Errors
    /// SC0730 for a layer, head, token, text or output that does not exist, and for no text or change; SC0724 for a text
    /// without a word; SC0731 for numbers that are not finite.
    fn predict_with<T: Into<ExplainedText>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        change: impl FnOnce(&mut ActivationEdits),
    ) -> Result<ChangedPredictions>;

    /// How much each head and layer matters for the difference of two texts, to first order: the gradient of the difference
    /// of two logits for the corrupted text, times the difference of the activations. One forward and one backward pass
    /// instead of a pass for each head.
    ///
    /// # Errors
    /// SC0734 for texts with different numbers of tokens; SC0724 for a text without a word.
    fn attribution_patching(
        &self,
        clean: impl Into<ExplainedText>,
        corrupted: impl Into<ExplainedText>,
    ) -> Result<PatchMap>;

    /// The same by patching itself: the activations of each head and layer of the clean text, one after the other, in place
    /// of those of the corrupted one.
    ///
    /// # Errors
    /// As [`attribution_patching`](Self::attribution_patching).
    fn activation_patching(
        &self,
        clean: impl Into<ExplainedText>,
        corrupted: impl Into<ExplainedText>,
    ) -> Result<PatchMap>;
}

impl InterveneOnActivations for ModelOf<SequenceClassifier> {
    fn predict_with<T: Into<ExplainedText>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        change: impl FnOnce(&mut ActivationEdits),
    ) -> Result<ChangedPredictions> {
        let texts: Vec<ExplainedText> = texts.into_iter().map(Into::into).collect();
        let mut edits = ActivationEdits::default();
        change(&mut edits);
        predicted(&View::of(self), &texts, edits)
    }

    fn attribution_patching(
        &self,
        clean: impl Into<ExplainedText>,
        corrupted: impl Into<ExplainedText>,
    ) -> Result<PatchMap> {
        patching::attributed(&View::of(self), &clean.into(), &corrupted.into())
    }

    fn activation_patching(
        &self,
        clean: impl Into<ExplainedText>,
        corrupted: impl Into<ExplainedText>,
    ) -> Result<PatchMap> {
        patching::patched(&View::of(self), &clean.into(), &corrupted.into())
    }
}

fn predicted(
    view: &View,
    texts: &[ExplainedText],
    edits: ActivationEdits,
) -> Result<ChangedPredictions> {
    if edits.wanted.is_empty() {
        let expects = "a change, such as `|it| it.layer(0).scale(0.0)`".to_owned();
        return Err(missing("output", "(none)", expects));
    }
    let tokenized = texts.iter().map(|text| {
        let tokens = text.tokenized(CALL, &view.tokenizer, view.max_length)?;
        Ok(tokens.encoding)
    });
    let rows: Vec<Encoding> = tokenized.collect::<Result<_>>()?;
    let Some(first) = rows.first() else {
        return Err(missing("text", "(none)", "a text to predict".to_owned()));
    };
    let outputs = outputs(view, first);
    let checked = edits
        .wanted
        .into_iter()
        .map(|wanted| checked(view, &rows, &outputs, wanted));
    let list: Vec<Change> = checked.collect::<Result<_>>()?;
    let changes: Arc<[Change]> = list.into();
    let before = view.logits(&rows);
    let mut after = Vec::with_capacity(rows.len());
    for (at, some) in rows.chunks(ROWS).enumerate() {
        let numbers: Vec<usize> = (at * ROWS..at * ROWS + some.len()).collect();
        let changes = Changes::new(Arc::clone(&changes), &numbers);
        after.extend(changes.during(|| view.logits(some)));
    }
    let words: Vec<String> = changes.iter().map(Change::to_string).collect();
    let bad = after.iter().flatten().find(|it| !it.is_finite());
    if let Some(&value) = bad {
        return Err(not_finite("output of the model", value, words));
    }
    let answers = |logits: Vec<Vec<f64>>| {
        let logits = logits.into_iter();
        logits.map(|it| Answer::of(view, it)).collect()
    };
    Ok(ChangedPredictions {
        changes: words,
        texts: texts.iter().map(ToString::to_string).collect(),
        before: answers(before),
        after: answers(after),
    })
}

/// The names of the outputs that the layers hand out.
fn outputs(view: &View, row: &Encoding) -> Vec<String> {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&seen);
    let taps = Taps::new(
        move |name| {
            let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(name.to_owned());
            // The name is all that is wanted.
            false
        },
        |_, _, _| {},
    );
    taps.during(|| view.logits(std::slice::from_ref(row)));
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    // These are handed out on the way, and what becomes of them is not the pass's.
    const ON_THE_WAY: [&str; 5] = ["query", "key", "value", "probabilities", "sum"];
    let mut names = std::mem::take(&mut *seen);
    names.retain(|name| {
        let last = name.rsplit('.').next().unwrap_or(name);
        !ON_THE_WAY.contains(&last)
    });
    names
}

fn checked(view: &View, rows: &[Encoding], outputs: &[String], wanted: Wanted) -> Result<Change> {
    if let Some(layer) = wanted.layer
        && layer >= view.layers()
    {
        return Err(missing(
            "layer",
            layer,
            up_to("an encoder layer", view.layers()),
        ));
    }
    if !outputs.iter().any(|name| is_named(name, &wanted.output)) {
        let shown = stratoscope_render::text::names(outputs, 4);
        let given = format!("`{}`", wanted.output);
        let expects = format!("an output of the network, such as {shown}");
        return Err(missing("output", given, expects));
    }
    if let Some(head) = wanted.head
        && head >= view.heads()
    {
        return Err(missing("head", head, up_to("a head", view.heads())));
    }
    if let Some(example) = wanted.example
        && example >= rows.len()
    {
        return Err(missing(
            "text",
            example,
            up_to("one of the texts", rows.len()),
        ));
    }
    if let Some(token) = wanted.token {
        let own = match wanted.example {
            Some(example) => rows[example].ids.len(),
            None => rows.iter().map(|row| row.ids.len()).max().unwrap_or(0),
        };
        if token >= own {
            return Err(missing("token", token, up_to("a token", own)));
        }
    }
    let value = match wanted.value {
        WantedValue::Known(value) => {
            if let NewValue::Scale(number) | NewValue::Set(number) = &value {
                let number = f64::from(f32::from(*number));
                if !number.is_finite() {
                    return Err(not_finite("factor or value", number, Vec::new()));
                }
            }
            value
        }
        WantedValue::Of(text) => {
            let tokens = text.tokenized(CALL, &view.tokenizer, view.max_length)?;
            let of = std::slice::from_ref(&wanted.output);
            let mut found = activations(view, &tokens.encoding, of).pop();
            let found = found.get_or_insert_default();
            found.of = excerpt(&text.to_string(), MAX_SHOWN);
            NewValue::Copy(Arc::new(std::mem::take(found)))
        }
    };
    Ok(Change {
        output: wanted.output,
        head: wanted.head,
        token: wanted.token,
        example: wanted.example,
        value,
    })
}

/// What these outputs are for one text, in their order.
pub(crate) fn activations(view: &View, row: &Encoding, outputs: &[String]) -> Vec<Activations> {
    let found: Arc<Mutex<Vec<Option<Activations>>>> =
        Arc::new(Mutex::new(vec![None; outputs.len()]));
    let (sink, wanted) = (Arc::clone(&found), outputs.to_vec());
    let place = move |name: &str| wanted.iter().position(|it| is_named(name, it));
    let wants = place.clone();
    let taps = Taps::new(
        move |name| wants(name).is_some(),
        move |name, shape, elements: Tensor<1>| {
            let Some(at) = place(name) else { return };
            let data = elements.into_data().convert::<f32>();
            let mut found = sink.lock().unwrap_or_else(PoisonError::into_inner);
            found[at] = Some(Activations {
                of: String::new(),
                width: shape.last().copied().unwrap_or(0),
                elements: data.iter::<f32>().collect(),
            });
        },
    );
    taps.during(|| view.logits(std::slice::from_ref(row)));
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *found).into_iter().flatten().collect()
}

/// SC0730
fn missing(what: &str, given: impl ToString, expects: String) -> Box<Diagnostic> {
    NothingToChange {
        call: CALL.to_owned(),
        what: what.to_owned(),
        given: given.to_string(),
        expects,
        similar: Vec::new(),
    }
    .error()
}

/// SC0731
fn not_finite(what: &str, value: f64, changes: Vec<String>) -> Box<Diagnostic> {
    ChangeNotFinite {
        call: CALL.to_owned(),
        what: what.to_owned(),
        value,
        changes,
    }
    .error()
}

fn up_to(what: &str, count: usize) -> String {
    match count {
        0 => format!("{what}, and there is none"),
        1 => format!("{what}: there is only 0"),
        count => format!("{what}, 0 to {}", count - 1),
    }
}

impl fmt::Debug for ChangedPredictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for ChangedPredictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}
