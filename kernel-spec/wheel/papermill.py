"""Parameters of papermill in Rust.

papermill loads the engines that packages bring as soon as it is imported, and so this module: from then on it can write the
cell with the parameters of a notebook in Rust. The engine `stratoscope` is papermill's usual one.
"""

import json
import math
import re

from papermill.engines import NBClientEngine
from papermill.exceptions import PapermillException
from papermill.models import Parameter
from papermill.translators import Translator, papermill_translators


# `let rate: f64 = 0.1; // of the schedule`
DEFAULT = re.compile(r"\s*let\s+(?:mut\s+)?(\w+)\s*(?::\s*([^=]+?))?\s*=\s*(.+?);\s*(?://\s*(.*))?")


class RustTranslator(Translator):
    """Values of parameters as Rust. A value without a counterpart is an error: a cell that does not compile would hide it."""

    @classmethod
    def translate_str(cls, val):
        def escaped(sign):
            if sign in '"\\':
                return "\\" + sign
            return sign if sign.isprintable() else f"\\u{{{ord(sign):x}}}"

        return '"' + "".join(map(escaped, val)) + '"'

    @classmethod
    def translate_bool(cls, val):
        return "true" if val else "false"

    @classmethod
    def translate_float(cls, val):
        if math.isnan(val):
            return "f64::NAN"
        if math.isinf(val):
            return "f64::INFINITY" if val > 0 else "f64::NEG_INFINITY"
        return json.dumps(val)

    @classmethod
    def translate_list(cls, val):
        return f"vec![{', '.join(cls.translate(item) for item in val)}]"

    @classmethod
    def translate_tuple(cls, val):
        return f"({', '.join(cls.translate(item) for item in val)}{',' if len(val) == 1 else ''})"

    @classmethod
    def translate_none(cls, val):
        raise PapermillException("a parameter without a value (None) has no type in Rust: leave it out, so that the default stays")

    @classmethod
    def translate_dict(cls, val):
        raise PapermillException("a parameter that is a dictionary has no counterpart in Rust: give its values parameters of their own")

    @classmethod
    def inspect(cls, parameters_cell):
        """The defaults, one a line, with their types and comments as the source has them."""
        lines = map(DEFAULT.fullmatch, parameters_cell["source"].splitlines())
        return [Parameter(name, kind or "None", default, about or "") for name, kind, default, about in (line.groups() for line in lines if line)]

    @classmethod
    def comment(cls, cmt_str):
        return f"// {cmt_str}".strip()

    @classmethod
    def assign(cls, name, str_val):
        return f"let {name} = {str_val};"


class Engine(NBClientEngine):
    """papermill's usual engine, under this name."""


papermill_translators.register("rust", RustTranslator)
papermill_translators.register("stratoscope", RustTranslator)
