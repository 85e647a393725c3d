//! Rows that are skipped, and several files as one data set.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use stratoscope_data::{Columns, Dataset, Glue, Stream};
use stratoscope_diagnostics::Diagnostic;

fn put(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.display().to_string()
}

fn texts(data: &Dataset) -> Vec<&str> {
    data.examples.iter().map(|it| it.text.as_str()).collect()
}

fn skipping() -> Columns {
    Columns::new().skip_bad_rows()
}

type Read = fn(&str, &Columns) -> Result<Dataset, Box<Diagnostic>>;

#[test]
fn bad_rows_are_skipped_only_when_asked_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let tsv: Read = |path, columns| Dataset::tsv_with(path, columns);
    let csv: Read = |path, columns| Dataset::csv_with(path, columns);
    let jsonl: Read = |path, columns| Dataset::jsonl_with(path, columns);
    for (name, read, content, code, lines) in [
        (
            "a.tsv",
            tsv,
            "text\tlabel\na\tx\nb\twith a tab\ty\nc\ty\nd\n",
            "SC0912",
            [
                "line 3 has 3 fields, the header has 2",
                "line 5 has 1 field, the header has 2",
            ],
        ),
        (
            "a.csv",
            csv,
            "text,label\na,x\nb,with a comma,y\nc,y\nd\n",
            "SC0912",
            [
                "line 3 has 3 fields, the header has 2",
                "line 5 has 1 field, the header has 2",
            ],
        ),
        (
            "a.jsonl",
            jsonl,
            "{\"text\": \"a\", \"label\": \"x\"}\n[1]\n{\"text\": \"c\", \"label\": \"y\"}\n{\"text\": \"d\"}\n",
            "SC0911",
            [
                "line 2: it is not a JSON object",
                "line 4: the key `label` of the first line is missing",
            ],
        ),
    ] {
        let path = put(folder.path(), name, content);
        let problem = read(&path, &Columns::new()).unwrap_err();
        assert_eq!(problem.code, code, "{name}");
        let data = read(&path, &skipping()).unwrap();
        assert_eq!(texts(&data), ["a", "c"], "{name}");
        assert_eq!(data.examples[1].row, 1, "{name}");
        assert_eq!(data.skipped.rows, 2, "{name}");
        for (found, expected) in data.skipped.first.iter().zip(lines) {
            assert!(found.starts_with(expected), "{name}: {found}");
        }
        for page in [data.to_plain(), data.to_html(), data.take(1).to_plain()] {
            assert!(page.contains("2 rows skipped: line "), "{name}: {page}");
        }
    }
}

#[test]
fn labels_that_are_no_numbers_are_skipped_and_a_file_of_bad_rows_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = put(
        folder.path(),
        "a.tsv",
        "text\tscore\na\t1.5\nb\tmuch\nc\t2\n",
    );
    let columns = Columns::new().value("score");
    assert_eq!(
        Dataset::tsv_with(&path, &columns).unwrap_err().code,
        "SC0911"
    );
    let data = Dataset::tsv_with(&path, &columns.skip_bad_rows()).unwrap();
    assert_eq!(texts(&data), ["a", "c"]);
    assert_eq!(
        data.skipped.first,
        ["line 3 has `much` as score, which is no number"]
    );
    let path = put(folder.path(), "b.tsv", "text\tlabel\na\nb\n");
    assert_eq!(
        Dataset::tsv_with(&path, &skipping()).unwrap_err().code,
        "SC0914"
    );
}

#[test]
fn the_first_of_many_are_described() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "a\tx\nbad\n".repeat(2000);
    let path = put(folder.path(), "a.tsv", &format!("text\tlabel\n{rows}"));
    let data = Dataset::tsv_with(&path, &skipping()).unwrap();
    assert_eq!(
        (data.len(), data.skipped.rows, data.skipped.first.len()),
        (2000, 2000, 5)
    );
    assert!(
        data.to_plain()
            .contains("2000 rows skipped: line 3 has 1 field"),
        "{data}"
    );
    assert!(data.to_plain().ends_with("; …"), "{data}");
}

