//! How cargo calls rustc for a cell, recorded once and repeated for every later cell: what was compiled before comes
//! from the [cache](super::compile_cache), anything else goes to the [compiler that waits](super::standby) or to a
//! new rustc, and [`Linker`] links the result.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};
use stratoscope_os::process::die_with_parent;

use super::arguments;
use super::attempts::Attempts;
use super::compile_cache::{self, CachedCell, CachedOutcome};
use super::evcxr_contract as contract;
use super::generated;
use super::invocation::{self, RustcInvocation};
use super::layout;
use super::linker::Linker;
use super::retry;
use super::rustc_json;
use super::settings::DriverSettings;
use super::standby;
use super::state::State;

/// What evcxr has cargo do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Build,
    Check,
}

impl Step {
    /// The step that a word of cargo's command line asks for.
    pub fn of_cargo(word: &OsStr) -> Option<Self> {
        match word.to_str()? {
            contract::BUILD => Some(Self::Build),
            contract::CHECK_COMMAND => Some(Self::Check),
            _ => None,
        }
    }

    fn of_rustc(arguments: &[String]) -> Option<Self> {
        let has = |emit: &str| arguments.iter().any(|word| word == emit);
        if has(contract::EMIT_OF_BUILD) {
            return Some(Self::Build);
        }
        has(contract::EMIT_OF_CHECK).then_some(Self::Check)
    }

    /// Whether a message is passed on to evcxr, which takes every message of a check for an error.
    fn passes_on(self, message: &str) -> bool {
        self == Self::Build || !rustc_json::is_warning(message)
    }

    fn file(self, settings: &DriverSettings) -> PathBuf {
        settings.kept.join(match self {
            Self::Build => "build.json",
            Self::Check => "check.json",
        })
    }
}

/// What came of a source.
enum CompileOutcome {
    /// A library, and these warnings.
    Compiled(String),
    /// Nothing, for these reasons.
    Refused(String),
    /// The compiler was ended.
    Killed(String),
}

/// How cargo called rustc for a cell. The private folder is written as [`layout::HOME`].
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedCall {
    /// cargo's files that decide how rustc is called.
    manifest: String,
    flags: String,
    rustc: String,
    arguments: Vec<String>,
    /// The variables that cargo sets for rustc, and through it for `env!`.
    environment: BTreeMap<String, String>,
}

/// Notes how cargo calls rustc for a cell that needs nothing but the facade, for the next one.
pub fn record(settings: &DriverSettings, home: &Path, rustc: &OsStr, arguments: &[OsString]) {
    if let Some((step, call)) = RecordedCall::of(home, rustc, arguments) {
        // Without the note the next cell goes through cargo too.
        let _ = call.keep(&step.file(settings));
    }
}

impl RecordedCall {
    fn of(home: &Path, rustc: &OsStr, arguments: &[OsString]) -> Option<(Step, Self)> {
        let folder = home.to_str()?;
        let portable = |text: &str| text.replace(folder, layout::HOME);
        let arguments: Vec<String> = arguments
            .iter()
            .map(|word| word.to_str().map(portable))
            .collect::<Option<_>>()?;
        let step = Step::of_rustc(&arguments)?;
        let crates = arguments.iter().filter(|word| *word == "--extern").count();
        if crates != 1 {
            return None;
        }
        let is_passed_on = |name: &str| {
            name.starts_with("CARGO_") && !["CARGO_HOME", "CARGO_MAKEFLAGS"].contains(&name)
        };
        let call = Self {
            manifest: layout::manifest(home)?,
            flags: layout::flags(),
            rustc: rustc.to_str()?.to_owned(),
            arguments,
            environment: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .filter(|(name, _)| is_passed_on(name) || name == "LD_LIBRARY_PATH")
                .filter_map(|(name, value)| Some((name, portable(value.to_str()?))))
                .collect(),
        };
        Some((step, call))
    }

    fn keep(&self, file: &Path) -> io::Result<()> {
        compile_cache::put(&mut &*serde_json::to_vec(self)?, file)
    }

