//! Files in every format, good and bad: what is read, and which diagnostic says what is wrong.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use stratoscope_data::{
    Columns, Dataset, Glue, Label, debian_entities, debian_pairs, debian_questions, debian_sections,
};
use stratoscope_diagnostics::{Diagnostic, Place, Result};
use tempfile::TempDir;

/// A folder with one file in it.
fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    fs::write(&path, content).expect("it can be written to");
    (folder, path)
}

/// The diagnostic, whose code, line in the file and facts are as expected.
fn check(result: Result<Dataset>, code: &str, line: Option<usize>, facts: &[&str]) -> Diagnostic {
    let error = *result.expect_err("it is refused");
    assert_eq!(error.code, code, "{error}");
    let in_file = error.labels.iter().find_map(|label| match &label.place {
        Place::File { line, .. } => Some(*line),
        _ => None,
    });
    assert_eq!(in_file.flatten(), line, "{error:?}");
    let text = format!("{error:?}");
    for fact in facts {
        assert!(text.contains(fact), "`{fact}` is not in {text}");
    }
    assert!(!error.fixes.is_empty(), "no way out is offered: {error:?}");
    error
}

#[test]
fn the_embedded_sets_are_whole() {
    let (train, dev) = debian_sections().unwrap();
    assert_eq!((train.len(), dev.len()), (2000, 400));
    let names = [
        "admin", "fonts", "games", "graphics", "math", "net", "science", "sound",
    ];
    assert_eq!(train.label_names, names);
    assert_eq!(dev.label_names, names);
    assert_eq!(train.class_counts(), [250; 8]);
    assert_eq!(dev.class_counts(), [50; 8]);
    assert_eq!(train.overlap(&dev), []);
    assert_eq!(
        train.examples[0].text,
        "Ambisonic decoder for first and second order"
    );
    assert_eq!(train.examples[0].class(), Some(7));

    let (train, dev) = debian_pairs().unwrap();
    assert_eq!((train.len(), dev.len()), (1600, 400));
    assert_eq!(train.class_counts(), [800; 2]);
    assert_eq!(train.label_names, ["different_source", "same_source"]);
    assert_eq!(train.overlap(&dev), []);
    assert!(train.examples.iter().all(|example| example.pair.is_some()));

    let (train, dev) = debian_entities().unwrap();
    assert_eq!((train.len(), dev.len()), (800, 200));
    let tags = ["O", "B-PACKAGE", "B-PURPOSE", "I-PURPOSE", "B-SECTION"];
    assert_eq!(train.label_names, tags);
    assert_eq!(dev.label_names, tags);
    assert_eq!(train.overlap(&dev), []);

    // Every answer stands in its paragraph, or the reader refuses it.
    let (train, dev) = debian_questions().unwrap();
    assert_eq!((train.len(), dev.len()), (1280, 400));
    let contexts = |data: &Dataset| -> BTreeSet<String> {
        data.examples
            .iter()
            .filter_map(|it| it.pair.clone())
            .collect()
    };
    assert_eq!((contexts(&train).len(), contexts(&dev).len()), (320, 100));
    assert!(contexts(&train).is_disjoint(&contexts(&dev)));
}