#[test]
fn the_published_rows_of_qqp_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let content = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t1\t2\ta?\tb?\t0\n2\t3\t4\tc?\n3\t5\t6\td?\te?\t1\n";
    for name in ["train.tsv", "dev.tsv"] {
        put(folder.path(), name, content);
    }
    let (train, _) = Glue::qqp(folder.path()).unwrap();
    assert_eq!((train.len(), train.skipped.rows), (2, 1));
    assert_eq!(train.label_names, ["not_duplicate", "duplicate"]);
}

#[test]
fn files_that_are_compressed_with_gzip_are_read_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let packed = |name: &str, parts: &[&str]| {
        let path = folder.path().join(name);
        let mut file = Vec::new();
        for part in parts {
            let mut member = GzEncoder::new(&mut file, Compression::default());
            member.write_all(part.as_bytes()).unwrap();
            member.finish().unwrap();
        }
        fs::write(&path, file).unwrap();
        path.display().to_string()
    };
    // Of two members, as `cat a.gz b.gz` makes it.
    let csv = packed("a.csv.gz", &["text,label\none,x\n", "two,y\n"]);
    assert_eq!(texts(&Dataset::csv(&csv).unwrap()), ["one", "two"]);
    let lines = packed("a.jsonl.gz", &["{\"text\": \"one\", \"label\": 1}\n"]);
    assert_eq!(texts(&Dataset::jsonl(lines).unwrap()), ["one"]);
    let tsv = packed("a.tsv.gz", &["text\tlabel\none\tx\n"]);
    assert_eq!(texts(&Dataset::tsv(tsv).unwrap()), ["one"]);
    let error = Stream::csv(&csv).unwrap_err();
    assert_eq!(error.code, "SC0911");
    assert!(error.fixes[0].title.contains("!gunzip -k"), "{error:?}");
    let whole = fs::read(&csv).unwrap();
    fs::write(&csv, &whole[..whole.len() / 2]).unwrap();
    let error = Dataset::csv(&csv).unwrap_err();
    assert!(error.message.contains("damaged"), "{error:?}");
}

#[test]
fn a_pattern_names_several_files() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "b.csv", "text,label\nfrom b,games\n");
    put(
        folder.path(),
        "a.csv",
        "label,text\nmail,from a\nfonts,also a\n",
    );
    put(folder.path(), "other.tsv", "text\tlabel\n");
    fs::create_dir(folder.path().join("folder.csv")).unwrap();
    let pattern = folder.path().join("*.csv");
    let data = Dataset::csv(&pattern).unwrap();
    assert_eq!(texts(&data), ["from a", "also a", "from b"]);
    assert_eq!(data.label_names, ["fonts", "games", "mail"]);
    let classes: Vec<_> = data.examples.iter().map(|it| it.class()).collect();
    assert_eq!(classes, [Some(2), Some(0), Some(1)]);
    let places: Vec<_> = data.examples.iter().map(|it| (it.row, it.line)).collect();
    assert_eq!(
        places,
        [(0, None), (1, None), (2, None)],
        "a line would not say in which file"
    );
    assert_eq!(data.source, pattern.display().to_string());
}

#[test]
fn every_reader_takes_a_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let conll = "game B-TOOL\n\n";
    let squad = r#"{"data": [{"paragraphs": [{"context": "a game", "qas": [{"id": "1", "question": "what?",
        "answers": [{"text": "game", "answer_start": 2}]}]}]}]}"#;
    for part in ["1", "2"] {
        put(folder.path(), &format!("{part}.tsv"), "text\tlabel\na\tx\n");
        put(
            folder.path(),
            &format!("{part}.jsonl"),
            "{\"text\": \"a\", \"label\": \"x\"}\n",
        );
        put(folder.path(), &format!("{part}.txt"), "a\n");
        put(folder.path(), &format!("{part}.conll"), conll);
        put(folder.path(), &format!("{part}.json"), squad);
    }
    let pattern = |name: &str| folder.path().join(name);
    for data in [
        Dataset::tsv(pattern("?.tsv")),
        Dataset::jsonl(pattern("[12].jsonl")),
        Dataset::text(pattern("*.txt")),
        Dataset::conll(pattern("*.conll")),
        Dataset::squad(pattern("*.json")),
    ] {
        assert_eq!(data.unwrap().len(), 2);
    }
}

