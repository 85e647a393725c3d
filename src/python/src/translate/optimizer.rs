//! Optimizers and schedules.

use stratoscope_diagnostics::CellSpan;
use stratoscope_diagnostics::arguments;
use stratoscope_diagnostics::arguments::IdentifierKind;
use stratoscope_diagnostics::check::suggest;

use super::arguments::without_effect;
use super::number::Type;
use super::thing::Thing;
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};
use crate::rules;

/// Keras's default rates.
fn usual_rate(name: &str) -> &'static str {
    match name {
        "SGD" => "0.01",
        "Lion" => "1e-4",
        _ => "1e-3",
    }
}

/// The arguments that an optimizer of Keras, of Hugging Face or of TensorFlow Addons has by their places; `None` for one that is
/// not here.
fn order(name: &str, is_addon: bool) -> Option<&'static [&'static str]> {
    const RATE: &str = "learning_rate";
    Some(match name {
        "AdamW" if is_addon => &[
            "weight_decay",
            RATE,
            "beta_1",
            "beta_2",
            "epsilon",
            "amsgrad",
        ],
        "AdamW" => &[
            RATE,
            "weight_decay",
            "beta_1",
            "beta_2",
            "epsilon",
            "amsgrad",
        ],
        "AdamWeightDecay" => &[
            RATE,
            "beta_1",
            "beta_2",
            "epsilon",
            "amsgrad",
            "weight_decay_rate",
            "include_in_weight_decay",
            "exclude_from_weight_decay",
        ],
        "Adam" => &[RATE, "beta_1", "beta_2", "epsilon", "amsgrad"],
        "SGD" => &[RATE, "momentum", "nesterov"],
        "RMSprop" => &[RATE, "rho", "momentum", "epsilon", "centered"],
        "Lion" => &[RATE, "beta_1", "beta_2", "weight_decay"],
        "Lamb" => &[RATE, "beta_1", "beta_2", "epsilon", "weight_decay"],
        "Adafactor" => &[
            RATE,
            "beta_2_decay",
            "epsilon_1",
            "epsilon_2",
            "clip_threshold",
            "relative_step",
            "weight_decay",
        ],
        _ => return None,
    })
}

