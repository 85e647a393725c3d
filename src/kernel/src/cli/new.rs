//! `stratoscope new NAME --from NOTEBOOK`: a notebook as a project of cargo.
//!
//! The program is compiled against the library that cells link to, by plain cargo: `.cargo/config.toml` names it to rustc. So it is built
//! in seconds, burn is not compiled again, and what it computes has the bits of the notebook.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;
use stratoscope_cell_text::program::{self, LeftOut, NotebookCell, Program};
use stratoscope_compile::facade::{self, Facade};
use stratoscope_os::console::say;

use crate::notebook::Notebook;

/// Names that a package must not have: crates that its program uses, and what cargo refuses.
const TAKEN: [&str; 7] = [
    "stratoscope",
    "burn",
    "std",
    "core",
    "alloc",
    "test",
    "build",
];

/// Arguments of `stratoscope new`.
#[derive(Debug, clap::Args)]
pub struct NewArguments {
    /// The folder of the project; its last part is the name of the package
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// The notebook whose cells the program consists of
    #[arg(long, value_name = "NOTEBOOK")]
    from: PathBuf,
}

/// Makes the project.
///
/// # Errors
/// The name cannot be that of a package, the folder exists, the notebook has no Rust, there is no library, or a file cannot be
/// written.
pub fn run(arguments: &NewArguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let name = package_name(folder)?;
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
        bail!("{} exists", folder.display());
    }
    let notebook = Notebook::read(&arguments.from)?;
    let program = program_of(&notebook);
    if program
        .body
        .lines()
        .all(|line| line.is_empty() || line.starts_with("//"))
    {
        bail!(
            "{} has no cell of Rust that could run; Python is translated by `stratoscope translate`",
            arguments.from.display()
        );
    }
    let facade = facade::find()?;
    let sysroot = std::path::absolute(folder.join(".cargo/sysroot"))?;
    let from = arguments.from.file_name().unwrap_or_default();
    let from = from.to_string_lossy().replace(['`', '\n', '\r'], "_");
    let files = [
        ("Cargo.toml", manifest(&name, &program)),
        (".cargo/config.toml", configuration(&facade, &sysroot)?),
        ("build.rs", build_script(&facade)?),
        (
            ".gitignore",
            "/target\n# It names folders of this machine.\n/.cargo\n".to_owned(),
        ),
        ("README.md", readme(&name, &from, &program.left_out)),
        ("src/main.rs", source(&from, &program)),
    ];
    for (path, text) in files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    facade
        .make_sysroot(&sysroot)
        .with_context(|| format!("cannot write {}", sysroot.display()))?;
    format(&facade, &folder.join("src/main.rs"));
    for left in &program.left_out {
        say(&format!(
            "cell {}: `{}` is a comment, as it {}",
            left.cell, left.line, left.why
        ));
    }
    say(&format!(
        "made {}; run it: cd {} && cargo run",
        folder.display(),
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// The last part of the folder's name, which must be one of a package.
fn package_name(folder: &Path) -> anyhow::Result<String> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let is_good = |name: &&str| {
        let part = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit();
        name.starts_with(|sign: char| sign.is_ascii_lowercase())
            && name.chars().all(|sign| part(sign) || "-_".contains(sign))
            && !TAKEN.contains(name)
    };
    match name.filter(is_good) {
        Some(name) => Ok(name.to_owned()),
        None => bail!(
            "{} is no name of a package: give one of lower-case letters, digits, - and _, such as `classifier`",
            folder.display()
        ),
    }
}

/// The program of the notebook's code cells. One whose outputs end with an error is left out.
fn program_of(notebook: &Notebook) -> Program {
    let code = notebook.code_cells();
    let texts: Vec<String> = code.iter().map(|&index| notebook.source(index)).collect();
    let errors = code.iter().map(|&index| error_of(&notebook.cells()[index]));
    let cells = texts.iter().zip(errors);
    program::of_cells(cells.map(|(code, error)| NotebookCell { code, error }))
}

/// The name of the error in the outputs of a cell.
fn error_of(cell: &Value) -> Option<&str> {
    let outputs = cell["outputs"].as_array()?;
    let error = outputs
        .iter()
        .find(|output| output["output_type"] == "error")?;
    Some(error["ename"].as_str().unwrap_or("an error"))
}

fn manifest(name: &str, program: &Program) -> String {
    let mut text = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\ndefault-run = \"{name}\"\npublish = false\n\n\
         # `stratoscope` is no entry here: `.cargo/config.toml` names the library that the notebook used.\n[dependencies]\n"
    );
    for dependency in &program.dependencies {
        text += &format!("{dependency}\n");
    }
    // It belongs to no workspace above it.
    text + "\n[workspace]\n"
}

