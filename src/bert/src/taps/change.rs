//! Changing what layers put out: an ablated head, a scaled layer, the activations of another text.
//!
//! A [`Change`] names an output and what becomes of its numbers; [`Changes`] are in force for the passes of a thread
//! ([`Changes::during`]), beside its taps, which see the changed numbers. Where a pass has none, nothing is computed
//! for them. An output that no change names keeps its bits.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use stratoscope_bert::taps::{Changes, Selection, tap};
//!
//! let mut all = Vec::new();
//! Selection::of_output(&mut all, "hidden").example(1).scale(0.0);
//! let changes = Changes::new(all, &[0, 1]);
//! let layer = || tap("hidden", Tensor::<2>::ones([2, 3], &Device::flex()));
//! assert_eq!(changes.during(layer).sum().into_scalar::<f32>(), 3.0);
//! assert_eq!(layer().sum().into_scalar::<f32>(), 6.0);
//! ```

use std::fmt;
use std::sync::Arc;

use burn::tensor::{Bool, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{CURRENT, Current, run_with};

/// The output of an encoder layer.
pub fn of_layer(layer: usize) -> String {
    format!("layer.{layer}.output")
}

/// The outputs of the heads of an encoder layer, side by side.
pub fn of_heads(layer: usize) -> String {
    format!("layer.{layer}.attention.self")
}

/// What the encoder begins with.
pub const EMBEDDINGS: &str = "embeddings";

/// A number as its bits, so that what is written is read again as the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number(u32);

impl From<f32> for Number {
    fn from(number: f32) -> Self {
        Self(number.to_bits())
    }
}

impl From<Number> for f32 {
    fn from(number: Number) -> Self {
        Self::from_bits(number.0)
    }
}

/// What becomes of the numbers of an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum NewValue {
    /// Multiplied with this.
    Scale(Number),
    /// This number instead of each.
    Set(Number),
    /// The numbers of the same positions of another pass: of its example, and none where that is shorter.
    #[serde(skip)]
    Copy(Arc<Activations>),
}

/// What a pass has computed for one example: rows of positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activations {
    /// The text of the example, as far as it is to be shown; empty if it is not known.
    pub of: String,
    /// Numbers of a position.
    pub width: usize,
    /// Position after position.
    pub elements: Vec<f32>,
}

/// A change of an output, or of a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The name of the output, or its end behind a dot: `layer.3.output`.
    pub output: String,
    /// One head of it; `None`: all.
    pub head: Option<usize>,
    /// One position of each sequence; `None`: all.
    pub token: Option<usize>,
    /// One example, by its number among those of the pass; `None`: all.
    pub example: Option<usize>,
    /// What becomes of the numbers.
    pub value: NewValue,
}

impl fmt::Display for Change {
    /// `layer 3, head 5 × 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_layer = self.output.strip_prefix("layer.");
        let layer = of_layer.and_then(|rest| {
            let layer = rest.strip_suffix(".attention.self");
            layer.or_else(|| rest.strip_suffix(".output"))
        });
        match layer {
            Some(layer) => write!(f, "layer {layer}")?,
            None => write!(f, "`{}`", self.output)?,
        }
        let parts = [
            ("head", self.head),
            ("token", self.token),
            ("example", self.example),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                write!(f, ", {name} {part}")?;
            }
        }
        match &self.value {
            NewValue::Scale(factor) => write!(f, " × {}", f32::from(*factor)),
            NewValue::Set(number) => write!(f, " = {}", f32::from(*number)),
            NewValue::Copy(other) if other.of.is_empty() => f.write_str(" = that of another text"),
            NewValue::Copy(other) => write!(f, " = that of “{}”", other.of),
        }
    }
}

/// A part of an output that is being chosen: `it.layer(3).token(2).scale(0.5)`.
#[derive(Debug)]
#[must_use = "say what becomes of it: `.scale(0.0)` or `.set(0.0)`"]
pub struct Selection<'a> {
    changes: &'a mut Vec<Change>,
    output: String,
    head: Option<usize>,
    token: Option<usize>,
    example: Option<usize>,
}

impl<'a> Selection<'a> {
    /// An output by its name, or by the end of its name.
    pub fn of_output(changes: &'a mut Vec<Change>, name: impl Into<String>) -> Self {
        Self {
            changes,
            output: name.into(),
            head: None,
            token: None,
            example: None,
        }
    }

    /// The output of an encoder layer, counted from 0.
    pub fn of_layer(changes: &'a mut Vec<Change>, layer: usize) -> Self {
        Self::of_output(changes, of_layer(layer))
    }

    /// The output of one attention head, before the heads are mixed; both counted from 0.
    pub fn of_head(changes: &'a mut Vec<Change>, layer: usize, head: usize) -> Self {
        Self {
            head: Some(head),
            ..Self::of_output(changes, of_heads(layer))
        }
    }

