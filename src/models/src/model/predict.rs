//! `model.predict(texts)`: answers with the names of the labels.

use std::fmt;

use serde::Serialize;
use stratoscope_data::{Data, Dataset, Encoded, TagScheme};
use stratoscope_diagnostics::rules::EmptyDataset;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::text;
use stratoscope_strategy::Origin;

use crate::model::Model;
use crate::problem;
use crate::report::history::CutTexts;
use crate::report::inspection::ConfusionMatrix;
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_network::{Files, Task};
use stratoscope_step::head::{Head, most_probable};
use stratoscope_step::prepare;
use stratoscope_train::state::ModelState;
use stratoscope_train::watch::new_head;

mod assess;
mod blanks;
mod choices;
mod embed;
mod inputs;
mod outputs;
mod rows;
mod sets;
mod spans;
mod table;
mod words;

pub use embed::{Embeddings, Near};
pub use inputs::IntoExamples;

use outputs::outputs_of;

/// Texts of a batch.
const BATCH_SIZE: usize = 32;
/// Tokens of a text beyond which it is cut, where the model itself takes more.
const LONGEST: usize = 512;

/// The answer to one text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// The text.
    pub text: String,
    /// The second text of a pair.
    pub pair: Option<String>,
    /// The most probable label; of a regression the number itself.
    pub label: String,
    /// The label's place among the labels; `None` for a regression.
    pub class: Option<usize>,
    /// The label's probability; for a regression the number; of words, the smallest probability of a tag.
    pub score: f64,
    /// The probability of every label, in their order: the outputs after softmax. One output that decides
    /// between two classes is after sigmoid the probability of the second. Empty for a regression.
    pub probabilities: Vec<f64>,
    /// What a head that answers words has found in the text: its entities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Marked>,
    /// The answer to a question, found in the second text; `None` where that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answered>,
    /// What may stand at each mask of the text, for a head that predicts tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blanks: Vec<Blank>,
    /// The texts that were to choose from, in the order of their probabilities.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Every word of the text with its tag, for a head that answers words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Marked>,
}

impl std::ops::Index<usize> for Prediction {
    type Output = f64;

    /// An output of the model, as in Keras's `predict(x)[row][output]`: the probability of a class; of a regression, the
    /// number is output 0.
    ///
    /// # Panics
    /// If the model has no such output, as an index beyond the end of a list does.
    fn index(&self, output: usize) -> &f64 {
        let outputs = match self.class {
            Some(_) => self.probabilities.as_slice(),
            None => std::slice::from_ref(&self.score),
        };
        outputs.get(output).unwrap_or_else(|| {
            panic!(
                "there is no output {output}: the outputs are numbered 0 to {}",
                outputs.len().saturating_sub(1)
            )
        })
    }
}

/// A mask in a text and the tokens that may stand there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Blank {
    /// Its first byte in its text.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    /// Whether it is in the second text of a pair.
    pub in_pair: bool,
    /// The most probable tokens, the best first, and their probabilities. A token that goes on with a word begins with
    /// `##`.
    pub choices: Vec<(String, f64)>,
}

/// What a model says to a question about a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answered {
    /// The answer; `None` where the text has none.
    pub found: Option<Marked>,
    /// How much better the answer is than none, in logits.
    pub margin: f64,
}

/// A part of a text and what it was taken for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Marked {
    /// What it is: the type of an entity, the tag of a word.
    pub label: String,
    /// The part of the text.
    pub text: String,
    /// Its first byte in the text.
    pub start: usize,
    /// The byte after its last one.
    pub end: usize,
    /// Its probability; of several words, the mean of theirs. 0 for a word that was cut off with the end of its text.
    pub score: f64,
}

/// The answers to some texts, in their order.
#[derive(Clone, PartialEq, Serialize)]
pub struct Predictions {
    /// The answers.
    pub rows: Vec<Prediction>,
    /// The labels in their order; empty for a regression.
    pub label_names: Vec<String>,
    /// The texts that were cut, if any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutTexts>,
}

impl Model {
    /// Answers texts, rows of numbers, or the examples of a data set, without dropout: `model.predict(["a game"])?`,
    /// `model.predict([[1.0, 2.0]])?`, `model.predict(&dev)?`. Numbers in a list are one row, unless a row of the model
    /// is one number.
    ///
    /// # Errors
    /// SC0914 for no example; SC0915 for rows of different lengths; SC0907 if a device fails; SC0520 if it is interrupted.
    #[track_caller]
    pub fn predict(&self, examples: impl IntoExamples) -> Result<Predictions> {
        let origin = Origin::current();
        let width = self.state().step.replicas.first().input_width();
        self.predict_data(examples.into_examples(width)?, origin)
    }

