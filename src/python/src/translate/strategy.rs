//! Strategies and their devices.

use stratoscope_diagnostics::rules::StrategyNotAvailable;
use stratoscope_diagnostics::{CellSpan, Place, Rule};

use super::arguments::without_effect;
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};

impl Translator<'_> {
    /// `tf.distribute.MirroredStrategy(…)`.
    pub(crate) fn strategy(&mut self, name: &str, call: &Call) -> Result<String, Why> {
        let devices = match name {
            "OneDeviceStrategy" => call.argument("device", 0),
            "MirroredStrategy" => call.argument("devices", 0),
            "CentralStorageStrategy" => call.argument("compute_devices", 0),
            _ => None,
        };
        let devices = devices.filter(|it| it.kind != Kind::None);
        let devices = devices.map(|it| self.devices(it)).transpose()?;
        let mut written = match (name, devices) {
            ("MirroredStrategy", None) => "MirroredStrategy::new()?".to_owned(),
            ("MirroredStrategy" | "CentralStorageStrategy", Some(devices)) => {
                self.on_devices(name, devices, call.span)?
            }
            ("OneDeviceStrategy", Some(devices)) if devices.len() == 1 => {
                let device = self.own_devices(devices, call.span)?.join(", ");
                format!("OneDeviceStrategy::new({device})?")
            }
            ("OneDeviceStrategy", _) => return Err("it names no device".to_owned()),
            ("CentralStorageStrategy", None) => {
                self.note(
                    call.span,
                    "TensorFlow takes all GPUs; here it is two logical devices",
                );
                "CentralStorageStrategy::logical(2)?".to_owned()
            }
            ("MultiWorkerMirroredStrategy", _) => self.workers(call)?,
            ("ParameterServerStrategy", _) => {
                self.idle_arguments(call, "there is no cluster here");
                self.note(
                    call.span,
                    "there is no cluster here: it is two workers and one server, logical devices of this machine",
                );
                "ParameterServerStrategy::logical(2, 1)?".to_owned()
            }
            ("TPUStrategy", _) => {
                self.idle_arguments(call, "there is no TPU here");
                self.note(
                    call.span,
                    "there is no TPU here: it is the topology of one, eight cores, computed by the CPU",
                );
                "TpuStrategy::simulated()?".to_owned()
            }
            (other, _) => {
                let facts = StrategyNotAvailable {
                    given: other.to_owned(),
                    place: Place::Span(call.function.span),
                };
                self.find(facts.diagnostic());
                return Err(format!("there is no `{other}` here"));
            }
        };
        if let Some(ops) = call.keyword("cross_device_ops") {
            let full = self.names.called(&ops.value).unwrap_or_default();
            let pattern = match full.rsplit('.').next().unwrap_or_default() {
                "NcclAllReduce" => {
                    self.note(
                        ops.span,
                        "`NcclAllReduce` is a ring here: the gradients are added by stratoscope itself, and NCCL adds those of worker \
                         processes only",
                    );
                    "Ring"
                }
                "HierarchicalCopyAllReduce" => "Tree",
                "ReductionToOneDevice" => "Centralized",
                _ => return Err("its `cross_device_ops` has no counterpart".to_owned()),
            };
            let made = written.trim_end_matches('?').to_owned();
            written = format!("{made}?.cross_device_ops(CrossDeviceOps::{pattern})");
        }
        Ok(written)
    }

    /// `tf.distribute.MultiWorkerMirroredStrategy(…)`, which reads `TF_CONFIG` there as here.
    fn workers(&mut self, call: &Call) -> Result<String, Why> {
        let call = call
            .named(&["cluster_resolver", "communication_options"])
            .ok_or("the arguments of the strategy are not all named")?;
        call.see_all();
        for keyword in &call.keywords {
            if let Some(why) = without_effect(&keyword.name, &keyword.value) {
                self.idle(keyword.span, why);
                continue;
            }
            let full = self.names.called(&keyword.value).unwrap_or_default();
            match keyword.name.as_str() {
                "cluster_resolver" if full.ends_with("TFConfigClusterResolver") => {
                    self.idle(keyword.span, "both read `TF_CONFIG`");
                }
                "cluster_resolver" => {
                    return Err("its cluster is not the one that `TF_CONFIG` describes".to_owned());
                }
                name => {
                    let why = format!("`MultiWorkerMirroredStrategy` has no `{name}` here");
                    self.leave_argument(keyword, why);
                }
            }
        }
        self.note(
            call.span,
            "both read `TF_CONFIG`; the other workers are processes of `stratoscope worker --from-environment`",
        );
        Ok("MultiWorkerMirroredStrategy::new()?".to_owned())
    }

    /// The devices of a list, or of one text.
    pub(crate) fn devices(&mut self, value: &Value) -> Result<Vec<String>, Why> {
        let one = [value.clone()];
        let values = value.elements().unwrap_or(&one);
        let devices = values.iter().map(|value| {
            let name = value.text().ok_or(
                "the devices are not written out; `MirroredStrategy::new()?` takes all of the best kind, and `MirroredStrategy::logical(2)?` \
                 divides one into two",
            )?;
            let device = device(name).ok_or(format!("`{name}` is no device that is known"))?;
            if device.starts_with("wgpu") {
                self.note(
                    value.span,
                    "a GPU is `wgpu(0)` here, or `cuda(0)` with CUDA: `%device` shows them",
                );
            }
            Ok(device)
        });
        devices.collect()
    }

    /// A strategy over devices. The processor is one device with all of its cores, so that several of it are logical ones.
    pub(crate) fn on_devices(
        &mut self,
        name: &str,
        devices: Vec<String>,
        span: CellSpan,
    ) -> Result<String, Why> {
        if are_several_processors(&devices) {
            let count = devices.len();
            self.note(
                span,
                format!("the processor is one device with all of its cores: `{name}::logical({count})` divides it into {count}"),
            );
            return Ok(format!("{name}::logical({count})?"));
        }
        let devices = self.own_devices(devices, span)?;
        Ok(format!("{name}::on([{}])?", devices.join(", ")))
    }

    /// Devices as they are here: the processor is one.
    pub(crate) fn own_devices(
        &mut self,
        devices: Vec<String>,
        span: CellSpan,
    ) -> Result<Vec<String>, Why> {
        let processors = devices.iter().filter(|it| it.starts_with("cpu"));
        match processors.count() {
            0 => Ok(devices),
            1 => {
                if devices
                    .iter()
                    .any(|it| it.starts_with("cpu") && it != "cpu(0)")
                {
                    self.note(
                        span,
                        "the processor is one device with all of its cores, `cpu(0)`",
                    );
                }
                let own = devices.into_iter().map(|it| match it.starts_with("cpu") {
                    true => "cpu(0)".to_owned(),
                    false => it,
                });
                Ok(own.collect())
            }
            _ => {
                let mut own: Vec<String> = devices;
                own.retain(|it| !it.starts_with("cpu"));
                own.push("cpu(0)".to_owned());
                Err(format!(
                    "the processor is one device with all of its cores: `MirroredStrategy::on([{}])?` has it once",
                    own.join(", ")
                ))
            }
        }
    }
}

/// Whether all devices are processors, of which there is one here.
pub(crate) fn are_several_processors(devices: &[String]) -> bool {
    devices.len() > 1 && devices.iter().all(|it| it.starts_with("cpu"))
}

/// `cpu(0)` of `/CPU:0`, `cpu:0`, `/job:localhost/device:CPU:0`.
pub(crate) fn device(given: &str) -> Option<String> {
    let name = given.to_ascii_lowercase();
    let name = name.rsplit('/').next()?.trim_start_matches("device:");
    let (kind, number) = name.split_once(':').unwrap_or((name, "0"));
    let number: usize = number.parse().ok()?;
    match kind {
        "cpu" => Some(format!("cpu({number})")),
        "gpu" | "cuda" => Some(format!("wgpu({number})")),
        _ => None,
    }
}