    /// Only one position of each sequence, counted from 0: that of `[CLS]`.
    pub fn token(self, token: usize) -> Self {
        let token = Some(token);
        Self { token, ..self }
    }

    /// Only one example, counted from 0.
    pub fn example(self, example: usize) -> Self {
        let example = Some(example);
        Self { example, ..self }
    }

    /// Multiplies the numbers: 0 ablates.
    pub fn scale(self, factor: impl Into<f64>) {
        let factor = factor.into() as f32;
        self.becomes(NewValue::Scale(factor.into()));
    }

    /// Puts this number in place of each.
    pub fn set(self, number: impl Into<f64>) {
        let number = number.into() as f32;
        self.becomes(NewValue::Set(number.into()));
    }

    /// Adds the change.
    pub fn becomes(self, value: NewValue) {
        self.changes.push(Change {
            output: self.output,
            head: self.head,
            token: self.token,
            example: self.example,
            value,
        });
    }
}

/// Changes that are in force in a pass, and the numbers of its examples in their order.
#[derive(Clone, Debug)]
pub struct Changes {
    list: Arc<[Change]>,
    examples: Arc<[usize]>,
}

impl Changes {
    /// These changes for a pass over examples with these numbers.
    pub fn new(list: impl Into<Arc<[Change]>>, examples: &[usize]) -> Self {
        Self {
            list: list.into(),
            examples: examples.into(),
        }
    }

    /// Runs a pass on this thread with these changes. Taps that the thread has stay in force.
    pub fn during<T>(&self, pass: impl FnOnce() -> T) -> T {
        let (taps, path) = CURRENT.with_borrow(|current| {
            let current = current.as_ref();
            let path = current.map_or_else(String::new, |it| it.path.clone());
            (current.and_then(|it| it.taps.clone()), path)
        });
        let changes = Some(self.clone());
        run_with(
            Current {
                taps,
                changes,
                path,
            },
            pass,
        )
    }

    /// Those of an output.
    fn of(&self, name: &str) -> Vec<&Change> {
        let all = self.list.iter();
        all.filter(|change| is_named(name, &change.output))
            .collect()
    }
}

