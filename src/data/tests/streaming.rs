//! Rows that stay in their files: the same examples and batches as in memory, from any place, in constant memory.

#[path = "streaming/questions.rs"]
mod questions;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use stratoscope_data::{
    Batch, Columns, Dataset, EncodedStream, Encoding, Piece, Split, Stream, StreamTokens, Tokenize,
    TokensOf, encode_example,
};
use stratoscope_diagnostics::{Result, work};
use tempfile::TempDir;

/// A token for each letter.
struct Letters;

impl Tokenize for Letters {
    fn encode(&self, text: &str, pair: Option<&str>, max_length: usize) -> Result<Encoding> {
        let texts = [Some(text), pair];
        let letters = texts.into_iter().enumerate();
        let letters = letters.flat_map(|(segment, text)| {
            let letters = text.into_iter().flat_map(str::bytes);
            letters.map(move |letter| (u32::from(letter), segment as u32))
        });
        let (ids, type_ids): (Vec<u32>, Vec<u32>) = letters.take(max_length).unzip();
        let all: usize = texts.iter().flatten().map(|text| text.len()).sum();
        Ok(Encoding {
            truncated: all - ids.len(),
            ids,
            type_ids,
        })
    }

    fn encode_pieces(
        &self,
        text: &str,
        pair: Option<&str>,
        max_length: usize,
    ) -> Result<Option<(Encoding, Vec<Option<Piece>>)>> {
        let texts = [(text, false), (pair.unwrap_or_default(), true)];
        let places = texts.into_iter().flat_map(|(text, in_pair)| {
            let places = 0..text.len();
            places.map(move |at| {
                Some(Piece {
                    range: at..at + 1,
                    in_pair,
                    word: 0,
                })
            })
        });
        let encoding = self.encode(text, pair, max_length)?;
        Ok(Some((encoding, places.take(max_length).collect())))
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.tokens(ids).concat()
    }

    fn tokens(&self, ids: &[u32]) -> Vec<String> {
        ids.iter().map(u32::to_string).collect()
    }

    fn pad_id(&self) -> u32 {
        0
    }

    fn unk_id(&self) -> u32 {
        u32::from(b'?')
    }

    fn vocab_size(&self) -> usize {
        256
    }
}

fn tokens(stream: &Stream, max_length: usize) -> EncodedStream {
    counted(stream, max_length, true)
}

fn counted(stream: &Stream, max_length: usize, keeps_lengths: bool) -> EncodedStream {
    let of = match stream.is_tagged() {
        true => TokensOf::Words,
        false if stream.choices().is_some() => TokensOf::Choices,
        false if stream.has_answers() => TokensOf::Windows { stride: 2 },
        false => TokensOf::Texts,
    };
    let tokens = StreamTokens {
        encode: Arc::new(move |example| encode_example(&Letters, example, max_length, of)),
        tokenizer: &Letters,
        max_length,
        masking: None,
        keeps_lengths,
    };
    let encoded = stream.tokenize(tokens, &mut |_, _| Ok(()));
    encoded.expect("it can be tokenized")
}

fn batches(stream: &EncodedStream, size: usize) -> Vec<Batch> {
    let batches: Result<Vec<Batch>> = stream.batch(size).expect("a size").collect();
    batches.expect("the files are there")
}

fn write(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).expect("it can be written");
    path
}

/// A file of `rows` rows in two classes, sorted by class.
fn table(folder: &TempDir, rows: usize) -> PathBuf {
    let row = |row: usize| format!("text {row},{}\n", ["ham", "spam"][2 * row / rows]);
    let rows: String = (0..rows).map(row).collect();
    write(folder, "table.csv", format!("text,label\n{rows}"))
}

#[track_caller]
fn same(stream: Result<Stream>, data: Result<Dataset>) {
    match (stream, data) {
        (Ok(stream), Ok(data)) => {
            let read = stream.first(usize::MAX).expect("it is read again");
            assert_eq!(read.examples, data.examples);
            assert_eq!(read.label_names, data.label_names);
            assert_eq!(
                (stream.len(), stream.skipped()),
                (data.len(), &data.skipped)
            );
            assert_eq!(stream.class_counts(), data.class_counts());
            assert_eq!(stream.is_paired(), data.is_paired());
            assert_eq!(stream.is_tagged(), data.is_tagged());
            assert_eq!(stream.has_answers(), data.has_answers());
        }
        (Err(stream), Err(data)) => {
            assert_eq!(stream.code, data.code, "{stream} {data}");
            let place = |it: &str| it.replace("Dataset::", "Stream::");
            assert_eq!(place(&stream.message), place(&data.message));
        }
        (stream, data) => panic!("{stream:?} {data:?}"),
    }
}

