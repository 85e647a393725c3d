//! `compile!` as the `Trainer` trains: its optimizer, schedule, loss and defaults, written out where they differ.

use stratoscope_diagnostics::CellSpan;

use super::super::{Translator, Why, text};
use super::part::HeadKind;
use super::settings::Settings;
use crate::model::{Kind, Value};

/// The optimizers of `optim`, the type that has their step, and what is different.
const OPTIMIZERS: &[(&[&str], &str, Option<&str>)] = &[
    (
        &[
            "adamw_torch",
            "adamw_torch_fused",
            "adamw_hf",
            "adamw_torch_xla",
            "adamw_torch_npu_fused",
            "adamw_apex_fused",
        ],
        "AdamW",
        None,
    ),
    (
        &[
            "adamw_bnb_8bit",
            "adamw_8bit",
            "paged_adamw_8bit",
            "paged_adamw_32bit",
            "paged_adamw",
            "adamw_torch_8bit",
            "adamw_torch_4bit",
        ],
        "AdamW",
        Some("the moments are float32 numbers in memory here, neither 8 bits nor paged"),
    ),
    (&["sgd"], "SGD", None),
    (&["lion_32bit", "paged_lion_32bit"], "Lion", None),
    (
        &["lion_8bit", "paged_lion_8bit", "lion", "paged_lion"],
        "Lion",
        Some("the momentum is a float32 number for each weight here"),
    ),
];

/// Steps of warm-up.
#[derive(Clone, Debug)]
pub(crate) enum WarmUp {
    /// None.
    None,
    /// A share of the run, as Rust.
    Share(String),
    /// A number of steps, as Rust.
    Steps(String),
}

/// How many steps a run has.
#[derive(Clone, Debug)]
pub(crate) enum RunLength {
    /// As many as `epochs` passes over the data, as Rust; where there is data.
    Epochs(String, Option<String>),
    /// As many as are written.
    Steps(String),
}

/// What decides the schedule.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The highest rate, as Rust.
    pub rate: String,
    /// `lr_scheduler_type`.
    pub kind: String,
    /// Steps of warm-up.
    pub warm_up: WarmUp,
    /// The length of the run.
    pub length: RunLength,
    /// Batches per device, as Rust.
    pub batch: String,
    /// Batches of a step, as Rust.
    pub accumulation: Option<String>,
}

