"""Interrupts of long operations of the library: each stops soon, shows its progress, and leaves the variables
unchanged. Also the progress of one execution of many batches. Each test checks how much was done, not how long it took."""

import re
import time

import pytest

from kernel_client import DIAGNOSTIC, check_error

# As many rows as take half a minute to tokenize.
MANY = """let many = Dataset::from_labelled((0..400_000).map(|row| {
    let words = ["game", "server", "font", "library"];
    let text = format!("a {} with tools for development {row} {}", words[row % 4], "music and images ".repeat(4));
    (text, words[row % 4])
}));"""


@pytest.fixture(scope="module")
def ready(kernel, tiny):
    """A kernel with a model that was trained, and with data."""
    kernel.run(MANY)
    kernel.run(f"""let model = BertForSequenceClassification::from_pretrained("{tiny}", 4)?;
    compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }})?;
    let few = many.take(64);
    fit!(model, few, batch_size = 16)?;
    let before = model.predict("a game")?.rows[0].score;""")
    return kernel


def interrupted(kernel, code, *words, kinds=("display_data", "update_display_data")):
    """Interrupts a cell once all of the words are shown; returns it."""
    request = kernel.request(code)
    seen = ""
    deadline = time.monotonic() + 120
    while not all(word in seen for word in words):
        message = kernel.client.get_iopub_msg(timeout=max(deadline - time.monotonic(), 0.001))
        if message["parent_header"].get("msg_id") == request:
            assert message["msg_type"] != "error", message["content"]
            if message["msg_type"] in kinds:
                seen = message["content"]["data"]["text/plain"]
    kernel.manager.interrupt_kernel()
    return kernel.collect(request, code, timeout=120)


def check_kept(kernel):
    """The variables exist, and the model is unchanged."""
    assert kernel.run("(few.len(), many.len())").shown() == "(64, 400000)"
    assert kernel.run('model.predict("a game")?.rows[0].score == before').shown() == "true"


def last_line(cell):
    return cell.of_kind("update_display_data")[-1]["data"]["text/plain"]


def test_before_the_first_batch(ready):
    cell = interrupted(ready, "let run = fit!(model, many, epochs = 3)?;", "tokenizing")
    check_error(cell, "Interrupted", "variables are kept", without_line=True)
    done = re.match(r"tokenizing stopped after ([\d ]+) of 400 000 texts", last_line(cell))
    assert done and int(done[1].replace(" ", "")) < 400_000, last_line(cell)
    shown = ready.run("run").shown()
    assert "interrupted before the first batch: the model is as it was" in shown, shown
    check_kept(ready)


@pytest.mark.parametrize(("code", "work"), [
    ("let all = model.predict(&many)?;", "tokenizing"),
    ("let all = model.predict(&many.take(20_000))?;", "predicting"),
    ("evaluate!(model, many, batch_size = 20_000)?;", "tokenizing"),
])
def test_an_interrupted_predict_or_evaluate_has_no_result(ready, code, work):
    cell = interrupted(ready, code, work)
    assert cell.reply["status"] == "error"
    shown = [bundle[DIAGNOSTIC]["message"] for bundle in cell.diagnostics]
    assert cell.errors[0]["ename"] in ("SC0520", "Interrupted"), cell.errors[0]
    assert all("was interrupted after" in message for message in shown), shown
    check_kept(ready)


def test_within_a_large_batch(ready):
    """One batch of 40 000 texts takes seconds; its forward pass is abandoned."""
    ready.run("let large = many.take(40_000);")
    code = 'println!("begin"); evaluate!(model, large, batch_size = 40_000)?;'
    request = ready.request(code)
    ready.wait_for(request, "stream")
    # Tokenizing has usually finished by then; if not, it is interrupted.
    time.sleep(0.7)
    ready.manager.interrupt_kernel()
    cell = ready.collect(request, code, timeout=120)
    assert cell.reply["status"] == "error", cell.reply
    check_kept(ready)


def test_progress_does_not_wait_for_the_end_of_an_execution(ready, tiny):
    """An execution has 500 batches: the table moves within it, and an interrupt ends it there."""
    ready.run(f"""let strategy = MirroredStrategy::logical(2)?;
scope!(strategy, {{
    let other = BertForSequenceClassification::from_pretrained("{tiny}", 4)?;
    compile!(other, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }},
        steps_per_execution = 500)?;
}});""")
    code = "let run = fit!(other, many.take(4000), batch_size = 8, epochs = 9)?;"
    cell = interrupted(ready, code, "executions 0/9", "left")
    check_error(cell, "Interrupted", "variables are kept", without_line=True)
    tables = [update["data"]["text/plain"] for update in cell.of_kind("update_display_data")]
    assert "executions 1/9" in tables[-1], tables[-1]
    made = ready.run("(run.executions.len(), run.steps.len() as u64 == run.counters.optimizer_steps)").shown()
    assert made == "(1, true)"
    batches = int(ready.run("run.counters.batches").shown())
    assert 1 < batches < 500, "it ended within the execution"


def test_a_callback_saves_and_evaluates_the_model(ready, tmp_path):
    """The usual actions at the end of an epoch; those that are not possible have a card."""
    code = f"""let same = model.clone();
let (mut answers, mut problems) = (vec![], vec![]);
fit!(model, few, epochs = 2, callbacks = [on_epoch_end(|epoch| {{
    let folder = format!("{tmp_path}/{{}}", epoch.epoch);
    if let Err(problem) = same.save_pretrained(&folder) {{ problems.push(problem); }}
    answers.extend(same.predict("a game").map(|answer| answer.rows[0].score));
    placement(&same);
    problems.extend(same.freeze("bert").err());
}})])?;
(answers.len(), problems.iter().map(|it| it.code.clone()).collect::<Vec<_>>())"""
    cell = ready.run(code)
    assert '(2, ["SC0121", "SC0121"])' in cell.shown(), cell.shown()
    assert (tmp_path / "1" / "model.safetensors").exists()
