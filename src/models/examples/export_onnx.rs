//! Exports models to ONNX, and computes what they put out here, so that `tests/test_onnx.py` can compare with onnxruntime.
//!
//! ```text
//! cargo run --example export_onnx -- OUT path/to/a/checkpoint …
//! ```
//!
//! Each checkpoint with every head, some `Sequential`s, and a classifier with trained adapters, as files in the folder `OUT`.
//! A JSON line for each: the files with weights in 32 and in 8 bits, and batches of several sizes with the inputs and outputs of
//! the network here.

use std::error::Error;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, Int, Tensor};
use serde_json::{Map, Value, json};
use stratoscope_bert::{
    BatchTensors, BertNetwork, MaskedLm, Mode, MultipleChoice, QuestionAnswerer, SentenceEncoder,
    SequenceClassifier, TokenClassifier,
};
use stratoscope_data::{Batch, Dataset, Labels, RandomStream, Tokenize};
use stratoscope_models::{
    Activation, BertFiles, BertForMaskedLM, BertForMultipleChoice, BertForQuestionAnswering,
    BertForSentenceEmbedding, BertForSequenceClassification, BertForTokenClassification,
    CompileArgs, Dense, Dropout, Embedding, FitArgs, Flatten, GlobalAveragePooling1D, Layer,
    LoadOptions, Lora, Model, ModelOf, Network, OnnxFile, SGD, Sequential,
    SparseCategoricalCrossentropy,
};

type Outcome<T> = Result<T, Box<dyn Error>>;
type Outputs = Vec<(&'static str, Value)>;

/// Rows, texts of a row (1 but for multiple choice), positions.
const SHAPES: [[usize; 3]; 3] = [[3, 1, 7], [1, 1, 1], [5, 1, 40]];
const CHOICES: [[usize; 3]; 3] = [[2, 3, 7], [1, 2, 1], [3, 4, 25]];

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let out = PathBuf::from(arguments.next().ok_or("name a folder for the files")?);
    for checkpoint in arguments {
        of_checkpoint(&out, &checkpoint)?;
    }
    for (name, layers, vocabulary) in sequentials() {
        of_layers(&out, name, layers, vocabulary)?;
    }
    Ok(())
}

/// Every head on one checkpoint.
fn of_checkpoint(out: &Path, checkpoint: &str) -> Outcome<()> {
    let name = Path::new(checkpoint).file_name().unwrap_or_default();
    let file = |head: &str| out.join(format!("{}-{head}", name.to_string_lossy()));
    let sequence = |network: &SequenceClassifier, batch, _| {
        vec![("logits", values(network.forward(batch, Mode::Eval)))]
    };
    // With the head of the checkpoint, if it is for this task.
    let options = LoadOptions::new();
    let model = BertForSequenceClassification::from_pretrained_with(checkpoint, &options)?;
    exported(&file("sequence"), &model, SHAPES, sequence)?;
    let one = LoadOptions::new().new_head().num_labels(1);
    let model = BertForSequenceClassification::from_pretrained_with(checkpoint, &one)?;
    exported(&file("regression"), &model, SHAPES, sequence)?;
    let any = LoadOptions::new().new_head().num_labels(3).multi_label();
    let model = BertForSequenceClassification::from_pretrained_with(checkpoint, &any)?;
    exported(&file("labels"), &model, SHAPES, sequence)?;
    let model = adapted(checkpoint)?;
    exported(&file("adapters"), &model, SHAPES, sequence)?;
    let model = BertForTokenClassification::from_pretrained_with(checkpoint, &options)?;
    exported(
        &file("token"),
        &model,
        SHAPES,
        |network: &TokenClassifier, batch, _| {
            vec![("logits", values(network.forward(batch, Mode::Eval)))]
        },
    )?;
    let model = BertForQuestionAnswering::from_pretrained(checkpoint)?;
    exported(
        &file("question"),
        &model,
        SHAPES,
        |network: &QuestionAnswerer, batch, _| {
            let logits = network.forward(batch, Mode::Eval); // [B, 2, S]
            let part = |at| values(logits.clone().narrow(1, at, 1).squeeze_dim::<2>(1));
            vec![("start_logits", part(0)), ("end_logits", part(1))]
        },
    )?;
    let model = BertForMultipleChoice::from_pretrained(checkpoint, 3)?;
    exported(
        &file("choice"),
        &model,
        CHOICES,
        |network: &MultipleChoice, batch, [_, texts, _]| {
            vec![("logits", values(network.forward(batch, texts, Mode::Eval)))]
        },
    )?;
    let model = BertForMaskedLM::from_pretrained(checkpoint)?;
    exported(
        &file("masked"),
        &model,
        SHAPES,
        |network: &MaskedLm, batch, [rows, _, length]| {
            let places = Tensor::<1, Int>::arange(0..(rows * length) as i64, &Device::flex());
            let logits = network.forward(batch, places, Mode::Eval); // [B·S, V]
            let vocabulary = logits.dims()[1];
            vec![("logits", values(logits.reshape([rows, length, vocabulary])))]
        },
    )?;
    let model = BertForSentenceEmbedding::from_pretrained(checkpoint)?;
    exported(
        &file("sentence"),
        &model,
        SHAPES,
        |network: &SentenceEncoder, batch: BatchTensors, _| {
            let tokens = network
                .bert
                .forward(batch.clone(), Mode::Eval)
                .last_hidden_state();
            let vectors = network.forward(batch, Mode::Eval);
            vec![
                ("token_embeddings", values(tokens)),
                ("sentence_embedding", values(vectors)),
            ]
        },
    )
}

