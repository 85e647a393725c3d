"""A Jupyter kernel for Rust: training and fine-tuning under a distribution strategy.

The kernel is a program, `stratoscope`; this module finds it. `python -m stratoscope` runs it in any environment, also
in one that is not activated.
"""

import importlib.metadata


def executable():
    """The path of the program that this distribution installed."""
    for file in importlib.metadata.distribution("stratoscope").files or ():
        if file.name == "stratoscope" and file.parent.name == "bin":
            return str(file.locate().resolve())
    raise FileNotFoundError("the program `stratoscope` is missing: install the wheel again")
