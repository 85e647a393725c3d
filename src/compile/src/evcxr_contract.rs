//! What the kernel relies on in texts of evcxr and cargo: the lines that evcxr generates around a cell, its
//! settings, its messages, and how it calls cargo. The version of evcxr is pinned (`=0.22.0`); the test below
//! compares each text with evcxr's own sources and fails when another version words it differently.

/// The version that the texts are those of.
pub const VERSION: &str = "0.22.0";

// evcxr's package for cells.

/// The name of the crate that a cell is.
pub const CELL_CRATE: &str = "ctx";
/// Its source, relative to the package, as rustc's messages name it.
pub const SOURCE: &str = "src/lib.rs";
/// The attributes that a cell begins with.
pub const ATTRIBUTES: &str = "#![allow(unused_imports, unused_mut, dead_code)]\n";

// evcxr's settings.

/// Names the folder with the settings.
pub const CONFIG_VARIABLE: &str = "EVCXR_CONFIG_DIR";
/// The file in it.
pub const CONFIG_FILE: &str = "evcxr.toml";
/// What stands before the value of `opt_level` in the manifest that evcxr generates. The value is written there as
/// it is, and so brings a whole profile and the facade along (`home.rs`).
pub const OPT_LEVEL: &str = "opt-level = ";

// Lines that evcxr generates around a cell.

/// The first line of what holds variables, in cells without a `?` the first of the block.
pub const RUNTIME: &str = "mod evcxr_internal_runtime {";
/// The first line of what a `?` needs.
pub const FAILURE: &str = "struct EvcxrUserCodeError {}";
/// What follows the two.
pub const ENTRY: &str = "#[unsafe(no_mangle)]";
/// How the function begins that runs the cell.
pub const RUNS_THE_CELL: &str = "pub extern \"C\" fn run_user_code_";
/// Before the cell's own statements, which may end with a `?`.
pub const OPENING: &str = "let _ = (|| -> std::result::Result<(), EvcxrUserCodeError> {";
/// Behind them, and behind the lines that keep the cell's variables.
pub const CLOSING: &str = "Ok(())})();";
/// Before the name of the executor of a cell that waits for futures, and what makes it.
pub const EXECUTOR: &str = "evcxr_variable_store.lazy_arc(";
/// Before the statements of such a cell.
pub const WAITS: &str = ".block_on(async {";
/// Behind them, and behind the lines that keep the cell's variables.
pub const WAITS_CLOSING: &str = "Ok::<(), EvcxrUserCodeError>(())";
/// How a panic of the cell is caught, in evcxr's first compile of a cell.
pub const CATCH: &str = "match std::panic::catch_unwind(";
/// What evcxr prints after a panic.
pub const PANIC_NOTIFICATION: &str = "EVCXR_PANIC_NOTIFICATION";
/// The line that prints it.
pub const PANICKED: &str = r#"println!("EVCXR_PANIC_NOTIFICATION");"#;
/// Around a last expression: evcxr's own way of showing it, which only text that we could not parse reaches.
pub const SHOWN_BY_EVCXR: &str = ").evcxr_display();";
/// What holds the variables; as a line: what a cell's function returns.
pub const STORE: &str = "evcxr_variable_store";
/// The type that it returns in cells that have variables.
pub const STORE_TYPE: &str = "*mut evcxr_internal_runtime::VariableStore";
/// Before the variables' types are compared.
pub const CHECKS: &str = "{let mut vars_ok = true;";
/// Keeps a variable: this, its type, [`NAME`], its name.
pub const PUT: &str = "evcxr_variable_store.put_variable::<";
/// Loads a variable of an earlier cell.
pub const TAKE: &str = "evcxr_variable_store.take_variable::<";
/// Compares the type of a variable of an earlier cell.
pub const CHECK: &str = "evcxr_variable_store.check_variable::<";
/// Between the type and the name.
pub const NAME: &str = ">(stringify!(";
/// The error type of a cell.
pub const USER_CODE_ERROR: &str = "EvcxrUserCodeError";

// What evcxr and the process that runs the cells say to each other.

/// Before the path of a cell's library and the name of its function.
pub const LOAD_AND_RUN: &str = "LOAD_AND_RUN ";
/// A line: the cell has failed, and the variables that it was to make do not exist.
pub const USER_ERROR: &str = "EVCXR_ERROR_OCCURRED";
/// evcxr reads until this line.
pub const EXECUTION_COMPLETE: &str = "EVCXR_EXECUTION_COMPLETE";

// evcxr's messages.

/// About a variable: it is a closure.
pub const IS_A_CLOSURE: &str = "is a closure";
/// About a variable: rust-analyzer does not know its type.
pub const UNKNOWN_TYPE: &str = "determine type of variable";
/// About a variable: it borrows.
pub const BORROWS: &str = "non-static lifetime";
/// About a variable: its type cannot be written.
pub const CANNOT_PERSIST: &str = "cannot be persisted";
/// Before everything that the compiler wrote to standard error, when none of it is an error of the cell.
pub const UNPARSED: &str = "no parsable errors were found. STDERR:";
/// Behind it.
pub const UNPARSED_END: &str = "STDOUT:";
/// Before the status of a process that has ended, as `std::process::ExitStatus` displays it.
pub const TERMINATED: &str = "terminated with status: ";

