"""Writes labels, probabilities and what cleanlab finds in them: `python make.py`, with cleanlab 2.9.0 and numpy. The probabilities are
random, fixed by the seed, and rounded before cleanlab sees them, so that the file has exactly the numbers it was given."""

import json
import pathlib

import numpy as np
from cleanlab.count import compute_confident_joint, get_confident_thresholds
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores

HERE = pathlib.Path(__file__).parent


def case(name, rows, classes, noise, sharpness, seed, absent=None):
    """`noise` of the labels are wrong, most often as the next class; nobody is labeled as `absent`."""
    random = np.random.default_rng(seed)
    true = random.integers(classes, size=rows)
    wrong = random.random(rows) < noise
    other = (true + 1 + (random.random(rows) < 0.3) * random.integers(classes - 1, size=rows)) % classes
    labels = np.where(wrong, other, true)
    if absent is not None:
        labels[labels == absent] = (absent + 1) % classes
    scores = random.normal(size=(rows, classes))
    scores[np.arange(rows), true] += sharpness
    # Some classes are predicted with more confidence than others: the thresholds differ.
    scores *= np.linspace(0.7, 1.6, classes)
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    probabilities = np.round(probabilities, 5)
    joint, found = compute_confident_joint(labels, probabilities, return_indices_of_off_diagonals=True)
    issues = {by: find_label_issues(labels, probabilities, filter_by=by, return_indices_ranked_by="self_confidence", n_jobs=1)
              for by in ("prune_by_noise_rate", "confident_learning")}
    return {
        "name": name,
        "labels": labels.tolist(),
        "probabilities": probabilities.tolist(),
        "thresholds": [float(it) for it in get_confident_thresholds(labels, probabilities)],
        "counted_joint": compute_confident_joint(labels, probabilities, calibrate=False).tolist(),
        "joint": joint.tolist(),
        "quality": [float(it) for it in get_label_quality_scores(labels, probabilities, method="self_confidence")],
        "issues": {by: [int(it) for it in rows] for by, rows in issues.items()},
    }


cases = [
    case("four classes", 160, 4, 0.12, 2.5, 1),
    case("two classes", 90, 2, 0.2, 1.2, 2),
    case("much noise", 120, 5, 0.45, 1.5, 3),
    case("a class without labels", 100, 4, 0.1, 2.0, 4, absent=2),
    case("few rows", 12, 3, 0.3, 2.0, 5),
]
text = json.dumps({"cleanlab": "2.9.0", "cases": cases})
(HERE / "cases.json").write_text(text.replace('}, {"name"', '},\n{"name"') + "\n")
for each in cases:
    print(each["name"], {by: len(rows) for by, rows in each["issues"].items()})
