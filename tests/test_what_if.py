"""What a step or a prediction would be with a change, in the kernel."""

from kernel_client import check_card, check_static_html

RUN = """let data = make_classification(64, 4, 2, 0)?;
let small = Sequential([Dense(8).activation("relu"), Dense(2)])?;
compile!(small, optimizer = SGD::new(0.1), loss = SparseCategoricalCrossentropy { from_logits: true })?;
let run = start!(small, data, epochs = 2, batch_size = 8)?;
run.step(2)?;"""


def test_a_change_is_shown_and_committed_in_a_later_cell(kernel):
    kernel.run(RUN)
    cell = kernel.run("""let other = run.what_if(|it| {
    it.output("dense").scale(0.0);
    it.label(0, 1);
    it.weights("dense_1.*").scale(2);
})?;
other""")
    text = cell.shown()
    assert "what if, in step 3: `dense` × 0".replace("`", "") in text and "gradient norm" in text, text
    check_static_html(cell.shown("text/html"))
    edit = kernel.run("other.commit()?").shown()
    assert "weights `dense_1.*` × 2; in the next step alone" in edit, edit
    kernel.run("run.step(1)?;")
    check_card(kernel.execute("other.commit()?"), "SC0732", "step 3")
    assert kernel.run("run.rewind(2)?.dropped.len()").shown() == "2"
    check_card(kernel.execute('run.what_if(|it| it.output("dense_7").scale(0.0))?'), "SC0730", "dense_7")
    kernel.run("run.set_dropout(0.1)?; run.relabel([(3, 0)])?; run.set_example_weights([(4, 0.0)])?;")
    assert kernel.run("run.history()?.edits.len()").shown() == "3"


def test_a_prediction_is_changed_and_two_texts_are_patched(kernel, tiny):
    kernel.run(f"""let bert = BertForSequenceClassification::from_pretrained({str(tiny)!r}, 8)?;""".replace("'", '"'))
    cell = kernel.run('bert.predict_with(["chess game", "mail server"], |it| it.head(0, 1).scale(0.0))?')
    assert "layer 0, head 1 × 0" in cell.shown() and "of 2 texts" in cell.shown(), cell.shown()
    check_static_html(cell.shown("text/html"))
    cell = kernel.run('bert.attribution_patching("game client", "music server")?')
    assert "attribution patching: logit of" in cell.shown(), cell.shown()
    check_static_html(cell.shown("text/html"))
    check_card(kernel.execute('bert.predict_with(["chess"], |it| it.layer(99).scale(0.0))?'), "SC0730", "layer 99")


def test_many_corrected_rows_are_one_line_of_the_history(kernel):
    """An audit corrects dozens of labels in one call, and the history is shown below every table of the run."""
    kernel.run(RUN)
    few = kernel.run("run.relabel([(3, 0), (5, 1)])?.what").shown()
    assert "label of row 3 = 0; label of row 5 = 1 from here on" in few, few
    many = kernel.run("run.relabel((0..60).map(|row| (row, 1)))?.what").shown()
    assert "60 labels: row 0 = 1, row 1 = 1, " in many and "row 5 = 1, … from here on" in many, many
    weights = kernel.run("run.set_example_weights((0..60).map(|row| (row, 0.5)))?.what").shown()
    assert "60 weights of examples: row 0 = 0.5, " in weights and len(weights) < 160, weights
    kernel.run("drop(run);")
