//! A tiny BERT with a vocabulary of its own, data it can learn, and a network that is fed ids.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::{
    LoadOptions, Mode, NamedParameter, SequenceClassifier, checkpoint, named_parameters,
};
use stratoscope_data::{Batch, Dataset, Encoding, Example, Label, Tokenize};
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_models::events::Observer;
use stratoscope_models::{
    AdamW, BertForSequenceClassification, CompileArgs, Files, Model, ModelOf, Network, RunContext,
    SparseCategoricalCrossentropy, accuracy, set_global_policy, warmup_linear,
};
use stratoscope_strategy::{
    AsStrategy, DeviceSpec, MirroredStrategy, OneDeviceStrategy, Origin, Strategy, cuda, scope,
    wgpu,
};
use tempfile::TempDir;

/// The GPU of the tests of GPUs, which is wgpu's unless `STRATOSCOPE_TEST_GPU` is `cuda`.
pub fn gpu() -> DeviceSpec {
    match stratoscope_gpu::testing::is_cuda() {
        true => cuda(0),
        false => wgpu(0),
    }
}

/// A strategy with [`gpu`]; `None`, and a line that `tests/run.sh` counts, where there is none.
pub fn one_gpu() -> Option<Strategy> {
    match OneDeviceStrategy::new(gpu()) {
        Ok(strategy) => Some(strategy.strategy()),
        Err(reason) => {
            println!("skipped: {}", reason.one_line());
            None
        }
    }
}

/// Whether also the long tests are run: a software device compiles the kernels of each shape for seconds.
pub fn is_full() -> bool {
    std::env::var_os("STRATOSCOPE_FULL_TESTS").is_some_and(|it| !it.is_empty())
}

/// What `work` returns, and the notices with one of these codes that it causes.
pub fn heard<T>(codes: &'static [&'static str], work: impl FnOnce() -> T) -> (T, Vec<Diagnostic>) {
    struct Heard(&'static [&'static str], Mutex<Vec<Diagnostic>>);

    impl Observer for Heard {
        fn notice(&self, diagnostic: Diagnostic) {
            if self.0.contains(&diagnostic.code.as_str()) {
                let mut heard = self.1.lock().unwrap_or_else(PoisonError::into_inner);
                heard.push(diagnostic);
            }
        }

        fn counts_notices(&self) -> bool {
            true
        }
    }

    let listener = Arc::new(Heard(codes, Mutex::default()));
    let context = RunContext::new();
    context.observe(listener.clone());
    let value = {
        let _entered = context.enter();
        work()
    };
    let mut heard = listener.1.lock().unwrap_or_else(PoisonError::into_inner);
    (value, std::mem::take(&mut *heard))
}

/// The tiny BERT of `tests/parity`; `STRATOSCOPE_PARITY` names that folder where the program was copied to another machine
/// (`tests/gpu.sh`).
pub fn fixtures() -> PathBuf {
    let folder = match std::env::var_os("STRATOSCOPE_PARITY") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity"),
    };
    folder.join("tiny-bert")
}

/// The tiny BERT of the fixtures with these dropout rates and a vocabulary of 128 words.
pub fn tiny_bert(dropout: f64) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let source = fixtures().join("sequence-classification");
    let config = fs::read_to_string(source.join("config.json")).expect("the fixture's file");
    let config = config.replace("dropout_prob\": 0.1", &format!("dropout_prob\": {dropout}"));
    fs::write(folder.path().join("config.json"), config).expect("room");
    let weights = fs::read(source.join("model.safetensors")).expect("the fixture's file");
    fs::write(folder.path().join("model.safetensors"), weights).expect("room");
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    let words = (special.len()..128).map(|index| format!("w{index}"));
    let words: Vec<String> = special.into_iter().chain(words).collect();
    fs::write(folder.path().join("vocab.txt"), words.join("\n") + "\n").expect("room");
    folder
}

pub fn load(folder: &TempDir) -> BertForSequenceClassification {
    let path = folder.path().to_str().expect("a path in UTF-8");
    BertForSequenceClassification::from_pretrained(path, 3).expect("the fixture loads")
}

