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
    assert "next: step 1 of 16" in shown, shown
    # Errors in other cells, of rustc and of the run's own model, leave it alone.
    assert ready.execute("let nothing: u32 = \"text\";").reply["status"] == "error"
    cell = ready.execute("fit!(model, train)?;")
    check_card(cell, "SC0121", "run.finish()?")
    stop = ready.run("run.step(3)?").shown()
    assert "next: step 4 of 16" in stop and "loss" in stop, stop
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
    assert "step 9 of 16" in ready.run("run.epoch()?").shown()

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


def test_a_fork_goes_on_beside_its_run(ready):
    ready.run("let first = start!(model, train, epochs = 2, batch_size = 8, seed = 4)?; first.step(3)?;")
    shown = ready.run("let other = first.fork()?; other").shown()
    assert "fork 1, made after step 3," in shown and "of its own" in shown, shown
    edit = ready.run("other.set_batch_size(4)?").shown()
    assert "after step 3: batches of 4 examples" in edit, edit
    assert ready.run("other.drop_examples([1, 2])?.what").shown().count("dropped: 1, 2") == 1
    check_card(ready.execute("other.drop_examples([64])?;"), "SC0522", "0 to 63")
    assert "fork 1, next: step 6" in ready.run("other.step(2)?").shown()
    assert "next: step 6 of 16" in ready.run("first.step(2)?").shown()
    cell = ready.run("compare([&first, &other])?")
    text = cell.shown()
    assert "the losses part at step 4" in text and "fork 1, after step 3: batches of 4 examples" in text, text
    check_static_html(cell.shown("text/html"))
    # The run goes, and the fork does not need it.
    ready.run("drop(first);")
    assert "after step 3: 2 examples dropped: 1, 2" in ready.run("let history = other.finish()?; history").shown()
    ready.run("println!(\"{}\", other.model().predict(\"a game\")?);")
    ready.run("drop(other);")


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
    # The lines of the table break where the numbers are wide.
    assert "interrupted,next:step" in "".join(cell.shown().split()), cell.shown()
    after = ready.run("long.step(2)?").shown()
    assert f"next:step{made + 3}of" in "".join(after.split()), after
    ready.run("drop(long);")


MODEL = """let {name} = BertForSequenceClassification::from_pretrained("{tiny}", 4)?;
compile!({name}, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }})?;"""
BITS = "{name}.steps.iter().map(|step| step.loss.to_bits()).fold(0_u64, |sum, bits| sum.rotate_left(5) ^ bits)"


@pytest.mark.sampled
def test_a_run_that_is_interrupted_again_and_again_ends_like_one_that_is_not(ready, tiny):
    for name in ("calm", "disturbed"):
        ready.run(MODEL.format(name=name, tiny=tiny))
    arguments = "train, epochs = 150, batch_size = 8, seed = 5"
    ready.run(f"let whole = fit!(calm, {arguments})?;")
    ready.run(f"let pieces = start!(disturbed, {arguments})?;")
    pauses, made, ended = 0, 0, False
    while not ended:
        request = ready.request("let history = pieces.finish()?; history")
        seen = False
        while not seen:
            message = ready.client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") == request:
                assert message["msg_type"] != "error", message["content"]
                ended = message["content"].get("execution_state") == "idle"
                seen = ended or message["msg_type"] in ("display_data", "update_display_data")
        if ended:
            continue
        time.sleep(0.4)
        ready.manager.interrupt_kernel()
        cell = ready.collect(request, "pieces.finish()?", timeout=120)
        if cell.reply["status"] == "ok":
            time.sleep(1)  # The interrupt may be on its way still.
        assert cell.reply["status"] == "ok" or cell.reply["ename"] == "Interrupted", cell.reply
        ended = ready.run("pieces.report()?.is_over").shown() == "true"
        if ended:
            continue
        pauses += 1
        steps = int(ready.run("pieces.report()?.position.step").shown())
        assert steps >= made, "steps were lost"
        made = steps
        # Other cells fail meanwhile, in every way, and variables that the run was made from are gone.
        assert ready.execute("let nothing: u32 = \"text\";").reply["status"] == "error"
        assert ready.execute("panic!(\"at its end\");").reply["status"] == "error"
        assert ready.execute("std::fs::read_to_string(\"/nowhere\")?;").reply["status"] == "error"
        if pauses == 1:
            ready.run("let disturbed = 1; let arguments = 2;")
    assert pauses > 0, "it was over before it was interrupted"
    ready.run("let history = pieces.history()?;")
    assert ready.run("history.steps.len() == whole.steps.len()").shown() == "true"
    assert ready.run(BITS.format(name="history")).shown() == ready.run(BITS.format(name="whole")).shown()
