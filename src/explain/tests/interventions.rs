//! Changed activations beside networks whose weights make the same change, and attribution patching beside patching itself.

use std::fs;
use std::path::Path;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use stratoscope_bert::encoder::EncoderLayer;
use stratoscope_bert::{BatchTensors, Mode};
use stratoscope_data::Tokenize;
use stratoscope_explain::{ActivationEdits, ExplainPredictions, InterveneOnActivations, PatchMap};
use stratoscope_models::BertForSequenceClassification;
use tempfile::TempDir;

/// The tiny BERT of the fixtures: two layers of four heads, and the vocabulary `w5` to `w127`.
fn tiny() -> (BertForSequenceClassification, TempDir) {
    let parity = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity");
    let folder = TempDir::new().expect("a temporary folder");
    for file in ["config.json", "model.safetensors"] {
        let from = parity.join("tiny-bert/sequence-classification").join(file);
        fs::copy(from, folder.path().join(file)).expect("room");
    }
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    let words = (5..128).map(|index| format!("w{index}"));
    let words: Vec<String> = special.into_iter().chain(words).collect();
    fs::write(folder.path().join("vocab.txt"), words.join("\n") + "\n").expect("room");
    let path = folder.path().to_str().expect("a path in UTF-8");
    let model = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
    (model, folder)
}

/// The tiny ModernBERT: four layers of two heads, of which layers 1 and 2 attend to 4 tokens on either side.
fn modern() -> (BertForSequenceClassification, TempDir) {
    of_family("modernbert")
}

fn of_family(family: &str) -> (BertForSequenceClassification, TempDir) {
    let parity = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity");
    let folder = TempDir::new().expect("a temporary folder");
    for file in [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ] {
        let from = parity.join("families").join(family).join(file);
        fs::copy(from, folder.path().join(file)).expect("room");
    }
    let path = folder.path().to_str().expect("a path in UTF-8");
    let model = BertForSequenceClassification::from_pretrained(path, 3).expect("it loads");
    (model, folder)
}

const TEXTS: [&str; 3] = ["w10 w11 w12", "w40 w41", "w70 w71 w72 w73 w74"];

fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
    }
}

/// The logits of the texts by a network whose attention outputs of one head, which the dense layer behind reads, are not read.
fn without_head(model: &BertForSequenceClassification, layer: usize, head: usize) -> Vec<Vec<f64>> {
    let tokenizer = model.tokenizer();
    model.with_network(|network| {
        let mut network = network.valid();
        let layer = &mut network.bert.encoder.layer[layer];
        let heads = layer.heads();
        let dense = match layer {
            EncoderLayer::PostNorm(layer) => &mut layer.attention.output.dense,
            EncoderLayer::PreNorm(layer) => &mut layer.attention.output.dense,
        };
        let weight = dense.weight.val();
        let [outputs, inputs] = weight.dims();
        let width = inputs / heads;
        let zeros = Tensor::<2>::zeros([outputs, width], &weight.device());
        let weight = weight.slice_assign([0..outputs, head * width..(head + 1) * width], zeros);
        dense.weight = Param::from_tensor(weight).no_grad();
        TEXTS
            .iter()
            .map(|text| {
                let row = tokenizer.encode(text, None, 64).expect("it has words");
                let device = network.classifier.weight.val().device();
                let batch = BatchTensors::from_rows(&[row], tokenizer.pad_id(), &device);
                let logits = network.forward(batch, Mode::Eval).into_data();
                logits.iter::<f32>().map(f64::from).collect()
            })
            .collect()
    })
}

#[test]
fn an_ablated_head_is_one_that_nobody_reads() {
    check_ablated(&tiny().0, [(0, 0), (1, 3)]);
}

#[test]
fn an_ablated_head_of_a_modernbert_is_one_that_nobody_reads() {
    check_ablated(&modern().0, [(1, 0), (3, 1)]);
}

