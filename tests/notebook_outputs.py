"""The outputs that the repository's notebooks carry: renewed from an executed copy, and compared with one.

    .venv/bin/python tests/notebook_outputs.py EXECUTED NOTEBOOK

puts the outputs of EXECUTED into NOTEBOOK; `notebooks/run.sh --renew` does so for every notebook. An output that
differs from the committed one in speed or free memory only is left as it is, so that a renewal changes nothing else.
"""

import json
import re
import sys

# Shown only where a step is slow, so that they come and go with the machine: `read 91 MB in 0.5 s`.
PROGRESS = re.compile(r"[^\n]+ in (\d+ (h|min) )?[\d.]+ (ms|s|min)\s*")
# The last two columns of a table of training, and what a memory plan says of this machine.
SPEED = re.compile(r"( +\d[\d.]*)? +(\d+ (h|min) )?\d[\d.]* (ms|s|min)$|\d[\d.]* [KMG]iB free; .*", re.MULTILINE)
PICTURE = re.compile(r"data:image/[^\"')]+")
# Said below a table of training where a worker was much slower than the others, as on a machine that does other things too.
STRAGGLER = re.compile(r"(\n|<div[^>]*>)worker \d+ is the slowest: [^<\n]*(</div>)?")
# When the stages of a pipeline computed: forward, backward, or not at all.
TIMELINE = re.compile(r"^stage \d+  [FB·]+$", re.MULTILINE)
# What limits a run and its phases, in a profile: they differ from machine to machine. Its layers follow, with rates.
PROFILE = re.compile(r"(?<=profile: ).*?(?=layers: |>layer<|$)", re.DOTALL)
RATE = re.compile(r"\b[kMGT]?(?=(FLOP|FLOP/s|B/s)\b)")
# Checksums (six hexadecimal digits in a report, more in its JSON) and all other numbers with their units.
CHECKSUM = re.compile(r"\b[0-9a-f]{6,64}\b")
NUMBER = re.compile(r"\b\d+ (h|min) \d+ (min|s)\b|(?:(?:<|&lt;) ?)?[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?( ?(B|[KMG]iB|[kMG]B|ms|µs|s|min)\b)?")
# The head of a table of training: in one line, or where the time is long and the table wide, with `val` in a line above.
HEAD = re.compile(r"^(?:(?: ?val)+ ?\n)?.*\bseq/s time ?$", re.MULTILINE)
# The table of `devices()`.
DEVICES = re.compile(r"name +backend +kind +memory +16 bits +default +what it is\n")
FOLDER = re.compile(r"(/[\w.-]+)+/(?=[\w-]+\.\w+)")


def text_of(value):
    """nbformat stores text as a string or as a list of lines."""
    return "".join(value) if isinstance(value, list) and all(isinstance(line, str) for line in value) else value


def without_numbers(text):
    """The text with every number, size, time, bar and folder replaced, and the space that aligned them."""
    text = PICTURE.sub("picture", STRAGGLER.sub("", text))
    text = TIMELINE.sub("timeline", text)
    text = RATE.sub("", PROFILE.sub("limit and phases ", text))
    text = FOLDER.sub("", text)
    text = CHECKSUM.sub("0", text)
    text = NUMBER.sub("0", text)
    text = re.sub(r"\[[#.>]+\]", "[bar]", text).replace("★", "")
    text = re.sub(r"[ \t─-]+", " ", text).replace(" \n", "\n")
    return HEAD.sub(lambda head: " ".join(sorted(head[0].split())), text)


def shape(value):
    """A JSON value with its numbers replaced, in its strings too."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    if isinstance(value, str):
        return without_numbers(value)
    return 0 if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def labels_of(svg):
    """The words of a plot; its numbers and curves differ with the values."""
    return [text for text in re.findall(r"<text[^>]*>\s*([^<]*?)\s*</text>", svg) if re.search("[a-z]", text)]


def is_progress(output):
    data = output.get("data") or {}
    return output["output_type"] == "display_data" and bool(PROGRESS.fullmatch(text_of(data.get("text/plain", ""))))


def outputs_of(cell):
    """The outputs of a cell that do not depend on how fast the machine is; text of a stream in one piece."""
    outputs = []
    for output in cell.get("outputs", []):
        if is_progress(output):
            continue
        last = outputs[-1] if outputs else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            outputs[-1] = output | {"text": (text_of(last["text"]) + text_of(output["text"])).splitlines(keepends=True)}
        else:
            outputs.append(output)
    return outputs


def comparable(output):
    """The parts of an output that must be equal in two executions: kinds, errors, cards, texts and the shapes of tables."""
    kind = output["output_type"]
    if kind == "error":
        # Behind the first line of the traceback, programs that show no cards get the message as well.
        first = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output["traceback"])).splitlines()[0]
        return kind, output["ename"], without_numbers(output["evalue"]), first.split("kept:")[0].split("lost:")[0]
    if kind == "stream":
        return kind, output["name"], without_numbers(text_of(output["text"]))
    devices = text_of(output["data"].get("text/plain", ""))
    if DEVICES.match(devices):
        # What they are and what they have differs from machine to machine.
        return kind, [line.split()[0] for line in devices.splitlines()]
    data = {}
    for mime, value in output["data"].items():
        value = text_of(value)
        data[mime] = labels_of(value) if mime == "image/svg+xml" else shape(value)
    return kind, output.get("execution_count"), data


def is_unchanged(before, after):
    """Whether two outputs differ at most in speed and free memory."""
    if comparable(before) != comparable(after):
        return False

    def plain(output):
        text = text_of((output.get("data") or output).get("text/plain") or output.get("text") or "")
        return re.sub(" +", " ", SPEED.sub("", text))

    return plain(before) == plain(after)


def renew(executed, notebook):
    """Puts the outputs of one notebook into the other, which has the same cells."""
    assert [cell["source"] for cell in executed["cells"]] == [cell["source"] for cell in notebook["cells"]], "other cells"
    for ran, cell in zip(executed["cells"], notebook["cells"], strict=True):
        if cell["cell_type"] != "code":
            continue
        before, after = cell["outputs"], outputs_of(ran)
        if len(before) == len(after):
            after = [old if is_unchanged(old, new) else new for old, new in zip(before, after)]
        cell["outputs"], cell["execution_count"] = after, ran["execution_count"]


def first_difference(one, other, context=120):
    """Both sides as text, around the first place where they differ."""
    one, other = repr(one), repr(other)
    place = next((index for index, (left, right) in enumerate(zip(one, other)) if left != right), min(len(one), len(other)))
    window = slice(max(place - context, 0), place + context)
    return one[window], other[window]


def differences(executed, notebook):
    """The cells with outputs that differ, numbers aside: number, text, and the first difference of both sides."""
    for ran, cell in zip(executed["cells"], notebook["cells"], strict=True):
        if cell["cell_type"] != "code":
            continue
        now, committed = ([comparable(output) for output in outputs_of(each)] for each in (ran, cell))
        if now != committed or ran["execution_count"] != cell["execution_count"]:
            yield ran["execution_count"], text_of(cell["source"]), *first_difference(now, committed)


def main():
    paths = sys.argv[1:]
    if len(paths) != 2:
        sys.exit(__doc__)
    executed, notebook = (json.loads(open(path, encoding="utf-8").read()) for path in paths)
    renew(executed, notebook)
    with open(paths[1], "w", encoding="utf-8") as file:
        file.write(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