#[test]
fn a_stream_has_the_examples_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let write = |name, content: &[u8]| write(&folder, name, content);
    let usual = Columns::new();
    let csv = |path: &Path, columns: &Columns| {
        same(
            Stream::csv_with(path, columns),
            Dataset::csv_with(path, columns),
        );
    };
    let tsv = |path: &Path, columns: &Columns| {
        same(
            Stream::tsv_with(path, columns),
            Dataset::tsv_with(path, columns),
        );
    };
    let jsonl = |path: &Path, columns: &Columns| {
        same(
            Stream::jsonl_with(path, columns),
            Dataset::jsonl_with(path, columns),
        );
    };
    let quoted = "\u{feff}label,text\r\nb,\"two\nlines, \"\"quoted\"\"\"\r\n\r\na,größe\r\n";
    csv(&write("quoted.csv", quoted.as_bytes()), &usual);
    let missing = write(
        "missing.tsv",
        b"text\tlabel\n10\t10\n9\t9\nnone\t \n\"9\t9\n\n\n",
    );
    for columns in [
        usual.clone(),
        usual.clone().drop_missing(),
        usual.clone().fill_missing("7"),
    ] {
        tsv(&missing, &columns);
    }
    let ragged = write("ragged.tsv", b"text\tlabel\na\tx\nb\n\nc\ty\tz\nd\tx");
    let unlabelled = usual.clone().unlabelled();
    for columns in [
        usual.clone(),
        usual.clone().skip_bad_rows(),
        unlabelled.clone(),
    ] {
        tsv(&ragged, &columns);
    }
    let pairs = write(
        "pairs.tsv",
        b"sentence1\tsentence2\tlabel\na\tb\t1\nc\td\t0\n",
    );
    tsv(&pairs, &usual);
    tsv(&pairs, &Columns::new().text("sentence2").value("label"));
    let numbers = write("numbers.csv", b"text,label\na,0.5\nb,much\nc,-1\n");
    csv(&numbers, &Columns::new().value("label"));
    csv(&numbers, &Columns::new().value("label").skip_bad_rows());
    let sets = write("sets.csv", b"text,label\na,\"y; x\"\nb,\nc,x;x; \n");
    csv(&sets, &Columns::new().labels("label", ";"));
    csv(&sets, &Columns::new().text("other").labels("label", ";"));
    let lists =
        b"{\"text\": \"a\", \"label\": [\"y\", \"x\"]}\n{\"text\": \"b\", \"label\": []}\n[1]\n";
    let lists = write("lists.jsonl", lists);
    jsonl(&lists, &Columns::new().labels("label", ";"));
    jsonl(&lists, &Columns::new().labels("label", ";").skip_bad_rows());
    let objects = b"\n{\"label\": true, \"text\": \"a\"}\n \n{\"text\": \"b\"}\n[1]\n\
        {\"text\": \"c\", \"text\": \"d\", \"label\": 1}\n{\"text\": \"e\", \"label\": false, \"x\": {}}\n";
    let objects = write("objects.jsonl", objects);
    jsonl(&objects, &usual);
    jsonl(&objects, &usual.clone().skip_bad_rows());
    let lines = write("lines.txt", b"one\r\n\n two \nthree");
    same(Stream::text(&lines), Dataset::text(&lines));
    // What is refused is refused in the same words.
    csv(&write("empty.csv", b""), &usual);
    csv(&write("header.csv", b"text,label\n"), &usual);
    csv(&write("other.csv", b"text,class\na,b\n"), &usual);
    csv(&write("twice.csv", b"text,text,label\na,b,c\n"), &usual);
    csv(&folder.path().join("nothing.csv"), &usual);
    tsv(&write("latin.tsv", b"text\tlabel\na\tb\n\xe4\tb\n"), &usual);
    tsv(folder.path(), &usual);
}

#[test]
fn weights_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let table = "text,label,n,w\na,x,1,0.5\nb,y,2,2\nc,x,3,1e-3\n";
    let lines = "{\"text\": \"a\", \"label\": \"x\", \"w\": 0.25}\n{\"text\": \"b\", \"label\": \"y\", \"w\": \"3\"}\n";
    let both = |name: &str, content: &str, columns: &Columns| {
        let path = write(&folder, name, content);
        match name.ends_with("jsonl") {
            true => same(
                Stream::jsonl_with(&path, columns),
                Dataset::jsonl_with(&path, columns),
            ),
            false => same(
                Stream::csv_with(&path, columns),
                Dataset::csv_with(&path, columns),
            ),
        }
    };
    let columns = Columns::new().weight("w");
    both("table.csv", table, &columns);
    both("lines.jsonl", lines, &columns);
    both(
        "table.csv",
        table,
        &Columns::new().text("text").value("n").weight("w"),
    );
    both(
        "table.csv",
        table,
        &Columns::new().text("text").weight("n").unlabelled(),
    );
    both("table.csv", table, &Columns::new().weight("other"));
    let prompts = Columns::new().text("text").choices(["text", "label"]);
    both(
        "table.csv",
        table,
        &prompts.clone().weight("w").unlabelled(),
    );
    for wrong in ["", "-1", "NaN", "inf", "much", "1e39"] {
        let content = table.replace("1e-3", wrong);
        both("table.csv", &content, &columns);
        both("table.csv", &content, &columns.clone().skip_bad_rows());
        both(
            "table.csv",
            &content,
            &prompts.clone().weight("w").skip_bad_rows().unlabelled(),
        );
    }
    let path = write(&folder, "table.csv", table);
    let stream = Stream::csv_with(&path, &columns).expect("weights");
    assert_eq!(stream.weights(), Some((1e-3, 2.0)));
    assert_eq!(Stream::csv(&path).expect("no weights").weights(), None);
    let batch = &batches(&tokens(&stream, 4), 3)[0];
    assert_eq!(batch.weights.as_deref(), Some(&[0.5, 2.0, 1e-3][..]));
    assert_eq!(batch.slice(1..2).weights.as_deref(), Some(&[2.0][..]));
    // Numbers of Parquet.
    let path = parquet(folder.path().join("rows.parquet"), sorted(700), 300);
    let columns = Columns::new().weight("number");
    same(
        Stream::parquet_with(&path, &columns),
        Dataset::parquet_with(&path, &columns),
    );
    // The first object has no keys.
    both(
        "lines.jsonl",
        "{}\n{\"question\": \"q\", \"context\": \"c\", \"answers\": []}\n",
        &Columns::new(),
    );
}

#[test]
fn a_missing_label_names_the_call_that_leaves_it_out() {
    let folder = TempDir::new().expect("a folder");
    let path = write(&folder, "gaps.tsv", "text\tlabel\na\tx\nb\t\n");
    let error = Stream::tsv(&path).expect_err("a label is missing");
    let fix = error.fixes.first().expect("a way out");
    assert!(format!("{fix:?}").contains("Stream::tsv_with"), "{fix:?}");
}

