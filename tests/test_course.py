"""The course: each solution passes its checks, each lesson as it is given fails them, and both have the same cells but for the
exercises. Without STRATOSCOPE_FULL_TESTS two solutions and one lesson are executed."""

import json
import re

import pytest

import notebook_outputs
from conftest import ROOT, long_ones
from kernel_client import without_ansi

LESSONS = sorted(path.stem for path in (ROOT / "notebooks" / "course").glob("*.ipynb"))
# Executed always: they have checks of programs, of functions over models, and errors that are meant.
SOLUTIONS_ALWAYS, LESSONS_ALWAYS = ("03_all_reduce", "05_scopes"), ("06_accumulation",)
PICTURE = re.compile(r"\b(plot(_xy)?|scatter|heatmap|histogram|placement)\(|\.plot\(\)")
# A gradient that is begun again in the loop: SC0506.
NOTES_ON_PURPOSE = ("lesson-06-4",)
OPEN, RIGHT = "still to be filled in", ": right"


def marked(always):
    return long_ones(LESSONS, set(LESSONS).difference(always))


def committed(name):
    return json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))


def source_of(cell):
    return notebook_outputs.text_of(cell["source"])


def tags_of(cell):
    return cell["metadata"].get("tags", [])


def shown(cell):
    """The texts of a cell's displays and its result."""
    return "\n".join(notebook_outputs.text_of(output["data"].get("text/plain", "")) for output in cell["outputs"]
                     if output["output_type"] in ("display_data", "execute_result"))


def errors_of(cell):
    return [without_ansi("\n".join(output["traceback"])) for output in cell["outputs"] if output["output_type"] == "error"]


def checks_of(notebook):
    """The cells with a check, without the report at the end."""
    return [cell for cell in notebook["cells"] if "check" in tags_of(cell) and "course::report" not in source_of(cell)]


def report_of(notebook):
    return next(cell for cell in notebook["cells"] if "course::report" in source_of(cell))


@pytest.mark.parametrize("name", marked(SOLUTIONS_ALWAYS))
def test_a_solution_passes_its_checks(run_notebook, name):
    executed = run_notebook(f"course/solutions/{name}")
    for cell in executed.cells:
        if cell.cell_type == "code":
            errors = errors_of(cell)
            assert len(errors) == int("raises-exception" in tags_of(cell)), errors
    for cell in checks_of(executed):
        assert RIGHT in shown(cell).splitlines()[0], shown(cell)
    report = shown(report_of(executed))
    assert report.startswith(f"lesson {int(name[:2])}") and not re.search(f"{OPEN}|not yet right|noted", report), report
    differences = list(notebook_outputs.differences(executed, committed(f"course/solutions/{name}")))
    assert not differences, f"renew it with notebooks/run.sh --renew notebooks/course/solutions/{name}.ipynb: {differences}"


@pytest.mark.parametrize("name", marked(LESSONS_ALWAYS))
def test_a_lesson_as_it_is_given_fails_its_checks(run_notebook, name):
    executed = run_notebook(f"course/{name}", allow_errors=True)
    for cell in checks_of(executed):
        text = shown(cell)
        assert RIGHT not in text, text
        assert OPEN in text or errors_of(cell), (source_of(cell), text)
    open_ones = [text for text in map(shown, checks_of(executed)) if OPEN in text]
    assert len(open_ones) >= 2, "friendly cards, not panics"
    (error,) = errors_of(report_of(executed))
    assert "is not finished" in error, error
    for number in re.findall(r"exercise (\d+\.\d+)", "\n".join(open_ones)):
        assert f"{number} (" in error or number == "3.2", error
    # No check has ended the process of the cells: what the first cell made is still there.
    assert not any("ended its process" in error for cell in executed.cells if cell.cell_type == "code" for error in errors_of(cell))


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_and_its_solution_differ_in_the_exercises_only(name):
    lesson, solution = committed(f"course/{name}"), committed(f"course/solutions/{name}")
    assert [cell["id"] for cell in lesson["cells"]] == [cell["id"] for cell in solution["cells"]]
    exercises = 0
    for given, solved in zip(lesson["cells"], solution["cells"], strict=True):
        assert tags_of(given) == tags_of(solved)
        if "exercise" not in tags_of(given):
            assert given["source"] == solved["source"], source_of(given)
            continue
        exercises += 1
        assert "todo!(" in source_of(given) or "= None;" in source_of(given), source_of(given)
        assert "todo!(" not in source_of(solved) and "= None;" not in source_of(solved), source_of(solved)
    sources = [source_of(cell) for cell in lesson["cells"]]
    assert exercises >= 2 and len(checks_of(lesson)) >= 2
    assert any("course::predicted" in source for source in sources), "something to predict"
    assert any("todo!(" in source for source in sources), "something to fill in"
    assert any(PICTURE.search(source) for source in sources), "a picture"
    assert not any(cell.get("outputs") for cell in lesson["cells"]), "a lesson has no outputs: they would be the answers"
    assert all(cell["outputs"] for cell in checks_of(solution)), "a solution has its outputs"


@pytest.mark.parametrize("name", LESSONS)
def test_the_cells_of_a_lesson_raise_no_notes(name):
    """But for those that show an error or a warning on purpose."""
    cells = committed(f"course/solutions/{name}")["cells"]
    for cell in cells:
        if cell["cell_type"] == "code" and "raises-exception" not in tags_of(cell) and cell["id"] not in NOTES_ON_PURPOSE:
            assert not re.search(r"(note|warning)\[", shown(cell)), shown(cell)


def test_the_exercises_of_the_program_are_those_of_the_notebooks():
    rust = (ROOT / "src" / "course" / "src" / "lessons.rs").read_text()
    rust = rust.split("pub const EXERCISES")[1].split("\n];")[0]
    listed = re.findall(r'exercise\(\s*"(\d+\.\d+)"|number: "(\d+\.\d+)"', rust)
    solved = "\n".join(shown(cell) for name in LESSONS for cell in checks_of(committed(f"course/solutions/{name}")))
    found = re.findall(r"exercise (\d+\.\d+) \(", solved)
    assert sorted(found) == sorted(first or second for first, second in listed)


def test_the_page_lists_every_lesson():
    page = (ROOT / "docs" / "course.md").read_text()
    for name in LESSONS:
        assert f"../notebooks/course/{name}.ipynb" in page and f"../notebooks/course/solutions/{name}.ipynb" in page, name
    assert len(LESSONS) == 14
