//! The numbers of the classes of Arrow and Parquet files are those that Hugging Face's `datasets` wrote, whether one file is
//! named, a pattern, or each file of a list; as a data set and as a stream.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::json;
use stratoscope_data::{Dataset, Stream};
use stratoscope_diagnostics::Result;
use tempfile::TempDir;

/// The formats, by the ends of the names of their files.
const FORMATS: [&str; 2] = ["arrow", "parquet"];

/// Writes rows in a format, with the metadata of `datasets`.
fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, features: Option<&serde_json::Value>) {
    let metadata = features.map(|it| json!({ "info": { "features": it } }).to_string());
    let rows = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let file = File::create(path).expect("room");
    if path.extension().is_some_and(|it| it == "parquet") {
        let facts = metadata.map(|it| vec![KeyValue::new("huggingface".to_owned(), it)]);
        let options = WriterProperties::builder().set_key_value_metadata(facts);
        let writer = ArrowWriter::try_new(file, rows.schema(), Some(options.build()));
        let mut writer = writer.expect("a schema");
        writer.write(&rows).expect("room");
        writer.close().expect("room");
        return;
    }
    let facts = metadata.map(|it| ("huggingface", it)).into_iter();
    let facts: std::collections::HashMap<String, String> =
        facts.map(|(key, value)| (key.to_owned(), value)).collect();
    let schema = Schema::new_with_metadata(rows.schema().fields().clone(), facts);
    let schema = Arc::new(schema);
    let rows = RecordBatch::try_new(Arc::clone(&schema), rows.columns().to_vec());
    let mut writer = StreamWriter::try_new(file, &schema).expect("a schema");
    writer
        .write(&rows.expect("the same columns"))
        .expect("room");
    writer.finish().expect("room");
}

/// Texts with the numbers of their classes.
fn texts(path: &Path, classes: &[i64], names: Option<&[&str]>) {
    let texts = classes
        .iter()
        .map(|class| format!("a text of class {class}"));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from_iter_values(texts))),
        ("label", Arc::new(Int64Array::from(classes.to_vec()))),
    ];
    let feature = names.map(|names| {
        json!({ "text": { "dtype": "string", "_type": "Value" }, "label": { "names": names, "_type": "ClassLabel" } })
    });
    write(path, columns, feature.as_ref());
}

/// Sentences of words with the numbers of their tags.
fn sentences(path: &Path, tags: &[&[i64]], names: &[&str]) {
    let mut words = ListBuilder::new(StringBuilder::new());
    let mut numbers = ListBuilder::new(Int64Builder::new());
    for sentence in tags {
        for &tag in *sentence {
            words.values().append_value(format!("word{tag}"));
            numbers.values().append_value(tag);
        }
        words.append(true);
        numbers.append(true);
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("tokens", Arc::new(words.finish())),
        ("ner_tags", Arc::new(numbers.finish())),
    ];
    let class = json!({ "names": names, "_type": "ClassLabel" });
    let feature = json!({ "ner_tags": { "feature": class, "_type": "Sequence" } });
    write(path, columns, Some(&feature));
}

/// A path as a data set and as a stream, which is read into memory.
fn read(path: &Path) -> [Result<Dataset>; 2] {
    let stream = match path.extension().is_some_and(|it| it == "parquet") {
        true => (Dataset::parquet(path), Stream::parquet(path)),
        false => (Dataset::arrow(path), Stream::arrow(path)),
    };
    let (held, stream) = stream;
    [held, stream.and_then(|it| it.first(usize::MAX))]
}

fn classes(data: &Dataset) -> Vec<Option<usize>> {
    data.examples
        .iter()
        .map(|example| example.class())
        .collect()
}

const ORDER: [&str; 3] = ["pos", "neu", "neg"];

#[test]
fn a_pattern_keeps_the_order_of_one_file() {
    for format in FORMATS {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join(format!("data-00000-of-00001.{format}"));
        texts(&path, &[0, 2, 1, 0], Some(&ORDER));
        for path in [path, folder.path().join(format!("*.{format}"))] {
            for data in read(&path) {
                let data = data.expect("rows");
                assert_eq!(data.label_names, ORDER, "{}", path.display());
                assert_eq!(classes(&data), [Some(0), Some(2), Some(1), Some(0)]);
                assert_eq!(data[1].label_name.as_deref(), Some("neg"));
            }
        }
    }
}