impl Translator<'_> {
    /// The optimizer of a `Trainer`.
    pub(crate) fn trainer_optimizer(
        &mut self,
        settings: &Settings,
        plan: &Plan,
    ) -> Result<String, Why> {
        let (optim, span) = match (settings.word(&["optim"]), settings.flag("adafactor")) {
            (_, Some(span)) => ("adafactor".to_owned(), span),
            (Some(given), _) => given,
            (None, _) => ("adamw_torch".to_owned(), settings.span),
        };
        let row = OPTIMIZERS
            .iter()
            .find(|(names, ..)| names.contains(&optim.as_str()));
        let Some((_, class, differs)) = row else {
            return Err(match optim.as_str() {
                "adafactor" => "`Adafactor` scales its rate by the size of each variable here, and the one of the Trainer does not"
                    .to_owned(),
                _ => format!("there is no optimizer `{optim}` here; there are AdamW, SGD and Lion"),
            });
        };
        if let Some(differs) = differs {
            self.note(span, *differs);
        }
        let schedule = self.schedule_of(plan, settings.span)?;
        let mut written = format!("{class}::new({schedule})");
        match *class {
            "SGD" => {
                for name in ["adam_beta1", "adam_beta2", "adam_epsilon"] {
                    if let Some((_, span)) = settings.get(name) {
                        self.idle(span, "SGD has no moments");
                    }
                }
            }
            _ => self.moments(settings, class, &mut written)?,
        }
        match settings.get("max_grad_norm") {
            // Nothing is clipped.
            Some((value, _)) if value.number() == Some(0.0) => {}
            Some((value, _)) => {
                written += &format!(".global_clipnorm({})", self.float(&value.clone())?);
            }
            None => written += ".global_clipnorm(1.0)",
        }
        Ok(written)
    }

    /// `weight_decay`, betas and epsilon: the `Trainer` decays by 0 by default, and leaves biases and norms out.
    fn moments(
        &mut self,
        settings: &Settings,
        class: &str,
        written: &mut String,
    ) -> Result<(), Why> {
        let decay = match settings.get("weight_decay") {
            Some((value, _)) => Some(self.float(&value.clone())?),
            None if class == "AdamW" => Some("0.0".to_owned()),
            None => None,
        };
        if let Some(decay) = decay {
            *written += &format!(".weight_decay({decay})");
        }
        for (name, method) in [("adam_beta1", "beta_1"), ("adam_beta2", "beta_2")] {
            let value = match settings.get(name) {
                Some((value, _)) => self.float(&value.clone())?,
                // The Trainer gives Lion the betas of Adam.
                None if class == "Lion" && method == "beta_2" => "0.999".to_owned(),
                None => continue,
            };
            *written += &format!(".{method}({value})");
        }
        if let Some((value, span)) = settings.get("adam_epsilon") {
            match class {
                "AdamW" => *written += &format!(".epsilon({})", self.float(&value.clone())?),
                _ => self.idle(span, "Lion has no epsilon"),
            }
        }
        Ok(())
    }

    /// The rate of a run: what `get_scheduler` of transformers makes.
    pub(crate) fn schedule_of(&mut self, plan: &Plan, span: CellSpan) -> Result<String, Why> {
        let rate = &plan.rate;
        match (plan.kind.as_str(), &plan.warm_up) {
            ("linear", WarmUp::None) => Ok(format!("warmup_linear({rate}, 0.0)")),
            ("linear", WarmUp::Share(share)) => {
                self.note(
                    span,
                    "the steps of a warm-up that is a share of the run are rounded down here, and up by the Trainer: at most one step",
                );
                Ok(format!("warmup_linear({rate}, {share})"))
            }
            ("linear", WarmUp::Steps(steps)) => {
                let total = self.total_steps(plan, span)?;
                let steps = as_float(steps);
                self.note(
                    span,
                    "a warm-up with more steps than the run ends with the run here; the Trainer ends such a run on the way up",
                );
                Ok(format!(
                    "warmup_linear({rate}, ({steps} / {} as f64).min(1.0))",
                    total
                ))
            }
            ("constant", _) => Ok(rate.clone()),
            ("constant_with_warmup", _) => {
                let warm_up = self.warm_up_steps(plan, span)?;
                self.note(
                    span,
                    "a cosine whose `alpha` is 1 stays at its rate after the warm-up",
                );
                Ok(format!(
                    "CosineDecay::new({rate}, 1).alpha(1.0).warmup_steps({warm_up})"
                ))
            }
            ("cosine" | "cosine_with_restarts", WarmUp::None) => {
                let total = self.total_steps(plan, span)?;
                Ok(format!("CosineDecay::new({rate}, {total})"))
            }
            ("cosine" | "cosine_with_restarts", _) => {
                let warm_up = self.warm_up_steps(plan, span)?;
                let total = self.total_steps(plan, span)?;
                Ok(format!(
                    "CosineDecay::new({rate}, {total}.saturating_sub({warm_up}).max(1)).warmup_steps({warm_up})"
                ))
            }
            ("polynomial", WarmUp::None) => {
                let total = self.total_steps(plan, span)?;
                Ok(format!(
                    "PolynomialDecay::new({rate}, {total}).end_learning_rate(1e-7)"
                ))
            }
            ("polynomial", _) => Err(
                "`PolynomialDecay` has no warm-up here; `warmup_linear(5e-5, 0.1)` has one"
                    .to_owned(),
            ),
            (other, _) => Err(format!(
                "there is no schedule `{other}` here; there are linear, cosine, polynomial and constant ones"
            )),
        }
    }

    /// The name of the number of steps, which is written before its first use.
    fn total_steps(&mut self, plan: &Plan, span: CellSpan) -> Result<String, Why> {
        let name = self.fresh("training_steps");
        let steps = match &plan.length {
            RunLength::Steps(steps) => return Ok(whole(steps)),
            RunLength::Epochs(epochs, Some(data)) => {
                let groups = match &plan.accumulation {
                    Some(count) => format!(".div_ceil({})", size(count)),
                    None => String::new(),
                };
                let batches = format!("{data}.len().div_ceil({}){groups}", size(&plan.batch));
                match epochs.as_str() {
                    "1" => batches,
                    epochs => format!("{batches} * {}", size(epochs)),
                }
            }
            RunLength::Epochs(_, None) => {
                return Err(
                    "its schedule needs the number of steps, and so the training data".to_owned(),
                );
            }
        };
        let line = match steps.contains(" * ") {
            true => format!("let {name} = ({steps}) as u64;"),
            false => format!("let {name} = {steps} as u64;"),
        };
        let is_written = self.translation.lines.iter().any(|it| it.text == line);
        if !is_written {
            self.push(line, span);
        }
        Ok(name)
    }

    /// The steps of a warm-up as a number.
    fn warm_up_steps(&mut self, plan: &Plan, span: CellSpan) -> Result<String, Why> {
        match &plan.warm_up {
            WarmUp::None => Ok("0".to_owned()),
            WarmUp::Steps(steps) => Ok(whole(steps)),
            WarmUp::Share(share) => {
                let total = self.total_steps(plan, span)?;
                let name = self.fresh("warmup_steps");
                let line = format!("let {name} = ({share} * {total} as f64).ceil() as u64;");
                if !self.translation.lines.iter().any(|it| it.text == line) {
                    self.push(line, span);
                }
                Ok(name)
            }
        }
    }

    /// A name that the cell does not use for something else.
    fn fresh(&self, name: &str) -> String {
        match self.names.has(name) {
            true => format!("{name}_of_run"),
            false => name.to_owned(),
        }
    }

    /// `warmup_steps` and `warmup_ratio`: below 1 the former is a share too.
    pub(crate) fn warm_up(&mut self, settings: &Settings) -> Result<WarmUp, Why> {
        let (steps, ratio) = (settings.get("warmup_steps"), settings.get("warmup_ratio"));
        let is_zero = |value: &Value| value.number() == Some(0.0);
        match (steps, ratio) {
            (Some((value, _)), other) if !is_zero(value) => {
                if let Some((_, span)) = other {
                    self.idle(span, "`warmup_steps` decides");
                }
                let value = value.clone();
                match &value.kind {
                    Kind::Float(_) if value.number().is_some_and(|it| it < 1.0) => {
                        Ok(WarmUp::Share(self.float(&value)?))
                    }
                    _ => Ok(WarmUp::Steps(self.value(&value)?)),
                }
            }
            (_, Some((value, _))) if !is_zero(value) => {
                Ok(WarmUp::Share(self.float(&value.clone())?))
            }
            _ => Ok(WarmUp::None),
        }
    }

    /// The loss of a head of transformers, smoothed where the settings say so.
    pub(crate) fn loss_of_head(
        &mut self,
        head: Option<HeadKind>,
        outputs: Option<i64>,
        smoothing: Option<(Value, CellSpan)>,
    ) -> Result<String, Why> {
        let plain = match (head, outputs) {
            (Some(HeadKind::Labels), _) => "BinaryCrossentropy { from_logits: true }",
            (Some(HeadKind::Sequence), Some(1)) => "MeanSquaredError",
            _ => "SparseCategoricalCrossentropy { from_logits: true }",
        };
        let Some((share, span)) = smoothing.filter(|(it, _)| it.number() != Some(0.0)) else {
            return Ok(plain.to_owned());
        };
        match head {
            Some(HeadKind::Sequence) | None if outputs != Some(1) => {
                let share = self.float(&share)?;
                Ok(format!(
                    "CategoricalCrossentropy {{ from_logits: true }}.label_smoothing({share})"
                ))
            }
            _ => {
                self.leave(span, "labels are smoothed for a classifier of texts only");
                Ok(plain.to_owned())
            }
        }
    }
}

/// A whole number as `f64`.
fn as_float(rust: &str) -> String {
    match rust.bytes().all(|it| it.is_ascii_digit()) {
        true => format!("{rust}.0"),
        false => format!("{} as f64", text::factor(rust)),
    }
}

/// A whole number as `u64`.
fn whole(rust: &str) -> String {
    match rust.bytes().all(|it| it.is_ascii_digit()) {
        true => rust.to_owned(),
        false => format!("{} as u64", text::factor(rust)),
    }
}

/// A whole number as `usize`.
fn size(rust: &str) -> String {
    match rust.bytes().all(|it| it.is_ascii_digit()) {
        true => rust.to_owned(),
        false => format!("{} as usize", text::factor(rust)),
    }
}
