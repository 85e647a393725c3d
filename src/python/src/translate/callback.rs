//! Callbacks.

use stratoscope_diagnostics::CellSpan;

use super::arguments::without_effect;
use super::reasons::callback_not_here;
use super::thing::{CallbackKind, Thing};
use super::{Translator, Why, text};
use crate::model::{Call, Kind, Value};

/// What `EarlyStopping` and `ModelCheckpoint` monitor unless they name something else.
const VALIDATION_LOSS: &str = "val_loss";

/// The arguments of a callback, with or without a name: their names, values and places.
type Given<'c> = Vec<(&'c str, &'c Value, CellSpan)>;

/// The arguments of a call by the names of its parameters in their order.
fn given<'c>(call: &'c Call, names: &[&'static str]) -> Result<Given<'c>, Why> {
    call.see_all();
    if call.arguments.len() > names.len() {
        return Err("the arguments of the callback are not all named".to_owned());
    }
    let unnamed = names.iter().zip(&call.arguments);
    let unnamed = unnamed.map(|(name, value)| (*name, value, value.span));
    let named = call.keywords.iter();
    let named = named.map(|it| (it.name.as_str(), &it.value, it.span));
    Ok(unnamed.chain(named).collect())
}

/// Whether a value is the better the lower it is.
pub(crate) fn is_better_low(monitored: &str) -> bool {
    let low = [
        "loss",
        "error",
        "mse",
        "mae",
        "rmse",
        "perplexity",
        "crossentropy",
    ];
    low.iter().any(|it| monitored.contains(it))
}

impl Translator<'_> {
    /// `tf.keras.callbacks.EarlyStopping(…)`.
    pub(crate) fn callback(&mut self, full: &str, call: &Call) -> Result<CallbackKind, Why> {
        let name = full.rsplit('.').next().unwrap_or_default();
        match name {
            "EarlyStopping" => self.early_stopping(call),
            "ModelCheckpoint" => self.model_checkpoint(call),
            "History" | "ProgbarLogger" | "TerminateOnNaN" | "BaseLogger" => {
                call.see_all();
                self.idle(call.span, "`fit!` does it without a callback");
                Ok(CallbackKind::Arguments(Vec::new()))
            }
            "CSVLogger" => self.log("CsvLogger", "filename", None, call),
            "TensorBoard" => self.log("TensorBoard", "log_dir", Some("logs"), call),
            other => Err(callback_not_here(other)
                .unwrap_or_else(|| format!("there is no callback `{other}` here"))),
        }
    }

    /// A path: a text, or the name of one.
    fn path(&mut self, value: &Value) -> Result<String, Why> {
        let is_text = value
            .name()
            .is_some_and(|name| matches!(self.things.get(name), Some(Thing::Text)));
        match value.text() {
            Some(path) => Ok(text::text(path)),
            None if is_text => self.value(value),
            None => Err("its path is not written out".to_owned()),
        }
    }

    /// A callback that writes to the path of one argument; the others are named.
    fn log(
        &mut self,
        name: &str,
        argument: &'static str,
        usual: Option<&str>,
        call: &Call,
    ) -> Result<CallbackKind, Why> {
        let mut path = usual.map(text::text);
        for (given, value, span) in given(call, &[argument])? {
            match without_effect(given, value) {
                _ if given == argument => path = Some(self.path(value)?),
                Some(why) => self.idle(span, why),
                None => self.leave(span, format!("`{name}` writes losses, metrics and rates")),
            }
        }
        let path = path.ok_or("it names no file")?;
        Ok(CallbackKind::Element(format!("{name}::new({path})?")))
    }

    /// `checkpoint` and `every` of `fit!`.
    fn model_checkpoint(&mut self, call: &Call) -> Result<CallbackKind, Why> {
        let names = [
            "filepath",
            "monitor",
            "verbose",
            "save_best_only",
            "save_weights_only",
            "mode",
            "save_freq",
        ];
        let mut arguments = Vec::new();
        for (name, value, span) in given(call, &names)? {
            match (name, &value.kind) {
                ("filepath", Kind::Text(path)) => {
                    let folder = folder(path);
                    self.note(
                        call.span,
                        format!(
                            "`checkpoint` names a folder: the weights of the last epoch are in `{folder}/last`, those of \
                             the best one in `{folder}/best`"
                        ),
                    );
                    arguments.insert(0, format!("checkpoint = {}", text::text(&folder)));
                }
                ("filepath", _) => {
                    arguments.insert(0, format!("checkpoint = {}", self.path(value)?))
                }
                ("monitor", Kind::Text(it)) if it == VALIDATION_LOSS => {
                    self.idle(span, "the best epoch is that of the lowest validation loss");
                }
                ("monitor", _) => self.leave(
                    span,
                    "the best epoch is that of the lowest validation loss, unless \
                     `early_stopping = EarlyStopping::new().monitor(…)` names another value",
                ),
                ("mode", Kind::Text(it)) if it == "auto" || it == "min" => {
                    self.idle(span, "a loss is the better the lower it is");
                }
                ("save_freq", Kind::Text(it)) if it == "epoch" => {
                    self.idle(span, "it is written after every epoch");
                }
                ("save_freq", Kind::Int(_) | Kind::Name(_)) => {
                    self.note(
                        span,
                        "`every` counts optimizer steps; at each a complete checkpoint is written",
                    );
                    arguments.push(format!("every = {}", self.value(value)?));
                }
                ("save_best_only" | "save_weights_only", _) => {
                    self.idle(
                        span,
                        "the best and the last epoch are stored, with all that loads them",
                    );
                }
                ("period", Kind::Int(it)) if it == "1" => {
                    self.idle(span, "it is written after every epoch");
                }
                _ => match without_effect(name, value) {
                    Some(why) => self.idle(span, why),
                    None => self.leave(span, format!("`checkpoint` has no `{name}` here")),
                },
            }
        }
        match arguments.first() {
            Some(first) if first.starts_with("checkpoint") => {
                Ok(CallbackKind::Arguments(arguments))
            }
            _ => Err("it names no file".to_owned()),
        }
    }

    fn early_stopping(&mut self, call: &Call) -> Result<CallbackKind, Why> {
        let names = [
            "monitor",
            "min_delta",
            "patience",
            "verbose",
            "mode",
            "baseline",
            "restore_best_weights",
        ];
        let mut written = "EarlyStopping::new()".to_owned();
        let (mut restores, mut monitored) = (false, VALIDATION_LOSS.to_owned());
        let mut mode = None;
        for (name, value, span) in given(call, &names)? {
            match name {
                "monitor" => {
                    let monitor = value
                        .text()
                        .ok_or("what it monitors is not written as a text")?;
                    monitored = monitor
                        .replace("_acc", "_accuracy")
                        .replace("_accuracyuracy", "_accuracy");
                    written += &format!(".monitor({})", text::text(&monitored));
                }
                "patience" => {
                    // Keras stops after the same epoch with 0 as with 1, which is the least here.
                    let patience = match self.integer(value) {
                        Some(0) => {
                            self.idle(span, "as in Keras, 0 stops after the same epoch as 1");
                            "1".to_owned()
                        }
                        _ => self.value(value)?,
                    };
                    written += &format!(".patience({patience})");
                }
                "min_delta" => written += &format!(".min_delta({})", self.float(value)?),
                "restore_best_weights" => match value.kind {
                    Kind::Bool(given) => {
                        restores = given;
                        if given {
                            self.idle(span, "the best weights are restored by default");
                        }
                    }
                    _ => return Err(format!("`{name}` is not written as `True` or `False`")),
                },
                "mode" => mode = Some((value.text().unwrap_or_default(), span)),
                _ => match without_effect(name, value) {
                    Some(why) => self.idle(span, why),
                    None => return Err(format!("`EarlyStopping` has no `{name}` here")),
                },
            }
        }
        if let Some((mode, span)) = mode {
            let is_low = is_better_low(&monitored);
            match mode {
                "auto" => self.idle(span, "the direction follows from what is monitored"),
                "min" | "max" if is_low == (mode == "min") => {
                    self.idle(span, "the direction follows from what is monitored");
                }
                _ => {
                    let word = if is_low { "lower" } else { "higher" };
                    let why = format!("`{monitored}` is the better the {word} it is here");
                    self.leave(span, why);
                }
            }
        }
        if !restores {
            written += ".restore_best_weights(false)";
        }
        Ok(CallbackKind::Element(written))
    }

    /// The callbacks of a list; those that are not here are named and left out, the others stay.
    pub(crate) fn listed_callbacks(&mut self, value: &Value) -> Vec<CallbackKind> {
        if let Kind::Binary(left, "+", right) = &value.kind {
            let mut all = self.listed_callbacks(left);
            all.extend(self.listed_callbacks(right));
            return all;
        }
        let one = [value.clone()];
        let values = value.elements().unwrap_or(&one).to_vec();
        let mut kinds = Vec::new();
        for value in &values {
            let thing = value.name().and_then(|name| self.things.get(name).cloned());
            let found = match (thing, value.name()) {
                (Some(Thing::Callbacks(all)), name) => {
                    self.callbacks_taken.extend(name.map(str::to_owned));
                    kinds.extend(all);
                    continue;
                }
                // A callback by its name, as its own line has made it.
                (Some(Thing::Callback(CallbackKind::Element(made))), Some(name)) => {
                    // Those that write to a file cannot be cloned.
                    let is_copied = made.starts_with("EarlyStopping") && self.is_moved_again(name);
                    let copy = if is_copied { ".clone()" } else { "" };
                    Ok(CallbackKind::Element(text::name(name) + copy))
                }
                (Some(Thing::Callback(kind)), name) => {
                    self.callbacks_taken.extend(name.map(str::to_owned));
                    Ok(kind)
                }
                _ => self.called_callback(value),
            };
            match found {
                Ok(kind) => kinds.push(kind),
                Err(why) => {
                    self.leave(value.span, why);
                    self.leave_arguments_of(value);
                }
            }
        }
        kinds
    }

    fn called_callback(&mut self, value: &Value) -> Result<CallbackKind, Why> {
        // What Keras has and this product has not is the cause, whatever it is given.
        let full = self.names.called(value).unwrap_or_default();
        if let Some(why) = full
            .strip_prefix("keras.callbacks.")
            .and_then(callback_not_here)
        {
            return Err(why);
        }
        let mut missing = None;
        value.visit(&mut |inner| {
            missing = missing
                .take()
                .or(inner.name().and_then(|name| self.missing(name)));
        });
        if let Some(why) = missing {
            return Err(why);
        }
        match self.names.called(value).zip(value.call()) {
            Some((full, call)) if full.starts_with("keras.callbacks.") => {
                self.callback(&full, call)
            }
            _ => Err("it is no callback that is known from the cell".to_owned()),
        }
    }

    /// The argument `callbacks` as arguments of `fit!`.
    pub(crate) fn callbacks(&mut self, value: &Value) -> Vec<String> {
        let (mut elements, mut arguments) = (Vec::new(), Vec::new());
        for kind in self.listed_callbacks(value) {
            match kind {
                CallbackKind::Element(element) => match self.never_stops(&element) {
                    Some(why) => self.leave(value.span, why),
                    None => elements.push(element),
                },
                CallbackKind::Arguments(more) if arguments.is_empty() || more.is_empty() => {
                    arguments.extend(more);
                }
                CallbackKind::Arguments(_) => self.leave(
                    value.span,
                    "`fit!` writes one folder of checkpoints: the second `ModelCheckpoint` is left out",
                ),
            }
        }
        if !elements.is_empty() {
            arguments.insert(0, format!("callbacks = [{}]", elements.join(", ")));
        }
        arguments
    }

    /// Why an early stopping of a `fit` without validation data is left out: it compares epochs by what no epoch has.
    fn never_stops(&self, element: &str) -> Option<Why> {
        if self.is_validated {
            return None;
        }
        let made = match self.things.get(element.trim_end_matches(".clone()")) {
            Some(Thing::Callback(CallbackKind::Element(made))) => made,
            _ => element,
        };
        let settings = made.strip_prefix("EarlyStopping::new()")?;
        let monitored = match settings.split_once(".monitor(\"") {
            Some((_, rest)) => rest.split('"').next()?,
            None => VALIDATION_LOSS,
        };
        monitored.starts_with("val_").then(|| {
            format!(
                "`{made}` compares epochs by `{monitored}`, and this `fit` has no validation data: Keras warns after each epoch \
                 and never stops, and `fit!` refuses it. Write it with `validation_data = dev` or `validation_split = 0.2`"
            )
        })
    }

    /// Whether a value is a list of callbacks, or is given to `callbacks`.
    pub(crate) fn is_list_of_callbacks(&self, name: &str, value: &Value) -> bool {
        let Some(elements) = value.elements() else {
            return false;
        };
        let is_of_keras = |it: &Value| {
            let full = self.names.called(it);
            full.is_some_and(|full| full.starts_with("keras.callbacks."))
        };
        self.roles.get(name).is_some_and(|role| role == "callbacks")
            || elements.iter().any(is_of_keras)
    }

    /// `calls.append(EarlyStopping())`, `calls += […]`: `None` where it is no list of callbacks.
    pub(crate) fn add_callbacks(&mut self, list: &Value, more: &Value) -> Option<Result<(), Why>> {
        let name = list.name()?;
        let Some(Thing::Callbacks(mut all)) = self.things.get(name).cloned() else {
            return None;
        };
        if let Err(why) = self.keeps_outside(name) {
            return Some(Err(why));
        }
        all.extend(self.listed_callbacks(more));
        self.things.insert(name.to_owned(), Thing::Callbacks(all));
        Some(Ok(()))
    }
}

/// A folder by the name of a checkpoint file: `best.keras` is `best`.
pub(crate) fn folder(path: &str) -> String {
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
