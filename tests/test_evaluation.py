"""How sure a result is, in a notebook: assessments, differences, several seeds and settings, with their pages and errors."""

import json
import re
import time

import pytest

from kernel_client import DIAGNOSTIC, check_card, check_static_html

ENTROPY = "loss = SparseCategoricalCrossentropy { from_logits: true }"


@pytest.fixture(scope="module")
def ready(kernel, tiny):
    """Predictions of texts by a trained model and by a new one, and rows of numbers in two parts."""
    kernel.run(f"""let (train, dev) = debian_sections()?;
let (train, dev) = (train.shuffled(1).take(320), dev.shuffled(1).take(80));
let model = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
compile!(model, optimizer = AdamW::new(3e-3), {ENTROPY})?;
fit!(model, train, batch_size = 16, epochs = 3, verbose = false)?;
let new = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
let (answers, guesses) = (model.predict(&dev)?, new.predict(&dev)?);
let rows = make_classification(200, 4, 2, 7)?;
let (learn, check) = rows.stratified_split(0.3, 0)?;""")
    return kernel


def test_an_assessment_agrees_with_the_evaluation(ready):
    cell = ready.run("let assessment = answers.assess(&dev)?; assessment")
    page, text = cell.shown("text/html"), cell.shown()
    check_static_html(page)
    assert "assessment on 80 examples" in text and "calibration error" in text, text
    assert "<img" in page and "<th scope=\"row\"" in page
    value, low, high = map(float, re.search(r"accuracy ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text).groups())
    assert 0 <= low < value < high <= 1
    accuracy = ready.run("answers.confusion_matrix(&dev)?.accuracy().unwrap()").shown()
    assert float(accuracy) == pytest.approx(value, abs=1e-4)
    first = ready.run("""let first = assessment.errors(3).rows[0].clone();
let same = dev.examples.iter().find(|it| it.row == first.row).unwrap().text == first.text;
(first.label, first.predicted, same)""")
    label, predicted, same = re.match(r"\((\d+), (\d+), (\w+)\)", first.shown()).groups()
    assert label != predicted and same == "true"


def test_a_difference_says_whether_it_can_be_chance(ready):
    cell = ready.run("answers.difference(&guesses, &dev)?")
    assert [bundle[DIAGNOSTIC]["code"] for bundle in cell.diagnostics] == ["SC0516"]
    assert "on the same 80 examples" in cell.shown() and "McNemar, exact" in cell.shown(), cell.shown()
    assert "the difference can be chance" in ready.run("answers.difference(&answers, &dev)?").shown()


def test_what_cannot_be_assessed(ready):
    check_card(ready.execute("answers.assess(&train)?;"), "SC0103", "80, one for each prediction")
    check_card(ready.execute("assessment.best_threshold()?;"), "SC0103", "two classes")
    ready.run("""let line = Sequential([Dense(1).input_shape(3)])?;
let numbers = make_regression(10, 3, 0)?;""")
    check_card(ready.execute("line.predict(&numbers)?.assess(&numbers)?;"), "SC0103", "one class for each example")


def test_a_threshold_between_two_classes(ready):
    ready.run(f"""let two = Sequential([Dense(8).input_shape(4).activation("relu"), Dense(2)])?;
compile!(two, optimizer = Adam::new(0.02), {ENTROPY})?;
fit!(two, learn, epochs = 4, batch_size = 16, verbose = false)?;""")
    shown = ready.run("two.predict(&check)?.assess(&check)?.best_threshold()?.to_string()").shown()
    best, at_half = map(float, re.search(r"F1 ([\d.]+) .* F1 ([\d.]+)\.", shown).groups())
    assert best >= at_half > 0.5, shown
    compared = ready.run("""let untrained = Sequential([Dense(8).input_shape(4).activation("relu"), Dense(2)])?;
two.predict(&check)?.difference(&untrained.predict(&check)?, &check)?""")
    assert "the first model is better on these examples" in compared.shown(), compared.shown()


TRAIN = f"""let model = Sequential([Dense(8).input_shape(4).activation("relu").seed(SEED), Dense(2).seed(SEED)])?;
    compile!(model, optimizer = Adam::new(RATE), {ENTROPY}, metrics = [accuracy()])?;
    fit!(model, learn, epochs = 2, batch_size = 16, verbose = false)?;
"""


def trained(seed, rate):
    return TRAIN.replace("SEED", seed).replace("RATE", rate)


def result(cell):
    """The value of a cell; trials that take long show their progress in a line above it."""
    (value,) = cell.of_kind("execute_result")
    return value["data"]


def test_several_seeds_have_a_mean_and_a_deviation(ready):
    cell = ready.run(f"let runs = over_seeds(0..3, |seed| {{ {trained('seed', '0.01')} evaluate!(model, check, verbose = false) }})?; runs")
    check_static_html(result(cell)["text/html"])
    lines = result(cell)["text/plain"].splitlines()
    assert re.match(r"3 seeds: accuracy [\d.]+ ± [\d.]+, loss ", lines[0]), lines
    rows = {line.split()[0]: float(line.split()[1]) for line in lines[2:]}
    assert rows["mean"] == pytest.approx(sum(rows[seed] for seed in "012") / 3, abs=1e-4)
    check_card(ready.execute("over_seeds([1, 1], |seed| Ok(seed as f64))?;"), "SC0103", "each once")


def test_a_sweep_has_the_best_trial_first(ready):
    cell = ready.run(f"""let found = sweep!(rate = [0.0001, 0.03], seed = [1, 2] => {{
    {trained('seed', 'rate')}    evaluate!(model, check, verbose = false)?
}})?;
found""")
    page, text = result(cell)["text/html"], result(cell)["text/plain"]
    check_static_html(page)
    assert "<img" in page and "parallel coordinates of 4 trials" in page
    assert text.startswith("4 trials, the best by accuracy: rate = 0.03"), text
    scores = [float(line.split()[3]) for line in text.splitlines()[2:6]]
    assert scores == sorted(scores, reverse=True)
    assert ready.run('found.settings(found.best("loss").unwrap())').shown().startswith('"rate = 0.03')


def test_a_sweep_in_a_folder_goes_on_after_an_interrupt(ready, tmp_path):
    ready.run("let mut made: Vec<i32> = Vec::new();")
    slow = f"""let swept = sweep!(Search::grid().folder("{tmp_path}/sweep"); depth = [1, 2, 3, 4, 5, 6] => {{
    made.push(depth);
    println!("begun {{depth}}");
    WAIT
    depth as f64
}})?;
swept"""
    # The third trial takes until it is interrupted.
    waits = "if depth == 3 { fit!(model, train, epochs = 1000, verbose = false)?; }"
    request = ready.request(slow.replace("WAIT", waits))
    ready.wait_for(request, "stream", count=1, timeout=120)
    for _ in range(600):
        if (tmp_path / "sweep" / "trial-1.json").exists():
            break
        time.sleep(0.1)
    ready.manager.interrupt_kernel()
    stopped = ready.collect(request, slow, timeout=120)
    assert "interrupted before this line" in stopped.errors[0]["evalue"], stopped.errors
    assert "4 trials not made: interrupted" in ready.run("swept").shown()
    kept = sorted(path.name for path in (tmp_path / "sweep").iterdir())
    assert kept == ["sweep.json", "trial-0.json", "trial-1.json"]
    assert json.loads((tmp_path / "sweep" / "trial-1.json").read_text())["settings"] == ["2"]
    again = result(ready.run(slow.replace("WAIT", "")))["text/plain"]
    assert "2 trials read from the folder, not made again" in again and again.startswith("6 trials"), again
    assert ready.run("made").shown() == "[1, 2, 3, 3, 4, 5, 6]"
    other = f'sweep!(Search::grid().folder("{tmp_path}/sweep"); depth = [1, 2] => {{ depth as f64 }})?;'
    check_card(ready.execute(other), "SC0103", "the folder of the same sweep, or a new one")


def test_a_trial_that_fails_does_not_end_the_sweep(ready):
    cell = ready.run("""sweep!(epochs = [0, 1] => {
    fit!(model, train.take(16), epochs = epochs, verbose = false)?
})?""")
    assert "1 trial ended with an error" in cell.shown() and "SC0103" in cell.shown(), cell.shown()
    check_card(ready.execute("sweep!(epochs = [0] => { fit!(model, train.take(16), epochs = epochs)? })?;"), "SC0103", "epochs")
