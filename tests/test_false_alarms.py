"""Valid cells of many shapes, run one after the other in one kernel: none shows a warning or an error of ours."""

import pytest

from kernel_client import DIAGNOSTIC, Kernel, without_ansi

LOGITS = "loss = SparseCategoricalCrossentropy { from_logits: true }"
DATA = "let data = make_classification(192, 8, 4, 0)?;\nlet two = make_classification(192, 8, 2, 0)?;"
MODEL = 'let model = Sequential([Dense(16).activation("relu"), Dense(4)])?;'
COMPILE = f"compile!(model, optimizer = Adam::new(0.01), {LOGITS}, metrics = [accuracy()])?;"

OWN = """use stratoscope::burn::{self, module::Module, nn::{Linear, LinearConfig}, tensor::activation::relu};
#[derive(Module, Debug)]
pub struct Own { hidden: Option<Linear>, last: Option<Linear> }
impl Network for Own {
    type Files = Outputs;
    fn is_built(&self) -> bool { self.hidden.is_some() }
    fn build(mut self, width: usize, device: &Device) -> Self {
        self.hidden = Some(LinearConfig::new(width, 16).init(device));
        self.last = Some(LinearConfig::new(16, 4).init(device));
        self
    }
    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let (hidden, last) = self.hidden.as_ref().zip(self.last.as_ref()).expect("it is built");
        last.forward(relu(hidden.forward(features(batch, device))))
    }
}
let own = Model::of(Own { hidden: None, last: None }, Outputs::new("Own", 4))?;
compile!(own, optimizer = Adam::new(0.01), loss = SparseCategoricalCrossentropy { from_logits: true })?;
fit!(own, data, epochs = 3, batch_size = 32)?;"""

