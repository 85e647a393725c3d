//! The likely cause of a value that is not finite, by the operation that made it and by what it took; and what helps.

use stratoscope_data::Batch;
use stratoscope_render::text;

use super::super::Inspection;
use super::super::trace::Tapped;

use stratoscope_optim::Clipping;
use stratoscope_report::html::rate;
use stratoscope_report::inspection::{Statistics, layer_of};

/// The largest number of float16.
const LARGEST_F16: f64 = 65_504.0;
/// Weights and outputs beyond this have grown: a trained network has none.
const GROWN: f64 = 1e6;
/// The exponential of more is infinite in float32.
const LARGEST_EXPONENT: f64 = 88.0;
/// The squares of smaller numbers are 0 in float32, or nearly.
const TINY: f64 = 1e-19;
/// Scores that are masked are lower than this, and no number of the network.
const MASKED: f64 = -1e37;

/// Operations of the layers that cannot divide, take a root or a logarithm.
const PLAIN: [&str; 21] = [
    "add bias",
    "add input",
    "center",
    "dropout",
    "elu",
    "error",
    "gate",
    "GELU",
    "leaky relu",
    "look up",
    "mask",
    "mean",
    "mean over tokens",
    "pick by label",
    "relu",
    "rotate",
    "scale",
    "silu",
    "softplus",
    "tanh",
    "variance",
];

/// A value that is not finite, and what it was computed from.
pub(super) struct Case<'a> {
    pub part: &'a Batch,
    pub made: &'a Tapped,
    pub inputs: Vec<&'a Tapped>,
    pub value: f64,
}

/// The largest size of an element that is no mask.
pub(super) fn largest(statistics: &Statistics) -> f64 {
    // A NaN stands for no finite element.
    let low = match statistics.min < MASKED {
        true => 0.0,
        false => statistics.min.abs(),
    };
    low.max(statistics.max.abs())
}

/// Causes with their fixes.
#[derive(Default)]
struct Found(Vec<(String, String)>);

impl Found {
    fn add(&mut self, cause: impl Into<String>, fix: impl Into<String>) {
        self.0.push((cause.into(), fix.into()));
    }

    fn unzipped(self) -> (Vec<String>, Vec<String>) {
        self.0.into_iter().unzip()
    }
}

/// Whether an operation of this name may be one of these. Names that say nothing may be any.
fn may_be(operation: Option<&str>, words: &[&str]) -> bool {
    const ALL: [&str; 10] = [
        "div", "quotient", "share", "log", "root", "sqrt", "exp", "power", "product", "sum",
    ];
    let Some(operation) = operation else {
        return true;
    };
    let name = operation.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(words) || !(has(&ALL) || PLAIN.contains(&operation))
}

