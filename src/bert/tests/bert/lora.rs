//! Adapters: a model with new ones computes what it computed before, gradients are those that follow from the gradient of
//! the summed weight, merging changes nothing, and the files are PEFT's.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use stratoscope_bert::checkpoint::{AdapterFolder, LoadedNetwork};
use stratoscope_bert::names::named_values;
use stratoscope_bert::ops::Precision;
use stratoscope_bert::{
    BatchTensors, BertConfig, BertNetwork, BertTokenizer, LoadOptions, LoraConfig, Mode,
    SentenceEncoder, SequenceClassifier, checkpoint, gradient, lora,
};

use crate::fixtures::{Case, as_f64, difference, parity};
use crate::parity::{FORWARD, GRADIENT, GRADIENT_OF_PEAK, loss};

const TRAIN: Mode = Mode::Train {
    seed: 3,
    step: 5,
    replica: 0,
};

fn folder() -> std::path::PathBuf {
    parity("tiny-bert/sequence-classification")
}

fn loaded(device: &Device) -> LoadedNetwork {
    let loaded = checkpoint::load_network(&folder(), &LoadOptions::new(), device);
    loaded.expect("the fixture loads")
}

/// Adapters of rank 2 in the layers that `targets` name.
fn with_lora<N: BertNetwork>(network: &N, config: &BertConfig, targets: &[&str]) -> BertConfig {
    let layers = lora::candidates(network, config);
    let meant = layers
        .iter()
        .filter(|layer| targets.iter().any(|it| layer.is_meant_by(it)));
    let modules: BTreeSet<String> = meant.map(|layer| layer.module.clone()).collect();
    assert!(!modules.is_empty());
    let lora = LoraConfig {
        rank: 2,
        alpha: 6.0,
        dropout: 0.0,
        targets: targets.iter().map(|&it| it.to_owned()).collect(),
        modules,
        seed: 7,
        base: folder().display().to_string(),
        trained: BTreeSet::new(),
    };
    let mut config = config.clone();
    config.lora = Some(lora);
    config
}

/// Values for both matrices of all adapters, so that none is zero.
fn values(network: &SequenceClassifier, config: &BertConfig) -> HashMap<String, Vec<f32>> {
    let adapted = lora::with_adapters(network, config, HashMap::new());
    let number = |index: usize| ((index * 37 % 101) as f32 - 50.0) / 400.0;
    named_values(&adapted)
        .into_iter()
        .filter(|(name, _)| name.contains("lora_"))
        .map(|(name, data)| (name, (0..data.num_elements()).map(number).collect()))
        .collect()
}

fn batch(device: &Device) -> BatchTensors {
    let ids = vec![2, 15, 27, 99, 41, 3, 2, 77, 5, 3, 0, 0];
    let mask = [[1.0; 6], [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]].concat();
    BatchTensors::from_values(ids, mask, vec![0; 12], [2, 6], device)
}

fn bits(logits: Tensor<2>) -> Vec<u32> {
    let data = logits.into_data();
    data.iter::<f32>().map(f32::to_bits).collect()
}

/// In evaluation and in training with dropout, on one layer and on all of them, in both precisions.
#[test]
fn new_adapters_change_no_bit() {
    let device = Device::flex();
    let LoadedNetwork {
        network, config, ..
    } = loaded(&device);
    for targets in [
        &["query", "value"][..],
        &["intermediate.dense"],
        &["all-linear"],
    ] {
        let config = with_lora(&network, &config, targets);
        let adapted = lora::with_adapters(&network, &config, HashMap::new());
        for mode in [Mode::Eval, TRAIN] {
            for precision in [Precision::Float32, Precision::Bfloat16] {
                let logits = |network: &SequenceClassifier| {
                    precision.during(|| bits(network.forward(batch(&device), mode)))
                };
                let what = format!("{targets:?} {mode:?} {precision:?}");
                assert_eq!(logits(&network), logits(&adapted), "{what}");
            }
        }
    }
}

