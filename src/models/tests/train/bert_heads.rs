//! The heads of BERT against the reference: outputs, loss and every gradient, through the batches and the losses that
//! training uses. Limits are those of `tests/parity/README.md`.

use std::collections::BTreeMap;
use std::fs;

use burn::optim::GradientsParams;
use burn::tensor::Device;
use safetensors::{Dtype, SafeTensors};
use stratoscope_bert::{
    BertNetwork, LoadOptions, MaskedLm, Mode, MultipleChoice, QuestionAnswerer, TokenClassifier,
    checkpoint, gradient, named_parameters,
};
use stratoscope_data::{Batch, Labels, SpanLabels, TokenLabels};
use stratoscope_models::{IntoLoss, Network};

use crate::support::{cross_entropy, fixtures, is_full};

const FORWARD: f64 = 1e-5;
const GRADIENT: f64 = 1e-6;
const GRADIENT_OF_PEAK: f64 = 1e-4;

/// The tensors of a case.
pub struct Case(BTreeMap<String, Vec<f64>>);

impl Case {
    fn read(folder: &str) -> Self {
        let path = fixtures().join(folder).join("case.safetensors");
        let bytes = fs::read(path).expect("the fixture's file");
        let tensors = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let values = tensors.iter().map(|(name, view)| {
            let data = view.data();
            let values = match view.dtype() {
                Dtype::F32 => data
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|it| f64::from(f32::from_le_bytes(*it)))
                    .collect(),
                Dtype::I64 => data
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|it| i64::from_le_bytes(*it) as f64)
                    .collect(),
                other => panic!("{name} is {other:?}"),
            };
            (name.to_owned(), values)
        });
        Self(values.collect())
    }

    fn get(&self, name: &str) -> &[f64] {
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("no `{name}` in the case"))
    }

    fn integers(&self, name: &str) -> Vec<i32> {
        self.get(name).iter().map(|&value| value as i32).collect()
    }

    /// Its rows as a batch with these labels.
    fn batch(&self, labels: Labels) -> Batch {
        let (rows, ids) = (labels.len(), self.integers("input.input_ids"));
        let choices = match labels {
            Labels::Classes(_) => self.get("logits").len() / rows,
            _ => 1,
        };
        Batch {
            mask: self.integers("input.attention_mask"),
            type_ids: self.integers("input.token_type_ids"),
            features: Vec::new(),
            labels,
            rows: (0..rows).collect(),
            seq: ids.len() / rows,
            choices,
            ids,
            by_worker: None,
            weights: None,
        }
    }
}

fn largest_difference(found: &[f64], expected: &[f64]) -> (f64, f64) {
    assert_eq!(found.len(), expected.len());
    let difference = |(found, expected): (&f64, &f64)| (found - expected).abs();
    let differences = found.iter().zip(expected).map(difference);
    let peak = expected
        .iter()
        .fold(0.0, |peak: f64, value| peak.max(value.abs()));
    (differences.fold(0.0, f64::max), peak)
}

/// Compares outputs, loss and every gradient of a head.
fn check<N: BertNetwork + Network>(
    folder: &str,
    labels: Labels,
    outputs: &[&str],
    device: &Device,
) {
    let case = Case::read(folder);
    let path = fixtures().join(folder);
    let device = device.clone().autodiff();
    let loaded = checkpoint::load_network_as::<N>(&path, &LoadOptions::new(), &device);
    let network = loaded.expect("the fixture loads").network;
    let batch = case.batch(labels);
    let logits = network.logits(&batch, Mode::Eval, &device);
    // As training does: a sum over examples, divided by their number.
    let loss = cross_entropy().into_loss().expect("a loss");
    let loss = loss
        .sum(logits.clone(), &batch.labels)
        .div_scalar(batch.size() as f64);
    let gradients = GradientsParams::from_grads(loss.backward(), &network);

    let numbers = |data: burn::tensor::TensorData| -> Vec<f64> {
        data.iter::<f32>().map(f64::from).collect()
    };
    let width = case.get(outputs[0]).len() / batch.size();
    let rows = (0..batch.size()).flat_map(|row| {
        let of_row = |name: &&str| case.get(name)[row * width..(row + 1) * width].to_vec();
        outputs.iter().flat_map(of_row).collect::<Vec<_>>()
    });
    let mut expected: Vec<f64> = rows.collect();
    if let Labels::Tokens(TokenLabels {
        places: Some(places),
        seq,
        ..
    }) = &batch.labels
    {
        // The outputs of these tokens alone.
        let each = expected.chunks(width / batch.seq).collect::<Vec<_>>();
        let picked = places.iter().enumerate();
        let picked = picked.map(|(at, place)| each[at / seq * batch.seq + *place as usize]);
        expected = picked.collect::<Vec<_>>().concat();
    }
    let (difference, _) = largest_difference(&numbers(logits.into_data()), &expected);
    assert!(
        difference <= FORWARD,
        "{folder}: outputs are off by {difference:e}"
    );
    let (difference, _) = largest_difference(&numbers(loss.into_data()), case.get("loss"));
    assert!(
        difference <= FORWARD,
        "{folder}: the loss is off by {difference:e}"
    );

    let facts = fs::read_to_string(path.join("case.json")).expect("the fixture's file");
    let facts: serde_json::Value = serde_json::from_str(&facts).expect("JSON");
    let parameters = named_parameters(&network);
    for parameter in &parameters {
        let name = format!("grad.{}", parameter.name);
        let found = gradient(&network, &gradients, &parameter.name).expect("a gradient");
        let (difference, peak) = largest_difference(&numbers(found), case.get(&name));
        assert!(difference <= GRADIENT, "{folder}, {name}: {difference:e}");
        if facts["zero_gradients"].get(&name).is_none() {
            assert!(
                difference <= GRADIENT_OF_PEAK * peak,
                "{folder}, {name}: {difference:e} of {peak:e}"
            );
        }
    }
    let expected = case
        .0
        .keys()
        .filter(|name| name.starts_with("grad."))
        .count();
    assert_eq!(parameters.len(), expected, "as many as in the reference");
}

