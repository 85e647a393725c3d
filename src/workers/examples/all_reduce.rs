//! Measures the all-reduce of a job that a launcher has started: process 0 prints a line of JSON for each number of values.
//!
//! ```text
//! mpirun -n 3 target/debug/examples/all_reduce mpi 1000000 22700000
//! ```
//!
//! The first argument is what carries the values: `tcp`, `mpi`, or `nccl`, for which process `n` of a machine takes CUDA device `n`. `STRATOSCOPE_WORKER_KEY` names the file with the job's key.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Instant;

use stratoscope_workers::team::KEY_VARIABLE;
use stratoscope_workers::{
    ChiefAddress, Cluster, Collective, Communication, Fault, JobKey, Outcome, Precision, Settings,
    Team, Transport, Work, WorkerSource, local_rank, mpi, nccl, serve,
};

/// All-reduces of a size, after one that is not measured.
const TIMES: u64 = 7;

/// A command is the number of values.
struct Reduces;

impl Work for Reduces {
    fn work(&mut self, command: &[u8], group: &mut dyn Collective) -> Outcome<Vec<u8>> {
        let count =
            <[u8; 8]>::try_from(command).map_err(|_| Fault::Failed("no number".to_owned()))?;
        all_reduce(group, u64::from_le_bytes(count) as usize).map(|_| Vec::new())
    }

    fn name(&self, _: &[u8]) -> &'static str {
        "reduces"
    }

    fn cuda_device(&self) -> Outcome<usize> {
        Ok(local_rank())
    }
}

/// The seconds that each all-reduce took.
fn all_reduce(group: &mut dyn Collective, count: usize) -> Outcome<Vec<f64>> {
    let mut values = [vec![1.0; count]];
    let mut seconds = Vec::new();
    for step in 0..=TIMES {
        group.barrier(2 * step)?;
        let since = Instant::now();
        group.all_reduce(2 * step + 1, &mut values, Precision::Float32)?;
        seconds.push(since.elapsed().as_secs_f64());
    }
    Ok(seconds.split_off(1))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let transport = match arguments.next().as_deref() {
        Some("tcp") => Transport::Tcp,
        Some("mpi") => Transport::Mpi,
        Some("nccl") => Transport::Nccl,
        _ => return Err("the first argument is tcp, mpi or nccl".into()),
    };
    let counts: Vec<u64> = arguments.map(|it| it.parse()).collect::<Result<_, _>>()?;
    let cluster = Cluster::from_environment().map_err(|problem| problem.one_line())?;
    let path = std::env::var_os(KEY_VARIABLE).ok_or("no key")?;
    let key = JobKey::read(path.as_ref())?;
    let settings = Settings::new("all_reduce");
    let address: SocketAddr = cluster.chief.parse()?;
    if cluster.rank > 0 {
        let chief = ChiefAddress::Dial(address, cluster.rank as u64);
        // The chief may begin later.
        for _ in 0..100 {
            match serve(chief, &key, &settings, &mut Reduces, &|_| ()) {
                Ok(()) => return Ok(()),
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
        return Err("process 0 is not reached".into());
    }
    let workers = cluster.size - 1;
    let team = Team::begin(
        WorkerSource::Awaited(workers),
        key,
        settings,
        Some(address),
        (&|| false, &|_| ()),
    )?;
    team.set_communication(Communication {
        transport,
        cuda_device: Some(local_rank()),
        ..team.communication()
    });
    team.form(&|| false)
        .map_err(|problem| format!("{problem:?}"))?;
    for count in counts {
        let number = team.next_number();
        for seat in 1..=workers {
            team.send(seat, number, count.to_le_bytes().to_vec())?;
        }
        let mut seconds = team.together(|chain| all_reduce(chain, count as usize))?;
        for seat in 1..=workers {
            team.answer(seat, number, &|| false)?;
        }
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let carrier = match transport {
            Transport::Tcp => None,
            Transport::Mpi => mpi::version(),
            Transport::Nccl => nccl::version(),
        };
        let carrier = carrier.unwrap_or_else(|| "TCP with TLS".to_owned());
        let bytes = 4 * count;
        println!(
            "{{\"carrier\": \"{carrier}\", \"processes\": {}, \"bytes\": {bytes}, \"seconds\": {median}}}",
            cluster.size
        );
    }
    Ok(())
}