/// Texts of three classes, each with words of its own, of different lengths.
pub fn sentences(count: usize) -> Dataset {
    let text = |index: usize| {
        let class = index % 3;
        let words =
            (0..3 + index * 7 % 9).map(|word| 10 + class * 30 + (index * 11 + word * 5) % 25);
        words
            .map(|word| format!("w{word}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    Dataset::from_labelled(
        (0..count).map(|index| (text(index), ["red", "green", "blue"][index % 3])),
    )
}

pub fn cross_entropy() -> SparseCategoricalCrossentropy {
    SparseCategoricalCrossentropy { from_logits: true }
}

/// AdamW, cross-entropy, accuracy.
pub fn plain_args() -> CompileArgs {
    CompileArgs::new()
        .optimizer(AdamW::new(1e-3))
        .loss(cross_entropy())
        .metrics([accuracy()])
}

/// AdamW with warm-up and global clipping.
pub fn recipe() -> AdamW {
    AdamW::new(warmup_linear(1e-3, 0.2)).global_clipnorm(1.0)
}

/// Two logical devices.
pub fn mirrored() -> Option<Strategy> {
    Some(MirroredStrategy::logical(2).expect("two").strategy())
}

/// The arguments with these groups of batches and steps.
pub fn grouped(
    args: CompileArgs,
    sync_every: usize,
    accumulation: usize,
    steps_per_execution: usize,
) -> CompileArgs {
    let args = match sync_every {
        1 => args,
        steps => args.sync_every(steps),
    };
    args.gradient_accumulation_steps(accumulation)
        .steps_per_execution(steps_per_execution)
}

/// The tiny BERT with dropout, under a strategy and a policy, compiled.
pub fn compiled(
    strategy: Option<Strategy>,
    policy: &str,
    args: CompileArgs,
) -> BertForSequenceClassification {
    let _scope = strategy
        .as_ref()
        .map(|it| scope::enter(it).expect("no scope is active"));
    set_global_policy(policy).expect("a policy");
    let model = load(&tiny_bert(0.1));
    set_global_policy("float32").expect("a policy");
    model.compile(args).expect("valid arguments");
    model
}

/// The values of all weights of replica 0.
pub fn weights(model: &Model) -> Vec<(String, Vec<f32>)> {
    let variables = model.variables().into_iter();
    let mut found = variables
        .map(|(name, data)| (name, data.iter::<f32>().collect()))
        .collect::<Vec<_>>();
    found.sort_by(|a: &(String, Vec<f32>), b| a.0.cmp(&b.0));
    found
}

/// What two right results of the same sums in another order may differ by, as a share of them: some hundred
/// roundings in float32. The order is the processor's: its vectors are 4, 8 or 16 numbers long, and not all
/// multiply and add at once.
pub const ROUNDING: f64 = 1e-5;

/// Whether two losses or norms are equal but for [`ROUNDING`].
#[track_caller]
pub fn assert_near(found: f64, expected: f64) {
    assert_near_by(found, expected, ROUNDING);
}

/// Whether two numbers differ by at most this share of them.
#[track_caller]
pub fn assert_near_by(found: f64, expected: f64, share: f64) {
    let allowed = share * found.abs().max(expected.abs());
    assert!(
        (found - expected).abs() <= allowed,
        "{found}, not {expected} ± {allowed:e}"
    );
}

/// Whether two runs end at the same weights but for [`ROUNDING`] of each variable's largest, which is taken
/// for 1 where it is less: what a step adds is rounded too. Only for optimizers whose steps are proportional
/// to the gradients: Adam with a small epsilon takes a whole step along a gradient that is nothing but
/// rounding, such as that of a key's bias.
#[track_caller]
pub fn assert_near_weights(found: &[(String, Vec<f32>)], expected: &[(String, Vec<f32>)]) {
    assert_eq!(found.len(), expected.len());
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        let largest = expected.iter().fold(1.0_f32, |most, x| most.max(x.abs()));
        let difference = largest_difference(found, expected);
        assert!(
            f64::from(difference) <= ROUNDING * f64::from(largest),
            "`{name}` is off by {difference:e}"
        );
    }
}

/// The same texts, each with the next class as its label: what is learned from one is wrong for the other.
pub fn contradicted(data: &Dataset) -> Dataset {
    data.map(|mut example| {
        if let Some(Label::Class(class)) = example.label {
            example.label = Some(Label::Class((class + 1) % 3));
        }
        example
    })
}

pub fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    left.iter()
        .zip(right)
        .map(|(left, right)| (left - right).abs())
        .fold(0.0, f32::max)
}

