//! The record of a variable, and the rules by which a strategy decides how many copies it has and where.
//!
//! | kind | copies | made by |
//! | --- | --- | --- |
//! | Mirrored | one per replica, always equal | `Mirrored`, `Tpu` |
//! | OnRead | one per replica, combined when read | metrics under `Mirrored`, `Tpu` |
//! | Central | one, which replicas fetch | `CentralStorage`, `ParameterServer` |
//! | Sharded | one, split by rows over servers or replicas | `ParameterServer` with a partitioner, `Mirrored` with `Shard::Parameters` |
//! | Local | one, on one device | `OneDevice`, no strategy; `Pipeline`, on the device of its stage |

use std::ops::Range;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, DType, Int, Shape, Tensor};
use serde::{Deserialize, Serialize};
use stratoscope_render::text;

use crate::origin::Origin;
use crate::strategy::{Shard, Strategy, StrategyId, StrategyKind, shard};

/// Where the copies of a variable are and when they are synchronized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    /// A copy per replica; every update is applied to all of them.
    Mirrored,
    /// One copy, on one device.
    Local,
    /// A copy per replica that only its replica writes; the copies are combined when read.
    OnRead,
    /// One copy for all replicas, on the device that stores the parameters; replicas fetch it.
    Central,
    /// Split by rows over the parameter servers or the replicas; no device has all of it.
    Sharded,
}

impl VariableKind {
    /// The name on the report: `Mirrored`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mirrored => "Mirrored",
            Self::Local => "Local",
            Self::OnRead => "OnRead",
            Self::Central => "Central",
            Self::Sharded => "Sharded",
        }
    }
}

/// A variable of a module.
#[derive(Clone, Debug)]
pub struct VariableRecord {
    /// The checkpoint's name where there is one, else the path of fields: `classifier.weight`.
    pub name: String,
    /// Where its copies are.
    pub kind: VariableKind,
    /// Why it is of that kind, as a clause of a sentence.
    pub why: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its element type: `f32`.
    pub dtype: String,
    /// The size of one copy in bytes.
    pub bytes: u64,
    /// Whether training changes it.
    pub trainable: bool,
    /// Where it was created.
    pub origin: Origin,
    /// The strategy that placed it; none for a variable made outside any scope.
    pub strategy: Option<StrategyId>,
    /// The identity by which gradients and optimizers refer to it; the same for every copy.
    pub param: ParamId,
    /// The devices that store a copy, or a part of a sharded variable. Devices are numbered as in
    /// [`crate::Transfer`]: replicas first, then servers; in a pipeline its stages.
    pub homes: Vec<usize>,
    /// Of a sharded variable, the rows of each part, in the order of `homes`; else empty.
    pub rows: Vec<Range<usize>>,
    /// Of a variable that each replica has a copy of, where replicas divide the update among them ([`Shard`]): the replica
    /// that updates rows, and these; else empty.
    pub updated: Vec<(usize, Range<usize>)>,
}

impl VariableRecord {
    /// The number of rows: the size of its first axis.
    pub fn num_rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The size of some of its rows in bytes.
    pub(crate) fn bytes_of(&self, rows: &Range<usize>) -> u64 {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes / number(self.num_rows().max(1)) * number(rows.len())
    }

    /// The parts of a variable that is updated once: all of it on one device, its shards, or the rows that each replica
    /// updates.
    pub(crate) fn parts(&self) -> Vec<Part> {
        if !self.updated.is_empty() {
            let part = |(home, rows): &(usize, Range<usize>)| Part {
                home: *home,
                rows: rows.clone(),
            };
            return self.updated.iter().map(part).collect();
        }
        match (self.rows.as_slice(), self.homes.first()) {
            ([], home) => vec![Part {
                home: home.copied().unwrap_or(0),
                rows: 0..self.num_rows(),
            }],
            (rows, _) => {
                let parts = self.homes.iter().zip(rows);
                parts
                    .map(|(&home, rows)| Part {
                        home,
                        rows: rows.clone(),
                    })
                    .collect()
            }
        }
    }

