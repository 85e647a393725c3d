//! Questions whose texts are cut into windows: a row is several inputs of the model.

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use stratoscope_data::Labels;

use super::*;

/// A question, its context, and the begin of its answer, the letter after the last `a`; none for every fifth.
fn row(number: usize) -> (String, String, Option<usize>) {
    let begin = number * number % 37;
    let context = format!("{}xyz{}", "a".repeat(begin), "b".repeat(number % 23));
    let question = "q".repeat(1 + number % 4);
    (
        question,
        context,
        (!number.is_multiple_of(5)).then_some(begin),
    )
}

fn line(number: usize) -> String {
    let (question, context, begin) = row(number);
    let answers = match begin {
        Some(begin) => format!("{{\"text\": [\"xy\"], \"answer_start\": [{begin}]}}"),
        None => "{\"text\": [], \"answer_start\": []}".to_owned(),
    };
    format!(
        "{{\"id\": \"{number}\", \"question\": \"{question}\", \"context\": \"{context}\", \"answers\": {answers}}}\n"
    )
}

/// A file of questions of some rows.
fn lines(folder: &TempDir, name: &str, rows: std::ops::Range<usize>) -> PathBuf {
    write(folder, name, rows.map(line).collect::<String>())
}

/// The same as Parquet, its answers as a structure of lists, or as a list of structures.
fn questions_as_parquet(path: PathBuf, rows: usize, group_rows: usize, of_lists: bool) -> PathBuf {
    const LISTS: &str = "required group answers { \
        required group text (LIST) { repeated group list { optional binary element (UTF8); } } \
        required group answer_start (LIST) { repeated group list { optional int32 element; } } }";
    const STRUCTURES: &str = "required group answers (LIST) { repeated group list { \
        required group element { required binary text (UTF8); required int32 answer_start; } } }";
    let (answers, given) = match of_lists {
        true => (LISTS, 2),
        false => (STRUCTURES, 1),
    };
    let columns = format!(
        "message rows {{ required binary question (UTF8); required binary context (UTF8); {answers} }}"
    );
    let mut writer = parquet_writer(&path, &columns);
    for first in (0..rows).step_by(group_rows) {
        let rows: Vec<_> = (first..(first + group_rows).min(rows)).map(row).collect();
        let mut group = writer.next_row_group().expect("room");
        let levels: Vec<i16> = rows
            .iter()
            .map(|row| if row.2.is_some() { given } else { 0 })
            .collect();
        let repeated = vec![0; rows.len()];
        let texts = |of: fn(&(String, String, Option<usize>)) -> &str| -> Vec<ByteArray> {
            rows.iter().map(|row| of(row).into()).collect()
        };
        for texts in [texts(|row| &row.0), texts(|row| &row.1)] {
            add_column::<ByteArrayType>(&mut group, &texts, None, None);
        }
        let starts: Vec<i32> = rows.iter().filter_map(|row| Some(row.2? as i32)).collect();
        let found: Vec<ByteArray> = starts.iter().map(|_| "xy".into()).collect();
        let (given, repeated) = (Some(&levels[..]), Some(&repeated[..]));
        add_column::<ByteArrayType>(&mut group, &found, given, repeated);
        add_column::<Int32Type>(&mut group, &starts, given, repeated);
        group.close().expect("room");
    }
    writer.close().expect("room");
    path
}

#[test]
fn questions_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let path = lines(&folder, "questions.jsonl", 0..1100);
    same(Stream::jsonl(&path), Dataset::jsonl(&path));
    let stream = Stream::jsonl(&path).expect("questions");
    assert!(stream.has_answers() && !stream.is_tagged());
    assert!(stream.to_plain().contains("some of them without an answer"));
    let first = stream.first(3).expect("rows");
    assert_eq!(first[0].answers(), Some(&[][..]));
    assert_eq!(first[2].answers().map(|it| it[0].range.clone()), Some(4..6));
    let pattern = folder.path().join("*.jsonl");
    lines(&folder, "more.jsonl", 7..8);
    same(Stream::jsonl(&pattern), Dataset::jsonl(&pattern));

    for (of_lists, group) in [(true, 1100), (true, 400), (false, 250)] {
        let path = folder.path().join("questions.parquet");
        let path = questions_as_parquet(path, 1100, group, of_lists);
        same(Stream::parquet(&path), Dataset::parquet(&path));
        let rows = |stream: Stream| -> Vec<_> {
            let rows = stream.first(usize::MAX).expect("rows").examples.into_iter();
            rows.map(|it| (it.text, it.pair, it.annotation)).collect()
        };
        let found = rows(Stream::parquet(&path).expect("questions"));
        assert_eq!(
            found,
            rows(Stream::jsonl(folder.path().join("questions.jsonl")).expect("questions"))
        );
    }
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let (parquet, arrow) = (
        files.join("questions.parquet"),
        files.join("questions.arrow"),
    );
    same(Stream::parquet(&parquet), Dataset::parquet(&parquet));
    same(Stream::arrow(&arrow), Dataset::arrow(&arrow));
    // Named columns are those of texts.
    let columns = Columns::new().text("question").pair("context").unlabelled();
    same(
        Stream::jsonl_with(&path, &columns),
        Dataset::jsonl_with(&path, &columns),
    );
    same(
        Stream::arrow_with(&arrow, &columns),
        Dataset::arrow_with(&arrow, &columns),
    );
}