/// A BERT whose texts are ids: `5:0 17:0 3:1` is three tokens, the last one of segment 1.
#[derive(Module, Debug)]
pub struct IdNetwork {
    inner: SequenceClassifier,
}

#[derive(Clone, Debug)]
pub struct IdFiles {
    labels: Vec<String>,
}

struct Ids;

impl Tokenize for Ids {
    fn encode(&self, text: &str, _pair: Option<&str>, _max_length: usize) -> Result<Encoding> {
        let (mut ids, mut type_ids) = (Vec::new(), Vec::new());
        for token in text.split_whitespace() {
            let (id, segment) = token.split_once(':').expect("id:segment");
            ids.push(id.parse().expect("an id"));
            type_ids.push(segment.parse().expect("a segment"));
        }
        Ok(Encoding {
            ids,
            type_ids,
            truncated: 0,
        })
    }

    fn decode(&self, ids: &[u32]) -> String {
        format!("{ids:?}")
    }

    fn tokens(&self, ids: &[u32]) -> Vec<String> {
        ids.iter().map(u32::to_string).collect()
    }

    fn pad_id(&self) -> u32 {
        0
    }

    fn unk_id(&self) -> u32 {
        1
    }

    fn vocab_size(&self) -> usize {
        128
    }
}

impl Files for IdFiles {
    fn model_name(&self) -> &'static str {
        "IdNetwork"
    }

    fn tokenizer(&self) -> &dyn Tokenize {
        &Ids
    }

    fn label_names(&self) -> &[String] {
        &self.labels
    }

    fn set_label_names(&mut self, names: Vec<String>) {
        self.labels = names;
    }

    fn max_positions(&self) -> usize {
        64
    }
}

impl Network for IdNetwork {
    type Files = IdFiles;

    fn logits(&self, batch: &Batch, mode: Mode, device: &Device) -> Tensor<2> {
        Network::logits(&self.inner, batch, mode, device)
    }

    fn parameters(&self) -> Vec<NamedParameter> {
        named_parameters(&self.inner)
    }
}

/// The tiny BERT without dropout, fed with ids, on the device of the active scope.
pub fn id_network() -> IdNetwork {
    let folder = tiny_bert(0.0);
    let device = scope::device().expect("a device");
    let loaded = checkpoint::load_network(folder.path(), &LoadOptions::new(), &device);
    IdNetwork {
        inner: loaded.expect("the fixture loads").network,
    }
}

/// The tiny BERT without dropout, fed with ids, placed by the active scope.
pub fn id_model() -> ModelOf<IdNetwork> {
    let model = Model::with_files(id_network(), id_files(), Origin::current());
    model.expect("the device takes it")
}

/// Three labels, and texts that are ids.
pub fn id_files() -> IdFiles {
    IdFiles {
        labels: (0..3).map(|class| format!("LABEL_{class}")).collect(),
    }
}

/// Examples of ids and a class.
pub fn id_data(rows: Vec<(String, usize)>) -> Dataset {
    let names = ["LABEL_0", "LABEL_1", "LABEL_2"]
        .map(str::to_owned)
        .to_vec();
    let rows = rows
        .into_iter()
        .map(|(text, class)| Example::new(text).with_label(Label::Class(class)));
    Dataset::from_examples(rows, names, "ids in memory")
}
