//! Which processes belong to a job, as the environment says it: `TF_CONFIG`, or the variables of torchrun, Slurm, Open MPI
//! and MPICH. Everything is checked before a port is opened.

use stratoscope_diagnostics::rules::{InvalidCluster, NoCluster};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

mod host_list;
mod tf_config;

/// The default port of torchrun.
const DEFAULT_PORT: u16 = 29500;

/// Which variables a launcher sets.
struct Launcher {
    /// As messages call it.
    name: &'static str,
    /// The number of this process, and of how many.
    rank: &'static str,
    size: &'static str,
    /// How many of them are on this machine, where the launcher says so.
    local_size: Option<&'static str>,
}

const TORCHRUN: Launcher = Launcher {
    name: "RANK, WORLD_SIZE",
    rank: "RANK",
    size: "WORLD_SIZE",
    local_size: None,
};
const OPEN_MPI: Launcher = Launcher {
    name: "Open MPI",
    rank: "OMPI_COMM_WORLD_RANK",
    size: "OMPI_COMM_WORLD_SIZE",
    local_size: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
};
/// MPICH and those that are built on it, such as Intel MPI.
const MPICH: Launcher = Launcher {
    name: "MPICH",
    rank: "PMI_RANK",
    size: "PMI_SIZE",
    local_size: Some("MPI_LOCALNRANKS"),
};

/// What launchers call the number of a process among those of its machine: torchrun, Open MPI, MPICH, Slurm.
const LOCAL_RANKS: [&str; 4] = [
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
];

/// The number of this process among those of its machine; 0 where no launcher says it.
pub fn local_rank() -> usize {
    let read = |name| std::env::var(name).ok()?.parse().ok();
    LOCAL_RANKS.into_iter().find_map(read).unwrap_or(0)
}

/// The processes of a job, and which of them this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The variables that say so: `TF_CONFIG`.
    pub source: &'static str,
    /// How many there are, the chief among them.
    pub size: usize,
    /// The number of this one; 0 is the chief.
    pub rank: usize,
    /// Where the chief is reached: `host:port`.
    pub chief: String,
    /// Where each process is reached, if the environment says that of all.
    pub addresses: Vec<String>,
}

/// What a process may ask of its environment.
pub type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Cluster {
    /// The cluster of the environment of this process.
    ///
    /// # Errors
    /// SC0806 where no variable speaks of a cluster, SC0805 where one is wrong.
    pub fn from_environment() -> Result<Self> {
        Self::read(&|name| std::env::var(name).ok())
    }

    /// The same for any environment. `TF_CONFIG` is looked for first, then torchrun's variables, Open MPI's, MPICH's and
    /// Slurm's. `srun --mpi=pmi2` sets `PMI_RANK` too, but not `MPI_LOCALNRANKS`: there Slurm's variables are read, which
    /// also name the machines. `mpiexec` in a Slurm job sets it: there Slurm's variables are those of `mpiexec` itself.
    ///
    /// # Errors
    /// As [`Self::from_environment`].
    pub fn read(variable: Read<'_>) -> Result<Self> {
        if let Some(text) = variable("TF_CONFIG") {
            return tf_config::read(&text);
        }
        let is_set = |name| variable(name).is_some();
        if is_set(TORCHRUN.rank) || is_set(TORCHRUN.size) {
            return ranked_by(variable, &TORCHRUN);
        }
        if is_set(OPEN_MPI.rank) {
            return ranked_by(variable, &OPEN_MPI);
        }
        let is_slurm = is_set("SLURM_PROCID");
        if is_set(MPICH.rank) && (!is_slurm || MPICH.local_size.is_some_and(is_set)) {
            return ranked_by(variable, &MPICH);
        }
        match is_slurm {
            true => of_slurm(variable),
            false => Err(NoCluster.error()),
        }
    }
}

/// SC0805.
fn wrong(variable: &str, found: impl Into<String>, expects: impl Into<String>) -> Box<Diagnostic> {
    InvalidCluster {
        variable: variable.to_owned(),
        found: found.into(),
        expects: expects.into(),
    }
    .error()
}