#[test]
fn adapters_stand_beside_the_weights_they_are_of() {
    let device = Device::flex();
    let LoadedNetwork {
        network, config, ..
    } = loaded(&device);
    let config = with_lora(&network, &config, &["query", "value"]);
    let adapted = lora::with_adapters(&network, &config, HashMap::new());
    let values = named_values(&adapted);
    let lora: Vec<(&str, Vec<usize>)> = values
        .iter()
        .filter(|(name, _)| name.contains("layer.0.") && name.contains("lora"))
        .map(|(name, data)| (name.as_str(), data.shape().to_vec()))
        .collect();
    let hidden = config.hidden_size;
    let of =
        |layer: &str, matrix: &str| format!("bert.encoder.layer.0.attention.self.{layer}.{matrix}");
    let names = ["query", "value"].map(|layer| [of(layer, "lora_A"), of(layer, "lora_B")]);
    let names = names.concat();
    let expected: Vec<(&str, Vec<usize>)> = names
        .iter()
        .zip([vec![2, hidden], vec![hidden, 2]].into_iter().cycle())
        .map(|(name, shape)| (name.as_str(), shape))
        .collect();
    assert_eq!(lora, expected);
    // Everything else is shared with the network as it was.
    let others: Vec<_> = values
        .into_iter()
        .filter(|(name, _)| !name.contains("lora"))
        .collect();
    assert_eq!(others, named_values(&network));
    // A worker process builds the same structure of the configuration alone.
    let built = SequenceClassifier::init(&config, 0, &device).expect("a valid configuration");
    let names = |network: &SequenceClassifier| -> Vec<String> {
        named_values(network)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(names(&built), names(&adapted));
}

/// For `W' = W + s·B·A` the chain rule says `dA = s·Bᵀ·dW'` and `dB = s·dW'·Aᵀ`, and dW' is a gradient of the network
/// without adapters, which the parity tests hold against the reference.
#[test]
fn gradients_are_those_of_the_summed_weight() {
    let device = Device::flex().autodiff();
    let LoadedNetwork {
        network, config, ..
    } = loaded(&device);
    let config = with_lora(&network, &config, &["all-linear"]);
    let adapted = lora::with_adapters(&network, &config, values(&network, &config));
    let merged = lora::merged(&adapted, &config).expect("the values can be read");
    fn gradients(network: &SequenceClassifier, device: &Device) -> GradientsParams {
        let logits = network.forward(batch(device), Mode::Eval);
        let factors = Tensor::<2>::from_floats([[1.0, -2.0, 0.5], [0.3, 1.5, -1.0]], device);
        let loss = (logits * factors).sum();
        GradientsParams::from_grads(loss.backward(), network)
    }
    let (of_adapted, of_merged) = (gradients(&adapted, &device), gradients(&merged, &device));
    let all: HashMap<String, Vec<f64>> = named_values(&adapted)
        .into_iter()
        .map(|(name, data)| (name, as_f64(data)))
        .collect();
    let lora = config.lora.as_ref().expect("it has adapters");
    let (rank, scale) = (lora.rank, lora.alpha / lora.rank as f64);
    for layer in lora::candidates(&network, &config) {
        let [outputs, inputs] = layer.shape;
        let name = |matrix: &str| format!("{}.{matrix}", layer.module);
        let of_weight = gradient(&merged, &of_merged, &name("weight")).expect("it is trained");
        let of_weight = as_f64(of_weight);
        let (a, b) = (&all[&name("lora_A")], &all[&name("lora_B")]);
        let mut of_a = vec![0.0; rank * inputs];
        let mut of_b = vec![0.0; outputs * rank];
        for o in 0..outputs {
            for i in 0..inputs {
                for r in 0..rank {
                    let gradient = scale * of_weight[o * inputs + i];
                    of_a[r * inputs + i] += b[o * rank + r] * gradient;
                    of_b[o * rank + r] += gradient * a[r * inputs + i];
                }
            }
        }
        for (matrix, expected) in [("lora_A", of_a), ("lora_B", of_b)] {
            let found = gradient(&adapted, &of_adapted, &name(matrix)).expect("it is trained");
            let (off, peak) = difference(&as_f64(found), &expected);
            assert!(
                off <= 1e-4 * peak + 1e-7,
                "{} is off by {off:e} of {peak:e}",
                name(matrix)
            );
        }
    }
}

/// The same against differences of the loss, with the adapters' own dropout: the mask of a step is always the same.
#[test]
fn gradients_with_dropout_are_differences_of_the_loss() {
    let device = Device::flex().autodiff();
    let LoadedNetwork {
        network, config, ..
    } = loaded(&device);
    let mut config = with_lora(&network, &config, &["query"]).without_dropout();
    config.lora.as_mut().expect("it has adapters").dropout = 0.4;
    let values = values(&network, &config);
    let loss = |values: HashMap<String, Vec<f32>>| {
        let adapted = lora::with_adapters(&network, &config, values);
        let logits = adapted.forward(batch(&device), TRAIN);
        (adapted, (logits.clone() * logits).sum())
    };
    let number = |tensor: Tensor<1>| as_f64(tensor.into_data())[0];
    let (adapted, of_values) = loss(values.clone());
    let gradients = GradientsParams::from_grads(of_values.backward(), &adapted);
    for name in [
        "bert.encoder.layer.0.attention.self.query.lora_A",
        "bert.encoder.layer.1.attention.self.query.lora_B",
    ] {
        let found = as_f64(gradient(&adapted, &gradients, name).expect("it is trained"));
        // Along the gradient itself, where the difference is largest.
        let length = found.iter().map(|it| it * it).sum::<f64>().sqrt();
        let moved = |step: f64| {
            let mut values = values.clone();
            let own = values.get_mut(name).expect("it is one of them");
            for (value, gradient) in own.iter_mut().zip(&found) {
                *value += (step * gradient / length) as f32;
            }
            number(loss(values).1)
        };
        let step = 0.02;
        let slope = (moved(step) - moved(-step)) / (2.0 * step);
        assert!(
            (slope - length).abs() <= 0.01 * length,
            "{name}: {slope}, not {length}"
        );
    }
    let (_, again) = loss(values.clone());
    assert_eq!(
        number(again),
        number(loss(values.clone()).1),
        "one mask for a step"
    );
    let without =
        lora::with_adapters(&network, &config, values).forward(batch(&device), Mode::Eval);
    assert_ne!(number((without.clone() * without).sum()), number(of_values));
}

#[test]
fn merged_adapters_give_the_same_outputs() {
    let device = Device::flex();
    let LoadedNetwork {
        network, config, ..
    } = loaded(&device);
    let config = with_lora(&network, &config, &["all-linear"]);
    let adapted = lora::with_adapters(&network, &config, values(&network, &config));
    let merged = lora::merged(&adapted, &config).expect("the values can be read");
    let logits = |network: &SequenceClassifier| {
        as_f64(network.forward(batch(&device), Mode::Eval).into_data())
    };
    let (off, peak) = difference(&logits(&merged), &logits(&adapted));
    assert!(off <= 1e-5 * peak.max(1.0), "{off:e} of {peak:e}");
    let (changed, _) = difference(&logits(&merged), &logits(&network));
    assert!(changed > 1e-3, "the adapters had an effect: {changed:e}");
    assert!(
        named_values(&merged)
            .iter()
            .all(|(name, _)| !name.contains("lora"))
    );
    assert_eq!(merged.num_params(), network.num_params());
}

/// A vocabulary for the fixture, which has none.
fn tokenizer(folder: &Path) -> BertTokenizer {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    let words: Vec<String> = special
        .into_iter()
        .chain((5..128).map(|it| format!("w{it}")))
        .collect();
    std::fs::write(folder.join("vocab.txt"), words.join("\n") + "\n").expect("room");
    BertTokenizer::from_folder(folder).expect("a vocabulary")
}

/// A base with a vocabulary, and adapters saved for it.
fn saved() -> (tempfile::TempDir, SequenceClassifier, BertConfig) {
    let device = Device::flex();
    let root = tempfile::tempdir().expect("a temporary folder");
    let base = root.path().join("base");
    std::fs::create_dir(&base).expect("room");
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(folder().join(file), base.join(file)).expect("the fixture's file");
    }
    let tokenizer = tokenizer(&base);
    let LoadedNetwork {
        network, config, ..
    } = loaded(&device);
    let mut config = with_lora(&network, &config, &["query", "value"]);
    config.lora.as_mut().expect("it has adapters").base = base.display().to_string();
    let adapted = lora::with_adapters(&network, &config, values(&network, &config));
    let written = checkpoint::save(&root.path().join("adapters"), &adapted, &config, &tokenizer);
    let names: Vec<String> = written
        .expect("room")
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    assert_eq!(
        names[..3],
        [
            "config.json",
            "adapter_model.safetensors",
            "adapter_config.json"
        ]
    );
    (root, adapted, config)
}

