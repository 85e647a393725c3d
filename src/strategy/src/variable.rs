//! What is known about a variable, whatever the number of its copies.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, DType, Int, Shape, Tensor};
use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use crate::strategy::{Strategy, StrategyId, StrategyKind};

/// Where the copies of a variable are and how they are kept equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableKind {
    /// A copy per replica; every update is applied to all of them.
    Mirrored,
    /// One copy, on one device.
    Local,
    /// A copy per replica that only its replica writes; the copies are combined when read.
    OnRead,
    /// One copy for all replicas, on the device that keeps the parameters; replicas read it over.
    Central,
    /// Split by rows over the parameter servers; no device has all of it.
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
    /// Why it is of that kind, a sentence.
    pub why: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its element type: `f32`.
    pub dtype: String,
    /// The size of one copy in bytes.
    pub bytes: u64,
    /// Whether training changes it.
    pub trainable: bool,
    /// Who made it.
    pub origin: Origin,
    /// The strategy that placed it; none for a variable made outside any scope.
    pub strategy: Option<StrategyId>,
    /// What gradients and optimizers know it by; the same for every copy.
    pub param: ParamId,
}

impl VariableRecord {
    /// A float variable that each replica writes alone and that is combined when read, as a metric's
    /// totals are.
    pub fn on_read(
        name: &str,
        shape: &[usize],
        strategy: Option<&Strategy>,
        origin: Origin,
    ) -> Self {
        Self {
            name: name.to_owned(),
            kind: VariableKind::OnRead,
            why: "each replica adds to its own copy; the copies are summed when the value is read"
                .to_owned(),
            shape: shape.to_vec(),
            dtype: DType::F32.name().to_owned(),
            bytes: bytes(&Shape::from(shape.to_vec()), DType::F32),
            trainable: false,
            origin,
            strategy: strategy.map(Strategy::id),
            param: ParamId::new(),
        }
    }
}

/// The kind that a strategy gives to variables, and why.
pub(crate) fn kind_under(strategy: Option<&Strategy>) -> (VariableKind, String) {
    let Some(strategy) = strategy else {
        let why = "made outside any scope: one copy, on the processor";
        return (VariableKind::Local, why.to_owned());
    };
    let label = strategy.label();
    match (strategy.kind(), strategy.replicas()) {
        (StrategyKind::OneDevice, _) => (
            VariableKind::Local,
            format!("made in the scope of `{label}`, which has one device"),
        ),
        (StrategyKind::Mirrored, replicas) => {
            let copies = stratoscope_diagnostics::words::count(replicas.len(), "replica");
            let why = format!("made in the scope of `{label}`: a copy on each of its {copies}");
            (VariableKind::Mirrored, why)
        }
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
    found: Vec<VariableRecord>,
}

impl Describe<'_> {
    fn add(&mut self, param: ParamId, shape: &Shape, dtype: DType, trainable: bool) {
        // A parameter that two fields share is one variable.
        if self.found.iter().any(|known| known.param == param) {
            return;
        }
        let named = self.names.iter().find(|(_, id)| *id == param);
        let (kind, why) = kind_under(self.strategy);
        self.found.push(VariableRecord {
            name: named.map_or_else(|| self.path.join("."), |(name, _)| name.clone()),
            kind,
            why,
            shape: shape.to_vec(),
            dtype: dtype.name().to_owned(),
            bytes: bytes(shape, dtype),
            trainable,
            origin: self.origin.clone(),
            strategy: self.strategy.map(Strategy::id),
            param,
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
        // Outside of training no tensor says that it wants gradients; in training it does.
        let trainable = Module::train(param.clone()).val().is_require_grad();
        self.add(
            param.id,
            &param.lazy_shape(),
            param.val().dtype(),
            trainable,
        );
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add(param.id, &param.lazy_shape(), param.val().dtype(), false);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.add(param.id, &param.lazy_shape(), param.val().dtype(), false);
    }
}

/// The size of a tensor in bytes.
pub(crate) fn bytes(shape: &Shape, dtype: DType) -> u64 {
    u64::try_from(shape.num_elements().saturating_mul(dtype.size())).unwrap_or(u64::MAX)
}