/// A number of the environment.
fn number(variable: Read<'_>, name: &'static str) -> Result<usize> {
    let Some(text) = variable(name) else {
        return Err(wrong(name, "it is not set", "a whole number"));
    };
    text.trim()
        .parse()
        .map_err(|_| wrong(name, format!("`{text}`"), "a whole number ≥ 0"))
}

fn ranked_by(variable: Read<'_>, by: &Launcher) -> Result<Cluster> {
    let (own, all) = (number(variable, by.rank)?, number(variable, by.size)?);
    check_rank(by.rank, own, by.size, all)?;
    let here = by.local_size.and_then(|name| number(variable, name).ok());
    let host = match host_of_environment(variable) {
        Some(host) => host,
        None if here == Some(all) => LOOPBACK.to_owned(),
        None => {
            let expects = "the host of process 0, such as `node1`";
            return Err(wrong("MASTER_ADDR", "it is not set", expects));
        }
    };
    let port = port(variable, by.local_size.and(Some(DEFAULT_PORT)))?;
    Ok(Cluster {
        source: by.name,
        size: all,
        rank: own,
        chief: joined(&host, port),
        addresses: Vec::new(),
    })
}

/// Where processes of one machine meet.
const LOOPBACK: &str = "127.0.0.1";

/// The host of process 0, where the environment names it.
fn host_of_environment(variable: Read<'_>) -> Option<String> {
    let host = variable("MASTER_ADDR")?.trim().to_owned();
    (!host.is_empty()).then_some(host)
}

fn check_rank(name: &'static str, own: usize, size: &'static str, all: usize) -> Result<()> {
    if all == 0 {
        return Err(wrong(size, "`0`", "at least 1"));
    }
    if own >= all {
        let expects = format!("0 to {}, since `{size}` is {all}", all - 1);
        return Err(wrong(name, format!("`{own}`"), expects));
    }
    Ok(())
}

fn port(variable: Read<'_>, default: Option<u16>) -> Result<u16> {
    let expects = "a port, 1 to 65535, that is free on the host of process 0";
    match (variable("MASTER_PORT"), default) {
        (Some(text), _) => {
            let port: Option<u16> = text.trim().parse().ok().filter(|&port| port > 0);
            port.ok_or_else(|| wrong("MASTER_PORT", format!("`{text}`"), expects))
        }
        (None, Some(port)) => Ok(port),
        (None, None) => Err(wrong("MASTER_PORT", "it is not set", expects)),
    }
}

/// Slurm names the machines of a step; the first one has process 0, unless `MASTER_ADDR` names another. The port is made
/// from the numbers of job and step, so that two of a machine do not meet.
fn of_slurm(variable: Read<'_>) -> Result<Cluster> {
    let (own, all) = (
        number(variable, "SLURM_PROCID")?,
        number(variable, "SLURM_NTASKS")?,
    );
    check_rank("SLURM_PROCID", own, "SLURM_NTASKS", all)?;
    let lists = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"];
    let list = lists
        .into_iter()
        .find_map(|name| Some((name, variable(name)?)));
    let Some((name, list)) = list else {
        let expects = "the machines of the step, such as `node[1-3]`";
        return Err(wrong(lists[0], "it is not set", expects));
    };
    let hosts = host_list::expanded(&list).ok_or_else(|| {
        let expects = "a list of machines, such as `node[1-3],other`";
        wrong(name, format!("`{list}`"), expects)
    })?;
    let job = number(variable, "SLURM_JOB_ID")?;
    // Steps of a job follow each other, and so do jobs: neighbors of one are far from those of the other.
    let step = number(variable, "SLURM_STEP_ID").unwrap_or(0) % 100;
    let port = port(
        variable,
        Some(20_000 + ((job + 199 * step) % 20_000) as u16),
    )?;
    let host = match (host_of_environment(variable), hosts.as_slice()) {
        (Some(host), _) => host,
        (None, [_]) => LOOPBACK.to_owned(),
        (None, hosts) => hosts[0].clone(),
    };
    Ok(Cluster {
        source: "Slurm",
        size: all,
        rank: own,
        chief: joined(&host, port),
        addresses: Vec::new(),
    })
}

