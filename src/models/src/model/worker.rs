//! A process that computes replicas for another one: what `stratoscope worker` does with the library of the cells.

use std::net::SocketAddr;
use std::path::Path;

use burn::tensor::Device;
use stratoscope_bert::{
    BertConfig, BertNetwork, MaskedLm, MultipleChoice, QuestionAnswerer, SentenceEncoder,
    SequenceClassifier, TokenClassifier,
};
use stratoscope_strategy::{AsStrategy, OneDeviceStrategy, scope, strategy};
use stratoscope_workers::team::chief_in_environment;
use stratoscope_workers::{
    ChiefAddress, Collective, Fault, JobKey, Outcome, Settings, Work, serve,
};

use super::sequential::{self, Layers};
use stratoscope_network::made::{self, Made};
use stratoscope_network::{AnyNetwork, Blueprint, Network};
use stratoscope_step::workers::{Host, Hosted, ModelRequest, Replica, Request, answered, failed};

/// The backward pass of a deep network needs more than a thread has by default.
const STACK_BYTES: usize = 64 << 20;

/// Works for the process that has started this one, if one has: a program that starts workers by
/// [`start_workers_by`](strategy::start_workers_by) calls this first of all. Returns false in any other process; a worker
/// does not return.
pub fn serve_as_worker() -> bool {
    let Some((chief, key)) = chief_in_environment() else {
        return false;
    };
    let code = match work_at(chief, &key, &|_| ()) {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("the worker has ended: {problem}");
            1
        }
    };
    std::process::exit(code);
}

/// Works for the chief that is called or waited for, with the key of the file. `ready` is called with the address that is listened at.
///
/// # Errors
/// In words: the key cannot be read, the port is taken, the chief is lost.
pub fn work_at(
    chief: ChiefAddress,
    key: &Path,
    ready: &(dyn Fn(SocketAddr) + Sync),
) -> Result<(), String> {
    let key = JobKey::read(key).map_err(|error| format!("the key {}: {error}", key.display()))?;
    let settings = Settings::new(strategy::build());
    std::thread::scope(|threads| {
        let thread = std::thread::Builder::new()
            .name("worker".to_owned())
            .stack_size(STACK_BYTES);
        let work = || serve(chief, &key, &settings, &mut Worker::default(), ready);
        let thread = thread.spawn_scoped(threads, work);
        let thread = thread.map_err(|error| error.to_string())?;
        let outcome = thread
            .join()
            .map_err(|_| "the worker panicked".to_owned())?;
        outcome.map_err(|fault| fault.to_string())
    })
}

/// The model that is trained, of whatever network.
#[derive(Default)]
struct Worker {
    model: Option<(u64, Box<dyn Hosted>)>,
}

impl Work for Worker {
    fn work(&mut self, command: &[u8], group: &mut dyn Collective) -> Outcome<Vec<u8>> {
        let request = Request::decoded(command)?;
        if let Request::Model(model) = &request
            && (self.model.as_ref()).is_none_or(|(number, _)| *number != model.number)
        {
            // The old one is freed before the new one takes memory.
            self.model = None;
            self.model = Some((model.number, built(model)?));
        }
        let Some((_, model)) = &mut self.model else {
            return Err(Fault::Failed("there is no model yet".to_owned()));
        };
        answered(&model.serve(request, group)?)
    }

    fn name(&self, command: &[u8]) -> &'static str {
        Request::name(command)
    }

    fn cuda_device(&self) -> Outcome<usize> {
        strategy::cuda_device_of_worker().map_err(|problem| failed(problem.one_line()))
    }
}

/// The network that a blueprint describes, on a device of the chief's kind.
fn built(model: &ModelRequest) -> Outcome<Box<dyn Hosted>> {
    let placed = || -> stratoscope_diagnostics::Result<_> {
        let handle = OneDeviceStrategy::new(strategy::device_of_worker(model.backend)?)?;
        let strategy = handle.strategy();
        let _scope = scope::enter(&handle)?;
        Ok((strategy, scope::device()?))
    };
    let (strategy, device) = placed().map_err(|problem| failed(problem.one_line()))?;
    let blueprint = &model.blueprint;
    match blueprint.family.as_str() {
        made::FAMILY => {
            let made = Made::of(blueprint).map_err(failed)?;
            let (host, make) = made.functions();
            // SAFETY: `Model::made_by` has put such a function there, and the library that has it is that of the chief.
            let host = unsafe { std::mem::transmute::<*const (), Host>(host) };
            // SAFETY: `Model::made_by` puts this function of a network beside the one that makes it.
            unsafe { host(make, made.width, (strategy, model.policy), &device) }
        }
        sequential::FAMILY => {
            let layers = Layers::of_blueprint(blueprint, &device);
            hosted(layers, strategy, model)
        }
        SequenceClassifier::ARCHITECTURE => hosted(
            of_config::<SequenceClassifier>(blueprint, &device)?,
            strategy,
            model,
        ),
        MaskedLm::ARCHITECTURE => {
            hosted(of_config::<MaskedLm>(blueprint, &device)?, strategy, model)
        }
        MultipleChoice::ARCHITECTURE => hosted(
            of_config::<MultipleChoice>(blueprint, &device)?,
            strategy,
            model,
        ),
        QuestionAnswerer::ARCHITECTURE => hosted(
            of_config::<QuestionAnswerer>(blueprint, &device)?,
            strategy,
            model,
        ),
        SentenceEncoder::ARCHITECTURE => hosted(
            of_config::<SentenceEncoder>(blueprint, &device)?,
            strategy,
            model,
        ),
        TokenClassifier::ARCHITECTURE => hosted(
            of_config::<TokenClassifier>(blueprint, &device)?,
            strategy,
            model,
        ),
        other => Err(failed(format!("no network of this library: `{other}`"))),
    }
}

/// A network with a BERT in it, of its configuration.
fn of_config<N: BertNetwork>(
    blueprint: &Blueprint,
    device: &Device,
) -> Outcome<stratoscope_diagnostics::Result<N>> {
    let config: BertConfig = blueprint.read().map_err(failed)?;
    Ok(N::init(&config, 0, device))
}

fn hosted<N: Network>(
    network: stratoscope_diagnostics::Result<N>,
    strategy: strategy::Strategy,
    model: &ModelRequest,
) -> Outcome<Box<dyn Hosted>> {
    let network = network.map_err(|problem| failed(problem.one_line()))?;
    let network = AnyNetwork::new(network);
    Ok(Box::new(Replica::new(network, strategy, model.policy)?))
}
