"""General features of a kernel: completion of arguments, magics, rich displays, streams without loss, errors with
their place and their lost variables."""

import os
import queue
import re
import time

import pytest

from kernel_client import DIAGNOSTIC, check_error, without_ansi

pytestmark = pytest.mark.own_kernel

MIB = 1 << 20


def complete(kernel, marked):
    """The matches at `|`, and the replaced range."""
    cursor = marked.index("|")
    content = kernel.client.complete(marked.replace("|", "", 1), cursor, reply=True, timeout=30)["content"]
    assert content["status"] == "ok"
    return content["matches"], (content["cursor_start"], content["cursor_end"])


def inspect(kernel, marked, detail=0):
    cursor = marked.index("|")
    reply = kernel.client.inspect(marked.replace("|", "", 1), cursor, detail_level=detail, reply=True, timeout=30)
    return reply["content"]["data"].get("text/plain", "")


@pytest.fixture(scope="module", autouse=True)
def variables(kernel):
    kernel.run("let numbers = vec![1_u32, 2, 3];\nlet mirrored = MirroredStrategy::logical(2)?;\n"
               "let ones = Tensor::<2>::ones([20, 30], &Device::flex());")


# ---------------------------------------------------------------- completion and inspection

@pytest.mark.parametrize(
    ("marked", "matches"),
    [
        ("compile!(model, gradient_acc|)", ["gradient_accumulation_steps = "]),
        ("fit!(model, größe, epochs = 3, batch_s|)", ["batch_size = "]),
        ("compile!(model, optimizer = SGD::new(0.1).mom|)", ["momentum"]),
        ("compile!(model, metrics = [macro|])", ["macro_f1()"]),
        ("scope!(mirr|, {})", ["mirrored"]),
        ("numb|", ["numbers"]),
        ("Mirr|", ["MirroredStrategy"]),
        ("numbers.is_em|", ["is_empty"]),
        ("std::fs::read_to_s|", ["read_to_string"]),
        ("%explain SC0102|", ["SC0102"]),
        ("%timei|", ["%timeit"]),
    ],
)
def test_completion(kernel, marked, matches):
    found, (start, end) = complete(kernel, marked)
    assert found == matches
    code = marked.replace("|", "", 1)
    assert marked.index("|") == end and matches[0].startswith(code[start:end])


def test_given_arguments_are_not_offered_again(kernel):
    found, _ = complete(kernel, "fit!(model, data, epochs = 3, |)")
    assert "batch_size = " in found and "epochs = " not in found


def test_inspection_shows_arguments_variables_and_documentation(kernel):
    text = inspect(kernel, "compile!(model, steps_per_exe|cution = 16)")
    assert text.startswith("steps_per_execution: integer ≥ 1 (default: 1)") and "SC0102" in text
    assert len(inspect(kernel, "compile!(model, steps_per_exe|cution = 16)", detail=1)) > len(text)
    assert "epochs" in inspect(kernel, "fit|!(model, data)")
    assert "numbers: Vec<u32>" in inspect(kernel, "numb|ers.len()")
    assert "contiguous growable array" in inspect(kernel, "Ve|c::new()")


def test_completion_and_inspection_are_answered_while_a_cell_runs(kernel):
    request = kernel.request('println!("begun"); std::thread::sleep(std::time::Duration::from_secs(60));')
    kernel.wait_for(request, "stream")
    for marked, matches in [("compile!(model, lo|)", ["loss = "]), ("mirr|", ["mirrored"])]:
        # The cell is interrupted below: an answer that waited for it would have come after its end.
        found, _ = complete(kernel, marked)
        assert found == matches
    assert "epochs" in inspect(kernel, "fit!(model, data, |)")
    assert "Vec<u32>" in inspect(kernel, "numbers|")
    kernel.manager.interrupt_kernel()
    check_error(kernel.collect(request, timeout=60), "Interrupted", without_line=True)
    # The cell did not check for the interrupt, so its process has ended.
    kernel.run("let numbers = vec![1_u32, 2, 3];\nlet mirrored = MirroredStrategy::logical(2)?;\n"
               "let ones = Tensor::<2>::ones([20, 30], &Device::flex());")