/// `host:port`; an IPv6 address in brackets.
fn joined(host: &str, port: u16) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Cluster> {
        Cluster::read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn refused(variables: &[(&str, &str)]) -> String {
        let problem = read(variables).expect_err("refused");
        assert_eq!(problem.code, "SC0805", "{problem}");
        problem.message.clone()
    }

    #[test]
    fn torchrun_slurm_open_mpi_and_mpich() {
        let torchrun = [
            ("RANK", "2"),
            ("WORLD_SIZE", "4"),
            ("MASTER_ADDR", "node1"),
            ("MASTER_PORT", "2222"),
        ];
        let found = read(&torchrun).expect("a cluster");
        assert_eq!((found.rank, found.size), (2, 4));
        assert_eq!(found.chief, "node1:2222");
        let slurm = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "3"),
            ("SLURM_STEP_NODELIST", "gpu[07-09],login"),
            ("SLURM_JOB_ID", "41234"),
        ];
        assert_eq!(read(&slurm).expect("a cluster").chief, "gpu07:21234");
        let second_step = [&slurm[..], &[("SLURM_STEP_ID", "1")]].concat();
        assert_eq!(read(&second_step).expect("a cluster").chief, "gpu07:21433");
        let named = [&slurm[..], &[("MASTER_ADDR", "other")]].concat();
        assert_eq!(read(&named).expect("a cluster").chief, "other:21234");
        let mut alone = slurm;
        alone[2].1 = "gpu07";
        assert_eq!(read(&alone).expect("a cluster").chief, "127.0.0.1:21234");
        let mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert_eq!(read(&mpi).expect("a cluster").chief, "127.0.0.1:29500");
        let mpich = [
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "3"),
            ("MPI_LOCALNRANKS", "3"),
        ];
        let found = read(&mpich).expect("a cluster");
        assert_eq!((found.rank, found.size), (1, 3));
        assert_eq!((found.source, &*found.chief), ("MPICH", "127.0.0.1:29500"));
        // Under Slurm, `mpiexec` has the numbers and `srun --mpi=pmi2` repeats those of Slurm.
        let both = [&slurm[..], &mpich].concat();
        assert_eq!(read(&both).expect("a cluster").source, "MPICH");
        let repeated = [&slurm[..], &mpich[..2]].concat();
        assert_eq!(read(&repeated).expect("a cluster").source, "Slurm");
        assert!(refused(&mpich[..2]).contains("MASTER_ADDR"));
        let two_machines = [&mpich[..2], &[("MPI_LOCALNRANKS", "2")]].concat();
        assert!(refused(&two_machines).contains("MASTER_ADDR"));
        assert_eq!(read(&[]).expect_err("nothing").code, "SC0806");
    }

    #[test]
    fn each_way_of_being_wrong_has_its_words() {
        let with = |name: &'static str, value: &'static str| {
            let all = [
                ("RANK", "0"),
                ("WORLD_SIZE", "2"),
                ("MASTER_ADDR", "::1"),
                ("MASTER_PORT", "80"),
            ];
            all.map(|(known, own)| (known, if known == name { value } else { own }))
        };
        assert_eq!(read(&with("", "")).expect("a cluster").chief, "[::1]:80");
        for (name, value, words) in [
            ("RANK", "2", "`RANK` is `2`"),
            ("RANK", "first", "`RANK` is `first`"),
            ("WORLD_SIZE", "0", "`WORLD_SIZE` is `0`"),
            ("MASTER_ADDR", " ", "`MASTER_ADDR`"),
            ("MASTER_PORT", "0", "`MASTER_PORT` is `0`"),
            ("MASTER_PORT", "66000", "`MASTER_PORT` is `66000`"),
        ] {
            let message = refused(&with(name, value));
            assert!(message.contains(words), "{message}");
        }
        assert!(refused(&[("RANK", "0")]).contains("WORLD_SIZE"));
        assert!(refused(&[("WORLD_SIZE", "2")]).contains("RANK"));
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "3")];
        assert!(refused(&slurm).contains("SLURM_STEP_NODELIST"));
    }
}
