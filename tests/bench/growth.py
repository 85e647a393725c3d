"""How cost grows: with the batch, the sequence, the replicas, the layers and the number of examples. One table and one
figure each; a bend in a cost for each unit has to be explained in docs/results.md."""

import pathlib
import statistics

import figure
from programs import example, last_json, log


class Series:
    """One thing that grows, and what is measured of it."""

    def __init__(self, name, title, unit, values, quick, arguments, per):
        self.name, self.title, self.unit, self.values, self.quick = name, title, unit, values, quick
        # The arguments of train_step for a value, and how many units a step of it has.
        self.arguments, self.per = arguments, per


SERIES = [
    Series("batch", "A training step by its batch (64 tokens)", "rows of a batch", [1, 2, 4, 8, 16, 32, 64, 128, 256], [1, 2],
           lambda n: {"batch": n, "seq": 64}, lambda n: n),
    Series("sequence", "A training step by its sequence (8 rows)", "tokens of a row", [16, 32, 64, 128, 256, 512], [16, 32],
           lambda n: {"batch": 8, "seq": n}, lambda n: n),
    Series("replicas", "A training step by its logical replicas (32 rows of 32 tokens in all)", "replicas", [1, 2, 3, 4, 6, 8], [1, 2],
           lambda n: {"batch": 32, "seq": 32, "replicas": n}, lambda n: 1),
    Series("layers", "A training step by the layers of the network (8 rows of 64 tokens)", "layers", [2, 4, 6, 8, 12, 16, 24], [2, 3],
           lambda n: {"batch": 8, "seq": 64, "layers": n}, lambda n: n),
]
EXAMPLES = [10**3, 10**4, 10**5, 10**6]
QUICK_EXAMPLES = [100, 1000]
STREAMED = [10**5, 10**6]
QUICK_STREAMED = [600, 2000]


def steps(program, series, value, repeats, measured):
    arguments = {"device": "cpu", "steps": measured} | series.arguments(value)
    command = [program, *(word for name, given in arguments.items() for word in (f"--{name}", given))]
    runs = [last_json(command) for _ in range(repeats)]
    return [statistics.median(run[column] for run in runs) for column in ("seconds", "peak_memory_bytes")]


def save(images, name, drawing):
    images.mkdir(parents=True, exist_ok=True)
    (images / f"growth-{name}.svg").write_text(drawing)


def grow_steps(series, repeats, images, quick):
    program = example("train_step")
    found = []
    print(f"| {series.unit} | s a step | ms a step and unit | peak memory, MB |\n| --- | --- | --- | --- |", flush=True)
    for value in series.quick if quick else series.values:
        seconds, memory = steps(program, series, value, repeats, 1 if quick else 5)
        found.append((value, seconds, memory))
        print(f"| {value} | {seconds:.3f} | {seconds * 1e3 / series.per(value):.2f} | {memory / 1e6:.0f} |", flush=True)
        log(f"{series.name}: {value}")
    curves = [("milliseconds", [(value, seconds * 1e3) for value, seconds, _ in found]),
              ("megabytes", [(value, memory / 1e6) for value, _, memory in found])]
    save(images, series.name, figure.draw(series.title, series.unit, "ms a step, MB at the peak", curves))
    print(flush=True)


def grow_examples(repeats, images, quick):
    """Time and memory of each example: held, tokenized, and shuffled into the batches of an epoch."""
    program = example("data_growth")
    kinds = ["held", "tokenized", "epoch"]
    found = []
    print("| examples | held, µs and bytes each | tokenized, µs and bytes each | shuffled and batched, µs each, MB in all |"
          "\n| --- | --- | --- | --- |", flush=True)
    for count in QUICK_EXAMPLES if quick else EXAMPLES:
        runs = [last_json([program, count]) for _ in range(repeats)]
        row = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        found.append(row)
        each = {kind: row[f"{kind}_seconds"] * 1e6 / count for kind in kinds}
        print(f"| {count} | {each['held']:.2f}, {row['held_bytes'] / count:.0f} | {each['tokenized']:.2f}, "
              f"{row['tokenized_bytes'] / count:.0f} | {each['epoch']:.2f}, {row['epoch_bytes'] / 1e6:.1f} |", flush=True)
        log(f"examples: {count}")
    curves = [(kind, [(row["examples"], row[f"{kind}_seconds"] * 1e6 / row["examples"]) for row in found]) for kind in kinds]
    save(images, "examples", figure.draw("A data set by its examples", "examples", "µs an example", curves))
    print(flush=True)


def grow_streams(repeats, quick):
    """Time of each row of a file that is streamed, and the most memory while it is looked through, counted and batched."""
    program = example("data_growth")
    print("| rows | file, MB | looked through, rows a second | tokenized, rows a second | batches of an epoch, rows a second "
          "| peak memory, MB |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    for count in QUICK_STREAMED if quick else STREAMED:
        runs = [last_json([program, count, "streamed"]) for _ in range(repeats)]
        row = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        speeds = [f"{count / row[f'{part}_seconds']:.0f}" for part in ("looked", "tokenized", "epoch")]
        print(f"| {count} | {row['file_bytes'] / 1e6:.1f} | {' | '.join(speeds)} | {row['peak_bytes'] / 1e6:.1f} |", flush=True)
        log(f"streamed: {count}")
    print(flush=True)


def measure(repeats, images, quick):
    images = pathlib.Path(images)
    for series in SERIES:
        print(f"{series.title}\n", flush=True)
        grow_steps(series, repeats, images, quick)
    print("A data set by its examples\n", flush=True)
    grow_examples(repeats, images, quick)
    print("A file of comma-separated values, streamed\n", flush=True)
    grow_streams(repeats, quick)
