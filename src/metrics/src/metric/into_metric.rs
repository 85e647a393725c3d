//! What `compile!` takes as its metrics.

use stratoscope_diagnostics::{Result, problem};

use super::Metric;

/// One metric: a value, or a text that names one.
#[diagnostic::on_unimplemented(
    message = "expected a metric, got `{Self}`",
    label = "`accuracy()`, `macro_f1()`, `precision()`, `auc()`, `mae()`, `pearson()`, or a text that names one"
)]
pub trait IntoMetric {
    /// The metric.
    ///
    /// # Errors
    /// SC0105 for a text that names none.
    fn into_metric(self) -> Result<Metric>;
}

impl IntoMetric for Metric {
    fn into_metric(self) -> Result<Metric> {
        Ok(self)
    }
}

impl IntoMetric for &str {
    fn into_metric(self) -> Result<Metric> {
        Metric::by_name(self).ok_or_else(|| problem::unknown_metric(self))
    }
}

impl IntoMetric for String {
    fn into_metric(self) -> Result<Metric> {
        self.as_str().into_metric()
    }
}

/// What `compile!` takes as its metrics: a list, or a single one as Keras 2 takes it.
#[diagnostic::on_unimplemented(
    message = "expected a list of metrics, got `{Self}`",
    label = "`[accuracy(), macro_f1()]`, or texts such as `[\"accuracy\"]`"
)]
pub trait IntoMetrics {
    /// The metrics, each on its own: one that is wrong does not hide the others.
    fn into_metrics(self) -> Vec<Result<Metric>>;
}

impl<M: IntoMetric, const N: usize> IntoMetrics for [M; N] {
    fn into_metrics(self) -> Vec<Result<Metric>> {
        self.into_iter().map(IntoMetric::into_metric).collect()
    }
}

impl<M: IntoMetric> IntoMetrics for Vec<M> {
    fn into_metrics(self) -> Vec<Result<Metric>> {
        self.into_iter().map(IntoMetric::into_metric).collect()
    }
}

impl IntoMetrics for Metric {
    fn into_metrics(self) -> Vec<Result<Metric>> {
        vec![Ok(self)]
    }
}

impl IntoMetrics for &str {
    fn into_metrics(self) -> Vec<Result<Metric>> {
        vec![self.into_metric()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_resolved_or_refused() {
        let metrics = ["accuracy", "acuracy"].into_metrics();
        assert_eq!(metrics[0], Ok(Metric::Accuracy));
        assert_eq!(metrics[1].as_ref().expect_err("a slip").code, "SC0105");
    }

    #[test]
    fn every_text_of_the_table_names_something() {
        use stratoscope_diagnostics::arguments::METRICS;
        assert!(METRICS.iter().all(|name| name.into_metric().is_ok()));
    }
}