# ---------------------------------------------------------------- magics

def test_variables_are_listed_with_size_device_and_cell(kernel):
    cell = kernel.run("%vars")
    rows = {row.split()[0]: row for row in cell.shown().splitlines()}
    assert "Vec<u32>" in rows["numbers"] and "36 B" in rows["numbers"], rows
    # 600 numbers of 4 bytes, and burn's handle.
    assert re.search(r"(2\.[4-9]|3\.\d) KiB", rows["ones"]) and "cpu:0" in rows["ones"], rows
    assert "In[" in rows["mirrored"]
    assert "<td" in cell.shown("text/html")


def test_clocks(kernel):
    cell = kernel.run("%time std::thread::sleep(std::time::Duration::from_millis(120));")
    # A busy machine sleeps longer.
    assert re.match(r"wall time ((1[2-9]\d|[2-9]\d\d) ms|\d+\.\d+ s)", cell.stream()), cell.stream()
    cell = kernel.run("%%time\nlet timed = 3;\ntimed + 1")
    assert cell.shown() == "4" and "wall time" in cell.stream()
    assert kernel.run("timed").shown() == "3", "what a timed cell binds stays"
    assert "per loop" in kernel.run("%timeit numbers.iter().sum::<u32>()").stream()
    check_error(kernel.execute("%time let x: i32 = \"7x\".parse()?;"), "Error", "invalid digit", line=1)


def test_the_shell_and_the_environment(kernel):
    cell = kernel.run("!echo out; echo err >&2; pwd\n%env FLAVOR=blue\nstd::env::var(\"FLAVOR\")?")
    out, folder, flavor = cell.stream().splitlines()
    assert (out, flavor) == ("out", "FLAVOR=blue") and os.path.isabs(folder)
    assert cell.stream("stderr") == "err\n"
    assert cell.shown() == '"blue"'
    assert kernel.run("!echo $FLAVOR").stream() == "blue\n"
    check_error(kernel.execute("!exit 3"), "Error", "exit status: 3", line=1)
    seen = kernel.run("!env").stream()
    path = re.search("^PATH=(.*)$", seen, re.MULTILINE)[1]
    assert not re.search("/stratoscope-[0-9]+-[0-9a-f]{8}/", path), "the kernel's own tools are not for cells"
    assert not re.search("^(RUST_SRC_PATH|EVCXR_CONFIG_DIR|STRATOSCOPE_PATH)=", seen, re.MULTILINE)


def test_an_interrupted_shell_command_loses_no_variable(kernel):
    request = kernel.request("!echo begun; sleep 100")
    kernel.wait_for(request, "stream")
    kernel.manager.interrupt_kernel()
    cell = kernel.collect(request, timeout=60)
    check_error(cell, "Interrupted", "the command was interrupted", line=1)
    assert kernel.run("numbers.len()").shown() == "3"


def test_files_are_loaded_and_cells_saved(kernel, tmp_path):
    first = kernel.run("let saved = 11;").number
    path = tmp_path / "cells.rs"
    kernel.run(f"%save {path} {first}")
    assert path.read_text() == "let saved = 11;\n"
    check_error(kernel.execute(f"%save {path}"), "FileError", "-f")
    (payload,) = kernel.run(f"%load {path}").reply["payload"]
    assert (payload["source"], payload["text"], payload["replace"]) == ("set_next_input", "let saved = 11;\n", True)


def test_variables_are_dropped_by_name(kernel):
    kernel.run("let shortlived = String::new();")
    kernel.run("%reset shortlived")
    assert "shortlived" not in kernel.run("%vars").shown()
    assert kernel.run("numbers.len()").shown() == "3"