#[test]
fn tsv_has_no_quoting() {
    let (_folder, path) = file(
        "t.tsv",
        "text\tlabel\n\"No Tofu\" fonts\tb\r\n\"open\ta\n\n",
    );
    let data = Dataset::tsv(path).unwrap();
    assert_eq!(data.examples[0].text, "\"No Tofu\" fonts");
    assert_eq!(data.examples[1].text, "\"open");
    assert_eq!(data.label_names, ["a", "b"]);
    assert_eq!((data.examples[1].row, data.examples[1].line), (1, Some(3)));
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_name() {
    let (_folder, path) = file("t.tsv", "\u{feff}text\tlabel\nx\ty\n");
    assert_eq!(Dataset::tsv(path).unwrap().len(), 1);
}

#[test]
fn columns_can_be_named() {
    let (_folder, path) = file("t.tsv", "question\tanswer\tscore\nq\ta\t0.5\nr\tb\t4\n");
    let columns = Columns::new()
        .text("question")
        .pair("answer")
        .value("score");
    let data = Dataset::tsv_with(&path, &columns).unwrap();
    assert_eq!(data.examples[0].pair.as_deref(), Some("a"));
    assert_eq!(data.examples[1].label, Some(Label::Value(4.0)));
    assert!(data.label_names.is_empty());
    let columns = Columns::new().text("question").unlabelled();
    assert_eq!(
        Dataset::tsv_with(&path, &columns).unwrap().examples[0].label,
        None
    );
    let columns = Columns::new().text("question").value("answer");
    check(
        Dataset::tsv_with(&path, &columns),
        "SC0911",
        Some(2),
        &["`a`", "answer", "number"],
    );
}

#[test]
fn csv_has_quoting() {
    let (_folder, path) = file("t.csv", "text,label\n\"a, \"\"b\"\"\nc\",x\nd,y\n");
    let data = Dataset::csv(path).unwrap();
    assert_eq!(data.examples[0].text, "a, \"b\"\nc");
    assert_eq!((data.examples[1].row, data.examples[1].line), (1, Some(4)));
}

#[test]
fn jsonl_takes_strings_numbers_and_booleans_as_classes() {
    let (_folder, path) = file(
        "t.jsonl",
        "{\"text\": \"a\\tb\", \"label\": 10}\n\n{\"label\": 9, \"text\": \"c\", \"more\": []}\n",
    );
    let data = Dataset::jsonl(path).unwrap();
    assert_eq!(data.examples[0].text, "a\tb");
    assert_eq!(data.label_names, ["9", "10"]);
    assert_eq!(data.examples[1].line, Some(3));
}

#[test]
fn mrpc_is_read_in_both_layouts() {
    let head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n";
    let rows = "1\t7\t8\tHe said \"no\".\tHe refused.\n0\t9\t10\tA.\tB.\n";
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| fs::write(folder.path().join(name), format!("{head}{rows}")).unwrap();
    write("msr_paraphrase_train.txt");
    write("msr_paraphrase_test.txt");
    let (train, dev) = Glue::mrpc(folder.path()).unwrap();
    assert_eq!(train.label_names, ["not_equivalent", "equivalent"]);
    assert_eq!(dev.examples[0].class(), Some(1));
    assert_eq!(dev.examples[0].pair.as_deref(), Some("He refused."));
    write("train.tsv");
    write("dev.tsv");
    let (train, _) = Glue::mrpc(folder.path()).unwrap();
    assert!(train.source.ends_with("train.tsv"), "{}", train.source);
}

/// Each task of GLUE: its folder's files, the call, and what the first row of the last split becomes.
#[test]
fn the_tasks_of_glue() {
    type Read = fn(&std::path::Path) -> Result<(Dataset, Dataset)>;
    type Case = (
        &'static str,
        Read,
        &'static [&'static str],
        &'static str,
        Option<&'static str>,
    );
    let mnli: Read = |folder| Glue::mnli(folder).map(|(train, _, other)| (train, other));
    let cases: [Case; 8] = [
        (
            "gj04\t1\t\tIt rains.\ngj04\t0\t*\tRains it \"yes.\n",
            |folder| Glue::cola(folder),
            &["unacceptable", "acceptable"],
            "It rains.",
            None,
        ),
        (
            "sentence\tlabel\na fine film \t1\nslow \t0\n",
            |folder| Glue::sst2(folder),
            &["negative", "positive"],
            "a fine film ",
            None,
        ),
        (
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tHow?\tIn which way?\t1\n2\t4\t5\tWhy?\tWhen?\t0\n",
            |folder| Glue::qqp(folder),
            &["not_duplicate", "duplicate"],
            "How?",
            Some("In which way?"),
        ),
        (
            "index\tgenre\tsentence1\tsentence2\tscore\n0\tnews\tA plane.\tAn airplane.\t4.800\n",
            |folder| Glue::stsb(folder),
            &[],
            "A plane.",
            Some("An airplane."),
        ),
        (
            "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n0\tfiction\tIt is red.\tIt is blue.\tneutral\tcontradiction\n1\tfiction\tIt is red.\tIt has a color.\tneutral\tentailment\n",
            mnli,
            &["entailment", "neutral", "contradiction"],
            "It is red.",
            Some("It is blue."),
        ),
        (
            "index\tquestion\tsentence\tlabel\n0\tWho?\tAda did.\tentailment\n",
            |folder| Glue::qnli(folder),
            &["entailment", "not_entailment"],
            "Who?",
            Some("Ada did."),
        ),
        (
            "index\tsentence1\tsentence2\tlabel\n0\tA cat sat.\tA dog sat.\tnot_entailment\n",
            |folder| Glue::rte(folder),
            &["entailment", "not_entailment"],
            "A cat sat.",
            Some("A dog sat."),
        ),
        (
            "index\tsentence1\tsentence2\tlabel\n0\tIt fell.\tThe cup fell.\t1\n",
            |folder| Glue::wnli(folder),
            &["not_entailment", "entailment"],
            "It fell.",
            Some("The cup fell."),
        ),
    ];
    for (content, read, names, text, pair) in cases {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "train.tsv",
            "dev.tsv",
            "dev_matched.tsv",
            "dev_mismatched.tsv",
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let (train, dev) = read(folder.path()).unwrap_or_else(|error| panic!("{content}: {error}"));
        assert_eq!(
            (&train.label_names[..], train.len()),
            (&dev.label_names[..], dev.len())
        );
        assert_eq!(dev.label_names, names, "{content}");
        assert_eq!((dev[0].text.as_str(), dev[0].pair.as_deref()), (text, pair));
        match names {
            [] => assert_eq!(dev[0].label, Some(Label::Value(4.8))),
            ["entailment", "neutral", _] => assert_eq!(dev[0].class(), Some(2)),
            [_, "not_entailment"] => assert_eq!(dev[0].class(), Some(usize::from(text != "Who?"))),
            _ => assert_eq!(dev[0].class(), Some(1), "{content}"),
        }
        // A class of another task is named.
        if !names.is_empty() {
            let other = content
                .replace("\t1\n", "\t7\n")
                .replace("gj04\t1", "gj04\t7")
                .replace("entailment\n", "maybe\n");
            fs::write(folder.path().join("train.tsv"), other).unwrap();
            let refused = read(folder.path())
                .map(|(train, _)| train)
                .expect_err("an unknown class");
            assert!(
                ["SC0913"].contains(&refused.code.as_str()),
                "{content}: {refused}"
            );
        }
    }
}