    /// The most tokens of a text that `predict` reads: `max_length` of the training, or all that the model takes.
    pub fn read_length(&self) -> usize {
        read_length(&self.state())
    }

    fn predict_data(&self, mut data: Dataset, origin: Origin) -> Result<Predictions> {
        if data.is_empty() {
            let source = format!("`{}`", data.source);
            return Err(EmptyDataset {
                source,
                wanted_by: "`predict`".to_owned(),
            }
            .error());
        }
        data.examples
            .iter_mut()
            .for_each(|example| example.label = None);
        let _listening = Listening::begin();
        let mut state = self.state();
        state.ready_for(Data::Held(&data), "predict", origin)?;
        if state.files.task() == Task::Embedding {
            let expects = "a model that answers; this one gives vectors: `model.embed(texts)?`";
            let name = state.files.model_name();
            return Err(Box::new(problem::bad_value(
                "predict", "model", name, expects,
            )));
        }
        let max_length = read_length(&state);
        let encoded = tokenized(&*state.files, &data, max_length)?;
        prepare::report_texts(&*state.files, &data, &encoded, "predict")?;
        let cut = CutTexts::of(encoded.report());
        new_head(&state, "predict")?;
        let outputs = outputs_of(&state, &encoded, ("predicting", "predicted"))?;
        let loss = state.compiled.as_ref().and_then(|compiled| compiled.loss);
        let head = Head::of(&*state.files, state.step.replicas.first(), loss);
        let label_names = head.label_names(&*state.files);
        let words = words::Decoder {
            tokenizer: state.files.tokenizer(),
            label_names: &label_names,
            scheme: TagScheme::of(&label_names),
            max_length,
        };
        let filler = blanks::Filler {
            tokenizer: state.files.tokenizer(),
            max_length,
            vocabulary: state.files.vocabulary().unwrap_or(1),
        };
        if head == Head::Span {
            let windows = (0..encoded.len()).filter_map(|at| encoded.get(at)?.window.as_deref());
            let rows = spans::answers(data, &windows.collect::<Vec<_>>(), &outputs);
            return Ok(Predictions {
                rows,
                label_names,
                cut,
            });
        }
        let chooses = state.files.task() == Task::Choice;
        let rows = data.examples.into_iter().zip(outputs);
        let rows = rows.map(|(example, outputs)| {
            if head == Head::Words {
                return words.answer(example, &outputs);
            }
            if let Head::Set { .. } = head {
                let probabilities = head.probabilities(&outputs);
                return Ok(sets::decided(example, probabilities, &label_names));
            }
            if head == Head::Masked {
                return filler.answer(example, &outputs);
            }
            if chooses {
                return Ok(choices::chosen(example, head, &outputs));
            }
            let (text, pair) = (example.text, example.pair);
            Ok(match head {
                Head::Number => number(text, pair, &outputs),
                head => classified(text, pair, head.probabilities(&outputs), &label_names),
            })
        });
        let rows = rows.collect::<Result<Vec<Prediction>>>()?;
        Ok(Predictions {
            rows,
            label_names,
            cut,
        })
    }
}

/// The most tokens of a text that are read: `max_length` of the training, or all that the model takes.
pub(super) fn read_length(state: &ModelState) -> usize {
    let all = state.files.max_positions().min(LONGEST);
    state.trained_length.unwrap_or(all)
}

/// The tokens that the head of a model is asked about.
fn tokenized(files: &dyn Files, data: &Dataset, max_length: usize) -> Result<Encoded> {
    let tokenizer = files.tokenizer();
    match files.task() {
        Task::Span => {
            prepare::asked(files, data, "predict")?;
            data.tokenize_questions(tokenizer, max_length, files.stride(max_length))
        }
        Task::Masked => {
            let encoded = data.tokenize_blanks(tokenizer, max_length)?;
            prepare::has_blanks(files, data, &encoded)?;
            Ok(encoded)
        }
        Task::Choice => {
            prepare::choosable(files, data, "predict")?;
            data.tokenize_choices(tokenizer, max_length)
        }
        _ => data.tokenize(tokenizer, max_length),
    }
}

