//! Charts of any numbers: `plot(&losses)?`, `scatter(&xs, &ys)?`, `histogram(&lengths)?`, `heatmap(&attention)?`.
//!
//! A chart is shown where it is the last expression of a cell, and by `display(&chart)` anywhere else. It is drawn by
//! `render`; here numbers become its values.

use burn::tensor::{Tensor, kind};
use stratoscope_diagnostics::rules::{ChartLengthsDiffer, InvalidSize, NothingToDraw};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_render::chart::{self, Content, Series};
use stratoscope_wire::MimeBundle;

use crate::display::{IntoBundle, plain, svg};

/// A chart that can be shown.
#[derive(Clone, Debug)]
#[must_use = "a chart is shown where it is the cell's last expression, without `;`, or by `display(&chart)`"]
pub struct Chart {
    drawn: chart::Chart,
    /// The values of a histogram, for another number of bins.
    values: Vec<f64>,
}

/// A number that a chart can draw.
pub trait Number: Copy {
    /// The number; the closest one where it has more digits.
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($kind:ty)*) => {
        $(impl Number for $kind {
            fn number(self) -> f64 {
                self as f64
            }
        })*
    };
}

numbers!(f32 f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// A list of numbers: a slice, an array, a `Vec` or a tensor of one dimension.
pub trait Values {
    /// The numbers.
    fn values(&self) -> Vec<f64>;
}

impl<T: Number> Values for [T] {
    fn values(&self) -> Vec<f64> {
        self.iter().map(|value| value.number()).collect()
    }
}

impl<T: Number, const N: usize> Values for [T; N] {
    fn values(&self) -> Vec<f64> {
        self.as_slice().values()
    }
}

impl<T: Number> Values for Vec<T> {
    fn values(&self) -> Vec<f64> {
        self.as_slice().values()
    }
}

impl<V: Values + ?Sized> Values for &V {
    fn values(&self) -> Vec<f64> {
        (**self).values()
    }
}

impl<K: kind::Basic> Values for Tensor<1, K> {
    fn values(&self) -> Vec<f64> {
        self.to_data().iter::<f64>().collect()
    }
}

/// Rows of numbers: a list of lists, or a tensor of two dimensions.
pub trait Rows {
    /// The rows from the top.
    fn rows(&self) -> Vec<Vec<f64>>;
}

impl<V: Values> Rows for [V] {
    fn rows(&self) -> Vec<Vec<f64>> {
        self.iter().map(Values::values).collect()
    }
}

impl<V: Values, const N: usize> Rows for [V; N] {
    fn rows(&self) -> Vec<Vec<f64>> {
        self.as_slice().rows()
    }
}

impl<V: Values> Rows for Vec<V> {
    fn rows(&self) -> Vec<Vec<f64>> {
        self.as_slice().rows()
    }
}

impl<K: kind::Basic> Rows for Tensor<2, K> {
    fn rows(&self) -> Vec<Vec<f64>> {
        let columns = self.dims()[1].max(1);
        let values: Vec<f64> = self.to_data().iter::<f64>().collect();
        values.chunks(columns).map(<[f64]>::to_vec).collect()
    }
}

/// A line through values in their order: `plot(&losses)?`. [`Chart::line`] adds another one.
///
/// # Errors
/// SC1020 if no value is a finite number.
pub fn plot<V: Values + ?Sized>(values: &V) -> Result<Chart> {
    let points = numbered(&values.values());
    drawable("plot", &points)?;
    Ok(Chart::of(Content::Lines(vec![series(points)])))
}

/// A line through points: `plot_xy(&steps, &losses)?`.
///
/// # Errors
/// SC1020 if no point has two finite numbers, SC1021 if the lists differ in length.
pub fn plot_xy<X: Values + ?Sized, Y: Values + ?Sized>(xs: &X, ys: &Y) -> Result<Chart> {
    let points = paired("plot_xy", &xs.values(), &ys.values())?;
    Ok(Chart::of(Content::Lines(vec![series(points)])))
}

/// A mark at each point: `scatter(&lengths, &losses)?`. [`Chart::points`] adds more, in another color.
///
/// # Errors
/// As [`plot_xy`].
pub fn scatter<X: Values + ?Sized, Y: Values + ?Sized>(xs: &X, ys: &Y) -> Result<Chart> {
    let points = paired("scatter", &xs.values(), &ys.values())?;
    Ok(Chart::of(Content::Points(vec![series(points)])))
}

/// How many values lie in each of some ranges of equal width: `histogram(&lengths)?`. [`Chart::bins`] sets their number.
///
/// # Errors
/// SC1020 if no value is a finite number.
pub fn histogram<V: Values + ?Sized>(values: &V) -> Result<Chart> {
    let values = values.values();
    let bins = chart::bins_for(values.len());
    let content =
        chart::histogram(&values, bins).ok_or_else(|| nothing("histogram", values.len()))?;
    let drawn = chart::Chart::of(content);
    Ok(Chart { drawn, values })
}

/// A colored cell for each number, row 0 at the top: `heatmap(&[[1.0, 0.2], [0.3, 1.0]])?`. Of more than 64 rows or columns,
/// neighbors are averaged.
///
/// # Errors
/// SC1020 if no number is finite, SC1021 if the rows differ in length.
pub fn heatmap<R: Rows + ?Sized>(rows: &R) -> Result<Chart> {
    let rows = rows.rows();
    let columns = rows.first().map_or(0, Vec::len);
    if let Some(at) = rows.iter().position(|row| row.len() != columns) {
        return Err(lengths(
            "heatmap",
            ("row 0", columns),
            (&format!("row {at}"), rows[at].len()),
        ));
    }
    if !rows.iter().flatten().any(|value| value.is_finite()) {
        return Err(nothing("heatmap", rows.len() * columns));
    }
    Ok(Chart::of(Content::Cells(rows)))
}

impl Chart {
    fn of(content: Content) -> Self {
        Self {
            drawn: chart::Chart::of(content),
            values: Vec::new(),
        }
    }

    /// The same with words above it.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.drawn.title = title.into();
        self
    }

    /// The same with a name of the horizontal axis.
    pub fn x_label(mut self, name: impl Into<String>) -> Self {
        self.drawn.x = name.into();
        self
    }

    /// The same with a name of the vertical axis.
    pub fn y_label(mut self, name: impl Into<String>) -> Self {
        self.drawn.y = name.into();
        self
    }

    /// The same with a name of what was drawn last, for the legend: `plot(&a)?.named("training").line("validation", &b)?`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Content::Lines(all) | Content::Points(all) = &mut self.drawn.content
            && let Some(last) = all.last_mut()
        {
            last.name = name.into();
        }
        self
    }

    /// The same with one more line; in a chart of something else nothing is added.
    ///
    /// # Errors
    /// SC1020 if no value is a finite number.
    pub fn line<V: Values + ?Sized>(mut self, name: &str, values: &V) -> Result<Self> {
        let points = numbered(&values.values());
        drawable("line", &points)?;
        if let Content::Lines(all) = &mut self.drawn.content {
            all.push(series(points));
        }
        Ok(self.named(name))
    }

    /// The same with more points in another color; in a chart of something else nothing is added.
    ///
    /// # Errors
    /// As [`plot_xy`].
    pub fn points<X: Values + ?Sized, Y: Values + ?Sized>(
        mut self,
        name: &str,
        xs: &X,
        ys: &Y,
    ) -> Result<Self> {
        let points = paired("points", &xs.values(), &ys.values())?;
        if let Content::Points(all) = &mut self.drawn.content {
            all.push(series(points));
        }
        Ok(self.named(name))
    }

    /// The same histogram with so many bars; other charts have none.
    ///
    /// # Errors
    /// SC0915 if `bins` is 0 or above 1000.
    pub fn bins(mut self, bins: usize) -> Result<Self> {
        if !(1..=1000).contains(&bins) {
            let problem = InvalidSize {
                what: "bins".to_owned(),
                given: bins.to_string(),
                expects: "between 1 and 1000".to_owned(),
                place: None,
            };
            return Err(problem.error());
        }
        if let Some(content) = chart::histogram(&self.values, bins) {
            self.drawn.content = content;
        }
        Ok(self)
    }

    /// The picture as SVG, for a file.
    pub fn to_svg(&self) -> String {
        self.drawn.svg()
    }
}

