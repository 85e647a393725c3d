//! Arrow files that `datasets`, polars and pyarrow wrote (`files/make_arrow.py`), those of `arrow-ipc`, and damaged ones.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, LargeStringArray, RecordBatch, StringViewArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use proptest::prelude::*;
use stratoscope_data::{Columns, Dataset, Example, Label, Stream};
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

fn without_file(data: &Dataset) -> Vec<Example> {
    let examples = data.examples.iter().cloned();
    examples.map(|it| Example { file: None, ..it }).collect()
}

/// The same rows are in a Parquet file.
fn same_as_parquet(name: &str) -> Dataset {
    let arrow = Dataset::arrow(path(&format!("{name}.arrow"))).expect("it is readable");
    let parquet = Dataset::parquet(path(&format!("{name}.parquet"))).expect("it is readable");
    assert_eq!(arrow.label_names, parquet.label_names);
    assert_eq!(without_file(&arrow), without_file(&parquet));
    arrow
}

#[test]
fn files_of_datasets_are_read_as_their_parquet_files_are() {
    let data = same_as_parquet("reviews");
    assert_eq!(data.label_names, ["neg", "pos"]);
    assert_eq!(data[2].text, "als beschrieben – schön");
    assert_eq!((data[4].line, data[4].class()), (Some(5), Some(1)));
    assert!(same_as_parquet("words").is_tagged());
    assert!(same_as_parquet("questions").has_answers());
}

#[test]
fn named_columns() {
    let reviews = path("reviews.arrow");
    let stars = Columns::new().text("text").value("stars");
    let data = Dataset::arrow_with(&reviews, &stars).expect("it is readable");
    assert_eq!(data[1].label, Some(Label::Value(1.5)));
    let numbers = Columns::new().text("text").label("idx");
    let data = Dataset::arrow_with(&reviews, &numbers).expect("it is readable");
    assert_eq!(data.label_names, ["0", "1", "2", "3", "4"]);
    for (column, expected, words) in [
        ("review", "SC0313", "stars"),
        ("picture", "SC0911", "`picture` is not UTF-8"),
    ] {
        let columns = Columns::new().text(column).unlabelled();
        let (code, shown) = refused(Dataset::arrow_with(&reviews, &columns));
        assert!(code == expected && shown.contains(words), "{shown}");
    }
    let days = Columns::new().text("day").unlabelled();
    let data = Dataset::arrow_with(&reviews, &days).expect("it is readable");
    assert_eq!((&*data[0].text, &*data[4].text), ("", "2024-05-04"));
    let columns = Columns::new().text("tokens").unlabelled();
    let (code, shown) = refused(Dataset::arrow_with(path("words.arrow"), &columns));
    assert!(code == "SC0911" && shown.contains("lists"), "{shown}");
}

#[test]
fn feather_files_are_decompressed() {
    let [lz4, zstd] = ["lz4.feather", "zstd.feather"].map(|name| {
        let columns = Columns::new().drop_missing();
        Dataset::arrow_with(path(name), &columns).expect("it is readable")
    });
    assert_eq!(without_file(&lz4), without_file(&zstd));
    assert_eq!(lz4.label_names, ["games", "mail"]);
    // Every third row has no label.
    assert_eq!(lz4.len(), 2000);
    let last = &lz4[1999];
    assert_eq!(last.text, "the same words again and again, number 48");
    assert_eq!((last.class(), last.line), (Some(0), Some(2999)));
}

#[test]
fn texts_and_labels_have_many_layouts() {
    let read = |columns: &Columns| Dataset::arrow_with(path("kinds.arrow"), columns);
    let texts = |name: &str| -> Vec<String> {
        let data = read(&Columns::new().text(name).unlabelled()).expect(name);
        data.examples.iter().map(|it| it.text.clone()).collect()
    };
    let long = "a text that is longer than twelve bytes";
    assert_eq!(texts("text"), ["short", long, ""]);
    assert_eq!(texts("large"), ["x", "", "Ärger"]);
    assert_eq!(texts("pair"), ["a", "b", "c"]);
    assert_eq!(texts("none"), ["", "", ""]);
    assert_eq!(texts("yes"), ["true", "", "false"]);
    assert_eq!(texts("double"), ["0.5", "-1.0", "2.25"]);
    assert_eq!(texts("small"), ["-1", "200", ""]);
    assert_eq!(texts("code"), ["ab", "cd", "ef"]);
    let time = ["1970-01-01 00:00:00.001", "1970-01-01 00:00:00.002", ""];
    assert_eq!(texts("time"), time);
    assert_eq!(texts("price"), ["", "1.00", "2.00"]);
    assert_eq!(texts("half"), ["1.0", "2.0", "3.0"]);
    let sets = |name: &str| -> Vec<Vec<usize>> {
        let columns = Columns::new().text("text").pair("pair").labels(name, ";");
        let data = read(&columns).expect(name);
        assert_eq!(data[1].pair.as_deref(), Some("b"));
        data.examples
            .iter()
            .map(|it| it.classes().expect("a set").to_vec())
            .collect()
    };
    assert_eq!(sets("tags"), [vec![0], vec![], vec![0, 1]]);
    assert_eq!(sets("fixed"), [vec![0, 1], vec![], vec![2, 3]]);
    for name in ["union", "map", "runs"] {
        let (code, shown) = refused(read(&Columns::new().text(name).unlabelled()));
        let words = format!("the column `{name}`:");
        assert!(code == "SC0911" && shown.contains(&words), "{shown}");
    }
}

