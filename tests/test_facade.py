"""Cells share one copy of every static, so that an object of one cell works in the next."""


def test_a_tensor_is_used_in_the_next_cell(kernel):
    kernel.run("let device = Device::flex();\nlet ones = Tensor::<2>::ones([2, 3], &device);")
    kernel.run("let sum: f32 = (ones.clone() + ones.clone()).sum().into_scalar();")
    assert kernel.run("sum").shown() == "12.0"
    kernel.run("let twos = Tensor::<2>::ones([2, 3], &device) * 2.0;")
    assert kernel.run("(twos - ones).sum().into_scalar::<f32>()").shown() == "6.0"


def test_a_gradient_made_in_one_cell_is_read_in_the_next(kernel):
    kernel.run("let differentiable = Device::flex().autodiff();\n"
               "let x = Tensor::<1>::from_floats([1.0, 2.0, 3.0], &differentiable).require_grad();")
    kernel.run("let gradients = x.clone().powi_scalar(2).sum().backward();")
    shown = kernel.run("x.grad(&gradients).map(|gradient| gradient.into_data().to_vec::<f32>())").shown()
    assert "[2.0, 4.0, 6.0]" in shown


def test_a_strategy_is_live_in_the_next_cell(kernel):
    kernel.run("let strategy = MirroredStrategy::logical(2)?;")
    assert kernel.run("stratoscope::strategy::scope::live_strategies().len()").shown() == "1"
    kernel.run("drop(strategy);")
    assert kernel.run("stratoscope::strategy::scope::live_strategies().len()").shown() == "0"


def test_a_static_of_a_crate_below_the_facade_is_one(kernel):
    # burn uses the crate `log`: a logger set in one cell receives the records of the next.
    kernel.run(
        """
use std::sync::Mutex;
pub struct Collecting(Mutex<Vec<String>>);
impl stratoscope::log::Log for Collecting {
    fn enabled(&self, _: &stratoscope::log::Metadata) -> bool { true }
    fn log(&self, record: &stratoscope::log::Record) { self.0.lock().unwrap().push(record.args().to_string()); }
    fn flush(&self) {}
}
let collected: &'static Collecting = Box::leak(Box::new(Collecting(Mutex::new(Vec::new()))));
stratoscope::log::set_logger(collected).map_err(|error| error.to_string())?;
stratoscope::log::set_max_level(stratoscope::log::LevelFilter::Info);
"""
    )
    kernel.run('stratoscope::log::info!("heard in another cell");')
    assert "heard in another cell" in kernel.run("collected.0.lock().unwrap().clone()").shown()


def test_functions_types_and_constants_stay(kernel):
    kernel.run("const LIMIT: usize = 3;\n#[derive(Debug, Clone)]\npub struct Pair { pub left: i32, pub right: i32 }\n"
               "pub fn swap(pair: Pair) -> Pair { Pair { left: pair.right, right: pair.left } }")
    assert "left: 2, right: 1" in kernel.run("swap(Pair { left: 1, right: 2 })").shown()
    assert kernel.run("LIMIT + 1").shown() == "4"