def test_unknown_magics_suggest_the_closest_name(kernel):
    check_error(kernel.execute("%tmeit 1"), "UnknownMagic", "did you mean `%timeit`?", line=1)
    check_error(kernel.execute("%vars\n1"), "MagicNotAlone", line=1)
    text = kernel.run("%help").shown()
    for name in ("%time", "%vars", "%reset", "%dep", "!COMMAND", "%%scope"):
        assert name in text


@pytest.mark.parametrize(
    ("code", "name", "part"),
    [
        ("%time", "MagicIncomplete", "which code? `%time CODE`"),
        ("%%timeit", "MagicIncomplete", "stands above a cell"),
        ("%placement", "MagicIncomplete", "which model?"),
        ("%%scope\n1", "MagicIncomplete", "which strategy?"),
        ("%dep", "MagicIncomplete", "which crate?"),
        ("?", "MagicIncomplete", "`?NAME`"),
        ("%prun", "UnknownMagic", "`%timeit`"),
        ("%profile tf2.3", "UnknownProfile", "did you mean `tf-2.3`?"),
        ("%dep serde = ", "CompilationError", "string values must be quoted"),
        ("%explain SC9999", "UnknownCode", "`%explain` lists all codes"),
    ],
)
def test_an_invalid_magic_explains_its_use(kernel, code, name, part):
    check_error(kernel.execute(code), name, part, line=1)


def test_the_name_of_a_scopes_strategy_may_be_part_of_the_magics(kernel):
    kernel.run("let s = MirroredStrategy::logical(2)?;")
    assert kernel.run("%%scope s\nlet in_scope = 7;\nin_scope").shown() == "7"


def test_rustcs_codes_are_explained_by_rustc(kernel):
    assert "did not match" in kernel.run("%explain E0308").shown()


def test_a_crate_works_beside_the_facade(kernel):
    cell = kernel.execute('%dep itoa = "1"\nitoa::Buffer::new().format(42_u8).len() + ones.dims()[0]')
    message = without_ansi(str(cell.errors))
    if cell.errors and ("download" in message or "network" in message or "resolve host" in message):
        pytest.skip("itoa is not in cargo's cache, and there is no network")
    assert cell.ok().of_kind("execute_result")[0]["data"]["text/plain"] == "22"
    progress = [each["data"]["text/plain"] for kind in ("display_data", "update_display_data")
                for each in cell.of_kind(kind)]
    assert not progress or progress[-1].startswith("1 crate in"), progress


# ---------------------------------------------------------------- failures

@pytest.mark.parametrize(
    ("code", "name", "part", "line"),
    [
        ("let a = 1;\nstd::process::exit(a);", "ProcessEnded", "exit status 1", 2),
        ("\nstd::process::abort();", "ProcessEnded", "SIGABRT", 2),
        ("fn deep(n: u64) -> u64 { let a = std::hint::black_box([n; 512]); if n == 0 { 0 } else { deep(n - 1) + a[3] } }\n"
         "deep(100_000_000)", "StackOverflow", "stack", 2),
        # As the system does when memory runs out.
        ("!kill -9 $PPID", "ProcessEnded", "memory runs out", 1),
        ("{ struct D; impl Drop for D { fn drop(&mut self) { panic!(\"second\") } } let _d = D; panic!(\"first\") }",
         "ProcessEnded", "SIGABRT", 1),
        ("fn deep(n: u64) -> u64 { let a = std::hint::black_box([n; 64]); if n == 0 { 0 } else { deep(n - 1) + a[3] } }\n"
         "std::thread::spawn(|| deep(100_000_000)).join().unwrap();", "ProcessEnded", "a thread that the cell started used up", 2),
        ("let much: Vec<u8> = Vec::with_capacity(1 << 50);", "OutOfMemory", "1125899906842624 bytes", 1),
    ],
    ids=["exit", "abort", "stack overflow", "killed", "panic in a panic", "stack overflow in a thread", "out of memory"],
)
def test_the_end_of_the_process_is_reported_with_line_and_lost_variables(kernel, code, name, part, line):
    kernel.run("let precious = 1;\nfn kept() -> u8 { 7 }")
    cell = kernel.execute(code)
    own = "of earlier cells are kept, those of this cell are lost" if code.startswith("fn ") else ""
    check_error(cell, name, part, "lost: ", "`precious`", f"functions, types and imports {own}", line=line)
    assert kernel.run("kept()").shown() == "7"


