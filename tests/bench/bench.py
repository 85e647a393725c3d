#!/usr/bin/env python3
"""Measures stratoscope beside evcxr_jupyter and PyTorch, in one run on one machine.

    .venv/bin/python tests/bench/bench.py                  the kernel alone, against its budgets
    .venv/bin/python tests/bench/bench.py --evcxr          beside evcxr_jupyter (installs it: about 9 CPU-minutes)
    .venv/bin/python tests/bench/bench.py --train          training speed
    .venv/bin/python tests/bench/bench.py --train --torch  beside PyTorch (installs it into target/bench/torch)

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
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "bench"

# Design §3: seconds, and megabytes of the kernel process alone.
BUDGETS = {
    "start to kernel_info": 0.3,
    "fresh kernel to first ML result": 3.0,
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


def log(text):
    print(text, file=sys.stderr, flush=True)


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


def first_result(kind, name, dep):
    session = Session(name)
    try:
        for line in dep:
            session.run(line)
        session.run(ML_IMPORT[kind] + "\n" + ML_FIRST + f" // {time.time_ns()}")
        return time.perf_counter() - session.began
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


def torch_python():
    python = WORK / "torch" / "bin" / "python"
    if not python.exists():
        log("installing PyTorch and transformers")
        subprocess.run([sys.executable, "-m", "venv", str(WORK / "torch")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "torch", "transformers"], check=True)
    return python


def measure_training(beside_torch, repeats, batch, seq):
    # The whole workspace: one crate alone would be built with other features, and burn again.
    subprocess.run(["cargo", "build", "-q", "--workspace", "--locked", "--example", "train_step"], check=True, cwd=ROOT)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = [str(target / "debug/examples/train_step"), "--batch", str(batch), "--seq", str(seq)]
    ours, theirs = [], []
    for n in range(repeats):
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
        ours.append(json.loads(out.splitlines()[-1])["seq_per_s"])
        if beside_torch:
            out = subprocess.run(
                [str(torch_python()), str(ROOT / "tests/bench/torch_reference.py"), "--model", "minilm", "--attn", "eager",
                 "--batch", str(batch), "--seq", str(seq), "--mode", "train", "--steps", "8"],
                check=True, stdout=subprocess.PIPE, text=True).stdout
            reference = json.loads(out.splitlines()[-1])
            theirs.append(reference["seq_per_s"])
        log(f"training {batch} × {seq}: {n + 1} of {repeats}")
    a = statistics.median(ours)
    b = statistics.median(theirs) if theirs else None
    print(f"| {batch} × {seq} | {a:.1f} | {f'{b:.1f}' if b else '–'} | {f'{a / b:.2f}' if b else '–'} |", flush=True)


def size(text):
    """`16x64`: batch and sequence length."""
    batch, seq = text.split("x")
    return int(batch), int(seq)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evcxr", action="store_true", help="beside evcxr_jupyter 0.22, which is installed")
    parser.add_argument("--evcxr-ml", action="store_true", help="its ML cells too: builds burn once more, over ten minutes")
    parser.add_argument("--train", action="store_true", help="training speed instead of the kernel")
    parser.add_argument("--torch", action="store_true", help="beside PyTorch, which is installed")
    parser.add_argument("--size", action="append", type=size, metavar="BATCHxSEQ", help="training sizes, 16x64 and 32x16 if none is named")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cells", type=int, default=12)
    args = parser.parse_args()
    if args.train:
        print("| batch × seq, train | stratoscope, seq/s | PyTorch eager, seq/s | ratio |\n| --- | --- | --- | --- |", flush=True)
        for batch, seq in args.size or ((16, 64), (32, 16)):
            measure_training(args.torch, min(args.repeats, 3), batch, seq)
        return
    kinds = {"stratoscope": ("stratoscope", [])}
    if args.evcxr or args.evcxr_ml:
        kinds["evcxr"] = (install_evcxr(), evcxr_ml() if args.evcxr_ml else [])
    kernel_table(measure_kernels(kinds, args.repeats, args.cells))


if __name__ == "__main__":
    main()
