//! PyTorch: data loaders, optimizers, schedulers, losses, networks of layers, and the loops that train with them.
//!
//! A loop with `backward()` and `step()` is `compile!` and `fit!` (`training`); what it gets before are parts without a line.

mod evaluation;
mod layers;
mod loss;
pub(crate) mod optimizer;
mod setup;
mod training;

use super::arguments::see_whole;
use super::call::Made;
use super::devices::ON_DEFAULT;
use super::thing::Thing;
use super::trainer::part::Part;
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};
use loss::LOSSES;

impl Translator<'_> {
    /// A call of `torch`, or of a scheduler of transformers; `None`: something else of transformers.
    pub(crate) fn made_by_torch(
        &mut self,
        value: &Value,
        full: &str,
        call: &Call,
    ) -> Option<Result<Made, Why>> {
        let last = full.rsplit('.').next().unwrap_or_default();
        let nothing =
            |what: &'static str| Ok((String::new(), Thing::Part(Box::new(Part::Nothing(what)))));
        Some(match full {
            "torch.utils.data.DataLoader" => self.loader(call),
            "torch.device" => {
                see_whole(value);
                self.idle(call.span, ON_DEFAULT);
                nothing("a device")
            }
            "torch.tensor" | "torch.as_tensor" | "torch.from_numpy" => {
                let inner = call.argument("data", 0).cloned();
                call.see_all();
                match inner {
                    Some(inner) => self.made(&inner),
                    None => Err("it gets no data".to_owned()),
                }
            }
            "torch.utils.data.TensorDataset" => self.tensor_dataset(call),
            "transformers.get_scheduler" => self.torch_schedule("get_scheduler", call),
            _ if full.starts_with("torch.optim.lr_scheduler.") => Err(format!(
                "there is no `{last}` here: a schedule is given to the optimizer, such as `warmup_linear(5e-5, 0.1)`, `CosineDecay` or `ExponentialDecay`"
            )),
            _ if full.starts_with("torch.optim.") || full == "transformers.AdamW" => {
                self.torch_optimizer(full, call)
            }
            _ if full.starts_with("transformers.get_") && full.contains("schedule") => {
                self.torch_schedule(last, call)
            }
            _ if last == "GradScaler" => {
                see_whole(value);
                self.idle(
                    call.span,
                    "the policy `mixed_float16` scales the loss by itself",
                );
                nothing("a scaler")
            }
            "accelerate.Accelerator" => {
                see_whole(value);
                self.idle(call.span, "devices and processes are those of a strategy");
                nothing("an accelerator")
            }
            _ if LOSSES.iter().any(|(names, ..)| names.contains(&last))
                && full.starts_with("torch.") =>
            {
                self.torch_loss(full, call)
                    .map(|loss| (loss.rust.clone(), Thing::Loss(loss)))
            }
            _ if full.starts_with("torch.nn.") => self.layer_of_torch(full, call),
            _ if full.starts_with("torch.") || full.starts_with("accelerate.") => Err(format!(
                "`{full}` has no counterpart here; `compile!` and `fit!` train, `predict` computes outputs"
            )),
            _ => return None,
        })
    }

    /// `DataLoader(data, batch_size=16, shuffle=True)`: what it says about `fit!`.
    fn loader(&mut self, call: &Call) -> Result<Made, Why> {
        call.see_all();
        let data = call.argument("dataset", 0).ok_or("it gets no data")?;
        let is_arrays =
            self.names.called(data).as_deref() == Some("torch.utils.data.TensorDataset");
        let mut data = match data.call().filter(|_| is_arrays) {
            Some(arrays) => match self.tensor_dataset(arrays)?.1 {
                Thing::Data(data) => data,
                other => return Err(format!("it is {}, no data set", other.word())),
            },
            None => self.pipeline(data)?,
        };
        // PyTorch's defaults: batches of 1, in the order of the data.
        data.batch = Some("1".to_owned());
        data.shuffle = Some(false);
        if let Some(size) = call.argument("batch_size", 1) {
            data.batch = Some(self.value(size)?);
        }
        match call.argument("shuffle", 2).map(|it| &it.kind) {
            Some(Kind::Bool(shuffle)) => data.shuffle = Some(*shuffle),
            Some(_) => return Err("`shuffle` is `True` or `False` here".to_owned()),
            None => {}
        }
        for keyword in &call.keywords {
            match keyword.name.as_str() {
                "dataset" | "batch_size" | "shuffle" => {}
                "sampler" => {
                    let is_random = self
                        .names
                        .called(&keyword.value)
                        .is_some_and(|it| it.ends_with(".RandomSampler"));
                    match is_random {
                        true => data.shuffle = Some(true),
                        false => self.idle(keyword.span, "`shuffle` of `fit!` decides the order"),
                    }
                }
                "collate_fn" => {
                    self.idle(keyword.span, "`fit!` pads each batch to its longest text")
                }
                "drop_last" => match keyword.value.kind {
                    Kind::Bool(false) => self.idle(keyword.span, "it is the default"),
                    _ => self.leave_argument(
                        keyword,
                        "a short last batch is not dropped here: it counts by its examples"
                            .to_owned(),
                    ),
                },
                _ => self.idle(keyword.span, "`fit!` reads ahead by itself"),
            }
        }
        Ok((data.rust.clone(), Thing::Data(data)))
    }

    /// `TensorDataset(x, y)` of arrays.
    fn tensor_dataset(&mut self, call: &Call) -> Result<Made, Why> {
        let [x, y] = call.arguments.as_slice() else {
            return Err(
                "a data set has texts and labels, or rows of numbers and labels".to_owned(),
            );
        };
        call.see_all();
        let data = self.data_of(&x.clone(), Some(&y.clone()))?;
        Ok((data.rust.clone(), Thing::Data(data)))
    }

    /// Methods of an optimizer, a scheduler, a device that stand outside of a loop.
    pub(crate) fn method_of_torch(
        &mut self,
        part: &Part,
        method: &str,
        call: &Call,
    ) -> Option<Result<Made, Why>> {
        match (part, method) {
            (Part::Nothing("a progress bar"), _) => {
                call.see_all();
                self.idle(
                    call.span,
                    "`fit!` shows its progress, and `track` in a loop",
                );
                Some(Ok((String::new(), Thing::Folded)))
            }
            (Part::Optimizer(_), "zero_grad") => {
                call.see_all();
                self.idle(call.span, "`fit!` begins each step with new gradients");
                Some(Ok((String::new(), Thing::Folded)))
            }
            (Part::Optimizer(_) | Part::Schedule(_), "step" | "load_state_dict" | "state_dict") => {
                Some(Err(
                    "a step stands in a loop over data, which is `fit!`".to_owned()
                ))
            }
            _ => None,
        }
    }
}