/// A classifier whose adapters have learned something: new ones compute nothing.
fn adapted(checkpoint: &str) -> Outcome<BertForSequenceClassification> {
    let options = LoadOptions::new().new_head().num_labels(3);
    let model = BertForSequenceClassification::from_pretrained_with(checkpoint, &options)?;
    model.add_lora(Lora::new(2).alpha(4.0).targets(["all-linear"]))?;
    let loss = SparseCategoricalCrossentropy { from_logits: true };
    model.compile(CompileArgs::new().optimizer(SGD::new(0.1)).loss(loss))?;
    let rows = ["a game", "fonts", "mathematics", "two games"]
        .into_iter()
        .zip([0, 1, 2, 0]);
    let names = ["a", "b", "c"].map(str::to_owned);
    let data = Dataset::from_labelled(rows.map(|(text, label)| (text, names[label].clone())));
    model.fit(&data, FitArgs::new().epochs(3).batch_size(2).verbose(false))?;
    Ok(model)
}

/// Writes both files, computes the outputs of batches, and prints the line.
fn exported<N>(
    file: &Path,
    model: &ModelOf<N>,
    shapes: [[usize; 3]; 3],
    forward: impl Fn(&N, BatchTensors, [usize; 3]) -> Outputs,
) -> Outcome<()>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let files = written(file, model)?;
    let has_types = files[0].inputs.iter().any(|name| name == "token_type_ids");
    let vocabulary = model.tokenizer().vocab_size();
    let mut batches = Vec::new();
    for (number, shape) in shapes.into_iter().enumerate() {
        let mut inputs = Inputs::random(shape, vocabulary, number as u64);
        if !has_types {
            inputs.types.fill(0);
        }
        let outputs = model.with_network(|network| forward(network, inputs.tensors(), shape));
        batches.push(json!({ "inputs": inputs.named(), "outputs": named(outputs) }));
    }
    print(file, &files, &batches);
    Ok(())
}

/// The files with weights in 32 and in 8 bits.
fn written(file: &Path, model: &Model) -> Outcome<[OnnxFile; 2]> {
    Ok([
        model.export_onnx(file.with_extension("onnx"))?,
        model.export_onnx_int8(file.with_extension("int8.onnx"))?,
    ])
}

fn print(file: &Path, [whole, int8]: &[OnnxFile; 2], batches: &[Value]) {
    let line = json!({
        "name": file.file_name().unwrap_or_default().to_string_lossy(),
        "file": whole.path, "bytes": whole.bytes, "inputs": whole.inputs, "outputs": whole.outputs,
        "int8": int8.path, "int8_bytes": int8.bytes, "batches": batches,
    });
    println!("{line}");
}

/// Random tokens, the last ones of some rows padding, the last ones of the tokens of the second type.
struct Inputs {
    shape: [usize; 3],
    ids: Vec<i64>,
    mask: Vec<f32>,
    types: Vec<i64>,
}