CELLS = {
    "a sigmoid and probabilities": """let yes = Sequential([Dense(16).activation("relu"), Dense(1).activation("sigmoid")])?;
compile!(yes, optimizer = Adam::new(0.01), loss = BinaryCrossentropy { from_logits: false }, metrics = [accuracy()])?;
fit!(yes, two, epochs = 4, batch_size = 32)?;""",
    "one logit": """let yes = Sequential([Dense(16).activation("relu"), Dense(1)])?;
compile!(yes, optimizer = Adam::new(0.01), loss = BinaryCrossentropy { from_logits: true }, metrics = [accuracy(), f1()])?;
fit!(yes, two, epochs = 4, batch_size = 32)?;""",
    "a softmax and probabilities": """let soft = Sequential([Dense(16).activation("relu"), Dense(4).activation("softmax"), Dropout(0.1)])?;
compile!(soft, optimizer = Adam::new(0.01), loss = SparseCategoricalCrossentropy { from_logits: false })?;
fit!(soft, data, epochs = 4, batch_size = 32)?;""",
    "a regression": """let prices = make_regression(128, 5, 0)?;
let line = Sequential([Dense(8).activation("tanh"), Dense(1)])?;
compile!(line, optimizer = SGD::new(0.01).momentum(0.9), loss = MeanSquaredError, metrics = [pearson()])?;
fit!(line, prices, epochs = 3, validation_split = 0.25)?;""",
    "a macro of one's own": """macro_rules! train {
    ($model:expr, $data:expr, $($rest:tt)*) => {{
        compile!($model, optimizer = Adam::new(0.01), loss = SparseCategoricalCrossentropy { from_logits: true })?;
        fit!($model, $data, $($rest)*)?
    }};
}
let model = Sequential([Dense(16).activation("relu"), Dense(4)])?;
let history = train!(model, data, epochs = 3, batch_size = 32);
assert_eq!(history.epochs.len(), 3);""",
    "a model in a struct": f"""struct Trainer {{ model: Sequential, data: Dataset }}
impl Trainer {{
    fn run(&self, epochs: usize) -> stratoscope::diagnostics::Result<History> {{
        compile!(self.model, optimizer = Adam::new(0.01), {LOGITS})?;
        fit!(self.model, self.data, epochs = epochs, batch_size = 32)
    }}
}}
{MODEL}
let trainer = Trainer {{ model, data: data.clone() }};
trainer.run(3)?;""",
    "a closure": f"""{MODEL}
let losses = {{
    let run = |rate: f64| -> stratoscope::diagnostics::Result<History> {{
        compile!(model, optimizer = Adam::new(rate), {LOGITS})?;
        fit!(model, data, epochs = 3, batch_size = 32, verbose = false)
    }};
    [run(0.01)?, run(0.003)?].map(|history| history.epochs[2].loss)
}};""",
    "a loop": f"""for seed in 0..3 {{
    let model = Sequential([Dense(16).activation("relu").seed(seed), Dense(4)])?;
    {COMPILE}
    fit!(model, data, epochs = 3, batch_size = 32, seed = seed, verbose = false)?;
}}""",
    "a function of a model": f"""fn trained(model: &Model, data: &Dataset) -> stratoscope::diagnostics::Result<f64> {{
    compile!(model, optimizer = Adam::new(0.01), {LOGITS})?;
    Ok(fit!(model, data, epochs = 3, batch_size = 32)?.epochs[2].loss)
}}
{MODEL}
assert!(trained(&model, &data)? < 3.0);""",
    "a network of one's own": OWN,
    "two replicas": f"""let mirrored = MirroredStrategy::logical(2)?;
scope!(mirrored, {{
    {MODEL}
    compile!(model, optimizer = Adam::new(0.01), {LOGITS}, steps_per_execution = 2, gradient_accumulation_steps = 2)?;
}});
fit!(model, data, epochs = 3, batch_size = 32)?;
drop(mirrored);""",
    "local SGD": f"""let mirrored = MirroredStrategy::logical(2)?;
scope!(mirrored, {{
    {MODEL}
    compile!(model, optimizer = SGD::new(0.1), {LOGITS}, sync_every = 3)?;
    fit!(model, data, epochs = 3, batch_size = 32)?;
}});
drop(mirrored);""",
    "a strategy without copies": f"""let central = CentralStorageStrategy::logical(2)?;
scope!(central, {{
    {MODEL}
    {COMPILE}
}});
fit!(model, data, epochs = 3, batch_size = 32)?;
drop(central);""",
    "on one device although a strategy lives": f"""let mirrored = MirroredStrategy::logical(2)?;
{MODEL}
compile!(model, optimizer = Adam::new(0.01), {LOGITS}, strategy = none)?;
fit!(model, data, epochs = 3, batch_size = 32)?;
drop(mirrored);""",
    "callbacks": f"""{MODEL}
{COMPILE}
fit!(model, data, epochs = 3, batch_size = 32, callbacks = [
    on_epoch_end(|epoch| println!("{{}}", epoch.loss)),
    LearningRateLogger::new(),
])?;""",
    "a validation, weights, a seed": f"""let (train, dev) = data.shuffled(1).split(0.75)?;
{MODEL}
compile!(model, optimizer = Adam::new(0.01), {LOGITS}, metrics = [accuracy(), macro_f1()])?;
let history = fit!(model, train, epochs = 4, batch_size = 16, validation_data = dev, class_weight = [1.0, 2.0, 1.0, 1.0], seed = 3)?;
let measured = evaluate!(model, dev)?;""",
    "predictions in a loop": f"""{MODEL}
{COMPILE}
fit!(model, data, epochs = 3, batch_size = 32)?;
for start in [0, 8] {{
    assert_eq!(model.predict(data.skip(start).take(8))?.len(), 8);
}}""",
    "two runs": f"""{MODEL}
{COMPILE}
fit!(model, data, epochs = 2, batch_size = 32)?;
fit!(model, data, epochs = 4, initial_epoch = 2, batch_size = 32)?;""",
    "a schedule that spans the run": f"""{MODEL}
compile!(model, optimizer = AdamW::new(warmup_linear(0.01, 0.1)).global_clipnorm(1.0), {LOGITS})?;
fit!(model, data, epochs = 3, batch_size = 32)?;""",
    "texts for names": f"""{MODEL}
compile!(model, optimizer = "adam", loss = "sparse_categorical_crossentropy", metrics = ["accuracy"])?;
fit!(model, data, epochs = 3, batch_size = 16)?;""",
    "a thread": f"""{MODEL}
let (handle, copy) = (model.clone(), data.clone());
let work = std::thread::spawn(move || -> stratoscope::diagnostics::Result<f64> {{
    compile!(handle, optimizer = Adam::new(0.01), {LOGITS})?;
    Ok(fit!(handle, copy, epochs = 3, batch_size = 32, verbose = false)?.epochs[2].loss)
}});
let loss = work.join().expect("no panic")?;""",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    with Kernel(cwd=tmp_path_factory.mktemp("valid")) as kernel:
        kernel.run(DATA)
        yield kernel


@pytest.mark.sampled
@pytest.mark.parametrize("name", CELLS)
def test_a_valid_cell_shows_nothing(notebook, name):
    ran = notebook.execute(CELLS[name])
    said = "\n".join(without_ansi("\n".join(error["traceback"])) for error in ran.errors)
    assert not ran.errors, f"{CELLS[name]}\n---\n{said}"
    cards = [bundle["text/plain"] for bundle in ran.diagnostics]
    assert not cards, f"{CELLS[name]}\n---\n" + "\n".join(cards)
    assert DIAGNOSTIC not in ran.shown("text/plain")


def test_types_of_earlier_cells_may_have_the_names_of_ours(notebook):
    """Of a name that a cell defines the checks know nothing in later cells either."""
    notebook.run("struct SGD { steps: usize }\nimpl SGD { fn new(steps: usize) -> Self { SGD { steps } } }")
    notebook.run("enum Animal { Lion(String), Ox }")
    ran = notebook.execute("""let steps = SGD::new(1).steps;
let name = match Animal::Lion("a".to_owned()) {
    Animal::Lion(name) => name,
    Animal::Ox => String::new(),
};
assert_eq!((steps, name.as_str()), (1, "a"));""")
    assert not ran.errors, ran.errors
    # As at the start of a notebook, the name is ours again.
    notebook.run("%reset")
    assert notebook.execute("let optimizer = SGD::new(1);").errors[0]["ename"] == "SC0103"
