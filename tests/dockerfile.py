"""Runs the instructions of a Dockerfile one after the other in a `Root`, as `docker build` would, and its command."""

import json
import pathlib
import re
import shlex
import shutil
import time


def instructions(text):
    """Pairs of an instruction and its argument, with continued lines joined."""
    lines = [line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


class Build:
    """What instructions change for those after them."""

    def __init__(self, root, context):
        self.root, self.context = root, pathlib.Path(context)
        self.environment, self.user, self.folder, self.seconds = {}, "root", "/", []

    def step(self, instruction, argument):
        begun = time.monotonic()
        getattr(self, instruction.lower())(argument)
        self.seconds.append((instruction, argument, round(time.monotonic() - begun, 1)))

    def env(self, argument):
        known = self.root.environment | self.environment
        for pair in shlex.split(argument):
            name, value = pair.split("=", 1)
            self.environment[name] = re.sub(r"\$(\w+)", lambda found: known[found[1]], value)

    def run(self, argument):
        mounted = re.match(r"--mount=type=bind,source=(\S+),target=(\S+) +", argument)
        if mounted:
            self.root.bind(self.context / mounted[1], mounted[2])
            argument = argument[mounted.end():]
        self.root.run(argument, user=self.user, cwd=self.folder, more=self.environment)

    def user_(self, argument):
        self.user = argument
        # Docker has HOME from the user's entry.
        self.environment["HOME"] = self.root.run(f"getent passwd {argument} | cut -d : -f 6").strip()

    def workdir(self, argument):
        self.folder = argument
        self.root.run(f"mkdir -p {argument}")

    def copy(self, argument):
        owner, pattern, target = re.fullmatch(r"--chown=(\S+) (\S+) (\S+)", argument).groups()
        for path in self.context.glob(pattern):
            place = pathlib.PurePath(self.folder, target, path.name)
            shutil.copy(path, self.root.folder / place.relative_to("/"))
            self.root.run(f"chown {owner} {shlex.quote(str(place))}")

    def expose(self, argument):
        assert argument.isdigit()

    def cmd(self, argument):
        self.command = shlex.join(json.loads(argument))

    def all(self, text):
        """Runs the whole file; the root is what FROM names."""
        (first, base), *rest = instructions(text)
        assert first == "FROM"
        for instruction, argument in rest:
            self.step(instruction + ("_" if instruction == "USER" else ""), argument)
        return base
