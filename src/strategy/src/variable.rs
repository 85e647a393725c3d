//! What is known about a variable, whatever the number of its copies.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::tensor::{Bool, DType, Int, Shape, Tensor};
use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::words;

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
    /// The devices that have a copy, or, for a sharded variable, a part: numbers as in [`crate::Transfer`],
    /// replicas first, then servers.
    pub homes: Vec<usize>,
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
            homes: (0..strategy.map_or(1, |strategy| strategy.replicas().len())).collect(),
        }
    }
}

/// What a strategy makes of a model's variable.
pub(crate) struct Kind {
    pub(crate) kind: VariableKind,
    /// A sentence.
    pub(crate) why: String,
    /// As in [`VariableRecord::homes`].
    pub(crate) homes: Vec<usize>,
}

/// The creation rules: the kind that a strategy gives to its variable number `index`.
pub(crate) fn kind_under(strategy: Option<&Strategy>, index: usize) -> Kind {
    let Some(strategy) = strategy else {
        return Kind {
            kind: VariableKind::Local,
            why: "made outside any scope: one copy, on the processor".to_owned(),
            homes: vec![0],
        };
    };
    let label = strategy.label();
    let replicas = strategy.replicas();
    let copies = || words::count(replicas.len(), "replica");
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
        StrategyKind::Tpu => {
            let cores = words::count(replicas.len(), "simulated core");
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
        StrategyKind::ParameterServer => {
            let servers = strategy.servers();
            let server = index % servers.len().max(1);
            let home = servers
                .get(server)
                .map_or("", |device| device.name.as_str());
            let why = match servers.len() {
                1 => format!("made in the scope of `{label}`: one copy on {home}, its server"),
                count => format!(
                    "made in the scope of `{label}`: one copy on {home}, as its {count} servers take \
                     variables in turn"
                ),
            };
            (VariableKind::Central, why, vec![replicas.len() + server])
        }
    };
    Kind { kind, why, homes }
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
        let Kind { kind, why, homes } = kind_under(self.strategy, self.found.len());
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
            homes,
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
