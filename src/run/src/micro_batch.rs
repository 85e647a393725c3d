//! A micro-batch of the coming step, computed with taps before the step is made.

use stratoscope_diagnostics::Result;
use stratoscope_report::inspection::Probe;
use stratoscope_strategy::RunningValues;
use stratoscope_train::lease::Lease;
use stratoscope_train::run_state::{ComingStep, RunState};

/// Every output of a layer and every gradient of a micro-batch, and the running states behind it, such as those of a batch
/// normalization. `running`: those before it. The model has its own again afterwards, also after an error.
pub(crate) fn probes_of(
    lease: &Lease<'_>,
    run: &RunState<'static>,
    coming: &ComingStep,
    (micro_batch, running): (usize, &RunningValues),
    call: &str,
) -> Result<(Vec<Probe>, RunningValues)> {
    let replicas = &lease.step.replicas;
    let own = replicas.running_values();
    replicas.set_running_values(running);
    let probes = run.inspection(lease, coming).probes(micro_batch, call);
    let after = replicas.running_values();
    replicas.set_running_values(&own);
    Ok((probes?, after))
}
