//! Small pieces of HTML that the cards of this crate share. Styles are literal attributes: JupyterLab
//! removes anything else. Colors are translucent, so that they hold on light and on dark ground.

pub use stratoscope_render::html::{escape, prose};
pub use stratoscope_render::units::seconds as time;

use crate::history::Measured;

/// A cell of a table.
pub const CELL: &str = "padding:3px 12px;text-align:right;border-bottom:1px solid #80808059";
/// The heading of a column.
pub const HEAD: &str = "padding:3px 12px;text-align:right;font-weight:600;\
                               border-bottom:1px solid #808080b3";

/// A metric's value: four digits, or the word.
pub fn value(measured: Option<&Measured>) -> String {
    match measured {
        Some(Measured {
            value: Some(value), ..
        }) => format!("{value:.4}"),
        Some(_) => "undefined".to_owned(),
        None => "–".to_owned(),
    }
}

/// A learning rate: `5.00e-5`, `0`.
pub fn rate(rate: f64) -> String {
    if rate == 0.0 {
        "0".to_owned()
    } else {
        format!("{rate:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_they_are_read() {
        assert_eq!(
            (rate(0.0), rate(5e-5)),
            ("0".to_owned(), "5.00e-5".to_owned())
        );
    }
}