/// What plain cargo needs to use the library: its rustc, where the library and its dependencies are, and where programs find them.
fn configuration(facade: &Facade, sysroot: &Path) -> anyhow::Result<String> {
    let (library, dependencies) = facade.of_programs();
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .context("a path is not UTF-8")
    };
    let folder = text(library.parent().unwrap_or(&library))?;
    let flags = [
        "--extern".to_owned(),
        format!("stratoscope={}", text(&library)?),
        "-L".to_owned(),
        format!("dependency={}", text(&dependencies)?),
        "--sysroot".to_owned(),
        text(sysroot)?,
        format!("-Clink-arg=-Wl,-rpath,{folder}"),
    ];
    let rustc = stratoscope_compile::compiler::rustc_of(&facade.sysroot);
    let mut found = format!(
        "# The library that cells of the notebook use, on this machine: built by {}.\n[build]\nrustc = {:?}\nrustflags = [\n",
        facade.rustc,
        text(&rustc)?
    );
    for flag in flags {
        // Writing to a string cannot fail.
        let _ = writeln!(found, "    {flag:?},");
    }
    found += "]\n";
    if let Some(environment) = std::env::var_os("VIRTUAL_ENV").and_then(|it| it.into_string().ok())
    {
        found += &format!(
            "\n# Where the checkpoint all-MiniLM-L6-v2 is found.\n[env]\nVIRTUAL_ENV = {environment:?}\n"
        );
    }
    Ok(found)
}

/// The program is built again when the library is: the two must fit.
fn build_script(facade: &Facade) -> anyhow::Result<String> {
    let (library, _) = facade.of_programs();
    let library = library.to_str().context("a path is not UTF-8")?;
    Ok(format!(
        "fn main() {{\n    println!(\"cargo::rerun-if-changed={{}}\", {library:?});\n}}\n"
    ))
}

fn source(from: &str, program: &Program) -> String {
    let Program { items, body, .. } = program;
    format!(
        "//! The code cells of `{from}` as a program.\n\n\
         #![allow(unused_variables, unused_imports, dead_code, reason = \"cells may define more than later cells use\")]\n\n\
         use stratoscope::__result as show;\nuse stratoscope::prelude::*;\n\n{items}\n\
         fn main() -> std::process::ExitCode {{\n    match run_cells() {{\n        Ok(()) => std::process::ExitCode::SUCCESS,\n        \
         Err(error) => {{\n            eprintln!(\"{{error}}\");\n            std::process::ExitCode::FAILURE\n        }}\n    }}\n}}\n\n\
         /// The statements of the cells, in their order.\nfn run_cells() -> Result<(), Box<dyn std::error::Error>> {{\n{body}Ok(())\n}}\n\n\
         #[cfg(test)]\nmod tests {{\n    #[test]\n    fn the_cells_run_to_the_end() {{\n        \
         super::run_cells().expect(\"no cell fails\");\n    }}\n}}\n"
    )
}

fn readme(name: &str, from: &str, left_out: &[LeftOut]) -> String {
    let mut text = format!(
        "# {name}\n\nThe code cells of the notebook `{from}` as a program.\n\n    cargo run\n    cargo test\n\n\
         The program trains what the notebook trains, with the same bits on the same device: it uses the library that the notebook's cells use, \
         which `.cargo/config.toml` names. After `cargo build --workspace` in the checkout of stratoscope, or another version of its package, the program is \
         built again. On another machine, make the project there.\n\n\
         - Functions, types and imports of the cells are at the top of `src/main.rs`, the statements in `run_cells`.\n\
         - The value at the end of a cell is printed as text. Progress and displays are text, too.\n\
         - `cargo test` runs all of it once.\n"
    );
    if !left_out.is_empty() {
        text += "\nThese lines and cells are comments:\n\n";
    }
    for left in left_out {
        let line = left.line.replace('`', "'");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- cell {}: `{line}` {}", left.cell, left.why);
    }
    text
}

/// Formats the program, if the compiler came with rustfmt.
fn format(facade: &Facade, source: &Path) {
    let mut rustfmt = Command::new(facade.sysroot.join("bin/rustfmt"));
    let quiet = rustfmt
        .args(["--edition", "2024"])
        .arg(source)
        .stderr(Stdio::null());
    // A program that is not formatted is as good.
    let _ = quiet.status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_packages() {
        for good in ["classifier", "runs/my-model_2", "/tmp/a"] {
            assert!(package_name(Path::new(good)).is_ok(), "{good}");
        }
        for bad in [
            "",
            "..",
            "1st",
            "Model",
            "größe",
            "a b",
            "stratoscope",
            "a.b",
            "\"x\"",
            "-a",
        ] {
            assert!(package_name(Path::new(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn cells_that_fail_in_the_notebook_are_left_out() {
        let text = r#"{"cells": [
            {"cell_type": "code", "source": "let a = 1;", "outputs": [{"output_type": "stream"}]},
            {"cell_type": "markdown", "source": "text"},
            {"cell_type": "code", "source": "b", "outputs": [{"output_type": "error", "ename": "SC0101"}]}
        ], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;
        let program = program_of(&Notebook::parse(text).expect("a notebook"));
        assert!(
            program.body.contains("\nlet a = 1;\n") && program.body.contains("// b\n"),
            "{program:?}"
        );
        assert_eq!(program.left_out[0].cell, 2);
        assert_eq!(program.left_out[0].why, "ends with SC0101 in the notebook");
    }

    #[test]
    fn a_dependency_of_a_cell_is_one_of_the_package() {
        let program = Program {
            dependencies: vec!["regex = \"1\"".to_owned()],
            ..Program::default()
        };
        let text = manifest("it", &program);
        assert!(
            text.contains("[dependencies]\nregex = \"1\"\n\n[workspace]"),
            "{text}"
        );
    }
}
