//! Damaged `tokenizer.json` files: a diagnostic each, never a panic, whatever is missing or exchanged.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use serde_json::{Value, json};
use stratoscope_bert::BertTokenizer;
use stratoscope_data::{Dataset, Tokenize};
use stratoscope_diagnostics::{Diagnostic, work};
use tempfile::TempDir;

/// A WordPiece tokenizer of a few words, as the crate `tokenizers` writes it.
fn sound() -> Value {
    let added = |id: u32, content: &str| {
        json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    let special = |id: u32, token: &str| json!({ "id": token, "ids": [id], "tokens": [token] });
    let token =
        |id: &str, type_id: u32| json!({ "SpecialToken": { "id": id, "type_id": type_id } });
    let text = |id: &str, type_id: u32| json!({ "Sequence": { "id": id, "type_id": type_id } });
    json!({
        "version": "1.0",
        "truncation": { "direction": "Right", "max_length": 128, "strategy": "LongestFirst", "stride": 0 },
        "padding": { "strategy": { "Fixed": 128 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                     "pad_type_id": 0, "pad_token": "[PAD]" },
        "added_tokens": [added(0, "[PAD]"), added(1, "[UNK]"), added(2, "[CLS]"), added(3, "[SEP]")],
        "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                        "strip_accents": null, "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)],
            "pair": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0), text("B", 1), token("[SEP]", 1)],
            "special_tokens": { "[CLS]": special(2, "[CLS]"), "[SEP]": special(3, "[SEP]") }
        },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                   "max_input_chars_per_word": 100,
                   "vocab": { "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "game": 5, "##s": 6 } }
    })
}

fn write(file: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("tokenizer.json"), file).expect("room");
    folder
}

/// Reads the file and uses what it gives.
fn used(file: &str) -> Result<Vec<u32>, Box<Diagnostic>> {
    let folder = write(file);
    let tokenizer = BertTokenizer::from_folder(folder.path())?;
    let mut ids = Vec::new();
    for (text, pair, length) in [
        ("games", None, 8),
        ("", None, 2),
        (
            "a game of games [SEP] \u{1f3b2}",
            Some("games games games games"),
            6,
        ),
        ("game", Some(""), 3),
    ] {
        let encoding = tokenizer.encode(text, pair, length)?;
        assert!(encoding.ids.len() <= length, "{encoding:?}");
        let vocabulary = tokenizer.vocab_size();
        assert!(
            encoding.ids.iter().all(|&id| (id as usize) < vocabulary),
            "{encoding:?}"
        );
        tokenizer.decode(&encoding.ids);
        tokenizer.tokens(&encoding.ids);
        ids = encoding.ids;
    }
    tokenizer.save(&folder.path().join("again"), 64)?;
    Ok(ids)
}

