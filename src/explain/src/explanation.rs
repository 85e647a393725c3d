//! [`Explanation`]: why a classifier predicts what it predicts, as a number for each word.

use std::fmt;

use stratoscope_bert::SequenceClassifier;
use stratoscope_data::Encoding;
use stratoscope_diagnostics::rules::ClassNotInData;
use stratoscope_diagnostics::work::{Unit, Work};
use stratoscope_diagnostics::{Result, Rule, problem};
use stratoscope_models::ModelOf;

use crate::counterfactual::{self, Counterfactual};
use crate::text::{ExplainedText, Tokens};
use crate::view::{View, largest, probabilities};
use crate::{gradients, occlusion, rollout};

/// Steps of an integral that are allowed.
const MAX_STEPS: usize = 10_000;

/// How a prediction is explained; each has a default.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainOptions {
    steps: usize,
    class: Option<String>,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self {
            steps: 50,
            class: None,
        }
    }
}

impl ExplainOptions {
    /// 50 steps, the predicted class.
    pub fn new() -> Self {
        Self::default()
    }

    /// Steps of the integral of integrated gradients. More steps make its sum agree better with the difference that it explains.
    #[must_use]
    pub fn steps(mut self, steps: usize) -> Self {
        self.steps = steps;
        self
    }

    /// The class whose logit is explained, instead of the predicted one: "why not `games`?".
    #[must_use]
    pub fn class(mut self, name: impl Into<String>) -> Self {
        self.class = Some(name.into());
        self
    }
}

/// A word and what it adds to the logit of the explained class. Positive numbers speak for the class.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplainedWord {
    /// The word as it stands in the text.
    pub text: String,
    /// Whether it is in the second text of a pair.
    pub in_pair: bool,
    /// Tokens of the word; 0 if it was cut off with the end of the text, and all numbers are 0.
    pub tokens: usize,
    /// Integrated gradients from the text with all words hidden.
    pub integrated_gradients: f64,
    /// The gradient times the input.
    pub gradient_input: f64,
    /// What the logit loses if the word is hidden.
    pub occlusion: f64,
    /// The share of the word in what the first token attends to over all layers. It is never negative and does not depend on
    /// the class.
    pub rollout: f64,
}

/// Why a classifier predicts what it predicts. Shown, the words are colored by each method.
#[derive(Clone, PartialEq)]
pub struct Explanation {
    /// The words in the order of the text.
    pub words: Vec<ExplainedWord>,
    /// The explained class; its number where the model has no names.
    pub label: String,
    /// Whether it is the predicted one.
    pub is_predicted: bool,
    /// Its probability.
    pub probability: f64,
    /// Its logit.
    pub logit: f64,
    /// Its logit for the text with all words hidden.
    pub reference: f64,
    /// How much the sum of the integrated gradients differs from `logit − reference`: 0 for an exact integral.
    pub delta: f64,
    /// Steps of the integral.
    pub steps: usize,
    /// Tokens that were cut off.
    pub truncated: usize,
}

impl Explanation {
    /// Whether the integrated gradients add up to what they explain, within 5 % of it or a hundredth of a logit.
    pub fn is_complete(&self) -> bool {
        self.delta.abs() <= (0.05 * (self.logit - self.reference).abs()).max(0.01)
    }
}

/// Explanations of a classifier of texts, of any family of encoders.
pub trait ExplainPredictions {
    /// What each word adds to the predicted class: integrated gradients, gradient × input, occlusion and attention rollout.
    /// `model.explain("a chess game")?`; a pair is `(first, second)`.
    ///
    /// # Errors
    /// SC0724 for a text without a word; SC0520 if it is interrupted.
    fn explain(&self, text: impl Into<ExplainedText>) -> Result<Explanation> {
        self.explain_with(text, &ExplainOptions::new())
    }

    /// The same with other steps or for another class.
    ///
    /// # Errors
    /// As [`explain`](Self::explain); SC0721 for a class that the model does not have, SC0103 for no steps.
    fn explain_with(
        &self,
        text: impl Into<ExplainedText>,
        options: &ExplainOptions,
    ) -> Result<Explanation>;

