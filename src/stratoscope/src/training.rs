//! Displays of the values of training: models and receipts, histories and results, runs, schedules, gradients and steps
//! by hand.

use stratoscope_models::html::escape;
use stratoscope_models::plot::rates;
use stratoscope_models::{
    Applied, BertFiles, BertForMaskedLM, BertForMultipleChoice, BertForQuestionAnswering,
    BertForSentenceEmbedding, BertForSequenceClassification, BertForTokenClassification,
    Comparison, CompileReceipt, Counters, Edit, Embeddings, Evaluation, GradientNorms, Gradients,
    HalfPrecision, History, LoraReceipt, MemoryPlan, ModelOf, Network, OnnxFile, Picture,
    Predictions, RateCurve, RatePlan, Rewound, Run, RunReport, Sequential, Stop, Summary,
};
use stratoscope_strategy::strategy::Workers;
use stratoscope_wire::MimeBundle;

use crate::display::{
    IntoBundle, PLACEMENT, cards, display, html_and_plain, plain, show, svg_and_html,
};
use crate::progress::Plot;

cards!(
    Comparison,
    Embeddings,
    Evaluation,
    History,
    MemoryPlan,
    Predictions,
    RateCurve,
    RunReport,
    Stop,
    Summary,
);

/// A picture as a cell displays it.
pub(crate) fn drawn(picture: Picture) -> MimeBundle {
    let mut bundle = plain(picture.plain);
    if !picture.svg.is_empty() {
        bundle.extend(svg_and_html(picture.svg, picture.html));
    }
    bundle
}

impl Plot for History {
    fn plot(&self) {
        show(drawn(self.picture()), None, false);
    }
}

impl IntoBundle for Workers {
    fn bundle(&self) -> MimeBundle {
        html_and_plain(self.to_html(), self.to_string())
    }
}

impl IntoBundle for Counters {
    fn bundle(&self) -> MimeBundle {
        plain(self.to_string())
    }
}

impl IntoBundle for CompileReceipt {
    fn bundle(&self) -> MimeBundle {
        let mut bundle = html_and_plain(self.to_html(), self.to_plain());
        bundle.insert(PLACEMENT.to_owned(), self.placement.to_json());
        bundle
    }
}

impl IntoBundle for Sequential {
    fn bundle(&self) -> MimeBundle {
        let (line, summary) = (format!("{self:?}"), self.summary());
        let html = format!(
            "<div style=\"font-size:13px\">{}</div>{}",
            escape(&line),
            summary.to_html()
        );
        html_and_plain(html, format!("{line}\n{summary}"))
    }
}

impl IntoBundle for BertForSequenceClassification {
    fn bundle(&self) -> MimeBundle {
        of_loaded(self)
    }
}

impl IntoBundle for BertForSentenceEmbedding {
    fn bundle(&self) -> MimeBundle {
        of_loaded(self)
    }
}

impl IntoBundle for BertForMaskedLM {
    fn bundle(&self) -> MimeBundle {
        of_loaded(self)
    }
}

impl IntoBundle for BertForMultipleChoice {
    fn bundle(&self) -> MimeBundle {
        of_loaded(self)
    }
}

impl IntoBundle for BertForQuestionAnswering {
    fn bundle(&self) -> MimeBundle {
        of_loaded(self)
    }
}

impl IntoBundle for BertForTokenClassification {
    fn bundle(&self) -> MimeBundle {
        of_loaded(self)
    }
}

/// A model in a line, and where the values of its variables came from.
fn of_loaded<N: Network<Files = BertFiles>>(model: &ModelOf<N>) -> MimeBundle {
    let line = format!("{model:?}");
    let report = model.load_report();
    let html = format!(
        "<div style=\"font-size:13px\">{}</div>{}",
        escape(&line),
        report.to_html()
    );
    html_and_plain(html, format!("{line}\n{}", report.summary()))
}

impl IntoBundle for Run {
    fn bundle(&self) -> MimeBundle {
        match self.report() {
            Ok(report) => report.bundle(),
            Err(_) => plain(self.to_string()),
        }
    }
}

impl IntoBundle for LoraReceipt {
    fn bundle(&self) -> MimeBundle {
        plain(self.to_string())
    }
}

impl IntoBundle for OnnxFile {
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

impl IntoBundle for RatePlan {
    fn bundle(&self) -> MimeBundle {
        drawn(rates(self))
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
        let norms = GradientNorms::new(self.to_string(), self.norms());
        html_and_plain(norms.to_html(), norms.to_plain())
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
