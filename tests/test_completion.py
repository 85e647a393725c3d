"""Completion and inspection: for every text that can stand in a cell, whatever happened before, without internals."""

import time

import pytest

from kernel_client import Kernel

# Each made rust-analyzer search for expressions of the expected type, in which it panics.
SEARCHES = ["let x: i32 = |", "let n: usize = ke|", "return |", "let v = keep; v|", "let t: Vec<i32> = f(ke|)"]


def complete(kernel, marked, timeout=60):
    """The matches at `|`, and the text that each of them replaces."""
    cursor, code = marked.index("|"), marked.replace("|", "", 1)
    content = kernel.client.complete(code, cursor, reply=True, timeout=timeout)["content"]
    assert content["status"] == "ok", content
    return content["matches"], code[content["cursor_start"]:content["cursor_end"]]


def inspect(kernel, marked):
    cursor, code = marked.index("|"), marked.replace("|", "", 1)
    content = kernel.client.inspect(code, cursor, reply=True, timeout=60)["content"]
    return content["data"].get("text/plain", "") if content["found"] else ""


def check_keep(kernel):
    """An earlier variable is still completed and inspected, and exists."""
    assert complete(kernel, "kee|") == (["keep"], "kee")
    found, replaced = complete(kernel, "keep.pu|")
    assert "push" in found and replaced == "pu"
    assert "keep: Vec<i32>" in inspect(kernel, "ke|ep")
    kernel.run("assert_eq!(keep, vec![1]);")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("completion") / "stderr"


@pytest.fixture(scope="module")
def kernel(log):
    with log.open("w") as stderr, Kernel(stderr=stderr) as kernel:
        kernel.run("let keep = vec![1];\nfn f(x: Vec<i32>) -> Vec<i32> { x }")
        kernel.run("let net = Sequential([Dense(3).input_shape(4)])?;\nlet mirrored = MirroredStrategy::logical(2)?;")
        yield kernel


@pytest.mark.parametrize("marked", SEARCHES)
def test_names_are_completed_where_a_type_is_expected(kernel, log, marked):
    found, replaced = complete(kernel, marked)
    expected = "v" if marked.endswith("v|") else "keep"
    assert expected in found, found
    assert expected.startswith(replaced)
    check_keep(kernel)
    assert "panicked" not in log.read_text()


@pytest.mark.parametrize("marked", [
    "match keep.len() { 0 => ke|", "if ke|", "for x in ke|", "println!(\"{:?}\", ke|)", "let p = (1, ke|",
    "let p = !ke|",
])
def test_names_are_completed_in_unfinished_statements(kernel, marked):
    assert "keep" in complete(kernel, marked)[0]
    assert "local" in complete(kernel, "fn g() -> usize {\n    let local = 1;\n    loc|\n}")[0]
    check_keep(kernel)


def test_types_are_completed(kernel):
    assert "Sequential" in complete(kernel, "let n: Sequ|")[0]
    assert "HashMap" in complete(kernel, "use std::collections::Hash|")[0]


def test_internals_are_not_offered(kernel):
    found, _ = complete(kernel, "net.|")
    members = {each.removeprefix("net.") for each in found}
    hidden = {"placement_here", "lent_network", "free_state", "fit_from", "gradients_in", "held", "bundle", "inner",
              "calls", "shared", "state", "summary_here", "start_from"}
    assert not members & hidden, members & hidden
    assert {"predict", "summary", "placement", "clone"} <= members
    found, _ = complete(kernel, "MirroredStrategy::|")
    assert "logical" in found and "with" not in found, found
    assert not {each for each in complete(kernel, "mirrored.|")[0] if each.startswith("_")}


def test_a_field_of_the_notebooks_own_type_is_offered(kernel):
    kernel.run("struct Own { inner: u8, held: u8 }\nimpl Own { fn state(&self) -> u8 { self.inner + self.held } }\n"
               "let own = Own { inner: 1, held: 2 };")
    assert {"inner", "held", "state"} <= set(complete(kernel, "own.|")[0])


def test_the_calls_of_a_model_are_offered_as_they_are_written(kernel):
    found, replaced = complete(kernel, "net.|")
    assert found[:4] == ["compile!(net, ", "fit!(net, ", "start!(net, ", "evaluate!(net, "] and replaced == "net."
    assert "net.fit" not in found
    found, replaced = complete(kernel, "let h = net.fi|")
    assert "fit!(net, " in found and replaced == "net.fi"
    assert all(each.startswith("net.fi") for each in found if not each.startswith("fit!")), found


def test_the_first_request_is_answered_when_the_kernel_is_ready():
    begun = time.monotonic()
    with Kernel() as kernel:
        found, _ = complete(kernel, "String::from_ut|")
        assert "from_utf8" in found, f"{found} after {time.monotonic() - begun:.1f} s"
        request = kernel.request("let later = 1;")
        # While the first cell waits or runs, the text alone answers.
        assert complete(kernel, "Mirr|")[0] == ["MirroredStrategy"]
        kernel.collect(request).ok()
        assert complete(kernel, "lat|")[0] == ["later"]
