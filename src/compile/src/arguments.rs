//! rustc's arguments for a cell: what they say, and how they are changed so that the cell is compiled against the
//! prebuilt facade.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::evcxr_contract::PREFER_DYNAMIC;
use super::settings::{DriverSettings, LibraryIdentity};
use super::state::State;

/// Why a cell cannot be compiled.
pub enum Problem {
    /// The facade was rebuilt: an error in the form in which rustc reports its own.
    Replaced(serde_json::Value),
    /// A file cannot be read or written.
    Io(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Points `ctx` at the real facade. Returns its source.
pub fn prepare_cell(
    settings: &DriverSettings,
    home: &Path,
    arguments: &mut Vec<OsString>,
) -> Result<Option<PathBuf>, Problem> {
    if LibraryIdentity::of(&settings.library).ok() != Some(settings.identity) {
        return Err(Problem::Replaced(as_rustc_says(
            "the facade was rebuilt while this kernel was running: restart the kernel",
        )));
    }
    against_the_facade(settings, arguments);
    with_debug_information(home, arguments);
    let source = arguments.iter().find(|argument| {
        let path = Path::new(argument);
        path.extension() == Some(OsStr::new("rs")) && path.is_file()
    });
    Ok(source.map(PathBuf::from))
}

/// Names the prebuilt facade in place of the view's.
pub fn against_the_facade(settings: &DriverSettings, arguments: &mut Vec<OsString>) {
    for index in 1..arguments.len() {
        let is_facade = arguments[index - 1] == "--extern"
            && arguments[index]
                .to_string_lossy()
                .starts_with("stratoscope=");
        if is_facade {
            arguments[index] = named("stratoscope=", &settings.library);
        }
    }
    arguments.retain(|argument| argument != PREFER_DYNAMIC);
    // Mistakes such as an overflow are reported in a notebook. The facade stays as it was built.
    arguments.push("-Coverflow-checks=on".into());
    arguments.push("-Cdebug-assertions=on".into());
    arguments.push("--sysroot".into());
    arguments.push(settings.sysroot.clone().into());
    arguments.push("-L".into());
    arguments.push(named("dependency=", &settings.dependencies));
}

/// What debug information costs is paid only while the debugger is on.
const DEBUG: [&str; 2] = ["-Cdebuginfo=2", "-Cstrip=none"];

/// Adds debug information if the debugger of the kernel with this private folder is on.
pub fn with_debug_information(home: &Path, arguments: &mut Vec<OsString>) {
    if State::read(home).debug {
        arguments.extend(DEBUG.map(OsString::from));
    }
}

/// Whether the cell gets debug information.
pub fn have_debug_information(arguments: &[OsString]) -> bool {
    arguments.iter().any(|it| it == DEBUG[0])
}

fn named(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(name);
    argument.push(path);
    argument
}

/// An error in the form in which rustc reports its own.
fn as_rustc_says(message: &str) -> serde_json::Value {
    serde_json::json!({
        "$message_type": "diagnostic", "message": message, "code": null, "level": "error",
        "spans": [], "children": [], "rendered": format!("error: {message}\n"),
    })
}

/// What stands behind `name`.
pub fn value_of<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a OsStr> {
    let position = arguments.iter().position(|argument| argument == name)?;
    arguments.get(position + 1).map(OsString::as_os_str)
}

/// What `-C name=` sets.
pub fn codegen_option<'a>(arguments: &'a [OsString], name: &str) -> Option<&'a str> {
    arguments.windows(2).find_map(|pair| {
        let option = pair[1].to_str()?.strip_prefix(name)?.strip_prefix('=')?;
        (pair[0] == "-C").then_some(option)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_debug_information_only_while_the_kernel_asks_for_it() {
        let home = tempfile::tempdir().expect("a folder");
        let of_cell = || {
            let mut arguments: Vec<OsString> = vec!["--crate-name".into(), "ctx".into()];
            with_debug_information(home.path(), &mut arguments);
            let is_debugged = have_debug_information(&arguments);
            (arguments.len() - 2, is_debugged)
        };
        assert_eq!(of_cell(), (0, false));
        for debug in [true, false] {
            State::update(home.path(), |state| state.debug = debug).expect("it is written");
            assert_eq!(
                of_cell(),
                if debug {
                    (DEBUG.len(), true)
                } else {
                    (0, false)
                }
            );
        }
    }
}
