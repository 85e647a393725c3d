//! Where the file of the history is.

use std::ffi::OsString;
use std::path::PathBuf;

use stratoscope_os::environment;

/// The variable that turns the history off, or names its file.
const VARIABLE: &str = "STRATOSCOPE_HISTORY";

/// Where cells are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere.
    Off,
    /// In this file.
    File(PathBuf),
}

impl Place {
    /// That of `STRATOSCOPE_HISTORY`, otherwise a file in the data folder of the user.
    pub fn of_environment() -> Self {
        let variable = |name: &str| environment::original(name);
        Self::of(&variable)
    }

    fn of(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|it| it.is_absolute())
        };
        if let Some(value) = variable(VARIABLE).filter(|it| !it.is_empty()) {
            // What is neither a file's path nor `off` was meant to turn it off: `0`, `no`.
            return folder(VARIABLE)
                .filter(|_| value != "off")
                .map_or(Self::Off, Self::File);
        }
        let home = folder("HOME");
        let data = match cfg!(target_os = "macos") {
            true => home.map(|it| it.join("Library/Application Support")),
            false => folder("XDG_DATA_HOME").or(home.map(|it| it.join(".local/share"))),
        };
        data.map_or(Self::Off, |data| {
            Self::File(data.join("stratoscope/history.jsonl"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let expected = expected.map_or(Place::Off, |path| Place::File(path.into()));
        assert_eq!(Place::of(&variable), expected, "{variables:?}");
    }

    #[test]
    fn the_variable_comes_first() {
        let home = ("HOME", "/home/a");
        for off in ["off", "0", "no"] {
            check(&[home, (VARIABLE, off)], None);
        }
        check(&[home, (VARIABLE, "/x/y")], Some("/x/y"));
        check(&[], None);
        check(&[("HOME", "relative")], None);
        if cfg!(target_os = "linux") {
            let usual = "/home/a/.local/share/stratoscope/history.jsonl";
            check(&[home], Some(usual));
            check(&[home, (VARIABLE, "")], Some(usual));
            check(&[home, ("XDG_DATA_HOME", "data")], Some(usual));
            check(
                &[home, ("XDG_DATA_HOME", "/data")],
                Some("/data/stratoscope/history.jsonl"),
            );
        }
    }
}