#[test]
fn answers_are_written_in_several_ways_and_checked() {
    let folder = TempDir::new().expect("a folder");
    let read = |answers: &str| {
        let row = format!(
            "{{\"id\": 2, \"question\": \"q\", \"context\": \"é xyz\", \"answers\": {answers}}}\n"
        );
        let path = write(&folder, "one.jsonl", format!("{}\n\n{row}", line(1)));
        let (stream, data) = (Stream::jsonl(&path), Dataset::jsonl(&path));
        same(stream.clone(), data);
        stream.and_then(|stream| stream.first(2)).map(|rows| {
            let answers = rows[1].answers().expect("a question").iter();
            answers.map(|it| it.range.clone()).collect::<Vec<_>>()
        })
    };
    let found = |answers: &str| read(answers).expect("answers");
    assert_eq!(
        found("{\"text\": [\"xy\", \"z\"], \"answer_start\": [2, 4]}"),
        [3..5, 5..6]
    );
    assert_eq!(
        found("[{\"text\": \"xy\", \"answer_start\": 2, \"id\": 7}]"),
        vec![3..5]
    );
    for none in [
        "[]",
        "null",
        "{\"text\": [], \"answer_start\": []}",
        "{\"text\": null, \"answer_start\": null}",
    ] {
        assert!(found(none).is_empty(), "{none}");
    }
    for (code, answers, said) in [
        (
            "SC0432",
            "{\"text\": [\"xy\"], \"answer_start\": [3]}",
            "xy",
        ),
        (
            "SC0432",
            "{\"text\": [\"\"], \"answer_start\": [0]}",
            "SC0432",
        ),
        (
            "SC0432",
            "{\"text\": [\"xy\"], \"answer_start\": [900]}",
            "900",
        ),
        (
            "SC0911",
            "{\"text\": [\"xy\"], \"answer_start\": []}",
            "1 answers begin at 0 places",
        ),
        (
            "SC0911",
            "{\"text\": [\"xy\"], \"answer_start\": [-1]}",
            "no number of characters",
        ),
        (
            "SC0911",
            "{\"text\": \"xy\", \"answer_start\": 2}",
            "has no `text` with their `answer_start`",
        ),
        ("SC0911", "[\"xy\"]", "has no `text`"),
        ("SC0911", "\"xy\"", "has no `text`"),
    ] {
        let error = read(answers).expect_err(answers);
        assert_eq!(error.code, code, "{error}");
        assert!(format!("{error:?}").contains(said), "{error:?}");
    }
}

#[test]
fn batches_of_windows_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    let path = lines(&folder, "questions.jsonl", 0..1400);
    let held = Dataset::jsonl(&path).expect("questions");
    let held = held.tokenize_questions(&Letters, 12, 2).expect("places");
    let stream = Stream::jsonl(&path).expect("questions");
    let stream = tokens(&stream, 12);
    assert!(held.len() > 3000, "{} windows", held.len());
    assert_eq!(stream.len(), held.len());
    assert_eq!(stream.report(), held.report());
    let of = |encoded: &stratoscope_data::Encoded| -> Vec<Batch> {
        encoded.batch(32).expect("a size").collect()
    };
    assert!(batches(&stream, 32) == of(&held));
    for epoch in 0..2 {
        let expected = of(&held.shuffle(5, epoch));
        let order = stream.shuffle(5, epoch);
        assert!(batches(&order, 32) == expected, "epoch {epoch}");
        let rest: Result<Vec<Batch>> = order.batch(32).expect("a size").skip(17).collect();
        assert!(rest.expect("the file is there") == expected[17..]);
        let grouped = batches(&stream.by_length(16).shuffle(5, epoch), 16);
        let expected = held.clone().by_length(16).shuffle(5, epoch);
        let expected: Vec<Batch> = expected.batch(16).expect("a size").collect();
        assert!(grouped == expected, "epoch {epoch}");
    }
    let part = batches(&stream.shuffle(5, 0).part(100, 70), 32);
    assert!(part[..2] == of(&held.shuffle(5, 0).part(100, 70, &BTreeSet::new()))[..2]);
}

