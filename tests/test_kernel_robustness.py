"""Accidental faults: malformed messages, subscribers that stall, files left by others. Each is logged, answered or
refused; the kernel continues."""

import contextlib
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import threading
import time

import pytest
import zmq

from kernel_client import Kernel, check_error

pytestmark = pytest.mark.own_kernel

DELIMITER = b"<IDS|MSG>"


@pytest.fixture
def shell(kernel):
    """The raw shell socket of a second client."""
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.linger = 0
    socket.connect(kernel.client._make_url("shell"))
    yield socket
    socket.close()


def signed(kernel, kind, content, header=None):
    """The frames of a correct message."""
    session = kernel.client.session
    message = session.msg(kind, content, header=header)
    return session.serialize(message)


def check_alive(kernel):
    assert kernel.run("6 * 7", timeout=60).shown() == "42"


def test_malformed_frames(kernel, shell):
    good = signed(kernel, "kernel_info_request", {})
    mangled = [
        [b""],
        [b"hello"],
        [DELIMITER],
        good[:3],
        [good[0].replace(b"IDS", b"ids"), *good[1:]],
        [good[0], b"0" * 64, *good[2:]],
        [good[0], good[1][:10], *good[2:]],
        [good[0], b"", *good[2:]],
        [good[0], good[1], b"{", *good[3:]],
        [good[0], good[1], b"\xff\xfe", *good[3:]],
        [b"x" * 100_000, DELIMITER],
        [b""] * 500,
    ]
    for frames in mangled:
        shell.send_multipart(frames)
    assert not shell.poll(300), "none of them is answered"
    shell.send_multipart(signed(kernel, "kernel_info_request", {}))
    assert shell.poll(10_000), "a correct one on the same connection is"
    shell.recv_multipart()
    check_alive(kernel)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("execute_request", {}),
        ("execute_request", {"code": 3}),
        ("execute_request", {"code": "1", "user_expressions": []}),
        ("complete_request", {"code": "a", "cursor_pos": -1}),
        ("complete_request", {"code": "größe", "cursor_pos": 10**12}),
        ("inspect_request", {"code": "", "cursor_pos": 5, "detail_level": 9}),
        ("history_request", {"hist_access_type": "sideways"}),
        ("is_complete_request", {"code": "(" * 100_000}),
        ("comm_open", {"comm_id": "c", "target_name": "none", "data": {}}),
        ("comm_msg", {"comm_id": "none"}),
        ("teleport_request", {"to": "the moon"}),
        ("", {}),
    ],
)
def test_malformed_contents(kernel, shell, kind, content):
    shell.send_multipart(signed(kernel, kind, content))
    shell.poll(300)
    check_alive(kernel)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("complete_request", {"code": "a", "cursor_pos": -1}),
        ("inspect_request", {"code": "a", "cursor_pos": -5}),
        ("history_request", {"hist_access_type": "sideways"}),
        ("is_complete_request", {}),
        ("execute_request", {"code": 3}),
    ],
)
def test_a_malformed_request_is_answered_with_an_error(kernel, shell, kind, content):
    shell.send_multipart(signed(kernel, kind, content))
    assert shell.poll(10_000), "the client would wait"
    session = kernel.client.session
    _, frames = session.feed_identities(shell.recv_multipart())
    reply = session.deserialize(frames)
    assert reply["msg_type"] == kind.replace("request", "reply")
    assert (reply["content"]["status"], reply["content"]["ename"]) == ("error", "ProtocolError"), reply["content"]
    assert kind in reply["content"]["evalue"]


def test_a_message_that_is_replayed_is_not_executed_twice(kernel, shell, tmp_path):
    path = tmp_path / "times"
    code = ("use std::io::Write;\nstd::fs::OpenOptions::new().append(true).create(true)"
            f'.open("{path}")?.write_all(b"x")?;')
    content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
               "allow_stdin": False, "stop_on_error": True}
    frames = signed(kernel, "execute_request", content)
    shell.send_multipart(frames)
    assert shell.poll(60_000)
    shell.recv_multipart()
    shell.send_multipart(frames)
    shell.poll(1500)
    check_alive(kernel)
    assert path.read_text() == "x"


