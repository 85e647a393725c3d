//! The rules by which a strategy decides how many copies a variable has and where.

use std::ops::Range;

use stratoscope_render::text;

use super::VariableKind;
use crate::strategy::{Shard, Strategy, StrategyKind, shard};

/// How a strategy stores a variable.
pub(crate) struct Kind {
    pub(crate) kind: VariableKind,
    /// As [`VariableRecord::why`].
    pub(crate) why: String,
    /// As in [`VariableRecord::homes`].
    pub(crate) homes: Vec<usize>,
    /// As in [`VariableRecord::rows`].
    pub(crate) rows: Vec<Range<usize>>,
    /// As in [`VariableRecord::updated`].
    pub(crate) updated: Vec<(usize, Range<usize>)>,
}

/// The rows of a variable that can be split.
pub(crate) struct Rows {
    pub(crate) count: usize,
    /// Of all of them.
    pub(crate) bytes: u64,
}

/// The creation rules: the kind that a strategy gives to a variable. `taken` is the number of variables and shards that
/// its servers store already, or of variables that its replicas have cut; `rows` is given for variables that may be split.
pub(crate) fn kind_under(strategy: Option<&Strategy>, taken: usize, rows: Option<Rows>) -> Kind {
    let Some(strategy) = strategy else {
        return Kind {
            kind: VariableKind::Local,
            why: "made outside any scope: one copy, on the default device".to_owned(),
            homes: vec![0],
            rows: Vec::new(),
            updated: Vec::new(),
        };
    };
    if let (Some(shard), Some(rows)) = (strategy.shard(), &rows) {
        return divided(strategy, shard, taken, rows.count);
    }
    let label = strategy.label();
    let replicas = strategy.replicas();
    let copies = || text::count(replicas.len(), "replica");
    let (kind, why, homes) = match strategy.kind() {
        StrategyKind::OneDevice => {
            let why = format!("made in the scope of `{label}`, which has one device");
            (VariableKind::Local, why, vec![0])
        }
        StrategyKind::Mirrored => {
            let why = format!(
                "made in the scope of `{label}`: a copy on each of its {}",
                copies()
            );
            (VariableKind::Mirrored, why, (0..replicas.len()).collect())
        }
        StrategyKind::MultiWorkerMirrored => {
            let why = format!(
                "made in the scope of `{label}`: a copy in each of its {}, kept equal",
                text::count(replicas.len(), "worker")
            );
            (VariableKind::Mirrored, why, (0..replicas.len()).collect())
        }
        StrategyKind::Tpu => {
            let cores = text::count(replicas.len(), "simulated core");
            let why = format!("made in the scope of `{label}`: a copy on each of its {cores}");
            (VariableKind::Mirrored, why, (0..replicas.len()).collect())
        }
        StrategyKind::CentralStorage => {
            let home = replicas.first().map_or("", |device| device.name.as_str());
            let why = format!(
                "made in the scope of `{label}`: one copy on {home} for its {}, fetched before each batch",
                copies()
            );
            (VariableKind::Central, why, vec![0])
        }
        StrategyKind::ParameterServer => return on_servers(strategy, taken, rows),
        // Those that are cut are cut afterwards (`model_parallel::assign`).
        StrategyKind::ModelParallel => {
            let home = replicas.first().map_or("", |device| device.name.as_str());
            let why =
                format!("made in the scope of `{label}`: not cut, on {home}, its first device");
            (VariableKind::Local, why, vec![0])
        }
        // The variables of a module are put on their stages afterwards (`PipelineStages::assign`).
        StrategyKind::Pipeline => {
            let home = replicas.first().map_or("", |device| device.name.as_str());
            let why =
                format!("made in the scope of `{label}`: one copy on {home}, its first stage");
            (VariableKind::Local, why, vec![0])
        }
    };
    Kind {
        kind,
        why,
        homes,
        rows: Vec::new(),
        updated: Vec::new(),
    }
}

/// The rule of replicas that divide the state of training among them.
fn divided(strategy: &Strategy, shard: Shard, taken: usize, rows: usize) -> Kind {
    let (label, replicas) = (strategy.label(), strategy.replicas().len());
    let parts = shard::cut(rows, replicas, taken);
    let made = format!("made in the scope of `{label}`");
    let each = text::count(replicas, "replica");
    match shard {
        Shard::Optimizer | Shard::Gradients => Kind {
            kind: VariableKind::Mirrored,
            why: format!("{made}: a copy on each of its {each}, which update some rows each"),
            homes: (0..replicas).collect(),
            rows: Vec::new(),
            updated: parts,
        },
        Shard::Parameters => Kind {
            kind: VariableKind::Sharded,
            why: format!("{made}: some rows on each of its {each}, gathered to compute"),
            homes: parts.iter().map(|(replica, _)| *replica).collect(),
            rows: parts.into_iter().map(|(_, rows)| rows).collect(),
            updated: Vec::new(),
        },
    }
}

/// The rule of `ParameterServerStrategy`: variables and shards go to the servers in turn (round robin).
fn on_servers(strategy: &Strategy, taken: usize, rows: Option<Rows>) -> Kind {
    let (label, servers) = (strategy.label(), strategy.servers());
    let workers = strategy.replicas().len();
    let partitioner = strategy.variable_partitioner();
    let server = |number: usize| (taken + number) % servers.len().max(1);
    let shards = match (partitioner, rows) {
        (Some(partitioner), Some(Rows { count, bytes })) => {
            partitioner.cut(count, bytes, servers.len())
        }
        _ => Vec::new(),
    };
    if let (Some(partitioner), 2..) = (partitioner, shards.len()) {
        let count = shards.len();
        let homes = (0..count).map(|shard| workers + server(shard));
        return Kind {
            kind: VariableKind::Sharded,
            why: format!(
                "made in the scope of `{label}`, where `{partitioner}` splits it by rows into {count} \
                 shards, each on a server"
            ),
            homes: homes.collect(),
            rows: shards,
            updated: Vec::new(),
        };
    }
    let server = server(0);
    let home = servers
        .get(server)
        .map_or("", |device| device.name.as_str());
    let why = match (servers.len(), partitioner) {
        (1, _) => format!("made in the scope of `{label}`: one copy on {home}, its server"),
        (count, None) => format!(
            "made in the scope of `{label}`: one copy on {home}; variables go to its {count} servers in turn"
        ),
        (_, Some(partitioner)) => format!(
            "not split by `{partitioner}`: one copy on {home}; variables and shards go to the servers of \
             `{label}` in turn"
        ),
    };
    Kind {
        kind: VariableKind::Central,
        why,
        homes: vec![workers + server],
        rows: Vec::new(),
        updated: Vec::new(),
    }
}

/// [`kind_under`] for a variable that is synchronized when it is read: each replica writes its own copy.
pub(crate) fn kind_when_read(strategy: Option<&Strategy>, rows: Option<Rows>) -> Kind {
    let made = kind_under(strategy, 0, rows);
    let Some(strategy) = strategy.filter(|_| made.kind == VariableKind::Mirrored) else {
        return made;
    };
    let copies = text::count(strategy.replicas().len(), "replica");
    let label = strategy.label();
    Kind {
        kind: VariableKind::OnRead,
        why: format!("synchronized when read, in `{label}`: each of {copies} writes its own copy"),
        ..made
    }
}
