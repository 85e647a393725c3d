"""compile!, fit!, evaluate! and predict in the kernel: the placement after `compile!`, the live table
of `fit!`, its counters against closed formulas, and the curves."""

import csv
import json
import math
import re
import struct

import pytest

from kernel_client import DIAGNOSTIC, Kernel, check_card, check_error, check_static_html, history_column, without_ansi
from test_interrupts import interrupted

EXAMPLES, BATCH, EPOCHS = 203, 16, 2


def fit(arguments=""):
    return f"fit!(model, train, epochs = {EPOCHS}, batch_size = {BATCH}, max_length = 64, seed = 3{arguments})?"


def model_cell(tiny, extra="", scoped=True):
    build = f"""let model = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
    let receipt = compile!(model,
        optimizer = AdamW::new(warmup_linear(5e-3, 0.1)).weight_decay(0.01).global_clipnorm(1.0),
        loss = SparseCategoricalCrossentropy {{ from_logits: true }},
        metrics = [accuracy(), macro_f1()],
        {extra}
    )?;"""
    return f"scope!(strategy, {{ {build} }});\nreceipt" if scoped else build + "\nreceipt"


@pytest.fixture(scope="module")
def compiled(kernel, tiny):
    """The cell that compiled `model` under a strategy of two logical devices."""
    kernel.run(f"let (train, dev) = debian_sections()?;\nlet train = train.take({EXAMPLES});\nlet dev = dev.take(64);")
    kernel.run("let strategy = MirroredStrategy::logical(2)?;")
    return kernel.run(model_cell(tiny, "steps_per_execution = 4,"))


@pytest.fixture(scope="module")
def fitted(kernel, compiled):
    """The cell that trained it."""
    return kernel.run("let history = " + fit(", validation_data = dev") + ";")


def placement_of(cell):
    """The placement report as JSON, with the bundle it came in."""
    for bundle in cell.bundles:
        for mime, value in bundle.items():
            if mime.startswith("application/vnd.stratoscope.placement"):
                return (json.loads(value) if isinstance(value, str) else value), bundle
    raise AssertionError([list(bundle) for bundle in cell.bundles])


def test_the_data_set_is_shown_with_its_classes(kernel, compiled):
    cell = kernel.run("train")
    (bundle,) = cell.bundles
    check_static_html(bundle["text/html"])
    for text in ("203 examples", "fonts", "science"):
        assert text in bundle["text/plain"] and text in bundle["text/html"]


def test_after_compile_the_placement_is_shown(compiled):
    report, bundle = placement_of(compiled)
    check_static_html(bundle["text/html"])
    text = json.dumps(report)
    for part in ("cpu:0", "cpu:1", "word_embeddings", "checksum", "bytes", "Mirrored"):
        assert part in text, part
    for device in ("cpu:0", "cpu:1"):
        assert device in bundle["text/html"] and device in bundle["text/plain"]
    assert "logical" in bundle["text/html"].lower() and "logical" in bundle["text/plain"].lower()
    # The origin of each: the cell, and the line of the statement.
    assert f"cell {compiled.number}, line 1" in bundle["text/plain"]
    # Gradients and moments are listed as planned.
    assert "planned" in bundle["text/plain"]


def test_the_copies_are_equal_before_and_after_training(kernel, compiled, fitted):
    before, _ = placement_of(compiled)
    after, bundle = placement_of(kernel.run("placement(&model);"))
    sums = [replica_checksums(report) for report in (before, after)]
    for checksums in sums:
        assert len(checksums) >= 39, "every variable has checksums"
        for name, values in checksums.items():
            assert len(values) == 2, f"{name} has {len(values)} copies"
            # The counts of a metric are separate for each replica, and added when it is read.
            assert name.startswith("metrics.") or len(set(values)) == 1, f"the copies of {name} differ"
    changed = [name for name in sums[0] if sums[0][name] != sums[1][name]]
    assert len(changed) > 30, "training changed the weights"
    assert "planned" not in bundle["text/plain"] and "measured" in bundle["text/plain"]


