//! `MultiWorkerMirroredStrategy`: as `MirroredStrategy`, with every replica in a process of its own, on this machine or on
//! others. Keras: `tf.distribute.MultiWorkerMirroredStrategy`.
//!
//! This process is the chief and worker 0: it has a copy of the variables, takes part in every step, and decides what the
//! step is. The others are kept by a [`Team`]. The number of replicas is that of the workers when the strategy was made and
//! stays it: when a worker is lost, another one computes its part of the batch, so that the bits of a run do not depend on
//! who was there.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stratoscope_diagnostics::rules::{
    InvalidCluster, OneWorker, WaitingForWorkers, WorkersDidNotCome,
};
use stratoscope_diagnostics::work::{Listening, Unit, Work, requested};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};
use stratoscope_render::text;
use stratoscope_workers::team::KEY_VARIABLE;
use stratoscope_workers::{
    Cluster, JobKey, Launch, Missing, NotBegun, Process, SeatView, Settings as Times, Team,
    WorkerLossPolicy, WorkerSource,
};

mod options;
mod place;
mod scaling;

pub use place::{cuda_device_of_worker, device_of_worker};

use super::distribution::{Distribution, Storing};
use super::workers::Workers;
use super::{Handle, IntoReplicaCount, Settings, Strategy, StrategyKind, explain, handle, split};
use crate::collective::CrossDeviceOps;
use crate::device::{BackendKind, DeviceKind, DeviceSpec, LogicalDevice, choice, default_device};
use crate::problem;
use crate::variable::VariableKind;
use crate::variable::kind::{Kind, Rows};

/// How worker processes of this program are started. Process-wide, because it is a fact about the program.
static LAUNCH: Mutex<Option<Arc<dyn Launch>>> = Mutex::new(None);

/// Says how worker processes are started, for a program that is no notebook. The started program must call
/// `stratoscope_models::serve_as_worker()` first of all.
pub fn start_workers_by(launch: Arc<dyn Launch>) {
    *LAUNCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(launch);
}

