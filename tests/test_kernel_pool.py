"""The kernel that files of tests use one after the other: each file finds it as after a start."""

import os
import signal

from conftest import Pool
from kernel_client import check_error


def test_a_file_finds_nothing_of_the_one_before(tmp_path):
    pool = Pool(tmp_path)
    first = pool.take()
    try:
        first.run('let left = 1;\nstruct Left;\nstd::fs::create_dir("folder")?;\nstd::fs::write("folder/file", "")?;')
        first.run("%env LEFT=1")
        first.run("%profile tf-2.3")
        first.run("%warnings silence SC0302")
        second = pool.take()
        assert second is first and not list(tmp_path.iterdir())
        check_error(second.execute("left"), "E0425")
        check_error(second.execute("let it: Left;"), "E0425")
        assert second.run('std::env::var("LEFT").is_ok()').shown() == "false"
        assert second.run("%profile").shown().startswith("no profile")
        assert "silenced" not in second.run("%warnings").shown()
        # One that has ended is replaced.
        os.kill(second.pid, signal.SIGKILL)
        second.manager.provisioner.process.wait(timeout=30)
        third = pool.take()
        assert third is not second and third.run("1 + 1").shown() == "2"
    finally:
        pool.end()