def test_a_subscriber_that_does_not_read_delays_nobody_for_long(kernel):
    stalled = zmq.Context.instance().socket(zmq.SUB)
    stalled.linger, stalled.rcvhwm = 0, 1
    stalled.setsockopt(zmq.RCVBUF, 4096)
    stalled.subscribe(b"")
    stalled.connect(kernel.client._make_url("iopub"))
    time.sleep(0.3)
    try:
        cell = kernel.run('let line = "y".repeat(1023);\nfor _ in 0..8 * 1024 { println!("{line}"); }', timeout=60)
        assert len(cell.stream()) == 8 << 20
        check_alive(kernel)
    finally:
        stalled.close()


def test_stop_on_error_aborts_what_waits(kernel):
    requests = [kernel.request("Err::<(), _>(\"no\")?;"), kernel.request("1"), kernel.request("2")]
    statuses = {}
    while len(statuses) < 3:
        reply = kernel.client.get_shell_msg(timeout=30)
        statuses[reply["parent_header"]["msg_id"]] = reply["content"]["status"]
        # A number would be shown beside a cell that was not executed.
        assert (reply["content"]["status"] == "aborted") == (reply["content"] == {"status": "aborted"})
    assert [statuses[request] for request in requests] == ["error", "aborted", "aborted"]
    check_alive(kernel)


def test_a_question_is_cancelled_by_an_interrupt(kernel):
    request = kernel.client.execute('println!("asking");\nlet answer = input("name? ");', allow_stdin=True)
    kernel.wait_for(request, "stream")
    question = kernel.client.get_stdin_msg(timeout=20)
    assert question["content"] == {"prompt": "name? ", "password": False}
    kernel.manager.interrupt_kernel()
    cell = kernel.collect(request, timeout=30)
    check_error(cell, "Interrupted", "all variables are kept", without_line=True)
    check_alive(kernel)


def test_what_is_typed_as_a_password_is_not_to_be_shown(kernel):
    request = kernel.client.execute('stratoscope::display::input_password("token? ")', allow_stdin=True)
    question = kernel.client.get_stdin_msg(timeout=60)
    assert question["content"] == {"prompt": "token? ", "password": True}
    kernel.client.input("a secret")
    assert kernel.collect(request, timeout=60).ok().shown() == 'Some("a secret")'


def test_a_question_that_nobody_can_be_asked_has_no_answer(kernel):
    assert kernel.run('input("name? ")').shown() == "None"


def test_interrupts_at_odd_moments(kernel):
    """Sleeping, computing, compiling, printing: the kernel is usable after every one."""
    rounds = 25 if os.environ.get("STRATOSCOPE_FULL_TESTS") else 2
    cells = [
        "for _ in 0..400 { std::thread::sleep(std::time::Duration::from_millis(50)); if stratoscope::cell::interrupted() { break; } }",
        "let mut n = 0_u64; while !stratoscope::cell::interrupted() { n = std::hint::black_box(n + 1); }",
        "fn slow<T>() {}\n" + "\n".join(f"fn f{n}(x: u64) -> String {{ format!(\"{{x}} {n}\") }}" for n in range(400)) + "\nloop { if stratoscope::cell::interrupted() { break; } }",
        "loop { println!(\"more\"); if stratoscope::cell::interrupted() { break; } }",
    ]
    kernel.run("let survivor = 5;")
    for round_ in range(rounds):
        for index, code in enumerate(cells):
            request = kernel.request(code)
            kernel.wait_for(request, "execute_input")
            time.sleep(0.15 + 0.23 * ((round_ * 7 + index * 3) % 5))
            kernel.manager.interrupt_kernel()
            cell = kernel.collect(request, code, timeout=60)
            assert cell.reply["status"] == "error", code
            assert cell.errors[0]["ename"] == "Interrupted", cell.errors
            assert "are kept" in cell.errors[0]["evalue"], "they listen, so nothing is lost"
    assert kernel.run("survivor").shown() == "5"


