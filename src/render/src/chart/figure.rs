//! Several charts together.

use std::fmt::Write;

use super::Chart;
use super::elements::picture;
use super::svg;
use crate::html::{address, attribute};

/// Charts that belong together.
///
/// ```
/// use stratoscope_render::chart::{Chart, Content, Figure, Series};
///
/// let line = |points: &[(f64, f64)]| Chart::of(Content::Lines(vec![Series::new("", points.to_vec())]));
/// let figure = Figure(vec![line(&[(0.0, 2.0), (1.0, 1.0)]), line(&[(0.0, 0.5), (1.0, 0.7)])]);
/// assert_eq!(figure.html().matches("<img").count(), 2);
/// assert_eq!(figure.svg("curves of a run").matches("<polyline").count(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure(pub Vec<Chart>);

/// Charts in a row of one picture.
const COLUMNS: usize = 2;

impl Figure {
    /// One picture, two charts in a row; empty without a chart. Screen readers read `title` and the summary of each chart.
    pub fn svg(&self, title: &str) -> String {
        if let [chart] = self.0.as_slice() {
            return chart.svg();
        }
        let (mut body, mut width, mut top) = (String::new(), 0.0_f64, 0.0);
        for row in self.0.chunks(COLUMNS) {
            let mut left = 0.0;
            for chart in row {
                // Writing to a string cannot fail.
                let _ = write!(
                    body,
                    "<g transform=\"translate({left:.0} {top:.0})\">{}</g>",
                    svg::body(chart)
                );
                left += chart.size.0;
            }
            width = width.max(left);
            top += row.iter().map(|chart| chart.size.1).fold(0.0, f64::max);
        }
        let summaries = self.0.iter().map(Chart::summary);
        let title = std::iter::once(title.to_owned()).chain(summaries);
        let title: Vec<String> = title.filter(|text| !text.is_empty()).collect();
        match self.0.is_empty() {
            true => String::new(),
            false => picture((width, top), &title.join(". "), &body),
        }
    }

    /// An image for each chart, side by side as far as the page is wide; each keeps its size, so that its texts stay large
    /// enough. Empty without a chart.
    ///
    /// JupyterLab shows the images of an output below one another unless they are inside another element.
    pub fn html(&self) -> String {
        let images: String = self.0.iter().map(image).collect();
        match self.0.is_empty() {
            true => images,
            false => format!("<div>{images}</div>"),
        }
    }
}

fn image(chart: &Chart) -> String {
    format!(
        "<img alt=\"{}\" style=\"display:inline-block;max-width:100%;vertical-align:top\" src=\"{}\">",
        attribute(&chart.summary()),
        address(&chart.svg())
    )
}
