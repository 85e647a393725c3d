//! Displays of the values of training: memory plans, schedules, runs, gradients and steps by hand.

use std::fmt::Write;

use stratoscope_train::html::escape;
use stratoscope_train::{
    Applied, Comparison, Edit, Gradients, HalfPrecision, LoraReceipt, MemoryPlan, Network,
    RatePlan, Rewound, Run, RunReport, Stop,
};
use stratoscope_wire::MimeBundle;

use crate::display::{IntoBundle, display, html_and_plain, plain, svg};
use crate::progress::Plot;

impl IntoBundle for MemoryPlan {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_plain())
    }
}

impl<N: Network> IntoBundle for Run<N> {
    fn bundle(&self) -> MimeBundle {
        match self.report() {
            Ok(report) => report.bundle(),
            Err(_) => plain(self.to_string()),
        }
    }
}

impl IntoBundle for RunReport {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_plain())
    }
}

impl IntoBundle for Comparison {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_plain())
    }
}

impl IntoBundle for LoraReceipt {
    fn bundle(&self) -> MimeBundle {
        plain(self.to_string())
    }
}

impl IntoBundle for Edit {
    fn bundle(&self) -> MimeBundle {
        plain(self.to_string())
    }
}

impl IntoBundle for Rewound {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_string())
    }
}

impl IntoBundle for Stop {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_plain())
    }
}

impl IntoBundle for RatePlan {
    fn bundle(&self) -> MimeBundle {
        let picture = self.picture();
        let mut bundle = plain(picture.plain);
        if !picture.svg.is_empty() {
            bundle.extend(svg(&picture.svg, "the learning rate over the run"));
        }
        bundle
    }
}

impl Plot for RatePlan {
    fn plot(&self) {
        display(self);
    }
}

impl IntoBundle for Gradients {
    /// The norm of every variable's gradient, the largest ones first, each with a bar.
    fn bundle(&self) -> MimeBundle {
        const MOST: usize = 12;
        const CELL: &str = "padding:1px 10px 1px 0;text-align:left;white-space:nowrap";
        let mut norms = self.norms();
        norms.sort_by(|left, right| right.1.total_cmp(&left.1));
        let rest = norms.len().saturating_sub(MOST);
        norms.truncate(MOST);
        let largest = norms
            .first()
            .map_or(1.0, |(_, norm)| norm.max(f64::MIN_POSITIVE));
        let mut html = format!(
            "<div style=\"font-size:13px\">{}</div>\
             <table style=\"border-collapse:collapse;font-size:12px;margin:4px 0\">",
            escape(&self.to_string())
        );
        let mut text = format!("{self}\n");
        for (name, norm) in &norms {
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<tr><td style=\"{CELL}\">{}</td><td style=\"{CELL}\">{norm:.3e}</td><td>\
                 <div style=\"width:{:.0}px;height:8px;background-color:#4a90d9;\
                 border-radius:3px\"></div></td></tr>",
                escape(name),
                160.0 * norm / largest
            );
            let _ = writeln!(text, "  {norm:.3e}  {name}");
        }
        html.push_str("</table>");
        if rest > 0 {
            let more = format!("and {rest} smaller ones");
            let _ = write!(
                html,
                "<div style=\"font-size:12px;opacity:0.75\">{more}</div>"
            );
            let _ = writeln!(text, "  {more}");
        }
        html_and_plain(html, text)
    }
}

impl IntoBundle for Applied {
    fn bundle(&self) -> MimeBundle {
        plain(self.to_string())
    }
}

impl IntoBundle for HalfPrecision {
    fn bundle(&self) -> MimeBundle {
        plain(self.to_string())
    }
}
