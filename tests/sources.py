"""The project's sources as text: Rust without comments and strings, the functions in it, the words of names."""

import json
import re

# Comments, then string literals (raw, byte and C strings too) and characters; a lifetime is none of these.
COMMENT = r"//[^\n]*|/\*.*?\*/"
LITERAL = (r"""\b[bc]?r(?P<hashes>#*)".*?"(?P=hashes)|(?:\b[bc])?"(?:\\.|[^"\\])*\""""
           r"""|(?:\bb)?'(?:\\.[^'\n]*|[^\\'\n])'""")
NOT_CODE = re.compile(f"(?P<comment>{COMMENT})|(?P<literal>{LITERAL})", re.DOTALL)


def blank(match):
    """The line ends of a match."""
    return re.sub(r"[^\n]+", " ", match[0])


def code_of(text):
    """Rust without comments and literals; every line keeps its number."""
    return NOT_CODE.sub(blank, text)


def without_tests(text):
    """What stands before the unit tests at the end of a file."""
    return re.split(r"^#\[cfg\(test\)\]\s+mod \w+ \{", text, maxsplit=1, flags=re.MULTILINE)[0]


def closing(code, start, pairs="{}"):
    """The position behind the bracket that closes the one at `start`."""
    depth = 0
    for match in re.finditer(f"[{re.escape(pairs)}]", code[start:]):
        depth += 1 if match[0] == pairs[0] else -1
        if depth == 0:
            return start + match.end()
    return len(code)


def functions_of(text):
    """Name, first line and number of lines of every function with a body."""
    code = code_of(text)
    for match in re.finditer(r"\bfn\s+([A-Za-z_]\w*)", code):
        position, depth = match.end(), 0
        while position < len(code):
            sign = code[position]
            if sign in "([":
                depth += 1
            elif sign in ")]":
                depth -= 1
            elif depth == 0 and sign in "{;":
                break
            position += 1
        if position < len(code) and code[position] == "{":
            first = code.count("\n", 0, match.start()) + 1
            lines = code.count("\n", match.start(), closing(code, position)) + 1
            yield match[1], first, lines


def words_of(name):
    """`made_of_HTMLCell` → made, of, html, cell."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def notebook_sources(text):
    """The cells of a notebook as typed, without their outputs."""
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