    /// The smallest set of words whose removal changes the predicted class. `model.counterfactual("a chess game")?`
    ///
    /// # Errors
    /// SC0724 for a text without a word; SC0103 for a model with one output; SC0520 if it is interrupted.
    fn counterfactual(&self, text: impl Into<ExplainedText>) -> Result<Counterfactual>;
}

impl ExplainPredictions for ModelOf<SequenceClassifier> {
    fn explain_with(
        &self,
        text: impl Into<ExplainedText>,
        options: &ExplainOptions,
    ) -> Result<Explanation> {
        explained(&View::of(self), &text.into(), options)
    }

    fn counterfactual(&self, text: impl Into<ExplainedText>) -> Result<Counterfactual> {
        counterfactual::search(&View::of(self), &text.into())
    }
}

/// The name of a class; its number where the model has no name for it.
pub(crate) fn name_of(view: &View, class: usize) -> String {
    view.label_names
        .get(class)
        .cloned()
        .unwrap_or_else(|| class.to_string())
}

fn explained(view: &View, text: &ExplainedText, options: &ExplainOptions) -> Result<Explanation> {
    if !(1..=MAX_STEPS).contains(&options.steps) {
        let expects = format!("1 to {MAX_STEPS}");
        return Err(Box::new(problem::bad_value(
            "explain",
            "steps",
            options.steps.to_string(),
            expects,
        )));
    }
    let Tokens { encoding, words } = text.tokenized("explain", &view.tokenizer, view.max_length)?;
    let mut work = Work::begin(("explaining", "explained"), 4, Unit::Things("part"));
    let logits = view.logits(std::slice::from_ref(&encoding)).remove(0);
    let predicted = largest(&logits);
    let target = match &options.class {
        None => predicted,
        Some(name) => class_named(view, name, logits.len())?,
    };
    work.reached(1)?;
    let hidden = hidden(view, &encoding, words.iter().flat_map(|word| &word.tokens));
    let by_token = gradients::attribute(view, &encoding, &hidden, target, options.steps);
    work.reached(2)?;
    let occluded = occlusion::occlude(view, &encoding, &words, logits[target], target);
    work.reached(3)?;
    let flow = rollout::rollout(view, &encoding);
    work.finished();
    let sum = |numbers: &[f64], tokens: &[usize]| tokens.iter().map(|&at| numbers[at]).sum();
    let explained = words
        .iter()
        .zip(occluded)
        .map(|(word, occlusion)| ExplainedWord {
            text: text.side(word.in_pair)[word.range.clone()].to_owned(),
            in_pair: word.in_pair,
            tokens: word.tokens.len(),
            integrated_gradients: sum(&by_token.integrated, &word.tokens),
            gradient_input: sum(&by_token.gradient_input, &word.tokens),
            occlusion,
            rollout: sum(&flow, &word.tokens),
        });
    let (logit, reference) = (by_token.logits[target], by_token.reference[target]);
    Ok(Explanation {
        words: explained.collect(),
        label: name_of(view, target),
        is_predicted: target == predicted,
        probability: probabilities(&logits)[target],
        logit,
        reference,
        delta: by_token.integrated.iter().sum::<f64>() - (logit - reference),
        steps: options.steps,
        truncated: encoding.truncated,
    })
}

/// The row with these tokens hidden.
fn hidden<'t>(view: &View, row: &Encoding, tokens: impl Iterator<Item = &'t usize>) -> Encoding {
    let mut hidden = row.clone();
    tokens.for_each(|&at| hidden.ids[at] = view.hidden_id());
    hidden
}

/// SC0721
fn class_named(view: &View, name: &str, classes: usize) -> Result<usize> {
    let by_name = view.label_names.iter().position(|it| it == name);
    let class = by_name.filter(|&class| class < classes);
    class.ok_or_else(|| {
        let rule = ClassNotInData {
            call: "explain_with".to_owned(),
            given: name.to_owned(),
            known: view.label_names.clone(),
        };
        rule.error()
    })
}

impl fmt::Debug for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}