/// SQuAD's document of some rows, three questions a paragraph at most, two paragraphs an article.
fn document(rows: usize) -> String {
    let all: Vec<_> = (0..rows).map(row).collect();
    let paragraph = |rows: &[(String, String, Option<usize>)]| {
        let question = |(number, (question, _, begin)): (
            usize,
            &(String, String, Option<usize>),
        )| {
            // All of them are about the context of the first.
            let begin = begin.and(rows[0].2);
            match begin {
                Some(begin) => format!(
                    "{{\"id\": {number}, \"question\": \"{question} \\\"}}]\", \"answers\": [{{\"text\": \"xy\", \"answer_start\": {begin}}}]}}"
                ),
                None => format!(
                    "{{\"question\": \"{question}\", \"is_impossible\": true, \"plausible_answers\": [{{}}]}}"
                ),
            }
        };
        let questions: Vec<String> = rows.iter().enumerate().map(question).collect();
        format!(
            "{{\"qas\": [{}],\n \"context\": \"{}\"}}",
            questions.join(", "),
            rows[0].1
        )
    };
    let articles = all.chunks(6).enumerate().map(|(number, rows)| {
        let size = 1 + number % 3;
        let paragraphs: Vec<String> = rows.chunks(size).map(paragraph).collect();
        format!(
            "{{\"title\": \"{{[\", \"paragraphs\": [{}], \"n\": -1.5e3}}",
            paragraphs.join(",\n")
        )
    });
    let articles: Vec<String> = articles.collect();
    format!(
        "{{\"version\": \"2.0\", \"more\": {{\"data\": [[1]]}}, \"data\": [{}], \"last\": null}}\n",
        articles.join(", ")
    )
}

#[test]
fn a_document_of_squad_is_read_from_any_question() {
    let folder = TempDir::new().expect("a folder");
    for (name, content) in [
        ("all.json", document(2000)),
        ("mark.json", format!("\u{feff}{}", document(7))),
        ("none.json", "{\"data\": []}".to_owned()),
        (
            "hollow.json",
            "{\"data\": [{\"paragraphs\": [{\"context\": \"a\", \"qas\": []}]}]}".to_owned(),
        ),
    ] {
        let path = write(&folder, name, content);
        same(Stream::squad(&path), Dataset::squad(&path));
    }
    let path = folder.path().join("all.json");
    let stream = Stream::squad(&path).expect("questions");
    let held = Dataset::squad(&path).expect("questions");
    let held = held.tokenize_questions(&Letters, 12, 2).expect("places");
    let expected = held.shuffle(5, 1).batch(32).expect("a size");
    let expected: Vec<Batch> = expected.collect();
    let all = tokens(&stream, 12);
    assert!(batches(&all.shuffle(5, 1), 32) == expected);
    // Blocks that begin within a paragraph.
    let epoch = tokens(&stream.shuffle(512).expect("a buffer"), 12).shuffle(1, 1);
    let whole = batches(&epoch, 32);
    assert_eq!(whole.iter().map(Batch::size).sum::<usize>(), held.len());
    let last = whole.len() - 1;
    let found = epoch.batch(32).expect("a size").nth(last).expect("a batch");
    assert!(found.expect("the file is there") == whole[last]);

    let good = document(7);
    for (content, said) in [
        ("", "it is not an object"),
        ("[]", "it is not an object"),
        ("{\"version\": 2}", "missing field `data`"),
        ("{\"data\": {}}", "`{` before byte 10"),
        ("{\"data\": [1]}", "`1` before byte 11"),
        ("{\"data\": [] []", "`[` before byte"),
        ("{\"data\": []} 1", "`1` before byte"),
        (
            "{\"data\": [{\"paragraphs\": [{\"qas\": []}]}]}",
            "missing field `context`, behind byte 26",
        ),
        (
            "{\"data\": [{\"title\": \"a\"}]}",
            "missing field `paragraphs`",
        ),
        ("{\"data\": [], \"data\": []}", "duplicate field `data`"),
        (
            "{\"data\": [{\"paragraphs\": [], \"paragraphs\": []}]}",
            "duplicate field `paragraphs`",
        ),
        ("{\"more\": [1}, \"data\": []}", "behind byte 9"),
        ("{\"more\": [1}], \"data\": []}", "behind byte 9"),
        (
            "{\"n\": 1 2, \"data\": []}",
            "trailing characters, behind byte 6",
        ),
        (
            "{\"n\": nil, \"data\": []}",
            "expected ident, behind byte 6",
        ),
        (&good[..good.len() / 2], "it ends at byte"),
        (&good[..good.len() - 2], "it ends at byte"),
    ] {
        let path = write(&folder, "bad.json", content);
        let error = Stream::squad(&path).expect_err(content);
        assert_eq!(error.code, "SC0911", "{content}: {error}");
        assert!(error.message.contains(said), "{content}: {error}");
    }
    let path = write(&folder, "bad.json", b"{\"n\": \"\xff\", \"data\": []}");
    let error = Stream::squad(&path).expect_err("no UTF-8");
    assert!(error.message.contains("no UTF-8 text"), "{error}");
    let path = write(
        &folder,
        "escaped.json",
        document(7).replace("\"data\": [{", "\"d\\u0061ta\": [{"),
    );
    same(Stream::squad(&path), Dataset::squad(&path));
    let outside = good.replace("\"answer_start\": 1}", "\"answer_start\": 900}");
    let path = write(&folder, "outside.json", outside);
    same(Stream::squad(&path), Dataset::squad(&path));
    assert_eq!(
        Stream::squad(&path).expect_err("it is outside").code,
        "SC0432"
    );
}