/// What processes of a job must agree in.
pub fn build() -> String {
    let (version, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    format!("stratoscope {version} for {arch}")
}

/// How long the chief waits for processes that a launcher starts: the machines of a cluster begin one after the other, and a
/// container's image may have to come first.
const LAUNCHED: Duration = Duration::from_secs(120);

/// Names the library of the cells, in the process that runs them.
const LIBRARY_VARIABLE: &str = "STRATOSCOPE_LIBRARY";

/// In a notebook: this executable, `stratoscope`, with another subcommand.
struct Subcommand;

impl Launch for Subcommand {
    fn command(&self, _: usize) -> std::io::Result<Command> {
        if std::env::var_os(LIBRARY_VARIABLE).is_none() {
            return Err(std::io::Error::other(
                "this program is not a notebook: set with `start_workers_by` how its workers are started",
            ));
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker");
        // What belongs to the process of the cells.
        for name in [
            "STRATOSCOPE_STREAMS",
            "STRATOSCOPE_PROTOCOL_FD",
            "EVCXR_IS_RUNTIME",
        ] {
            command.env_remove(name);
        }
        Ok(command)
    }
}

/// Workers of this machine share its cores and its devices.
struct Shared {
    launch: Arc<dyn Launch>,
    processes: usize,
    devices: Vec<DeviceSpec>,
}

impl Launch for Shared {
    fn command(&self, seat: usize) -> std::io::Result<Command> {
        let mut command = self.launch.command(seat)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let own = (cores / self.processes).max(1);
        command.env("RAYON_NUM_THREADS", own.to_string());
        if let Some(at) = seat.checked_rem(self.devices.len()) {
            command.env(choice::VARIABLE, self.devices[at].to_string());
        }
        Ok(command)
    }
}

/// A handle of a strategy whose replicas are processes. A clone is another handle of the same one. The processes that it
/// has started end with its last handle and the last model that was made under it.
#[derive(Clone)]
pub struct MultiWorkerMirroredStrategy {
    strategy: Strategy,
    _handle: Handle,
}

impl MultiWorkerMirroredStrategy {
    /// As TensorFlow's constructor, which reads `TF_CONFIG`: [`Self::from_environment`].
    ///
    /// # Errors
    /// As [`Self::from_environment`].
    pub fn new() -> Result<Self> {
        Self::from_environment()
    }

    /// `count` workers on this machine, 1 to 64: this process, and the others, which are started and reached over
    /// loopback with a key that is made for them. They compute on the default device and share its cores or memory; where
    /// that is one of several GPUs, they take these in turn.
    ///
    /// # Errors
    /// SC0915 for a count outside the range, SC0712 for a default device that is not there, SC0807 if a process does not
    /// start, SC0520 if it is interrupted.
    pub fn workers(count: impl IntoReplicaCount) -> Result<Self> {
        let count = count.checked()?;
        let launch = LAUNCH
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let launch = launch.unwrap_or_else(|| Arc::new(Subcommand));
        let shared = Shared {
            launch,
            processes: count,
            devices: place::of_this_machine()?,
        };
        let source = WorkerSource::Started(count - 1, Arc::new(shared));
        let key = JobKey::new().map_err(|error| problem::backend_failed("the key", error))?;
        Self::begin(source, key, count, None)
    }

    /// This process and the workers that wait at these addresses, `["host1:2222", "host2:2222"]`, where somebody has
    /// started `stratoscope worker --listen 0.0.0.0:2222 --key FILE`. The environment variable `STRATOSCOPE_WORKER_KEY`
    /// names the file with the same key on this machine.
    ///
    /// # Errors
    /// SC0805 for an address that is none or a key that cannot be read, SC0807 for a worker that cannot be reached.
    pub fn on<A: AsRef<str>>(addresses: impl IntoIterator<Item = A>) -> Result<Self> {
        let addresses: Vec<String> = (addresses.into_iter())
            .map(|address| address.as_ref().to_owned())
            .collect();
        let resolved = addresses.iter().map(|address| resolve("on", address));
        let resolved = resolved.collect::<Result<Vec<SocketAddr>>>()?;
        for (index, address) in addresses.iter().enumerate() {
            if addresses[..index].contains(address) {
                let found = format!("`{address}` twice");
                return Err(invalid("on", found, "another address for each worker"));
            }
        }
        let count = (addresses.len() + 1).checked()?;
        let source = WorkerSource::At(addresses.into_iter().zip(resolved).collect());
        // Workers of other machines send their sums to this one.
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        Self::begin(source, key_of_environment()?, count, Some(any))
    }

    /// The workers that the environment describes: `TF_CONFIG`; `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`; or
    /// the variables of Slurm, Open MPI or MPICH. This process must be the first one; the others are
    /// `stratoscope worker --from-environment`, and come to the address of the first. `STRATOSCOPE_WORKER_KEY` names the
    /// file with the job's key for all of them.
    ///
    /// # Errors
    /// SC0806 where the environment says nothing, SC0805 where it is wrong, SC0807 for a worker that does not come.
    pub fn from_environment() -> Result<Self> {
        let cluster = Cluster::from_environment()?;
        if cluster.rank != 0 {
            let found = format!("process {} of {}", cluster.rank, cluster.size);
            let expects = "process 0 where the notebook runs; the others run \
                           `stratoscope worker --from-environment`";
            return Err(invalid(cluster.source, found, expects));
        }
        let count = cluster.size.checked()?;
        if count == 1 {
            let source = cluster.source.to_owned();
            choice::tell(OneWorker { source }.diagnostic());
        }
        let mut address = resolve(cluster.source, &cluster.chief)?;
        if !address.ip().is_loopback() {
            address.set_ip(std::net::Ipv4Addr::UNSPECIFIED.into());
        }
        let source = WorkerSource::Awaited(count - 1);
        Self::begin(source, key_of_environment()?, count, Some(address))
    }

    fn begin(
        source: WorkerSource,
        key: JobKey,
        count: usize,
        address: Option<SocketAddr>,
    ) -> Result<Self> {
        // It is the chief's device, and says on what kind of device the others compute.
        let whole = default_device()?;
        let _listening = Listening::begin();
        let work = Work::begin(("starting", "started"), count, Unit::Things("worker"));
        let mut times = Times::new(build());
        let is_launched = matches!(source, WorkerSource::Awaited(_));
        if is_launched {
            times.start = LAUNCHED;
        }
        let limit = times.start;
        let waiting = |missing: &[Missing]| choice::tell(still_waiting(missing, limit));
        let team = Team::begin(source, key, times, address, (&requested, &waiting));
        let team = Arc::new(team.map_err(not_begun)?);
        // Only the launcher starts processes there, and no card promises another. One that comes again is let in.
        team.set_loss_policy(WorkerLossPolicy {
            replaces: !is_launched,
            ..team.loss_policy()
        });
        work.finished();
        let devices = devices(&whole, &team.seats())?;
        let settings = Settings {
            cross_device_ops: CrossDeviceOps::Chain,
            ..Settings::default()
        };
        let replicas = devices.len();
        let (strategy, _handle) = Strategy::register_all(
            StrategyKind::MultiWorkerMirrored,
            (devices, replicas),
            Vec::new(),
            settings,
            Some(team),
        );
        Ok(Self { strategy, _handle })
    }

    fn team(&self) -> &Team {
        self.strategy.team().expect("it was made with one")
    }

    /// The workers: who they are, when each was last heard and what it did.
    pub fn status(&self) -> Workers {
        Workers::of(self.team())
    }

    /// What a worker that this process has started wrote to its standard output and error.
    ///
    /// # Errors
    /// SC0915 for a worker that this process has not started.
    pub fn output(&self, worker: usize) -> Result<String> {
        self.team().output(worker).ok_or_else(|| {
            let expects = "that of a worker that this process has started, from 1";
            problem::bad_size("number of the worker", worker, expects)
        })
    }

    /// The number of the process of a worker, such as for `kill`; none where the worker is lost.
    ///
    /// # Errors
    /// SC0915 for a number that no worker has.
    pub fn process(&self, worker: usize) -> Result<Option<u32>> {
        let seats = self.team().seats();
        if worker == 0 {
            return Ok(Some(std::process::id()));
        }
        match seats.get(worker - 1) {
            Some(seat) => Ok(seat.process.as_ref().map(|process| process.number)),
            None => {
                let expects = format!("0 to {}", seats.len());
                Err(problem::bad_size("number of the worker", worker, &expects))
            }
        }
    }
}

handle!(MultiWorkerMirroredStrategy);

/// What it says of itself.
pub(super) struct MultiWorkerMirrored;

impl Distribution for MultiWorkerMirrored {
    fn type_name(&self) -> &'static str {
        "MultiWorkerMirroredStrategy"
    }

    fn name(&self) -> &'static str {
        "multi_worker_mirrored"
    }

    fn storing(&self) -> Storing {
        Storing::CopiesInProcesses
    }

    fn created(&self, strategy: &Strategy, _taken: usize, _rows: Option<Rows>) -> Kind {
        let (label, replicas) = (strategy.label(), strategy.replicas().len());
        let each = text::count(replicas, "worker");
        let why =
            format!("made in the scope of `{label}`: a copy in each of its {each}, kept equal");
        Kind::whole(VariableKind::Mirrored, why, (0..replicas).collect())
    }

    fn step(&self, strategy: &Strategy) -> String {
        explain::all_reduced(strategy)
    }

    fn devices(&self, strategy: &Strategy) -> Option<String> {
        let workers = text::count(strategy.replicas().len(), "worker process");
        Some(format!("{workers}, the first of which is this one"))
    }
}

