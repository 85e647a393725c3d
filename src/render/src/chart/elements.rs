//! What all drawings share: the element around them, texts, colors.

use std::fmt::Write;

use crate::html::attribute;

/// Texts and axes: 4.2 to 1 on white, 4.4 to 1 on JupyterLab's dark ground.
pub(super) const INK: &str = "#7a7a7a";
/// The lines behind what is drawn.
pub(super) const GRID: &str = "rgba(128,128,128,0.25)";
/// One series after the other. The first color is that of a drawing with one series.
pub(super) const SERIES: [&str; 6] = [
    "#2a7fc0", "#c8641e", "#3a9a5b", "#9a5fb4", "#b58900", "#c0504d",
];
/// What the reader must not miss.
pub(super) const ALARM: &str = "#d03030";
/// Size of numbers and names at an axis, and of a title.
pub(super) const TEXT_SIZE: f64 = 13.0;
pub(super) const TITLE_SIZE: f64 = 15.0;

/// A picture of this size around `body`. Screen readers read `title` instead of the picture.
pub(super) fn picture((width, height): (f64, f64), title: &str, body: &str) -> String {
    let title = attribute(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" role=\"img\" aria-label=\"{title}\">\
         <title>{title}</title>{body}</svg>"
    )
}

/// Text at a place, with more attributes: an anchor, a rotation.
pub(super) fn text(out: &mut String, (x, y): (f64, f64), size: f64, more: &str, content: &str) {
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{INK}\"{more}>{}</text>",
        attribute(content)
    );
}

/// Attributes of a text that is centered at its place, or ends there.
pub(super) const CENTERED: &str = " text-anchor=\"middle\"";
pub(super) const TO_THE_LEFT: &str = " text-anchor=\"end\"";