#[test]
fn every_window_comes_once_from_a_small_buffer() {
    let folder = TempDir::new().expect("a folder");
    let path = lines(&folder, "questions.jsonl", 0..5000);
    let stream = Stream::jsonl(&path).expect("questions");
    let stream = tokens(&stream.shuffle(1100).expect("a buffer"), 12);
    let epoch = stream.shuffle(9, 4);
    let whole = batches(&epoch, 48);
    let windows = |batches: &[Batch]| -> Vec<(usize, usize)> {
        let of_batch = |batch: &Batch| match &batch.labels {
            Labels::Spans(labels) => {
                assert!(labels.has_unanswerable);
                let windows = labels.windows.iter();
                windows
                    .map(|it| (it.passage.example, it.part))
                    .collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        batches.iter().flat_map(of_batch).collect()
    };
    let mixed = windows(&whole);
    let mut sorted = mixed.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, windows(&batches(&stream, 48)), "each window once");
    assert_ne!(sorted, mixed);
    assert!(epoch.indices().take(500).any(|input| input > 5000));
    for skipped in [1, 21, 60, whole.len() - 1] {
        let mut rest = epoch.batch(48).expect("a size");
        let found = rest
            .nth(skipped)
            .expect("a batch")
            .expect("the file is there");
        assert!(found == whole[skipped], "after {skipped}");
    }
    // The file is the same, its rows are divided into other windows.
    let others = tokens(stream.stream(), 20);
    assert!(others.len() < stream.len() && others.fingerprint() != stream.fingerprint());
}

#[test]
fn workers_have_the_windows_that_they_have_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    for (name, rows) in [
        ("a.jsonl", 0..700),
        ("b.jsonl", 700..790),
        ("c.jsonl", 790..1300),
    ] {
        lines(&folder, name, rows);
    }
    let pattern = folder.path().join("*.jsonl");
    let data = Dataset::jsonl(&pattern).expect("questions");
    let owners: Vec<usize> = data
        .examples
        .iter()
        .map(|it| {
            usize::from(
                it.file
                    .as_deref()
                    .is_some_and(|file| file.ends_with("b.jsonl")),
            )
        })
        .collect();
    let held = data.tokenize_questions(&Letters, 12, 2).expect("places");
    let stream = tokens(&Stream::jsonl(&pattern).expect("questions"), 12);
    let same = |held: stratoscope_data::Encoded, stream: EncodedStream| {
        assert_eq!(stream.len(), held.len());
        assert_eq!(stream.shares_of(0..100), held.shares_of(0..100));
        let expected = held.shuffle(3, 1).batch(16).expect("a size");
        let expected: Vec<Batch> = expected.collect();
        assert!(batches(&stream.shuffle(3, 1), 16) == expected);
    };
    same(held.clone().seen_by_each(2), stream.clone().seen_by_each(2));
    same(held.owned_by(2, |row| owners[row]), stream.by_files(2));
}

