"""Why a step goes wrong, in a network that is written in a cell, and steps that are over."""

from kernel_client import check_card, check_static_html

OWN = """use stratoscope::burn::{self, module::Module, nn::{Linear, LinearConfig}};
#[derive(Module, Debug)]
pub struct Shares { hidden: Linear }
impl Network for Shares {
    type Files = Outputs;
    fn logits(&self, batch: &Batch, _: Mode, device: &Device) -> Tensor<2> {
        let hidden = tap("hidden", self.hidden.forward(features(batch, device)));
        let size = operation!("size", [x = hidden.clone()], x.clamp_min(9.0) - 9.0);
        operation!("divide", [hidden, size], hidden / size)
    }
}"""
MODEL = """let data = make_classification(32, 4, 2, 0)?;
let own = Model::of(Shares { hidden: LinearConfig::new(4, 2).init(&Device::flex()) }, Outputs::new("Shares", 2))?;
compile!(own, optimizer = SGD::new(0.1), loss = SparseCategoricalCrossentropy { from_logits: true })?;
let run = start!(own, data, batch_size = 8)?;"""


def test_the_operation_of_a_network_in_a_cell_is_named(kernel):
    kernel.run(OWN)
    kernel.run(MODEL)
    cell = kernel.run("run.why()?")
    text = cell.shown()
    assert "`divide` in `Shares` is the first operation whose result is not finite" in text, text
    assert "a division by 0" in text and "example" in text, text
    check_static_html(cell.shown("text/html"))
    assert kernel.run("run.why()?.first.unwrap().operation").shown() == 'Some("divide")'


def test_steps_that_are_over_are_looked_at(kernel):
    kernel.run("""let data = make_classification(64, 4, 2, 0)?;
let seen = Sequential([Dense(8).activation("relu"), Dense(2)])?;
compile!(seen, optimizer = SGD::new(0.1), loss = SparseCategoricalCrossentropy { from_logits: true })?;
let past = start!(seen, data, epochs = 2, batch_size = 8)?;
past.step(6)?;""")
    cell = kernel.run("past.hindsight(2..6, |tap| tap.norm)?")
    text = cell.shown()
    assert "hindsight: steps 2 to 5" in text and "gradient dense.weight" in text and "output dense_1" in text, text
    html = cell.shown("text/html")
    check_static_html(html)
    assert "data:image/svg+xml" in html
    shown = kernel.run('past.hindsight(2..=3, |tap| tap.name.starts_with("dense_1").then(|| tap.max))?.names()').shown()
    assert "dense_1" in shown and '"dense.' not in shown, shown
    cell = kernel.execute("past.hindsight(40..50, |tap| tap.norm)?")
    check_card(cell, "SC0531", "steps 1 to 7 can")
    assert "next: step 7 of 16" in kernel.run("past").shown()