#[test]
fn lines_of_text() {
    let (_folder, path) = file(
        "lines.txt",
        "first line\r\n\n  \nsecond \"line\"\twith a tab\n",
    );
    let data = Dataset::text(&path).unwrap();
    assert_eq!(data.len(), 2);
    assert_eq!(data[1].text, "second \"line\"\twith a tab");
    assert_eq!((data[1].line, data[1].label), (Some(4), None));
    let (_folder, path) = file("empty.txt", "\n\n");
    check(Dataset::text(path), "SC0914", None, &["empty.txt"]);
    let (_folder, path) = file("latin.txt", b"fine\ncaf\xe9\n");
    check(Dataset::text(path), "SC0911", Some(2), &["UTF-8"]);
}

#[test]
fn a_ragged_row_is_named_by_its_line() {
    let (_folder, path) = file("t.tsv", "text\tlabel\na\tx\nb\nc\n");
    check(
        Dataset::tsv(path),
        "SC0912",
        Some(3),
        &["header has 2", "1 field", "t.tsv", "rows like that"],
    );
    let (_folder, path) = file("t.tsv", "text\tlabel\na\tx\ty\n");
    check(Dataset::tsv(path), "SC0912", Some(2), &["3 fields"]);
    let (_folder, path) = file("t.csv", "text,label\n\"a\nb\",x\nc\n");
    check(Dataset::csv(path), "SC0912", Some(4), &["1 field"]);
    let (_folder, path) = file(
        "t.jsonl",
        "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\"}\n",
    );
    check(
        Dataset::jsonl(path),
        "SC0911",
        Some(2),
        &["`label` of the first line"],
    );
    let (_folder, path) = file("t.jsonl", "{\"text\": \"a\", \"label\": 1}\n[1]\n");
    check(Dataset::jsonl(path), "SC0911", Some(2), &["JSON object"]);
}

