#!/usr/bin/env python3
"""Do the tests notice a break? Thirty behaviors over all crates are broken, one at a time.

    tests/mutations.py --list         # the breaks; fails unless the text of each is exactly once in its file
    tests/mutations.py [CRATE …]      # applies each, runs what should notice it, restores the file, and prints a table

Not a part of the tests: each break builds its crate and those above it again. What should notice it is named as for
`tests/run.sh --only`; the first that fails has noticed. A break that does not compile proves nothing and is reported.
"""

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A lane that hangs has noticed, too.
LIMIT_SECONDS = 1800


@dataclass
class Mutation:
    """A behavior, the text that makes it, another text, and the names for `tests/run.sh --only`."""

    about: str
    path: str
    old: str
    new: str
    lanes: tuple

    @property
    def crate(self):
        return self.path.split("/")[1]


MUTATIONS = [
    Mutation("Adam corrects the bias of its first moment", "src/optim/src/adam/kernel.rs",
             "size: (rate / (1.0 - rule.beta_1.powi(time))) as f32,", "size: rate as f32,", ("optim",)),
    Mutation("equal outputs at the border are among the best k", "src/metrics/src/metric/top_k.rs",
             "filter(|&&output| output > own)", "filter(|&&output| output >= own)", ("metrics",)),
    Mutation("29 % of 100 steps are 29 steps of warm-up", "src/optim/src/schedule/warmup_linear.rs",
             "((self.warmup * total_steps as f64) * (1.0 + f64::EPSILON)) as u64", "(self.warmup * total_steps as f64) as u64", ("optim",)),
    Mutation("gradients of micro-batches are added", "src/step/src/accumulated.rs",
             "Some(sum) => add_to(sum, added),", "Some(_) => added,", ("step", "models")),
    Mutation("a weight of an example is not negative", "src/data/src/weights.rs",
             "number.is_finite() && number >= 0.0", "number.is_finite()", ("data",)),
    Mutation("other tokens are masked in each epoch", "src/data/src/masking.rs",
             "RandomStream::new(seed ^ mix(epoch), example.index as u64)",
             "RandomStream::new(seed ^ mix(epoch.min(0)), example.index as u64)", ("data",)),
    Mutation("a part of a batch keeps its last token", "src/data/src/parts.rs",
             "longest.map_or(0, |last| last + 1)", "longest.map_or(0, |last| last)", ("data",)),
    Mutation("epsilon of LayerNorm is under the root", "src/bert/src/ops/portable.rs",
             "(variance + eps).sqrt()", "variance.sqrt() + eps", ("bert",)),
    Mutation("a target of LoRA is a whole name of a layer", "src/bert/src/lora.rs",
             "before.is_some_and(|before| before.is_empty() || before.ends_with('.'))", "before.is_some()", ("bert", "models")),
    Mutation("an interval leaves out the lowest resamples", "src/evaluation/src/bootstrap.rs",
             "low: sorted[below],", "low: sorted[0],", ("evaluation",)),
    Mutation("shards have all rows", "src/strategy/src/strategy/partitioner.rs",
             "shard * each + shard.min(longer)", "shard * each", ("strategy",)),
    Mutation("a frame that announces too much is refused", "src/workers/src/frame.rs",
             "if length > MOST_BYTES {", "if length > u32::MAX as usize {", ("workers",)),
    Mutation("GELU on a GPU is exact", "src/gpu/src/kernels/gelu.rs",
             "output[at] = value * twice_normal * 0.5f32;", "output[at] = value * twice_normal * 0.5001f32;", ("on_gpu",)),
    Mutation("the course tells fresh weights from stale ones", "src/course/src/staleness.rs",
             "ages.push(updates - seen[worker] + usize::from(own));", "ages.push(updates - seen[worker] + 1);", ("course",)),
    Mutation("a wire message that comes in pieces has a limit", "src/wire/src/transport.rs",
             "if self.line.len() + taken > self.limit {", "if taken > self.limit {", ("wire",)),
    Mutation("the nearest name is suggested first", "src/diagnostics/src/check/suggest.rs",
             "near.sort_by(|a, b| a.0.cmp(&b.0)", "near.sort_by(|a, b| b.0.cmp(&a.0)", ("diagnostics",)),
    Mutation("a denied warning is an error", "src/diagnostics/src/policy.rs",
             "Some(Level::Denied) => Verdict::Denied,", "Some(Level::Denied) => Verdict::Show,", ("diagnostics",)),
    Mutation("a size of four digits has the next unit", "src/render/src/units.rs",
             "while value >= 999.5 &&", "while value >= 1024.0 &&", ("render",)),
    Mutation("a wheel needs the newest glibc of its symbols", "src/package/src/elf.rs",
             ".filter_map(|version| glibc(version))\n            .max()", ".filter_map(|version| glibc(version))\n            .min()", ("package",)),
    Mutation("a file that is too large is not read", "src/os/src/text_file.rs",
             "if bytes.len() as u64 > max_bytes {", "if bytes.len() as u64 > max_bytes + 1 {", ("os",)),
    Mutation("an integer of Python becomes a float where it meets one", "src/python/src/translate/number.rs",
             'Type::Int if is_literal => Ok(format!("{}.0", self.rust)),', "Type::Int if is_literal => Ok(self.rust.clone()),", ("python",)),
    Mutation("a path that begins with `::` is Rust", "src/cell-text/src/header.rs",
             "line.starts_with(':') && !line.starts_with(\"::\")", "line.starts_with(':')", ("cell-text",)),
    Mutation("another cell has another compiled library", "src/compile/src/compile_cache.rs",
             "hash.update(source);", "hash.update(&source[..source.len().min(1)]);", ("compile", "facade")),
    Mutation("a cell that can be corrected by evcxr is compiled again", "src/compile/src/retry.rs",
             "taken.unwrap_or(false) && !source.contains(CATCH)", "taken.unwrap_or(false) || source.contains(CATCH)", ("compile",)),
    Mutation("a cell that does not listen to an interrupt is ended", "src/evaluator/src/interrupt.rs",
             "if Instant::now().duration_since(since) > grace {", "if Instant::now().duration_since(since) > grace * 1000 {",
             ("evaluator", "protocol")),
    Mutation("a message with a wrong signature is not answered", "src/jupyter/src/signature.rs",
             "decode(signature).is_some_and(|bytes| mac.verify_slice(&bytes).is_ok())",
             "decode(signature).is_some_and(|bytes| mac.verify_slice(&bytes).is_ok() || !bytes.is_empty())", ("jupyter",)),
    Mutation("an interrupt before a cell ends that cell alone", "src/session/src/shared.rs",
             "self.interrupted_early.swap(false, Ordering::SeqCst)", "self.interrupted_early.load(Ordering::SeqCst) && false", ("session",)),
    Mutation("an error of ours in a statement ends the cell", "src/stratoscope/src/cell/unused.rs",
             "Err(error) => Err(error.clone()),", "Err(_) => Ok(()),", ("stratoscope", "swallowed_errors")),
    Mutation("parameters of a notebook are behind their defaults", "src/kernel/src/notebook/parameters.rs",
             "defaults.map_or(0, |index| index + 1)", "defaults.map_or(0, |index| index)", ("kernel",)),
    Mutation("a scope in a function ends with its block", "src/macros/src/lib.rs",
             'tokens.extend(parsed("::core::mem::drop"));', 'tokens.extend(parsed("::core::mem::forget"));', ("scopes", "dsl_calls")),
]


