"""What questions to a run cost: `what_if`, `influence` and `profile`, as multiples of an optimizer step."""

import statistics

from programs import example, last_json, log

ROWS = {
    "a step by `profile(1)`": "profile",
    "`what_if` without an attention head": "what_if_head",
    "`what_if` with another label": "what_if_label",
    "`influence` of one row, for each step that is made again": "influence",
}


def measure(repeats, sizes, turns, model):
    """Prints a table for each size; the ratios are medians over the repeats."""
    program = example("ask_costs")
    for batch, seq in sizes:
        command = [program, "--model", model, "--batch", batch, "--seq", seq, "--turns", turns]
        runs = []
        for n in range(repeats):
            runs.append(last_json(command))
            log(f"{batch} × {seq}: {n + 1} of {repeats}")
        step = statistics.median(run["step"]["seconds"] for run in runs)
        print(f"| {batch} × {seq}: a step of {step * 1e3:.1f} ms | steps | each of {repeats} runs |\n| --- | --- | --- |")
        for text, row in ROWS.items():
            ratios = [run[row]["ratio"] for run in runs]
            print(f"| {text} | {statistics.median(ratios):.3f} | {', '.join(f'{ratio:.3f}' for ratio in ratios)} |")
        print(flush=True)
