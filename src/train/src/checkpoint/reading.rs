//! `state.safetensors` read: its tensors in place of those of a run that is to go on, as they lie in the file or laid out
//! again ([`Relaid`]).

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use super::convert::Refused;
use super::moments::moments_from;
use super::relaid::Relaid;
use super::tensors::{Layout, dtype, of_examples, of_metrics};
use stratoscope_inspect::{ExampleLog, SAVED_BYTES};
use stratoscope_metrics::metric::{Tallies, Tally};
use stratoscope_network::AnyNetwork;
use stratoscope_step::SavedStep;

/// What the training passes of these epochs have said of each example of the run.
///
/// # Errors
/// Why the file is not believed.
pub(super) fn examples(
    bytes: &[u8],
    (epochs, is_full): (&[u64], bool),
    examples: usize,
) -> Result<ExampleLog, Refused> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let of_epoch = |&epoch: &u64| {
        let name = of_examples(epoch);
        let found = file.tensor(&name).map_err(|error| error.to_string())?;
        match found.data().len() == examples * SAVED_BYTES {
            true => Ok((epoch, found.data())),
            false => Err(format!("`{name}` is of another size")),
        }
    };
    let each: Vec<(u64, &[u8])> = epochs
        .iter()
        .map(of_epoch)
        .collect::<Result<_, Refused>>()?;
    Ok(ExampleLog::from_saved(each, is_full))
}

/// The tensors of a file, and which of them were taken.
pub(super) struct Tensors<'b> {
    written: HashMap<String, TensorView<'b>>,
    taken: HashSet<String>,
    /// Where the run that goes on lays out its variables in another way.
    relaid: Option<&'b Relaid<'b>>,
}

impl<'b> Tensors<'b> {
    fn of(file: &SafeTensors<'b>, relaid: Option<&'b Relaid<'b>>) -> Self {
        let written = file.iter();
        Self {
            written: written
                .map(|(name, view)| (name.to_owned(), view))
                .collect(),
            taken: HashSet::new(),
            relaid,
        }
    }

    /// The bytes of a tensor of this type and shape. Copies that are equal are written once, so that each takes the same.
    pub(super) fn take(
        &mut self,
        name: &str,
        of: DType,
        shape: &[usize],
    ) -> Result<Cow<'b, [u8]>, Refused> {
        if let Some(piece) = self.relaid.and_then(|it| it.piece(name)) {
            let bytes = piece.bytes(&self.written, &mut self.taken, dtype(of))?;
            let expected = shape.iter().product::<usize>() * of.size();
            return match bytes.len() == expected {
                true => Ok(bytes),
                false => Err(format!("`{name}` is of another size")),
            };
        }
        let found = self.written.get(name);
        let found = found.ok_or_else(|| format!("`{name}` is missing"))?;
        if Some(found.dtype()) != dtype(of) || found.shape() != shape {
            return Err(format!(
                "`{name}` is {:?} {:?} and should be {} {shape:?}",
                found.dtype(),
                found.shape(),
                of.name()
            ));
        }
        self.taken.insert(name.to_owned());
        Ok(Cow::Borrowed(found.data()))
    }

    /// Whether a tensor of this name was written.
    pub(super) fn has(&self, name: &str) -> bool {
        match self.relaid.and_then(|it| it.piece(name)) {
            Some(piece) => piece.is_written(&self.written),
            None => self.written.contains_key(name),
        }
    }

    /// One that nobody has taken.
    fn left(&self) -> Option<&String> {
        let mut names = self.written.keys();
        names.find(|name| !name.starts_with("examples.") && !self.taken.contains(*name))
    }
}

/// Puts the tensors of a file in place of those of a module.
struct Fill<'a, 'b> {
    layout: &'a Layout<'a>,
    tensors: &'a mut Tensors<'b>,
    prefix: String,
    problem: Option<Refused>,
}

impl ModuleMapper for Fill<'_, '_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(name) = self.layout.name(param.id) else {
            return param;
        };
        let held = param.val();
        let shape = held.shape().to_vec();
        if self.problem.is_some() || shape.contains(&0) {
            return param;
        }
        let name = format!("{}.{name}", self.prefix);
        let bytes = match self.tensors.take(&name, held.dtype(), &shape) {
            Ok(bytes) => bytes,
            Err(problem) => {
                self.problem = Some(problem);
                return param;
            }
        };
        let (id, _, mapper) = param.consume();
        let value = tensor::<D>(bytes, shape, held.dtype(), &held.device());
        let value = match held.is_require_grad() {
            true => value.require_grad(),
            false => value,
        };
        Param::from_mapped_value(id, value, mapper)
    }
}