    /// A variable that is synchronized when it is read, such as a metric's totals: if replicas have copies,
    /// each adds to its own.
    pub fn on_read(
        name: &str,
        shape: &[usize],
        dtype: DType,
        strategy: Option<&Strategy>,
        origin: Origin,
    ) -> Self {
        let Kind {
            kind,
            why,
            homes,
            rows,
            ..
        } = kind_when_read(strategy, None);
        Self {
            name: name.to_owned(),
            kind,
            why,
            shape: shape.to_vec(),
            dtype: dtype.name().to_owned(),
            bytes: bytes(&Shape::from(shape.to_vec()), dtype),
            trainable: false,
            origin,
            strategy: strategy.map(Strategy::id),
            param: ParamId::new(),
            homes,
            rows,
            updated: Vec::new(),
        }
    }
}

/// Rows of a variable and the device that stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// As in [`VariableRecord::homes`].
    pub(crate) home: usize,
    pub(crate) rows: Range<usize>,
}

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

/// The variables of a module in the order of its fields. `names` gives the checkpoint's names;
/// a variable that has none is called by its path.
pub(crate) fn describe<M: Module>(
    module: &M,
    names: &[(String, ParamId)],
    strategy: Option<&Strategy>,
    origin: &Origin,
) -> Vec<VariableRecord> {
    let mut describe = Describe {
        names,
        strategy,
        origin,
        path: Vec::new(),
        taken: 0,
        found: Vec::new(),
    };
    module.visit(&mut describe);
    describe.found
}

struct Describe<'a> {
    names: &'a [(String, ParamId)],
    strategy: Option<&'a Strategy>,
    origin: &'a Origin,
    path: Vec<String>,
    /// Variables and shards so far.
    taken: usize,
    found: Vec<VariableRecord>,
}

impl Describe<'_> {
    fn add(&mut self, param: ParamId, shape: &Shape, dtype: DType, trainable: Option<bool>) {
        // A parameter that two fields share is one variable.
        if self.found.iter().any(|known| known.param == param) {
            return;
        }
        let named = self.names.iter().find(|(_, id)| *id == param);
        // Values that are never trained, such as counters, are small and not split.
        let rows = trainable.map(|_| Rows {
            count: shape.as_slice().first().copied().unwrap_or(1),
            bytes: bytes(shape, dtype),
        });
        let taken = match self.strategy.and_then(Strategy::shard) {
            Some(_) => self.found.len(),
            None => self.taken,
        };
        let Kind {
            kind,
            why,
            homes,
            rows,
            updated,
        } = kind_under(self.strategy, taken, rows);
        self.taken += rows.len().max(1);
        self.found.push(VariableRecord {
            name: named.map_or_else(|| self.path.join("."), |(name, _)| name.clone()),
            kind,
            why,
            shape: shape.to_vec(),
            dtype: dtype.name().to_owned(),
            bytes: bytes(shape, dtype),
            trainable: trainable == Some(true),
            origin: self.origin.clone(),
            strategy: self.strategy.map(Strategy::id),
            param,
            homes,
            rows,
            updated,
        });
    }
}

impl ModuleVisitor for Describe<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // Tensors are marked as requiring gradients in training mode only.
        let trainable = Module::train(param.clone()).val().is_require_grad();
        self.add(
            param.id,
            &param.lazy_shape(),
            param.val().dtype(),
            Some(trainable),
        );
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add(param.id, &param.lazy_shape(), param.val().dtype(), None);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.add(param.id, &param.lazy_shape(), param.val().dtype(), None);
    }
}

/// The size of a tensor in bytes.
pub(crate) fn bytes(shape: &Shape, dtype: DType) -> u64 {
    u64::try_from(shape.num_elements().saturating_mul(dtype.size())).unwrap_or(u64::MAX)
}