/// An ALBERT computes one layer at three places, and a change is at one of them.
#[test]
fn the_places_of_an_albert_are_changed_one_by_one() {
    let (model, _folder) = of_family("albert");
    let changed = |place: usize| {
        let found = model.predict_with(TEXTS, |it| it.head(place, 0).scale(0.0));
        let answers = found?.after.into_iter().map(|it| it.logits);
        Ok::<Vec<_>, Box<stratoscope_diagnostics::Diagnostic>>(answers.collect())
    };
    let [first, second, third] = [0, 1, 2].map(|place| changed(place).expect("a place"));
    assert!(first != second && second != third && first != third);
    changed(3).expect_err("there are three places");
}

fn check_ablated(model: &BertForSequenceClassification, heads: [(usize, usize); 2]) {
    for (layer, head) in heads {
        let found = model.predict_with(TEXTS, |it| it.head(layer, head).scale(0.0));
        let found = found.expect("a head");
        let expected = without_head(model, layer, head);
        for (found, expected) in found.after.iter().zip(&expected) {
            near(&found.logits, expected);
        }
        // The plain predictions are those of the model.
        let plain = model.predict(TEXTS).expect("texts");
        for (own, answer) in plain.labels().iter().zip(&found.before) {
            assert_eq!(*own, answer.label);
        }
        assert_ne!(found.before, found.after);
        assert!(
            found
                .to_plain()
                .contains(&format!("layer {layer}, head {head} × 0"))
        );
    }
}

#[test]
fn what_is_patched_whole_is_the_other_text() {
    let (model, _folder) = tiny();
    let other = model.predict_with(["w90 w91 w92"], |it| it.layer(0).scale(1.0));
    let other = other.expect("a layer").before;
    // All positions of a layer of another text with as many tokens: everything behind it is that of the other text.
    let patched = |layer: usize| {
        let found = model.predict_with(TEXTS, |it| {
            it.layer(layer).example(0).patch_from("w90 w91 w92")
        });
        found.expect("a layer")
    };
    for layer in [0, 1] {
        let found = patched(layer);
        near(&found.after[0].logits, &other[0].logits);
        assert_eq!(found.after[1..], found.before[1..], "the other texts stay");
        let change = format!("layer {layer}, example 0 = that of “w90 w91 w92”");
        assert_eq!(found.changes, [change.as_str()]);
        assert!(found.to_html().contains(&change) && found.to_plain().contains(&change));
    }
    let scaled = model
        .predict_with(TEXTS, |it| it.layer(1).token(0).set(0.5))
        .expect("a token");
    near(&scaled.after[0].logits, &scaled.after[2].logits);
    assert_eq!(scaled.changes, ["layer 1, token 0 = 0.5"]);
    assert!(scaled.to_html().contains("with the change"));
}

/// Ranks of numbers by size.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    let mut ranks = vec![0.0; numbers.len()];
    for (rank, &at) in order.iter().enumerate() {
        ranks[at] = rank as f64;
    }
    ranks
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |it: &[f64]| it.iter().sum::<f64>() / it.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let product = |x: &[f64], y: &[f64], mx: f64, my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    product(a, b, mean_a, mean_b)
        / (product(a, a, mean_a, mean_a) * product(b, b, mean_b, mean_b)).sqrt()
}

fn all_heads(map: &PatchMap) -> Vec<f64> {
    map.heads.concat()
}