def test_a_home_that_cannot_be_written(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = dict(os.environ, HOME="/proc/nowhere", CARGO_HOME=os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")),
                       RUSTUP_HOME=os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup")))
    with Kernel(cwd=tmp_path, env=environment) as kernel:
        check_alive(kernel)


def test_the_folder_for_temporary_files_may_have_a_long_path(tmp_path):
    """Deeper than the longest path of a socket."""
    folders = tmp_path / ("deep" * 20) / ("deeper" * 10)
    folders.mkdir(parents=True)
    with Kernel(cwd=tmp_path, env=dict(os.environ, TMPDIR=str(folders))) as kernel:
        check_alive(kernel)


def test_nothing_is_left_behind(tmp_path):
    """A kernel that ends removes its files; those of a killed one are removed by the next."""
    folders = tmp_path / "temporary"
    folders.mkdir()
    environment = dict(os.environ, TMPDIR=str(folders))
    with Kernel(cwd=tmp_path, env=environment) as kernel:
        check_alive(kernel)
        # The evaluator's and the one of the sockets.
        assert len(list(folders.glob("stratoscope-*"))) == 2
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.manager.provisioner.process.wait(10)
    assert len(list(folders.glob("stratoscope-*"))) == 2, "the killed kernel could not clean up"
    with Kernel(cwd=tmp_path, env=environment) as kernel:
        check_alive(kernel)
        # Beside the first cell.
        deadline = time.monotonic() + 30
        while {path.name.split("-")[1] for path in folders.glob("stratoscope-*")} != {str(kernel.pid)}:
            assert time.monotonic() < deadline, list(folders.iterdir())
            time.sleep(0.1)
    deadline = time.monotonic() + 10
    while list(folders.glob("stratoscope-*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not list(folders.glob("stratoscope-*"))
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(folders) not in running


def descendants(pid):
    """All descendants of a process: id and command line."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                command = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [(int(child), command), *descendants(child)]
    return found


def cell_process(kernel):
    (pid,) = [pid for pid, command in descendants(kernel.pid) if command.endswith(" cells ")]
    return pid


def test_a_cell_process_that_is_killed_from_outside(kernel):
    kernel.run("let precious = 1;\nfn kept() -> u8 { 7 }")
    request = kernel.request('let n = 1;\nlet m = 2;\n{ println!("begun"); sleep(60.0); }')
    kernel.wait_for(request, "stream")
    os.kill(cell_process(kernel), signal.SIGKILL)
    cell = kernel.collect(request, timeout=20)
    check_error(cell, "ProcessEnded", "SIGKILL", "memory runs out", "lost: ", "`precious`", line=3)
    assert kernel.run("kept()").shown() == "7"
    # Also while nothing runs: the next cell reports it, and the one after it works.
    kernel.run("let precious = 2;")
    os.kill(cell_process(kernel), signal.SIGKILL)
    time.sleep(0.3)
    cell = kernel.execute("kept() + 1")
    check_error(cell, "ProcessEnded", "`precious`", without_line=True)
    assert kernel.run("kept()").shown() == "7"


@contextlib.contextmanager
def memory_limit(process, size):
    """A control group with a memory limit; `False` if it cannot be created."""
    group = None
    for folder, limit in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]:
        with contextlib.suppress(OSError):
            group = pathlib.Path(folder) / f"stratoscope-test-{process}"
            group.mkdir()
            (group / limit).write_text(str(size))
            (group / "cgroup.procs").write_text(str(process))
            break
        with contextlib.suppress(OSError):
            group.rmdir()
        group = None
    try:
        yield group is not None
    finally:
        for _ in range(20 if group else 0):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.2)


def test_a_cell_process_that_runs_out_of_memory_is_killed_by_the_system(kernel):
    kernel.run("let precious = 1;")
    process = cell_process(kernel)
    with memory_limit(process, 100 << 20) as is_limited:
        request = kernel.request("println!(\"begun\");\nlet pages = std::hint::black_box(vec![1_u8; 400 << 20]);\n"
                                 "std::thread::sleep(std::time::Duration::from_secs(20));")
        if not is_limited:
            # Without a control group: kill it as the system would.
            kernel.wait_for(request, "stream")
            os.kill(process, signal.SIGKILL)
        cell = kernel.collect(request, timeout=60)
        check_error(cell, "ProcessEnded", "SIGKILL", "memory runs out", "lost: ", "`precious`", line=2 if is_limited else 3)
    assert kernel.run("vec![1_u8; 400 << 20].len()").shown() == str(400 << 20)


def test_an_allocation_that_fails(kernel):
    kernel.run("let precious = 1;")
    process = cell_process(kernel)
    used = int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(process, resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
    cell = kernel.execute("let small = vec![1_u8; 1 << 20];\nlet large = vec![1_u8; 1 << 30];")
    assert "memory allocation of 1073741824 bytes failed" in cell.stream("stderr")
    check_error(cell, "OutOfMemory", "1073741824 bytes", "lost: ", "`precious`", line=2)
    assert kernel.run("vec![1_u8; 1 << 30].len()").shown() == str(1 << 30)


def compilers_of(kernel):
    return [pid for pid, command in descendants(kernel.pid) if "--crate-name ctx" in command]


def seconds_of(pid):
    """Processor time; 0 for a process that has ended."""
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0


def test_a_compiler_that_is_killed(kernel):
    kernel.run("let precious = 3;")
    functions = "\n".join(f"fn g{n}(x: u64) -> String {{ format!(\"{{x}} {n}\") }}" for n in range(8000))
    request = kernel.request(functions)
    # The process that compiles the cell uses the processor, the one that waits does not.
    deadline = time.monotonic() + 30
    while not (compilers := [pid for pid in compilers_of(kernel) if seconds_of(pid) > 0.4]):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    for pid in compilers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    cell = kernel.collect(request, timeout=60)
    assert cell.reply["status"] == "error", "the compiler was not killed in time"
    check_error(cell, "CompilerFailed", "memory runs out", without_line=True)
    assert kernel.run("precious").shown() == "3"


@pytest.mark.parametrize("which", ["--crate-name ctx", " standby "])
def test_a_standby_compiler_that_is_killed(kernel, which):
    kernel.run("let precious = 4;")
    deadline = time.monotonic() + 30
    while not compilers_of(kernel):
        assert time.monotonic() < deadline, "no compiler stands by"
        time.sleep(0.05)
    for pid, command in descendants(kernel.pid):
        if which in command:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for number in range(2):
        assert kernel.run(f"precious + {number}").shown() == str(4 + number)
    check_error(kernel.execute("let wrong: u8 = \"text\";"), "E0308", "mismatched types", line=1)


@pytest.mark.parametrize("code", [
    # A macro that is imported by the name of one of the prelude's is no ambiguous name …
    "use std::assert_eq as fit;\nfit!(1 + 1, 2); \"as meant\"",
    # … and an exported one may be called by its path.
    "#[macro_export] macro_rules! twice { ($x:expr) => { 2 * $x } }\nassert_eq!(crate::twice!(2), 4); \"as meant\""])
def test_cells_that_are_invalid_only_as_an_included_text(kernel, code):
    """The standby rustc reads the cell as an included text."""
    assert kernel.run(code).shown() == '"as meant"'
    kernel.run("%reset")


MAKERS = """macro_rules! make { ($n:ident) => { #[derive(Debug)] struct $n { x: i32 } }; }
macro_rules! kinds { ($n:ident: $($v:ident),*) => { #[derive(Debug, Clone)] enum $n { $($v),* } } }
macro_rules! more { ($t:ident, $c:ident = $v:expr) => {
    const $c: i32 = $v;
    fn limited(x: i32) -> i32 { x.min($c) }
    impl $t { fn twice(&self) -> i32 { 2 * self.x } }
} }"""


def test_items_that_a_macro_makes_are_kept(kernel):
    kernel.run(MAKERS)
    kernel.run("make!(Q); let q = Q { x: 2 };")
    assert kernel.run("q").shown() == "Q { x: 2 }"
    kernel.run("kinds!(E: One, Two); let all: Vec<E> = vec![E::One, E::Two];")
    kernel.run("more!(Q, LIMIT = 1 + 2)")
    assert kernel.run("(q.twice(), limited(9), LIMIT, all.len())").shown() == "(4, 3, 3, 2)"
    # Run again, and with a typed variable.
    kernel.run("more!(Q, LIMIT = 1 + 2)")
    kernel.run("make!(Q); let q: Q = Q { x: 3 };")
    assert kernel.run("q.twice()").shown() == "6"
    kernel.run("%reset q")
    assert kernel.run("1 + 1").shown() == "2"


@pytest.mark.parametrize("code, name", [
    ("mixed!(P); let p: P = P { x: 1 };", "p"),
    ("mixed!(F); let all: Vec<F> = vec![F { x: 1 }];", "all"),
])
def test_a_variable_of_a_type_that_ends_with_its_cell_is_refused(kernel, code, name):
    kernel.run("let stays = 1;\nmacro_rules! mixed { ($n:ident) => { struct $n { x: i32 } let _ = 1; } }")
    check_error(kernel.execute(code), "SC1011", f"`{name}` has the type", "a macro of this cell makes")
    assert kernel.run("stays + 1").shown() == "2"
    assert kernel.run(f"let {name} = 5; {name}").shown() == "5"
    kernel.run(f"%reset {name}")


def test_a_process_without_a_free_descriptor_goes_on(kernel):
    kernel.run("let precious = vec![7];")
    kernel.run('let files: Vec<_> = (0..1_000_000).map_while(|_| std::fs::File::open("/dev/null").ok()).collect();')
    assert kernel.run("precious[0]").shown() == "7"
    kernel.run("drop(files);")
    assert kernel.run('std::fs::File::open("/dev/null").is_ok()').shown() == "true"


def test_a_cell_that_cannot_be_loaded_loses_nothing(kernel, tmp_path):
    kernel.run("let precious = vec![7]; let moved = String::from(\"there\");")
    restore = tmp_path / "restore"
    kernel.run(f"""unsafe extern "C" {{
    fn getrlimit(of: i32, limit: *mut [u64; 2]) -> i32;
    fn setrlimit(of: i32, limit: *const [u64; 2]) -> i32;
}}
std::thread::spawn(|| {{
    let mut limit = [0, 0];
    unsafe {{ getrlimit({resource.RLIMIT_NOFILE}, &mut limit); setrlimit({resource.RLIMIT_NOFILE}, &[3, limit[1]]); }}
    while !std::path::Path::new("{restore}").exists() {{
        std::thread::sleep(std::time::Duration::from_millis(5));
    }}
    unsafe {{ setrlimit({resource.RLIMIT_NOFILE}, &limit); }}
}});
std::thread::sleep(std::time::Duration::from_millis(200));""")
    cell = kernel.execute("drop(moved); let precious = 1; let new = 2;")
    check_error(cell, "NotLoaded", "file descriptors", "nothing of the cell has run", without_line=True)
    restore.touch()
    time.sleep(0.5)
    assert kernel.run("(precious, moved)").shown() == '([7], "there")'
    check_error(kernel.execute("new"), "E0425", line=1)


@contextlib.contextmanager
def small_disk(folder, *options):
    """Mounts a small file system; returns whether that is allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", ",".join(["size=256m", "mode=0700", *options]), "none", folder]
    prefix = next((each for each in ([], ["sudo", "-n"]) if shutil.which((each + mount)[0])
                   and subprocess.run([*each, *mount], capture_output=True).returncode == 0), None)
    try:
        yield prefix is not None
    finally:
        if prefix is not None:
            subprocess.run([*prefix, "umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def no_space(folder, mounted):
    """Makes writing impossible (a full disk, or a folder in place of a file); returns the text of the cell's error."""
    if mounted:
        filler = folder / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        yield "WriteFailed", "No space left on device", f"written to {folder}"
        filler.unlink()
    else:
        (source,) = folder.glob("stratoscope-*/cells/src/lib.rs")
        source.unlink()
        source.mkdir()
        yield "Error", "Is a directory"
        source.rmdir()


def test_a_full_disk(tmp_path):
    disk = tmp_path / "d"
    with small_disk(disk) as mounted:
        environment = dict(os.environ, TMPDIR=str(disk))
        with Kernel(cwd=tmp_path, env=environment) as kernel:
            kernel.run("let precious = 4;")
            with no_space(disk, mounted) as expected:
                for code in ("let x = precious + 1;\nx * 2", "fn f() -> u8 { 1 }", "let t = Tensor::<1>::ones([3], &Device::flex());\nt"):
                    check_error(kernel.execute(code, timeout=60), *expected, without_line=True)
            assert kernel.run("precious").shown() == "4", "nothing is lost"
            assert kernel.run("fn f() -> u8 { 2 }\nf()").shown() == "2"
        assert not list(disk.glob("stratoscope-*"))


def test_a_command_that_makes_room_on_a_full_disk(tmp_path):
    disk = tmp_path / "d"
    with small_disk(disk) as mounted:
        if not mounted:
            pytest.skip("no file system can be mounted")
        with Kernel(cwd=tmp_path, env=dict(os.environ, TMPDIR=str(disk))) as kernel:
            kernel.run("1")
            with no_space(disk, mounted):
                assert kernel.run(f"!echo removed; rm {disk}/filler").stream() == "removed\n"
                assert kernel.run("20 + 3").shown() == "23"
                (disk / "filler").touch()


def test_a_folder_for_temporary_files_that_is_mounted_noexec(tmp_path, stratoscope):
    disk = tmp_path / "d"
    with small_disk(disk, "noexec") as mounted:
        if not mounted:
            pytest.skip("no file system can be mounted")
        environment = dict(os.environ, TMPDIR=str(disk))
        with Kernel(cwd=tmp_path, env=environment) as kernel:
            first = kernel.run("6 * 7")
            assert first.shown() == "42" and "`noexec`" in first.stream("stderr")
        doctor = subprocess.run([stratoscope, "doctor"], env=environment, capture_output=True, text=True)
        assert "`noexec`" in doctor.stdout, doctor.stdout


def test_tools_that_the_environment_names_are_those_of_the_cells_only(tmp_path):
    tools = {name: "/bin/false" for name in ("RUSTC", "CARGO", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER")}
    with Kernel(cwd=tmp_path, env=dict(os.environ, **tools, RUSTUP_TOOLCHAIN="none")) as kernel:
        kernel.run("let precious = 4;")
        assert kernel.run("precious + 1").shown() == "5"
        assert kernel.run("!echo $RUSTC $RUSTUP_TOOLCHAIN $STRATOSCOPE_RUSTC").stream() == "/bin/false none\n"


def test_an_environment_without_variables(fresh_kernel):
    fresh_kernel.run("for (name, _) in std::env::vars_os() { unsafe { std::env::remove_var(name) } }")
    cell = fresh_kernel.execute("let x: i32 = \"no\".parse()?;")
    assert "EVCXR" not in cell.stream() + cell.stream("stderr"), cell.messages
    check_error(cell, "Error", "invalid digit", line=1)


def test_a_panic_hook_of_the_users_own(fresh_kernel):
    kernel = fresh_kernel
    kernel.run("std::panic::set_hook(Box::new(|_| println!(\"hooked\")));")
    for code in ("let n = 1;\npanic!(\"first {n}\")", "\n\nVec::<u8>::new()[2]"):
        cell = kernel.execute(code)
        check_error(cell, "panic", "first 1" if "first" in code else "index out of bounds", line=code.count("\n") + 1)
        assert cell.stream() == "hooked\n"
    # In the cell that sets it, too.
    cell = kernel.execute("let _ = std::panic::take_hook();\nstd::panic::set_hook(Box::new(|_| ()));\npanic!(\"third\")")
    check_error(cell, "panic", "third", line=3)


def test_only_the_parent_of_a_fork_answers(fresh_kernel):
    kernel = fresh_kernel
    kernel.run('let precious = 3;\nfn forked() -> i32 { unsafe extern "C" { fn fork() -> i32; } unsafe { fork() } }')
    assert kernel.run("let pid = forked();\npid > 0").shown() == "true"
    assert kernel.run("precious + 1").shown() == "4"
    # What a child fails with is not the cell's.
    assert kernel.run('let pid = forked();\nif pid == 0 { Err("of the child")?; }\npid > 0').shown() == "true"
    assert kernel.run('let pid = forked();\nif pid == 0 { panic!("of the child"); }\npid > 0').shown() == "true"
    assert kernel.run("precious + 2").shown() == "5"


def test_a_lock_of_standard_output_that_is_forgotten(fresh_kernel):
    kernel = fresh_kernel
    cell = kernel.run("std::mem::forget(std::io::stdout().lock());")
    assert "holds the lock of standard output" in cell.stream("stderr") + kernel.run("1").stream("stderr")
    cell = kernel.run('println!("a");\n1 + 1')
    assert (cell.stream(), cell.stream("stderr"), cell.shown()) == ("a\n", "", "2")


def test_escape_sequences_in_messages_are_written_out(kernel):
    for code, name in [('panic!("\\u{1b}[31mred")', "panic"), ('Err::<u8, _>("\\u{1b}[31mred")?', "Error")]:
        error = check_error(kernel.execute(code), name, "\\u{1b}[31mred")
        assert "\x1b[31m" not in "".join(error["traceback"])


@pytest.mark.parametrize("code", [
    "let x = f" + "()" * 4000 + ";",
    "let x = a" + "[0]" * 4000 + ";",
    "let x = " + "1 + " * 4000 + "1;",
    "x" + ".b[0]" * 4000,
])
def test_expressions_that_are_too_long_are_refused(kernel, code):
    check_error(kernel.execute(code, timeout=30), "NestedTooDeep", line=1)


def test_a_sum_of_many_terms(kernel):
    kernel.run("let term = 2;")
    assert kernel.run("let sum = " + "term + " * 60 + "term;\nsum").shown() == "122"


def test_two_kernels_that_start_at_the_same_time(tmp_path):
    found = {}

    def one(number):
        with Kernel(cwd=tmp_path) as kernel:
            kernel.run(f"let mine = {number};")
            found[number] = kernel.run("mine").shown()

    threads = [threading.Thread(target=one, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {1: "1", 2: "2"}


def test_damaged_cache_files(kernel):
    """cargo's answers and compiled cells are cached for the next kernel; damaged cache files are rebuilt."""
    snapshot = pathlib.Path(next(line.split(" ", 1)[1] for line in kernel.run("!echo library $STRATOSCOPE_LIBRARY")
                                 .stream().splitlines() if line.startswith("library"))).parent
    answers = sorted((snapshot / "cargo_cache").glob("*.json"))
    assert answers
    before = [file.read_bytes() for file in answers]
    try:
        for file in answers:
            file.write_text("{\"status\": 0, \"stdout\":")
        with Kernel() as other:
            other.run("let x = vec![1, 2];")
            assert other.run("x.len()").shown() == "2"
        # The entries of this kernel; others belong to other environments.
        assert [file for file in answers if not file.read_text().endswith("\"stdout\":")]
    finally:
        for file, content in zip(answers, before):
            file.write_bytes(content)
