//! What a user chooses of a `MultiWorkerMirroredStrategy`: what happens when a worker is lost, and how gradients travel.

use std::time::Duration;

use stratoscope_diagnostics::rules::InvalidArgumentValue;
use stratoscope_diagnostics::work::requested;
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};
use stratoscope_workers::{
    Communication, NotFormed, Precision, Transport, WorkerLossPolicy, mpi, nccl,
};

use super::{MultiWorkerMirroredStrategy, cuda_device_of_worker};
use crate::device::BackendKind;

impl MultiWorkerMirroredStrategy {
    /// With how many workers, this process among them, a run goes on when others are lost; with fewer it waits. Default: 1.
    #[must_use]
    pub fn min_workers(self, least: usize) -> Self {
        self.change_loss_policy(|policy| WorkerLossPolicy {
            min_workers: least.max(1),
            ..policy
        });
        self
    }

    /// How many seconds a run waits for workers where fewer than [`Self::min_workers`] are left. Default: 30.
    #[must_use]
    pub fn wait(self, seconds: f64) -> Self {
        self.change_loss_policy(|policy| WorkerLossPolicy {
            wait: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            ..policy
        });
        self
    }

    /// Whether workers that are lost are started or called again. Default: true.
    #[must_use]
    pub fn replace_lost(self, replaces: bool) -> Self {
        self.change_loss_policy(|policy| WorkerLossPolicy { replaces, ..policy });
        self
    }

    /// In which numbers gradients travel between workers: `"float32"`, the default, or `"bfloat16"`, which halves the bytes
    /// of a step. Each gradient, and the sum behind each worker's addition, is rounded to bfloat16; additions are of
    /// float32 in the order of the replicas, and every worker makes its update with the same sum. Weights, moments and the
    /// averages of `sync_every` travel as float32.
    ///
    /// # Errors
    /// SC0103 for another text.
    pub fn gradient_dtype(self, dtype: &str) -> Result<Self> {
        let gradients = match dtype {
            "float32" => Precision::Float32,
            "bfloat16" => Precision::Bfloat16,
            _ => return Err(no_wire_type(dtype)),
        };
        self.change_communication(|communication| Communication {
            gradients,
            ..communication
        });
        Ok(self)
    }

    /// What carries gradients and weights between workers: `"tcp"`, the default, or `"mpi"`, the MPI of the launcher that
    /// has started this process and the workers (`mpirun`, `mpiexec`, `srun`). Both add in the order of the replicas and
    /// have the same bits. With `"nccl"` the CUDA devices of the workers, one for each, add gradients by NCCL, in its order,
    /// and all else stays on TCP. MPI and NCCL neither encrypt nor authenticate what they send. Keras:
    /// `communication_options`.
    ///
    /// # Errors
    /// SC0103 for another text; for `"mpi"` where no launcher has started the processes or its MPI cannot be used; for
    /// `"nccl"` where the workers do not compute on CUDA devices of their own or NCCL cannot be used.
    pub fn communication(self, transport: &str) -> Result<Self> {
        let chosen = match transport {
            "tcp" => Transport::Tcp,
            "mpi" => Transport::Mpi,
            "nccl" => Transport::Nccl,
            other => return Err(wrong_transport(other, no_transport(other))),
        };
        let not_usable = |why: &str| wrong_transport(transport, why);
        let cuda_device = match chosen {
            Transport::Tcp => None,
            Transport::Mpi if !self.team().is_awaited() => {
                return Err(not_usable(
                    "no launcher has started the workers of this strategy",
                ));
            }
            Transport::Mpi => {
                mpi::find().map_err(|fault| not_usable(&fault.to_string()))?;
                None
            }
            Transport::Nccl => {
                let kind = self.strategy.devices()[0].backend;
                if kind != BackendKind::Cuda {
                    let kind = kind.title();
                    return Err(not_usable(&format!(
                        "NCCL joins CUDA devices, and the workers of this strategy compute on {kind}"
                    )));
                }
                nccl::find().map_err(|fault| not_usable(&fault.to_string()))?;
                Some(cuda_device_of_worker()?)
            }
        };
        self.change_communication(|communication| Communication {
            transport: chosen,
            cuda_device,
            ..communication
        });
        // Now, not in the middle of the first step. A worker that is missing is waited for there.
        match self.team().form(&requested) {
            Err(NotFormed::Unconnected(fault)) if chosen != Transport::Tcp => {
                Err(not_usable(&fault.to_string()))
            }
            _ => Ok(self),
        }
    }

    fn change_loss_policy(&self, change: impl FnOnce(WorkerLossPolicy) -> WorkerLossPolicy) {
        let team = self.team();
        team.set_loss_policy(change(team.loss_policy()));
    }

    fn change_communication(&self, change: impl FnOnce(Communication) -> Communication) {
        let team = self.team();
        team.set_communication(change(team.communication()));
    }
}

/// Why what Keras offers is not offered here.
fn no_transport(given: &str) -> &'static str {
    match given.to_lowercase().as_str() {
        "ring" | "auto" => {
            "gradients leave each device once and travel between the processes by TCP or MPI; the pattern is the chain, whose sums \
             do not depend on the number of workers"
        }
        _ => "",
    }
}

/// SC0103.
fn wrong_transport(given: &str, why: &str) -> Box<Diagnostic> {
    let finding = InvalidArgumentValue {
        call: "communication".to_owned(),
        argument: "transport".to_owned(),
        given: format!("{given:?}"),
        expects:
            "\"tcp\", \"mpi\" where `mpirun`, `mpiexec` or `srun` has started all processes, or \"nccl\" for workers with CUDA \
             devices of their own"
                .to_owned(),
        place: Place::argument("communication", "transport"),
        replacement: Some("\"tcp\"".to_owned()),
        arguments: Vec::new(),
    };
    let finding = finding.diagnostic();
    Box::new(match why {
        "" => finding,
        why => finding.why(why),
    })
}

/// SC0103.
fn no_wire_type(given: &str) -> Box<Diagnostic> {
    let expects = "\"float32\" or \"bfloat16\"".to_owned();
    let finding = InvalidArgumentValue {
        call: "gradient_dtype".to_owned(),
        argument: "dtype".to_owned(),
        given: format!("{given:?}"),
        expects,
        place: Place::argument("gradient_dtype", "dtype"),
        replacement: None,
        arguments: Vec::new(),
    };
    let finding = finding.diagnostic();
    Box::new(match given {
        "float16" => finding.why(
            "gradients are often smaller than float16's smallest number and would become 0; bfloat16 has the exponents \
             of float32",
        ),
        _ => finding,
    })
}