fn description(root: &Path) -> Value {
    let text = std::fs::read_to_string(root.join("adapters/adapter_config.json")).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_files_are_those_of_peft() {
    let (root, ..) = saved();
    let bytes =
        std::fs::read(root.path().join("adapters/adapter_model.safetensors")).expect("written");
    let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let mut names: Vec<&str> = file.names().into_iter().collect();
    names.sort_unstable();
    let mut expected = Vec::new();
    for layer in ["0", "1"] {
        for part in ["query", "value"] {
            for matrix in ["lora_A", "lora_B"] {
                let path = format!("bert.encoder.layer.{layer}.attention.self.{part}.{matrix}");
                expected.push(format!("base_model.model.{path}.weight"));
            }
        }
    }
    // The fixture was trained as a whole here, so that all of it would be written but for the frozen body.
    let adapters: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.contains("lora_"))
        .collect();
    assert_eq!(adapters, expected);
    for head in ["weight", "bias"] {
        assert!(names.contains(&format!("base_model.model.classifier.{head}").as_str()));
    }
    let found = description(root.path());
    for (field, value) in [
        ("peft_type", json!("LORA")),
        ("task_type", json!("SEQ_CLS")),
        ("r", json!(2)),
        ("lora_alpha", json!(6.0)),
        ("target_modules", json!(["query", "value"])),
        ("base_model_name_or_path", json!(root.path().join("base"))),
    ] {
        assert_eq!(found[field], value, "{field}");
    }
    let modules = found["modules_to_save"].as_array().expect("a list");
    assert!(modules.contains(&json!("classifier")));
}

