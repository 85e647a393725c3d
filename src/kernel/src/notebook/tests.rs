//! Whole notebooks, executed by the toy evaluator of [`stratoscope_session::toy`].

use serde_json::{Value, json};

use super::*;
use stratoscope_session::toy;

fn code(source: &str, tags: &[&str]) -> Value {
    json!({"cell_type": "code", "execution_count": 99, "metadata": {"tags": tags},
           "outputs": [{"output_type": "stale"}], "source": source})
}

/// Executes; returns the cells as written, and why the run ended early.
fn check(cells: Value, allow_errors: bool) -> (Vec<Value>, Option<Ended>) {
    let text = json!({"cells": cells, "metadata": {"kept": 1}, "nbformat": 4, "nbformat_minor": 5});
    let mut notebook = Notebook::parse(&text.to_string()).expect("is a notebook");
    let session = Session::start(toy::starter(Duration::ZERO));
    let (_request, stop) = Stop::new().expect("there is a runtime");
    let failed = execute(&mut notebook, &session, &stop, allow_errors);
    let failed = failed.expect("the evaluator lives");
    wait(Duration::from_secs(5), session.shut_down());
    (notebook.cells().to_vec(), failed)
}

#[test]
fn outputs_and_numbers_replace_what_was_there() {
    let markdown = json!({"cell_type": "markdown", "metadata": {}, "source": "# Title"});
    let cells = json!([
        markdown,
        code("display 0 %\nprint a\nprint b", &[]),
        code("", &[]),
        code("update 100 %\nresult 42\nask name?", &[]),
    ]);
    let (cells, failed) = check(cells, false);
    assert_eq!(failed, None);
    assert_eq!(cells[0], markdown);
    assert_eq!(cells[1]["execution_count"], 1);
    assert_eq!(
        cells[1]["outputs"],
        json!([
            {"data": {"text/plain": ["100 %"]}, "metadata": {}, "output_type": "display_data"},
            {"name": "stdout", "output_type": "stream", "text": ["a\n", "b\n"]},
        ])
    );
    assert_eq!(
        (&cells[2]["execution_count"], &cells[2]["outputs"]),
        (&Value::Null, &json!([]))
    );
    assert_eq!(
        cells[3]["outputs"],
        json!([
            {"data": {"text/plain": ["42"]}, "execution_count": 2, "metadata": {},
             "output_type": "execute_result"},
            {"name": "stdout", "output_type": "stream", "text": ["None\n"]},
        ])
    );
}

#[test]
fn an_error_ends_the_run_unless_it_is_expected() {
    let cells = || {
        json!([
            code("E1 expected", &["raises-exception"]),
            code("print a\nE2 not expected", &[]),
            code("print b", &[]),
        ])
    };
    let (stopped, failed) = check(cells(), false);
    let ended = Ended::Failed {
        cell: 2,
        first_line: "print a".to_owned(),
    };
    assert_eq!(failed, Some(ended));
    let error = &stopped[0]["outputs"][0];
    assert_eq!(
        (&error["ename"], &error["evalue"]),
        (&json!("E1"), &json!("expected"))
    );
    assert_eq!(error["traceback"], json!(["Cell In[1], line 1"]));
    assert_eq!(stopped[1]["outputs"][1]["ename"], "E2");
    assert_eq!(
        stopped[2],
        cells()[2],
        "a cell that was not reached stays as it was"
    );

    let (ran, failed) = check(cells(), true);
    assert_eq!(failed, None);
    assert_eq!(ran[2]["outputs"][0]["text"], json!(["b\n"]));
}

#[test]
fn the_file_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notebook.ipynb");
    let text = json!({"cells": [code("print a", &[])], "metadata": {}, "nbformat": 4});
    std::fs::write(&path, text.to_string()).expect("writes");
    let arguments = RunArguments {
        notebook: path.clone(),
        inplace: true,
        ..RunArguments::default()
    };
    run(&arguments, toy::starter(Duration::ZERO)).expect("runs");
    let written = Notebook::read(&path).expect("is a notebook");
    assert_eq!(written.cells()[0]["outputs"][0]["text"], json!(["a\n"]));

    // A file cannot be a folder.
    let nowhere = Some(path.join("folder.ipynb"));
    let arguments = RunArguments {
        notebook: path.clone(),
        output: nowhere,
        ..RunArguments::default()
    };
    run(&arguments, toy::starter(Duration::ZERO)).expect_err("cannot write there");
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .collect();
    assert_eq!(left.len(), 1, "nothing half written is left behind");
}
