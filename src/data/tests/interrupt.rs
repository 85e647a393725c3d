//! Reading a large file hears an interrupt. In a process of its own: the request is the process's.

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
    let read = || {
        [
            Dataset::csv(&csv),
            Dataset::tsv(&tsv),
            Dataset::jsonl(&jsonl),
        ]
    };
    for data in read() {
        assert_eq!(data.expect("nobody interrupts").len(), 1000);
    }
    for format in 0..3 {
        work::request();
        let read = match format {
            0 => Dataset::csv(&csv),
            1 => Dataset::tsv(&tsv),
            _ => Dataset::jsonl(&jsonl),
        };
        assert_eq!(read.expect_err("interrupted").code, "SC0520");
    }
}
