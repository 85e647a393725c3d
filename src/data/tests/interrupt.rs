//! Reading a large file hears an interrupt. In a process of its own: the request is the process's.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use stratoscope_data::Dataset;
use stratoscope_diagnostics::work;

#[test]
fn reading_a_file_hears_an_interrupt() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, header: &str, row: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("{header}{}", row.repeat(1000))).expect("a file");
        path
    };
    let csv = write("rows.csv", "text,label\n", "a game,games\n");
    let tsv = write("rows.tsv", "text\tlabel\n", "a game\tgames\n");
    let jsonl = write(
        "rows.jsonl",
        "",
        "{\"text\": \"a game\", \"label\": \"games\"}\n",
    );
    let columns: [(&str, ArrayRef); 2] = ["text", "label"].map(|name| {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a game"; 1000]));
        (name, texts)
    });
    let rows = RecordBatch::try_from_iter(columns).expect("columns");
    let file = |name: &str| {
        let path = folder.path().join(name);
        (std::fs::File::create(&path).expect("room"), path)
    };
    let (output, arrow) = file("rows.arrow");
    let mut writer = StreamWriter::try_new(output, &rows.schema()).expect("a schema");
    writer.write(&rows).expect("room");
    writer.finish().expect("room");
    let (output, parquet) = file("rows.parquet");
    let mut writer = ArrowWriter::try_new(output, rows.schema(), None).expect("a schema");
    writer.write(&rows).expect("room");
    writer.close().expect("room");
    let read = || {
        [
            Dataset::csv(&csv),
            Dataset::tsv(&tsv),
            Dataset::jsonl(&jsonl),
            Dataset::arrow(&arrow),
            Dataset::parquet(&parquet),
        ]
    };
    for data in read() {
        assert_eq!(data.expect("nobody interrupts").len(), 1000);
    }
    for format in 0..5 {
        work::request();
        let read = match format {
            0 => Dataset::csv(&csv),
            1 => Dataset::tsv(&tsv),
            2 => Dataset::jsonl(&jsonl),
            3 => Dataset::arrow(&arrow),
            _ => Dataset::parquet(&parquet),
        };
        assert_eq!(read.expect_err("interrupted").code, "SC0520");
    }
}