#[test]
fn an_unknown_label_is_named_with_row_and_known_ones() {
    let (_train_folder, train) = file("train.tsv", "text\tlabel\na\tham\nb\tspam\n");
    let (_dev_folder, dev) = file("dev.tsv", "text\tlabel\na\tham\nb\tspma\n");
    let train = Dataset::tsv(train).unwrap();
    let dev = Dataset::tsv(dev).unwrap().with_labels_of(&train);
    check(dev, "SC0913", Some(3), &["spma", "ham", "spam", "dev.tsv"]);
}

#[test]
fn a_missing_column_is_named_with_those_that_are_there() {
    let (_folder, path) = file("t.tsv", "text\ttarget\na\tx\n");
    check(
        Dataset::tsv(path),
        "SC0313",
        Some(1),
        &["label", "text", "target"],
    );
    let (_folder, path) = file("t.csv", "a,b\n1,2\n");
    check(Dataset::csv(path), "SC0313", Some(1), &["text"]);
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    check(
        Dataset::tsv(folder.path().join("none.tsv")),
        "SC0911",
        None,
        &["none.tsv"],
    );
    check(Dataset::tsv(folder.path()), "SC0911", None, &["folder"]);
    let (_folder, path) = file("t.tsv", b"text\tlabel\na\tx\n\xff\xfe\ty\n");
    check(Dataset::tsv(path), "SC0911", Some(3), &["UTF-8"]);
}

#[test]
fn empty_files() {
    for content in ["", "\n", "text\tlabel\n", "text\tlabel\n\n\n"] {
        let (_folder, path) = file("t.tsv", content);
        check(Dataset::tsv(path), "SC0914", None, &["t.tsv"]);
    }
    let (_folder, path) = file("t.csv", "");
    check(Dataset::csv(path), "SC0914", None, &[]);
    let (_folder, path) = file("t.jsonl", "\n \n");
    check(Dataset::jsonl(path), "SC0914", None, &[]);
}

/// An empty, blank or null label is no class, in any format; it is left out or filled in where that is said.
#[test]
fn rows_without_a_label_are_named() {
    type Read = fn(&PathBuf, &Columns) -> Result<Dataset>;
    let formats: [(&str, &str, Read, usize); 4] = [
        (
            "gaps.tsv",
            "text\tlabel\na fine game\tgames\na mail server\t\na song\t \na font\tfonts\n",
            |path, columns| Dataset::tsv_with(path, columns),
            3,
        ),
        (
            "gaps.csv",
            "text,label\na fine game,games\na mail server,\na song,\"\"\na font,fonts\n",
            |path, columns| Dataset::csv_with(path, columns),
            3,
        ),
        (
            "gaps.jsonl",
            "{\"text\": \"a fine game\", \"label\": \"games\"}\n\
             {\"text\": \"a mail server\", \"label\": null}\n\
             {\"text\": \"a song\", \"label\": \"\"}\n\
             {\"text\": \"a font\", \"label\": \"fonts\"}\n",
            |path, columns| Dataset::jsonl_with(path, columns),
            2,
        ),
        (
            "named.csv",
            "text,kind\na fine game,games\na mail server,\na song,\na font,fonts\n",
            |path, columns| Dataset::csv_with(path, &columns.clone().label("kind")),
            3,
        ),
    ];
    for (name, content, read, line) in formats {
        let (_folder, path) = file(name, content);
        let columns = Columns::new();
        let facts = ["2 of 4 rows have no label", "drop_missing", "fill_missing"];
        check(read(&path, &columns), "SC0416", Some(line), &facts);
        let dropped = read(&path, &columns.clone().drop_missing()).expect("two rows are left");
        assert_eq!(dropped.label_names, ["fonts", "games"], "{name}");
        assert_eq!(dropped.len(), 2, "{name}");
        let filled = read(&path, &columns.fill_missing("unknown")).expect("four rows");
        assert_eq!(filled.label_names, ["fonts", "games", "unknown"], "{name}");
        assert_eq!(filled.class_counts(), [1, 1, 2], "{name}");
    }
    let (_folder, path) = file("numbers.tsv", "text\tscore\na\t0.5\nb\t\n");
    let scores = Columns::new().value("score");
    check(
        Dataset::tsv_with(&path, &scores),
        "SC0416",
        Some(3),
        &["1 of 2 rows has"],
    );
    let filled = Dataset::tsv_with(&path, &scores.fill_missing("0.25")).expect("two numbers");
    assert_eq!(filled.examples[1].label, Some(Label::Value(0.25)));
    let (_folder, path) = file("none.tsv", "text\tlabel\na\t\n");
    let none = Dataset::tsv_with(&path, &Columns::new().drop_missing());
    assert_eq!(none.expect_err("no row is left").code, "SC0914");
}

