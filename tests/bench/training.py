"""Training and inference of MiniLM: ours beside PyTorch's fastest, and a GPU beside the processor."""

import statistics

from programs import ROOT, Failed, example, last_json, log, torch_python

SIZES = [(16, 64), (32, 16), (16, 128), (8, 512)]
INFERENCE = [(1, 64), (32, 64), (256, 64)]

# The modes of PyTorch; the fastest of a precision is compared.
VARIANTS = {
    "float32": {
        "eager": ["--attn", "eager"],
        "SDPA": ["--attn", "sdpa"],
        "compile": ["--attn", "sdpa", "--compile"],
    },
    "bfloat16": {
        "autocast": ["--attn", "sdpa", "--dtype", "amp-bf16"],
        "autocast, compile": ["--attn", "sdpa", "--dtype", "amp-bf16", "--compile"],
    },
}
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def ours(program, batch, seq, policy, device, infer, steps):
    command = [program, "--batch", batch, "--seq", seq, "--device", device, "--policy", policy, "--steps", steps]
    return last_json([*command, "--infer"] if infer else command)


def theirs(options, batch, seq, device, infer, steps):
    return last_json([torch_python(), ROOT / "tests/bench/torch_reference.py", "--model", "minilm", "--batch", batch, "--seq", seq,
                      "--mode", "infer" if infer else "train", "--steps", steps, "--device", torch_device(device), *options])


def torch_device(device):
    return "cuda" if device.startswith("cuda") else "cpu"


def middle(runs, column):
    return statistics.median(run[column] for run in runs)


def fastest(runs):
    """The name and the runs of the variant with the highest median; None if none ran."""
    ran = {name: each for name, each in runs.items() if each}
    return max(ran.items(), key=lambda item: middle(item[1], "seq_per_s"), default=None)


def row(title, precision, ours, theirs, peak):
    """A line of the table. `theirs` is what `fastest` gives; `peak` is the machine's product in GFLOP/s."""
    speed, rate, memory = middle(ours, "seq_per_s"), middle(ours, "gflops"), middle(ours, "peak_memory_bytes")
    cells = [title, precision, f"{speed:.1f}", f"{rate:.1f}", f"{rate / peak:.0%}" if peak else "–", f"{memory / 1e6:.0f}"]
    if theirs:
        name, runs = theirs
        other, held = middle(runs, "seq_per_s"), middle(runs, "peak_memory_bytes")
        cells += [f"{other:.1f} ({name})", f"{middle(runs, 'tflops') * 1e3:.1f}", f"{held / 1e6:.0f}", f"{speed / other:.2f}",
                  f"{memory / held:.2f}"]
    else:
        cells += ["–"] * 5
    return "| " + " | ".join(cells) + " |"


HEAD = ("| {} | precision | stratoscope, seq/s | GFLOP/s | of the product peak | peak memory, MB | PyTorch's fastest, seq/s | GFLOP/s "
        "| peak memory, MB | speed | memory |\n" + "| --- " * 11 + "|")


def product_peak(precision, device, runs, beside_torch):
    """The fastest product that was measured on this machine, in GFLOP/s: burn's of float32, PyTorch's of the precision."""
    peaks = [run["product_gflops"] for run in runs] if precision == "float32" else []
    if beside_torch:
        dtype = {"float32": "fp32", "bfloat16": "bf16"}[precision]
        found = last_json([torch_python(), ROOT / "tests/bench/torch_reference.py", "--mode", "product", "--dtype", dtype,
                           "--device", torch_device(device)])
        peaks.append(found["gflops"])
    return max(peaks, default=None)


def measure(beside_torch, repeats, sizes, device, infer, steps=8):
    """One table. Ours and each variant of PyTorch take turns, so that a busy minute affects all."""
    program = example("train_step")
    print(HEAD.format("batch × seq, " + ("predict" if infer else "train")), flush=True)
    for batch, seq in sizes:
        for precision, variants in VARIANTS.items():
            mine, others = [], {name: [] for name in variants if beside_torch}
            for n in range(repeats):
                mine.append(ours(program, batch, seq, POLICIES[precision], device, infer, steps))
                for name in list(others):
                    try:
                        others[name].append(theirs(variants[name], batch, seq, device, infer, steps))
                    except Failed as why:
                        log(f"PyTorch, {name}: left out: {why}")
                        del others[name]
                log(f"{batch} × {seq}, {precision}: {n + 1} of {repeats}")
            peak = product_peak(precision, device, mine, beside_torch)
            print(row(f"{batch} × {seq}", precision, mine, fastest(others), peak), flush=True)


DEVICE_HEAD = ("| batch × seq, train | policy | device | seq/s | × the processor | first step, s | memory, MB | TFLOP/s | product peak, TFLOP/s "
               "| losses differ from the processor's by |\n" + "| --- " * 10 + "|")
# Losses of float32 differ by rounding; 16 bits round more coarsely.
LOSS_LIMITS = {"float32": 1e-3, "mixed_float16": 2e-2, "mixed_bfloat16": 5e-2}


def apart(losses, others):
    """The largest relative difference of two runs' losses."""
    return max(abs(a - b) / max(abs(b), 1e-9) for a, b in zip(losses, others, strict=True))


def device_row(title, policy, found, beside):
    difference = apart(found["losses"], beside["losses"])
    limit = LOSS_LIMITS[policy]
    verdict = f"{difference:.1e}" if difference <= limit else f"**{difference:.1e}**, more than {limit:g}"
    return "| " + " | ".join([
        title, policy, f"{found['device']} ({found['description']})", f"{found['seq_per_s']:.1f}",
        f"{found['seq_per_s'] / beside['seq_per_s']:.2f}", f"{found['first_seconds']:.1f}", f"{found['peak_memory_bytes'] / 1e6:.0f}",
        f"{found['gflops'] / 1e3:.3f}", f"{found['product_gflops'] / 1e3:.3f}", verdict]) + " |"


def measure_device(device, sizes, repeats, steps=8):
    """A GPU beside the processor, with parity, speed, memory and rate in one table; why not, if it does not run."""
    program = example("train_step")
    print(DEVICE_HEAD, flush=True)
    # A software adapter takes minutes for what a GPU does in a second: the larger sizes are a GPU's.
    for batch, seq in sizes or [(2, 8), *SIZES]:
        software = False
        for policy in LOSS_LIMITS:
            try:
                runs = [ours(program, batch, seq, policy, device, False, steps) for _ in range(repeats)]
            except Failed as why:
                print(f"| {batch} × {seq} | {policy} | {device} | not run: {why} |" + " |" * 6, flush=True)
                if "SC0712" in str(why) or "SC0907" in str(why):
                    return
                continue
            found = sorted(runs, key=lambda run: run["seq_per_s"])[len(runs) // 2]
            beside = ours(program, batch, seq, policy, "cpu", False, steps)
            print(device_row(f"{batch} × {seq}", policy, found, beside), flush=True)
            software = found["software"]
        if software and not sizes:
            return