def problems():
    """What is wrong with the list: a text that is not exactly once in its file, or a lane that does not exist."""
    lanes = subprocess.run([sys.executable, ROOT / "tests" / "lanes.py", "names"], capture_output=True, text=True, check=True)
    for mutation in MUTATIONS:
        text = (ROOT / mutation.path).read_text() if (ROOT / mutation.path).is_file() else ""
        if text.count(mutation.old) != 1:
            yield f"{mutation.path}: {text.count(mutation.old)} times: {mutation.old}"
        for lane in mutation.lanes:
            is_known = ((ROOT / "src" / lane / "Cargo.toml").is_file() or (ROOT / "tests" / f"test_{lane}.py").is_file()
                        or lane in lanes.stdout.split() or lane == "on_gpu")
            if not is_known:
                yield f"{mutation.path}: there is no lane {lane}"


def noticed_by(mutation):
    """The first lane that fails on the break, or what happened instead."""
    for lane in mutation.lanes:
        command = [ROOT / "tests" / "run.sh", "--only", lane]
        try:
            finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{lane} (it hangs)"
        if "could not compile" in finished.stdout + finished.stderr:
            return "nobody: it does not compile"
        if finished.returncode != 0:
            return lane
    return "nobody"


def run(mutation):
    """The result for a break. The file is restored, whatever happens."""
    path = ROOT / mutation.path
    text = path.read_text()
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        return noticed_by(mutation)
    finally:
        path.write_text(text)


def main(arguments):
    wrong = list(problems())
    if wrong:
        raise SystemExit("\n".join(wrong))
    if arguments == ["--list"]:
        for mutation in MUTATIONS:
            print(f"{mutation.crate:12} {' '.join(mutation.lanes):28} {mutation.about}")
        print(f"{len(MUTATIONS)} breaks in {len({mutation.crate for mutation in MUTATIONS})} crates")
        return
    chosen = [mutation for mutation in MUTATIONS if not arguments or mutation.crate in arguments]
    if not chosen:
        raise SystemExit(__doc__)
    # So that the file is restored.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print("| crate | broken | noticed by | seconds |\n| --- | --- | --- | --- |")
    unnoticed = 0
    for mutation in chosen:
        begun = time.monotonic()
        result = run(mutation)
        unnoticed += result.startswith("nobody")
        print(f"| `{mutation.crate}` | {mutation.about} | {result} | {time.monotonic() - begun:.0f} |", flush=True)
    print(f"\n{len(chosen) - unnoticed} of {len(chosen)} were noticed")


if __name__ == "__main__":
    main(sys.argv[1:])