impl Inspection<'_> {
    /// Likely causes of a value of the forward pass, the most likely first, and what helps.
    pub(super) fn causes(&self, case: &Case<'_>) -> (Vec<String>, Vec<String>) {
        let mut found = Found::default();
        let made = &case.made.row.statistics;
        let range = case.inputs.iter().map(|it| largest(&it.row.statistics));
        let range = range.fold(0.0, f64::max);
        let weight = self.largest_weight(case.made);
        let half = self.step.policy.precision().half().is_some();
        let rounds = case.made.operation.as_deref() == Some("round to 16 bits");
        let is_wide = case.value.is_infinite() || largest(made) > 0.01 * LARGEST_F16;
        if rounds || (half && is_wide && weight < GROWN && case.made.operation.is_none()) {
            let reached = match rounds {
                true => range,
                false => largest(made),
            };
            found.add(
                format!("a number beyond float16, which ends at 65 504: the numbers here reach {reached:.3e}"),
                "use `mixed_bfloat16`, which has the range of float32, or float32",
            );
        }
        let is_masked = |it: &Tapped| it.bad.is_some() && !it.is_harmful();
        if case.inputs.iter().copied().any(is_masked) && case.value.is_nan() {
            found.add(
                "a softmax of a line that is −∞ everywhere: nothing is left to attend to",
                "mask with a large finite number, such as −1e9, or leave lines without a token out",
            );
        }
        if found.0.is_empty() && (weight >= GROWN || range >= GROWN) {
            self.grown(case.part, (weight, range), &mut found);
        }
        if found.0.is_empty() {
            by_ranges(case, &mut found);
        }
        if found.0.is_empty() {
            found.add(
                "an operation of the layer that has no finite result for this input",
                "write the operations of the layer as `operation!(\"name\", [inputs], …)`, or hand out what it computes on \
                 its way with `tap(\"name\", tensor)`, and ask again",
            );
        }
        found.unzipped()
    }

    /// The largest weight of the part of the network that something is of.
    fn largest_weight(&self, made: &Tapped) -> f64 {
        let weights = self.weights();
        let of = |name: &str| {
            let row = weights.get(name);
            row.map_or(0.0, |row| largest(&row.statistics))
        };
        of(&made.part).max(of(layer_of(&made.part)))
    }

    /// Numbers that are too large: by the data, by the weights that were loaded, or by training.
    fn grown(&self, part: &Batch, (weight, range): (f64, f64), found: &mut Found) {
        let reached = format!("weights of the layer reach {weight:.3e}, its input {range:.3e}");
        let features = part.features.iter().enumerate();
        let feature = features.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        if let Some((at, &feature)) = feature.filter(|it| f64::from(it.1.abs()) >= GROWN) {
            let width = part.width().max(1);
            found.add(
                format!(
                    "a bad input: feature {} of row {} is {feature:.3e}",
                    at % width,
                    part.rows[at / width]
                ),
                "correct or remove the row, and bring features to about −1 to 1 before training",
            );
        }
        if self.step.steps == 0 && weight >= GROWN {
            found.add(
                format!("a bad weight before the first step: {reached}"),
                "load another checkpoint, or initialize the layer again",
            );
        }
        let clips = !matches!(self.settings.compiled.optimizer.clipping, Clipping::None);
        let rate = rate(self.step.rate(self.settings));
        let (clipped, fix) = match clips {
            true => ("", format!("lower the learning rate, now {rate}")),
            false => (
                ", and gradients are not clipped",
                format!("lower the learning rate, now {rate}, and set `global_clipnorm(1.0)`"),
            ),
        };
        found.add(
            format!("numbers that have grown: {reached}{clipped}"),
            format!("{fix}; go back to a step before they grew"),
        );
    }

    /// Likely causes of a gradient: `taken` is what the operation took in the forward pass, `above` the gradient that came
    /// to it.
    pub(super) fn causes_of_gradient(
        &self,
        taken: &[&Tapped],
        above: Option<&Tapped>,
    ) -> (Vec<String>, Vec<String>) {
        let mut found = Found::default();
        if self.step.loss_scale.skips() {
            found.add(
                format!(
                    "float16 overflows under the scale of the loss, {:.0}",
                    self.step.loss_scale.scale()
                ),
                "nothing: the step will be skipped and the scale halved; `mixed_bfloat16` needs no scale",
            );
            return found.unzipped();
        }
        let zeros: u64 = taken.iter().map(|it| it.row.statistics.zeros).sum();
        let range = taken.iter().chain(above.as_ref());
        let range = range.map(|it| largest(&it.row.statistics));
        let range = range.fold(0.0, f64::max);
        if zeros > 0 {
            found.add(
                format!(
                    "a slope that is infinite: of a root, a logarithm or a division at 0, which {} of its input are",
                    text::count(zeros as usize, "element")
                ),
                "add a small number below a root or a logarithm, or clamp its input",
            );
        }
        let least = taken.iter().map(|it| largest(&it.row.statistics));
        let least = least.fold(f64::INFINITY, f64::min);
        if least > 0.0 && least < TINY {
            found.add(
                format!("a division by numbers so small that their squares are 0: they reach {least:.3e}"),
                "add a small number to what is divided by, or clamp it",
            );
        }
        if range >= GROWN {
            found.add(
                format!("a product of large numbers: values and gradients reach {range:.3e}"),
                "lower the learning rate and set `global_clipnorm(1.0)`; bring inputs and targets to about −1 to 1",
            );
        }
        if found.0.is_empty() {
            found.add(
                "a slope that is infinite: of a root or a logarithm at 0, or of numbers that are too large",
                "add a small number below a root or a logarithm; lower the learning rate",
            );
        }
        found.unzipped()
    }
}

/// What the ranges of the inputs say of the usual operations that have no finite result for some numbers.
fn by_ranges(case: &Case<'_>, found: &mut Found) {
    let operation = case.made.operation.as_deref();
    let zeros: u64 = case.inputs.iter().map(|it| it.row.statistics.zeros).sum();
    if zeros > 0 && may_be(operation, &["div", "quotient", "share", "log"]) {
        let what = match operation.map(str::to_lowercase) {
            Some(name) if name.contains("log") => "a logarithm of 0",
            Some(name)
                if ["div", "quotient", "share"]
                    .iter()
                    .any(|it| name.contains(it)) =>
            {
                "a division by 0"
            }
            _ => "a division by 0 or a logarithm of 0",
        };
        found.add(
            format!(
                "{what}: {} of its input are 0",
                text::count(zeros as usize, "element")
            ),
            "add a small number to what is divided by, or clamp it",
        );
    }
    let low = case.inputs.iter().map(|it| it.row.statistics.min);
    let low = low.fold(f64::INFINITY, f64::min);
    if case.value.is_nan() && low < 0.0 && may_be(operation, &["root", "sqrt", "log", "power"]) {
        found.add(
            format!("a root or a logarithm of a negative number: its input begins at {low:.3e}"),
            "clamp the input at 0",
        );
    }
    let high = case.inputs.iter().map(|it| it.row.statistics.max);
    let high = high.fold(f64::NEG_INFINITY, f64::max);
    if high > LARGEST_EXPONENT && may_be(operation, &["exp", "power"]) {
        found.add(
            format!("an exponential of more than 88: its input reaches {high:.3e}"),
            "subtract the maximum before the exponential, as a softmax does",
        );
    }
}