#[track_caller]
fn check(change: impl FnOnce(&mut Value), words: &[&str]) {
    let mut file = sound();
    change(&mut file);
    let error = used(&file.to_string()).expect_err("it is refused");
    assert_eq!(error.code, "SC0910", "{error}");
    for word in words {
        assert!(error.message.contains(word), "no `{word}` in: {error}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    assert!(used(&sound().to_string()).is_ok());
    check(
        |file| drop(file["post_processor"]["special_tokens"].take()),
        &["is not a usable tokenizer"],
    );
    check(
        |file| file["post_processor"]["special_tokens"] = json!({}),
        &["`[CLS]`", "special_tokens"],
    );
    check(
        |file| file["post_processor"]["special_tokens"]["[SEP]"]["ids"] = json!([999_999]),
        &["`[SEP]` has the id 999999", "ends at 6"],
    );
    check(
        |file| file["post_processor"]["single"][1]["Sequence"]["id"] = json!("B"),
        &["second text"],
    );
    check(
        |file| file["model"]["vocab"]["game"] = json!(4_294_967_295_u32),
        &["the id of `game` is 4 294 967 295", "7 tokens"],
    );
    check(
        |file| file["model"]["vocab"] = json!({}),
        &["is not a usable tokenizer"],
    );
}

/// Where the values of a file stand.
fn places(value: &Value, place: &str, found: &mut Vec<String>) {
    found.push(place.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{place}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{place}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Every value taken away, and exchanged for others.
#[test]
fn no_damage_makes_it_panic() {
    let mut all = Vec::new();
    places(&sound(), "", &mut all);
    let others = [
        json!(null),
        json!(999_999),
        json!(-1),
        json!(4_294_967_295_u64),
        json!(""),
        json!("[CLS]"),
        json!("B"),
        json!([]),
        json!({}),
        json!(true),
    ];
    let (mut taken, mut refused) = (0, 0);
    let mut check = |file: Value, what: &str| {
        let file = file.to_string();
        let found = catch_unwind(|| used(&file).map_err(|error| error.code));
        match found {
            Ok(Ok(_)) => taken += 1,
            Ok(Err(code)) => {
                assert!(
                    ["SC0910", "SC0902"].contains(&code.as_str()),
                    "{what}: {code}"
                );
                refused += 1;
            }
            Err(_) => unreachable!("{what} makes it panic"),
        }
    };
    for place in &all {
        for other in &others {
            let mut file = sound();
            *file.pointer_mut(place).expect("it was found there") = other.clone();
            check(file, &format!("{place} = {other}"));
        }
        if let Some((parent, key)) = place.rsplit_once('/') {
            let mut file = sound();
            match file.pointer_mut(parent).expect("a parent") {
                Value::Object(fields) => drop(fields.remove(&key.replace("~1", "/"))),
                Value::Array(items) => drop(items.remove(key.parse().expect("an index"))),
                _ => unreachable!("it has parts"),
            }
            check(file, &format!("no {place}"));
        }
    }
    assert!(
        taken > 100 && refused > 100,
        "{taken} taken, {refused} refused"
    );
}

fn replace(from: &str, to: &str) -> Value {
    json!({ "type": "Replace", "pattern": { "String": from }, "content": to })
}

/// Six normalizers that make a thousand letters of one: a reading of the file, or the first text with the letter, is refused.
#[test]
fn a_text_becomes_so_long_and_no_longer() {
    let bomb = |letter: &str| {
        let each = vec![replace(letter, &letter.repeat(1000)); 6];
        json!({ "type": "Sequence", "normalizers": each })
    };
    check(
        |file| file["normalizer"] = bomb("w"),
        &["`normalizer`", "bytes of a text"],
    );
    // An added token is normalized when the file is read.
    check(
        |file| {
            file["normalizer"] = bomb("~");
            file["added_tokens"][1]["content"] = json!("~");
            file["added_tokens"][1]["normalized"] = json!(true);
        },
        &["`normalizer`", "bytes of a text of 1"],
    );
    let mut file = sound();
    file["normalizer"] = bomb("~");
    let folder = write(&file.to_string());
    let tokenizer = BertTokenizer::from_folder(folder.path()).expect("no probe has the letter");
    assert!(tokenizer.encode("game", None, 8).is_ok());
    for text in ["~", "a game of ~~", "[SEP]~[SEP]~"] {
        let error = tokenizer.encode(text, None, 8).expect_err("it is too long");
        assert_eq!(error.code, "SC0910", "{error}");
        assert!(error.message.contains("tokenizer.json"), "{error}");
    }
    // By a data set, too.
    let data = Dataset::from_texts(["game", "~"]);
    let error = data.tokenize(&tokenizer, 8).expect_err("it is too long");
    assert_eq!(error.code, "SC0910", "{error}");
    for other in [
        json!({ "type": "Replace", "pattern": { "Regex": "(?=~)" }, "content": "x".repeat(1 << 21) }),
        json!({ "type": "Prepend", "prepend": "x".repeat(1 << 21) }),
    ] {
        file["normalizer"] = other;
        let folder = write(&file.to_string());
        let refused = match BertTokenizer::from_folder(folder.path()) {
            Ok(tokenizer) => tokenizer.encode("~", None, 8).expect_err("it is too long"),
            Err(error) => error,
        };
        assert_eq!(refused.code, "SC0910", "{refused}");
    }
    // What grows within reason is read: sixteen bytes of one, of a text of any length.
    file["normalizer"] = replace("~", &"game ".repeat(3));
    let folder = write(&file.to_string());
    let tokenizer = BertTokenizer::from_folder(folder.path()).expect("it is sound");
    let encoding = tokenizer.encode(&"~".repeat(1 << 14), None, 8);
    assert_eq!(encoding.expect("it fits").truncated, 3 * (1 << 14) - 6);
}

#[test]
fn what_takes_long_for_one_word_is_refused() {
    check(
        |file| file["model"]["max_input_chars_per_word"] = json!(1_000_000),
        &["`max_input_chars_per_word` is 1000000"],
    );
    check(
        |file| file["model"]["vocab"]["x".repeat(5000)] = json!(7),
        &["a token of 5000 bytes"],
    );
    check(
        |file| {
            let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
            file["post_processor"]["single"] = Value::Array(vec![text; 1000]);
        },
        &["`single` has 1000 pieces"],
    );
    check(
        |file| {
            let each = vec![replace("e", &"e".repeat(1000)); 6];
            file["decoder"] = json!({ "type": "Sequence", "decoders": each });
        },
        &["`decoder`"],
    );
}

/// A text of one word after the other is left where somebody asks.
#[test]
fn an_interrupt_is_heard_within_a_text() {
    let folder = write(&sound().to_string());
    let tokenizer = BertTokenizer::from_folder(folder.path()).expect("it is sound");
    let text = "games ".repeat(10_000);
    work::request();
    let error = tokenizer
        .encode(&text, None, 8)
        .expect_err("it is interrupted");
    assert_eq!(error.code, "SC0520", "{error}");
    assert!(tokenizer.encode(&text, None, 8).is_ok());
    work::request();
    let data = Dataset::from_texts(vec!["game", &text]);
    let error = data.tokenize(&tokenizer, 8).expect_err("it is interrupted");
    let expected = "tokenizing was interrupted after 0 of 2 texts";
    assert_eq!(error.message, expected);
}

#[test]
fn truncated_files_are_refused() {
    let text = sound().to_string();
    for length in (0..text.len()).step_by(97) {
        let Some(part) = text.get(..length) else {
            continue;
        };
        assert!(used(part).is_err(), "{length} bytes");
    }
    assert!(!Path::new("again").exists());
}
