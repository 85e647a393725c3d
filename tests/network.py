"""Another machine: a network namespace at the end of a cable, with the files of this one."""

import contextlib
import os
import shutil
import subprocess

import pytest


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


@contextlib.contextmanager
def another_machine(cable, network):
    """The name of a new network namespace. `cable` names the ends of the cable, of which this machine has end 0; `network` is
    the first three numbers of the addresses: this machine is 1, the other one is 2."""
    name = f"{cable}-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True) if shutil.which("ip") else None
    if made is None or made.returncode:
        pytest.skip("no network namespaces here")
    try:
        ip("link", "add", f"{cable}0", "type", "veth", "peer", "name", f"{cable}1", "netns", name)
        ip("address", "add", f"{network}.1/24", "dev", f"{cable}0")
        ip("link", "set", f"{cable}0", "up")
        ip("-n", name, "address", "add", f"{network}.2/24", "dev", f"{cable}1")
        ip("-n", name, "link", "set", f"{cable}1", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        subprocess.run(["ip", "link", "delete", f"{cable}0"], check=False)
        subprocess.run(["ip", "netns", "delete", name], check=False)
