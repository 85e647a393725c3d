//! Callbacks.

use super::thing::{CallbackKind, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

impl Translator<'_> {
    /// `tf.keras.callbacks.EarlyStopping(…)`.
    pub(crate) fn callback(&mut self, full: &str, call: &Call) -> Result<CallbackKind, Why> {
        let name = full.rsplit('.').next().unwrap_or_default();
        match name {
            "EarlyStopping" => self.early_stopping(call),
            "ModelCheckpoint" => {
                let path = call.argument("filepath", 0).ok_or("it names no file")?;
                let path = path
                    .text()
                    .ok_or("the file of the checkpoint is not written out")?;
                let folder = folder(path);
                self.note(
                    call.span,
                    format!(
                        "`checkpoint` names a folder: the weights of the last epoch are in `{folder}/last`, those of the \
                         best one in `{folder}/best`"
                    ),
                );
                Ok(CallbackKind::Checkpoint(text::text(&folder)))
            }
            "History" | "ProgbarLogger" | "TerminateOnNaN" | "BaseLogger" => {
                Err(format!("`fit!` does what `{name}` does without it"))
            }
            "CSVLogger" => self.log("CsvLogger", "filename", None, call),
            "TensorBoard" => self.log("TensorBoard", "log_dir", Some("logs"), call),
            "ReduceLROnPlateau" | "LearningRateScheduler" => Err(format!(
                "there is no `{name}` here; a schedule is given to the optimizer, such as `warmup_linear(5e-5, 0.1)`"
            )),
            other => Err(format!("there is no callback `{other}` here")),
        }
    }

    /// A callback that writes to the path of one argument; of the others nothing is taken over, and that is noted.
    fn log(
        &mut self,
        name: &str,
        argument: &str,
        usual: Option<&str>,
        call: &Call,
    ) -> Result<CallbackKind, Why> {
        let path = match (call.argument(argument, 0), usual) {
            (Some(path), _) => path
                .text()
                .ok_or("the path of the log is not written out")?,
            (None, Some(usual)) => usual,
            (None, None) => return Err("it names no file".to_owned()),
        };
        if call.arguments.len() > 1 || call.keywords.iter().any(|it| it.name != argument) {
            self.note(
                call.span,
                format!("`{name}` writes losses, metrics and rates; it has no other arguments"),
            );
        }
        Ok(CallbackKind::Element(format!(
            "{name}::new({})?",
            text::text(path)
        )))
    }

    fn early_stopping(&mut self, call: &Call) -> Result<CallbackKind, Why> {
        if call.has_starred {
            return Err("the arguments of the callback are not written out".to_owned());
        }
        let mut written = "EarlyStopping::new()".to_owned();
        let mut restores = false;
        let names = [
            "monitor",
            "min_delta",
            "patience",
            "verbose",
            "mode",
            "baseline",
            "restore_best_weights",
        ];
        if call.arguments.len() > names.len() {
            return Err("the arguments of the callback are not all named".to_owned());
        }
        let mut values: Vec<(&str, &Value)> = names.iter().copied().zip(&call.arguments).collect();
        for keyword in &call.keywords {
            values.push((keyword.name.as_str(), &keyword.value));
        }
        for (name, value) in values {
            match name {
                "monitor" => {
                    let monitor = value
                        .text()
                        .ok_or("what it monitors is not written as a text")?;
                    let monitor = monitor
                        .replace("_acc", "_accuracy")
                        .replace("_accuracyuracy", "_accuracy");
                    written += &format!(".monitor({})", text::text(&monitor));
                }
                "patience" => {
                    // Keras stops after the same epoch with 0 as with 1, which is the least here.
                    let patience = match self.integer(value) {
                        Some(0) => "1".to_owned(),
                        _ => self.value(value)?,
                    };
                    written += &format!(".patience({patience})");
                }
                "min_delta" => written += &format!(".min_delta({})", self.float(value)?),
                "restore_best_weights" => restores = value.kind == Kind::Bool(true),
                "verbose" | "name" => {}
                "mode" if matches!(value.text(), Some("auto" | "min" | "max")) => {}
                _ if value.kind == Kind::None => {}
                other => return Err(format!("`EarlyStopping` has no `{other}` here")),
            }
        }
        if !restores {
            written += ".restore_best_weights(false)";
        }
        Ok(CallbackKind::Element(written))
    }

    /// The argument `callbacks` as arguments of `fit!`.
    pub(crate) fn callbacks(&mut self, value: &Value) -> Vec<String> {
        let one = [value.clone()];
        let values = value.elements().unwrap_or(&one).to_vec();
        let (mut elements, mut arguments) = (Vec::new(), Vec::new());
        for value in &values {
            let kind = match value.name().and_then(|name| self.things.get(name)) {
                Some(Thing::Callback(kind)) => {
                    // A callback by its name, as its own line has made it.
                    match kind {
                        CallbackKind::Element(made) => value.name().map(|it| {
                            // Those that write to a file cannot be cloned.
                            let is_copied =
                                made.starts_with("EarlyStopping") && self.is_moved_again(it);
                            let copy = if is_copied { ".clone()" } else { "" };
                            CallbackKind::Element(text::name(it) + copy)
                        }),
                        kind => Some(kind.clone()),
                    }
                    .ok_or(String::new())
                }
                Some(Thing::Missing(_)) => Err(value
                    .name()
                    .and_then(|name| self.missing(name))
                    .unwrap_or_default()),
                _ => match self.names.called(value).zip(value.call()) {
                    Some((full, call)) if full.starts_with("keras.callbacks.") => {
                        self.callback(&full, call)
                    }
                    _ => Err("it is no callback that is known from the cell".to_owned()),
                },
            };
            match kind {
                Ok(CallbackKind::Element(element)) => elements.push(element),
                Ok(CallbackKind::Checkpoint(folder)) => {
                    arguments.push(format!("checkpoint = {folder}"))
                }
                Err(why) => self.leave(value.span, why),
            }
        }
        if !elements.is_empty() {
            arguments.insert(0, format!("callbacks = [{}]", elements.join(", ")));
        }
        arguments
    }
}

/// A folder by the name of a checkpoint file: `best.keras` is `best`.
fn folder(path: &str) -> String {
    let plain = path.split('{').next().unwrap_or_default();
    let plain = plain.trim_end_matches(['-', '_', '.', '/']);
    let plain = plain.strip_suffix(".weights.h5").unwrap_or(plain);
    let (head, last) = plain.rsplit_once('/').unwrap_or(("", plain));
    let last = last.split('.').next().unwrap_or_default();
    match (head, last) {
        ("", "") => "checkpoints".to_owned(),
        ("", last) => last.to_owned(),
        (head, "") => head.to_owned(),
        (head, last) => format!("{head}/{last}"),
    }
}
