//! Rows of several sequences travel to worker processes.

use super::{Left, fit_args, left, logical, workers};
use crate::multiple_choice::{chooser, prompts};
use crate::support::{plain_args, recipe, tiny_bert};
use stratoscope_strategy::{AsStrategy, Strategy, scope};

fn trained(strategy: &Strategy) -> Left {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let model = chooser(&tiny_bert(0.1), 3);
    let args = plain_args().optimizer(recipe());
    model.compile(args).expect("valid arguments");
    let (train, dev) = (prompts(13), prompts(7));
    let history = model.fit(&train, fit_args(&dev)).expect("it trains");
    left(&model, &history)
}

#[test]
fn two_workers_choose_with_the_bits_of_two_logical_devices() {
    let expected = trained(&logical(2).strategy());
    assert_eq!(trained(&workers(2).strategy()), expected);
}
