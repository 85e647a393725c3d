//! This executable as the tools that evcxr calls. evcxr asks `rustup which cargo`, and runs that
//! cargo for every cell; this `rustup` and this `cargo` are links to ourselves.
//!
//! cargo takes as long to find out that only the cell has changed as rustc takes to compile it. So
//! the first cell goes through the real cargo, and [`super::wrapper`] notes how it called rustc;
//! from then on cells are compiled by the same call, also by later kernels, until the manifest
//! changes (`:dep`). A cell that was compiled before, against the same library, is not compiled
//! again, well or badly ([`super::compile_cache`]); any other is given to the compiler that stands by
//! ([`super::standby`]).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};

use super::attempts::Attempts;
use super::compile_cache::{self, Found, Kept};
use super::generated;
use super::home;
use super::linker::Linker;
use super::retry;
use super::rustc_json;
use super::standby::{self, Order};
use super::state::State;
use super::wrapper::{self, Settings};
use crate::compiler;
use stratoscope_os::environment;
use stratoscope_os::process::die_with_parent;

/// The name under which evcxr calls us as cargo.
const CARGO: &str = "stratoscope-cargo";
/// The name under which evcxr asks us where cargo and rustc are.
const RUSTUP: &str = "rustup";
/// The folder, in the private one, that holds [`RUSTUP`] and comes first in `PATH`.
const FOLDER: &str = "bin";

/// Stands for the private folder, which every kernel has another of.
pub const HOME: &str = "{home}";

/// What evcxr begins a cell with.
const USUAL_ATTRIBUTES: &str = "#![allow(unused_imports, unused_mut, dead_code)]\n";

/// Makes the links in the private folder. rust-analyzer asks the `rustc` that PATH finds, which would be
/// rustup's proxy.
pub fn install(home: &Path, executable: &Path, rustc: &Path) -> io::Result<()> {
    fs::create_dir_all(home.join(FOLDER))?;
    symlink(executable, home.join(CARGO))?;
    symlink(rustc, home.join(FOLDER).join("rustc"))?;
    symlink(executable, home.join(FOLDER).join(RUSTUP))
}

/// What `PATH` has to begin with, so that evcxr finds our `rustup`.
pub fn folder(home: &Path) -> PathBuf {
    home.join(FOLDER)
}

/// Runs as one of the tools if that is the name it was called by.
pub fn dispatch() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    let arguments: Vec<OsString> = arguments.collect();
    let result = match name.file_name()?.to_str()? {
        CARGO => cargo(name.parent()?, &arguments),
        // Found by its name alone, so it does not say where it lies.
        RUSTUP => rustup(&home::chosen()?, &arguments),
        _ => return None,
    };
    Some(result.unwrap_or_else(|error| {
        eprintln!("{}: {error}", name.display());
        ExitCode::FAILURE
    }))
}

/// Answers `which cargo` and `which rustc`; everything else is for the real one.
fn rustup(home: &Path, arguments: &[OsString]) -> io::Result<ExitCode> {
    let words: Vec<_> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let path = match words[..] {
        ["which", "cargo"] => home.join(CARGO),
        ["which", "rustc"] => Settings::read(home)?.rustc,
        _ => {
            let mut real = Command::new(RUSTUP);
            environment::clean_env(&mut real).current_dir(compiler::ROOT);
            return Err(real.args(arguments).exec());
        }
    };
    writeln!(io::stdout(), "{}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

fn cargo(home: &Path, arguments: &[OsString]) -> io::Result<ExitCode> {
    let settings = Settings::read(home)?;
    let step = arguments.iter().find_map(|word| Step::of_cargo(word));
    if let Some(step) = step
        && let Some(call) = Call::noted(&settings, step)
        && call.holds(home)
    {
        return call.again(step, home, &settings);
    }
    // What takes minutes ends with the kernel.
    // SAFETY: a plain system call on our own process; failure changes nothing.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut command = compiler::cargo(&settings.toolchain, Some(&home.join("cells")), arguments);
    if step.is_some() {
        // What evcxr repeats in the kernel's terminal otherwise is of no use there.
        command.arg("--quiet");
    }
    Err(command.exec())
}

/// What cargo has rustc make of a cell when evcxr builds it.
pub const EMIT_OF_BUILD: &str = "--emit=dep-info,link";
/// The same when evcxr only wants to know its errors.
pub const EMIT_OF_CHECK: &str = "--emit=dep-info,metadata";

/// What evcxr has cargo do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Build,
    Check,
}

impl Step {
    fn of_cargo(word: &OsStr) -> Option<Self> {
        match word.to_str()? {
            "build" => Some(Self::Build),
            "check" => Some(Self::Check),
            _ => None,
        }
    }

    fn of_rustc(arguments: &[String]) -> Option<Self> {
        let has = |emit: &str| arguments.iter().any(|word| word == emit);
        if has(EMIT_OF_BUILD) {
            return Some(Self::Build);
        }
        has(EMIT_OF_CHECK).then_some(Self::Check)
    }

    /// Whether evcxr is to be told. It takes whatever it hears of a check for an error.
    fn wants(self, message: &str) -> bool {
        self == Self::Build || !rustc_json::is_warning(message)
    }

    fn file(self, settings: &Settings) -> PathBuf {
        settings.dependencies.join(match self {
            Self::Build => "build.json",
            Self::Check => "check.json",
        })
    }
}

/// What came of a source.
enum Said {
    /// A library, and these warnings.
    Compiled(String),
    /// Nothing, for these reasons.
    Refused(String),
    /// The compiler was ended.
    Killed(String),
}

/// How cargo called rustc for a cell. The private folder is written as [`HOME`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Call {
    /// cargo's files that decide how rustc is called.
    manifest: String,
    flags: String,
    rustc: String,
    arguments: Vec<String>,
    /// What cargo tells rustc, and through it `env!`.
    environment: BTreeMap<String, String>,
}