/// The optimizers that exist, in words: `AdamW, Adam and SGD`.
fn known_optimizers() -> String {
    let names: Vec<&str> = arguments::OPTIMIZERS.iter().map(|it| it.name).collect();
    match names.split_last() {
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Translator<'_> {
    /// What stands for the argument `optimizer`: a name, a text or a call.
    pub(crate) fn optimizer(&mut self, value: &Value) -> Result<String, Why> {
        if let Some(text) = value.text() {
            let known = arguments::OPTIMIZERS
                .iter()
                .find(|it| it.name.eq_ignore_ascii_case(text));
            let Some(known) = known else {
                self.unknown(IdentifierKind::Optimizer, text, value.span);
                return Err(format!(
                    "there is no optimizer `{text}` here; there are {}",
                    known_optimizers()
                ));
            };
            let mut written = format!("{}::new({})", known.name, usual_rate(known.name));
            self.defaults(known.name, value.span, &mut written);
            return Ok(written);
        }
        if let Some(name) = value.name() {
            let rust = self.value(value)?;
            self.free_optimizer(name)?;
            return Ok(match self.is_moved_again(name) {
                true => format!("{rust}.clone()"),
                false => rust,
            });
        }
        match self.names.called(value).zip(value.call()) {
            Some((full, call)) => self.optimizer_call(&full, call),
            None => Err("the optimizer is not written as a name, a text or a call".to_owned()),
        }
    }

    fn free_optimizer(&mut self, name: &str) -> Result<(), Why> {
        match self.things.get(name) {
            Some(Thing::Optimizer) => Ok(()),
            Some(other) => Err(format!("`{name}` is {}, no optimizer", other.word())),
            None => self.free(name, "an optimizer, such as `AdamW::new(5e-5)`"),
        }
    }

    /// `tf.keras.optimizers.Adam(…)`.
    pub(crate) fn optimizer_call(&mut self, full: &str, call: &Call) -> Result<String, Why> {
        let given = full.rsplit('.').next().unwrap_or_default();
        if given == "LossScaleOptimizer" {
            let inner = call
                .argument("optimizer", 0)
                .or(call.argument("inner_optimizer", 0));
            let inner = inner.ok_or("it has no optimizer inside")?;
            self.note(
                call.span,
                "under `mixed_float16` the loss is always scaled: no optimizer is wrapped",
            );
            return self.optimizer(inner);
        }
        call.see_all();
        let is_addon = self.names.is_addon(&call.function);
        let decays = call
            .keyword("weight_decay")
            .is_some_and(|it| it.value.kind != Kind::None);
        let name = match given {
            "Adam" if decays => "AdamW",
            "AdamWeightDecay" => "AdamW",
            name => name,
        };
        let Some((order, known)) = order(given, is_addon).zip(arguments::optimizer(name)) else {
            return Err(format!(
                "there is no optimizer `{given}` here; there are {}",
                known_optimizers()
            ));
        };
        let mut call = call
            .named(order)
            .ok_or("the arguments of the optimizer are not all named")?;
        let rate = call.keyword("learning_rate").or(call.keyword("lr"));
        let rate = match rate {
            Some(rate) => self.rate(&rate.value)?,
            None => usual_rate(name).to_owned(),
        };
        let mut written = format!("{name}::new({rate})");
        if is_addon && given == "AdamW" {
            written += &self.decay_of_addons(&mut call, &rate)?;
        }
        self.optimizer_keywords(given, known, &call, &mut written)?;
        if given == "Adam" && decays {
            self.note(
                call.span,
                "Keras's `Adam` with `weight_decay` is `AdamW` that decays all weights",
            );
        }
        self.defaults(given, call.span, &mut written);
        Ok(written)
    }

    /// TensorFlow Addons subtracts this share of a weight in every step, whatever the rate; here it is the rate times
    /// `weight_decay`.
    fn decay_of_addons(&mut self, call: &mut Call, rate: &str) -> Result<String, Why> {
        let at = call
            .keywords
            .iter()
            .position(|it| it.name == "weight_decay");
        let at = at.ok_or("it names no `weight_decay`")?;
        let decay = call.keywords.remove(at);
        if let Some(given) = call.keyword("learning_rate").or(call.keyword("lr")) {
            let typed = self.typed(&given.value)?;
            if !matches!(typed.kind, Type::Int | Type::Float) {
                return Err(
                    "TensorFlow Addons decays the weights alike at every rate, and the rate is no number of the cell"
                        .to_owned(),
                );
            }
        }
        let decay = text::factor(&self.float(&decay.value)?);
        self.note(
            call.span,
            "the `weight_decay` of TensorFlow Addons is not multiplied with the rate, ours is: it is divided by it",
        );
        Ok(format!(".weight_decay({decay} / {})", text::factor(rate)))
    }

    /// The arguments of an optimizer as its methods.
    fn optimizer_keywords(
        &mut self,
        given: &str,
        known: &'static arguments::Optimizer,
        call: &Call,
        written: &mut String,
    ) -> Result<(), Why> {
        for keyword in &call.keywords {
            let argument = match keyword.name.as_str() {
                "learning_rate" => continue,
                "lr" => {
                    let found =
                        rules::unknown_optimizer_argument(given, keyword, &["learning_rate"]);
                    self.find(found);
                    continue;
                }
                // Ours alone, with two arguments.
                "rate_for" => {
                    self.leave_argument(keyword, format!("`{given}` has no argument of this name"));
                    continue;
                }
                "weight_decay_rate" if given == "AdamWeightDecay" => "weight_decay",
                "exclude_from_weight_decay" => "exclude_from_weight_decay",
                other => other,
            };
            if let Some(why) = without_effect(&keyword.name, &keyword.value) {
                self.idle(keyword.span, why);
                continue;
            }
            let argument = match arguments::find(known.arguments, argument) {
                Some(argument) => argument,
                None => match self.unknown_method(given, known, keyword) {
                    Some(argument) => argument,
                    None => continue,
                },
            };
            let value = match argument.accepts {
                arguments::Accepts::Number(_) => self.float(&keyword.value)?,
                _ => self.value(&keyword.value)?,
            };
            *written += &format!(".{}({value})", argument.name);
            if argument.name == "clipnorm" {
                let found = rules::clipnorm(keyword);
                self.find(found);
            }
        }
        Ok(())
    }

    /// Defaults that are others here: they are written out, but for the `epsilon` of Adam, which is noted.
    fn defaults(&mut self, given: &str, span: CellSpan, written: &mut String) {
        let decays = written.contains(".weight_decay(");
        let excludes = written.contains(".exclude_from_weight_decay(");
        match given {
            "AdamWeightDecay" if !decays => *written += ".weight_decay(0.0)",
            "AdamWeightDecay" if !excludes => {
                // Hugging Face decays every variable that no list names, ours leaves biases and LayerNorm alone.
                *written += ".decay_all_parameters(true)";
                self.note(
                    span,
                    "Hugging Face's `AdamWeightDecay` decays all weights unless `exclude_from_weight_decay` names some; BERT's \
                     recipe leaves biases and LayerNorm alone, as is done without `decay_all_parameters(true)`",
                );
            }
            "AdamWeightDecay" => {}
            _ if decays || given == "AdamW" => {
                if !decays {
                    *written += ".weight_decay(0.004)";
                }
                if !excludes {
                    // Keras decays every variable, ours leaves biases and LayerNorm alone.
                    *written += ".decay_all_parameters(true)";
                    self.note(
                        span,
                        "Keras's decay is that of all weights; BERT's recipe leaves biases and LayerNorm alone, as is done \
                         without `decay_all_parameters(true)`",
                    );
                }
            }
            _ => {}
        }
        if given.starts_with("Adam") && !written.contains(".epsilon(") {
            self.note(
                span,
                "Keras adds an `epsilon` of 1e-7, which is 1e-8 here, as in PyTorch: `.epsilon(1e-7)` sets it",
            );
        }
    }

    fn unknown_method(
        &mut self,
        given: &str,
        known: &'static arguments::Optimizer,
        keyword: &crate::model::Keyword,
    ) -> Option<&'static arguments::Argument> {
        /// Arguments of Keras's optimizers that are none here.
        const OF_KERAS: &[&str] = &[
            "jit_compile",
            "loss_scale_factor",
            "gradient_accumulation_steps",
            "decay",
            "rho",
            "is_legacy_optimizer",
            "adaptive_epsilon",
            "include_in_weight_decay",
            "weight_decay",
        ];
        let names: Vec<&str> = known.arguments.iter().map(|it| it.name).collect();
        match OF_KERAS.contains(&keyword.name.as_str()) {
            true => {
                let name = &keyword.name;
                let why = match name.as_str() {
                    "gradient_accumulation_steps" => {
                        "it is an argument of `compile!` here, and is left out of the optimizer"
                            .to_owned()
                    }
                    _ => format!(
                        "`{}` has no `{name}` here: it is made without it",
                        known.name
                    ),
                };
                self.leave_argument(keyword, why);
            }
            false => {
                let found = rules::unknown_optimizer_argument(given, keyword, &names);
                self.find(found);
                let similar = suggest::similar(&keyword.name, names.iter().copied());
                let meant = similar
                    .first()
                    .and_then(|name| arguments::find(known.arguments, name));
                match meant {
                    Some(meant) => {
                        let text = format!("typo `{}` corrected to `{}`", keyword.name, meant.name);
                        self.correct(keyword.span, "SC0504", text);
                        return Some(meant);
                    }
                    None => {
                        let why = format!("`{given}` has no argument of this name");
                        self.leave_argument(keyword, why);
                    }
                }
            }
        }
        None
    }

    /// A learning rate: a number, a schedule, or a name.
    fn rate(&mut self, value: &Value) -> Result<String, Why> {
        if let Some((full, call)) = self.names.called(value).zip(value.call())
            && full.contains(".schedules.")
        {
            return self.schedule(&full, call);
        }
        if let Some(name) = value.name() {
            return match self.things.get(name) {
                Some(Thing::Schedule | Thing::Float | Thing::Value) => self.value(value),
                Some(Thing::Int(_)) => self.float(value),
                None => {
                    let rust = self.value(value)?;
                    self.free(name, "a learning rate, such as `5e-5`")?;
                    Ok(rust)
                }
                Some(Thing::Missing(_)) => self.value(value),
                Some(other) => Err(format!("`{name}` is {}, no learning rate", other.word())),
            };
        }
        match self.typed(value)?.kind {
            Type::Int | Type::Float => self.float(value),
            _ => Err("the learning rate is no number or schedule".to_owned()),
        }
    }

    /// `tf.keras.optimizers.schedules.ExponentialDecay(…)`.
    pub(crate) fn schedule(&mut self, full: &str, call: &Call) -> Result<String, Why> {
        let name = full.rsplit('.').next().unwrap_or_default();
        let (operands, methods): (&[&str], &[&str]) = match name {
            "ExponentialDecay" => (
                &["initial_learning_rate", "decay_steps", "decay_rate"],
                &["staircase"],
            ),
            "CosineDecay" => (&["initial_learning_rate", "decay_steps"], &["alpha"]),
            "PolynomialDecay" => (
                &["initial_learning_rate", "decay_steps"],
                &["end_learning_rate", "power", "cycle"],
            ),
            other => {
                return Err(format!(
                    "there is no schedule `{other}` here; there are `ExponentialDecay`, `CosineDecay`, \
                     `PolynomialDecay` and `warmup_linear`"
                ));
            }
        };
        let all: Vec<&str> = operands.iter().chain(methods).copied().collect();
        let odd = call.keywords.iter().find(|it| {
            !all.contains(&it.name.as_str()) && it.name != "name" && it.value.kind != Kind::None
        });
        if let Some(odd) = odd {
            return Err(format!("`{name}` has no `{}` here", odd.name));
        }
        let mut values = Vec::new();
        for (place, operand) in operands.iter().enumerate() {
            let value = call
                .argument(operand, place)
                .ok_or(format!("`{operand}` is missing"))?;
            values.push(match *operand {
                "decay_steps" => {
                    let steps = self.typed(value)?;
                    // A length is a `usize`, the steps of a schedule are `u64`.
                    match steps.rust.contains(".len()") {
                        true => format!("{} as u64", steps.operand()),
                        false => steps.rust,
                    }
                }
                _ => self.float(value)?,
            });
        }
        let mut written = format!("{name}::new({})", values.join(", "));
        for (place, method) in methods.iter().enumerate() {
            let Some(value) = call.argument(method, operands.len() + place) else {
                continue;
            };
            let value = match *method {
                "staircase" | "cycle" => self.value(value)?,
                _ => self.float(value)?,
            };
            written += &format!(".{method}({value})");
        }
        Ok(written)
    }
}
