"""Where the time of a run goes, and because of which rows it answers as it does, from cells of a real kernel."""

import json

from kernel_client import check_card, check_static_html

MODEL = """let data = make_classification(64, 4, 2, 0)?;
let model = Sequential([Dense(16).activation("relu"), Dense(2)])?;
compile!(model, optimizer = SGD::new(0.1), loss = SparseCategoricalCrossentropy { from_logits: true })?;
let run = start!(model, data, epochs = 2, batch_size = 8)?;"""


def test_a_profile_is_shown_and_saved(kernel, tmp_path):
    kernel.run(MODEL)
    cell = kernel.run("let profile = run.profile(4)?;\nprofile")
    text = cell.shown()
    assert "profile: 3 steps of" in text and "is the limit" in text and "dense_1" in text, text
    assert "data" in text and "update" in text and "in a large product of float32" in text, text
    html = cell.shown("text/html")
    check_static_html(html)
    assert "data:image/svg+xml" in html
    path = tmp_path / "profile.json"
    kernel.run(f'profile.save("{path}")?;')
    names = {event["name"] for event in json.loads(path.read_text())["traceEvents"]}
    assert {"step 1", "forward", "backward", "dense_1"} <= names, names
    assert "next: step 5 of 16" in kernel.run("run").shown()
    cell = kernel.execute("run.profile(0)?")
    check_card(cell, "SC0740", "no steps are asked for")


def test_rows_are_left_out_exactly(kernel):
    kernel.run(MODEL.replace("let data", "let rows").replace("data,", "rows,").replace("model", "other").replace("run", "past"))
    cell = kernel.execute('past.influence([0.5, 1.0, -1.0, 0.0], "0", 3)?')
    check_card(cell, "SC0742", "the run has made none")
    kernel.run("past.step(6)?;")
    label = "&rows.label_names[0]"
    cell = kernel.run(f"past.influence([0.5, 1.0, -1.0, 0.0], {label}, 3)?")
    text = cell.shown()
    assert text.count("without row") >= 3 and "rank correlation" in text, text
    check_static_html(cell.shown("text/html"))
    assert "next: step 7 of 16" in kernel.run("past").shown()
    cell = kernel.execute(f"past.influence([0.5, 1.0, -1.0, 0.0], {label}, [3, 64])?")
    check_card(cell, "SC0741", "row 64")
