//! all-MiniLM-L6-v2, where its weights are installed: token ids exactly, hidden states and
//! embeddings within the limits.

use burn::tensor::{Device, Tensor};
use serde_json::Value;
use stratoscope_bert::{
    BatchTensors, BertTokenizer, LoadOptions, Loaded, Mode, Origin, checkpoint,
};
use stratoscope_data::Tokenize;

use crate::fixtures::{Case, as_f64, difference, parity};
use crate::sources::installed_minilm;

fn sentences() -> Vec<Value> {
    let text = std::fs::read_to_string(parity("minilm/sentences.json")).unwrap();
    let facts: Value = serde_json::from_str(&text).unwrap();
    facts["sentences"].as_array().unwrap().clone()
}

fn integers(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap() as u32)
        .collect()
}

/// Every text gives the reference's ids and segments, cut at 128.
fn check_tokens(tokenizer: &BertTokenizer) {
    for sentence in sentences() {
        let name = sentence["name"].as_str().unwrap();
        let length = sentence["length"].as_u64().unwrap() as usize;
        let encoded = tokenizer.encode(
            sentence["text"].as_str().unwrap(),
            sentence["text_pair"].as_str(),
            128,
        );
        let encoded = encoded.unwrap();
        assert_eq!(
            encoded.ids,
            integers(&sentence["input_ids"])[..length],
            "{name}"
        );
        assert_eq!(
            encoded.type_ids,
            integers(&sentence["token_type_ids"])[..length],
            "{name}"
        );
        let tokens: Vec<&str> = sentence["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t.as_str().unwrap())
            .collect();
        assert_eq!(tokenizer.tokens(&encoded.ids), tokens[..length], "{name}");
        assert_eq!(
            encoded.truncated > 0,
            length == 128,
            "{name}: {}",
            encoded.truncated
        );
    }
}

#[test]
fn ids_are_the_references() {
    let Some(folder) = installed_minilm() else {
        return;
    };
    let tokenizer = BertTokenizer::from_folder(&folder).unwrap();
    check_tokens(&tokenizer);
    assert_eq!(
        (
            tokenizer.vocab_size(),
            tokenizer.pad_id(),
            tokenizer.unk_id()
        ),
        (30522, 0, 100)
    );

    // The same from the vocabulary alone, and from what we write.
    let temporary = tempfile::tempdir().unwrap();
    for file in ["vocab.txt", "tokenizer_config.json"] {
        std::fs::copy(folder.join(file), temporary.path().join(file)).unwrap();
    }
    let from_vocabulary = BertTokenizer::from_folder(temporary.path()).unwrap();
    check_tokens(&from_vocabulary);
    let saved = tempfile::tempdir().unwrap();
    from_vocabulary.save(saved.path(), 512).unwrap();
    check_tokens(&BertTokenizer::from_folder(saved.path()).unwrap());
    let read =
        |folder: &std::path::Path| std::fs::read_to_string(folder.join("vocab.txt")).unwrap();
    assert_eq!(read(saved.path()), read(&folder));
}

#[test]
fn lengths_and_odd_texts() {
    let Some(folder) = installed_minilm() else {
        return;
    };
    let tokenizer = BertTokenizer::from_folder(&folder).unwrap();
    let encoded = tokenizer
        .encode("one two three four five", None, 5)
        .unwrap();
    assert_eq!((encoded.ids.len(), encoded.truncated), (5, 2));
    assert_eq!(tokenizer.decode(&encoded.ids), "[CLS] one two three [SEP]");
    // The longer text is cut first.
    let encoded = tokenizer.encode("one two three four five", Some("six"), 7);
    let encoded = encoded.unwrap();
    assert_eq!(
        tokenizer.decode(&encoded.ids),
        "[CLS] one two three [SEP] six [SEP]"
    );
    assert_eq!(encoded.type_ids, [0, 0, 0, 0, 0, 1, 1]);
    for max_length in 0..4 {
        assert!(
            tokenizer
                .encode("one two", Some("three"), max_length)
                .unwrap()
                .ids
                .len()
                <= max_length
        );
    }
    assert_eq!(
        tokenizer
            .encode(&"x ".repeat(100_000), None, 512)
            .unwrap()
            .truncated,
        100_000 - 510
    );
    for text in [
        "\0\u{fffd}",
        "\u{200d}\u{200d}",
        "a".repeat(500).as_str(),
        "\n\t \r",
    ] {
        let encoded = tokenizer.encode(text, None, 64).unwrap();
        assert_eq!(
            (encoded.ids[0], *encoded.ids.last().unwrap()),
            (101, 102),
            "{text:?}"
        );
    }
    assert_eq!(
        tokenizer.tokens(&[101, 4_000_000_000]),
        ["[CLS]", "[no token 4000000000]"]
    );
}

#[test]
fn embeddings_are_the_references() {
    let Some(folder) = installed_minilm() else {
        return;
    };
    let device = Device::flex();
    let Loaded {
        network, report, ..
    } = checkpoint::load(&folder, &LoadOptions::new().num_labels(8), &device).unwrap();
    // The checkpoint has a body and no head; `position_ids` is no parameter.
    assert_eq!(report.of(Origin::Loaded).count(), 103);
    let new: Vec<&str> = report
        .of(Origin::New)
        .map(|tensor| tensor.name.as_str())
        .collect();
    assert_eq!(new, ["classifier.weight", "classifier.bias"]);
    assert_eq!(report.of(Origin::Unused).count(), 0);

    let case = Case::read(&parity("minilm/embeddings.safetensors"));
    let batch = case.batch(&device);
    let mask = batch.attention_mask.clone();
    let hidden = network.bert.forward(batch, Mode::Eval).last_hidden_state(); // [8, 128, 384]
    let embedding = mean_pooled(hidden.clone(), mask);
    let values = as_f64(embedding.into_data());
    for name in ["embedding", "embedding_f64"] {
        let (largest, _) = difference(&values, case.values(name));
        println!("{name}: largest difference {largest:.1e}");
        assert!(largest <= 2e-6, "{name}: {largest:e}");
    }

    let hidden = as_f64(hidden.into_data());
    for (row, sentence) in sentences().iter().enumerate() {
        let last = sentence["length"].as_u64().unwrap() as usize - 1;
        for (key, position) in [("token0_first8_f64", 0), ("last_token_first8_f64", last)] {
            let expected = sentence["hidden"][key].as_array().unwrap();
            let expected: Vec<f64> = expected
                .iter()
                .map(|value| value.as_f64().unwrap())
                .collect();
            let start = (row * 128 + position) * 384;
            let (largest, _) = difference(&hidden[start..start + 8], &expected);
            assert!(largest <= 5e-5, "{}, {key}: {largest:e}", sentence["name"]);
        }
    }
}

/// A text's vector does not depend on what it is padded to.
#[test]
fn padding_does_not_matter() {
    let Some(folder) = installed_minilm() else {
        return;
    };
    let device = Device::flex();
    let loaded = checkpoint::load(&folder, &LoadOptions::new(), &device).unwrap();
    let case = Case::read(&parity("minilm/embeddings.safetensors"));
    let encoded = loaded.tokenizer.encode("A short sentence.", None, 128);
    let encoded = encoded.unwrap();
    let batch = BatchTensors::from_rows(&[encoded], loaded.tokenizer.pad_id(), &device);
    assert_eq!(batch.input_ids.dims(), [1, 6]);
    let mask = batch.attention_mask.clone();
    let hidden = loaded
        .network
        .bert
        .forward(batch, Mode::Eval)
        .last_hidden_state();
    let values = as_f64(mean_pooled(hidden, mask).into_data());
    let (largest, _) = difference(&values, &case.values("embedding")[..384]);
    assert!(largest <= 2e-6, "{largest:e}");
}

/// The mean over tokens, normalized to length 1: [B, S, H] and [B, S] → [B, H].
fn mean_pooled(hidden: Tensor<3>, mask: Tensor<2>) -> Tensor<2> {
    let mask = mask.unsqueeze_dim::<3>(2);
    let sum: Tensor<2> = (hidden * mask.clone()).sum_dim(1).squeeze_dim(1);
    let mean = sum / mask.sum_dim(1).squeeze_dim::<2>(1);
    mean.clone() / mean.square().sum_dim(1).sqrt()
}
