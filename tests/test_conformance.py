"""Jupyter's own tests for kernels, with a sample for every one of them: none is skipped."""

from unittest import mock

import jupyter_kernel_test

from kernel_client import KERNEL_NAME


class TestKernel(jupyter_kernel_test.KernelTests):
    kernel_name = KERNEL_NAME
    language_name = "rust"
    file_extension = ".rs"

    code_hello_world = 'println!("hello, world");'
    code_stderr = 'eprintln!("to stderr");'
    completion_samples = [
        {"text": '"text".trim_start_mat', "matches": {"trim_start_matches"}},
        {"text": "compile!(model, steps_per_ex", "matches": {"steps_per_execution = "}},
    ]
    complete_code_samples = ["1 + 1", "let größe = 3;", "fn f() -> u8 {\n    3\n}", "", "%vars", "// only a comment"]
    incomplete_code_samples = ["fn f() {", "let text = \"begun", "compile!(model,", "vec![1, 2", "/* no end"]
    invalid_code_samples = ["let x = );", "fn f() }", "}"]
    code_page_something = "?String"
    code_generate_error = "let wrong: i32 = \"text\";"
    code_execute_result = [
        {"code": "6 * 7", "result": "42"},
        {"code": 'format!("größe {}", 1)', "result": '"größe 1"'},
        {"code": "Html(\"<b>bold</b>\")", "mime": "text/html", "result": "<b>bold</b>"},
    ]
    code_display_data = [
        {"code": 'display_html("<b>bold</b>");', "mime": "text/html"},
        {"code": 'display(&Markdown("# title"));', "mime": "text/markdown"},
        {"code": 'display(&Svg("<svg xmlns=\\"http://www.w3.org/2000/svg\\"/>"));', "mime": "image/svg+xml"},
    ]
    code_history_pattern = "6 ? 7"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "String"
    code_clear_output = "clear_output(false);"

    def test_kernel_info_announces_the_debugger(self):
        self.flush_channels()
        info = self.kc.kernel_info(reply=True, timeout=60)["content"]
        self.assertIs(info["debugger"], True)
        self.assertEqual(info["supported_features"], ["debugger"])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The suite gives every cell 15 s; the first one waits for the evaluator.
        cls.kc.execute_interactive("1", timeout=120)

    def execute_helper(self, *arguments, **options):
        """The suite gives each message 0.1 s after the reply, which a busy machine may need."""
        get = self.kc.iopub_channel.get_msg
        with mock.patch.object(self.kc.iopub_channel, "get_msg", lambda timeout: get(timeout=30)):
            return super().execute_helper(*arguments, **options)


class TestWelcome(jupyter_kernel_test.IopubWelcomeTests):
    kernel_name = KERNEL_NAME
    support_iopub_welcome = True


def test_no_sample_is_missing():
    """A test of the suite with an empty sample skips itself and looks as if it had passed."""
    samples = {name for name in vars(jupyter_kernel_test.KernelTests)
               if name.startswith("code_") or name.endswith(("_samples", "_operations", "_name", "_extension"))}
    empty = {name for name in samples if not getattr(TestKernel, name)}
    assert len(samples) == 17 and not empty, (samples, empty)
    tests = [name for suite in (jupyter_kernel_test.KernelTests, jupyter_kernel_test.IopubWelcomeTests)
             for name in vars(suite) if name.startswith("test_")]
    assert len(tests) == 13, tests
