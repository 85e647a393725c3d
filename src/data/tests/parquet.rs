//! Parquet files that pyarrow wrote (`files/make.py`), those of `parquet` in every compression, and damaged ones.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryArray, DictionaryArray, LargeStringArray, RecordBatch, StringViewArray,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use stratoscope_data::{Columns, Dataset, Label, Stream};
use stratoscope_diagnostics::Diagnostic;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "files", name]
        .iter()
        .collect()
}

fn refused(result: stratoscope_diagnostics::Result<Dataset>) -> (String, String) {
    let problem: Diagnostic = *result.expect_err("it is refused");
    assert!(
        !problem.fixes.is_empty(),
        "no way out is offered: {problem:?}"
    );
    (problem.code.clone(), format!("{problem:?}"))
}

#[test]
fn texts_with_the_classes_of_the_file() {
    let data = Dataset::parquet(path("reviews.parquet")).expect("it is readable");
    assert_eq!(data.label_names, ["neg", "pos"]);
    assert_eq!(data.len(), 5);
    assert_eq!(data[2].text, "als beschrieben – schön");
    assert_eq!(data[3].text, "never\ncame");
    let classes: Vec<_> = data.examples.iter().map(|it| it.class()).collect();
    assert_eq!(classes, [Some(1), Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!(data[4].line, Some(5));
}

#[test]
fn named_columns() {
    let stars = Columns::new().text("text").value("stars");
    let data = Dataset::parquet_with(path("reviews.parquet"), &stars).expect("it is readable");
    assert_eq!(data[1].label, Some(Label::Value(1.5)));
    assert!(data.label_names.is_empty());
    // A column without names of classes: its values are the classes.
    let numbers = Columns::new().text("text").label("idx");
    let data = Dataset::parquet_with(path("reviews.parquet"), &numbers).expect("it is readable");
    assert_eq!(data.label_names, ["0", "1", "2", "3", "4"]);
    let (code, shown) = refused(Dataset::parquet_with(
        path("reviews.parquet"),
        &Columns::new().text("review"),
    ));
    assert!(code == "SC0313" && shown.contains("stars"), "{shown}");
    let (code, shown) = refused(Dataset::parquet_with(
        path("reviews.parquet"),
        &Columns::new().text("picture"),
    ));
    assert!(
        code == "SC0911" && shown.contains("`picture` is not UTF-8"),
        "{shown}"
    );
    let (code, shown) = refused(Dataset::parquet_with(
        path("words.parquet"),
        &Columns::new().text("tokens").unlabelled(),
    ));
    assert!(code == "SC0911" && shown.contains("lists"), "{shown}");
}

#[test]
fn a_class_of_minus_one_is_none() {
    let (code, shown) = refused(Dataset::parquet(path("pairs.parquet")));
    assert!(code == "SC0416" && shown.contains("parquet"), "{shown}");
    let columns = Columns::new().drop_missing();
    let data = Dataset::parquet_with(path("pairs.parquet"), &columns).expect("it is readable");
    assert_eq!(data.label_names, ["other", "same"]);
    assert_eq!(data[0].pair.as_deref(), Some("a server for mail"));
    assert_eq!((data.len(), data[0].class()), (2, Some(1)));
}

#[test]
fn tagged_words() {
    let data = Dataset::parquet(path("words.parquet")).expect("it is readable");
    assert_eq!(data.label_names, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]);
    assert_eq!(data[0].text, "Ada Lovelace lived in London");
    let tags = |at: usize| -> Vec<_> {
        let words = data[at].words().expect("it has words");
        words.iter().map(|word| word.tag).collect()
    };
    assert_eq!(tags(0), [Some(1), Some(2), Some(0), Some(0), Some(3)]);
    assert_eq!(tags(1), [Some(0), Some(0)]);
}

#[test]
fn questions_with_answers() {
    let data = Dataset::parquet(path("questions.parquet")).expect("it is readable");
    let answers = |at: usize| -> Vec<String> {
        let example = &data[at];
        let context = example.pair.as_deref().unwrap_or_default();
        let answers = example.answers().expect("it is a question");
        answers
            .iter()
            .map(|it| context[it.range.clone()].to_owned())
            .collect()
    };
    assert_eq!(data[0].text, "Who wrote the manual?");
    assert_eq!(answers(0), ["Zoë", "Zoë"]);
    assert_eq!(answers(1), ["London"]);
    assert_eq!(answers(2), [] as [&str; 0]);
}

#[test]
fn every_compression_and_layout_of_texts() {
    let texts = (0..1000).map(|row| format!("the same words again and again, number {}", row % 50));
    let texts: Vec<String> = texts.collect();
    let labels = (0..1000).map(|row| [Some("mail"), Some("games"), None][row % 3]);
    let labels: DictionaryArray<Int8Type> = labels.collect();
    let columns: [(&str, ArrayRef); 4] = [
        ("views", Arc::new(StringViewArray::from_iter_values(&texts))),
        (
            "large",
            Arc::new(LargeStringArray::from_iter_values(&texts)),
        ),
        ("bytes", Arc::new(BinaryArray::from_iter_values(&texts))),
        ("label", Arc::new(labels)),
    ];
    let rows = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.parquet");
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        let options = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_row_count(Some(300));
        let file = File::create(&path).expect("room");
        let writer = ArrowWriter::try_new(file, rows.schema(), Some(options.build()));
        let mut writer = writer.expect("a schema");
        writer.write(&rows).expect("room");
        writer.close().expect("room");
        for column in ["views", "large", "bytes"] {
            let columns = Columns::new().text(column).label("label").drop_missing();
            let data = Dataset::parquet_with(&path, &columns).expect("rows");
            assert_eq!(data.class_counts(), [333, 334], "{compression}");
            assert_eq!((&data[666].text, data[666].line), (&texts[999], Some(1000)));
            let stream = Stream::parquet_with(&path, &columns).expect("rows");
            let streamed = stream.first(usize::MAX).expect("rows");
            assert_eq!(data.examples, streamed.examples, "{compression}");
        }
    }
}

#[test]
fn what_is_no_file_of_rows() {
    assert_eq!(refused(Dataset::parquet(path("empty.parquet"))).0, "SC0914");
    assert_eq!(refused(Dataset::parquet(path("none.parquet"))).0, "SC0911");
    let (code, shown) = refused(Dataset::parquet(path("")));
    assert!(code == "SC0911" && shown.contains("not a file"), "{shown}");
    let (code, shown) = refused(Dataset::parquet(path("make.py")));
    assert!(
        code == "SC0911" && shown.contains("it is no Parquet file"),
        "{shown}"
    );
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cut = folder.path().join("cut.parquet");
    let whole = fs::read(path("reviews.parquet")).expect("the file");
    for length in (0..whole.len()).step_by(97) {
        fs::write(&cut, &whole[..length]).expect("it can be written to");
        assert_eq!(
            refused(Dataset::parquet(&cut)).0,
            "SC0911",
            "{length} bytes"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Changed bytes are read or refused; nothing panics, and nothing takes memory without end.
    #[test]
    fn damaged_files(
        name in prop::sample::select(vec![
            "reviews.parquet", "words.parquet", "questions.parquet", "polars.parquet",
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = fs::read(path(name)).expect("the file");
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let damaged = folder.path().join(name);
        fs::write(&damaged, bytes).expect("it can be written to");
        let _ = Dataset::parquet(&damaged);
        if let Ok(stream) = Stream::parquet(&damaged) {
            let _ = stream.first(usize::MAX);
        }
    }
}