def test_a_missing_variable_has_an_error_that_says_why_and_how_it_comes_back(kernel):
    made = kernel.run("let gone = vec![1, 2, 3];\nlet moved = String::from(\"m\");").number
    moved = kernel.run("drop(moved);").number
    check_error(kernel.execute("moved.len()"), "E0425", "cannot find value `moved`", f"cell {moved} moved it",
                f"run cell {made} again", line=1)
    ended = kernel.execute("std::process::abort();").number
    cell = kernel.execute("let n = 1;\nn + gone.len()")
    check_error(cell, "E0425", "cannot find value `gone`", f"lost when the process ended in cell {ended}",
                f"run cell {made} again", line=2)
    failed = kernel.execute("let finished = 1;\nlet unfinished: i32 = panic!(\"no\");").number
    assert kernel.run("finished").shown() == "1"
    check_error(kernel.execute("unfinished"), "E0425", f"cell {failed}, which binds it, failed", line=1)
    # The latest of the cells that were to make it, one that is no Rust among them.
    failed = kernel.execute("let unfinished = (1;").number
    check_error(kernel.execute("unfinished"), "E0425", f"cell {failed}, which binds it, failed", line=1)
    kernel.run("let gone = 4;")
    assert kernel.run("gone").shown() == "4"
    check_error(kernel.execute("never_there"), "E0425", line=1)


def test_variables_of_a_redefined_type_are_not_taken_for_the_new_one(kernel):
    """Rust distinguishes the two by the names of their fields only: a number would be read as an address."""
    kernel.run("struct Point(usize);\nstruct Line { from: Point }\nimpl Drop for Point { fn drop(&mut self) { println!(\"point {}\", self.0); } }")
    made = kernel.run("let segment = Line { from: Point(7) };\nlet points = vec![Point(8)];\nlet plain = 1;").number
    same = kernel.run("struct Point(usize); // the same")
    assert not same.stream() and kernel.run("segment.from.0").shown() == "7"
    anew = kernel.run("struct Point(String);")
    assert "lost: `points` and `segment`" in anew.stream("stderr"), anew.stream("stderr")
    assert "point 7" in anew.stream() and "point 8" in anew.stream()
    check_error(kernel.execute("segment.from.0.len()"), "E0425", f"cell {anew.number} redefined its type", f"run cell {made} again")
    assert kernel.run("plain").shown() == "1"
    # A cell that defines a type and creates a value is edited and run again.
    assert kernel.run("struct Edited { a: u8 }\nlet edited = Edited { a: 1 };\nedited.a").shown() == "1"
    again = kernel.run("struct Edited { a: String }\nlet edited = Edited { a: \"now a text\".into() };\nedited.a")
    assert again.shown() == '"now a text"' and not again.stream("stderr")


def test_panics_that_end_the_process_are_all_reported(kernel):
    """Panics of destructors: during another panic, and when the variables of the cell are dropped, which does not end
    the process."""
    cell = kernel.execute('{ struct D; impl Drop for D { fn drop(&mut self) { panic!("second") } } let _d = D; panic!("first") }')
    check_error(cell, "ProcessEnded", "panicked where no panic can be caught", line=1)
    assert "panicked on line 1: first\n" in cell.stream("stderr") and "second" in cell.stream("stderr")
    kernel.run('struct Bad; impl Drop for Bad { fn drop(&mut self) { panic!("at its end") } }\nlet bad = Bad;')
    check_error(kernel.execute("let bad = Bad;"), "panic", "at its end", line=1)
    kernel.run("std::mem::forget(bad);")