/// The device of each worker, this process first: a share of `whole`, the device of this process, or a device of that kind
/// of its own.
fn devices(whole: &LogicalDevice, seats: &[SeatView]) -> Result<Vec<LogicalDevice>> {
    let process = |worker: usize| seats.get(worker.checked_sub(1)?)?.process.as_ref();
    let is_here = (1..=seats.len()).all(|worker| process(worker).is_none_or(Process::is_here));
    let count = seats.len() + 1;
    // Several GPUs of this machine are taken in turn.
    let owners = match is_here {
        true => place::of_this_machine()?.len().clamp(1, count),
        false => count,
    };
    let is_shared = owners < count.max(2);
    let on = match whole.backend {
        BackendKind::Flex => String::new(),
        backend => format!(", on {}", backend.title()),
    };
    let device = |share: LogicalDevice| LogicalDevice {
        name: format!("worker:{}", share.id),
        kind: match is_shared {
            true => DeviceKind::Logical,
            false => DeviceKind::Physical,
        },
        capacity_bytes: match (is_shared, share.id) {
            (true, _) => share.capacity_bytes,
            (false, 0) => whole.capacity_bytes,
            (false, _) => None,
        },
        description: match process(share.id) {
            Some(process) => format!("a process on {}{on}", process.machine()),
            None => format!("this process, the chief{on}"),
        },
        // Where processes share a machine, each has its part of the memory above.
        shared_by: 1,
        ..share
    };
    let shares = split(whole, count.div_ceil(owners)).into_iter();
    let shares = shares.cycle().take(count).enumerate();
    Ok(shares
        .map(|(id, share)| device(LogicalDevice { id, ..share }))
        .collect())
}

