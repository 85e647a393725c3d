//! `stratoscope package`: makes the wheel that installs the kernel without a build. It contains the kernel, its entry for
//! Jupyter, the extension for JupyterLab, the documentation, and the library that cells link to with the metadata that rustc
//! reads, compressed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use stratoscope_compile::facade::{self, Facade};
use stratoscope_compile::{needed, packaged, view};
use stratoscope_os::console::{say, warn};
use stratoscope_package::contents::Contents;
use stratoscope_package::elf::Needs;
use stratoscope_package::wheel::{About, Method, Wheel};
use stratoscope_package::{archive, installed};

use super::{kernelspec, labextension};

/// Arguments of `stratoscope package`.
#[derive(Debug, clap::Args)]
pub struct PackageArguments {
    /// The folder for the wheel; it is made if it is missing
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// How much effort goes into compression: 1 is quick, 19 takes minutes and saves an eighth
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
}

/// The Python module of the wheel.
const MODULE: [(&str, &str); 3] = [
    (
        "stratoscope/__init__.py",
        include_str!("../../../../kernel-spec/wheel/__init__.py"),
    ),
    (
        "stratoscope/__main__.py",
        include_str!("../../../../kernel-spec/wheel/__main__.py"),
    ),
    (
        "stratoscope/papermill.py",
        include_str!("../../../../kernel-spec/wheel/papermill.py"),
    ),
];
/// What other Python packages find in the module.
const ENTRY_POINTS: &str = "[papermill.engine]\nstratoscope = stratoscope.papermill:Engine\n";
const DESCRIPTION: &str = include_str!("../../../../kernel-spec/wheel/description.md");