#[test]
fn tagged_words_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let conll = |content: &str| {
        let path = write(&folder, "words.conll", content);
        same(Stream::conll(&path), Dataset::conll(&path));
    };
    conll(
        "-DOCSTART- -X- O O\n\nAda NNP B-NP B-PER\r\nLovelace NNP I-NP I-PER\r\n\n \nit PRP B-NP O\n\n\n",
    );
    conll("\u{feff}# id = 7\nNew York\tB-LOC\n# \tO\n-DOCSTART- \t O\n# text\nis\tO");
    // What is refused is refused in the same words.
    conll("Ada B-PER\nLovelace\n");
    conll("Ada B-PER\nof New O\n");
    conll("\n\n# only a comment\n");
    conll(&"word O\n".repeat(100_001));
    let path = write(&folder, "latin.conll", b"w O\n\xe4 O\n");
    same(Stream::conll(&path), Dataset::conll(&path));
    let many: String = (0..5000).map(|i| format!("word tag{i}\n\n")).collect();
    let path = write(&folder, "many.conll", many);
    let error = Stream::conll(&path).expect_err("too many tags");
    assert!(error.message.contains("no column of tags"), "{error}");

    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let path = files.join("words.parquet");
    same(Stream::parquet(&path), Dataset::parquet(&path));
    let columns = Columns::new().text("tokens").unlabelled();
    let error = Stream::parquet_with(&path, &columns).expect_err("lists are no texts");
    assert_eq!(error.code, "SC0911", "{error}");
}

#[test]
fn batches_of_tagged_words_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let sentence = |row: usize| -> String {
        let word = |at: usize| {
            let tag = ["O", "B-X", "I-X", "B-Y"][(row * 3 + at * 5) % 4];
            format!("{}\t{tag}\n", "a".repeat(1 + (row + at) % 9))
        };
        let words: String = (0..1 + row * row % 7).map(word).collect();
        words + "\n".repeat(1 + row % 3).as_str()
    };
    let rows: String = (0..1400).map(sentence).collect();
    let path = write(&folder, "words.conll", rows);
    let held = Dataset::conll(&path).expect("words");
    let held = held.tokenize_words(&Letters, 24).expect("it has places");
    let stream = Stream::conll(&path).expect("words");
    let stream = tokens(&stream, 24);
    assert_eq!(stream.report(), held.report());
    for epoch in 0..2 {
        let expected: Vec<Batch> = held.shuffle(5, epoch).batch(32).expect("a size").collect();
        let order = stream.shuffle(5, epoch);
        assert!(batches(&order, 32) == expected, "epoch {epoch}");
        let rest: Result<Vec<Batch>> = order.batch(32).expect("a size").skip(17).collect();
        assert!(rest.expect("the file is there") == expected[17..]);
    }
    // Cut off words ask for nothing.
    let asked: usize = stream.class_counts().iter().sum();
    let words: usize = stream.stream().class_counts().iter().sum();
    assert!(asked < words, "{asked} of {words}");
}