#[test]
fn files_of_polars_are_read() {
    let read = |name: &str, columns: &Columns| {
        let path = path(name);
        let (held, stream) = match name.ends_with("parquet") {
            true => (
                Dataset::parquet_with(&path, columns),
                Stream::parquet_with(&path, columns),
            ),
            false => (
                Dataset::arrow_with(&path, columns),
                Stream::arrow_with(&path, columns),
            ),
        };
        let (held, stream) = (held.expect(name), stream.expect(name));
        let streamed = stream.first(usize::MAX).expect(name);
        assert_eq!(without_file(&held), without_file(&streamed), "{name}");
        held
    };
    for name in [
        "polars-uncompressed.arrow",
        "polars-lz4.arrow",
        "polars-zstd.arrow",
        "polars.parquet",
    ] {
        let data = read(name, &Columns::new().drop_missing());
        assert_eq!(data.label_names, ["bad", "good"], "{name}");
        assert_eq!(
            (data.len(), data[0].class(), data[1].class()),
            (40, Some(1), Some(0))
        );
        let long = format!(
            "row 6: longer than twelve bytes, {}",
            "and again ".repeat(6)
        );
        assert_eq!(
            (data[4].text.as_str(), data[4].line),
            (long.as_str(), Some(7))
        );
        assert_eq!(data[5].text, "row 8");
        for (column, text) in [("bytes", "bytes 59"), ("day", "2024-05-30")] {
            let data = read(name, &Columns::new().text(column).unlabelled());
            assert_eq!(data[59].text, text, "{name}");
        }
        let data = read(name, &Columns::new().text("text").labels("tags", ";"));
        assert_eq!(data[5].classes(), Some(&[0, 1][..]), "{name}");
    }
}

/// Two batches of 300 rows, whose labels are dictionaries with other values.
fn batches() -> [RecordBatch; 2] {
    [["old", "new"], ["wet", "dry"]].map(|names| {
        let texts = (0..300).map(|row| format!("the same words, {}: {row}", names[0]));
        let texts: Vec<String> = texts.collect();
        let labels = (0..300).map(|row| (row % 3 < 2).then(|| names[row % 3]));
        let labels: DictionaryArray<Int32Type> = labels.collect();
        let columns: [(&str, ArrayRef); 3] = [
            ("text", Arc::new(StringViewArray::from_iter_values(&texts))),
            (
                "large",
                Arc::new(LargeStringArray::from_iter_values(&texts)),
            ),
            ("label", Arc::new(labels)),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    })
}

fn write_stream(path: &Path, codec: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(codec);
    let (file, options) = (File::create(path).expect("room"), options.expect("a codec"));
    let batches = batches();
    let writer = StreamWriter::try_new_with_options(file, &batches[0].schema(), options);
    let mut writer = writer.expect("a schema");
    batches
        .iter()
        .for_each(|batch| writer.write(batch).expect("room"));
    writer.finish().expect("room");
}

#[test]
fn dictionaries_may_be_replaced_within_a_file_of_any_compression() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("replaced.arrow");
    for codec in [
        None,
        Some(CompressionType::LZ4_FRAME),
        Some(CompressionType::ZSTD),
    ] {
        write_stream(&path, codec);
        for columns in [Columns::new(), Columns::new().text("large").label("label")] {
            let columns = columns.drop_missing();
            let data = Dataset::arrow_with(&path, &columns).expect("rows");
            assert_eq!(data.label_names, ["dry", "new", "old", "wet"]);
            assert_eq!(data.class_counts(), [100; 4]);
            assert_eq!(data[399].label_name.as_deref(), Some("dry"));
            assert_eq!(data[399].text, "the same words, wet: 298");
            let stream = Stream::arrow_with(&path, &columns).expect("rows");
            let streamed = stream.first(usize::MAX).expect("rows");
            assert_eq!(without_file(&data), without_file(&streamed), "{codec:?}");
        }
    }
}

#[test]
fn a_file_with_a_footer_is_read_as_a_stream_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.feather");
    let batch = &batches()[0];
    let file = File::create(&path).expect("room");
    let mut writer = FileWriter::try_new(file, &batch.schema()).expect("a schema");
    for _ in 0..4 {
        writer.write(batch).expect("room");
    }
    writer.finish().expect("room");
    let columns = Columns::new().fill_missing("none");
    let data = Dataset::arrow_with(&path, &columns).expect("rows");
    assert_eq!(data.class_counts(), [400; 3]);
    let stream = Stream::arrow_with(&path, &columns).expect("rows");
    let streamed = stream.first(usize::MAX).expect("rows");
    assert_eq!(without_file(&data), without_file(&streamed));
}