#[test]
fn labels_in_memory_are_there_or_missing() {
    let rows = Dataset::from_rows(["a", "b", "c"], ["x", "", "y"]);
    check(rows, "SC0416", None, &["row 1", "1 of 3 rows"]);
    let arrays = Dataset::from_arrays([[1.0_f32], [2.0]], [0.5_f32, f32::NAN]);
    check(arrays, "SC0416", None, &["row 1"]);
    // Made without a `?`, it has a row without a label, which is found when it is used.
    let labelled = Dataset::from_labelled([("a", "x"), ("b", ""), ("c", "y")]);
    assert_eq!(labelled.label_names, ["x", "y"]);
    assert_eq!(labelled.examples[1].label, None);
}

/// Two columns of a name that is read are not taken for one; of a name that is not read, they do no harm.
#[test]
fn a_second_column_of_the_name_is_not_ignored() {
    let (_folder, path) = file("two.csv", "text,label,label\na,x,1\nb,y,2\n");
    check(
        Dataset::csv(&path),
        "SC0417",
        Some(1),
        &["2 columns named `label`", "2, 3"],
    );
    let (_folder, path) = file("two.tsv", "text\tlabel\ttext\na\tx\tb\n");
    check(
        Dataset::tsv(&path),
        "SC0417",
        Some(1),
        &["2 columns named `text`"],
    );
    let (_folder, path) = file("other.csv", "text,note,label,note\na,1,x,2\n");
    assert_eq!(
        Dataset::csv(&path)
            .expect("nobody reads `note`")
            .label_names,
        ["x"]
    );
    let twice = [
        r#"{"text": "a", "label": "x", "label": "y"}"#,
        r#"{"text": "a", "label": "x", "note": {"label": 1}, "lab\u0065l": "y"}"#,
    ];
    for line in twice {
        let (_folder, path) = file("two.jsonl", line);
        check(
            Dataset::jsonl(&path),
            "SC0911",
            Some(1),
            &["`label` occurs twice"],
        );
    }
    let once = r#"{"text": "\"label\": {", "label": "x", "note": {"label": [":", {"text": 1}]}}"#;
    let (_folder, path) = file("once.jsonl", once);
    assert_eq!(
        Dataset::jsonl(&path).expect("each key is there once").len(),
        1
    );
}

/// Texts and labels are shown, and never obeyed.
#[test]
fn control_characters_are_shown() {
    let data = Dataset::from_labelled([("a \u{1b}[31mred\u{7} text", "x\u{1b}[2J"), ("b", "y")]);
    let shown = data.to_plain();
    assert!(
        shown.contains('\u{fffd}') && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
}