#[test]
fn prompts_with_choices_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let letters = |count: usize| "a".repeat(1 + count % 9);
    let columns = Columns::new().text("start").choices(["one", "two"]);
    let row = |row: usize| {
        let label = ["0", "1", ""][row % 3];
        format!(
            "{},{},{},{label}\n",
            letters(row),
            letters(row * row),
            letters(row * 7)
        )
    };
    let rows: String = (0..1400).map(row).collect();
    let csv = write(
        &folder,
        "prompts.csv",
        format!("start,one,two,label\n{rows}"),
    );
    let labelled = columns.clone().label("label");
    let dropped = labelled.clone().drop_missing();
    for columns in [
        &labelled,
        &dropped,
        &labelled.clone().fill_missing("1"),
        &columns,
    ] {
        same(
            Stream::csv_with(&csv, columns),
            Dataset::csv_with(&csv, columns),
        );
    }
    let held = Dataset::csv_with(&csv, &dropped).expect("prompts");
    let held = held.tokenize_choices(&Letters, 12).expect("tokens");
    let stream = Stream::csv_with(&csv, &dropped).expect("prompts");
    assert_eq!((stream.choices(), stream.len()), (Some(2), 934));
    let stream = tokens(&stream, 12);
    assert_eq!(stream.report(), held.report());
    assert_eq!(Split::Held(held.clone()).lengths(), stream.lengths());
    let grouped = (held.clone().by_length(32), stream.by_length(32));
    for (held, stream) in [(held, stream), grouped] {
        for epoch in 0..2 {
            let order = held.shuffle(5, epoch);
            let expected: Vec<Batch> = order.batch(32).expect("a size").collect();
            assert!(
                batches(&stream.shuffle(5, epoch), 32) == expected,
                "epoch {epoch}"
            );
        }
    }

    // Lists, whose rows have to have equally many.
    let lists = Columns::new().text("p").choices(["all"]).label("right");
    let line =
        |all: &str, right: &str| format!("{{\"p\": \"a\", \"all\": {all}, \"right\": {right}}}\n");
    let good = line(r#"["b", "c", "d"]"#, "2");
    let cases = [
        (good.clone(), "SC0911"),
        (line(r#"["b"]"#, "0"), "SC0911"),
        (line("[]", "0"), "SC0911"),
        (line(r#""b""#, "0"), "SC0911"),
        (line(r#"["b", "c"]"#, "1"), "SC0911"),
        (line(r#"["b", "c", "d"]"#, "3"), "SC0913"),
        (line(r#"["b", "c", "d"]"#, "\"x\""), "SC0911"),
    ];
    for (number, (line, code)) in cases.into_iter().enumerate() {
        let path = write(&folder, "lists.jsonl", format!("{good}{line}{good}{line}"));
        for columns in [lists.clone(), lists.clone().skip_bad_rows()] {
            let stream = Stream::jsonl_with(&path, &columns);
            let data = Dataset::jsonl_with(&path, &columns);
            if let (Err(stream), true) = (&stream, number > 0) {
                let data = data.as_ref().expect_err("as the stream");
                assert_eq!((&*stream.code, &stream.message), (code, &data.message));
            }
            same(stream, data);
        }
    }
}

/// Lists of choices in the columns of Parquet and Arrow files, row group by row group.
#[test]
fn lists_of_choices_are_those_of_a_data_set() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let columns = Columns::new().text("start").choices(["endings"]);
    let of = |name: &str, columns: &Columns| {
        let path = files.join(name);
        match name.ends_with("parquet") {
            true => (
                Stream::parquet_with(&path, columns),
                Dataset::parquet_with(&path, columns),
            ),
            false => (
                Stream::arrow_with(&path, columns),
                Dataset::arrow_with(&path, columns),
            ),
        }
    };
    for name in ["choices.parquet", "choices.arrow"] {
        let (stream, data) = of(name, &columns.clone().label("right"));
        let held = data.as_ref().expect("prompts");
        assert_eq!((held.len(), held[2].class()), (4, Some(0)));
        let second = ["game", "mail client"].map(str::to_owned);
        assert_eq!(held[1].choices(), Some(&second[..]));
        let read = tokens(stream.as_ref().expect("prompts"), 32);
        let held = held.tokenize_choices(&Letters, 32).expect("tokens");
        let expected: Vec<Batch> = held.batch(3).expect("a size").collect();
        assert!(batches(&read, 3) == expected, "{name}");
        same(stream, data);
        // The lists of another column are no choices, and neither are texts.
        for column in ["start", "right", "nowhere"] {
            let (stream, data) = of(name, &Columns::new().text("start").choices([column]));
            assert!(data.is_err(), "{name}: {column}");
            same(stream, data);
        }
    }
}

#[test]
fn batches_of_similar_length_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let row = |row: usize| format!("{},{}\n", "a".repeat(1 + row * row % 59), row % 2);
    let rows: String = (0..1300).map(row).collect();
    let path = write(&folder, "mixed.csv", format!("text,label\n{rows}"));
    let held = Dataset::csv(&path).expect("rows");
    let held = held.tokenize(&Letters, 64).expect("tokens").by_length(32);
    let plain = tokens(&Stream::csv(&path).expect("rows"), 64);
    let stream = plain.by_length(32);
    let mut firsts = Vec::new();
    for epoch in 0..3 {
        let expected: Vec<Batch> = held.shuffle(5, epoch).batch(32).expect("a size").collect();
        let order = stream.shuffle(5, epoch);
        let found = batches(&order, 32);
        assert!(found == expected, "epoch {epoch}");
        assert_eq!(found[0].seq, 58, "the longest first");
        let area = |all: &[Batch]| all.iter().map(|it| it.ids.len()).sum::<usize>();
        assert_eq!(area(&found), held.shuffle(5, epoch).positions(32));
        let without = batches(&plain.shuffle(5, epoch), 32);
        assert!(2 * area(&without) > 3 * area(&found), "epoch {epoch}");
        let mut all: Vec<usize> = found.iter().flat_map(|it| it.rows.clone()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1300));
        let rest: Result<Vec<Batch>> = order.batch(32).expect("a size").skip(17).collect();
        assert!(rest.expect("the file is there") == found[17..]);
        firsts.push(found[1].rows.clone());
    }
    assert!(firsts[0] != firsts[1] && firsts[1] != firsts[2]);
}

#[test]
fn positions_of_a_random_order_are_expected_by_lengths() {
    let folder = TempDir::new().expect("a folder");
    let row = |row: usize| format!("{},{}\n", "a".repeat(1 + row * row % 59), row % 2);
    let rows: String = (0..5000).map(row).collect();
    let path = write(&folder, "mixed.csv", format!("text,label\n{rows}"));
    let stream = Stream::csv(&path).expect("rows");
    let known = Split::Streamed(tokens(&stream, 64));
    let expected = Split::Streamed(counted(&stream, 64, false));
    for (known, expected) in [
        (known.clone(), expected.clone()),
        (known.by_length(32), expected.by_length(32)),
    ] {
        let found = known.positions(32, Some((5, 0))).expect("lengths");
        let expected = expected.positions(32, Some((5, 0))).expect("counts");
        assert!(expected.abs_diff(found) < found / 25, "{expected}, {found}");
    }
    assert_eq!(expected.positions(32, None), None);
    let area: usize = batches(&tokens(&stream, 64), 32)
        .iter()
        .map(|it| it.ids.len())
        .sum();
    assert_eq!(known.positions(32, None), Some(area));
    assert_eq!(known.lengths().iter().sum::<usize>(), 5000);
}

#[test]
fn files_of_a_pattern_are_one_stream() {
    let folder = TempDir::new().expect("a folder");
    let rows = |from: usize, to: usize| -> String {
        let rows = (from..to).map(|row| format!("text {row},{}\n", row % 3));
        format!("text,label\n{}", rows.collect::<String>())
    };
    write(&folder, "b.csv", rows(700, 701));
    write(&folder, "a.csv", rows(0, 700));
    // Columns may stand in another order.
    let other = (701..2000).map(|row| format!("{},text {row}\n", row % 3));
    write(
        &folder,
        "c.csv",
        format!("label,text\n{}", other.collect::<String>()),
    );
    let pattern = folder.path().join("*.csv");
    same(Stream::csv(&pattern), Dataset::csv(&pattern));
    let stream = Stream::csv(&pattern).expect("three files");
    assert!(stream.to_plain().contains("2000 examples"), "{stream}");
    assert!(
        stream.in_words().contains("in 3 files"),
        "{}",
        stream.in_words()
    );
    write(&folder, "d.csv", "sentence1,sentence2,label\na,b,1\n");
    let error = Stream::csv(&pattern).expect_err("pairs among single texts");
    assert!(error.message.contains("pairs of texts") || format!("{error:?}").contains("pairs"));
}

#[test]
fn batches_are_those_of_a_data_set_in_memory() {
    let folder = TempDir::new().expect("a folder");
    let path = table(&folder, 1300);
    let data = Dataset::csv(&path).expect("a table");
    let held = data.tokenize(&Letters, 7).expect("texts");
    let stream = tokens(&Stream::csv(&path).expect("a table"), 7);
    assert_eq!(stream.report(), held.report());
    let of = |encoded: &stratoscope_data::Encoded| -> Vec<Batch> {
        encoded.batch(32).expect("a size").collect()
    };
    assert_eq!(batches(&stream, 32), of(&held));
    for epoch in 0..2 {
        assert_eq!(
            batches(&stream.shuffle(5, epoch), 32),
            of(&held.shuffle(5, epoch))
        );
    }
}

#[test]
fn a_batch_is_found_without_those_before_it() {
    let folder = TempDir::new().expect("a folder");
    let stream = Stream::csv(table(&folder, 5000)).expect("a table");
    let stream = tokens(&stream.shuffle(1100).expect("a buffer"), 16);
    let epoch = stream.shuffle(9, 4);
    let whole = batches(&epoch, 48);
    let rows: Vec<usize> = whole.iter().flat_map(|batch| batch.rows.clone()).collect();
    assert!(epoch.indices().eq(rows.iter().copied()));
    let mut sorted = rows.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..5000), "each row once");
    assert_ne!(
        rows[..1000],
        *stream
            .shuffle(9, 5)
            .indices()
            .take(1000)
            .collect::<Vec<_>>()
    );
    for skipped in [1, 21, 22, 60, 104] {
        let mut rest = epoch.batch(48).expect("a size");
        let found = rest
            .nth(skipped)
            .expect("a batch")
            .expect("the file is there");
        assert_eq!(found, whole[skipped]);
        let next = rest.next().map(|batch| batch.expect("the file is there"));
        assert_eq!(next.as_ref(), whole.get(skipped + 1));
    }
    assert!(epoch.batch(48).expect("a size").nth(105).is_none());
    let part = batches(&epoch.part(100, 70), 48);
    let of_part: Vec<usize> = part.iter().flat_map(|batch| batch.rows.clone()).collect();
    assert_eq!(of_part, rows[100..170]);
    // The file is sorted by class; the first windows have both.
    let first = whole[..60]
        .iter()
        .map(|batch| format!("{:?}", batch.labels));
    let first = first.collect::<String>();
    assert!(first.contains('0') && first.contains('1'), "{first}");
}

/// The files a, b and c, of 700, 90 and 510 rows.
fn three_files(folder: &TempDir) -> PathBuf {
    for (name, rows) in [("a.csv", 0..700), ("b.csv", 700..790), ("c.csv", 790..1300)] {
        let row = |row: usize| format!("{},{}\n", "a".repeat(1 + row * row % 59), row % 2);
        let rows: String = rows.map(row).collect();
        write(folder, name, format!("text,label\n{rows}"));
    }
    folder.path().join("*.csv")
}

#[test]
fn workers_have_the_rows_that_they_have_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let pattern = three_files(&folder);
    let data = Dataset::csv(&pattern).expect("three files");
    let held = data.tokenize(&Letters, 64).expect("texts");
    let stream = tokens(&Stream::csv(&pattern).expect("three files"), 64);
    let of = |encoded: &stratoscope_data::Encoded| -> Vec<Batch> {
        encoded.batch(32).expect("a size").collect()
    };
    let owner = |row| usize::from((700..790).contains(&row));
    for (stream, held) in [
        (stream.clone().seen_by_each(2), held.clone().seen_by_each(2)),
        (stream.clone().by_files(2), held.clone().owned_by(2, owner)),
    ] {
        assert_eq!((stream.len(), stream.passes()), (held.len(), held.passes()));
        for positions in [0..0, 0..1300, 5..200, 170..191, 1000..9999] {
            let found = stream.shares_of(positions.clone());
            assert_eq!(found, held.shares_of(positions));
        }
        assert_eq!(batches(&stream, 32), of(&held));
        let both = [Split::Streamed(stream.clone()), Split::Held(held.clone())];
        let positions = both.map(|split| split.positions(32, Some((5, 0))));
        assert_eq!(positions[0], positions[1]);
        for epoch in 0..2 {
            let found = batches(&stream.shuffle(5, epoch), 32);
            assert_eq!(found, of(&held.shuffle(5, epoch)));
            let found = batches(&stream.by_length(32).shuffle(5, epoch), 32);
            assert_eq!(found, of(&held.clone().by_length(32).shuffle(5, epoch)));
        }
    }
}

#[test]
fn the_rows_of_a_worker_are_mixed_in_its_part_of_the_buffer() {
    let folder = TempDir::new().expect("a folder");
    let stream = Stream::csv(three_files(&folder)).expect("three files");
    assert_eq!(stream.files()[1].1, 700..790);
    let stream = tokens(&stream.shuffle(1100).expect("a buffer"), 64);
    // A run that was left does not go on with rows that are divided in another way.
    let ways = [
        stream.clone(),
        stream.clone().by_files(2),
        stream.clone().by_files(3),
        stream.clone().seen_by_each(2),
    ];
    let prints: BTreeSet<[u8; 32]> = ways.iter().map(EncodedStream::fingerprint).collect();
    assert_eq!(prints.len(), ways.len());
    for (divided, passes) in [
        (stream.clone().by_files(2), 1),
        (stream.clone().seen_by_each(2), 2),
    ] {
        let epoch = divided.shuffle(9, 1);
        let whole = batches(&epoch, 30);
        let rows: Vec<usize> = whole.iter().flat_map(|batch| batch.rows.clone()).collect();
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        let each = (0..1300).flat_map(|row| std::iter::repeat_n(row, passes));
        assert!(sorted.into_iter().eq(each), "each row {passes} times");
        for (number, batch) in whole.iter().enumerate() {
            let shares = batch.by_worker.clone().expect("they are divided");
            assert_eq!(shares.iter().sum::<usize>(), batch.rows.len());
            let positions = 30 * number..30 * number + batch.rows.len();
            assert_eq!(Some(&shares), epoch.shares_of(positions).as_ref());
            if passes == 1 {
                let is_own = |row: &usize| (700..790).contains(row);
                assert!(batch.rows[shares[0]..].iter().all(is_own));
                assert!(!batch.rows[..shares[0]].iter().any(is_own));
            }
        }
        for skipped in [1, 5, 6, 7, 30] {
            let mut rest = epoch.batch(30).expect("a size");
            let found = rest.nth(skipped).expect("a batch");
            assert_eq!(found.expect("the files are there"), whole[skipped]);
            let next = rest.next().map(|batch| batch.expect("the files are there"));
            assert_eq!(next.as_ref(), whole.get(skipped + 1));
        }
        let part = batches(&epoch.part(60, 90), 30);
        assert_eq!(part, whole[2..5]);
        let mut of_part: Vec<usize> = epoch.part(60, 90).indices().collect();
        let mut expected: Vec<usize> = part.iter().flat_map(|batch| batch.rows.clone()).collect();
        of_part.sort_unstable();
        expected.sort_unstable();
        assert_eq!(of_part, expected);
    }
}

#[test]
fn classes_are_renumbered_by_name() {
    let folder = TempDir::new().expect("a folder");
    let stream = Stream::csv(table(&folder, 600)).expect("a table");
    let names = ["spam", "eggs", "ham"].map(str::to_owned);
    let renumbered = stream.with_label_names(&names).expect("both are there");
    assert_eq!(renumbered.class_counts(), [300, 0, 300]);
    let first = renumbered.first(1).expect("a row");
    assert_eq!(first[0].class(), Some(2));
    assert_eq!(first[0].label_name.as_deref(), Some("ham"));
    let error = stream.with_label_names(&names[..2]).expect_err("no ham");
    assert_eq!(error.code, "SC0913");
    let shown = format!("{error:?}");
    assert!(shown.contains("ham") && shown.contains("300"), "{shown}");
}

#[test]
fn what_goes_wrong_on_the_way_is_an_error() {
    let folder = TempDir::new().expect("a folder");
    let path = table(&folder, 3000);
    let stream = Stream::csv(&path)
        .expect("a table")
        .shuffle(512)
        .expect("a buffer");
    assert_eq!(
        stream.clone().shuffle(0).expect_err("no buffer").code,
        "SC0915"
    );
    let encoded = tokens(&stream, 8).shuffle(1, 0);
    let mut going = encoded.batch(500).expect("a size");
    going.next().expect("a batch").expect("the file is there");
    let changed = fs::read_to_string(&path).expect("it is there") + "one more,ham\n";
    fs::write(&path, changed).expect("it can be written");
    let error = going
        .by_ref()
        .find_map(std::result::Result::err)
        .expect("it has changed");
    assert_eq!(error.code, "SC0911");
    assert!(format!("{error:?}").contains("has changed"), "{error:?}");
    assert!(going.next().is_none(), "after an error there are no more");
    fs::remove_file(&path).expect("it is there");
    assert_eq!(stream.first(1).expect_err("it is gone").code, "SC0911");
    // A line without an end does not fill the memory.
    let long = write(&folder, "long.jsonl", vec![b'x'; (64 << 20) + 1]);
    let error = Stream::jsonl(&long).expect_err("a very long line");
    assert!(format!("{error:?}").contains("64 MiB"), "{error:?}");
    let path = table(&folder, 3000);
    work::request();
    assert_eq!(Stream::csv(&path).expect_err("interrupted").code, "SC0520");
}

/// A writer of a Parquet file with small pages and these columns.
fn parquet_writer(path: &Path, columns: &str) -> SerializedFileWriter<fs::File> {
    let columns = parse_message_type(columns).expect("a schema");
    let pages = WriterProperties::builder()
        .set_data_page_row_count_limit(90)
        .set_write_batch_size(30)
        .build();
    let file = fs::File::create(path).expect("room");
    SerializedFileWriter::new(file, Arc::new(columns), Arc::new(pages)).expect("room")
}

/// Writes the next column of a group of rows: values, with their levels of definition and of repetition.
fn add_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, fs::File>,
    values: &[T::T],
    given: Option<&[i16]>,
    repeated: Option<&[i16]>,
) {
    let mut column = group.next_column().expect("room").expect("a column");
    let typed = column.typed::<T>();
    typed.write_batch(values, given, repeated).expect("room");
    column.close().expect("room");
}

/// A Parquet file with small pages: texts, classes that may be missing, numbers, and lists of names.
fn parquet(
    path: PathBuf,
    rows: impl Iterator<Item = (String, Option<&'static str>)>,
    group_rows: usize,
) -> PathBuf {
    const COLUMNS: &str = "message rows { required binary text (UTF8); optional binary label (UTF8); \
        required int32 number; optional group tags (LIST) { repeated group list { optional binary element (UTF8); } } }";
    let mut writer = parquet_writer(&path, COLUMNS);
    let mut rows = rows.enumerate().peekable();
    while rows.peek().is_some() {
        let rows: Vec<_> = rows.by_ref().take(group_rows).collect();
        let mut group = writer.next_row_group().expect("room");
        let texts: Vec<ByteArray> = rows.iter().map(|(_, row)| row.0.as_str().into()).collect();
        add_column::<ByteArrayType>(&mut group, &texts, None, None);
        let given: Vec<i16> = rows.iter().map(|(_, row)| row.1.is_some().into()).collect();
        let labels = rows.iter().filter_map(|(_, row)| row.1).map(Into::into);
        let labels: Vec<ByteArray> = labels.collect();
        add_column::<ByteArrayType>(&mut group, &labels, Some(&given), None);
        let numbers: Vec<i32> = rows.iter().map(|(row, _)| *row as i32 % 11).collect();
        add_column::<Int32Type>(&mut group, &numbers, None, None);
        // Two names, no list, an empty one, a name and nothing.
        let levels = rows.iter().flat_map(|(row, _)| match row % 4 {
            0 => vec![(3, 0), (3, 1)],
            1 => vec![(0, 0)],
            2 => vec![(1, 0)],
            _ => vec![(3, 0), (2, 1)],
        });
        let (given, repeated): (Vec<i16>, Vec<i16>) = levels.unzip();
        let names = rows.iter().flat_map(|(row, _)| match row % 4 {
            0 => vec!["old; dry", "new"],
            3 => vec![["new", "wet"][row % 2]],
            _ => Vec::new(),
        });
        let names: Vec<ByteArray> = names.map(Into::into).collect();
        add_column::<ByteArrayType>(&mut group, &names, Some(&given), Some(&repeated));
        group.close().expect("room");
    }
    writer.close().expect("room");
    path
}

/// Rows in two classes, sorted by class.
fn sorted(rows: usize) -> impl Iterator<Item = (String, Option<&'static str>)> {
    (0..rows).map(move |row| (format!("text {row}"), Some(["ham", "spam"][2 * row / rows])))
}

#[test]
fn a_stream_of_parquet_has_the_examples_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let both = |path: &Path, columns: &Columns| {
        same(
            Stream::parquet_with(path, columns),
            Dataset::parquet_with(path, columns),
        );
    };
    let named = |label: &str| Columns::new().text("text").label(label);
    for group in [3000, 512, 37] {
        let path = parquet(folder.path().join("sorted.parquet"), sorted(1700), group);
        let texts = Columns::new().text("text");
        for columns in [
            Columns::new(),
            named("number"),
            named("text"),
            texts.clone().value("number"),
            texts.clone().value("label"),
            texts.clone().labels("tags", ";"),
            texts.clone().labels("label", "a"),
            texts.clone().pair("label").unlabelled(),
            Columns::new().text("tags"),
            Columns::new().text("other"),
        ] {
            both(&path, &columns);
        }
    }
    let sets = Columns::new().text("text").labels("tags", ";");
    let path = folder.path().join("sorted.parquet");
    let sets = Stream::parquet_with(&path, &sets).expect("lists");
    assert_eq!(sets.label_names(), ["new", "old; dry", "wet"]);
    let first = sets.first(2).expect("rows");
    assert_eq!(first[0].classes(), Some(&[0, 1][..]));
    assert_eq!(first[1].classes(), Some(&[][..]));
    let gaps = (0..700).map(|row| (format!("{row}"), (row % 5 != 3).then_some("some")));
    let gaps = parquet(folder.path().join("gaps.parquet"), gaps, 300);
    both(&gaps, &Columns::new());
    both(&gaps, &Columns::new().drop_missing());
    both(&gaps, &Columns::new().fill_missing("none"));
    let pattern = folder.path().join("*.parquet");
    both(&pattern, &Columns::new().drop_missing());
    // What other writers wrote: names of classes in the file, a picture, columns of several types.
    let files: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "files"]
        .iter()
        .collect();
    for name in [
        "reviews.parquet",
        "pairs.parquet",
        "review?.parquet",
        "empty.parquet",
    ] {
        both(&files.join(name), &Columns::new());
    }
    let reviews = files.join("reviews.parquet");
    let names = Stream::parquet(&reviews).expect("reviews");
    assert_eq!(names.label_names(), ["neg", "pos"]);
    both(&reviews, &Columns::new().text("text").value("stars"));
    both(&reviews, &Columns::new().text("text").label("idx"));
    both(&reviews, &Columns::new().text("picture"));
    // A picture is no text; such rows can be left out.
    let skipping = Columns::new().text("picture").skip_bad_rows();
    let error = Stream::parquet_with(&reviews, &skipping).expect_err("no row is left");
    assert_eq!(error.code, "SC0914");
}

#[test]
fn parquet_is_read_from_any_row() {
    let folder = TempDir::new().expect("a folder");
    let lines = tokens(
        &Stream::csv(table(&folder, 5000))
            .expect("a table")
            .shuffle(1100)
            .expect("a buffer"),
        16,
    );
    let whole = batches(&lines.shuffle(9, 4), 48);
    for group in [5000, 700] {
        let path = parquet(folder.path().join("rows.parquet"), sorted(5000), group);
        let data = Dataset::parquet(&path).expect("rows");
        let stream = Stream::parquet(&path).expect("rows");
        // All rows in the buffer: the order of a data set.
        let held = data.tokenize(&Letters, 16).expect("texts").shuffle(5, 1);
        let held: Vec<Batch> = held.batch(48).expect("a size").collect();
        assert_eq!(batches(&tokens(&stream, 16).shuffle(5, 1), 48), held);
        let stream = tokens(&stream.shuffle(1100).expect("a buffer"), 16);
        assert_eq!(stream.report(), lines.report());
        let epoch = stream.shuffle(9, 4);
        assert_eq!(batches(&epoch, 48), whole);
        for skipped in [1, 21, 60, 104] {
            let mut rest = epoch.batch(48).expect("a size");
            let found = rest
                .nth(skipped)
                .expect("a batch")
                .expect("the file is there");
            assert_eq!(found, whole[skipped]);
        }
    }
}

#[test]
fn arrow_files_have_the_examples_of_a_data_set() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let both = |name: &str, columns: &Columns| {
        let path = files.join(name);
        same(
            Stream::arrow_with(&path, columns),
            Dataset::arrow_with(&path, columns),
        );
    };
    let usual = Columns::new();
    for name in [
        "reviews.arrow",
        "review?.arrow",
        "empty.arrow",
        "none.arrow",
    ] {
        both(name, &usual);
    }
    for name in ["make.py", "reviews.parquet"] {
        both(name, &usual);
    }
    for name in ["lz4.feather", "zstd.feather"] {
        for columns in [
            usual.clone(),
            usual.clone().drop_missing(),
            usual.clone().fill_missing("none"),
        ] {
            both(name, &columns);
        }
    }
    let text = |name: &str| Columns::new().text(name);
    both("reviews.arrow", &text("text").value("stars"));
    both("reviews.arrow", &text("text").label("idx"));
    both("reviews.arrow", &text("picture"));
    both("reviews.arrow", &text("day").unlabelled());
    both("words.arrow", &text("tokens").unlabelled());
    for name in [
        "text", "large", "pair", "none", "yes", "double", "small", "code", "time", "map",
    ] {
        both("kinds.arrow", &text(name).unlabelled());
    }
    for name in ["tags", "fixed"] {
        both("kinds.arrow", &text("text").pair("pair").labels(name, ";"));
    }
    let words = files.join("words.arrow");
    same(Stream::arrow(&words), Dataset::arrow(&words));

    let (path, labelled) = (files.join("lz4.feather"), usual.drop_missing());
    let data = Dataset::arrow_with(&path, &labelled).expect("rows");
    let held = data.tokenize(&Letters, 64).expect("texts").shuffle(5, 1);
    let held: Vec<Batch> = held.batch(48).expect("a size").collect();
    let stream = tokens(&Stream::arrow_with(&path, &labelled).expect("rows"), 64);
    let epoch = stream.shuffle(5, 1);
    assert!(batches(&epoch, 48) == held);
    let rest: Result<Vec<Batch>> = epoch.batch(48).expect("a size").skip(30).collect();
    assert!(rest.expect("the file is there") == held[30..]);
}

#[test]
fn damaged_parquet_is_an_error_with_its_file() {
    let folder = TempDir::new().expect("a folder");
    let path = parquet(folder.path().join("rows.parquet"), sorted(2000), 600);
    let bytes = fs::read(&path).expect("it is there");
    let refused = |bytes: &[u8]| {
        let path = write(&folder, "damaged.parquet", bytes);
        let error = Stream::parquet(&path).expect_err("it is damaged");
        assert_eq!(error.code, "SC0911", "{error:?}");
        assert!(
            format!("{error:?}").contains("damaged.parquet"),
            "{error:?}"
        );
        assert!(!error.fixes.is_empty(), "no way out: {error:?}");
    };
    for length in [0, 3, 100, bytes.len() / 2, bytes.len() - 1] {
        refused(&bytes[..length]);
    }
    // The pages are not where the file says: some of its middle is missing, and zeros are there.
    let mut hollow = bytes.clone();
    let middle = bytes.len() / 2;
    hollow[200..middle].fill(0);
    refused(&hollow);
    // Any byte may be another. Most are noticed; none ends in a panic.
    for at in (0..bytes.len()).step_by(97) {
        let mut other = bytes.clone();
        other[at] ^= 0x55;
        let path = write(&folder, "other.parquet", other);
        if let Ok(stream) = Stream::parquet(&path) {
            assert!(stream.first(usize::MAX).is_ok());
        }
    }
    let stream = Stream::parquet(&path).expect("rows");
    parquet(path, sorted(2001), 600);
    let error = stream.first(1).expect_err("it has changed");
    assert!(error.code == "SC0911" && format!("{error:?}").contains("has changed"));
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_constant() {
    use std::io::Write;

    const ROWS: usize = 150_000;
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("rows.tsv");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).expect("room"));
    writeln!(file, "text\tlabel").expect("room");
    let filler = "some words that make the row as long as a sentence is";
    for row in 0..ROWS {
        writeln!(file, "row {row}: {filler} and more {filler}\t{}", row % 7).expect("room");
    }
    drop(file);
    is_gone_through_in_little_memory((ROWS, 10), || Stream::tsv(&path));
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_constant_with_parquet() {
    const ROWS: usize = 150_000;
    let folder = TempDir::new().expect("a folder");
    let filler = "some words that make the row as long as a sentence is";
    let rows = (0..ROWS).map(|row| {
        (
            format!("row {row}: {filler} and more {filler}"),
            Some("one"),
        )
    });
    let path = parquet(folder.path().join("rows.parquet"), rows, 30_000);
    is_gone_through_in_little_memory((ROWS, 10), || Stream::parquet(&path));
}

/// Each text has four windows.
#[test]
#[cfg(target_os = "linux")]
fn memory_is_constant_with_questions() {
    use std::io::Write;

    const QUESTIONS: usize = 170_000;
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("questions.json");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).expect("room"));
    let filler = "some words that make the row as long as a sentence is";
    write!(file, "{{\"data\": [").expect("room");
    for row in 0..QUESTIONS {
        let comma = if row == 0 { "" } else { "," };
        let asked =
            "{\"question\": \"?\", \"answers\": [{\"text\": \"some\", \"answer_start\": 0}]}";
        let paragraph =
            format!("{{\"context\": \"{filler} and {filler} {row:06}\", \"qas\": [{asked}]}}");
        write!(file, "{comma}{{\"paragraphs\": [{paragraph}]}}").expect("room");
    }
    write!(file, "]}}").expect("room");
    drop(file);
    // 128 KiB of text become tokens at a time, and each letter is one.
    is_gone_through_in_little_memory((4 * QUESTIONS, 20), || Stream::squad(&path));
}

/// The most memory that this process has had, in KiB.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.expect("it is listed").parse().expect("a number")
}

/// The texts alone would be 19 MiB, and their examples and tokens several times that.
#[cfg(target_os = "linux")]
fn is_gone_through_in_little_memory(
    (rows, most_mib): (usize, u64),
    stream: impl Fn() -> Result<Stream>,
) {
    let before = peak();
    let stream = stream().expect("a table").shuffle(2048).expect("a buffer");
    let encoded = tokens(&stream, 32).shuffle(1, 0);
    let (mut found, mut bytes) = (0, 0);
    for batch in encoded.batch(64).expect("a size") {
        found += batch.expect("the file is there").size();
    }
    assert_eq!(found, rows);
    let grown = peak() - before;
    for portion in stream.portions() {
        let portion = portion.expect("the file is there");
        bytes += portion
            .examples
            .iter()
            .map(|it| it.text.len() + it.pair.as_ref().map_or(0, String::len))
            .sum::<usize>();
    }
    assert!(bytes > 18 << 20, "{bytes} bytes");
    assert!(grown < most_mib << 10, "{grown} KiB more for {bytes} bytes");
}