#[test]
fn saved_adapters_are_read_onto_their_base() {
    let (root, adapted, _) = saved();
    let device = Device::flex();
    let adapters = AdapterFolder::of(&root.path().join("adapters"));
    let adapters = adapters.expect("it can be read").expect("it has adapters");
    assert_eq!(Path::new(&adapters.base), root.path().join("base"));
    let again = adapters.load::<SequenceClassifier>(
        Path::new(&adapters.base),
        &LoadOptions::new(),
        &device,
    );
    let again = again.expect("it loads");
    assert_eq!(named_values(&again.network), named_values(&adapted));
    assert!(
        AdapterFolder::of(&root.path().join("base"))
            .expect("a folder")
            .is_none()
    );
}

#[test]
fn a_folder_has_a_whole_model_or_adapters() {
    let (root, adapted, config) = saved();
    let base = root.path().join("base");
    let tokenizer = BertTokenizer::from_folder(&base).expect("a vocabulary");
    let refused = checkpoint::save(&base, &adapted, &config, &tokenizer);
    let refused = refused.expect_err("the weights would be those of another model");
    assert_eq!(refused.code, "SC0908");
    let merged = lora::merged(&adapted, &config).expect("the values can be read");
    let mut whole = config;
    whole.lora = None;
    let folder = root.path().join("adapters");
    checkpoint::save(&folder, &merged, &whole, &tokenizer).expect("room");
    assert!(AdapterFolder::of(&folder).expect("a folder").is_none());
    assert!(!folder.join("adapter_config.json").exists());
    let again = checkpoint::load(&folder, &LoadOptions::new(), &Device::flex()).expect("it loads");
    assert_eq!(named_values(&again.network), named_values(&merged));
}