/// Notes how cargo calls rustc for a cell that needs nothing but the facade, for the next one.
pub fn note(settings: &Settings, home: &Path, rustc: &OsStr, arguments: &[OsString]) {
    if let Some((step, call)) = Call::of(home, rustc, arguments) {
        // Without the note the next cell goes through cargo too.
        let _ = call.keep(&step.file(settings));
    }
}

impl Call {
    fn of(home: &Path, rustc: &OsStr, arguments: &[OsString]) -> Option<(Step, Self)> {
        let folder = home.to_str()?;
        let portable = |text: &str| text.replace(folder, HOME);
        let arguments: Vec<String> = arguments
            .iter()
            .map(|word| word.to_str().map(portable))
            .collect::<Option<_>>()?;
        let step = Step::of_rustc(&arguments)?;
        let crates = arguments.iter().filter(|word| *word == "--extern").count();
        if crates != 1 {
            return None;
        }
        let told = |name: &str| {
            name.starts_with("CARGO_") && !["CARGO_HOME", "CARGO_MAKEFLAGS"].contains(&name)
        };
        let call = Self {
            manifest: manifest(home)?,
            flags: flags(),
            rustc: rustc.to_str()?.to_owned(),
            arguments,
            environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .filter(|(name, _)| told(name) || name == "LD_LIBRARY_PATH")
                .filter_map(|(name, value)| Some((name, portable(value.to_str()?))))
                .collect(),
        };
        Some((step, call))
    }

    fn keep(&self, file: &Path) -> io::Result<()> {
        compile_cache::put(&mut &*serde_json::to_vec(self)?, file)
    }

    fn noted(settings: &Settings, step: Step) -> Option<Self> {
        serde_json::from_slice(&fs::read(step.file(settings)).ok()?).ok()
    }

    /// Whether cargo would call rustc in the same way now.
    fn holds(&self, home: &Path) -> bool {
        manifest(home).as_ref() == Some(&self.manifest) && flags() == self.flags
    }

    /// Calls rustc as cargo did, and says what cargo would say.
    fn again(&self, step: Step, home: &Path, settings: &Settings) -> io::Result<ExitCode> {
        let mut arguments = self.arguments_in(home);
        if let Err(problem) = wrapper::prepare_cell(settings, &mut arguments) {
            return match problem {
                wrapper::Problem::Replaced(error) => {
                    compiler_message(&error.to_string())?;
                    Ok(ExitCode::FAILURE)
                }
                wrapper::Problem::Io(error) => Err(error),
            };
        }
        let outputs = Outputs::of(&arguments)?;
        fs::create_dir_all(&outputs.folder)?;
        let file = home.join("cells/src/lib.rs");
        let mut attempts = Attempts::begin(home, &file)?;
        if step == Step::Build && retry::is_useless(home, attempts.text()) {
            fs::write(&outputs.library, "")?;
            artifact(&outputs.library)?;
            return Ok(ExitCode::SUCCESS);
        }
        let said = loop {
            let said = self.attempt(step, home, settings, &arguments, attempts.text())?;
            match &said {
                Said::Refused(messages) if attempts.again(messages)? => {}
                _ => break said,
            }
        };
        match said {
            Said::Compiled(told) => {
                State::leave_warnings(home, &told);
                if outputs.library.is_file() {
                    artifact(&outputs.library)?;
                }
                Ok(ExitCode::SUCCESS)
            }
            Said::Refused(messages) | Said::Killed(messages) => {
                let lines = messages.lines().filter(|line| step.wants(line));
                for line in lines {
                    compiler_message(&attempts.as_of_evcxr(line))?;
                }
                if step == Step::Build {
                    retry::note_refusal(home, &messages);
                }
                Ok(ExitCode::FAILURE)
            }
        }
    }