/// The signal in a displayed status: 9 in `signal: 9 (SIGKILL)`.
pub fn signal_in(status: &str) -> Option<i32> {
    let rest = status.strip_prefix("signal: ")?;
    rest.split([' ', ',']).next()?.parse().ok()
}

/// The code in a displayed status: 3 in `exit status: 3`.
pub fn exit_status_in(status: &str) -> Option<i32> {
    status.strip_prefix("exit status: ")?.trim().parse().ok()
}

// How evcxr calls cargo and cargo rustc.

/// cargo's command that makes a library of a cell.
pub const BUILD: &str = "build";
/// cargo's command that only finds the errors of a cell.
pub const CHECK_COMMAND: &str = "check";
/// What cargo has rustc make of a cell that is built.
pub const EMIT_OF_BUILD: &str = "--emit=dep-info,link";
/// What cargo has rustc make of a cell that is checked.
pub const EMIT_OF_CHECK: &str = "--emit=dep-info,metadata";
/// The flag that cargo adds for a crate that depends on shared libraries.
pub const PREFER_DYNAMIC: &str = "-Cprefer-dynamic";
/// The name of the crate that cargo probes rustc with.
pub const PROBE_CRATE: &str = "___";
/// The reason of cargo's messages that carry one of rustc's.
pub const COMPILER_MESSAGE: &str = "compiler-message";
/// The reason of cargo's message about a library.
pub const COMPILER_ARTIFACT: &str = "compiler-artifact";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    /// Where the sources of the evcxr lie that the workspace is built with, and its version.
    fn evcxr() -> (PathBuf, String) {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let rustc = Command::new("rustc").arg("-vV").output();
        let rustc = String::from_utf8(rustc.expect("rustc starts").stdout).expect("is text");
        let mut lines = rustc.lines();
        let host = lines.find_map(|line| line.strip_prefix("host: "));
        // Crates for other platforms were never downloaded.
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--offline", "--locked", "--format-version", "1"])
            .args([
                "--filter-platform",
                host.expect("it is named"),
                "--manifest-path",
            ])
            .arg(manifest)
            .output()
            .expect("cargo starts");
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        let package = packages
            .find(|package| package["name"] == "evcxr")
            .expect("evcxr is a dependency");
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let folder = PathBuf::from(text("manifest_path")).with_file_name("src");
        (folder, text("version"))
    }

    #[test]
    fn evcxr_still_says_what_the_kernel_relies_on() {
        let (folder, version) = evcxr();
        assert_eq!(version, VERSION, "read its sources and adapt this file");
        assert!(PANICKED.contains(PANIC_NOTIFICATION) && RUNS_THE_CELL.ends_with("run_user_code_"));
        let read = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
        // In its sources, format strings have braces twice.
        let generator = read("eval_context.rs")
            .replace("{{", "{")
            .replace("}}", "}");
        for text in [
            ATTRIBUTES.trim_end(),
            RUNTIME,
            FAILURE,
            ENTRY,
            "run_user_code_",
            OPENING,
            CLOSING,
            CATCH,
            EXECUTOR,
            WAITS,
            WAITS_CLOSING,
            PANIC_NOTIFICATION,
            SHOWN_BY_EVCXR,
            STORE,
            "mut evcxr_internal_runtime::VariableStore",
            CHECKS,
            PUT,
            TAKE,
            CHECK,
            NAME,
            USER_CODE_ERROR,
            LOAD_AND_RUN,
            IS_A_CLOSURE,
            UNKNOWN_TYPE,
            BORROWS,
            CANNOT_PERSIST,
        ] {
            assert!(generator.contains(text), "eval_context.rs: {text}");
        }
        for (file, texts) in [
            (
                "runtime.rs",
                &[EXECUTION_COMPLETE, "LOAD_AND_RUN ([^ ]+) ([^ ]+)"][..],
            ),
            ("child_process.rs", &[TERMINATED]),
            ("evcxr_internal_runtime.rs", &[USER_ERROR]),
            ("lib.rs", &[CONFIG_VARIABLE]),
            (
                "toml_parse.rs",
                &[
                    CONFIG_FILE,
                    "tmpdir",
                    "sccache",
                    "offline_mode",
                    "opt_level",
                ],
            ),
            (
                "module.rs",
                &[
                    "\"ctx\"",
                    SOURCE,
                    OPT_LEVEL,
                    UNPARSED,
                    UNPARSED_END,
                    "cargo_command(\"build\")",
                    "cargo_command(\"check\")",
                    COMPILER_ARTIFACT,
                    "\"filenames\"",
                ],
            ),
        ] {
            let source = read(file);
            for text in texts {
                assert!(source.contains(text), "{file}: {text}");
            }
        }
    }
}
