"""Cells that wait for futures."""

import pytest

from kernel_client import Kernel, without_ansi

JOBS = """async fn job(number: i32) -> Result<i32, String> {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    if number < 2 { Ok(10 * number) } else { Err("no such job".into()) }
}"""


def error_text(cell):
    return without_ansi("\n".join(cell.errors[0]["traceback"]))


@pytest.fixture(scope="module")
def kernel():
    with Kernel() as kernel:
        features = '"rt-multi-thread", "time", "macros", "sync"'
        cell = kernel.execute(f'%dep tokio = {{ version = "1", features = [{features}] }}', timeout=600)
        message = without_ansi(str(cell.errors))
        if cell.errors and ("download" in message or "network" in message or "resolve host" in message):
            pytest.skip("tokio is not in cargo's cache, and there is no network")
        cell.ok()
        kernel.execute(JOBS).ok()
        yield kernel


def test_every_cell_can_start_tasks(kernel):
    for _ in range(3):
        code = "let handle = tokio::spawn(job(1)); handle.await??"
        assert kernel.execute(code, timeout=300).ok().shown() == "10"
    # A task outlives its cell, and another cell can wait for it.
    kernel.run("let (ask, asked) = tokio::sync::oneshot::channel::<i32>();\n"
               "let later = tokio::spawn(async move {\n"
               "    let number = asked.await.unwrap_or(0);\n    job(1).await.map(|it| it + number)\n});\n"
               "tokio::task::yield_now().await;")
    kernel.run("ask.send(5).ok();")
    assert kernel.run("later.await??").shown() == "15"


def test_a_failing_await_keeps_what_was_bound_before(kernel):
    kernel.run("let mut old = vec![1];")
    for _ in range(2):
        cell = kernel.execute("old.push(2);\nlet mut sum = 1;\nlet text = String::from(\"kept\");\n"
                              "for number in 0..5 { sum += job(number).await?; }\nlet never = 1;")
        assert cell.errors[0]["evalue"] == "no such job"
        text = " ".join(error_text(cell).split())
        assert "kept: `old`, `sum` and `text`; lost: `never` (" in text, text
        assert "lost: `never` (" in text, text
    assert kernel.run("(old, sum, text)").shown() == '([1, 2, 2], 11, "kept")'


def test_a_panic_behind_an_await_keeps_what_was_bound_before(kernel):
    cell = kernel.execute("let number = job(1).await?;\nlet list = vec![number];\n"
                          "job(0).await?;\npanic!(\"on purpose\");")
    assert cell.errors[0]["ename"] == "panic"
    assert kernel.run("(number, list)").shown() == "(10, [10])"