    /// Compiles one source of a cell, or finds what came of it before.
    fn attempt(
        &self,
        step: Step,
        home: &Path,
        settings: &Settings,
        arguments: &[OsString],
        source: &str,
    ) -> io::Result<Said> {
        let mut arguments = arguments.to_vec();
        let outputs = Outputs::of(&arguments)?;
        let kept = Kept::of(settings, &arguments, home, source)?;
        match kept.find(&outputs.library)? {
            Some(Found::Library { warnings }) => return Ok(Said::Compiled(warnings)),
            Some(Found::Messages(messages)) => return Ok(Said::Refused(messages)),
            None => {}
        }
        // What an earlier cell has left is not this one's.
        let _ = fs::remove_file(&outputs.dependencies);
        let linker = (step == Step::Build)
            .then(|| Linker::of(settings, source))
            .flatten();
        let object = linker
            .as_ref()
            .and_then(|linker| linker.take_over(&mut arguments));
        let order = self.order(&arguments, home);
        let mut messages = String::new();
        // Until the end: what is left to do then needs the processor, too.
        let kernel = object.as_ref().and_then(|_| standby::connect(home).ok());
        let status = compile(&order, source, kernel.as_ref(), |line| {
            if !line.starts_with('{') {
                eprintln!("{line}");
            } else if rustc_json::is_diagnostic(line) {
                messages += line;
                messages.push('\n');
            }
            Ok(())
        })?;
        if let (true, Some(linker), Some(object)) = (status.success(), &linker, &object) {
            linker.link(object, &outputs.library)?;
        }
        let warnings = rustc_json::warnings(&messages);
        // A compiler that was killed has not said what it thinks of the cell.
        if status.code().is_some() && outputs.depend_on_the_cell_alone() {
            // What cannot be kept is compiled again.
            let _ = if status.success() {
                kept.keep_library(&outputs.library, &warnings)
            } else {
                kept.keep_messages(&messages)
            };
        }
        Ok(match (status.success(), status.code()) {
            (true, _) => Said::Compiled(warnings),
            (false, Some(_)) => Said::Refused(messages),
            (false, None) => Said::Killed(messages),
        })
    }

    fn arguments_in(&self, home: &Path) -> Vec<OsString> {
        let here = |word: &String| in_folder(word, home).into();
        self.arguments.iter().map(here).collect()
    }

    /// How rustc is to be called with these arguments.
    fn order(&self, arguments: &[OsString], home: &Path) -> Order {
        let words = arguments.iter().map(|word| word.to_string_lossy().into());
        let environment = self.environment.iter();
        Order {
            rustc: in_folder(&self.rustc, home),
            arguments: words.collect(),
            environment: environment
                .map(|(name, it)| (name.clone(), in_folder(it, home)))
                .collect(),
            attributes: USUAL_ATTRIBUTES.to_owned(),
        }
    }
}

/// How an ordinary cell will be compiled, as far as it is known.
pub fn usual_order(home: &Path) -> Option<Order> {
    let settings = Settings::read(home).ok()?;
    let call = Call::noted(&settings, Step::Build)?;
    let mut arguments = call.arguments_in(home);
    wrapper::against_the_facade(&settings, &mut arguments);
    Linker::of(&settings, "")?.take_over(&mut arguments)?;
    Some(call.order(&arguments, home))
}