fn token_labels() -> Labels {
    labels_of_tokens("token-classification")
}

/// The labels of all tokens of a case.
fn labels_of_tokens(folder: &str) -> Labels {
    let case = Case::read(folder);
    let classes = case.integers("input.labels");
    let counted = classes
        .iter()
        .filter(|&&class| class != TokenLabels::IGNORED)
        .count();
    Labels::Tokens(TokenLabels {
        classes,
        seq: 16,
        places: None,
        weight: 4.0 / counted as f32,
        scheme: None,
    })
}

#[test]
fn token_classification_is_the_reference() {
    check::<TokenClassifier>(
        "token-classification",
        token_labels(),
        &["logits"],
        &Device::flex(),
    );
}

/// The same of the tokens that have a label alone, as batches have them.
fn hidden_tokens() -> Labels {
    let Labels::Tokens(all) = labels_of_tokens("masked-lm") else {
        panic!("tokens");
    };
    let of_row = |row: &[i32]| -> Vec<(i32, i32)> {
        let each = row.iter().enumerate();
        let hidden = each.filter(|(_, class)| **class != TokenLabels::IGNORED);
        hidden.map(|(at, &class)| (at as i32, class)).collect()
    };
    let rows: Vec<_> = all.classes.chunks(16).map(of_row).collect();
    let seq = rows.iter().map(Vec::len).max().expect("four rows");
    let filled = rows.into_iter().flat_map(|mut row| {
        row.resize(seq, (0, TokenLabels::IGNORED));
        row
    });
    let (places, classes) = filled.unzip();
    Labels::Tokens(TokenLabels {
        classes,
        seq,
        places: Some(places),
        ..all
    })
}

#[test]
fn masked_lm_is_the_reference() {
    for labels in [labels_of_tokens("masked-lm"), hidden_tokens()] {
        check::<MaskedLm>("masked-lm", labels, &["logits"], &Device::flex());
    }
}

fn span_labels() -> Labels {
    let case = Case::read("question-answering");
    let (starts, ends) = (
        case.integers("input.start_positions"),
        case.integers("input.end_positions"),
    );
    Labels::Spans(SpanLabels {
        spans: starts
            .into_iter()
            .zip(ends)
            .map(|(start, end)| [start, end])
            .collect(),
        windows: Vec::new(),
        has_unanswerable: false,
    })
}

const SPANS: [&str; 2] = ["start_logits", "end_logits"];

#[test]
fn question_answering_is_the_reference() {
    check::<QuestionAnswerer>("question-answering", span_labels(), &SPANS, &Device::flex());
}

fn choice_labels() -> Labels {
    Labels::Classes(Case::read("multiple-choice").integers("input.labels"))
}

#[test]
fn multiple_choice_is_the_reference() {
    check::<MultipleChoice>(
        "multiple-choice",
        choice_labels(),
        &["logits"],
        &Device::flex(),
    );
}

/// One test, since the first step compiles every kernel anew. With `STRATOSCOPE_FULL_TESTS` only: what is below the heads
/// is compared in `parity::the_traces_on_gpu` each time.
#[test]
fn heads_on_gpu() {
    if !is_full() {
        return;
    }
    let Some(device) = stratoscope_gpu::testing::device() else {
        return;
    };
    check::<TokenClassifier>("token-classification", token_labels(), &["logits"], &device);
    check::<MaskedLm>("masked-lm", hidden_tokens(), &["logits"], &device);
    check::<QuestionAnswerer>("question-answering", span_labels(), &SPANS, &device);
    check::<MultipleChoice>("multiple-choice", choice_labels(), &["logits"], &device);
}