#[test]
fn a_folder_of_save_to_disk_is_read() {
    let read = |folder: &Path| {
        let streamed = Stream::arrow(folder).and_then(|it| it.first(usize::MAX));
        [Dataset::arrow(folder), streamed]
    };
    for data in read(&path("saved")) {
        let data = data.expect("two shards");
        assert_eq!(data.label_names, ["pos", "neu", "neg"]);
        let classes: Vec<_> = data.examples.iter().map(|it| it.class()).collect();
        assert_eq!(classes, [0, 2, 1, 0, 2].map(Some));
        assert_eq!(data[4].text, "text 4");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let check = |words: &str| {
        for data in read(folder.path()) {
            let problem = data.expect_err(words);
            let shown = format!("{problem:?}");
            assert!(problem.code == "SC0911" && shown.contains(words), "{shown}");
        }
    };
    let put = |name: &str, content: &str| {
        fs::write(folder.path().join(name), content).expect("room");
    };
    fs::copy(path("reviews.arrow"), folder.path().join("a.arrow")).expect("a copy");
    check("*.arrow` names its files");
    put("state.json", "{");
    check("is no JSON");
    put(
        "state.json",
        r#"{"_data_files": [{"filename": "../a.arrow"}]}"#,
    );
    check("names no files");
    put(
        "state.json",
        r#"{"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{}]}"#,
    );
    check("a list of indices");
    // The files that are not named are not read.
    put("b.arrow", "");
    put(
        "state.json",
        r#"{"_data_files": [{"filename": "a.arrow"}]}"#,
    );
    for data in read(folder.path()) {
        assert_eq!(data.expect("a file").len(), 5);
    }
    put("dataset_dict.json", r#"{"splits": ["test", "train"]}"#);
    check("the data sets `test` and `train`: read one of them");
}

#[test]
fn many_files_are_one_data_set() {
    let folder = tempfile::tempdir().expect("a folder");
    for part in 0..2 {
        let name = format!("data-0000{part}-of-00002.arrow");
        fs::copy(path("reviews.arrow"), folder.path().join(name)).expect("a copy");
    }
    let data = Dataset::arrow(folder.path().join("*.arrow")).expect("two files");
    assert_eq!((data.len(), data.num_labels()), (10, 2));
}

#[test]
fn what_is_no_file_of_rows() {
    assert_eq!(refused(Dataset::arrow(path("empty.arrow"))).0, "SC0914");
    assert_eq!(refused(Dataset::arrow(path("none.arrow"))).0, "SC0911");
    for (name, words) in [
        ("", "not a file"),
        ("make.py", "it is no Arrow file"),
        (
            "reviews.parquet",
            "`Dataset::parquet` and `Stream::parquet` read it",
        ),
    ] {
        let (code, shown) = refused(Dataset::arrow(path(name)));
        assert!(code == "SC0911" && shown.contains(words), "{shown}");
    }
    let (_, shown) = refused(Dataset::parquet(path("reviews.arrow")));
    assert!(shown.contains("it is no Parquet file"), "{shown}");
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cut = folder.path().join("cut.arrow");
    for name in ["reviews.arrow", "kinds.arrow"] {
        let whole = fs::read(path(name)).expect("the file");
        let columns = Columns::new().text("text").unlabelled();
        for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
            fs::write(&cut, &whole[..length]).expect("it can be written to");
            let (code, _) = refused(Dataset::arrow_with(&cut, &columns));
            assert_eq!(code, "SC0911", "{length} bytes of {name}");
            let error = Stream::arrow_with(&cut, &columns).expect_err("it is cut off");
            assert_eq!(error.code, "SC0911", "{length} bytes of {name}");
        }
    }
    let whole = fs::read(path("reviews.arrow")).expect("the file");
    fs::write(&cut, [&whole[..], &whole[..]].concat()).expect("it can be written to");
    let (_, shown) = refused(Dataset::arrow(&cut));
    assert!(shown.contains("follow its end"), "{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    /// Changed bytes are read or refused; nothing panics, and nothing takes memory without end.
    #[test]
    fn damaged_files(
        name in prop::sample::select(vec![
            "reviews.arrow", "words.arrow", "questions.arrow", "kinds.arrow", "lz4.feather", "zstd.feather",
            "polars-uncompressed.arrow", "polars-lz4.arrow", "polars-zstd.arrow",
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        text in prop::sample::select(vec!["text", "large", "pair", "none", "tags", "fixed", "code", "small"]),
    ) {
        let mut bytes = fs::read(path(name)).expect("the file");
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let damaged = folder.path().join(name);
        fs::write(&damaged, bytes).expect("it can be written to");
        let _ = match name {
            "kinds.arrow" => Dataset::arrow_with(&damaged, &Columns::new().text(text).unlabelled()),
            _ => Dataset::arrow(&damaged),
        };
        if let Ok(stream) = Stream::arrow(&damaged) {
            let _ = stream.first(usize::MAX);
        }
    }
}
