//! What `compile!` returns: how the model will be trained, and where everything is.

use std::fmt::{self, Write};

use stratoscope_diagnostics::Result;
use stratoscope_strategy::PlacementReport;

use crate::metric::Metric;
use crate::model::State;
use crate::network::{Files, Network};
use crate::optimizer::UpdateRule;

/// The settings in force after `compile!`, and the placement.
#[derive(Clone, Debug)]
pub struct CompileReceipt {
    /// Name and value of each setting, in the order in which they are shown.
    pub settings: Vec<(String, String)>,
    /// Where every variable is; gradients and moments are planned.
    pub placement: PlacementReport,
}

impl CompileReceipt {
    pub(crate) fn of<N: Network>(state: &State<N>) -> Result<Self> {
        let mut settings = Vec::new();
        let mut add = |name: &str, value: String| settings.push((name.to_owned(), value));
        if let Some(compiled) = &state.compiled {
            add("optimizer", compiled.optimizer.to_string());
            if let UpdateRule::Adam(rule) = compiled.optimizer.rule
                && rule.weight_decay > 0.0
            {
                let all = "weight decay on every variable, biases and LayerNorm included";
                let some = "biases and LayerNorm are not decayed (Keras decays every variable)";
                add("", if rule.decay_all { all } else { some }.to_owned());
            }
            match compiled.loss {
                Some(loss) => add("loss", loss.to_string()),
                None => add("loss", "none: the model only predicts".to_owned()),
            }
            if !compiled.metrics.is_empty() {
                add("metrics", names(&compiled.metrics).join(", "));
            }
            add(
                "steps_per_execution",
                compiled.steps_per_execution.to_string(),
            );
            if compiled.gradient_accumulation_steps > 1 {
                let steps = compiled.gradient_accumulation_steps;
                add("gradient_accumulation_steps", steps.to_string());
            }
        }
        if let Some(source) = state.files.source() {
            add("weights", source);
        }
        add("runs on", state.devices_in_words());
        Ok(Self {
            settings,
            placement: state.placement()?,
        })
    }

    /// Settings and placement as static HTML with inline styles only.
    pub fn to_html(&self) -> String {
        const NAME: &str = "padding:1px 12px 1px 0;text-align:left;vertical-align:top;opacity:0.75";
        const VALUE: &str = "padding:1px 0;text-align:left;font-family:monospace";
        let mut html =
            String::from("<table style=\"border-collapse:collapse;font-size:13px;margin:4px 0\">");
        for (name, value) in &self.settings {
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<tr><td style=\"{NAME}\">{}</td><td style=\"{VALUE}\">{}</td></tr>",
                crate::html::escape(name),
                crate::html::escape(value)
            );
        }
        html.push_str("</table>");
        html + &self.placement.to_html()
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let width = self
            .settings
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for (name, value) in &self.settings {
            let _ = writeln!(text, "{name:width$}  {value}");
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

/// The names of metrics.
pub(crate) fn names(metrics: &[Metric]) -> Vec<&'static str> {
    metrics.iter().map(|metric| metric.name()).collect()
}
