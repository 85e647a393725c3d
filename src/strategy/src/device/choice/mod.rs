//! The default device: where models outside of a scope, and strategies without named devices, compute.
//!
//! It is the best device that works: the first of CUDA's that executes a kernel, else the first hardware adapter of
//! wgpu that does, else the processor. `STRATOSCOPE_DEVICE` or the magic `%device` name another one; a software
//! adapter is taken only where it is named. The choice is made once, when it is first needed, and a device that should
//! have been taken and does not start is reported (SC0713).

mod burn_default;
mod hardware;
mod order;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use stratoscope_diagnostics::check::suggest::similar;
use stratoscope_diagnostics::rules::{DefaultDeviceFellBack, UnknownDefaultDevice};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use self::order::{Candidate, Decision, Found, Passed, Wanted};
use super::{BackendKind, DeviceInfo, DeviceSpec, LogicalDevice};
use super::{adapters, cuda_driver, processor};
use crate::problem;

/// The environment variable that names the default device: `cpu`, `wgpu`, `wgpu:1`, `cuda:0`, `auto`.
pub const VARIABLE: &str = "STRATOSCOPE_DEVICE";
/// The magic that does the same for the running process.
const MAGIC: &str = "%device";

/// Who chose the default device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// Nobody: it is the best one that works.
    Itself,
    /// The environment variable [`VARIABLE`].
    Variable,
    /// [`choose`]: the magic `%device`.
    Magic,
}

/// The default device, and why it is that one.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The device, started.
    pub device: LogicalDevice,
    /// Who chose it.
    pub by: ChosenBy,
    /// The devices of a strategy that is made without naming any: all hardware of its kind, or the device alone where
    /// it was named with its number or is a software adapter.
    alike: Vec<String>,
    /// The devices and kinds of devices that would have come before it.
    passed: Vec<Passed>,
}

impl Choice {
    /// Why it is this device, in a few words: `no GPU was found`, `set by STRATOSCOPE_DEVICE`.
    pub fn reason(&self) -> String {
        let failed: Vec<&str> = self.failures().map(|(name, _)| name).collect();
        if !failed.is_empty() {
            return format!("{} did not start", failed.join(", "));
        }
        match (self.by, self.device.backend) {
            (ChosenBy::Variable, _) => format!("set by {VARIABLE}"),
            (ChosenBy::Magic, _) => format!("set by {MAGIC}"),
            (ChosenBy::Itself, BackendKind::Cuda | BackendKind::Wgpu) => {
                "the best that works".to_owned()
            }
            (ChosenBy::Itself, BackendKind::Flex) => "no GPU was found".to_owned(),
        }
    }

    /// Whether there is nothing to explain: it is the processor, and no other device was tried.
    pub fn is_plain(&self) -> bool {
        self.device.backend == BackendKind::Flex && self.failures().next().is_none()
    }

    /// The devices that came before it and did not start, each with the reason.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed = self.passed.iter().filter(|passed| passed.failed);
        failed.map(|passed| (passed.name.as_str(), passed.reason.as_str()))
    }

    /// Whether and why a device is the default one, or why it is not.
    pub fn verdict(&self, device: &DeviceInfo) -> String {
        if device.name == self.device.name {
            return format!("yes: {}", self.reason());
        }
        let passed = self.passed.iter().find(|passed| passed.name == device.name);
        match passed {
            Some(passed) if passed.failed => format!("no: it did not start: {}", passed.reason),
            Some(passed) => format!("no: {}", passed.reason),
            None if device.software => format!("no: {}", order::SOFTWARE),
            None => format!("no: {} comes first", self.device.name),
        }
    }

    /// The kinds of devices that the machine does not have, each with the reason.
    pub fn absent(&self) -> Vec<(BackendKind, String)> {
        let kinds = [BackendKind::Cuda, BackendKind::Wgpu];
        let of = |kind: &BackendKind| {
            let passed = self
                .passed
                .iter()
                .find(|passed| passed.name == kind.prefix())?;
            Some((*kind, passed.reason.clone()))
        };
        kinds.iter().filter_map(of).collect()
    }

    /// The devices of a strategy that names none.
    pub(crate) fn alike(&self) -> Vec<DeviceSpec> {
        let names = self.alike.iter();
        names.map(|name| name.as_str().into()).collect()
    }
}

