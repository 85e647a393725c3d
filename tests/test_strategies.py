"""Every strategy through the real kernel: the same data and the same network under each of them, local SGD, and
values with a copy per replica."""

import pytest

from kernel_client import check_error

MODEL = 'let model = Sequential([Dense(4).activation("relu").input_shape((3,)), Dense(1)])?;'
COMPILE = 'compile!(model, optimizer = "sgd", loss = "mse"{more})?;'
FIT = "let history = fit!(model, data, epochs = 2, batch_size = 4, seed = 1, verbose = false)?;"


@pytest.fixture(scope="module")
def notebook(kernel):
    """A kernel with 16 examples: 4 batches an epoch."""
    kernel.run("let data = make_regression(16, 3, 3)?;")
    return kernel


def trained(notebook, strategy, more=""):
    """The counters after two epochs under a strategy, as shown."""
    inside = "\n".join((MODEL, COMPILE.format(more=more)))
    cell = f"let strategy = {strategy};\nscope!(strategy, {{\n{inside}\n}});\n{FIT}"
    notebook.run(cell)
    equal = notebook.run("let equal = model.placement()?.copies_are_equal();\nequal").shown()
    assert equal.endswith("true")
    return notebook.run("history.counters.to_string()").shown().strip('"')


RUNS = {
    "OneDeviceStrategy::new(cpu(0))?": "8 optimizer steps, 0 all-reduces",
    "MirroredStrategy::logical(4)?": "8 optimizer steps, 8 all-reduces",
    "MirroredStrategy::logical(3)?.cross_device_ops(CrossDeviceOps::Tree)": "8 optimizer steps, 8 all-reduces",
    "CentralStorageStrategy::logical(2)?": "8 optimizer steps, 8 all-reduces",
    "ParameterServerStrategy::logical(2, 2)?.synchronous()": "8 optimizer steps, 8 all-reduces",
    "ParameterServerStrategy::logical(2, 1)?": "16 optimizer steps, 16 pushes, 0.9 updates stale on average",
    "TpuStrategy::simulated()?": "8 optimizer steps, 8 all-reduces",
}


@pytest.mark.parametrize("strategy", RUNS)
def test_a_strategy_trains(notebook, strategy):
    assert trained(notebook, strategy) == f"8 executions, {RUNS[strategy]}"


def test_local_sgd_counts_parameter_averages(notebook):
    strategy = "MirroredStrategy::logical(2)?"
    found = trained(notebook, strategy, ", sync_every = 3, steps_per_execution = 2")
    assert found == "4 executions, 8 optimizer steps, 3 parameter averages"


def test_local_sgd_needs_copies(notebook):
    inside = "\n".join((MODEL, COMPILE.format(more=", sync_every = 4")))
    notebook.run("let central = CentralStorageStrategy::logical(2)?;")
    cell = notebook.execute(f"scope!(central, {{\n{inside}\n}});")
    check_error(cell, "SC0103", "`sync_every = 4`", "keeps one copy of each variable", line=3)


def test_a_value_persists_and_shows_its_copies(notebook):
    notebook.run(
        "let servers = ParameterServerStrategy::logical(2, 2)?.variable_partitioner(Partitioner::FixedShards(2))?;\n"
        'let table = servers.variable("table", [0.0, 1.0, 2.0, 3.0], Synchronization::Auto, Aggregation::Mean)?;'
    )
    notebook.run("table.replica_update(|replica| [replica.0 as f32; 4])?;")
    assert notebook.run("table.read()?").shown() == "[0.5, 1.5, 2.5, 3.5]"
    shown = notebook.run('println!("{table}");').stream()
    assert "Sharded `table`: " in shown
    assert "ps:1 (logical) rows 2–3: [2.5, 3.5]" in shown


def test_simulated_devices_are_marked(notebook):
    shown = notebook.run("let tpu = TpuStrategy::simulated()?;\ntpu.to_string()").shown()
    assert "8 simulated TPU cores, computed by the CPU" in shown


def test_servers_shard_variables_by_rows(notebook):
    """The report shows which rows are where, before and after training; the numbers are those without a partitioner."""
    model = 'let model = Sequential([Dense(8).activation("relu").input_shape((3,)).seed(1), Dense(1).seed(2)])?;'
    compiled = 'compile!(model, optimizer = Adam::new(0.01), loss = "mse")?;'

    def run(strategy):
        inside = "\n".join((model, compiled))
        notebook.run(f"let strategy = {strategy};\nscope!(strategy, {{\n{inside}\n}});\n{FIT}")
        return notebook.run("history.epochs.iter().map(|it| it.loss.to_bits()).collect::<Vec<_>>()").shown()

    whole = run("ParameterServerStrategy::logical(2, 2)?")
    cut = "ParameterServerStrategy::logical(2, 2)?.variable_partitioner(Partitioner::FixedShards(2))?"
    assert run(cut) == whole
    text = notebook.run("println!(\"{}\", model.placement()?.to_plain());").stream()
    assert "4 variables, 2 of them split by rows over servers" in text
    row = next(line for line in text.splitlines() if "8 × 3" in line)
    assert "Sharded" in row and "rows 0–3" in row and "rows 4–7" in row
    assert "Partitioner::FixedShards(2)" in text
    assert "rows 0–3" in notebook.run("placement(&model);").shown("text/html")


def test_a_partitioner_without_shards_is_refused(notebook):
    cell = notebook.execute(
        "let none = ParameterServerStrategy::logical(2, 2)?.variable_partitioner(Partitioner::FixedShards(0))?;"
    )
    check_error(cell, "SC0915", "the number of shards is 0, but must be at least 1")


def test_metrics_are_kept_by_replica(notebook):
    inside = "\n".join((MODEL, 'compile!(model, optimizer = "sgd", loss = "mse", metrics = ["pearson"])?;'))
    notebook.run(f"let strategy = MirroredStrategy::logical(2)?;\nscope!(strategy, {{\n{inside}\n}});\n{FIT}")
    text = notebook.run("println!(\"{}\", model.placement()?.to_plain());").stream()
    assert "4 variables, equal on all 2 replicas" in text
    row = next(line for line in text.splitlines() if line.startswith("metrics.pairs"))
    assert "OnRead" in row and "8 × 2" in row
    assert "OnRead (1): " in text