pub(super) fn tensor<const D: usize>(
    bytes: Cow<'_, [u8]>,
    shape: Vec<usize>,
    dtype: DType,
    device: &Device,
) -> Tensor<D> {
    let data = TensorData::from_bytes_vec(bytes.into_owned(), shape, dtype);
    Tensor::from_data(data, (device, dtype))
}

/// How a file is read.
pub(super) struct Reading<'a> {
    pub layout: &'a Layout<'a>,
    /// A whole module, in whose place the weights of the best epoch are returned.
    pub best_like: Option<AnyNetwork>,
    /// The optimizer's steps on each copy.
    pub moments: &'a [u64],
    /// Where the variables are laid out in another way now.
    pub relaid: Option<&'a Relaid<'a>>,
    /// A tally that has counted nothing.
    pub empty: Tally,
}

/// Replaces the tensors of a state, which is of the run that is to go on, by those of a file. Returns the weights of the
/// best epoch.
///
/// # Errors
/// Why the file is not believed: a tensor is missing, of another type or shape, or one too many.
pub(super) fn read(
    bytes: &[u8],
    state: &mut SavedStep,
    reading: Reading<'_>,
) -> Result<Option<AnyNetwork>, Refused> {
    let layout = reading.layout;
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors = Tensors::of(&file, reading.relaid);
    let best = reading.best_like;
    let best = best.map(|like| filled(like, "best".to_owned(), layout, &mut tensors));
    let best = best.transpose()?;
    for copy in 0..state.values.modules.len() {
        let module = state.values.modules[copy].clone();
        let written = format!("weights.{}", copy % layout.copies);
        state.values.modules[copy] = filled(module, written, layout, &mut tensors)?;
    }
    for worker in 0..state.values.fetched.len() {
        let module = state.values.fetched[worker].0.clone();
        let prefix = format!("fetched.{worker}");
        state.values.fetched[worker].0 = filled(module, prefix, layout, &mut tensors)?;
    }
    state.moments = moments_from(state, reading.moments, layout, &mut tensors)?;
    if let Some(tallies) = &state.tallies {
        let is_relaid = reading.relaid.is_some();
        state.tallies = Some(counted(tallies, is_relaid, &reading.empty, &mut tensors)?);
    }
    match tensors.left() {
        Some(name) => Err(format!("`{name}` belongs to no variable of the model")),
        None => Ok(best),
    }
}

/// The counts of the metrics. Those of other replicas are added up, as whoever reads a metric does.
fn counted(
    tallies: &Tallies,
    is_relaid: bool,
    empty: &Tally,
    tensors: &mut Tensors<'_>,
) -> Result<Tallies, Refused> {
    let asked = RefCell::new(BTreeSet::new());
    let written = &tensors.written;
    let counts = |copy: usize, name: &str| {
        let name = of_metrics(copy, name);
        let found = written.get(&name);
        asked.borrow_mut().insert(name);
        // Nothing was written of what is empty.
        Some(found.map_or(&[][..], TensorView::data))
    };
    let copies = written.keys().filter_map(|name| copy_of_metrics(name));
    let copies = copies.max().map_or(1, |last| last + 1);
    let counted = match is_relaid {
        true => tallies.with_sum_of(copies, empty, counts),
        false => tallies.with_states(counts),
    };
    let counted = counted.ok_or("the counts of the metrics are of another kind")?;
    tensors.taken.extend(asked.into_inner());
    let mut rest = tensors.written.keys();
    match rest.any(|name| name.starts_with("metrics.") && !tensors.taken.contains(name)) {
        true => Err("it has counts of metrics that are kept in another way now".to_owned()),
        false => Ok(counted),
    }
}

/// Which copy has counted what is written under this name.
fn copy_of_metrics(name: &str) -> Option<usize> {
    let (copy, _) = name.strip_prefix("metrics.")?.split_once('.')?;
    // More replicas than these cannot be made; a file may say anything.
    copy.parse().ok().filter(|&copy| copy < MAX_COPIES)
}

/// Replicas that a file may have counts of.
const MAX_COPIES: usize = 1 << 16;

fn filled(
    module: AnyNetwork,
    prefix: String,
    layout: &Layout<'_>,
    tensors: &mut Tensors<'_>,
) -> Result<AnyNetwork, Refused> {
    let mut fill = Fill {
        layout,
        tensors,
        prefix,
        problem: None,
    };
    let module = module.map(&mut fill);
    match fill.problem {
        Some(problem) => Err(problem),
        None => Ok(module),
    }
}
