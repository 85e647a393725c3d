//! What a request reads of a run: where it is, its latest numbers and its settings.

use serde_json::{Map, Value, json};

use crate::run_state::{Phase, RunState, position};
use crate::state::ModelState;
use stratoscope_optim::Clipping;
use stratoscope_report::history::{Edit, Measured};

/// The latest changes that are listed.
const MAX_EDITS: usize = 50;

impl RunState<'_> {
    /// Where it is, its latest numbers, its settings and its latest changes. A number that is not finite is `null`.
    pub fn reported(&self, state: &ModelState) -> Value {
        let history = &self.progress.history;
        let latest = self.progress.recent.points().last();
        let epoch = history.epochs.last();
        let validation = epoch.and_then(|it| it.validation.as_ref());
        let edits = &history.edits;
        let first = edits.len().saturating_sub(MAX_EDITS);
        json!({
            "model": state.files.model_name(),
            "devices": history.devices,
            "is_over": self.phase == Phase::Over,
            "position": position(state, self),
            "latest_step": latest,
            "epoch_loss": self.progress.epoch_loss.mean(),
            "latest_epoch": epoch.map(|it| json!({
                "epoch": it.epoch, "loss": it.loss, "metrics": measured(&it.metrics),
                "validation_loss": validation.map(|it| it.loss),
                "validation_metrics": validation.map(|it| measured(&it.metrics)),
            })),
            "settings": self.current_settings(),
            "edits": edits[first..].iter().map(Edit::to_string).collect::<Vec<_>>(),
        })
    }

    fn current_settings(&self) -> Value {
        let compiled = &self.settings.compiled;
        let optimizer = &compiled.optimizer;
        let (kind, limit) = match optimizer.clipping {
            Clipping::None => ("none", None),
            Clipping::PerTensor(limit) => ("clipnorm", Some(limit)),
            Clipping::Global(limit) => ("global_clipnorm", Some(limit)),
            Clipping::Value(limit) => ("clipvalue", Some(limit)),
        };
        json!({
            "optimizer": optimizer.name,
            "learning_rate_factor": self.settings.rate_factor,
            "clipping": {"kind": kind, "limit": limit},
            "weight_decay": optimizer.weight_decay(),
            "dropout": self.settings.dropout,
            "batch_size": self.batch_plan.batch_size(),
            "accumulation": self.batch_plan.accumulation(),
            "epochs": self.plan.epochs,
            "seed": self.plan.seed,
        })
    }
}

fn measured(metrics: &[Measured]) -> Value {
    let all = metrics.iter();
    let all: Map<String, Value> = all
        .map(|it| (it.name.to_owned(), json!(it.value)))
        .collect();
    all.into()
}
