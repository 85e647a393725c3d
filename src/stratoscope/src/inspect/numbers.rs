//! Tensors and the variables of models: shape and type in one line, statistics and rows when they unfold. The numbers are
//! read from the device only then.

use std::cell::OnceCell;

use burn::tensor::{Tensor, TensorData, kind};
use stratoscope_strategy::device::name_of;
use stratoscope_wire::MimeBundle;

use super::{Leaf, View};
use crate::display::tensor::{number, statistics};
use crate::display::{IntoBundle, plain};

/// What the child with the statistics is called.
const STATISTICS: &str = "statistics";

/// Numbers that are read when they are asked for.
pub(crate) struct Numbers<'a> {
    line: String,
    shape: Vec<usize>,
    read: Box<dyn Fn() -> Option<TensorData> + 'a>,
    rich: Box<dyn Fn() -> MimeBundle + 'a>,
    values: OnceCell<Option<Values>>,
}

/// The numbers, in the order of their positions.
struct Values {
    numbers: Vec<f64>,
    is_whole: bool,
    is_bool: bool,
}

impl<'a> Numbers<'a> {
    /// Numbers of this shape; `read` reads them and returns nothing where that is impossible now.
    pub(crate) fn new(
        line: String,
        shape: Vec<usize>,
        read: impl Fn() -> Option<TensorData> + 'a,
    ) -> Self {
        let shown = line.clone();
        Self {
            line,
            shape,
            read: Box::new(read),
            rich: Box::new(move || plain(shown.clone())),
            values: OnceCell::new(),
        }
    }

    /// A tensor.
    pub(crate) fn of_tensor<const D: usize, K: kind::Basic>(tensor: &'a Tensor<D, K>) -> Self {
        let shape = tensor.shape().to_vec();
        let dtype = format!("{:?}", tensor.dtype()).to_lowercase();
        let line = format!("{shape:?} {dtype} on {}", name_of(&tensor.device()));
        Self {
            rich: Box::new(|| tensor.bundle()),
            ..Self::new(line, shape, || Some(tensor.to_data()))
        }
    }

    fn values(&self) -> Option<&Values> {
        let read = || {
            let data = (self.read)()?;
            let dtype = format!("{:?}", data.dtype()).to_lowercase();
            Some(Values {
                is_whole: !dtype.starts_with('f') && !dtype.starts_with("bf"),
                is_bool: dtype.starts_with("bool"),
                numbers: data.iter::<f64>().collect(),
            })
        };
        self.values.get_or_init(read).as_ref()
    }

    fn statistics(&self) -> Leaf {
        Leaf::new(match self.values() {
            None => NOT_NOW.to_owned(),
            Some(values) if values.is_bool => {
                let count = values.numbers.iter().filter(|it| **it != 0.0).count();
                format!("{count} of {} are true", values.numbers.len())
            }
            Some(values) => statistics(&values.numbers).trim_end().to_owned(),
        })
    }
}

/// Numbers that cannot be read.
const NOT_NOW: &str = "(in use: a call has the model)";

impl View for Numbers<'_> {
    fn line(&self) -> String {
        self.line.clone()
    }

    fn named(&self) -> usize {
        usize::from(self.shape.iter().product::<usize>() > 0)
    }

    fn indexed(&self) -> usize {
        match self.named() {
            0 => 0,
            _ => self.shape.first().copied().unwrap_or(0),
        }
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        let Some(row) = position.checked_sub(self.named()) else {
            return Some((STATISTICS.to_owned(), Box::new(self.statistics())));
        };
        match self.values() {
            Some(values) => {
                let all = Rows {
                    values,
                    shape: &self.shape,
                    start: 0,
                };
                all.row(row)
            }
            None => Some((format!("[{row}]"), Box::new(Leaf::new(NOT_NOW)))),
        }
    }

    fn rich(&self) -> MimeBundle {
        (self.rich)()
    }
}

/// A part of the numbers: those at the first positions of the outer dimensions.
struct Rows<'a> {
    values: &'a Values,
    shape: &'a [usize],
    start: usize,
}

impl<'a> Rows<'a> {
    fn row(&self, position: usize) -> Option<(String, Box<dyn View + 'a>)> {
        let (&length, inner) = self.shape.split_first()?;
        let stride: usize = inner.iter().product();
        let row = Rows {
            values: self.values,
            shape: inner,
            start: self.start + position * stride,
        };
        (position < length).then(|| {
            let name = format!("[{position}]");
            let row: Box<dyn View + 'a> = Box::new(row);
            (name, row)
        })
    }

    fn shown(&self, number_at: usize) -> String {
        match self.values.numbers.get(number_at) {
            None => String::new(),
            Some(value) if self.values.is_bool => (*value != 0.0).to_string(),
            Some(value) if self.values.is_whole => value.to_string(),
            Some(value) => number(*value),
        }
    }
}

/// Numbers of a row that are in its line.
const IN_LINE: usize = 6;

impl View for Rows<'_> {
    fn line(&self) -> String {
        let count: usize = self.shape.iter().product();
        if self.shape.is_empty() {
            return self.shown(self.start);
        }
        let numbers = (self.start..self.start + count.min(IN_LINE)).map(|at| self.shown(at));
        let numbers: Vec<String> = numbers.collect();
        let rest = if count > IN_LINE { ", …" } else { "" };
        match self.shape {
            [_] => format!("[{}{rest}]", numbers.join(", ")),
            shape => format!("{shape:?}: {}{rest}", numbers.join(", ")),
        }
    }

    fn indexed(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    fn child(&self, position: usize) -> Option<(String, Box<dyn View + '_>)> {
        self.row(position)
    }
}
