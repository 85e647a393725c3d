"""Replicas of several devices in a notebook: a model in slices, or in rows of stages, trains and shows where each part is, and what
does not fit gets a card."""

from kernel_client import check_error, check_static_html

PLACEMENT = "application/vnd.stratoscope.placement+json"


def build(tiny, scope, name):
    return f"""scope!({scope}, {{
    let {name} = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
    compile!({name}, optimizer = AdamW::new(1e-3), loss = SparseCategoricalCrossentropy {{ from_logits: true }})?;
}});"""


def test_a_model_in_slices_trains_and_is_shown(kernel, tiny):
    kernel.run("let (train, dev) = debian_sections()?;\nlet train = train.take(16);")
    kernel.run("let parallel = ModelParallel::logical(2)?;")
    kernel.run(build(tiny, "parallel", "sliced"))
    kernel.run("let history = fit!(sliced, train, epochs = 1, batch_size = 8, max_length = 16, seed = 3)?;")
    alone = build(tiny, "alone", "whole")
    kernel.run(f"let alone = OneDeviceStrategy::new(cpu(0))?;\n{alone}")
    kernel.run("let other = fit!(whole, train, epochs = 1, batch_size = 8, max_length = 16, seed = 3)?;")
    ran = kernel.run("""let (a, b) = (history.epochs[0].loss, other.epochs[0].loss);
println!("{}", (a - b).abs() <= 1e-5 * b);""")
    assert ran.stream().strip() == "true", ran.stream()
    (bundle,) = [it for it in kernel.run("placement(&sliced);").bundles if PLACEMENT in it]
    check_static_html(bundle["text/html"])
    plain = bundle["text/plain"]
    assert "in slices on 2 devices" in plain and "slice 1" in bundle["text/html"], plain
    rows = {row["name"]: row for row in bundle[PLACEMENT]["variables"]}
    query = next(row for name, row in rows.items() if name.endswith("0.attention.self.query.weight"))
    narrow = next(row for name, row in rows.items() if name.endswith("0.attention.output.dense.weight"))
    half = query["shape"][0] // 2
    assert query["rows"] == [[0, half], [half, 2 * half]] and "axis" not in query
    assert narrow["rows"] == [[0, half], [half, 2 * half]] and narrow["axis"] == 1
    explained = kernel.run("parallel.explain()").shown()
    assert "attention heads" in explained, explained
    assert all(len(line) <= 100 for line in explained.splitlines()), explained


def test_the_rows_of_a_mesh_are_replicas(kernel, tiny):
    kernel.run("""let train = debian_sections()?.0.take(16);
let mesh = DeviceMesh::logical([2, 2], ["batch", "model"])?;
let rows = ModelParallel::over(&mesh)?;
let copies = MirroredStrategy::logical(2)?;""")
    kernel.run(build(tiny, "rows", "meshed"))
    kernel.run(build(tiny, "copies", "mirrored"))
    for history, name in [("of_mesh", "meshed"), ("of_copies", "mirrored")]:
        kernel.run(f"let {history} = fit!({name}, train, epochs = 1, batch_size = 8, max_length = 16, seed = 3)?;")
    ran = kernel.run("""let (a, b) = (of_mesh.epochs[0].loss, of_copies.epochs[0].loss);
println!("{}", (a - b).abs() <= 1e-6 * b);""")
    assert ran.stream().strip() == "true", ran.stream()
    (bundle,) = [it for it in kernel.run("placement(&meshed);").bundles if PLACEMENT in it]
    check_static_html(bundle["text/html"])
    plain = bundle["text/plain"]
    assert "in slices on 2 devices of each" in " ".join(plain.split()), plain
    assert "replica 1, slice 1" in bundle["text/html"]
    rows = {row["name"]: row for row in bundle[PLACEMENT]["variables"]}
    query = next(row for name, row in rows.items() if name.endswith("0.attention.self.query.weight"))
    half = query["shape"][0] // 2
    assert query["rows"] == [[0, half], [half, 2 * half]] * 2
    explained = kernel.run("rows.explain()").shown()
    assert "all-reduce" in explained and "gradients sent by a replica" in explained, explained
    assert all(len(line) <= 100 for line in explained.splitlines()), explained


def test_the_rows_of_a_mesh_are_pipelines(kernel, tiny):
    kernel.run("""let train = debian_sections()?.0.take(16);
let places = DeviceMesh::logical([2, 2], ["batch", "stage"])?;
let lines = PipelineStrategy::over(&places)?.micro_batches(2)?;
let copies = MirroredStrategy::logical(2)?;""")
    kernel.run(build(tiny, "lines", "lined"))
    kernel.run(build(tiny, "copies", "mirrored").replace("compile!(mirrored", "compile!(mirrored, gradient_accumulation_steps = 2"))
    kernel.run("let of_lines = fit!(lined, train, epochs = 1, batch_size = 8, max_length = 16, seed = 3)?;")
    kernel.run("let of_copies = fit!(mirrored, train, epochs = 1, batch_size = 4, max_length = 16, seed = 3)?;")
    ran = kernel.run("println!(\"{}\", of_lines.epochs[0].loss == of_copies.epochs[0].loss);")
    assert ran.stream().strip() == "true", ran.stream()
    shown = kernel.run("lined.pipeline()?").shown()
    assert "replica 1, stage 1" in shown, shown
    (bundle,) = [it for it in kernel.run("placement(&lined);").bundles if PLACEMENT in it]
    check_static_html(bundle["text/html"])
    assert "replica 1, stage 1" in bundle["text/html"]
    ran = kernel.execute("let odd = fit!(lined, train, epochs = 1, batch_size = 6)?;")
    check_error(ran, "SC0622")


def test_what_does_not_fit_gets_a_card(kernel, tiny):
    kernel.run("let three = ModelParallel::logical(3)?;")
    ran = kernel.execute(build(tiny, "three", "cut"))
    check_error(ran, "SC0625")
    ran = kernel.execute("""let mesh = DeviceMesh::logical([2, 2, 2], ["batch", "text", "model"])?;
let refused = ModelParallel::over(&mesh)?;""")
    check_error(ran, "SC0627", line=2)
