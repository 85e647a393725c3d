//! The record of a variable, and the rules by which a strategy decides how many copies it has and where.
//!
//! | kind | copies | made by |
//! | --- | --- | --- |
//! | Mirrored | one per replica, always equal | `Mirrored`, `Tpu`; `ModelParallel` and `Pipeline` with several replicas |
//! | OnRead | one per replica, combined when read | metrics under `Mirrored`, `Tpu` |
//! | Central | one, which replicas fetch | `CentralStorage`, `ParameterServer` |
//! | Sharded | one, of `ModelParallel` one per replica, split by rows or columns over servers, replicas or devices | `ParameterServer` with a partitioner, `Mirrored` with `Shard::Parameters`, `ModelParallel` |
//! | Local | one, on one device | `OneDevice`, no strategy; `Pipeline`, on the device of its stage; `ModelParallel`, on the first device |

pub(crate) mod kind;

use std::ops::Range;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, DType, Int, Shape, Tensor};
use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use crate::strategy::{Strategy, StrategyId};

pub(crate) use self::kind::{Kind, Rows, kind_under, kind_when_read};

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
    /// Split by rows over the parameter servers or the replicas, or by rows or columns over the devices that compute a layer
    /// together; no device has all of it.
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
    /// [`crate::Transfer`]: replicas first, then servers; in a pipeline its stages, one replica after the other.
    pub homes: Vec<usize>,
    /// Of a sharded variable, the rows of each part, in the order of `homes`; else empty.
    ///
    /// Under `ModelParallel` they may be columns instead: `axis` says it. There each replica has all parts.
    pub rows: Vec<Range<usize>>,
    /// The axis that `rows` divides: 0, or 1 for columns.
    pub axis: usize,
    /// Of a variable that each replica has a copy of, where replicas divide the update among them ([`Shard`](crate::strategy::Shard)): the replica
    /// that updates rows, and these; else empty.
    pub updated: Vec<(usize, Range<usize>)>,
}

impl VariableRecord {
    /// How many times it is stored: once where the devices have different parts of it, else as often as there are copies.
    pub fn copies(&self) -> usize {
        let parts = self.rows.iter().map(Range::len).sum::<usize>();
        match parts {
            0 => self.homes.len().max(1),
            parts => parts.div_ceil(self.num_slices().max(1)),
        }
    }

    /// The number of rows: the size of its first axis.
    pub fn num_rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The size of some of its rows in bytes.
    pub(crate) fn bytes_of(&self, rows: &Range<usize>) -> u64 {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.bytes / number(self.num_slices().max(1)) * number(rows.len())
    }

    /// The size of the axis along which it is cut.
    fn num_slices(&self) -> usize {
        self.shape.get(self.axis).copied().unwrap_or(1)
    }

    /// The parts of a variable that is updated once: all of it on one device, its shards, or the rows that each replica
    /// updates.
    pub(crate) fn parts(&self) -> Vec<Part> {
        if !self.updated.is_empty() {
            let part = |(home, rows): &(usize, Range<usize>)| Part {
                home: *home,
                rows: rows.clone(),
                axis: 0,
            };
            return self.updated.iter().map(part).collect();
        }
        match (self.rows.as_slice(), self.homes.first()) {
            ([], home) => vec![Part {
                home: home.copied().unwrap_or(0),
                rows: 0..self.num_rows(),
                axis: 0,
            }],
            (rows, _) => {
                let parts = self.homes.iter().zip(rows);
                parts
                    .map(|(&home, rows)| Part {
                        home,
                        rows: rows.clone(),
                        axis: self.axis,
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
            axis: 0,
            updated: Vec::new(),
        }
    }
}

/// Rows of a variable, or columns, and the device that stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// As in [`VariableRecord::homes`].
    pub(crate) home: usize,
    pub(crate) rows: Range<usize>,
    /// What `rows` counts: 0 for rows, 1 for columns.
    pub(crate) axis: usize,
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
            axis: 0,
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
