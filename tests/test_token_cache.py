"""Tokens of large data sets are kept on disk: the table of `fit!` says whether they were made, read, or cannot be kept,
and the run is the same in each case."""

import os

import pytest

from kernel_client import Kernel, history_column

DATA = """fn report(row: usize) -> String {
    format!("the report of day {row} says that mail number {} came to server {} in time", row * 7, row % 13)
}
let long = Dataset::from_rows((0..20_000).map(report), (0..20_000).map(|row| ["a", "b"][row % 2]))?;"""


def trained(kernel, tiny):
    """The table of a run, and its losses."""
    kernel.run(f"""let model = BertForSequenceClassification::from_pretrained("{tiny}", 2)?;
    compile!(model, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }})?;""")
    fit = "fit!(model, long, batch_size = 4, max_length = 16, steps_per_epoch = 3, seed = 3)?"
    cell = kernel.run(f"let history = {fit};\nhistory")
    plain = [bundle["text/plain"] for bundle in cell.bundles]
    table = [text for text in plain if "learning rate" in text][-1]
    return " ".join(table.split()), history_column(plain[-1], "loss")


@pytest.mark.sampled
def test_the_table_says_where_the_tokens_come_from(tiny, tmp_path):
    folder = tmp_path / "tokens"
    with Kernel(env={**os.environ, "STRATOSCOPE_TOKEN_CACHE": str(folder)}) as kernel:
        kernel.run(DATA)
        made, losses = trained(kernel, tiny)
        assert "tokens of 20 000 texts kept for the next time" in made, made
        [file] = folder.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
        read, again = trained(kernel, tiny)
        assert "tokens of 20 000 texts read from the cache" in read, read
        assert again == losses
        kernel.run('unsafe { std::env::set_var("STRATOSCOPE_TOKEN_CACHE", "/proc/tokens") };')
        refused, again = trained(kernel, tiny)
        assert "tokens are not kept in `/proc/tokens`" in refused and "the run is not affected" in refused, refused
        assert again == losses
        kernel.run('unsafe { std::env::set_var("STRATOSCOPE_TOKEN_CACHE", "off") };')
        off, again = trained(kernel, tiny)
        assert "tokens" not in off.split("learning rate")[1] and again == losses
