//! Which configurations are read, refused and written.

use super::*;
use serde_json::Value;

fn parse(text: &str) -> Result<BertConfig> {
    BertConfig::from_json(text, Path::new("model/config.json"))
}

/// The code of the diagnostic and what its message must contain.
fn check_refused(text: &str, code: &str, words: &str) {
    let error = parse(text).expect_err(text);
    assert_eq!(error.code, code, "{text}: {error}");
    assert!(error.message.contains(words), "{text}: {error}");
}

#[test]
fn absent_fields_have_the_reference_defaults() {
    let config = parse("{}").unwrap();
    assert_eq!(
        (
            config.hidden_size,
            config.num_hidden_layers,
            config.vocab_size
        ),
        (768, 12, 30522)
    );
    assert_eq!((config.pad_token_id, config.num_labels()), (Some(0), 2));
    assert_eq!(config.classifier_dropout(), 0.1);
    assert_eq!(
        parse(r#"{"pad_token_id": null}"#).unwrap().pad_token_id,
        None
    );
    assert_eq!(
        parse(r#"{"classifier_dropout": 0.3}"#)
            .unwrap()
            .classifier_dropout(),
        0.3
    );
}

#[test]
fn the_length_of_the_training_is_kept_where_it_can_be_true() {
    let config = parse(r#"{"trained_length": 64}"#).unwrap();
    assert_eq!(config.trained_length, Some(64));
    let written = config.to_json("BertForSequenceClassification");
    assert_eq!(parse(&written).unwrap().trained_length, Some(64));
    for wrong in [
        "513",
        "1",
        "-64",
        "6.5",
        "null",
        "\"64\"",
        "18446744073709551615",
    ] {
        let text = format!("{{\"trained_length\": {wrong}}}");
        let config = parse(&text).unwrap();
        assert_eq!(config.trained_length, None, "{text}");
        let written = config.to_json("BertForSequenceClassification");
        assert!(!written.contains("trained_length"), "{written}");
    }
}

#[test]
fn electra_has_sizes_of_its_own() {
    let config = parse(r#"{"model_type": "electra"}"#).unwrap();
    let sizes = (
        config.embedding_size,
        config.hidden_size,
        config.num_attention_heads,
    );
    assert_eq!(sizes, (Some(128), 256, 4));
    assert_eq!(
        (config.intermediate_size, config.num_hidden_layers),
        (1024, 12)
    );
    let large = r#"{"model_type": "electra", "embedding_size": 1024, "hidden_size": 1024}"#;
    assert_eq!(parse(large).unwrap().embedding_size, None);
    check_refused(
        r#"{"model_type": "electra", "embedding_size": 0}"#,
        "SC0909",
        "embedding_size",
    );
    // Another family's file may have such a field; it says nothing and is kept.
    let other = parse(r#"{"embedding_size": 7}"#).unwrap();
    assert_eq!(other.embedding_size, None);
    assert!(other.to_json("BertModel").contains("\"embedding_size\": 7"));
}

#[test]
fn other_architectures_are_named() {
    check_refused(r#"{"model_type": "longformer"}"#, "SC0903", "longformer");
    check_refused(r#"{"model_type": "gpt2", "n_embd": 768}"#, "SC0903", "gpt2");
    check_refused(
        r#"{"architectures": ["RobertaModel"]}"#,
        "SC0903",
        "RobertaModel",
    );
    check_refused(r#"{"hidden_act": "gelu_new"}"#, "SC0903", "gelu_new");
    check_refused(
        r#"{"position_embedding_type": "relative_key"}"#,
        "SC0903",
        "relative_key",
    );
    check_refused(r#"{"is_decoder": true}"#, "SC0903", "is_decoder");
}

#[test]
fn impossible_values_are_named_with_what_is_allowed() {
    check_refused("[]", "SC0902", "not an object");
    check_refused("{\"vocab_size\": ", "SC0902", "not valid JSON");
    check_refused(r#"{"hidden_size": 0}"#, "SC0909", "hidden_size");
    check_refused(r#"{"hidden_size": -4}"#, "SC0909", "-4");
    check_refused(r#"{"hidden_size": 770}"#, "SC0909", "num_attention_heads");
    check_refused(r#"{"vocab_size": 1e30}"#, "SC0909", "vocab_size");
    check_refused(
        r#"{"vocab_size": 9007199254740993}"#,
        "SC0909",
        "vocab_size",
    );
    check_refused(
        r#"{"num_hidden_layers": 18446744073709551615}"#,
        "SC0909",
        "num_hidden_layers",
    );
    check_refused(
        r#"{"hidden_dropout_prob": 1.0}"#,
        "SC0909",
        "hidden_dropout_prob",
    );
    check_refused(
        r#"{"attention_probs_dropout_prob": "0.1"}"#,
        "SC0909",
        "attention_probs",
    );
    check_refused(r#"{"pad_token_id": 30522}"#, "SC0909", "pad_token_id");
    check_refused(
        r#"{"id2label": {"0": "a", "2": "b"}}"#,
        "SC0909",
        "id2label",
    );
    check_refused(r#"{"id2label": {}}"#, "SC0909", "num_labels");
    check_refused(
        r#"{"num_labels": 18446744073709551615}"#,
        "SC0909",
        "num_labels",
    );
}

#[test]
fn unknown_fields_survive_and_labels_are_written() {
    let config = parse(r#"{"x_custom": {"deep": [1, 2]}, "hidden_dropout_prob": 0.25}"#).unwrap();
    let text = config
        .with_labels(["no", "yes"])
        .to_json("BertForSequenceClassification");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["x_custom"]["deep"][1], 2);
    assert_eq!(value["hidden_dropout_prob"], 0.25);
    assert_eq!(value["id2label"]["1"], "yes");
    assert_eq!(value["label2id"]["no"], 0);
    assert_eq!(value["architectures"][0], "BertForSequenceClassification");
    let again = parse(&text).unwrap();
    assert_eq!(again.labels, ["no", "yes"]);
}
