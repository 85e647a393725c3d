"""How well `predict_scaling` predicts: runs of 1, 2, 4 and 8 workers, each in a network namespace of its own whose link is
shaped by `tc tbf`, and what each run predicts for the others. Needs root, `ip` and `tc`.

    python tests/bench/scaling.py [--rates 50e6,200e6] [--steps 12] [--rows 64]

A table in Markdown; a row is a run that was measured, a column a run that its numbers were taken from."""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "debug" / "examples" / "scaling"
WORKERS = (1, 2, 4, 8)
# Each process computes on one core.
ENVIRONMENT = {**os.environ, "RAYON_NUM_THREADS": "1", "STRATOSCOPE_DEVICE": "cpu"}


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def place(index):
    return f"scaling-{os.getpid()}-{index}"


@contextlib.contextmanager
def network(rate):
    """A switch with a namespace for each worker; what a worker sends is shaped to `rate` bits in a second."""
    bridge = f"sc{os.getpid()}"[:12]
    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "set", bridge, "up")
        for index in range(max(WORKERS)):
            name, port = place(index), f"{bridge}p{index}"
            ip("netns", "add", name)
            ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", port, "master", bridge, "up")
            ip("-n", name, "address", "add", f"10.77.32.{index + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            shape = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{rate:.0f}", "burst", "64k", "latency", "400ms"]
            subprocess.run(["ip", "netns", "exec", name, *shape], check=True)
        yield
    finally:
        for index in range(max(WORKERS)):
            # A namespace ends some time after it was deleted, and its port with it; the next network has ports of these names.
            subprocess.run(["ip", "link", "delete", f"{bridge}p{index}"], check=False, stderr=subprocess.DEVNULL)
            subprocess.run(["ip", "netns", "delete", place(index)], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "delete", bridge], check=False)


def there(index, *command):
    return ["ip", "netns", "exec", place(index), PROGRAM, *map(str, command)]


def measured(workers, options, key):
    """The seconds of a step, and what the run predicts."""
    started = []
    try:
        for index in range(1, workers):
            command = there(index, "worker", "0.0.0.0:2222", key)
            started.append(subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True))
        for process in started:
            assert "waiting" in process.stdout.readline()
        addresses = [f"10.77.32.{index + 1}:2222" for index in range(1, workers)]
        rates = ",".join(str(rate) for rate in options.rates)
        command = there(0, "chief", *addresses, "--steps", options.steps, "--rows", options.rows, "--width", options.width,
                        "--rates", rates)
        environment = {**ENVIRONMENT, "STRATOSCOPE_WORKER_KEY": str(key)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
        print(done.stderr if options.verbose else "", end="")
        return json.loads(done.stdout.splitlines()[-1])
    finally:
        for process in started:
            process.kill()
            process.wait()


def rate_words(rate):
    return f"{rate / 1e6:g} Mb/s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=lambda text: [float(rate) for rate in text.split(",")], default=[50e6, 200e6])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--width", type=int, default=1500)
    parser.add_argument("--repeats", type=int, default=2, help="the fastest of so many runs counts")
    parser.add_argument("--verbose", action="store_true", help="with the predictions as the notebook shows them")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        key = pathlib.Path(folder) / "job.pem"
        subprocess.run([PROGRAM, "key", key], check=True)
        for rate in options.rates:
            with network(rate):
                for workers in WORKERS:
                    runs = [measured(workers, options, key) for _ in range(options.repeats)]
                    found[rate, workers] = min(runs, key=lambda run: run["seconds"])
    fits = [run for run in found if run[1] > 1]
    print("| run | measured | " + " | ".join(f"from {workers} at {rate_words(rate)}" for rate, workers in fits) + " |")
    print("| --- |" + " ---: |" * (1 + len(fits)))
    errors = []
    for (rate, workers), run in found.items():
        cells = []
        for fit in fits:
            link = "measured" if fit[0] == rate else f"{rate:.0f}"
            predicted = found[fit]["predicted"][link][str(workers)]
            error = predicted / run["seconds"] - 1
            if fit == (rate, workers):
                cells.append(f"*{predicted:.2f} s*")
            else:
                cells.append(f"{predicted:.2f} s, {100 * error:+.0f} %")
                errors.append((abs(error), fit, (rate, workers)))
        print(f"| {workers} at {rate_words(rate)} | {run['seconds']:.2f} s | " + " | ".join(cells) + " |")
    errors.sort()
    within = sum(error <= 0.15 for error, *_ in errors)
    print(f"\n{within} of {len(errors)} predictions are within 15 %; median {100 * errors[len(errors) // 2][0]:.0f} %, "
          f"largest {100 * errors[-1][0]:.0f} %.")


if __name__ == "__main__":
    main()
