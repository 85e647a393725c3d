//! Charts of numbers: lines, points, bars and a grid of cells, as SVG and as text.
//!
//! A picture has no ground of its own, so that it lies on a light and on a dark page, and its colors are of middle lightness:
//! an image cannot know the theme of a notebook. What is not a finite number is left out, and the text says how many
//! values that were.

mod axis;
mod boxes;
mod cells;
mod elements;
mod figure;
mod grid;
mod small;
mod svg;
mod text;

pub use axis::Scale;
pub use boxes::Boxes;
pub use figure::Figure;
pub use grid::Grid;
pub use small::{Sparkline, bars};

/// A chart: what is drawn, and the words around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What is drawn.
    pub content: Content,
    /// Above the chart; may be empty, as the two below.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical axis.
    pub y: String,
    /// How the horizontal axis of lines and points is laid out.
    pub x_scale: Scale,
    /// The same of the vertical axis.
    pub y_scale: Scale,
    /// Events along the horizontal axis of lines.
    pub markers: Vec<Marker>,
    /// Width and height in pixels.
    pub size: (f64, f64),
    /// Read out instead of [`Chart::summary`]; may be empty.
    pub description: String,
}

/// The size of a chart that stands alone.
const SIZE: (f64, f64) = (560.0, 320.0);

/// What a chart draws.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A line through the points of each series, interrupted where a number is missing.
    Lines(Vec<Series>),
    /// A mark at each point.
    Points(Vec<Series>),
    /// A bar for each range of values: how many values lie in it.
    Bars {
        /// The bars from left to right.
        bars: Vec<Bar>,
        /// Values that are no finite numbers.
        missing: usize,
    },
    /// A colored cell for each number, row by row from the top.
    Cells(Vec<Vec<f64>>),
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Shown in the legend of a chart with several series, unless this one has no points.
    pub name: String,
    /// Horizontal and vertical values.
    pub points: Vec<(f64, f64)>,
    /// Whether a line has a mark at each point.
    pub has_marks: bool,
}

/// An event along the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker {
    /// Where it is.
    pub at: f64,
    /// What happened.
    pub kind: MarkerKind,
}

/// What happened at a [`Marker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerKind {
    /// A setting was changed.
    Change,
    /// The result was the best one.
    Best,
}

impl MarkerKind {
    fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Best => "best",
        }
    }

    fn color(self) -> &'static str {
        match self {
            Self::Change => elements::SERIES[3],
            Self::Best => elements::SERIES[2],
        }
    }
}

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Where its values begin.
    pub low: f64,
    /// Where they end; the last bar includes it.
    pub high: f64,
    /// How many there are.
    pub count: usize,
}

impl Series {
    /// Points without marks.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            has_marks: false,
        }
    }

    /// The same with a mark at each point of the line.
    pub fn marked(mut self) -> Self {
        self.has_marks = true;
        self
    }

    fn has_points(&self) -> bool {
        self.finite().next().is_some()
    }

    /// How the line begins and ends, in words: `training from 2.1 to 0.4`. `None` if there is nothing to draw.
    fn ends(&self) -> Option<String> {
        let first = self.finite().next()?.1;
        let last = self.finite().last()?.1;
        let ends = format!("from {} to {}", axis::short(first), axis::short(last));
        Some(match self.name.is_empty() {
            true => ends,
            false => format!("{} {ends}", self.name),
        })
    }

    /// The points with two finite numbers.
    fn finite(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let points = self.points.iter().copied();
        points.filter(|(x, y)| x.is_finite() && y.is_finite())
    }
}

impl Chart {
    /// A chart without words.
    pub fn of(content: Content) -> Self {
        Self {
            content,
            title: String::new(),
            x: String::new(),
            y: String::new(),
            x_scale: Scale::Values,
            y_scale: Scale::Values,
            markers: Vec::new(),
            size: SIZE,
            description: String::new(),
        }
    }

    /// Whether there is a finite number to draw.
    pub fn has_points(&self) -> bool {
        match &self.content {
            Content::Lines(series) | Content::Points(series) => {
                series.iter().any(Series::has_points)
            }
            Content::Bars { bars, .. } => bars.iter().any(|bar| bar.count > 0),
            Content::Cells(rows) => rows.iter().flatten().any(|value| value.is_finite()),
        }
    }

    /// The picture.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }

    /// The same as text, at most 80 columns wide.
    pub fn plain(&self) -> String {
        text::draw(self)
    }

    /// What the chart shows in a sentence, to be read out.
    pub fn summary(&self) -> String {
        if !self.description.is_empty() {
            return self.description.clone();
        }
        let what = match &self.content {
            Content::Lines(series) => {
                let ends = series.iter().take(MAX_READ_OUT).filter_map(Series::ends);
                let marks = self.markers.iter().take(MAX_READ_OUT).map(Marker::words);
                let drawn = series.iter().filter(|each| each.has_points()).count();
                let lines = crate::text::count(drawn, "line");
                let lines = format!("{lines} of {}", points(series));
                let parts = std::iter::once(lines).chain(ends).chain(marks);
                parts.collect::<Vec<_>>().join("; ")
            }
            Content::Points(series) => format!("scatter plot of {}", points(series)),
            Content::Bars { bars, .. } => format!("histogram of {} bars", bars.len()),
            Content::Cells(rows) => {
                let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
                format!("heatmap of {} × {columns}", rows.len())
            }
        };
        match self.title.is_empty() {
            true => what,
            false => format!("{}: {what}", self.title),
        }
    }
}

/// Lines and markers that are read out; of more, the first ones.
const MAX_READ_OUT: usize = 6;

impl Marker {
    /// `best at 40`.
    fn words(&self) -> String {
        format!("{} at {}", self.kind.name(), axis::short(self.at))
    }
}

fn points(series: &[Series]) -> String {
    let points = series.iter().map(|it| it.points.len()).sum();
    crate::text::count(points, "point")
}

/// The bars of a histogram of `values`; `bins` of equal width. `None`: no value is a finite number.
pub fn histogram(values: &[f64], bins: usize) -> Option<Content> {
    let finite: Vec<f64> = values.iter().copied().filter(|it| it.is_finite()).collect();
    let low = finite.iter().copied().reduce(f64::min)?;
    let high = finite.iter().copied().reduce(f64::max)?;
    let bins = bins.max(1);
    // A bar around a constant.
    let (low, high) = match low == high {
        true => (low - 0.5, high + 0.5),
        false => (low, high),
    };
    let edge = |index: usize| {
        let share = index as f64 / bins as f64;
        low * (1.0 - share) + high * share
    };
    let mut bars: Vec<Bar> = (0..bins)
        .map(|index| Bar {
            low: edge(index),
            high: edge(index + 1),
            count: 0,
        })
        .collect();
    for value in &finite {
        let place = bars.partition_point(|bar| bar.low <= *value);
        bars[place.saturating_sub(1)].count += 1;
    }
    let missing = values.len() - finite.len();
    Some(Content::Bars { bars, missing })
}

/// A number of bars for a histogram of so many values: about the cube root twice (Rice's rule), at most 60.
pub fn bins_for(values: usize) -> usize {
    let bins = 2.0 * (values.max(1) as f64).cbrt();
    (bins.ceil() as usize).clamp(1, 60)
}

#[cfg(test)]
mod tests;