/// What was chosen, and what a cell has asked for.
#[derive(Debug, Default)]
struct State {
    made: Option<Arc<Choice>>,
    asked: Option<String>,
}

impl State {
    /// From now on it is the default, and burn's own follows.
    fn keep(&mut self, choice: &Arc<Choice>) {
        burn_default::set(choice.device.backend);
        self.made = Some(choice.clone());
    }
}

/// Process-wide, as the devices are.
static STATE: Mutex<State> = Mutex::new(State {
    made: None,
    asked: None,
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a note of this crate is shown.
static TELL: OnceLock<fn(Diagnostic)> = OnceLock::new();

/// Shows notes on the choice, and on workers, by `show` instead of on standard error. Only the first call has an effect.
pub fn tell_by(show: fn(Diagnostic)) {
    let _ = TELL.set(show);
}

pub(crate) fn tell(note: Diagnostic) {
    match TELL.get() {
        Some(show) => show(note),
        None => eprintln!("{note}"),
    }
}

/// The default device and why it is that one. The first call decides, which starts the device.
///
/// # Errors
/// SC0712 where the variable names no device of this machine.
pub fn choice() -> Result<Arc<Choice>> {
    let (choice, note) = {
        let mut state = state();
        if let Some(made) = &state.made {
            return Ok(made.clone());
        }
        let variable = || std::env::var(VARIABLE).unwrap_or_default();
        let (text, by) = match &state.asked {
            Some(asked) => (asked.clone(), ChosenBy::Magic),
            None => (variable(), ChosenBy::Variable),
        };
        let (choice, note) = decide(&text, by)?;
        state.keep(&choice);
        (choice, note)
    };
    if let Some(note) = note {
        tell(note);
    }
    Ok(choice)
}

/// The default device, for models without a strategy.
///
/// # Errors
/// As [`choice`].
pub fn default_device() -> Result<LogicalDevice> {
    Ok(choice()?.device.clone())
}

/// Makes a device the default one from now on: `"wgpu:0"`, `"cpu"`; with `"auto"` the best that works. Models that
/// exist stay where they are.
///
/// # Errors
/// SC0712 for a device that is not there, SC0907 for one that does not start; the default stays.
pub fn choose(device: &str) -> Result<Arc<Choice>> {
    let mut state = state();
    let (choice, _) = decide(device, ChosenBy::Magic)?;
    let failed = choice.passed.iter().find(|passed| passed.failed);
    if let Some(failed) = failed.filter(|_| choice.by == ChosenBy::Magic) {
        return Err(problem::backend_failed(&failed.name, &failed.reason));
    }
    state.asked = Some(device.to_owned());
    state.keep(&choice);
    Ok(choice)
}

/// Forgets the choice: the next use decides anew. For a variable that was changed within the process.
pub fn reconsider() {
    *state() = State::default();
    foresee();
}

/// Makes burn's own default device, `Device::default()`, one of the kind that [`choice`] will most likely take, without
/// starting any: for code that was written for burn and runs before the choice.
pub fn foresee() {
    let named = std::env::var(VARIABLE).unwrap_or_default();
    burn_default::set(likely(&Wanted::parse(&named)));
}

fn likely(wanted: &Wanted) -> BackendKind {
    let mut kinds = [BackendKind::Flex, BackendKind::Wgpu, BackendKind::Cuda].into_iter();
    if let Some(named) = kinds.find(|kind| wanted.is_of(*kind)) {
        return named;
    }
    match hardware::none() {
        Some(_) => BackendKind::Flex,
        None if cuda_driver::driver().devices.is_empty() => BackendKind::Wgpu,
        None => BackendKind::Cuda,
    }
}

fn decide(text: &str, by: ChosenBy) -> Result<(Arc<Choice>, Option<Diagnostic>)> {
    let wanted = Wanted::parse(text);
    let by = match wanted {
        Wanted::Best => ChosenBy::Itself,
        Wanted::Kind(_) | Wanted::This(_) => by,
    };
    let found = found(&wanted);
    let unknown = |reason: Option<String>| unknown(text, by, &found, reason).error();
    let start = |name: &str| DeviceSpec::from(name).start();
    let decision = order::decide(&wanted, &found, start).map_err(unknown)?;
    let device = DeviceSpec::from(decision.name.as_str()).resolve()?;
    let Decision {
        name,
        alike,
        passed,
    } = decision;
    let failed = passed.iter().filter(|passed| passed.failed);
    let failed: Vec<(String, String)> = failed
        .map(|passed| (passed.name.clone(), passed.reason.clone()))
        .collect();
    let note =
        (!failed.is_empty()).then(|| DefaultDeviceFellBack { failed, used: name }.diagnostic());
    let choice = Choice {
        device,
        by,
        alike,
        passed,
    };
    Ok((Arc::new(choice), note))
}

/// What the machine has. Adapters are listed only where there can be a GPU or one is named: starting Vulkan's drivers
/// takes longer than everything else.
fn found(wanted: &Wanted) -> Found {
    let driver = cuda_driver::driver();
    let mut candidates: Vec<Candidate> = driver.devices.iter().map(Candidate::of).collect();
    let mut absent = Vec::new();
    if driver.devices.is_empty() {
        absent.push((BackendKind::Cuda, driver.reason.clone()));
    }
    match hardware::none() {
        Some(reason) if !wanted.may_be_wgpu() => {
            absent.push((BackendKind::Wgpu, reason));
        }
        _ => {
            let adapters = adapters::adapters();
            candidates.extend(adapters.iter().map(|adapter| Candidate::of(&adapter.info)));
            if adapters.is_empty() {
                absent.push((BackendKind::Wgpu, adapters::NONE.to_owned()));
            }
        }
    }
    candidates.push(Candidate::of(&processor::info()));
    Found { candidates, absent }
}

/// SC0712.
fn unknown(
    text: &str,
    by: ChosenBy,
    found: &Found,
    reason: Option<String>,
) -> UnknownDefaultDevice {
    let names = found.candidates.iter().map(|device| device.name.clone());
    let known: Vec<String> = names.chain(["auto".to_owned()]).collect();
    let kinds = [BackendKind::Flex, BackendKind::Wgpu, BackendKind::Cuda].map(BackendKind::prefix);
    let near = known.iter().map(String::as_str).chain(kinds);
    let near = similar(text.trim(), near).first().map(ToString::to_string);
    UnknownDefaultDevice {
        by: match by {
            ChosenBy::Magic => MAGIC.to_owned(),
            ChosenBy::Itself | ChosenBy::Variable => VARIABLE.to_owned(),
        },
        given: text.trim().to_owned(),
        meant: near.filter(|name| known.contains(name)),
        known,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_kind_is_likely() {
        let of = |text| likely(&Wanted::parse(text));
        assert_eq!(of("cpu"), BackendKind::Flex);
        assert_eq!(of("wgpu(1)"), BackendKind::Wgpu);
        assert_eq!(of("cuda:0"), BackendKind::Cuda);
        assert_eq!(of("cpuu"), of("auto"));
    }

    /// One test: the choice is that of the process.
    #[test]
    fn a_choice_is_kept_until_another_is_made() {
        let cpu = choose("cpu").expect("there is a processor");
        let burns = burn::tensor::Device::default();
        assert_eq!(crate::device::name_of(&burns), "cpu:0");
        assert_eq!(
            (cpu.device.name.as_str(), cpu.by),
            ("cpu:0", ChosenBy::Magic)
        );
        assert_eq!(cpu.reason(), "set by %device");
        let error = choose("cpu:7").expect_err("there is one");
        assert_eq!(error.code, "SC0712");
        assert!(error.message.contains("%device"), "{}", error.message);
        let same = choice().expect("it was made");
        assert!(Arc::ptr_eq(&cpu, &same), "an error leaves the default");
        let wrong = choose("cdua:0").expect_err("no such kind");
        assert_eq!(wrong.code, "SC0712");
        let verdict = cpu.verdict(&processor::info());
        assert_eq!(verdict, "yes: set by %device");
        reconsider();
        let auto = choose("auto").expect("the processor at least");
        assert_eq!(auto.by, ChosenBy::Itself);
        assert!(!auto.device.description.contains("software"), "{auto:?}");
        reconsider();
    }
}