/// Whether an output has this name, or a name that ends with it behind a dot.
pub fn is_named(name: &str, end: &str) -> bool {
    let rest = name.strip_suffix(end);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The output of the part that is running, as the changes of this thread make it. `heads`: how many heads are side by side.
pub(super) fn changed<const D: usize>(heads: usize, x: Tensor<D>) -> Tensor<D> {
    let found = CURRENT.with_borrow(|current| {
        let current = current.as_ref()?;
        let changes = current.changes.as_ref()?;
        let own = changes.of(&current.path);
        let own: Vec<Change> = own.into_iter().cloned().collect();
        (!own.is_empty()).then(|| (own, Arc::clone(&changes.examples)))
    });
    match found {
        None => x,
        Some((changes, examples)) => Plan::of(&x.dims(), heads, &changes, &examples).applied(x),
    }
}

/// What each number of an output becomes: `x · factor`, or a new one.
struct Plan {
    factors: Vec<f32>,
    is_new: Vec<bool>,
    new: Vec<f32>,
}

impl Plan {
    /// Dimensions: examples × choices, positions (one where there are only two dimensions), numbers.
    fn of(shape: &[usize], heads: usize, changes: &[Change], examples: &[usize]) -> Self {
        let count: usize = shape.iter().product();
        let mut plan = Self {
            factors: vec![1.0; count],
            is_new: vec![false; count],
            new: vec![0.0; count],
        };
        let (Some(&rows), Some(&width)) = (shape.first(), shape.last()) else {
            return plan;
        };
        let positions = count / (rows * width).max(1);
        let choices = (rows / examples.len().max(1)).max(1);
        for change in changes {
            let columns = match change.head {
                Some(head) => head * width / heads..(head + 1) * width / heads,
                None => 0..width,
            };
            for row in 0..rows {
                let example = examples.get(row / choices);
                if change.example.is_some_and(|it| example != Some(&it)) {
                    continue;
                }
                let tokens = match change.token {
                    Some(token) => token..(token + 1).min(positions),
                    None => 0..positions,
                };
                for token in tokens {
                    let start = (row * positions + token) * width;
                    for column in columns.clone().take_while(|&column| column < width) {
                        plan.change(start + column, (token, column), &change.value);
                    }
                }
            }
        }
        plan
    }

    fn change(&mut self, at: usize, (token, column): (usize, usize), value: &NewValue) {
        match value {
            NewValue::Scale(factor) => {
                self.factors[at] *= f32::from(*factor);
                self.new[at] *= f32::from(*factor);
            }
            NewValue::Set(number) => {
                (self.is_new[at], self.new[at]) = (true, f32::from(*number));
            }
            NewValue::Copy(other) => {
                let found = other.elements.get(token * other.width + column);
                if let Some(&number) = found.filter(|_| column < other.width) {
                    (self.is_new[at], self.new[at]) = (true, number);
                }
            }
        }
    }

    /// The changed output, with the gradients of what was not replaced.
    fn applied<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        let (shape, device, dtype) = (x.dims(), x.device(), x.dtype());
        let mut x = x;
        if self.factors.iter().any(|&factor| factor != 1.0) {
            let factors = TensorData::new(self.factors, shape);
            x = x * Tensor::<D>::from_data(factors, &device).cast(dtype);
        }
        // A number that is not finite stays one when it is multiplied by 0: what is replaced is not computed with.
        if self.is_new.contains(&true) {
            let mask: Tensor<D, Bool> =
                Tensor::from_data(TensorData::new(self.is_new, shape), &device);
            let new = Tensor::<D>::from_data(TensorData::new(self.new, shape), &device);
            x = x.mask_where(mask, new.cast(dtype));
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use burn::tensor::Device;

    use super::super::{Taps, output_of_heads, tap, within};
    use super::*;

    fn numbers<const D: usize>(x: Tensor<D>) -> Vec<f32> {
        x.into_data().iter::<f32>().collect()
    }

    /// Two examples of two positions of four numbers, of two heads.
    fn heads() -> Tensor<3> {
        let x = Tensor::<1>::from_floats([1.0; 16], &Device::flex()).reshape([2, 2, 4]);
        within("encoder", || {
            within("layer.1.attention.self", || output_of_heads(2, x))
        })
    }

    #[test]
    fn heads_tokens_and_examples_are_chosen() {
        let mut list = Vec::new();
        Selection::of_head(&mut list, 1, 1)
            .token(0)
            .example(7)
            .scale(3.0);
        Selection::of_head(&mut list, 1, 0)
            .token(1)
            .example(7)
            .set(f32::NAN);
        Selection::of_head(&mut list, 2, 0).scale(0.0);
        let changes = Changes::new(list, &[5, 7]);
        let found = numbers(changes.during(heads));
        assert_eq!(
            found[..12],
            [[1.0; 8].as_slice(), &[1.0, 1.0, 3.0, 3.0]].concat()
        );
        assert!(found[12..14].iter().all(|it| it.is_nan()) && found[14..] == [1.0; 2]);
        assert_eq!(numbers(heads()), [1.0; 16], "without changes");
    }

    #[test]
    fn what_is_replaced_has_no_gradient_and_may_be_no_number() {
        let device = Device::flex().autodiff();
        let x = Tensor::<2>::from_floats([[f32::NAN, 2.0]], &device).require_grad();
        let mut list = Vec::new();
        Selection::of_output(&mut list, "a").scale(2.0);
        let copied = Activations {
            of: "a text".to_owned(),
            width: 2,
            elements: vec![5.0],
        };
        Selection::of_output(&mut list, "a").becomes(NewValue::Copy(Arc::new(copied)));
        assert_eq!(list[1].to_string(), "`a` = that of “a text”");
        let y = Changes::new(list, &[0]).during(|| tap("a", x.clone()));
        assert_eq!(numbers(y.clone()), [5.0, 4.0]);
        let gradients = y.sum().backward();
        let slope = numbers(x.grad(&gradients).expect("a leaf"));
        assert_eq!(slope, [0.0, 2.0]);
    }

    #[test]
    fn taps_see_the_changed_numbers_whichever_comes_first() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let taps = Taps::new(
            |_| true,
            move |_, _, x| {
                sink.lock()
                    .expect("no panic")
                    .push(x.sum().into_scalar::<f32>())
            },
        );
        let mut list = Vec::new();
        Selection::of_head(&mut list, 1, 0).scale(0.0);
        let changes = Changes::new(list, &[0, 1]);
        taps.during(|| changes.during(heads));
        changes.during(|| taps.during(heads));
        taps.during(heads);
        assert_eq!(*seen.lock().expect("no panic"), [8.0, 8.0, 16.0]);
    }

    #[test]
    fn changes_are_written_as_they_are_read_and_named() {
        let mut list = Vec::new();
        Selection::of_head(&mut list, 3, 5).scale(0.1_f32);
        Selection::of_layer(&mut list, 2)
            .token(4)
            .example(1)
            .set(-1);
        Selection::of_output(&mut list, "dense_1").scale(0.5);
        let text = serde_json::to_string(&list).expect("text");
        let read: Vec<Change> = serde_json::from_str(&text).expect("what was written");
        assert_eq!(read, list);
        let names: Vec<String> = list.iter().map(Change::to_string).collect();
        assert_eq!(
            names,
            [
                "layer 3, head 5 × 0.1",
                "layer 2, token 4, example 1 = -1",
                "`dense_1` × 0.5"
            ]
        );
        assert!(is_named("bert.encoder.layer.3.output", "layer.3.output"));
        assert!(!is_named("bert.encoder.layer.13.output", "3.output.x"));
        assert!(!is_named("encoder.layer.13.output", "layer.3.output"));
    }
}
