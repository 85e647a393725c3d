//! What is moved to a device, and lines of the kernel that stand before the lines of Rust: `%device`, `!nvidia-smi`.

use stratoscope_diagnostics::CellSpan;

use super::arguments::see_whole;
use super::devices::ON_DEFAULT;
use super::{Translator, Why};
use crate::model::{Kind, Value};

/// Calls that begin to measure the memory again, or wait for a device.
const RESETS: &[(&str, &str)] = &[
    (
        "torch.cuda.reset_",
        "the largest memory of a run is not counted here",
    ),
    (
        "tensorflow.config.experimental.reset_memory_stats",
        "the largest memory of a run is not counted here",
    ),
    (
        "torch.cuda.synchronize",
        "a call returns when its device has computed the result",
    ),
];

impl Translator<'_> {
    /// `torch.cuda.set_device(1)`, `tf.config.set_visible_devices([], "GPU")`, and calls that measure again.
    pub(super) fn sets_device(
        &mut self,
        full: &str,
        value: &Value,
        span: CellSpan,
    ) -> Option<Result<(), Why>> {
        if let Some((_, why)) = RESETS.iter().find(|(start, _)| full.starts_with(start)) {
            see_whole(value);
            self.idle(span, *why);
            return Some(Ok(()));
        }
        let call = value.call()?;
        let first = call.arguments.first();
        let device = match full {
            "torch.cuda.set_device" => match first.and_then(Value::integer) {
                Some(at @ 0..) => format!("cuda:{at}"),
                _ => String::new(),
            },
            "torch.set_default_device" => match first.and_then(Value::text) {
                Some("cpu") => "cpu".to_owned(),
                Some("cuda") => "cuda:0".to_owned(),
                Some(other) if other.starts_with("cuda:") => other.to_owned(),
                _ => String::new(),
            },
            "tensorflow.config.set_visible_devices"
            | "tensorflow.config.experimental.set_visible_devices" => {
                match first.and_then(Value::elements) {
                    Some([]) => "cpu".to_owned(),
                    _ => String::new(),
                }
            }
            _ => return None,
        };
        see_whole(value);
        let can_be_first = self.depth == 0 && !self.has_code();
        Some(match device.is_empty() || !can_be_first {
            true => Err(
                "the default device is set before the first line of Rust: `%device cuda:1`, `%device cpu`; a strategy names its own, \
                 `MirroredStrategy::on([cuda(0), cuda(1)])?`"
                    .to_owned(),
            ),
            false => {
                self.push(format!("%device {device}"), span);
                Ok(())
            }
        })
    }

    /// What `model.to(device)`, `x.cuda()` or `model.eval()` is called on, whose value it is; its arguments set nothing here, but a
    /// type of numbers does. `None`: another value.
    pub(crate) fn unmoved<'v>(&mut self, value: &'v Value) -> Option<&'v Value> {
        let call = value.call()?;
        let Kind::Attribute(object, method) = &call.function.kind else {
            return None;
        };
        let is_plain = match method.as_str() {
            "eval" => self.is_model(object) || object.call().is_some(),
            method => matches!(method, "cpu" | "cuda" | "to" | "detach" | "contiguous"),
        };
        let is_precision = matches!(method.as_str(), "half" | "bfloat16");
        if !is_plain && !is_precision || self.names.full(object).is_some() {
            return None;
        }
        let words = ["float16", "bfloat16", "half"];
        let given = call.keywords.iter().map(|it| &it.value);
        let is_type = |it: &Value| {
            let last = it
                .path()
                .and_then(|path| path.last().map(|it| (*it).to_owned()));
            last.is_some_and(|last| words.contains(&last.as_str()))
        };
        let has_type = call.arguments.iter().chain(given).any(is_type);
        call.see_all();
        match has_type || is_precision {
            true => self.leave(
                call.span,
                "the precision is set before the model is made: `set_global_policy(\"mixed_bfloat16\")?` or `\"mixed_float16\"`",
            ),
            false => {
                let at = CellSpan {
                    start: object.span.end,
                    end: call.span.end,
                };
                let why = match method.as_str() {
                    "eval" => "`fit!` trains with dropout, `evaluate!` and `predict` without",
                    _ => ON_DEFAULT,
                };
                self.idle(at, why);
            }
        }
        Some(object)
    }

    /// Whether the cell has a line of Rust: the lines of magics stand before it.
    pub(crate) fn has_code(&self) -> bool {
        let mut lines = self.translation.lines.iter();
        lines.any(|line| !line.is_comment && !line.text.starts_with(['%', '!']))
    }

    /// `!nvidia-smi` beside Python: a line of the kernel too, which stands before the lines of Rust.
    pub(crate) fn escape(&mut self, command: &str, span: CellSpan) -> Result<(), Why> {
        let source = self.source(span).trim().to_owned();
        let is_install = command.contains("pip ") || command.contains("conda ");
        let is_shell = source.starts_with('!') && !source.starts_with("!!");
        if !is_install && is_shell && !source.contains('\n') {
            if self.depth > 0 || self.has_code() {
                return Err(
                    "the lines that begin with `!` stand before the first line of Rust; write it in a cell before".to_owned(),
                );
            }
            self.push(source, span);
            return Ok(());
        }
        let why = match is_install {
            true => "nothing is installed: the names of the DSL are there from the start",
            false => "lines for IPython are not taken over",
        };
        self.idle(span, why);
        Ok(())
    }
}
