"""The repository's notebooks carry the outputs of the present code, numbers aside; `notebooks/run.sh --renew` renews them."""

import copy
import json
import platform
import re

import pytest

import notebook_outputs
from conftest import LONG_NOTEBOOKS, ROOT, long_ones

NAMES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
# Those of the course are executed by tests/test_course.py.
ALL = sorted(str(path.relative_to(ROOT / "notebooks").with_suffix("")) for path in (ROOT / "notebooks").rglob("*.ipynb"))
# Beyond about a megabyte, forges do not render a notebook.
LARGEST = 1_000_000


def committed(name):
    return json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", long_ones(NAMES, LONG_NOTEBOOKS))
def test_outputs_are_those_of_the_present_code(run_notebook, name):
    differences = [
        f"cell {number}: {source}\n--- committed\n{there}\n--- executed\n{here}"
        for number, source, here, there in notebook_outputs.differences(run_notebook(name), committed(name))
    ]
    assert not differences, "renew them with notebooks/run.sh --renew:\n" + "\n".join(differences)


@pytest.mark.parametrize("name", ALL)
def test_notebooks_are_small_and_name_no_machine(name):
    text = (ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    notebook = json.loads(text)
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "one space a level, as nbformat writes"
    shown = json.dumps([cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"], ensure_ascii=False)
    # Files in the folder for temporary files are those that a cell has made.
    folders = set(re.findall(r"(?<![\w.<:/-])/(?:home|root|work|tmp|var|mnt|Users|opt|srv)/[\w.-]+", shown))
    assert folders <= {"/tmp/reviews.tsv", "/tmp/reviews"}, folders
    assert platform.node() not in shown or len(platform.node()) < 5
    for cell in notebook["cells"]:
        assert "execution" not in cell["metadata"], "timestamps"


def test_the_comparison_sees_what_changes_and_nothing_else():
    table = "epoch  loss  seq/s  time\n    1  0.52  800.2  0.1 s\ncpu:0  2.10 MiB  9a8b7c"
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": [table], "x+json": {"rows": [[1, 2.5]]}}}
    cell = {"cell_type": "code", "execution_count": 1, "source": "", "outputs": [output]}

    def differs(change):
        other = copy.deepcopy(cell)
        change(other)
        return bool(list(notebook_outputs.differences({"cells": [other]}, {"cells": [cell]})))

    def text(after):
        return lambda other: other["outputs"][0]["data"].update({"text/plain": after})

    progress = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": "read 91 MB in 0.4 s"}}
    error = {"output_type": "error", "ename": "SC0101", "evalue": "", "traceback": ["Cell In[1], line 1: SC0101"]}
    assert not differs(lambda other: None)
    assert not differs(text(table.replace("0.52", "0.613").replace("800.2", "16784.2").replace("9a8b7c", "123456")))
    assert not differs(lambda other: other["outputs"].insert(0, progress))
    straggler = "worker 2 is the slowest: it computes 610 ms in a step, the others at most 0.3 s, and they wait for it"
    assert not differs(text(f"{table}\n{straggler}"))
    assert not differs(text(f"{table}<div style=\"color:gray\">{straggler}</div>"))
    stages = f"{table}\nstage 0  FFBB··\nstage 1  ·FFBB·"
    pipeline = {"cells": [cell | {"outputs": [output | {"data": {"text/plain": stages}}]}]}
    other = json.loads(json.dumps(pipeline).replace("FFBB", "FBFB"))
    assert not list(notebook_outputs.differences(other, pipeline))
    fewer = json.loads(json.dumps(pipeline).replace("stage 1", "device 1"))
    assert list(notebook_outputs.differences(fewer, pipeline))
    profile = "profile: 3 steps of 0.2 s\nMemory is the limit: …\n  forward  95 ms\nlayers: forward, FLOP/s\n  encoder  9 ms  1.2 GFLOP/s"
    measured = {"cells": [cell | {"outputs": [output | {"data": {"text/plain": profile}}]}]}
    slower = json.loads(json.dumps(measured).replace("Memory", "Dispatch").replace("1.2 GFLOP/s", "800 MFLOP/s"))
    assert not list(notebook_outputs.differences(slower, measured))
    assert list(notebook_outputs.differences(json.loads(json.dumps(measured).replace("encoder", "decoder")), measured))
    assert differs(text(table.replace("loss", "val loss")))
    assert differs(text(table + "\n    2  0.4  800.2  0.1 s"))
    assert differs(lambda other: other["outputs"].append(error))
    assert differs(lambda other: other["outputs"].clear())
    assert differs(lambda other: other["outputs"][0]["data"]["x+json"]["rows"].append([3, 4]))
    assert differs(lambda other: other.update(execution_count=2))


def test_a_renewal_leaves_what_differs_in_speed_alone():
    def notebook(loss, speed):
        text = f"epoch  loss  seq/s  time\n    1  {loss}  {speed}  0.1 s"
        output = {"output_type": "display_data", "metadata": {}, "data": {"text/plain": text, "text/html": f"<b>{speed}</b>"}}
        return {"cells": [{"cell_type": "code", "execution_count": 1, "source": "", "outputs": [output]}]}

    kept = notebook("0.5", "800.2")
    notebook_outputs.renew(notebook("0.5", "16784.2"), kept)
    assert kept == notebook("0.5", "800.2")
    notebook_outputs.renew(notebook("0.4", "16784.2"), kept)
    assert kept == notebook("0.4", "16784.2")
