//! Small pieces of HTML that the cards of this crate share. Styles are literal attributes: JupyterLab
//! removes anything else. Colours are translucent, so that they hold on light and on dark ground.

use crate::history::Measured;

/// A cell of a table.
pub(crate) const CELL: &str = "padding:3px 12px;text-align:right;border-bottom:1px solid #80808059";
/// The heading of a column.
pub(crate) const HEAD: &str = "padding:3px 12px;text-align:right;font-weight:600;\
                               border-bottom:1px solid #808080b3";

/// Text that goes into HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A sentence: what stands between backticks is code.
pub fn prose(text: &str) -> String {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        match index % 2 {
            0 => html += &escape(part),
            _ => html += &format!("<code style=\"font-size:0.92em\">{}</code>", escape(part)),
        }
    }
    html
}

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

/// A time: `45 s`, `3 min 05 s`, `2 h 10 min`.
pub fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "–".to_owned();
    }
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..10 => format!("{:.1} s", seconds.max(0.0)),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_they_are_read() {
        assert_eq!(
            [time(1.25), time(45.4), time(185.0), time(7800.0)],
            ["1.2 s", "45 s", "3 min 05 s", "2 h 10 min"]
        );
        assert_eq!(time(f64::NAN), "–");
        assert_eq!(
            (rate(0.0), rate(5e-5)),
            ("0".to_owned(), "5.00e-5".to_owned())
        );
    }
}