fn logits_of(network: &SequenceClassifier, case: &Case, device: &Device) -> Tensor<2> {
    network.forward(case.batch(device), Mode::Eval)
}

/// Outputs, loss, and the gradient of everything that is trained, of adapters that PEFT has written.
#[test]
fn adapters_of_peft_are_the_reference() {
    let path = parity("tiny-bert/adapters");
    let case = Case::read(&path.join("case.safetensors"));
    let device = Device::flex().autodiff();
    let adapters = AdapterFolder::of(&path).expect("it can be read");
    let adapters = adapters.expect("it has adapters");
    assert_eq!(adapters.base, "tiny-bert");
    // The checkpoint with a tokenizer, without which it is none.
    let (root, ..) = saved();
    let base = root.path().join("base");
    let loaded = adapters.load::<SequenceClassifier>(&base, &LoadOptions::new(), &device);
    let network = loaded.expect("it loads").network;
    let logits = logits_of(&network, &case, &device);
    let loss = loss(logits.clone(), case.values("input.labels"));
    let gradients = GradientsParams::from_grads(loss.backward(), &network);
    for (name, data) in [("logits", logits.into_data()), ("loss", loss.into_data())] {
        let (largest, _) = difference(&as_f64(data), case.values(name));
        assert!(largest <= FORWARD, "{name}: {largest:e}");
    }
    let trained = case.names().filter_map(|name| name.strip_prefix("grad."));
    let trained: BTreeSet<&str> = trained.collect();
    for name in &trained {
        let found = gradient(&network, &gradients, name);
        let found = found.unwrap_or_else(|| panic!("{name} has no gradient"));
        let expected = case.values(&format!("grad.{name}"));
        let (largest, peak) = difference(&as_f64(found), expected);
        assert!(
            largest <= GRADIENT && largest <= GRADIENT_OF_PEAK * peak,
            "{name}: {largest:e} of {peak:e}"
        );
    }
    let own = named_values(&network);
    let own = own.iter().map(|(name, _)| name.as_str());
    let is_trained = |name: &&str| name.contains("lora_") || name.starts_with("classifier.");
    assert_eq!(own.filter(is_trained).collect::<BTreeSet<_>>(), trained);
}

/// PEFT reads what we write and computes the same. Runs where `STRATOSCOPE_TORCH_PYTHON` names a Python that has it.
#[test]
fn peft_reads_what_we_write() {
    let Some(python) = std::env::var_os("STRATOSCOPE_TORCH_PYTHON") else {
        println!("not run here: STRATOSCOPE_TORCH_PYTHON names no Python with peft");
        return;
    };
    let (root, adapted, _) = saved();
    let path = parity("tiny-bert/adapters");
    let output = Command::new(python)
        .arg(path.join("make.py"))
        .args(["adapters", "base"].map(|name| root.path().join(name)))
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let expected: Vec<Vec<f64>> = serde_json::from_slice(&output.stdout).expect("outputs");
    let case = Case::read(&path.join("case.safetensors"));
    let found = as_f64(logits_of(&adapted, &case, &Device::flex()).into_data());
    let (largest, peak) = difference(&found, &expected.concat());
    println!("outputs of PEFT differ by {largest:.1e}, the largest is {peak:.1e}");
    assert!(largest <= FORWARD, "{largest:e}");
}