def test_panics_of_other_threads_have_their_message(kernel):
    kernel.run("let precious = 2;")
    cell = kernel.execute("let worker = std::thread::spawn(|| { if true { panic!(\"in a thread\") } 3 });\nworker.join().unwrap()")
    check_error(cell, "panic", "called `Result::unwrap()`", line=2)
    assert "in a thread" in cell.stream("stderr")
    cell = kernel.execute("std::thread::scope(|threads| { threads.spawn(|| panic!(\"scoped\")); });")
    check_error(cell, "panic", "a scoped thread panicked", line=1)
    assert kernel.run("precious").shown() == "2"


def test_a_variable_that_cannot_be_kept_has_a_card_with_an_alternative(kernel):
    for code, way_out in [("let text = String::from(\"a\");\nlet borrowed = &text;", "text.clone()"),
                          ("let closure = |x: i32| x + 1;", "box it"),
                          ("let words = vec![\"a\"];\nlet closure = |x: i32| x + 1;", "Box<dyn Fn(i32) -> i32>"),
                          ("let boxed = Box::new(|x: i32| x + 1);", "`let boxed: Box<dyn Fn(i32) -> i32> = …;`"),
                          ("let thread = std::thread::spawn(|| panic!());", "std::thread::JoinHandle<()>"),
                          ("let future = async { 1 };", "Pin<Box<dyn Future<Output = i32>>>"),
                          ("let doubled = vec![1].into_iter().map(|n| 2 * n);", "collect"),
                          ("let lock = std::sync::Mutex::new(1);\nlet guard = lock.lock()?;", "in each cell")]:
        cell = kernel.execute(code)
        check_error(cell, "SC1011", line=code.count("\n") + 1)
        (card,) = cell.diagnostics
        assert any(way_out in fix["title"] for fix in card[DIAGNOSTIC]["fixes"]), card[DIAGNOSTIC]["fixes"]
    cell = kernel.execute("std::thread::spawn(|| { panic!() }).join()")
    check_error(cell, "E0277", "what never returns", line=1)
    kernel.run("let words = vec![\"a\"];")
    check_error(kernel.execute("let closure = |x: i32| x + 1;"), "SC1011", line=1)
    kernel.run("drop(words);")


def test_what_has_no_type_because_it_is_wrong_is_reported_by_rustc(kernel):
    """rust-analyzer, which infers the types of variables, has none for a function that does not exist."""
    kernel.run("let big = vec![1, 2];")
    for code, name, message in [("let n = 1;\nlet z = lenght(&big);", "E0425", "cannot find function `lenght`"),
                             ("fn length(x: &[i32]) -> usize { x.len() }\nlet z = lenght(&big);", "E0425", "`lenght`"),
                             ("let z = big.nope();", "E0599", "no method named `nope`"),
                             ("!true\nlet z = std::fs::read_too(\"x\");", "E0425", "cannot find function `read_too`"),
                             ("let z = consume(big);", "E0425", "cannot find function `consume`"),
                             ("scope!(MirroredStrategy::new()?, {\n    let model = Berd::new();\n});", "E0433", "`Berd`")]:
        cell = kernel.execute(code)
        check_error(cell, name, message, line=2 if "\n" in code else 1)
        # An error with an edit is a card of rustc's.
        assert all(card[DIAGNOSTIC]["code"] == name for card in cell.diagnostics)
    # Also with a warning about a function of an earlier cell: a warning is not an error.
    kernel.run("fn warned_of() -> u8 { let somebody = 3; 4 }")
    check_error(kernel.execute("let z = lenght(&big);"), "E0425", "cannot find function `lenght`", line=1)
    check_error(kernel.execute("let z = Default::default();"), "E0790", line=1)
    check_error(kernel.execute("let z = \"5\".parse().unwrap();"), "E0284", "the type that `parse` makes is not known", line=1)
    check_error(kernel.execute("let z = lenght(Some(1)?);"), "E0277", "not `Option`s, in a cell", line=1)
    assert kernel.run("big").shown() == "[1, 2]"


