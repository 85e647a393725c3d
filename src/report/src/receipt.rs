//! What `compile!` returns: how the model will be trained, and where everything is.

use std::fmt::{self, Write};

use stratoscope_diagnostics::arguments::{self, COMPILE};
use stratoscope_render::html::{NAMED_ROW, NAMED_VALUE};
use stratoscope_render::text;
use stratoscope_strategy::PlacementReport;

use crate::html::{escape, prose};

/// The settings in force after `compile!`, and the placement.
#[derive(Clone, Debug)]
pub struct CompileReceipt {
    /// Name and value of each setting, in the order in which they are shown.
    pub settings: Vec<(String, String)>,
    /// Where every variable is; gradients and moments are planned.
    pub placement: PlacementReport,
}

impl CompileReceipt {
    /// Settings and placement as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        const NAME: &str = "flex:0 0 190px;padding-right:12px;opacity:0.75";
        let mut html = String::from(
            "<div style=\"font-size:13px;line-height:1.45;margin:4px 0 8px 0;max-width:1040px\">",
        );
        for (name, value) in &self.settings {
            let (code, shown) = match arguments::find(COMPILE, name) {
                Some(_) => (";font-family:monospace", escape(value)),
                None => ("", prose(value)),
            };
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<div style=\"{NAMED_ROW}\"><div style=\"{NAME}\">{}</div>\
                 <div style=\"{NAMED_VALUE}{code}\">{shown}</div></div>",
                escape(name),
            );
        }
        html.push_str("</div>");
        html + &self.placement.to_html()
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        const COLUMNS: usize = 100;
        let names = self.settings.iter().map(|(name, _)| name.chars().count());
        let width = names.max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in &self.settings {
            for (nth, line) in text::wrap(value, COLUMNS - width - 2).iter().enumerate() {
                let name = if nth == 0 { name.as_str() } else { "" };
                let _ = writeln!(text, "{name:width$}  {line}");
            }
        }
        text.push('\n');
        text + &self.placement.to_plain()
    }
}

impl fmt::Display for CompileReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}