#[test]
fn files_of_a_pattern_and_of_a_list_share_an_order() {
    for format in FORMATS {
        let folder = TempDir::new().expect("a folder");
        let paths = [0, 1].map(|part| folder.path().join(format!("part-{part}.{format}")));
        // The second file has no row of the first class.
        texts(&paths[0], &[0, 0], Some(&ORDER));
        texts(&paths[1], &[2, 1], Some(&ORDER));
        for data in read(&folder.path().join(format!("*.{format}"))) {
            let data = data.expect("rows");
            assert_eq!(data.label_names, ORDER, "{format}");
            assert_eq!(classes(&data), [Some(0), Some(0), Some(2), Some(1)]);
        }
        for each in [0, 1] {
            let parts = paths.each_ref().map(|path| {
                let [held, streamed] = read(path);
                [held, streamed][each].as_ref().expect("rows").clone()
            });
            let whole = parts[0].concatenate(&parts[1]).expect("one kind");
            assert_eq!(whole.label_names, ORDER, "{format}");
            assert_eq!(classes(&whole), [Some(0), Some(0), Some(2), Some(1)]);
        }
    }
}

#[test]
fn tags_have_the_numbers_of_their_files() {
    const TAGS: [&str; 4] = ["O", "B-PER", "I-PER", "B-LOC"];
    for format in FORMATS {
        let folder = TempDir::new().expect("a folder");
        let paths = [0, 1].map(|part| folder.path().join(format!("part-{part}.{format}")));
        sentences(&paths[0], &[&[1, 2, 0], &[3]], &TAGS);
        for path in [paths[0].clone(), folder.path().join(format!("*.{format}"))] {
            for data in read(&path) {
                let data = data.expect("rows");
                assert_eq!(data.label_names, TAGS, "{}", path.display());
                let words = data[0].words().expect("words");
                let tags: Vec<_> = words.iter().map(|word| word.tag).collect();
                assert_eq!(tags, [Some(1), Some(2), Some(0)]);
            }
        }
        sentences(&paths[1], &[&[0, 3]], &TAGS);
        for data in read(&folder.path().join(format!("*.{format}"))) {
            let data = data.expect("rows");
            assert_eq!(data.label_names, TAGS, "{format}");
            let tags: Vec<_> = data[2].words().expect("words").to_vec();
            assert_eq!(tags[1].tag, Some(3));
        }
    }
}

#[test]
fn a_longer_list_of_classes_continues_a_shorter_one() {
    for format in FORMATS {
        let folder = TempDir::new().expect("a folder");
        texts(
            &folder.path().join(format!("a.{format}")),
            &[0, 1],
            Some(&ORDER[..2]),
        );
        texts(
            &folder.path().join(format!("b.{format}")),
            &[2, 0],
            Some(&ORDER),
        );
        texts(
            &folder.path().join(format!("c.{format}")),
            &[1],
            Some(&ORDER[..2]),
        );
        for data in read(&folder.path().join(format!("*.{format}"))) {
            let data = data.expect("rows");
            assert_eq!(data.label_names, ORDER, "{format}");
            assert_eq!(classes(&data), [0, 1, 2, 0, 1].map(Some));
        }
    }
}

#[test]
fn files_that_number_their_classes_differently_are_refused() {
    for format in FORMATS {
        let folder = TempDir::new().expect("a folder");
        texts(
            &folder.path().join(format!("a.{format}")),
            &[0],
            Some(&ORDER),
        );
        texts(
            &folder.path().join(format!("b.{format}")),
            &[0],
            Some(&["neg", "neu", "pos"]),
        );
        let pattern = folder.path().join(format!("*.{format}"));
        for data in read(&pattern) {
            let problem = data.expect_err("two orders");
            assert_eq!(problem.code, "SC0911", "{problem:?}");
            let shown = format!("{problem:?}");
            for words in [
                format!("b.{format}"),
                format!("a.{format}"),
                "`neg`, `neu` and `pos`".to_owned(),
                "`pos`, `neu` and `neg`".to_owned(),
            ] {
                assert!(shown.contains(&words), "{words}: {shown}");
            }
            assert!(!problem.fixes.is_empty(), "no way out is offered: {shown}");
        }
    }
}

#[test]
fn a_file_without_names_has_no_other_classes() {
    for format in FORMATS {
        let folder = TempDir::new().expect("a folder");
        texts(
            &folder.path().join(format!("a.{format}")),
            &[0, 1],
            Some(&ORDER),
        );
        texts(&folder.path().join(format!("b.{format}")), &[0, 1], None);
        for data in read(&folder.path().join(format!("*.{format}"))) {
            let problem = data.expect_err("`0` is no class of the first file");
            assert_eq!(problem.code, "SC0913", "{problem:?}");
        }
    }
}
