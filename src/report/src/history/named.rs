//! What was measured, by name: `history["val_loss"]`.

use std::ops::Index;
use std::sync::OnceLock;

use stratoscope_diagnostics::Rule;
use stratoscope_diagnostics::rules::UnknownHistoryName;

use super::{History, Measured};

impl History {
    /// The names of what was measured by epoch: `loss`, `accuracy`, `val_loss`, `val_accuracy`,
    /// `learning_rate`.
    pub fn names(&self) -> Vec<&str> {
        let named = self.named().iter();
        named.map(|(name, _)| name.as_str()).collect()
    }

    /// The values of a name, one for each epoch; of `val_…` one for each epoch that was validated. A metric
    /// that is undefined is NaN. `None` for a name that is not one of [`Self::names`].
    pub fn get(&self, name: &str) -> Option<&[f64]> {
        self.values(name).map(Vec::as_slice)
    }

    fn values(&self, name: &str) -> Option<&Vec<f64>> {
        let found = self.named().iter().find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    fn named(&self) -> &[(String, Vec<f64>)] {
        self.named.0.get_or_init(|| self.by_name())
    }

    fn by_name(&self) -> Vec<(String, Vec<f64>)> {
        let epochs = || self.epochs.iter();
        let of = |metrics: &[Measured], index: usize| {
            let value = metrics.get(index).and_then(|metric| metric.value);
            value.unwrap_or(f64::NAN)
        };
        let mut named = vec![(
            "loss".to_owned(),
            epochs().map(|record| record.loss).collect(),
        )];
        let metrics = self
            .epochs
            .first()
            .map_or(&[][..], |record| &record.metrics);
        for (index, metric) in metrics.iter().enumerate() {
            let values = epochs().map(|record| of(&record.metrics, index));
            named.push((metric.name.to_owned(), values.collect()));
        }
        if let Some(first) = super::records::validated(&self.epochs) {
            let validated = || epochs().filter_map(|record| record.validation.as_ref());
            let losses = validated().map(|validation| validation.loss);
            named.push(("val_loss".to_owned(), losses.collect()));
            for (index, metric) in first.metrics.iter().enumerate() {
                let values = validated().map(|validation| of(&validation.metrics, index));
                named.push((format!("val_{}", metric.name), values.collect()));
            }
        }
        let rates = epochs().map(|record| record.learning_rate).collect();
        named.push(("learning_rate".to_owned(), rates));
        named
    }
}

/// `history["val_loss"]`, as Keras's `history.history["val_loss"]`.
impl Index<&str> for History {
    type Output = Vec<f64>;

    /// The values of a name, one for each epoch, as [`History::get`].
    ///
    /// # Panics
    /// The history has no such name. In a notebook that is SC0518, which lists the names.
    fn index(&self, name: &str) -> &Vec<f64> {
        self.values(name).unwrap_or_else(|| {
            let known = self.names().into_iter().map(str::to_owned).collect();
            let given = name.to_owned();
            stratoscope_diagnostics::raise(UnknownHistoryName { given, known }.error())
        })
    }
}

/// What was measured, by name, computed when it is first asked for.
#[derive(Default)]
pub(super) struct Columns(OnceLock<Vec<(String, Vec<f64>)>>);

impl Clone for Columns {
    /// Nothing: the clone may get more epochs.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Columns {
    /// It follows from the other fields.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::EpochRecord;
    use super::super::tests::history;

    #[test]
    fn values_are_found_by_name() {
        let mut history = history();
        let second = EpochRecord {
            loss: 1.0,
            validation: None,
            ..history.epochs[0].clone()
        };
        history.epochs.push(second);
        let names = [
            "loss",
            "accuracy",
            "val_loss",
            "val_accuracy",
            "learning_rate",
        ];
        assert_eq!(history.names(), names);
        assert_eq!(history["loss"], [1.5, 1.0]);
        assert_eq!(history["learning_rate"], [5e-5, 5e-5]);
        // As in Keras, only epochs that were validated.
        assert_eq!(history["val_loss"], [0.75]);
        assert!(history["val_accuracy"][0].is_nan(), "undefined");
        assert_eq!(history.get("acc"), None);
        // A clone that goes on is asked anew.
        let mut longer = history.clone();
        longer.epochs.push(history.epochs[0].clone());
        assert_eq!(longer["loss"].len(), 3);
    }

    #[test]
    fn a_wrong_name_is_a_diagnostic() {
        let history = history();
        let raised = std::panic::catch_unwind(|| history["acc"].len()).expect_err("no such name");
        let finding = stratoscope_diagnostics::take_raised().expect("a diagnostic");
        assert_eq!(
            (&*finding.code, &*finding.message),
            ("SC0518", "the history has no `acc`")
        );
        let text = raised.downcast::<String>().expect("a text");
        assert!(text.contains("`accuracy`"), "{text}");
    }
}
