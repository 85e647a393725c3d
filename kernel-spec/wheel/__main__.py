"""Runs the kernel's program in place of this process."""

import os
import sys

from stratoscope import executable

program = executable()
os.execv(program, [program, *sys.argv[1:]])