impl IntoBundle for Chart {
    fn bundle(&self) -> MimeBundle {
        let alt = stratoscope_render::html::attribute(&self.drawn.summary());
        let mut bundle = svg(&self.drawn.svg(), &alt);
        bundle.extend(plain(self.drawn.plain()));
        bundle
    }
}

fn series(points: Vec<(f64, f64)>) -> Series {
    Series::new("", points)
}

fn numbered(values: &[f64]) -> Vec<(f64, f64)> {
    let values = values.iter().enumerate();
    values.map(|(at, value)| (at as f64, *value)).collect()
}

fn paired(chart: &str, xs: &[f64], ys: &[f64]) -> Result<Vec<(f64, f64)>> {
    if xs.len() != ys.len() {
        return Err(lengths(chart, ("xs", xs.len()), ("ys", ys.len())));
    }
    let points = xs
        .iter()
        .copied()
        .zip(ys.iter().copied())
        .collect::<Vec<_>>();
    drawable(chart, &points)?;
    Ok(points)
}

fn drawable(chart: &str, points: &[(f64, f64)]) -> Result<()> {
    let is_finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    match points.iter().any(is_finite) {
        true => Ok(()),
        false => Err(nothing(chart, points.len())),
    }
}

fn nothing(chart: &str, values: usize) -> Box<stratoscope_diagnostics::Diagnostic> {
    NothingToDraw {
        chart: chart.to_owned(),
        values,
    }
    .error()
}