fn classified(
    text: String,
    pair: Option<String>,
    probabilities: Vec<f64>,
    label_names: &[String],
) -> Prediction {
    let class = most_probable(&probabilities).unwrap_or(0);
    Prediction {
        text,
        pair,
        label: label_names
            .get(class)
            .cloned()
            .unwrap_or_else(|| class.to_string()),
        class: Some(class),
        score: probabilities.get(class).copied().unwrap_or(f64::NAN),
        probabilities,
        ..Prediction::default()
    }
}

fn number(text: String, pair: Option<String>, outputs: &[f32]) -> Prediction {
    let score = outputs.first().copied().map_or(f64::NAN, f64::from);
    let label = format!("{score:.4}");
    Prediction {
        text,
        pair,
        label,
        score,
        ..Prediction::default()
    }
}

impl Prediction {
    /// The class that counts. The score is the largest probability, as it was predicted: where it is that no longer, the
    /// probabilities were edited, such as for an average of models, and the most probable class is what they say now.
    fn decided(&self) -> Option<usize> {
        let class = self.class?;
        let largest = self.probabilities.iter().copied().fold(0.0, f64::max);
        match self.probabilities.is_empty() || largest == self.score {
            true => Some(class),
            false => most_probable(&self.probabilities),
        }
    }
}

impl Predictions {
    /// The label of every text. They are owned, so that a notebook can keep them.
    pub fn labels(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.label.clone()).collect()
    }

    /// Which classes were taken for which, by the labels of `data`: the data set that was predicted, or one of as many
    /// examples in the same order.
    ///
    /// # Errors
    /// SC0103 for predictions that are numbers, for data of another length, and for an example whose label is none of
    /// the classes.
    pub fn confusion_matrix(&self, data: &Dataset) -> Result<ConfusionMatrix> {
        let bad = |given: String, expects: String| {
            problem::bad_value("confusion_matrix", "data", given, expects)
        };
        let classes = self.label_names.len();
        let mut counts = vec![vec![0; classes]; classes];
        if data.len() != self.len() {
            let (given, wanted) = (text::count(data.len(), "example"), self.len());
            return Err(Box::new(bad(
                given,
                format!("{wanted}, one for each prediction"),
            )));
        }
        if self.are_words() {
            let counts = self.counts_of_words(data);
            let matrix = counts.and_then(|counts| ConfusionMatrix::new(counts, &self.label_names));
            return matrix.map(ConfusionMatrix::of_words).ok_or_else(|| {
                let expects = "the tagged words that were predicted".to_owned();
                Box::new(bad("other words or other tags".to_owned(), expects))
            });
        }
        if self.are_sets() {
            let expects = "predictions of one class for each example".to_owned();
            return Err(Box::new(bad("sets of labels".to_owned(), expects)));
        }
        let class_of = self.classes_of(data);
        for (example, row) in data.examples.iter().zip(&self.rows) {
            let own = class_of(example);
            let cell = own.and_then(|own| counts.get_mut(own)?.get_mut(row.decided()?));
            let Some(cell) = cell else {
                let given = assess::row_and_label(example, data);
                let expects = match classes {
                    0 => "predictions of classes: these are numbers".to_owned(),
                    classes => format!("a label of the {classes} classes"),
                };
                return Err(Box::new(bad(given, expects)));
            };
            *cell += 1;
        }
        ConfusionMatrix::new(counts, &self.label_names).ok_or_else(|| {
            let expects = "predictions of classes: these are numbers".to_owned();
            Box::new(bad("no class".to_owned(), expects))
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Debug for Predictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

impl fmt::Display for Predictions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stratoscope_step::head::softmax;

    #[test]
    fn the_largest_output_names_the_label() {
        let label_names = vec!["games".to_owned(), "<libs>".to_owned()];
        let row = classified("a & b".into(), None, softmax(&[1.0, 3.0]), &label_names);
        assert_eq!((row.label.as_str(), row.class), ("<libs>", Some(1)));
        assert!((row.score - 1.0 / (1.0 + (-2.0_f64).exp())).abs() < 1e-9);
        assert!((row.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let predictions = Predictions {
            rows: vec![row],
            label_names,
            cut: None,
        };
        assert_eq!(predictions.to_plain(), "<libs>   88.1 %  a & b\n");
        let html = predictions.to_html();
        assert!(html.contains("&lt;libs&gt;") && html.contains("a &amp; b"));
        let html = html.replace(" class=\"stratoscope-rows\"", "");
        assert!(!html.contains("<libs>") && !html.contains("class="));
    }
}
