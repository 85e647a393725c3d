//! The norms of gradients, variable by variable, as text and HTML.

use std::fmt::Write;

use crate::html::escape;

/// So many of the largest are shown.
const MOST: usize = 12;

/// The norms of a gradient's parts, one for each variable.
#[derive(Clone, Debug)]
pub struct GradientNorms {
    /// What the gradient is, in a line.
    title: String,
    /// The largest first.
    norms: Vec<(String, f64)>,
}

impl GradientNorms {
    /// Of variables with the norms of their gradients. `title` says in a line what the gradient is.
    pub fn new(title: String, mut norms: Vec<(String, f64)>) -> Self {
        norms.sort_by(|left, right| right.1.total_cmp(&left.1));
        Self { title, norms }
    }

    fn shown(&self) -> &[(String, f64)] {
        &self.norms[..self.norms.len().min(MOST)]
    }

    /// What is said of those that are not shown.
    fn rest(&self) -> Option<String> {
        let rest = self.norms.len() - self.shown().len();
        (rest > 0).then(|| format!("and {rest} smaller ones"))
    }

    /// The largest norms as lines of text.
    pub fn to_plain(&self) -> String {
        let mut text = format!("{}\n", self.title);
        // Writing to a string cannot fail.
        for (name, norm) in self.shown() {
            let _ = writeln!(text, "  {norm:.3e}  {name}");
        }
        if let Some(rest) = self.rest() {
            let _ = writeln!(text, "  {rest}");
        }
        text
    }

    /// The largest norms as a table, each with a bar: static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        const CELL: &str = "padding:1px 10px 1px 0;text-align:left;white-space:nowrap";
        let shown = self.shown();
        let largest = shown
            .first()
            .map_or(1.0, |(_, norm)| norm.max(f64::MIN_POSITIVE));
        let mut html = format!(
            "<div style=\"font-size:13px\">{}</div>\
             <table style=\"border-collapse:collapse;font-size:12px;margin:4px 0\">",
            escape(&self.title)
        );
        // Writing to a string cannot fail.
        for (name, norm) in shown {
            let _ = write!(
                html,
                "<tr><td style=\"{CELL}\">{}</td><td style=\"{CELL}\">{norm:.3e}</td><td>\
                 <div style=\"width:{:.0}px;height:8px;background-color:#4a90d9;\
                 border-radius:3px\"></div></td></tr>",
                escape(name),
                160.0 * norm / largest
            );
        }
        html.push_str("</table>");
        if let Some(rest) = self.rest() {
            let _ = write!(
                html,
                "<div style=\"font-size:12px;opacity:0.75\">{rest}</div>"
            );
        }
        html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_shown_and_the_rest_is_counted() {
        let norms = (0..14_u32).map(|index| (format!("layer.<{index}>"), f64::from(index)));
        let norms = GradientNorms::new("gradient of 1 batch".to_owned(), norms.collect());
        let plain = norms.to_plain();
        assert!(
            plain.starts_with("gradient of 1 batch\n  1.300e1  layer.<13>\n  1.200e1  "),
            "{plain}"
        );
        assert!(
            plain.ends_with("  2.000e0  layer.<2>\n  and 2 smaller ones\n"),
            "{plain}"
        );
        let html = norms.to_html();
        assert_eq!(html.matches("<tr>").count(), MOST);
        assert!(html.contains("layer.&lt;13&gt;</td>"), "{html}");
        assert!(
            html.contains("width:160px") && html.ends_with(">and 2 smaller ones</div>"),
            "{html}"
        );
    }

    #[test]
    fn no_variables_and_no_gradients_have_a_table_too() {
        let none = GradientNorms::new("none".to_owned(), Vec::new());
        assert_eq!(none.to_plain(), "none\n");
        assert!(none.to_html().ends_with(
            "<table style=\"border-collapse:collapse;font-size:12px;margin:4px 0\"></table>"
        ));
        let zeros = GradientNorms::new("zeros".to_owned(), vec![("weight".to_owned(), 0.0)]);
        assert!(zeros.to_html().contains("width:0px"));
    }
}