fn lengths(
    chart: &str,
    (first, first_length): (&str, usize),
    (second, second_length): (&str, usize),
) -> Box<stratoscope_diagnostics::Diagnostic> {
    ChartLengthsDiffer {
        chart: chart.to_owned(),
        first: first.to_owned(),
        first_length,
        second: second.to_owned(),
        second_length,
    }
    .error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T>) -> String {
        result.err().map(|it| it.code).unwrap_or_default()
    }

    #[test]
    fn numbers_of_every_kind_are_drawn() {
        let tensor = Tensor::<1>::from_floats([1.0, 4.0, 9.0], &burn::tensor::Device::flex());
        for chart in [
            plot(&[1, 4, 9]),
            plot(&vec![1.0_f32, 4.0, 9.0]),
            plot(&[1_u8, 4, 9][..]),
            plot(&tensor),
        ] {
            let text = chart.expect("draws").bundle()["text/plain"].to_string();
            assert!(
                text.contains("3 points, lowest 1, highest 9, last 9"),
                "{text}"
            );
        }
        let rows = tensor.reshape([1, 3]);
        for chart in [
            heatmap(&rows),
            heatmap(&[[1, 4, 9]]),
            heatmap(&vec![vec![1.0, 4.0, 9.0]]),
        ] {
            let text = chart.expect("draws").bundle()["text/plain"].to_string();
            assert!(text.contains("1 × 3, from 1"), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_an_error() {
        assert_eq!(code(plot::<[f64]>(&[])), "SC1020");
        assert_eq!(code(histogram(&[f64::NAN])), "SC1020");
        assert_eq!(code(heatmap::<[Vec<f64>]>(&[])), "SC1020");
        assert_eq!(code(scatter(&[1.0, 2.0], &[1.0])), "SC1021");
        assert_eq!(code(heatmap(&[vec![1.0], vec![1.0, 2.0]])), "SC1021");
        assert_eq!(code(histogram(&[1.0]).and_then(|it| it.bins(0))), "SC0915");
    }

    #[test]
    fn a_chart_has_a_picture_and_a_text() {
        let chart =
            plot(&[0.9, 0.5]).and_then(|it| it.named("training").line("validation", &[1.0, 0.8]));
        let bundle = chart.expect("draws").title("loss").bundle();
        let picture = bundle["image/svg+xml"].to_string();
        assert!(picture.contains("validation") && picture.contains("training"));
        assert!(
            bundle["text/html"]
                .to_string()
                .contains("loss: 2 lines of 4 points")
        );
        assert!(
            bundle["text/plain"]
                .to_string()
                .contains("validation: 2 points")
        );
    }
}