impl Inputs {
    fn random(shape: [usize; 3], vocabulary: usize, seed: u64) -> Self {
        let [rows, texts, length] = shape;
        let mut random = RandomStream::new(seed, 0);
        let (mut ids, mut mask, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows * texts {
            // The first row is full.
            let tokens = if row == 0 {
                length
            } else {
                1 + random.below(length)
            };
            let first = random.below(tokens + 1);
            for position in 0..length {
                let is_token = position < tokens;
                ids.push(if is_token {
                    random.below(vocabulary) as i64
                } else {
                    0
                });
                mask.push(f32::from(u8::from(is_token)));
                types.push(i64::from(is_token && position >= first));
            }
        }
        Self {
            shape,
            ids,
            mask,
            types,
        }
    }

    fn tensors(&self) -> BatchTensors {
        let [rows, texts, length] = self.shape;
        let (ids, mask, types) = (self.ids.clone(), self.mask.clone(), self.types.clone());
        BatchTensors::from_values(ids, mask, types, [rows * texts, length], &Device::flex())
    }

    fn named(&self) -> Value {
        let [rows, texts, length] = self.shape;
        let dims = if texts == 1 {
            vec![rows, length]
        } else {
            vec![rows, texts, length]
        };
        let mask: Vec<i64> = self.mask.iter().map(|&mask| mask as i64).collect();
        let array = |values: &[i64]| json!({ "dims": dims, "values": values });
        json!({
            "input_ids": array(&self.ids),
            "attention_mask": array(&mask),
            "token_type_ids": array(&self.types),
        })
    }
}

/// Layers of each kind with every activation, and how many numbers an embedding looks up.
fn sequentials() -> Vec<(&'static str, Vec<Layer>, usize)> {
    let mut all = vec![
        ("dense", vec![Dense(1).input_shape(4).seed(1)], 0),
        (
            "mean",
            vec![
                Embedding(20, 6).input_shape(4).seed(1),
                Dense(5).activation("relu").seed(2),
                GlobalAveragePooling1D(),
                Dropout(0.5),
                Dense(3).activation("softmax").seed(3),
            ],
            20,
        ),
        (
            "flat",
            vec![
                Embedding(20, 6).input_shape(4).seed(1),
                Flatten(),
                Dense(2).seed(3),
                Dropout(0.5),
            ],
            20,
        ),
    ];
    for activation in Activation::ALL {
        let layers = vec![
            Dense(8).activation(activation).input_shape(4).seed(4),
            Dense(8).activation(activation).seed(5),
            Dense(3).seed(6),
        ];
        all.push((activation.name(), layers, 0));
    }
    all
}

/// Rows of 4 numbers for a list of layers, at its input whole numbers below `vocabulary` if that is not 0.
fn of_layers(out: &Path, name: &str, layers: Vec<Layer>, vocabulary: usize) -> Outcome<()> {
    let model = Sequential(layers)?;
    let mut batches = Vec::new();
    for rows in [1, 7] {
        let mut random = RandomStream::new(rows as u64, 1);
        let number = |_| match vocabulary {
            0 => random.below(2001) as f32 / 1000.0 - 1.0,
            vocabulary => random.below(vocabulary) as f32,
        };
        let features: Vec<f32> = (0..rows * 4).map(number).collect();
        let inputs = json!({ "features": { "dims": [rows, 4], "values": &features } });
        let batch = Batch {
            ids: Vec::new(),
            mask: Vec::new(),
            type_ids: Vec::new(),
            features,
            labels: Labels::Absent,
            rows: (0..rows).collect(),
            weights: None,
            seq: 0,
            choices: 1,
            by_worker: None,
        };
        let device = Device::flex();
        let outputs = model.with_network(|it| it.logits(&batch, Mode::Eval, &device));
        let outputs = named(vec![("outputs", values(outputs))]);
        batches.push(json!({ "inputs": inputs, "outputs": outputs }));
    }
    let file = out.join(format!("sequential-{name}"));
    print(&file, &written(&file, &model)?, &batches);
    Ok(())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Value {
    let dims = tensor.dims().to_vec();
    let values: Vec<f32> = tensor.into_data().iter::<f32>().collect();
    json!({ "dims": dims, "values": values })
}

fn named(outputs: Outputs) -> Value {
    let outputs = outputs.into_iter();
    let named: Map<_, _> = outputs
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Value::Object(named)
}