#[test]
fn attribution_patching_agrees_with_patching() {
    let (model, _folder) = tiny();
    let pairs = [
        ("w10 w11 w12 w13", "w10 w11 w12 w90"),
        ("w40 w41 w42", "w70 w41 w99"),
        ("w20 w21 w22 w23 w24", "w20 w88 w22 w23 w24"),
    ];
    for (clean, corrupted) in pairs {
        let estimate = model
            .attribution_patching(clean, corrupted)
            .expect("as many tokens");
        let exact = model
            .activation_patching(clean, corrupted)
            .expect("as many tokens");
        assert_eq!(
            (
                estimate.heads.len(),
                estimate.heads[0].len(),
                estimate.layers.len()
            ),
            (2, 4, 2)
        );
        assert_eq!(
            (&estimate.score, estimate.clean),
            (&exact.score, exact.clean)
        );
        let (found, expected) = (all_heads(&estimate), all_heads(&exact));
        let most = expected.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        assert!(most > 0.0, "{exact:?}");
        for (found, expected) in found.iter().zip(&expected) {
            // To first order: the larger ones have the sign of the exact ones, and all are near them.
            assert!((found - expected).abs() < 0.35 * most, "{estimate}{exact}");
            assert!(
                expected.abs() < 0.2 * most || found.signum() == expected.signum(),
                "{estimate}{exact}"
            );
        }
        let agreement = correlation(&ranks(&found), &ranks(&expected));
        assert!(agreement > 0.8, "{agreement}: {estimate}{exact}");
        // The last layer whole is the clean text: by definition of its score.
        assert!(
            (exact.layers[1] - (exact.clean - exact.corrupted)).abs() < 1e-5,
            "{exact}"
        );
        assert!(estimate.to_html().contains("<img") && estimate.to_plain().contains("head 3"));
    }
    // Where the texts do not differ, nothing has an effect.
    let same = model
        .attribution_patching("w10 w11", "w10 w11")
        .expect("as many tokens");
    assert!(
        all_heads(&same)
            .iter()
            .chain(&same.layers)
            .all(|it| *it == 0.0)
    );
}

/// All of a layer is the other text, and by first order the estimate has the order of the exact effects; layers within
/// windows and the whole explanation among them.
#[test]
fn a_modernbert_is_patched_and_explained() {
    let (model, _folder) = modern();
    let (clean, corrupted) = ("xq zj xx qz jq zx jj", "xq zj qj zz jq zx jj");
    let exact = model.activation_patching(clean, corrupted);
    let exact = exact.expect("each letter is a token");
    assert_eq!((exact.heads.len(), exact.heads[0].len()), (4, 2));
    let whole = exact.clean - exact.corrupted;
    assert!(whole.abs() > 1e-3, "{exact}");
    for layer in &exact.layers {
        assert!((layer - whole).abs() < 1e-5, "{exact}");
    }
    let estimate = model.attribution_patching(clean, corrupted);
    let estimate = estimate.expect("each letter is a token");
    let agreement = correlation(&all_heads(&estimate), &all_heads(&exact));
    assert!(agreement > 0.8, "{agreement}: {estimate}{exact}");
    let found = model.explain(corrupted).expect("it has words");
    assert_eq!(found.words.len(), 7);
    assert!(found.is_complete(), "{found}");
    // Without a word, the logit of the class loses what the word adds.
    assert!(found.words.iter().any(|it| it.occlusion != 0.0), "{found}");
    let rollout: f64 = found.words.iter().map(|it| it.rollout).sum();
    assert!(rollout > 0.0 && rollout < 1.0, "{found}");
}

#[test]
fn what_does_not_exist_is_refused() {
    let (model, _folder) = tiny();
    let refused = |change: fn(&mut ActivationEdits), expected: &str| {
        let problem = model
            .predict_with(TEXTS, change)
            .expect_err("it is refused");
        assert_eq!(problem.code, expected, "{}", problem.message);
    };
    refused(|it| it.layer(2).scale(0.0), "SC0730");
    refused(|it| it.head(1, 4).scale(0.0), "SC0730");
    refused(|it| it.layer(0).token(9).scale(0.0), "SC0730");
    refused(|it| it.layer(0).example(1).token(4).scale(0.0), "SC0730");
    refused(|it| it.layer(0).example(3).scale(0.0), "SC0730");
    refused(|it| it.output("poolr").scale(0.0), "SC0730");
    refused(|_| {}, "SC0730");
    refused(|it| it.layer(0).scale(f64::NAN), "SC0731");
    refused(|it| it.layer(0).patch_from("  "), "SC0724");
    let none = model.predict_with(Vec::<String>::new(), |it| it.layer(0).scale(0.0));
    assert_eq!(none.expect_err("no text").code, "SC0730");
    let other = model.attribution_patching("w10 w11", "w10");
    assert_eq!(other.expect_err("another length").code, "SC0734");
}