/// A pattern cannot find it, so that its rows would be missing without a word.
#[test]
#[cfg(target_os = "linux")]
fn a_name_that_is_no_utf8_is_reported() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"g\xff.csv");
    std::fs::write(folder.path().join(name), "text,label\na,x\n").unwrap();
    let read = || Dataset::csv(folder.path().join("*.csv"));
    let message = read().unwrap_err().message.clone();
    assert!(message.contains("is no UTF-8"), "{message}");
    put(folder.path(), "h.csv", "text,label\nb,y\n");
    let message = read().unwrap_err().message.clone();
    assert!(message.contains("is no UTF-8"), "{message}");
    // Another kind of file is not meant.
    put(folder.path(), "h.tsv", "text\tlabel\nb\ty\n");
    assert!(Dataset::tsv(folder.path().join("*.tsv")).is_ok());
}

#[test]
fn patterns_without_a_file_and_files_of_different_kinds() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "data.csv", "text,label\na,x\n");
    let problem = Dataset::tsv(folder.path().join("*.tsv")).unwrap_err();
    assert_eq!(problem.code, "SC0911");
    assert!(
        problem.message.contains("no file has such a name")
            && problem.message.contains("`data.csv`"),
        "{problem}"
    );
    let problem = Dataset::tsv(folder.path().join("nowhere/*.tsv")).unwrap_err();
    assert!(problem.message.contains("there is no folder"), "{problem}");
    let problem = Dataset::tsv(folder.path().join("***.tsv")).unwrap_err();
    assert!(
        problem.message.contains("it is no pattern of names"),
        "{problem}"
    );
    // A file may have such a name itself.
    let named = put(folder.path(), "[x].csv", "text,label\nb,y\n");
    assert_eq!(texts(&Dataset::csv(named).unwrap()), ["b"]);

    put(
        folder.path(),
        "pairs.csv",
        "sentence1,sentence2,label\na,b,x\n",
    );
    let problem = Dataset::csv(folder.path().join("*a*.csv")).unwrap_err();
    assert_eq!(problem.code, "SC0915");
    assert!(
        problem.message.contains("pairs of texts with classes")
            && problem.message.contains("texts with classes"),
        "{problem}"
    );
}

/// A reader of any format.
type Reader = fn(&Path) -> Result<Dataset, Box<Diagnostic>>;

#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let readers: [Reader; 8] = [
        |path| Dataset::csv(path),
        |path| Dataset::tsv(path),
        |path| Dataset::jsonl(path),
        |path| Dataset::text(path),
        |path| Dataset::conll(path),
        |path| Dataset::squad(path),
        |path| Dataset::arrow(path),
        |path| Dataset::parquet(path),
    ];
    for (number, read) in readers.iter().enumerate() {
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let problem = read(path).expect_err("it has no end");
            let shown = format!("{problem:?}");
            assert!(shown.contains("a device or a pipe"), "{number}: {shown}");
        }
    }
}

#[test]
fn parts_of_data_sets() {
    let rows = Dataset::from_rows(["a", "b", "c", "d", "e"], ["x", "y", "x", "y", "x"]).unwrap();
    let shards: Vec<Dataset> = (0..2).map(|index| rows.shard(2, index).unwrap()).collect();
    assert_eq!(texts(&shards[0]), ["a", "c", "e"]);
    assert_eq!(texts(&shards[1]), ["b", "d"]);
    let again = shards[0].concatenate(&shards[1]).unwrap();
    assert_eq!(texts(&again), ["a", "c", "e", "b", "d"]);
    assert_eq!(
        texts(&rows.take(2).repeat(2).unwrap()),
        ["a", "b", "a", "b"]
    );
    for problem in [
        rows.shard(2, 2).unwrap_err(),
        rows.shard(0, 0).unwrap_err(),
        rows.repeat(0).unwrap_err(),
        rows.concatenate(&Dataset::from_texts(["f"])).unwrap_err(),
    ] {
        assert_eq!(problem.code, "SC0915", "{problem}");
    }
}
