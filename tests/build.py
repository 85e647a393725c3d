#!/usr/bin/env python3
"""Runs `cargo build` and says, once a minute, how far it is and how long it will take on this machine.

    tests/build.py ARGUMENTS OF cargo build

In a terminal cargo's own bar counts crates; but a few of them take most of the time. Here crates count as much as they took when
they were measured (`COSTS`, from `cargo build --timings`), so that the rest is a matter of the machine's speed.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The first report comes when there is something to judge by; then one a minute.
FIRST_REPORT_SECONDS, REPORT_SECONDS = 45, 60
# Seconds of the crates that take long, on two cores in 2026; all others count as one second.
COSTS = json.loads((ROOT / "tests" / "build_costs.json").read_text())
OTHER_CRATE = 1
# What can be read meanwhile.
READING = "README.md, docs/first-steps.md and the notebooks with their outputs can be read meanwhile"


def crates():
    """The names of the crates that are built, with their versions, as cargo's package numbers name them."""
    command = ["cargo", "tree", "--workspace", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    return {tuple(line.split()[:2]) for line in listed.splitlines() if line}


def named(package):
    """Name and version in a package number: `registry+…#name@1.0.0`, or `path+…/name#1.0.0` if the folder has the name."""
    place, _, rest = package.rpartition("#")
    name, _, version = rest.rpartition("@")
    return name or place.rstrip("/").rpartition("/")[2], f"v{version}"


def minutes(seconds):
    rounded = max(1, round(seconds / 60))
    return f"{rounded} minute{'s' * (rounded > 1)}"


class Progress:
    """What is built of all, in crates and in the seconds that crates have cost before."""

    def __init__(self, wanted, now):
        self.left = dict.fromkeys(wanted)
        self.total = len(wanted)
        self.begun = self.reported = now
        self.cost_built = 0

    def built(self, crate, fresh):
        """A crate is there. One that was there before tells nothing about the machine."""
        if crate in self.left:
            del self.left[crate]
            self.cost_built += 0 if fresh else COSTS.get(crate[0], OTHER_CRATE)

    def report(self, now):
        """A line, if it is time for one."""
        wait = FIRST_REPORT_SECONDS if self.reported == self.begun else REPORT_SECONDS
        if now - self.reported < wait or not self.cost_built:
            return None
        first = self.reported == self.begun
        self.reported = now
        cost_left = sum(COSTS.get(name, OTHER_CRATE) for name, _ in self.left)
        left = minutes(cost_left * (now - self.begun) / self.cost_built)
        line = f"-- {self.total - len(self.left)} of {self.total} crates, about {left} left"
        return f"{line}; {READING}" if first else line


def main(arguments):
    progress = Progress(crates(), time.monotonic())
    command = ["cargo", "build", "--message-format", "json-render-diagnostics", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as cargo:
        for line in cargo.stdout:
            message = json.loads(line)
            # A build script comes before its crate.
            if message["reason"] == "compiler-artifact" and "custom-build" not in message["target"]["kind"]:
                progress.built(named(message["package_id"]), message["fresh"])
            if report := progress.report(time.monotonic()):
                print(report, flush=True)
    return cargo.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
