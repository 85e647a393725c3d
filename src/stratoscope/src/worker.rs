//! `stratoscope worker`, which loads this library in a process of its own: it computes replicas for a notebook.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stratoscope_train::work_at;
use stratoscope_workers::team::{KEY_VARIABLE, place_in_environment};
use stratoscope_workers::{Cluster, JobKey, Place};

/// Names the address at which the worker waits for its chief.
const LISTEN_VARIABLE: &str = "STRATOSCOPE_WORKER_LISTEN";

/// Names the file to which a new key is written.
const NEW_KEY_VARIABLE: &str = "STRATOSCOPE_WORKER_NEW_KEY";

/// How long a worker that finds its chief by the environment tries to reach it.
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
    if let Some((place, key)) = place_in_environment() {
        return work_at(place, &key, &|_| ());
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
            work_at(Place::Listen(address), &key, &ready)
        }
        Err(_) => {
            let cluster = Cluster::from_environment().map_err(|problem| problem.one_line())?;
            if cluster.rank == 0 {
                return Err("this is process 0 of the cluster, where the notebook runs".to_owned());
            }
            let chief = resolved(&cluster.chief)?;
            let until = Instant::now() + PATIENCE;
            loop {
                let place = Place::Dial(chief, cluster.rank as u64);
                match work_at(place, &key, &|_| ()) {
                    // The chief may begin later than its workers.
                    Err(_) if Instant::now() < until => {
                        std::thread::sleep(Duration::from_millis(300));
                    }
                    outcome => return outcome,
                }
            }
        }
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