def replica_checksums(report):
    """The checksums of every variable's copies, by name, wherever the report keeps them."""
    found = {}

    def walk(node):
        if isinstance(node, dict):
            name = node.get("name")
            for key in ("checksums", "checksum"):
                if isinstance(name, str) and isinstance(node.get(key), list):
                    found[name] = [json.dumps(value) for value in node[key] if value is not None]
            copies = node.get("copies") or node.get("replicas")
            if isinstance(name, str) and isinstance(copies, list):
                values = [copy.get("checksum") for copy in copies if isinstance(copy, dict)]
                if any(value is not None for value in values):
                    found[name] = [json.dumps(value) for value in values]
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(report)
    return found


def test_fit_shows_one_table_updated_in_place(fitted):
    displays = [each for each in fitted.of_kind("display_data") if DIAGNOSTIC not in each["data"]]
    updates = fitted.of_kind("update_display_data")
    assert len(displays) == 1, [list(each["data"]) for each in displays]
    assert len(updates) >= 2
    names = {each["transient"]["display_id"] for each in displays + updates}
    assert len(names) == 1, names
    for each in displays + updates:
        check_static_html(each["data"]["text/html"])
    last = updates[-1]["data"]["text/html"]
    for part in ("loss", "accuracy", "macro_f1", "seq/s", "executions", "optimizer steps", "all-reduces"):
        assert part in last, part
    # The rate and the time left are shown while it runs.
    middle = updates[len(updates) // 2]["data"]["text/html"].lower()
    assert "rate" in middle
    assert any("left" in each["data"]["text/plain"] for each in updates), [each["data"]["text/plain"] for each in updates]
    assert not fitted.stream("stdout"), "nothing but the table"


def test_the_table_grows_while_training_runs(fitted):
    updates = [message for message in fitted.messages if message.kind == "update_display_data"]
    texts = [update.content["data"]["text/html"] for update in updates]
    assert len(set(texts)) == len(texts), "an update that changes nothing"
    steps = [[int(number) for number in re.search(r"optimizer steps (\d+)/(\d+)", update.content["data"]["text/plain"]).groups()]
             for update in updates]
    done = [step for step, _ in steps]
    assert done == sorted(done) and done[0] < done[-1] == steps[-1][1], steps


def counters(cell):
    """Executions, optimizer steps and all-reduces, done and planned, as the table shows them last."""
    text = cell.of_kind("update_display_data")[-1]["data"]["text/plain"]
    found = re.search(r"executions (\d+)/(\d+) . optimizer steps (\d+)/(\d+) . all-reduces (\d+)/(\d+)", text)
    assert found, text
    numbers = [int(number) for number in found.groups()]
    return numbers[0::2], numbers[1::2]


@pytest.mark.parametrize(
    ("extra", "scoped", "steps_per_execution", "accumulate"),
    [("", False, 1, 1), ("", True, 1, 1), ("steps_per_execution = 4,", True, 4, 1), ("steps_per_execution = 5,", True, 5, 1),
     ("gradient_accumulation_steps = 4,", True, 1, 4), ("steps_per_execution = 3, gradient_accumulation_steps = 4,", True, 3, 4)],
)
def test_counters_follow_the_formulas(kernel, compiled, tiny, extra, scoped, steps_per_execution, accumulate):
    if not scoped:
        extra += "strategy = none,"
    kernel.run(model_cell(tiny, extra, scoped))
    cell = kernel.run(fit())
    batches = math.ceil(EXAMPLES / BATCH)
    executions = EPOCHS * math.ceil(batches / steps_per_execution)
    steps = EPOCHS * math.ceil(batches / accumulate)
    expected = [executions, steps, steps if scoped else 0]
    done, planned = counters(cell)
    assert done == planned == expected
    # The history says the same.
    for number, name in zip(expected, ("executions", "optimizer steps", "all-reduces")):
        assert f"{number} {name}" in cell.shown()


def test_two_replicas_train_as_one_device_does(kernel, compiled):
    """13 rows in batches of 8: the last batch is 3 and 2 rows. The sums are rounded in another order, no more. (Without
    dropout: its masks depend on the replica.)"""
    kernel.run("let thirteen = make_regression(13, 5, 0)?;")
    compiled = """let {name} = Sequential([Dense(16).activation("relu").input_shape((5,)), Dense(1)])?;
    compile!({name}, optimizer = Adam::new(0.01).global_clipnorm(1.0), loss = MeanSquaredError, metrics = [mae()]{extra})?;"""
    kernel.run(compiled.format(name="on_one", extra=", strategy = none"))
    kernel.run("scope!(strategy, {\n" + compiled.format(name="on_two", extra="") + "\n});")
    losses, outputs = {}, {}
    for name in ("on_one", "on_two"):
        kernel.run(f"let curve = fit!({name}, thirteen, epochs = 5, batch_size = 8, verbose = false)?;")
        losses[name] = json.loads(kernel.run('println!("{:?}", curve.epochs.iter().map(|it| it.loss).collect::<Vec<_>>());').stream())
        outputs[name] = kernel.run(f"evaluate!({name}, thirteen)?").shown()
    assert len(losses["on_one"]) == 5 and losses["on_one"][-1] < losses["on_one"][0], losses
    assert losses["on_two"] == pytest.approx(losses["on_one"], rel=1e-5), losses
    after = [[float(number) for number in re.findall(r"\d+\.\d+", text)] for text in outputs.values()]
    assert after[0] and after[1] == pytest.approx(after[0], rel=1e-3), outputs
    assert "equal on all 2 replicas" in kernel.run("placement(&on_two);").shown()


def test_the_usual_losses_and_metrics_of_keras(kernel):
    """By name and by constructor, for numbers and for two classes."""
    kernel.run("let rows = make_regression(64, 3, 1)?;\nlet pairs = make_classification(64, 3, 2, 1)?;")
    shown = kernel.run("""let line = Sequential([Dense(1).seed(1)])?;
compile!(line, optimizer = SGD::new(0.1), loss = "huber", metrics = ["mae", "mean_squared_error", "RootMeanSquaredError"], strategy = none)?;
let course = fit!(line, rows, epochs = 3, early_stopping = EarlyStopping::new().monitor("rmse"))?;
println!("{}", course.epochs.len());
evaluate!(line, rows)?""").shown()
    for name in ("mae", "mse", "rmse"):
        assert re.search(rf"\b{name}\b", shown), shown
    shown = kernel.run("""let side = Sequential([Dense(1).seed(1)])?;
compile!(side, optimizer = SGD::new(0.1), loss = Hinge, metrics = [accuracy(), precision(), recall(), auc()], strategy = none)?;
fit!(side, pairs, epochs = 3)?;
evaluate!(side, pairs)?""").shown()
    for name in ("precision", "recall", "auc"):
        assert re.search(rf"\b{name}\b", shown), shown
    kernel.run("""let many = Sequential([Dense(3).seed(1)])?;
compile!(many, optimizer = SGD::new(0.1), loss = "kl_divergence", metrics = ["accuracy", "sparse_top_k_categorical_accuracy"], strategy = none)?;
let shares = Sequential([Dense(1).activation("linear")])?;
compile!(shares, optimizer = SGD::new(0.1), loss = Huber { delta: 2.0 }, metrics = [mae()], strategy = none)?;""")
    check_error(kernel.execute("compile!(many, optimizer = SGD::new(0.1), loss = Huber { delta: 0.0 }, strategy = none)?;"), "SC0103")
    check_error(kernel.execute('compile!(many, optimizer = SGD::new(0.1), loss = "mae", strategy = none)?;'), "SC0309")
    check_error(kernel.execute("compile!(line, optimizer = SGD::new(0.1), metrics = [auc()], strategy = none)?;"), "SC0310")


def test_layers_are_trained_from_the_head_down(kernel, tiny):
    kernel.run(f"""let (few, _) = debian_sections()?;
let few = few.take(16);
let waiting = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
compile!(waiting, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }}, strategy = none)?;""")
    shown = kernel.run("""let course = fit!(waiting, few, epochs = 4, batch_size = 8, max_length = 16, callbacks = [GradualUnfreezing::new()])?;
course.edits.iter().map(|it| it.to_string()).collect::<Vec<_>>()""").shown()
    assert "3 layers frozen at first" in shown and "embeddings trained from here on" in shown, shown
    assert shown.index("encoder layer 1") < shown.index("encoder layer 0") < shown.index("embeddings"), shown
    refused = kernel.execute("fit!(waiting, few, epochs = 1, callbacks = [GradualUnfreezing::new().every(0)])?;")
    check_error(refused, "SC0103")
    refused = kernel.execute("compile!(waiting, optimizer = Adafactor::new(1e-3).clip_threshold(0.5), strategy = none)?;")
    check_error(refused, "SC0103")


def test_variables_of_a_pattern_have_a_rate_of_their_own(kernel):
    kernel.run("""let rows = make_regression(64, 3, 1)?;
let by_name = Sequential([Dense(4).activation("tanh").seed(1).input_shape((3,)), Dense(1).seed(2)])?;""")
    shown = " ".join(kernel.run("""compile!(by_name, optimizer = SGD::new(0.1).rate_for("*.bias", 0.5).rate_for("dense", 0.0),
    loss = MeanSquaredError, strategy = none)?""").shown().split())
    assert "`dense`: rate × 0, 2 variables" in shown and "`*.bias`: rate × 0.5, 1 variables" in shown, shown
    refused = kernel.execute('compile!(by_name, optimizer = SGD::new(0.1).rate_for("*.bais", 0.5), loss = MeanSquaredError, strategy = none)?;')
    error = check_error(refused, "SC0103")
    assert "`*.bias`" in " ".join([error["evalue"], *error["traceback"]]), error


@pytest.mark.parametrize("optimizer, kept", [
    ("RMSprop::new(0.01).momentum(0.5).centered(true)", ["velocity", "mean square", "mean gradient"]),
    ("Lion::new(0.001).weight_decay(0.1)", ["momentum"]),
    ('"rmsprop"', ["mean square"]),
    ("Lamb::new(0.01).weight_decay(0.01)", ["Adam m", "Adam v"]),
    ("Adafactor::new(0.05)", ["row means", "column means", "mean square of vectors"]),
])
def test_other_optimizers_learn_and_their_variables_are_placed(kernel, optimizer, kept):
    kernel.run("let rows = make_regression(64, 3, 1)?;\nlet two = MirroredStrategy::logical(2)?;")
    shown = kernel.run(f"""scope!(two, {{
    let line = Sequential([Dense(8).activation("tanh").seed(1), Dense(1).seed(2)])?;
    compile!(line, optimizer = {optimizer}, loss = MeanSquaredError)?;
}});
let course = fit!(line, rows, epochs = 8, batch_size = 16)?;
println!("{{}}", course.epochs[7].loss < course.epochs[0].loss);
placement(&line);""").shown()
    for name in kept:
        assert name in " ".join(shown.split()), shown
    assert "equal on all 2 replicas" in shown, shown
    assert kernel.run("course.epochs[7].loss < course.epochs[0].loss").shown() == "true"


def crc32c(data):
    """Castagnoli's checksum, by a table."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def fields(message):
    """The fields of a message of Protocol Buffers: number, value."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 0x7F) << shift
            at += 1
            shift += 7
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, message[at:at + length]
            at += length


def events(folder):
    """The scalars of an event file: tag, step, value."""
    (path,) = folder.glob("events.out.tfevents.*")
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        record, sums = data[12:12 + length], (data[:8], data[12:12 + length])
        for checked, stored in zip(sums, (data[8:12], data[12 + length:16 + length])):
            crc = crc32c(checked)
            assert struct.unpack("<I", stored)[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        event = dict(fields(record))
        if 3 in event:
            assert (event[3], found) == (b"brain.Event:2", []), "the version comes first"
        for number, value in fields(event.get(5, b"")):
            entry = dict(fields(value))
            found.append((entry[1].decode(), event.get(2, 0), struct.unpack("<f", entry[2])[0]))
        data = data[16 + length:]
    return found


def test_logs_hold_what_the_history_holds(tmp_path):
    with Kernel(cwd=tmp_path) as kernel:
        kernel.run("""let rows = make_regression(64, 3, 1)?;
let line = Sequential([Dense(1).seed(1)])?;
compile!(line, optimizer = RMSprop::new(0.01), loss = MeanSquaredError, metrics = [mae()])?;""")
        cell = kernel.run("""let course = fit!(line, rows, epochs = 3, batch_size = 16, validation_split = 0.25,
    callbacks = [CsvLogger::new("log.csv")?, TensorBoard::new("logs")?, CsvLogger::new("/dev/full")?])?;""")
        # A disk that is full ends one log, and neither the run nor the others.
        (said,) = [without_ansi(bundle["text/plain"]) for bundle in cell.diagnostics if bundle[DIAGNOSTIC]["code"] == "SC0908"]
        assert "warning[SC0908]" in said and "/dev/full" in said and "`CsvLogger` writes nothing more to it" in said, said
        losses = json.loads(kernel.run("course.epochs.iter().map(|it| it.loss).collect::<Vec<_>>()").shown())
        checked = json.loads(kernel.run(
            "course.epochs.iter().map(|it| it.validation.as_ref().unwrap().loss).collect::<Vec<_>>()").shown())
        steps = json.loads(kernel.run("course.executions.iter().map(|it| it.loss).collect::<Vec<_>>()").shown())
        rows = list(csv.DictReader((tmp_path / "log.csv").open()))
        assert list(rows[0]) == ["epoch", "loss", "mae", "val_loss", "val_mae", "learning_rate", "seconds"]
        assert [float(row["loss"]) for row in rows] == losses
        assert [float(row["val_loss"]) for row in rows] == checked
        train = events(tmp_path / "logs" / "train")

        def of(found, tag):
            return [value for name, _, value in found if name == tag]

        assert of(train, "epoch_loss") == pytest.approx(losses)
        assert of(train, "batch_loss") == pytest.approx(steps)
        assert [step for name, step, _ in train if name == "batch_loss"] == list(range(1, len(steps) + 1))
        assert of(events(tmp_path / "logs" / "validation"), "epoch_loss") == pytest.approx(checked)
        assert len(of(train, "batch_gradient_norm")) == len(steps)
        check_error(kernel.execute('let log = CsvLogger::new("/proc/none/log.csv")?;'), "SC0908")


def result(cell):
    """The plain text of the cell's value."""
    return cell.of_kind("execute_result")[0]["data"]["text/plain"]


def test_the_loss_falls_and_the_model_learns(kernel, compiled, tiny):
    kernel.run(model_cell(tiny))
    cell = kernel.run(f"fit!(model, train, epochs = 12, batch_size = {BATCH}, seed = 3)?")
    losses = history_column(result(cell), "loss")
    assert losses[-1] < losses[0] - 0.1, losses
    # Guessing the largest class gives 0.163.
    assert history_column(result(cell), "accuracy")[-1] > 0.25, cell.shown()


def test_history_is_shown_and_plotted(kernel, fitted):
    cell = kernel.run("history")
    (bundle,) = cell.bundles
    for part in ("loss", "val loss", "accuracy", "val accuracy"):
        assert part in bundle["text/plain"], bundle["text/plain"]
    cell = kernel.run("history.plot();")
    (bundle,) = cell.bundles
    drawn = {mime for mime in bundle if mime.startswith("image/")}
    assert drawn, list(bundle)
    if "image/svg+xml" in drawn:
        svg = bundle["image/svg+xml"]
        assert "<svg" in svg and ("<polyline" in svg or "<path" in svg)
        assert "loss" in svg and "NaN" not in svg
    assert "text/plain" in bundle


def test_predict_names_the_classes(kernel, fitted):
    shown = kernel.run('model.predict(["sans serif font", "platform game"])?').shown()
    names = "admin fonts games graphics math net science sound".split()
    assert sum(name in shown for name in names) >= 1, shown
    assert "sans serif font" in shown and "platform game" in shown


def test_the_same_seed_gives_the_same_numbers(kernel, compiled, tiny):
    shown = []
    for _ in range(2):
        # The new head is initialized from the model's own seed.
        kernel.run(model_cell(tiny))
        kernel.run("let again = " + fit() + ";")
        cell = kernel.run("again.executions.iter().map(|execution| execution.loss).collect::<Vec<_>>()")
        shown.append(cell.shown())
    assert shown[0] == shown[1] and shown[0].count(",") == 25


def test_an_interrupted_run_keeps_what_it_has(kernel, compiled, tiny):
    kernel.run(model_cell(tiny))
    code = "let long = fit!(model, train, epochs = 2000, batch_size = 8, seed = 1)?;"
    # Its table says how much time is left once a step is done.
    cell = interrupted(kernel, code, "optimizer steps", "left")
    # An error, so that queued cells do not run after half a training; but nothing is lost.
    check_error(cell, "Interrupted", "variables are kept", without_line=True)
    assert "resume = true" in cell.of_kind("update_display_data")[-1]["data"]["text/plain"]
    assert kernel.run("long.interrupted").shown() == "true"
    assert kernel.run('model.predict(["a game"])?').shown()


def test_truncated_texts_are_reported(kernel, compiled, tiny):
    kernel.run(model_cell(tiny))
    cell = kernel.run("let short = fit!(model, train, epochs = 1, batch_size = 32, max_length = 8, seed = 1)?;")
    check_card(cell, "SC0407", "were cut at 8 tokens")
    # The note comes once, the line below the table every time.
    for _ in range(2):
        assert "texts were cut at 8 tokens" in kernel.run("evaluate!(model, dev, max_length = 8, verbose = false)?").shown()


def test_an_empty_text_is_reported(kernel, compiled, tiny):
    kernel.run(model_cell(tiny))
    check_card(kernel.run('model.predict([""])?'), "SC0409", "the text is empty")


def test_labels_that_differ_in_blanks_are_reported(kernel, compiled, tiny):
    kernel.run(f'let three = BertForSequenceClassification::from_pretrained("{tiny}", 3)?;'
               "compile!(three, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy { from_logits: true }, strategy = none)?;")
    cell = kernel.run('fit!(three, Dataset::from_rows(["a", "b", "c"], ["x", "x ", "X"])?)?;')
    check_card(cell, "SC0316", "differ only in blanks or case", '"x "')


def test_fit_before_compile_is_a_diagnostic(kernel, compiled, tiny):
    kernel.run(f'let raw = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;')
    cell = kernel.execute("fit!(raw, train, epochs = 1)?;")
    check_error(cell, cell.errors[0]["ename"])
    assert cell.errors[0]["ename"].startswith("SC")


def test_an_optimizer_with_more_state(kernel, compiled, tiny):
    """`amsgrad` and `use_ema`: on the placement, in the memory plan, in the history; and their errors."""
    kernel.run("let strategy = MirroredStrategy::logical(2)?;")
    compile_cell = f"""scope!(strategy, {{
    let kept = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
    let receipt = compile!(kept,
        optimizer = AdamW::new(5e-3).amsgrad(true).use_ema(true).ema_momentum(0.9),
        loss = SparseCategoricalCrossentropy {{ from_logits: true }},
    )?;
}});
receipt"""
    shown = kernel.run(compile_cell).shown()
    assert ".amsgrad(true).use_ema(true).ema_momentum(0.9)" in shown
    assert "largest v" in shown and "average" in shown, shown
    plan = kernel.run("memory_plan(&kept, 32, 64)").shown()
    assert "Adam m, Adam v, largest v, per trained weight" in plan and "for `use_ema`" in plan, plan
    history = kernel.run("fit!(kept, train, epochs = 1, batch_size = 16)?").shown()
    assert "the model has the moving averages of its weights" in history
    report = kernel.run("placement(&kept);").bundles[-1]
    text = " ".join(report["text/plain"].split())
    for slot in ("Adam m", "Adam v", "largest v", "average"):
        assert f"KiB {slot}" in text, report["text/plain"]
    check_static_html(report["text/html"])
    cell = kernel.execute(compile_cell.replace("ema_momentum(0.9)", "ema_momentum(1.5)"))
    check_error(cell, "SC0103", "a number from 0 to 1")
    cell = kernel.execute(compile_cell.replace("use_ema", "use_emma"))
    check_error(cell, "SC0504", "did you mean `use_ema`?")
    cell = kernel.execute(compile_cell.replace(")?;\n})", " use_ema = true)?;\n})"))
    check_error(cell, "SC0106", "`use_ema` belongs to the optimizer")


def test_rates_by_layer(kernel, compiled, tiny):
    """`layer_decay`: the groups in the receipt, lower layers that move less, and its errors."""
    compile_cell = f"""let deep = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
let receipt = compile!(deep, strategy = none,
    optimizer = SGD::new(0.1).layer_decay(0.5),
    loss = SparseCategoricalCrossentropy {{ from_logits: true }},
)?;
receipt"""
    shown = " ".join(kernel.run(compile_cell).shown().split())
    assert "SGD::new(1e-1).layer_decay(0.5)" in shown, shown
    for line in ("head: rate × 1", "encoder layer 1: rate × 0.5, 16 variables", "encoder layer 0: rate × 0.25, 16 variables",
                 "embeddings: rate × 0.125"):
        assert line in shown, shown
    kernel.run("let course = fit!(deep, train, epochs = 2, batch_size = 16, max_length = 64)?;")
    assert kernel.run("course.epochs[1].loss < course.epochs[0].loss").shown() == "true"
    cell = kernel.execute(compile_cell.replace("layer_decay(0.5)", "layer_decay(1.5)"))
    check_error(cell, "SC0103", "a number from 0 to 1")
    cell = kernel.execute(compile_cell.replace("layer_decay", "layer_deacy"))
    check_error(cell, "SC0504", "did you mean `layer_decay`?")
    flat = """let flat = Sequential([Dense(1).seed(1)])?;
compile!(flat, optimizer = SGD::new(0.1).layer_decay(0.5), loss = MeanSquaredError, strategy = none)?;"""
    check_error(kernel.execute(flat), "SC0103", "a model with encoder layers")


def test_one_output_that_decides_between_two_names_them(kernel, compiled, tiny):
    kernel.run(f"""let mail = Dataset::from_labelled([("a game of games", "ham"), ("a font", "spam"), ("games", "ham"), ("fonts", "spam")]);
let binary = BertForSequenceClassification::from_pretrained("{tiny}", 1)?;
compile!(binary, optimizer = AdamW::new(5e-3), loss = BinaryCrossentropy {{ from_logits: true }}, metrics = ["accuracy"], strategy = none)?;
fit!(binary, mail, epochs = 30, batch_size = 4, verbose = false)?;""")
    cell = kernel.run('binary.predict(["a game", "a font"])?')
    lines = result(cell).strip().splitlines()
    assert [line.split()[0] for line in lines] == ["ham", "spam"], lines
    assert all(re.search(r" \d+\.\d %", line) for line in lines), lines
    assert "%" in cell.bundles[-1]["text/html"]
    kernel.run('binary.save_pretrained("binary")?;')
    again = kernel.run('BertForSequenceClassification::from_pretrained("binary", 1)?.predict(["a game", "a font"])?')
    assert result(again) == result(cell)


def test_mixed_precision_is_a_policy(kernel, compiled, tiny):
    cell = kernel.execute('set_global_policy("float16")?;')
    check_error(cell, "SC0103", "mixed_float16")
    build = f"""let half = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
compile!(half, optimizer = AdamW::new(5e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }}, strategy = none)?"""
    shown = kernel.run('mixed_precision::set_global_policy("mixed_float16")?;\n' + build).shown()
    assert "mixed_float16, emulated" in shown and "by 32768 at first" in shown, shown
    kernel.run('set_global_policy("float32")?;')
    history = kernel.run("fit!(half, train, epochs = 1, batch_size = 16)?").shown()
    assert re.search(r"mixed_float16, emulated: (no step was|\d+ of \d+ steps were) skipped", history), history
    assert "emulated" not in kernel.run(build).shown()


def test_a_custom_callback(kernel, compiled, tiny):
    """A type defined in one cell and used in the next stops the run and keeps its records."""
    kernel.run(model_cell(tiny))
    kernel.run("""struct Watch { losses: Vec<f64>, at_most: u64, said: String }
impl Callback for Watch {
    fn on_train_begin(&mut self, run: &FitStarted) { self.said = format!("{} examples", run.examples); }
    fn on_epoch_begin(&mut self, epoch: u64) { println!("epoch {epoch} begins"); }
    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        self.losses.push(epoch.loss);
        if epoch.epoch + 1 == self.at_most { Flow::Stop } else { Flow::Continue }
    }
    fn on_train_end(&mut self, history: &History) { self.said += &format!(", {} epochs", history.epochs.len()); }
}""")
    cell = kernel.run("""let mut watch = Watch { losses: Vec::new(), at_most: 2, said: String::new() };
let history = fit!(model, train, epochs = 5, batch_size = 32, callbacks = [&mut watch, on_epoch_end(|_| println!("and one more"))])?;""")
    assert cell.stream("stdout").splitlines() == ["epoch 0 begins", "and one more", "epoch 1 begins", "and one more"]
    assert kernel.run("(history.epochs.len(), history.stopped_early)").shown() == "(2, true)"
    assert kernel.run("watch.said.clone()").shown().strip('"') == f"{EXAMPLES} examples, 2 epochs"
    assert kernel.run("watch.losses == history.epochs.iter().map(|it| it.loss).collect::<Vec<_>>()").shown() == "true"
