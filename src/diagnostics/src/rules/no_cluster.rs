//! SC0806 `no-cluster`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// An environment that says nothing of a cluster.
#[derive(Clone, Debug)]
pub struct NoCluster;

impl Rule for NoCluster {
    const PAGE: RulePage = RulePage {
        code: "SC0806",
        name: "no-cluster",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`MultiWorkerMirroredStrategy::from_environment()` where no variable describes a cluster: neither \
                `TF_CONFIG` nor those of torchrun, Slurm, Open MPI or MPICH.",
        why: "A strategy with this process alone would train on one machine while the others do nothing.",
        bad: "let strategy = MultiWorkerMirroredStrategy::from_environment()?;",
        good: "let strategy = MultiWorkerMirroredStrategy::workers(2)?;",
        tensorflow: tensorflow::page("SC0806"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the environment names no other worker")
            .why(
                "none of `TF_CONFIG`, `RANK` and `WORLD_SIZE`, `OMPI_COMM_WORLD_RANK`, `PMI_RANK`, `SLURM_PROCID` is set: this process would train alone",
            )
            .fix("use `MultiWorkerMirroredStrategy::workers(2)`: it starts processes on this machine")
            .fix("set `TF_CONFIG`, or start the kernel with `torchrun`, `srun` or `mpirun`")
            .tensorflow(Quote::of("SC0806"))
    }
}