/// Compiles a cell and hands on each line of what rustc says. The kernel's compiler, if it stands by,
/// takes cells that can be included.
fn compile(
    order: &Order,
    source: &str,
    kernel: Option<&UnixStream>,
    mut each: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<ExitStatus> {
    if let (Some(kernel), Some((attributes, rest))) = (kernel, generated::attributes_apart(source))
    {
        let order = Order {
            attributes,
            ..order.clone()
        };
        if let Ok(Some((lines, status))) = standby::compile(kernel, order, &rest) {
            lines.iter().try_for_each(|line| each(line))?;
            return Ok(status);
        }
    }
    let mut command = order.command(standby::SOURCE);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut rustc = die_with_parent(&mut command).spawn()?;
    listen(&mut rustc, each)
}

/// The text with the private folder in place of [`HOME`].
pub fn in_folder(text: &str, home: &Path) -> String {
    text.replace(HOME, &home.to_string_lossy())
}

/// The texts that make cargo call rustc as it does.
pub fn manifest(home: &Path) -> Option<String> {
    let cells = home.join("cells");
    let mut text = fs::read_to_string(cells.join("Cargo.toml")).ok()?;
    text += &fs::read_to_string(cells.join(".cargo/config.toml")).ok()?;
    Some(text.replace(home.to_str()?, HOME))
}

/// What the environment adds to rustc's arguments.
pub fn flags() -> String {
    let flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    flags.to_string_lossy().into_owned()
}

/// Hands on each line of what the compiler says, and waits for its end.
pub fn listen(
    rustc: &mut Child,
    mut each: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<ExitStatus> {
    if let Some(stderr) = rustc.stderr.take() {
        for line in BufReader::new(stderr).lines() {
            each(&line?)?;
        }
    }
    rustc.wait()
}

/// One of rustc's messages, in cargo's envelope.
fn compiler_message(message: &str) -> io::Result<()> {
    writeln!(
        io::stdout(),
        "{{\"reason\":\"compiler-message\",\"message\":{message}}}"
    )
}

/// cargo's word that the library is there.
fn artifact(library: &Path) -> io::Result<()> {
    let message = serde_json::json!({
        "reason": "compiler-artifact",
        "target": { "name": wrapper::CELL_CRATE },
        "filenames": [library],
    });
    writeln!(io::stdout(), "{message}")
}

/// What rustc writes.
struct Outputs {
    folder: PathBuf,
    library: PathBuf,
    dependencies: PathBuf,
}

impl Outputs {
    fn of(arguments: &[OsString]) -> io::Result<Self> {
        let folder = wrapper::value_of(arguments, "--out-dir").map(PathBuf::from);
        let folder = folder.ok_or_else(|| io::Error::other("rustc was not told where to write"))?;
        let extra = wrapper::codegen_option(arguments, "extra-filename").unwrap_or_default();
        let name = wrapper::CELL_CRATE;
        Ok(Self {
            library: folder.join(format!("lib{name}{extra}.so")),
            dependencies: folder.join(format!("{name}{extra}.d")),
            folder,
        })
    }

    /// Whether rustc read nothing but the cell: no `include_str!`, no `env!`.
    fn depend_on_the_cell_alone(&self) -> bool {
        fs::read_to_string(&self.dependencies).is_ok_and(|text| only_the_cell(&text))
    }
}

/// Reads what rustc writes for make: `target: file file`, and `# env-dep:NAME=value`.
fn only_the_cell(dependencies: &str) -> bool {
    dependencies.lines().all(|line| {
        if line.starts_with('#') {
            return false;
        }
        let files = line.split_once(": ").map_or("", |(_, files)| files);
        let is_the_cell = |file| [standby::SOURCE, standby::ROOT].contains(&file);
        files.split_whitespace().all(is_the_cell)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_reads_files_or_the_environment_is_compiled_anew() {
        let check =
            |text: &str, expected: bool| assert_eq!(only_the_cell(text), expected, "{text}");
        check(
            "/t/ctx.d: src/lib.rs\n\n/t/libctx.so: src/lib.rs\n\nsrc/lib.rs:\n",
            true,
        );
        check("/t/ctx.d: ready.rs src/lib.rs\n\nready.rs:\n", true);
        check(
            "/t/ctx.d: src/lib.rs data.txt\n\nsrc/lib.rs:\ndata.txt:\n",
            false,
        );
        check(
            "/t/ctx.d: src/lib.rs\n\nsrc/lib.rs:\n\n# env-dep:HOME=/root\n",
            false,
        );
    }

    #[test]
    fn a_call_is_noted_without_the_private_folder() {
        let home = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(home.path().join("cells/.cargo")).expect("makes");
        fs::write(home.path().join("cells/Cargo.toml"), "[package]").expect("writes");
        fs::write(home.path().join("cells/.cargo/config.toml"), "").expect("writes");
        let words = |crates: &[&str]| -> Vec<OsString> {
            let out = home.path().join("cells/target");
            let mut words = vec![
                "--emit=dep-info,link".into(),
                "--out-dir".into(),
                out.into(),
            ];
            for name in crates {
                words.extend(["--extern".into(), OsString::from(name)]);
            }
            words
        };
        let of = |crates: &[&str]| Call::of(home.path(), "rustc".as_ref(), &words(crates));
        let (step, call) = of(&["stratoscope=x"]).expect("the facade alone");
        assert_eq!(step, Step::Build);
        assert_eq!(call.arguments[2], "{home}/cells/target");
        assert!(call.holds(home.path()));
        assert!(of(&["stratoscope=x", "serde=y"]).is_none());
        fs::write(home.path().join("cells/Cargo.toml"), "[package] # other").expect("writes");
        assert!(!call.holds(home.path()));
    }
}
