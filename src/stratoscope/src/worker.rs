//! `stratoscope worker`, which loads this library in a process of its own: it computes replicas for a notebook.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stratoscope_models::work_at;
use stratoscope_workers::team::{KEY_VARIABLE, chief_in_environment};
use stratoscope_workers::{ChiefAddress, Cluster, JobKey};

/// Names the address at which the worker waits for its chief.
const LISTEN_VARIABLE: &str = "STRATOSCOPE_WORKER_LISTEN";

/// Names the file to which a new key is written.
const NEW_KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_NEW_KEY";

/// How long a worker that finds its chief by the environment waits for it: a launcher starts all processes at once, and
/// the cells above may read data first.
const START: Duration = Duration::from_secs(600);

/// How long it tries to reach the chief again when the connection was lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Works until the job is over; a worker that listens works for one job after the other. Returns the exit status of the
/// process.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_worker() -> i32 {
    match work() {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("stratoscope worker: {problem}");
            1
        }
    }
}

fn work() -> Result<(), String> {
    if let Some(path) = std::env::var_os(NEW_KEY_VARIABLE).map(PathBuf::from) {
        new_key(&path)?;
        println!("wrote a new key to {}", path.display());
        return Ok(());
    }
    if let Some((chief, key)) = chief_in_environment() {
        return work_at(chief, &key, &|_| ());
    }
    let key = std::env::var_os(KEY_VARIABLE).map(PathBuf::from);
    let key = key.ok_or("no key: give `--key FILE`, the same file on every machine")?;
    match std::env::var(LISTEN_VARIABLE) {
        Ok(address) => {
            let address = resolved(&address)?;
            if !key.exists() {
                new_key(&key)?;
                let path = key.display();
                println!(
                    "made the key {path}: copy it to the machine of the notebook, where STRATOSCOPE_WORKER_KEY names it"
                );
            }
            let ready = |address: SocketAddr| println!("waiting for a notebook at {address}");
            work_at(ChiefAddress::Listen(address), &key, &ready)
        }
        Err(_) => {
            let cluster = Cluster::from_environment().map_err(|problem| problem.one_line())?;
            if cluster.rank == 0 {
                return Err("this is process 0 of the cluster, where the notebook runs".to_owned());
            }
            work_in(&cluster, &key)
        }
    }
}

/// Works for the chief of a cluster, which may begin later than its workers.
fn work_in(cluster: &Cluster, key: &Path) -> Result<(), String> {
    let (rank, size, chief) = (cluster.rank, cluster.size, &cluster.chief);
    // A key that is missing does not appear by waiting.
    JobKey::read(key).map_err(|error| format!("the key {}: {error}", key.display()))?;
    println!("worker {rank} of {size}: waiting for the notebook at {chief}");
    let mut until = Instant::now() + START;
    let mut last = String::new();
    loop {
        let is_reached = AtomicBool::new(false);
        let ready = |_: SocketAddr| {
            println!("worker {rank} of {size}: connected to {chief}");
            is_reached.store(true, Ordering::SeqCst);
        };
        // The name of a container's host may be known only once it runs, and change when it is started again.
        let worked = resolved(chief)
            .and_then(|address| work_at(ChiefAddress::Dial(address, rank as u64), key, &ready));
        let Err(reason) = worked else {
            return Ok(());
        };
        if is_reached.load(Ordering::SeqCst) {
            until = Instant::now() + PATIENCE;
        }
        if Instant::now() >= until {
            return Err(format!("the notebook at {chief} is not reached: {reason}"));
        }
        // Each once: such as another key, another build, an address that no route leads to. That nobody listens yet is
        // what the first line says.
        if reason != last && !reason.starts_with("Connection refused") {
            eprintln!("stratoscope worker: worker {rank} of {size}: {chief}: {reason}");
            last = reason;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn new_key(path: &Path) -> Result<(), String> {
    let made = JobKey::new().and_then(|made| made.write(path));
    made.map_err(|error| format!("the key {}: {error}", path.display()))
}

fn resolved(address: &str) -> Result<SocketAddr, String> {
    let mut found = address
        .to_socket_addrs()
        .map_err(|error| format!("the address {address}: {error}"))?;
    found
        .next()
        .ok_or_else(|| format!("the address {address} is none"))
}