    /// The call that an earlier cell has recorded.
    pub fn read(settings: &DriverSettings, step: Step) -> Option<Self> {
        serde_json::from_slice(&fs::read(step.file(settings)).ok()?).ok()
    }

    /// Whether cargo would call rustc in the same way now.
    pub fn holds(&self, home: &Path) -> bool {
        layout::manifest(home).as_ref() == Some(&self.manifest) && layout::flags() == self.flags
    }

    /// Calls rustc as cargo did, and says what cargo would say.
    pub fn repeat(
        &self,
        step: Step,
        home: &Path,
        settings: &DriverSettings,
    ) -> io::Result<ExitCode> {
        let mut arguments = self.arguments_in(home);
        if let Err(problem) = arguments::prepare_cell(settings, home, &mut arguments) {
            return match problem {
                arguments::Problem::Replaced(error) => {
                    compiler_message(&error.to_string())?;
                    Ok(ExitCode::FAILURE)
                }
                arguments::Problem::Io(error) => Err(error),
            };
        }
        let outputs = OutputFiles::of(&arguments)?;
        fs::create_dir_all(&outputs.folder)?;
        let file = layout::source(home);
        let mut attempts = Attempts::begin(home, &file)?;
        if step == Step::Build && retry::is_useless(home, attempts.text()) {
            fs::write(&outputs.library, "")?;
            artifact(&outputs.library)?;
            return Ok(ExitCode::SUCCESS);
        }
        let said = loop {
            let said = self.attempt(step, home, settings, &arguments, attempts.text())?;
            match &said {
                CompileOutcome::Refused(messages) if attempts.again(messages)? => {}
                _ => break said,
            }
        };
        match said {
            CompileOutcome::Compiled(warnings) => {
                State::leave_warnings(home, &warnings);
                if outputs.library.is_file() {
                    artifact(&outputs.library)?;
                }
                Ok(ExitCode::SUCCESS)
            }
            CompileOutcome::Refused(messages) | CompileOutcome::Killed(messages) => {
                let lines = messages.lines().filter(|line| step.passes_on(line));
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
        settings: &DriverSettings,
        arguments: &[OsString],
        source: &str,
    ) -> io::Result<CompileOutcome> {
        let mut arguments = arguments.to_vec();
        let outputs = OutputFiles::of(&arguments)?;
        let cached = CachedCell::of(settings, &arguments, home, source)?;
        match cached.find(&outputs.library)? {
            Some(CachedOutcome::Library { warnings }) => {
                return Ok(CompileOutcome::Compiled(warnings));
            }
            Some(CachedOutcome::Messages(messages)) => {
                return Ok(CompileOutcome::Refused(messages));
            }
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
        let invocation = self.invocation(&arguments, home);
        let mut messages = String::new();
        // Until the end: what is left to do then needs the processor, too.
        let kernel = object.as_ref().and_then(|_| standby::connect(home).ok());
        let status = compile(&invocation, source, kernel.as_ref(), |line| {
            if !line.starts_with('{') {
                eprintln!("{line}");
            } else if rustc_json::is_diagnostic(line) {
                messages += line;
                messages.push('\n');
            }
            Ok(())
        })?;
        if let (true, Some(linker), Some(object)) = (status.success(), &linker, &object) {
            let is_debugged = arguments::have_debug_information(&arguments);
            linker.link(object, &outputs.library, is_debugged)?;
        }
        let warnings = rustc_json::warnings(&messages);
        // A compiler that was killed has not said what it thinks of the cell.
        if status.code().is_some() && outputs.depend_on_the_cell_alone() {
            // What cannot be cached is compiled again.
            let _ = if status.success() {
                cached.keep_library(&outputs.library, &warnings)
            } else {
                cached.keep_messages(&messages)
            };
        }
        Ok(match (status.success(), status.code()) {
            (true, _) => CompileOutcome::Compiled(warnings),
            (false, Some(_)) => CompileOutcome::Refused(messages),
            (false, None) => CompileOutcome::Killed(messages),
        })
    }

    fn arguments_in(&self, home: &Path) -> Vec<OsString> {
        let here = |word: &String| layout::in_folder(word, home).into();
        self.arguments.iter().map(here).collect()
    }

    /// How rustc is to be called with these arguments.
    fn invocation(&self, arguments: &[OsString], home: &Path) -> RustcInvocation {
        let words = arguments.iter().map(|word| word.to_string_lossy().into());
        let environment = self.environment.iter();
        RustcInvocation {
            rustc: layout::in_folder(&self.rustc, home),
            arguments: words.collect(),
            environment: environment
                .map(|(name, it)| (name.clone(), layout::in_folder(it, home)))
                .collect(),
            attributes: contract::ATTRIBUTES.to_owned(),
        }
    }
}

/// How an ordinary cell will be compiled, as far as it is known.
pub fn usual_invocation(home: &Path) -> Option<RustcInvocation> {
    let settings = DriverSettings::read(home).ok()?;
    let call = RecordedCall::read(&settings, Step::Build)?;
    let mut arguments = call.arguments_in(home);
    arguments::against_the_facade(&settings, &mut arguments);
    arguments::with_debug_information(home, &mut arguments);
    Linker::of(&settings, "")?.take_over(&mut arguments)?;
    Some(call.invocation(&arguments, home))
}

/// Compiles a cell and hands on each line of what rustc says. The kernel's compiler, if it stands by,
/// takes cells that can be included.
fn compile(
    invocation: &RustcInvocation,
    source: &str,
    kernel: Option<&UnixStream>,
    mut each: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<ExitStatus> {
    if let (Some(kernel), Some((attributes, rest))) = (kernel, generated::attributes_apart(source))
    {
        let invocation = RustcInvocation {
            attributes,
            ..invocation.clone()
        };
        if let Ok(Some((lines, status))) = standby::compile(kernel, invocation, &rest) {
            lines.iter().try_for_each(|line| each(line))?;
            return Ok(status);
        }
    }
    let mut command = invocation.command(contract::SOURCE);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut rustc = die_with_parent(&mut command).spawn()?;
    invocation::listen(&mut rustc, each)
}

/// One of rustc's messages, in cargo's envelope.
fn compiler_message(message: &str) -> io::Result<()> {
    writeln!(
        io::stdout(),
        "{{\"reason\":\"{}\",\"message\":{message}}}",
        contract::COMPILER_MESSAGE
    )
}

/// cargo's word that the library is there.
fn artifact(library: &Path) -> io::Result<()> {
    let message = serde_json::json!({
        "reason": contract::COMPILER_ARTIFACT,
        "target": { "name": contract::CELL_CRATE },
        "filenames": [library],
    });
    writeln!(io::stdout(), "{message}")
}

/// What rustc writes.
struct OutputFiles {
    folder: PathBuf,
    library: PathBuf,
    dependencies: PathBuf,
}

impl OutputFiles {
    fn of(arguments: &[OsString]) -> io::Result<Self> {
        let folder = arguments::value_of(arguments, "--out-dir").map(PathBuf::from);
        let folder =
            folder.ok_or_else(|| io::Error::other("cargo has called rustc without --out-dir"))?;
        let extra = arguments::codegen_option(arguments, "extra-filename").unwrap_or_default();
        let name = contract::CELL_CRATE;
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
        let is_the_cell = |file| [contract::SOURCE, standby::ROOT].contains(&file);
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
        let of = |crates: &[&str]| RecordedCall::of(home.path(), "rustc".as_ref(), &words(crates));
        let (step, call) = of(&["stratoscope=x"]).expect("the facade alone");
        assert_eq!(step, Step::Build);
        assert_eq!(call.arguments[2], "{home}/cells/target");
        assert!(call.holds(home.path()));
        assert!(of(&["stratoscope=x", "serde=y"]).is_none());
        fs::write(home.path().join("cells/Cargo.toml"), "[package] # other").expect("writes");
        assert!(!call.holds(home.path()));
    }
}