fn invalid(
    variable: &str,
    found: impl Into<String>,
    expects: impl Into<String>,
) -> Box<Diagnostic> {
    InvalidCluster {
        variable: variable.to_owned(),
        found: found.into(),
        expects: expects.into(),
    }
    .error()
}

/// The address of `host:port`.
fn resolve(variable: &str, address: &str) -> Result<SocketAddr> {
    let found = address.to_socket_addrs();
    let first = found.as_ref().ok().and_then(|all| all.as_slice().first());
    first.copied().ok_or_else(|| {
        let why = found
            .err()
            .map_or(String::new(), |error| format!(" ({error})"));
        invalid(
            variable,
            format!("the address `{address}`{why}"),
            "`host:port` of a known host",
        )
    })
}

/// The key that a file holds, which the environment names.
fn key_of_environment() -> Result<JobKey> {
    let expects =
        "a file with the job's key, which `stratoscope worker --key FILE` makes, on every machine";
    let Some(path) = std::env::var_os(KEY_VARIABLE).map(PathBuf::from) else {
        return Err(invalid(KEY_VARIABLE, "not set", expects));
    };
    JobKey::read(&path).map_err(|error| {
        let found = format!("`{}`, which cannot be used: {error}", path.display());
        invalid(KEY_VARIABLE, found, expects)
    })
}

/// `worker 1 at host1:2222`.
fn worker_at(seat: usize, address: Option<&str>) -> String {
    match address {
        Some(address) => format!("worker {seat} at {address}"),
        None => format!("worker {seat}"),
    }
}

/// SC0802.
fn still_waiting(missing: &[Missing], limit: Duration) -> Diagnostic {
    let first = missing.first();
    let waited = first.map_or(Duration::ZERO, |it| it.waited);
    let workers = missing.iter();
    WaitingForWorkers {
        workers: workers
            .map(|it| worker_at(it.seat, it.address.as_deref()))
            .collect(),
        waited: format!("{:.0} s", waited.as_secs_f64()),
        limit: format!("{:.0} s", limit.as_secs_f64()),
        reason: first.map_or_else(String::new, |it| it.reason.clone()),
    }
    .diagnostic()
}

/// SC0807.
fn not_begun(problem: NotBegun) -> Box<Diagnostic> {
    match problem {
        NotBegun::Missing(missing) => WorkersDidNotCome {
            worker: worker_at(missing.seat, missing.address.as_deref()),
            waited: format!("{:.1} s", missing.waited.as_secs_f64()),
            reason: missing.reason,
        }
        .error(),
        NotBegun::System(reason) => WorkersDidNotCome {
            worker: "worker 1".to_owned(),
            waited: "0 s".to_owned(),
            reason,
        }
        .error(),
        NotBegun::Interrupted => stratoscope_diagnostics::rules::Interrupted {
            work: "the start of the workers".to_owned(),
            reached: "not all of them".to_owned(),
        }
        .error(),
    }
}