/// A model that hides words takes the questions as pairs of texts.
#[test]
fn questions_are_texts_where_nobody_asks_for_answers() {
    let folder = TempDir::new().expect("a folder");
    let path = lines(&folder, "questions.jsonl", 0..700);
    let stream = Stream::jsonl(&path).expect("questions");
    let encode = |example: &stratoscope_data::Example| {
        encode_example(&Letters, example, 12, TokensOf::Texts)
    };
    let as_texts = StreamTokens {
        encode: Arc::new(encode),
        tokenizer: &Letters,
        max_length: 12,
        masking: None,
        keeps_lengths: false,
    };
    let encoded = stream.tokenize(as_texts, &mut |_, _| Ok(()));
    let encoded = encoded.expect("it can be tokenized");
    assert_eq!((encoded.len(), encoded.report().rows), (700, 700));
    let rows: usize = batches(&encoded.shuffle(3, 0), 32)
        .iter()
        .map(Batch::size)
        .sum();
    assert_eq!(rows, 700);
}

/// What other writers make of missing answers: nulls in place of an answer, of its begin, of all answers.
#[test]
fn missing_answers_are_those_of_a_data_set() {
    let folder = TempDir::new().expect("a folder");
    const LISTS: &str = "optional group answers { \
        optional group text (LIST) { repeated group list { optional binary element (UTF8); } } \
        optional group answer_start (LIST) { repeated group list { optional int32 element; } } }";
    // Of each answer its levels: 4 is a value, 3 a null in a list, 2 an empty list, 1 no list, 0 nothing at all.
    let file = |name: &str, answers: &[(&str, i16, i32, i16)]| {
        let columns = format!(
            "message rows {{ required binary question (UTF8); required binary context (UTF8); {LISTS} }}"
        );
        let path = folder.path().join(name);
        let mut writer = parquet_writer(&path, &columns);
        let mut group = writer.next_row_group().expect("room");
        let rows = answers.len();
        for text in ["q", "abc"] {
            let texts: Vec<ByteArray> = vec![text.into(); rows];
            add_column::<ByteArrayType>(&mut group, &texts, None, None);
        }
        let repeated = vec![0; rows];
        let repeated = Some(&repeated[..]);
        let given = answers.iter().filter(|it| it.1 == 4);
        let texts: Vec<ByteArray> = given.map(|it| it.0.into()).collect();
        let levels: Vec<i16> = answers.iter().map(|it| it.1).collect();
        add_column::<ByteArrayType>(&mut group, &texts, Some(&levels), repeated);
        let given = answers.iter().filter(|it| it.3 == 4);
        let starts: Vec<i32> = given.map(|it| it.2).collect();
        let levels: Vec<i16> = answers.iter().map(|it| it.3).collect();
        add_column::<Int32Type>(&mut group, &starts, Some(&levels), repeated);
        group.close().expect("room");
        writer.close().expect("room");
        path
    };
    for (name, answers) in [
        (
            "missing",
            vec![("b", 4, 1, 4), ("", 2, 0, 2), ("", 1, 0, 1), ("", 0, 0, 0)],
        ),
        ("no-text", vec![("b", 4, 1, 4), ("", 3, 1, 4)]),
        ("no-begin", vec![("b", 4, 0, 3)]),
    ] {
        let path = file(name, &answers);
        same(Stream::parquet(&path), Dataset::parquet(&path));
    }
    let path = folder.path().join("missing");
    assert_eq!(Stream::parquet(path).expect("questions").len(), 4);
    // All of them missing, in a column of texts.
    let path = folder.path().join("none.parquet");
    let columns = "message rows { required binary question (UTF8); required binary context (UTF8); optional binary answers (UTF8); }";
    let mut writer = parquet_writer(&path, columns);
    let mut group = writer.next_row_group().expect("room");
    for levels in [None, None, Some([0_i16, 0])] {
        let texts: Vec<ByteArray> = match levels {
            None => vec!["q".into(), "c".into()],
            Some(_) => Vec::new(),
        };
        let levels = levels.as_ref().map(|levels| &levels[..]);
        add_column::<ByteArrayType>(&mut group, &texts, levels, None);
    }
    group.close().expect("room");
    writer.close().expect("room");
    same(Stream::parquet(&path), Dataset::parquet(&path));
}
