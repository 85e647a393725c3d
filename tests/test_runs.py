"""A run as a value in a notebook: made in one cell, driven in others, across errors and interrupts, to a breakpoint's card
and to its end."""

import time

import pytest

from kernel_client import check_card, check_static_html

TRAIN = """let texts = ["a game of chess", "a mail server", "a font of letters", "a library of functions"];
let train = Dataset::from_labelled((0..64).map(|row| (format!("{} {row}", texts[row % 4]), ["game", "server", "font", "library"][row % 4])));"""


@pytest.fixture(scope="module")
def ready(kernel, tiny):
    kernel.run(TRAIN)
    kernel.run(f"""let model = BertForSequenceClassification::from_pretrained("{tiny}", 4)?;
compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }},
    metrics = [accuracy()])?;""")
    return kernel


def test_a_run_from_its_first_step_to_its_last(ready):
    shown = ready.run("let run = start!(model, train, epochs = 2, batch_size = 8, validation_data = train)?; run").shown()
    assert "before step 1 of 16" in shown, shown
    # Errors in other cells, of rustc and of the run's own model, leave it alone.
    assert ready.execute("let nothing: u32 = \"text\";").reply["status"] == "error"
    cell = ready.execute("fit!(model, train)?;")
    check_card(cell, "SC0121", "run.finish()?")
    stop = ready.run("run.step(3)?").shown()
    assert "before step 4 of 16" in stop and "loss" in stop, stop
    ready.run("let answer = model.predict(\"a game\")?;")
    assert "run" in ready.run("%vars").shown() + ready.run("%vars").stream()

    ready.run("run.break_when(every(5) | nan())?;")
    cell = ready.run("run.epoch()?")
    card = cell.shown()
    assert "`every(5)` stopped it before step 6 of 16" in card, card
    assert "look next" in card
    html = cell.shown("text/html")
    check_static_html(html)
    assert "data:image/svg+xml" in html
    assert "Breakpoint" in ready.run("format!(\"{:?}\", run.stop()?.unwrap().reason)").shown()
    assert "before step 9 of 16" in ready.run("run.epoch()?").shown()

    ready.run("run.clear_breakpoints()?;")
    history = ready.run("let history = run.finish()?; history").shown()
    assert "16 optimizer steps" in history, history
    assert ready.run("history.epochs.len()").shown() == "2"
    cell = ready.execute("run.step(1)?;")
    check_card(cell, "SC0521")
    # The model is free again.
    ready.run("fit!(model, train, batch_size = 16)?;")


def test_a_dropped_run_frees_the_model(ready):
    ready.run("let given_up = start!(model, train, batch_size = 8)?; given_up.step(2)?;")
    cell = ready.execute("compile!(model, optimizer = AdamW::new(1e-4))?;")
    check_card(cell, "SC0121")
    ready.run("drop(given_up);")
    ready.run("let run = start!(model, train, batch_size = 8)?; run.finish()?;")


def test_what_start_does_not_take_is_said_as_of_fit(ready):
    cell = ready.execute("let other = start!(model, train, epoch = 3)?;")
    check_card(cell, "SC0114", "epochs")
    cell = ready.execute("let other = start!(model, train, epochs = 0)?;")
    check_card(cell, "SC0103")


def test_the_interrupt_button_pauses(ready):
    ready.run("let long = start!(model, train, epochs = 100_000, batch_size = 8)?;")
    request = ready.request("long.finish()?")
    ready.wait_for(request, "display_data")
    time.sleep(1)
    ready.manager.interrupt_kernel()
    cell = ready.collect(request, "long.finish()?", timeout=120)
    made = int(ready.run("long.report()?.position.step").shown())
    assert made > 0
    assert "interrupted before step" in cell.shown(), cell.shown()
    after = ready.run("long.step(2)?").shown()
    assert f"beforestep{made + 3}of" in "".join(after.split()), after
    ready.run("drop(long);")