/// What a folder of adapters is refused for: (field, value, code).
#[test]
fn damaged_and_other_adapters_are_refused() {
    let (root, ..) = saved();
    let folder = root.path().join("adapters");
    let path = folder.join("adapter_config.json");
    let whole = description(root.path());
    let device = Device::flex();
    let load = || {
        let adapters = AdapterFolder::of(&folder)?.expect("it has adapters");
        let base = Path::new(&adapters.base).to_owned();
        adapters.load::<SequenceClassifier>(&base, &LoadOptions::new(), &device)
    };
    for (field, value, code) in [
        ("peft_type", json!("IA3"), "SC0903"),
        ("use_dora", json!(true), "SC0903"),
        ("use_rslora", json!(true), "SC0903"),
        ("bias", json!("all"), "SC0903"),
        ("rank_pattern", json!({"query": 4}), "SC0903"),
        ("use_qalora", json!(true), "SC0903"),
        ("alora_invocation_tokens", json!([5, 6]), "SC0903"),
        ("init_lora_weights", json!("pissa_niter_4"), "SC0903"),
        ("r", json!(0), "SC0909"),
        ("r", json!("two"), "SC0909"),
        ("lora_dropout", json!(1.5), "SC0909"),
        ("target_modules", json!(3), "SC0909"),
        ("base_model_name_or_path", Value::Null, "SC0909"),
        // The matrices are of rank 2.
        ("r", json!(3), "SC0904"),
    ] {
        let mut other = whole.clone();
        other[field] = value.clone();
        std::fs::write(&path, other.to_string()).expect("room");
        let refused = load().expect_err(field);
        assert_eq!(refused.code, code, "{field} = {value}: {}", refused.message);
    }
    for (text, code) in [("{", "SC0902"), ("[]", "SC0902"), ("\u{feff}", "SC0902")] {
        std::fs::write(&path, text).expect("room");
        assert_eq!(load().expect_err(text).code, code);
    }
    std::fs::write(&path, whole.to_string()).expect("room");
    let values = folder.join("adapter_model.safetensors");
    let bytes = std::fs::read(&values).expect("written");
    let renamed = |from: &str, to: &str| {
        let text: Vec<u8> = bytes.clone();
        let at = text
            .windows(from.len())
            .position(|it| it == from.as_bytes());
        let at = at.expect("the name is in the header");
        [&text[..at], to.as_bytes(), &text[at + from.len()..]].concat()
    };
    for (bytes, code, what) in [
        (
            bytes[..bytes.len() / 2].to_vec(),
            "SC0902",
            "half of the file",
        ),
        (
            renamed("query.lora_A", "query.lora_C"),
            "SC0904",
            "one of two matrices",
        ),
        (
            renamed("self.query.lora_A", "self.quere.lora_A"),
            "SC0904",
            "another layer",
        ),
    ] {
        std::fs::write(&values, bytes).expect("room");
        let refused = load().expect_err(what);
        assert_eq!(refused.code, code, "{what}: {}", refused.message);
    }
    std::fs::remove_file(&values).expect("it was there");
    assert_eq!(load().expect_err("no file").code, "SC0902");
}

/// A head that is nothing: PEFT wraps the body itself, whose tensors have no prefix there.
#[test]
fn adapters_of_a_body_have_its_names() {
    let device = Device::flex();
    let loaded =
        checkpoint::load_network_as::<SentenceEncoder>(&folder(), &LoadOptions::new(), &device);
    let loaded = loaded.expect("the fixture loads");
    let config = with_lora(&loaded.network, &loaded.config, &["query"]);
    let adapted = lora::with_adapters(&loaded.network, &config, HashMap::new());
    let root = tempfile::tempdir().expect("a temporary folder");
    let tokenizer = tokenizer(root.path());
    checkpoint::save(&root.path().join("adapters"), &adapted, &config, &tokenizer).expect("room");
    let bytes =
        std::fs::read(root.path().join("adapters/adapter_model.safetensors")).expect("written");
    let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let first = "base_model.model.encoder.layer.0.attention.self.query.lora_A.weight";
    assert!(file.names().contains(&first), "{:?}", file.names());
    assert_eq!(
        description(root.path())["task_type"],
        json!("FEATURE_EXTRACTION")
    );
}
