#!/usr/bin/env python3
"""Measures stratoscope beside evcxr_jupyter and PyTorch, in one run on one machine.

    .venv/bin/python tests/bench/bench.py                  the kernel alone, against its budgets
    .venv/bin/python tests/bench/bench.py --evcxr          beside evcxr_jupyter (installs it: about 9 CPU-minutes)
    .venv/bin/python tests/bench/bench.py --train          training speed, memory and GFLOP/s, in float32 and bfloat16
    .venv/bin/python tests/bench/bench.py --train --torch  beside the fastest of PyTorch's eager, SDPA, torch.compile and bf16
                                                           autocast (installs it into target/bench/torch)
    .venv/bin/python tests/bench/bench.py --infer --torch  the same for `predict`
    .venv/bin/python tests/bench/bench.py --accuracy --torch  accuracy on unseen rows beside transformers, 5 seeds
    .venv/bin/python tests/bench/bench.py --memory         what a training step allocates, beside `memory_plan`
    .venv/bin/python tests/bench/bench.py --runs           what watching a run costs: alarms, snapshots, checkpoints
    .venv/bin/python tests/bench/bench.py --ask            what questions to a run cost: what_if, influence, profile
    .venv/bin/python tests/bench/bench.py --debugger       what the debugger costs: cells while it is off, on, with a breakpoint
    .venv/bin/python tests/bench/bench.py --meshes         a step of ZeRO-1, -2, -3, of slices and of a pipeline beside mirrored
    .venv/bin/python tests/bench/bench.py --newcomer       three tasks of a new user: install, a pasted cell, an error
    .venv/bin/python tests/bench/bench.py --growth         how cost grows with batch, sequence, replicas, layers and examples;
                                                           draws docs/images/growth-*.svg
    .venv/bin/python tests/bench/bench.py --train --device wgpu  on a GPU, beside the CPU, with parity: also cuda, wgpu:1

Each value is a median; the two sides of a ratio alternate, so that a busy minute affects both. A
table in Markdown goes to standard output, progress to standard error.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import time

import accuracy
import asking
import debugging
import growth
import newcomer
import training
from programs import ROOT, WORK, example, last_json, log

# Design §3: seconds, and megabytes of the kernel process alone.
BUDGETS = {
    "start to kernel_info": 0.3,
    "fresh kernel to first ML result": 3.0,
    "first ML cell, 10 s after the start": None,
    "trivial cell": None,
    "ML cell": 0.25,
    "rustc-error cell": 0.25,
    "DSL-error cell": 0.1,
    "completion, warm": 0.3,
    "inspection, warm": 0.3,
    "resident memory": 500.0,
}

# Compiled cells are cached; each run of this program measures new cells.
NEW = f" // {time.time_ns()}"

ML_IMPORT = {
    "stratoscope": "use stratoscope::burn::tensor::{Device, Tensor};",
    "evcxr": "use rt::burn::tensor::{Device, Tensor};",
}
ML_FIRST = "let x = Tensor::<2>::ones([64, 64], &Device::flex()); let y = x.clone().matmul(x.clone()); println!(\"{}\", y.clone().sum().into_scalar::<f32>());"
ML_CELL = "let y{n} = x.clone().matmul(y.clone()).sum_dim(1); println!(\"{{:?}}\", y{n}.dims());"
RUSTC_ERROR = "let wrong_{n}: usize = \"text {n}\";"
# After a dot and after a path, alternating: rust-analyzer answers both, and each text is new.
COMPLETED = ["let c{n} = warm.pow", "let c{n} = std::fs::read_to_s"]
INSPECTED = ["let i{n} = warm.pow|(2);", "let i{n} = Vec|::<u8>::new();"]
DSL_ERROR = "compile!(model, optimiser = AdamW::new(5e-5), loss = {n})?;"


class Session:
    """One running kernel and its client."""

    def __init__(self, name):
        from jupyter_client.manager import KernelManager

        self.manager = KernelManager(kernel_name=name)
        self.began = time.perf_counter()
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()

    def kernel_info(self):
        """Seconds from the start of the process to the first kernel_info_reply."""
        while True:
            self.client.kernel_info()
            try:
                self.client.get_shell_msg(timeout=0.05)
                break
            except Exception:
                if time.perf_counter() - self.began > 60:
                    raise TimeoutError("no kernel_info_reply within 60 s")
        return time.perf_counter() - self.began

    def run(self, code, timeout=1200, expect="ok"):
        """Seconds from Enter to idle, and the reply's status is checked."""
        began = time.perf_counter()
        reply = self.client.execute_interactive(code, timeout=timeout, allow_stdin=False, output_hook=lambda _: None)
        seconds = time.perf_counter() - began
        status = reply["content"]["status"]
        if status != expect:
            raise RuntimeError(f"expected {expect}, got {reply['content']} from {code!r}")
        return seconds

    def complete(self, code):
        """Seconds until there are matches at the end of the code."""
        began = time.perf_counter()
        content = self.client.complete(code, reply=True, timeout=60)["content"]
        if not content["matches"]:
            raise RuntimeError(f"nothing completes {code!r}")
        return time.perf_counter() - began

    def inspect(self, marked):
        """Seconds until there is documentation for the name before `|`."""
        cursor = marked.index("|")
        began = time.perf_counter()
        content = self.client.inspect(marked.replace("|", ""), cursor, reply=True, timeout=60)["content"]
        if not content["found"]:
            raise RuntimeError(f"nothing is known at {marked!r}")
        return time.perf_counter() - began

    def resident(self):
        """Megabytes of the kernel process alone, without the process that runs the cells."""
        status = pathlib.Path(f"/proc/{self.manager.provisioner.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1000

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def first_result(kind, name, dep, pause=0):
    """Seconds to the result, from the start of the kernel or from the end of a pause after it."""
    session = Session(name)
    began = session.began
    try:
        for line in dep:
            session.run(line)
        if pause:
            session.kernel_info()
            time.sleep(pause)
            began = time.perf_counter()
        session.run(ML_IMPORT[kind] + "\n" + ML_FIRST + f" // {time.time_ns()}")
        return time.perf_counter() - began
    finally:
        session.close()


def measure_kernels(kinds, repeats, cells):
    values = {kind: {row: [] for row in BUDGETS} for kind in kinds}
    for n in range(repeats):
        for kind, (name, _) in kinds.items():
            session = Session(name)
            values[kind]["start to kernel_info"].append(session.kernel_info())
            session.close()
            log(f"{kind}: start {n + 1} of {repeats}")
    for n in range(repeats):
        for kind, (name, dep) in kinds.items():
            if kind == "stratoscope" or dep:
                values[kind]["fresh kernel to first ML result"].append(first_result(kind, name, dep))
                values[kind]["first ML cell, 10 s after the start"].append(first_result(kind, name, dep, pause=10))
                log(f"{kind}: first result {n + 1} of {repeats}")
    sessions = {kind: Session(name) for kind, (name, _) in kinds.items()}
    try:
        for kind, (_, dep) in kinds.items():
            sessions[kind].kernel_info()
            for line in dep:
                sessions[kind].run(line)
            sessions[kind].run("let warm: i32 = 1;")
            for each in range(2):
                sessions[kind].complete(COMPLETED[each].replace("{n}", "_warm"))
                sessions[kind].inspect(INSPECTED[each].replace("{n}", "_warm"))
            if kind == "stratoscope" or dep:
                sessions[kind].run(ML_IMPORT[kind] + "\n" + ML_FIRST)
        for n in range(cells):
            for kind, (_, dep) in kinds.items():
                session = sessions[kind]
                values[kind]["trivial cell"].append(session.run(f"let t{n} = {n}; println!(\"{{}}\", t{n});" + NEW))
                if kind == "stratoscope" or dep:
                    values[kind]["ML cell"].append(session.run(ML_CELL.replace("{n}", str(n)).replace("{{", "{").replace("}}", "}") + NEW))
                values[kind]["rustc-error cell"].append(
                    session.run(RUSTC_ERROR.replace("{n}", str(n)) + NEW, expect="error"))
                for row, ask, texts in [("completion, warm", session.complete, COMPLETED),
                                        ("inspection, warm", session.inspect, INSPECTED)]:
                    values[kind][row].append(ask(texts[n % 2].replace("{n}", str(n))))
                if kind == "stratoscope":
                    values[kind]["DSL-error cell"].append(session.run(DSL_ERROR.replace("{n}", str(n)), expect="error"))
            log(f"cells {n + 1} of {cells}")
        for kind, session in sessions.items():
            values[kind]["resident memory"].append(session.resident())
    finally:
        for session in sessions.values():
            session.close()
    return {kind: {row: statistics.median(v) if v else None for row, v in rows.items()} for kind, rows in values.items()}


def kernel_table(results):
    ours, theirs = results["stratoscope"], results.get("evcxr")
    print("| | stratoscope | budget | evcxr_jupyter | ratio |\n| --- | --- | --- | --- | --- |")
    for row, budget in BUDGETS.items():
        unit = " MB" if row == "resident memory" else " s"
        digits = 0 if unit == " MB" else 3
        other = theirs[row] if theirs else None
        cells = [
            f"{ours[row]:.{digits}f}{unit}",
            f"{budget:g}{unit}" if budget else "–",
            f"{other:.{digits}f}{unit}" if other else "–",
            f"{ours[row] / other:.2f}" if other else "–",
        ]
        print(f"| {row} | " + " | ".join(cells) + " |")


def install_evcxr():
    """evcxr_jupyter 0.22; returns the name of its kernel spec."""
    home = WORK / "evcxr"
    binary = home / "bin" / "evcxr_jupyter"
    if not binary.exists():
        log("installing evcxr_jupyter 0.22 (about 9 CPU-minutes)")
        subprocess.run(["cargo", "install", "--locked", "--root", str(home), "evcxr_jupyter", "--version", "0.22.0"], check=True)
    spec = WORK / "share" / "jupyter" / "kernels" / "bench_evcxr"
    spec.mkdir(parents=True, exist_ok=True)
    (spec / "kernel.json").write_text(json.dumps({
        "argv": [str(binary), "--control_file", "{connection_file}"],
        "display_name": "evcxr", "language": "rust", "interrupt_mode": "message"}))
    os.environ["JUPYTER_PATH"] = str(WORK / "share" / "jupyter")
    return "bench_evcxr"


def evcxr_ml():
    """The crate that cells of evcxr_jupyter need for burn; its first build takes over ten minutes."""
    crate = WORK / "rt"
    (crate / "src").mkdir(parents=True, exist_ok=True)
    (crate / "Cargo.toml").write_text(
        '[package]\nname = "rt"\nversion = "0.1.0"\nedition = "2024"\n[lib]\ncrate-type = ["dylib"]\n[workspace]\n[dependencies]\n'
        'burn = { version = "=0.22.1", default-features = false, features = ["std", "autodiff", "optim", "flex", "rayon", "simd"] }\n')
    (crate / "src" / "lib.rs").write_text("pub use burn;\n")
    shutil.copy(ROOT / "Cargo.lock", crate / "Cargo.lock")
    os.environ["EVCXR_TMPDIR"] = str(WORK / "evcxr-tmp")
    return [f':dep rt = {{ path = "{crate}" }}']


# Arguments of `examples/memory`, with and without `recompute`.
MEMORY = ["tiny 8 32", "all-MiniLM-L6-v2 16 64", "all-MiniLM-L6-v2 8 256"]


def measure_memory(extra):
    """What a step allocates beside what `memory_plan` says, by count."""
    program = example("memory")
    print("| model, batch × tokens | | measured, MB | planned, MB | planned ÷ measured | s a step |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    for case in MEMORY:
        for recompute in ([], ["recompute"]):
            command = [program, *case.split(), *recompute, *extra]
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
            row = json.loads(out.splitlines()[-1])
            megabytes = [f"{row[name] / 1e6:.1f}" for name in ("measured", "planned")]
            print(f"| {row['model']}, {row['batch']} × {row['length']} | {row['flags']} | {megabytes[0]} | {megabytes[1]} "
                  f"| {row['ratio']:.2f} | {row['seconds']:.3f} |", flush=True)


# Rows of the table, and the column of `run_costs` that each is.
RUN_COSTS = {
    "the same again: what two equal steps differ by": "nothing_again",
    "alarms: updates measured at every step": "alarms",
    "and `nan() | spike() | loss() | grad_norm() | accuracy_drop()`": "conditions",
    "and `update_ratio()`": "update_ratio",
    "a step with a snapshot": "snapshot",
    "a step with a checkpoint": "checkpoint",
}


def tiny_bert():
    """The tiny BERT of the parity tests with a vocabulary, as a checkpoint that can be trained."""
    folder = WORK / "tiny-bert"
    shutil.copytree(ROOT / "tests/parity/tiny-bert/sequence-classification", folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("case*"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "of", "and", "in", "to", "was", "he", "is", "for", "on"]
    words += [f"w{n}" for n in range(len(words), 128)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return str(folder)


def measure_runs(repeats, sizes):
    """The cost of watching a run, as ratios to a step that measures no updates; by clock and by processor time."""
    program = example("run_costs")
    for model, batch, seq, turns in sizes:
        command = [program, "--model", model, "--batch", str(batch), "--seq", str(seq), "--turns", str(turns)]
        runs = []
        for n in range(repeats):
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
            runs.append(json.loads(out.splitlines()[-1]))
            log(f"{pathlib.Path(model).name}, {batch} × {seq}: {n + 1} of {repeats}")

        def middle(row, column):
            return statistics.median(run[row][column] for run in runs)

        step = middle("nothing", "seconds")
        print(f"| {pathlib.Path(model).name}, {batch} × {seq}: a step of {step * 1e3:.1f} ms | time | processor time |\n| --- | --- | --- |")
        share = [middle("norm", column) for column in ("ratio", "cpu_ratio")]
        print(f"| the gradient norm, part of every step | {share[0]:.3f} | {share[1]:.3f} |")
        for text, row in RUN_COSTS.items():
            print(f"| {text} | {middle(row, 'ratio'):.3f} | {middle(row, 'cpu_ratio'):.3f} |")
        for text, row, every in [("snapshots, every 10 steps", "snapshot", 10), ("checkpoints, every 50 steps", "checkpoint", 50)]:
            share = [1 + (middle(row, column) - 1) / every for column in ("ratio", "cpu_ratio")]
            print(f"| {text} | {share[0]:.3f} | {share[1]:.3f} |")
        print(flush=True)


def measure_meshes(repeats, sizes, steps):
    """A step of each strategy that divides a model, as ratios to mirrored training on as many logical devices, in turns."""
    program = example("mesh_cost")
    for batch, seq in sizes:
        runs = []
        for n in range(repeats):
            runs.append(last_json([program, "--batch", batch, "--seq", seq, "--steps", steps]))
            log(f"{batch} × {seq}: {n + 1} of {repeats}")
        print(f"| {batch} × {seq}, two logical devices | a step | ratio to mirrored | processor time |\n| --- | --- | --- | --- |")
        for place, way in enumerate(runs[0]["ways"]):
            seconds, ratio, processor = (statistics.median(run["ways"][place][column] for run in runs)
                                         for column in ("seconds", "ratio", "processor_ratio"))
            print(f"| {way['way']} | {seconds * 1e3:.0f} ms | {ratio:.3f} | {processor:.3f} |")
        print(flush=True)


def size(text):
    """`16x64`: batch and sequence length."""
    batch, seq = text.split("x")
    return int(batch), int(seq)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evcxr", action="store_true", help="beside evcxr_jupyter 0.22, which is installed")
    parser.add_argument("--evcxr-ml", action="store_true", help="its ML cells too: builds burn once more, over ten minutes")
    parser.add_argument("--train", action="store_true", help="training speed instead of the kernel")
    parser.add_argument("--infer", action="store_true", help="speed of predict instead of the kernel")
    parser.add_argument("--accuracy", action="store_true", help="accuracy of fine-tuning over --repeats seeds")
    parser.add_argument("--growth", action="store_true", help="how cost grows with batch, sequence, replicas, layers, examples")
    parser.add_argument("--data", action="append", default=[], choices=[each.name for each in accuracy.DATA],
                        help="data of --accuracy; may be given several times (default all)")
    parser.add_argument("--quick", action="store_true", help="two small points a figure of --growth; 32 rows for --accuracy")
    parser.add_argument("--images", default=str(ROOT / "docs" / "images"), help="where --growth draws (default docs/images)")
    parser.add_argument("--runs", action="store_true", help="what alarms, snapshots and checkpoints of a run cost")
    parser.add_argument("--ask", action="store_true", help="what what_if, influence and profile of a run cost")
    parser.add_argument("--debugger", action="store_true", help="what the debugger costs")
    parser.add_argument("--meshes", action="store_true", help="what ZeRO, slices and a pipeline cost beside mirrored training")
    parser.add_argument("--newcomer", action="store_true", help="how long three tasks of a new user take")
    parser.add_argument("--turns", type=int, help="turns of --runs, 20 for a large model and 400 for a small one if none is named; steps of --meshes (15); turns of --ask (8)")
    parser.add_argument("--torch", action="store_true", help="beside PyTorch, which is installed")
    parser.add_argument("--memory", nargs="*", metavar="FLAG", help="what a training step allocates; FLAGs such as `wgpu`")
    parser.add_argument("--device", default="cpu", help="where training runs: cpu, wgpu, wgpu:1, cuda:0 (default cpu)")
    parser.add_argument("--size", action="append", type=size, metavar="BATCHxSEQ", help="sizes of --train and --infer; may be given several times")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cells", type=int, default=12)
    args = parser.parse_args()
    if args.memory is not None:
        measure_memory(args.memory)
        return
    if args.debugger:
        debugging.measure(lambda: Session("stratoscope"), min(args.repeats, 3), min(args.cells, 6))
        return
    if args.meshes:
        measure_meshes(args.repeats, args.size or [(32, 20)], args.turns or 15)
        return
    if args.ask:
        asking.measure(min(args.repeats, 3), args.size or [(16, 64)], args.turns or 8, "all-MiniLM-L6-v2")
        return
    if args.newcomer:
        newcomer.measure(args.repeats, lambda: Session("stratoscope"))
        return
    if args.accuracy:
        accuracy.measure(args.torch, args.repeats, args.quick, args.data)
        return
    if args.growth:
        growth.measure(1 if args.quick else min(args.repeats, 3), args.images, args.quick)
        return
    if args.train and args.device != "cpu" and not args.torch:
        training.measure_device(args.device, args.size, min(args.repeats, 3))
        return
    if args.train or args.infer:
        sizes = args.size or (training.INFERENCE if args.infer else training.SIZES)
        training.measure(args.torch, args.repeats, sizes, args.device, args.infer)
        return
    if args.runs:
        tiny = tiny_bert()
        large = [("all-MiniLM-L6-v2", *each, args.turns or 20) for each in args.size or ((16, 64),)]
        measure_runs(args.repeats, [*large, (tiny, 8, 16, args.turns or 400), ("dense", 64, 1, args.turns or 400)])
        return
    kinds = {"stratoscope": ("stratoscope", [])}
    if args.evcxr or args.evcxr_ml:
        kinds["evcxr"] = (install_evcxr(), evcxr_ml() if args.evcxr_ml else [])
    kernel_table(measure_kernels(kinds, args.repeats, args.cells))


if __name__ == "__main__":
    main()