def test_generated_code_is_not_mentioned(kernel):
    for code, name, message in [("let n = Some(5)?;", "E0277", "on `Result`s, not `Option`s, in a cell"),
                             ("struct Odd; let r: Result<u8, Odd> = Err(Odd); r?", "E0277", "`Odd: std::fmt::Display`"),
                             ("!true\nlet b = 3; if b = 3 { }", "E0308", "mismatched types")]:
        cell = kernel.execute(code)
        check_error(cell, name, message)
        text = "\n".join(cell.errors[0]["traceback"])
        for ours in ("closure", "async", "CellError", "EvcxrUserCodeError", "evcxr", "__result", "stratoscope::cell", "src/lib.rs"):
            assert ours not in text, text


def test_a_suggestion_of_punctuation_is_shown_as_the_corrected_line(kernel):
    kernel.run("fn length(x: &[i32]) -> usize { x.len() }")
    cell = kernel.execute("let listed = vec![1];\nlet n: usize = length(listed);")
    check_error(cell, "E0308", line=2)
    (card,) = cell.diagnostics
    assert card[DIAGNOSTIC]["changes"][0]["after"] == "let n: usize = length(&listed);"


# ---------------------------------------------------------------- streams

def test_much_output_arrives_whole(kernel):
    """20 MiB, or 100 MiB when asked; the kernel's memory stays bounded."""
    size = 100 if os.environ.get("STRATOSCOPE_FULL_TESTS") else 20
    cell = kernel.run(f'let line = "x".repeat(1023);\nfor _ in 0..{size} * 1024 {{ println!("{{line}}"); }}')
    assert len(cell.stream()) == size * MIB
    assert set(cell.stream()) == {"x", "\n"}
    with open(f"/proc/{kernel.pid}/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    assert resident < 1500 * 1024, f"{resident} KiB"


def test_partial_lines_and_odd_bytes(kernel):
    cell = kernel.run('use std::io::Write;\nprint!("half a line");\n'
                      'std::io::stdout().write_all(b" bad \\xff\\xfe end \\xe2\\x88")?;')
    assert cell.stream() == "half a line bad \ufffd\ufffd end \ufffd"


def test_text_without_a_newline_is_shown_at_once(kernel, tmp_path):
    """The cell waits until the test has seen its first text."""
    request = kernel.request(f'''print!("first");
while !std::path::Path::new("{tmp_path}/seen").exists() {{ std::thread::sleep(std::time::Duration::from_millis(10)); }}
print!("second");''')
    assert kernel.wait_for(request, "stream")[0]["text"] == "first"
    (tmp_path / "seen").touch()
    assert kernel.collect(request).ok().stream() == "second"


def listen(kernel, requests, is_over, seconds=60):
    """The iopub messages of each request until it is idle, and shortly after."""
    heard = {request: [] for request in requests}
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        try:
            message = kernel.client.get_iopub_msg(timeout=min(left, 0.5))
            heard.setdefault(message["parent_header"].get("msg_id"), []).append(message)
        except queue.Empty:
            if is_over(heard):
                return heard
    raise TimeoutError(heard)


def text_of(messages, name="stdout"):
    return "".join(message["content"]["text"] for message in messages
                   if message["msg_type"] == "stream" and message["content"]["name"] == name)


def test_output_of_a_thread_belongs_to_the_cell_that_started_it(kernel):
    """While its cell runs, while another one runs, and while none does; also for a thread of such a thread, and for
    text that was not written by a macro of the cell."""
    first = kernel.request("""
use std::io::Write;
fn nap(milliseconds: u64) { std::thread::sleep(std::time::Duration::from_millis(milliseconds)); }
std::thread::spawn(|| {
    for i in 0..14 {
        nap(250);
        println!("line {i}");
        print!("part {i};");
        eprintln!("error {i}");
        std::io::stdout().write_all(format!("bytes {i}\\n").as_bytes()).unwrap();
        if i == 6 {
            std::thread::spawn(|| { nap(900); println!("grandchild ü"); });
            display_html("<b>from the thread</b>");
        }
    }
    panic!("at its end");
});
print!("the first cell's own");
nap(600);
""")
    second = kernel.request("for i in 0..40 { println!(\"own {i}\"); nap(50); }\n\"second\"")
    heard = listen(kernel, [first, second], lambda heard: "at its end" in text_of(heard[first], "stderr")
                   and text_of(heard[second]).endswith("39\n"))
    states = [message["content"]["execution_state"] for message in heard[second] if message["msg_type"] == "status"]
    assert states == ["busy", "idle"]
    text = text_of(heard[first])
    for i in range(14):
        for expected in (f"line {i}\n", f"part {i};", f"bytes {i}\n"):
            assert text.count(expected) == 1, text
    assert "the first cell's own" in text and text.count("grandchild ü\n") == 1
    assert "error 13\n" in text_of(heard[first], "stderr") and "at its end" in text_of(heard[first], "stderr")
    assert [message["content"]["data"]["text/html"] for message in heard[first]
            if message["msg_type"] == "display_data"] == ["<b>from the thread</b>"]
    assert text_of(heard[second]) == "".join(f"own {i}\n" for i in range(40))
    assert not text_of(heard[second], "stderr") and not [
        message for message in heard[second] if message["msg_type"] == "display_data"]


def test_threads_of_the_running_cell_keep_the_order_of_their_output(kernel):
    cell = kernel.run("std::thread::scope(|threads| { threads.spawn(|| { for i in 0..50 { println!(\"{i}\"); } }); });\n"
                      "println!(\"after\");")
    assert cell.stream() == "".join(f"{i}\n" for i in range(50)) + "after\n"


def test_both_streams_arrive_in_the_order_of_writing(kernel):
    def heard(cell):
        return [(content["name"], content["text"]) for content in cell.of_kind("stream")]

    cell = kernel.run("for i in 0..100 { println!(\"out {i}\"); eprintln!(\"err {i}\"); }")
    assert heard(cell) == [each for i in range(100) for each in (("stdout", f"out {i}\n"), ("stderr", f"err {i}\n"))]
    # A child process writes to the same stream, between our text before its start and after its end.
    cell = kernel.run("use std::process::Command;\nfor i in 0..20 {\n    eprintln!(\"before {i}\");\n"
                      "    Command::new(\"echo\").arg(format!(\"child {i}\")).status()?;\n}\neprintln!(\"after\");")
    assert "".join(text for _, text in heard(cell)) == "".join(f"before {i}\nchild {i}\n" for i in range(20)) + "after\n"


def test_tasks_of_an_executor_print_for_the_cell_that_runs(kernel):
    """tokio's threads are started by the first cell with an `await` and serve all later ones."""
    kernel.run("let (work, waiting) = std::sync::mpsc::channel::<String>();\n"
               "let executor = std::thread::Builder::new().name(\"tokio-rt-worker\".to_owned())\n"
               "    .spawn(move || { for task in waiting { println!(\"{task}\"); } })?;")
    assert kernel.run("work.send(\"a task\".to_owned())?; sleep(2.0);").stream() == "a task\n"
    kernel.run("drop(work); executor.join().ok();")


def test_late_output_belongs_to_a_cell_that_asked_for_it(kernel):
    request = kernel.request("std::thread::spawn(|| { std::thread::sleep(std::time::Duration::from_secs(5)); "
                             "println!(\"late\"); });")
    cell = kernel.collect(request).ok()
    assert not cell.stream()
    (late,) = kernel.wait_for(request, "stream", timeout=20)
    assert late["text"] == "late\n"


# ---------------------------------------------------------------- displays

def test_a_tensor_shows_its_shape_its_numbers_and_a_corner(kernel):
    kernel.run("let ones = Tensor::<2>::ones([20, 30], &Device::flex());")
    text = kernel.run("ones").shown()
    assert text.startswith("Tensor [20, 30] f32 on "), text
    assert "min 1, mean 1, max 1" in text and "[1, 1, 1, …, 1, 1, 1]" in text
    assert "primitive" not in kernel.run("Some(ones.clone())").shown()


def test_forms_of_display(kernel):
    cell = kernel.run('display(&Latex("x^2"));\ndisplay(&Json(serde_json_of()));\ndisplay(&Png([137, 80, 78, 71]));\n'
                      'display(&Table::new(["a", "b"]).row([1, 2]));\nSome(vec![Html("<b>in a list</b>")])'
                      .replace("serde_json_of()", "Default::default()"))
    kinds = [set(bundle) for bundle in cell.bundles]
    for bundle, kind in zip(kinds, ["text/latex", "application/json", "image/png", "text/html", "text/html"]):
        assert {kind, "text/plain"} <= bundle, kinds
    assert "<b>in a list</b>" in cell.bundles[-1]["text/html"]
    assert cell.bundles[-1]["text/plain"].startswith("Some([")


def test_any_iterator_has_a_progress_bar(kernel):
    cell = kernel.run("let mut seen = 0;\nfor i in track(0..5) { seen += i; std::thread::sleep(std::time::Duration::from_millis(70)); }\nseen")
    (first,) = cell.of_kind("display_data")
    states = [first["data"]["text/plain"], *(each["data"]["text/plain"] for each in cell.of_kind("update_display_data"))]
    assert "0/5" in states[0] and "5/5" in states[-1] and len(states) >= 3, states


def test_what_rustc_warns_of_is_shown_once(kernel):
    code = "fn f() -> u8 {\n    let nobody = 3;\n    4\n}\nlet v = vec![1];\nv.iter().map(|x| x + 1);"
    found = [card[DIAGNOSTIC] for card in kernel.run(code).diagnostics]
    assert {(each["code"], each["severity"]) for each in found} == {("unused_variables", "warning"), ("unused_must_use", "warning")}
    plain = without_ansi(kernel.run(code.replace("nobody", "someone")).shown())
    assert "unused variable: `someone`" in plain and "line 2" in plain and "^^^^^^^" in plain, plain
    assert not kernel.run(code).diagnostics, "shown already"
    assert not kernel.run("f() + 1").diagnostics, "an earlier cell's"
    assert not kernel.run("#[allow(unused_variables)]\nfn g() -> u8 { let other = 3; 4 }").diagnostics
    assert not kernel.run("let twice = 1;\nlet twice = 2;").diagnostics, "variables of the notebook"
    assert "unused_variables is silenced" in kernel.run("%warnings silence unused-variables").shown()
    assert not kernel.run("fn h() -> u8 { let third = 3; 4 }").diagnostics
    kernel.run("%warnings default unused_variables")
    assert kernel.run("fn k() -> u8 { let fourth = 3; 4 }").diagnostics
    assert kernel.execute("%warnings silence unused_varables").errors[0]["ename"] == "UnknownWarning"


def test_a_reset_forgets_everything(kernel):
    """The last test, because it removes the variables of the others."""
    kernel.run("%reset")
    assert kernel.run("%vars").shown() == "no variables yet"
    assert kernel.execute("numbers").reply["status"] == "error"
    assert kernel.run("accuracy();\n1 + 1").shown() == "2"