/// Makes the wheel.
///
/// # Errors
/// There is no library to pack, it is one from a wheel, or a file cannot be read or written.
pub fn run(arguments: &PackageArguments) -> anyhow::Result<ExitCode> {
    if packaged::here().is_some() {
        bail!(
            "this command comes from a wheel; run the one of a checkout: `target/debug/stratoscope package`"
        );
    }
    let begun = Instant::now();
    let facade = facade::find()?;
    let sources = facade::sources();
    let output = std::path::absolute(&arguments.output)?;
    fs::create_dir_all(&output).with_context(|| format!("cannot make {}", output.display()))?;
    let work = tempfile::Builder::new()
        .prefix(".package-")
        .tempdir_in(&output)?;

    let library = work.path().join("library");
    let mut needs = Needs::default();
    let before = stage(&facade, &library.join(packaged::LIBRARY), &mut needs)?;
    view::generate_movable(
        &sources,
        &facade.sysroot,
        &library.join(packaged::VIEW),
        &library.join(packaged::SOURCES),
    )
    .context("the outline of the library cannot be written")?;
    needed::check(&library.join(installed::LIBRARY), &facade.sysroot)
        .context("a cell cannot be compiled against the files of the package")?;

    let program = work.path().join("stratoscope");
    strip(&facade, &std::env::current_exe()?, &program, "--strip-all")?;
    needs.add(&program)?;

    let compressed = work.path().join(installed::ARCHIVE);
    let packed = archive::pack(&library, arguments.level, &mut File::create(&compressed)?)?;
    let contents = Contents::new(
        env!("CARGO_PKG_VERSION"),
        &facade.rustc,
        &sha256(&compressed)?,
        packed,
    );
    say(&format!(
        "library: {} files; {} before, {} stripped, {} compressed",
        packed.files,
        mebibytes(before),
        mebibytes(packed.bytes),
        mebibytes(fs::metadata(&compressed)?.len())
    ));
    let wheel = wheel(&output, &sources, &needs, &contents, &program, &compressed)?;
    say(&format!(
        "{}: {}, {:.0} s",
        wheel.display(),
        mebibytes(fs::metadata(&wheel)?.len()),
        begun.elapsed().as_secs_f64()
    ));
    say(&format!(
        "it runs with {} and no other compiler: `{}`",
        facade.rustc,
        contents.rustup()
    ));
    if !contents
        .release()
        .starts_with(|first: char| first.is_ascii_digit())
    {
        warn(
            "that compiler is no release: rustup will not have it for long, so users may not be able to install it",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies what rustc reads into `folder`, stripped; adds to `needs` what the copies need. Returns the size before.
fn stage(facade: &Facade, folder: &Path, needs: &mut Needs) -> anyhow::Result<u64> {
    fs::create_dir_all(folder)?;
    let names = needed::files(&facade.library, &facade.sysroot)
        .context("which files rustc reads cannot be found out")?;
    let mut bytes = 0;
    for name in names {
        let (from, to) = (facade.dependencies.join(&name), folder.join(&name));
        bytes += fs::metadata(&from)?.len();
        if name.ends_with(".so") {
            strip(facade, &from, &to, "--strip-unneeded")?;
            needs.add(&to)?;
        } else {
            fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        }
    }
    Ok(bytes)
}

/// Copies a program or library without the symbols that nobody looks up, with the tool that comes with rustc: so the same
/// build becomes the same package everywhere.
fn strip(facade: &Facade, from: &Path, to: &Path, option: &str) -> anyhow::Result<()> {
    let tools = needed::tools(&facade.sysroot)
        .into_iter()
        .map(|folder| folder.join("rust-objcopy"));
    let Some(tool) = tools.into_iter().find(|tool| tool.is_file()) else {
        bail!(
            "{} has no `rust-objcopy`; install Rust with rustup",
            facade.sysroot.display()
        );
    };
    let output = Command::new(&tool)
        .env("LD_LIBRARY_PATH", facade.sysroot.join("lib"))
        .arg(option)
        .args([from, to])
        .output()
        .with_context(|| format!("{} does not start", tool.display()))?;
    if !output.status.success() {
        bail!(
            "{}: {}",
            tool.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

fn sha256(file: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(file)?, &mut hash)?;
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn wheel(
    output: &Path,
    sources: &Path,
    needs: &Needs,
    contents: &Contents,
    program: &Path,
    compressed: &Path,
) -> anyhow::Result<PathBuf> {
    let about = About {
        name: "stratoscope".to_owned(),
        version: contents.version.clone(),
        build: contents.build_tag(),
        platform: needs.tag(),
        metadata: metadata(contents),
    };
    let mut wheel = Wheel::new(output, about)?;
    for (name, text) in MODULE {
        wheel.add(name, text.as_bytes())?;
    }
    wheel.add_metadata("entry_points.txt", ENTRY_POINTS.as_bytes())?;
    let (scripts, data) = (wheel.place("scripts"), wheel.place("data"));
    let name = format!("{scripts}/stratoscope");
    wheel.add_from(&name, &mut File::open(program)?, Method::Deflated, true)?;
    let jupyter = format!("{data}/share/jupyter");
    let kernel = format!("{jupyter}/kernels/{}", kernelspec::DEFAULT_NAME);
    for (name, bytes) in kernelspec::files_of_wheel()? {
        wheel.add(&format!("{kernel}/{name}"), &bytes)?;
    }
    for (name, bytes) in labextension::FILES {
        wheel.add(
            &format!("{jupyter}/labextensions/{}/{name}", labextension::NAME),
            bytes,
        )?;
    }
    for (name, path) in pages(sources)? {
        wheel.add(
            &format!("{data}/share/doc/stratoscope/{name}"),
            &fs::read(path)?,
        )?;
    }
    let folder = format!("{data}/{}", installed::FOLDER);
    wheel.add(
        &format!("{folder}/{}", installed::CONTENTS),
        contents.to_json().as_bytes(),
    )?;
    let name = format!("{folder}/{}", installed::ARCHIVE);
    wheel.add_from(&name, &mut File::open(compressed)?, Method::Stored, false)?;
    Ok(wheel.finish()?)
}

fn metadata(contents: &Contents) -> String {
    format!(
        "Summary: A Jupyter kernel for Rust: training and fine-tuning under a distribution strategy\n\
         License: {}\n\
         Project-URL: Source, {}\n\
         Requires-Python: >=3.8\n\
         Requires-External: rustc (=={})\n\
         Provides-Extra: lab\n\
         Requires-Dist: jupyterlab; extra == \"lab\"\n\
         Description-Content-Type: text/markdown\n\n{}",
        env!("CARGO_PKG_LICENSE"),
        env!("CARGO_PKG_REPOSITORY"),
        contents.release(),
        DESCRIPTION.replace("RELEASE", &contents.release())
    )
}

/// The documentation and the licenses, by their names in the wheel, in order.
fn pages(sources: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut pages: Vec<(String, PathBuf)> = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"]
        .map(|name| (name.to_owned(), sources.join(name)))
        .into();
    for folder in ["docs", "docs/diagnostics"] {
        for entry in fs::read_dir(sources.join(folder))? {
            let path = entry?.path();
            let is_page = path.extension().is_some_and(|it| it == "md");
            if let Some(name) = path.file_name().filter(|_| is_page) {
                pages.push((format!("{folder}/{}", name.to_string_lossy()), path));
            }
        }
    }
    pages.sort();
    Ok(pages)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}
