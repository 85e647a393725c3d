//! What rust-analyzer sees of the facade: the *view*.
//!
//! rust-analyzer needs sources and manifests to name types; rustc needs metadata and a library.
//! The real facade has some 680 crates, which would cost rust-analyzer ten seconds and gigabytes,
//! and most of them say nothing about the types that cells use. The view is a folder with one tiny
//! manifest for each crate whose types matter: ours and burn's public ones. The `path` in ours points
//! at the *real* sources, which may change and must not disagree; burn's lie beside the manifest, in
//! `outline`. Their only dependencies are each other. What a source names beyond that stays unknown to rust-analyzer,
//! which tolerates that. These crates are not compiled (see `crate::wrapper`). Beside them
//! lies the [`standard_library`] in outline.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::compiler;

mod outline;
pub mod standard_library;

/// The crate that cells depend on.
pub const ROOT: &str = "stratoscope";

/// Burn's crates whose types appear in cells. Adding one costs every kernel start a little time
/// and memory; without it, variables of its types need an annotation.
const BURN: [&str; 7] = [
    "burn",
    "burn-core",
    "burn-tensor",
    "burn-backend",
    "burn-std",
    "burn-nn",
    "burn-optim",
];

/// What writes the view.
const CODE: [&str; 3] = [
    include_str!("view.rs"),
    include_str!("view/outline.rs"),
    include_str!("view/standard_library.rs"),
];

/// Written last: a view without it is incomplete.
pub const MANIFEST_LIST: &str = "complete";

/// Writes the view of the checkout at `sources`, and of the standard library of the rustc at
/// `sysroot`, into `folder`, replacing an older one.
pub fn generate(sources: &Path, sysroot: &Path, folder: &Path) -> io::Result<()> {
    let metadata = Metadata::read(sources, sysroot)?;
    let packages = metadata.view()?;
    let parent = folder.parent().unwrap_or(Path::new("."));
    let fresh = tempfile::Builder::new()
        .prefix("stratoscope-view-")
        .tempdir_in(parent)?;
    write(&packages, sysroot, fresh.path())?;
    fs::write(fresh.path().join(MANIFEST_LIST), stamp(sources, sysroot)?)?;
    // Another kernel may have been faster; its view is as good.
    let _ = fs::remove_dir_all(folder);
    match fs::rename(fresh.path(), folder) {
        Err(_) if is_current(sources, sysroot, folder) => Ok(()),
        other => other,
    }
}

/// Writes a view that may be moved, for a package: our sources are copied to `copies`, a folder beside `folder`, and the
/// manifests name them from there.
///
/// # Errors
/// A source cannot be read, or a file cannot be written.
pub fn generate_movable(
    sources: &Path,
    sysroot: &Path,
    folder: &Path,
    copies: &Path,
) -> io::Result<()> {
    let mut packages = Metadata::read(sources, sysroot)?.view()?;
    let from_package = Path::new("../..").join(copies.file_name().unwrap_or_default());
    for package in packages.iter_mut().filter(|package| package.is_ours) {
        let inside = package
            .source
            .strip_prefix(sources)
            .map_err(io::Error::other)?;
        if let (Some(from), Some(to)) = (package.source.parent(), inside.parent()) {
            copy_sources(from, &copies.join(to))?;
        }
        package.source = from_package.join(inside);
    }
    fs::create_dir_all(folder)?;
    write(&packages, sysroot, folder)?;
    // What cargo answers about the view depends on nothing but the package.
    fs::write(folder.join(MANIFEST_LIST), "of a package\n")
}

/// Copies the Rust sources in a folder.
fn copy_sources(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if path.is_dir() {
            copy_sources(&path, &to.join(name))?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn write(packages: &[Package], sysroot: &Path, folder: &Path) -> io::Result<()> {
    for package in packages {
        let home = folder.join(&package.name);
        fs::create_dir(&home)?;
        fs::write(home.join("Cargo.toml"), package.manifest())?;
        if let (false, Some(source)) = (package.is_ours, package.source.parent()) {
            outline::folder(source, &home.join("src"))?;
        }
    }
    standard_library::generate(sysroot, &folder.join(standard_library::FOLDER))
}

/// Whether `folder` holds a complete view of the checkout, and of the standard library, as they are
/// now.
pub fn is_current(sources: &Path, sysroot: &Path, folder: &Path) -> bool {
    let written = fs::read_to_string(folder.join(MANIFEST_LIST));
    matches!((written, stamp(sources, sysroot)), (Ok(written), Ok(now)) if written == now)
}

/// Changes whenever the view might: with the locked versions, the features and this code.
fn stamp(sources: &Path, sysroot: &Path) -> io::Result<String> {
    let mut code = Sha256::new();
    CODE.iter().for_each(|text| code.update(text));
    let mut text = format!("{:?}\n{}\n", code.finalize(), sources.display());
    let mut manifests = vec![
        sources.join("Cargo.lock"),
        sources.join("Cargo.toml"),
        sysroot.join("bin/rustc"),
    ];
    for entry in fs::read_dir(sources.join("src"))? {
        manifests.push(entry?.path().join("Cargo.toml"));
    }
    manifests.sort();
    for manifest in manifests {
        if let Ok(metadata) = fs::metadata(&manifest) {
            let modified = metadata.modified()?;
            let since = modified
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default();
            let _ = writeln!(
                text,
                "{} {} {}",
                manifest.display(),
                metadata.len(),
                since.as_nanos()
            );
        }
    }
    Ok(text)
}

/// One crate of the view.
struct Package {
    name: String,
    version: String,
    edition: String,
    library: String,
    source: PathBuf,
    /// Of this checkout, and so able to change.
    is_ours: bool,
    features: BTreeSet<String>,
    /// Name in the code → package.
    dependencies: BTreeMap<String, String>,
}

impl Package {
    fn manifest(&self) -> String {
        let features: Vec<&String> = self
            .features
            .iter()
            .filter(|name| *name != "default")
            .collect();
        let source = match self.is_ours {
            true => &self.source,
            false => Path::new("src/lib.rs"),
        };
        let mut text = format!(
            "[package]\nname = {:?}\nversion = {:?}\nedition = {:?}\n\
             autobins = false\nautoexamples = false\nautotests = false\nautobenches = false\n\n\
             [workspace]\n\n[lib]\nname = {:?}\npath = {:?}\n\n[features]\ndefault = {features:?}\n",
            self.name, self.version, self.edition, self.library, source
        );
        for feature in features {
            let _ = writeln!(text, "{feature:?} = []");
        }
        text.push_str("\n[dependencies]\n");
        for (name, package) in &self.dependencies {
            let _ = writeln!(
                text,
                "{name} = {{ package = {package:?}, path = \"../{package}\" }}"
            );
        }
        text
    }
}

/// What `cargo metadata` says, as far as the view needs it.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct MetadataPackage {
    id: String,
    name: String,
    version: String,
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
    src_path: PathBuf,
    edition: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
    features: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Edge {
    name: String,
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

/// The platform that rustc builds for: `x86_64-unknown-linux-gnu`.
fn host(sysroot: &Path) -> io::Result<String> {
    let output = Command::new(compiler::rustc_of(sysroot))
        .arg("-vV")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| io::Error::other("rustc does not say which platform it builds for"))
}

impl Metadata {
    fn read(sources: &Path, sysroot: &Path) -> io::Result<Self> {
        // Crates for other platforms were never downloaded: the build does not need them.
        let platform = host(sysroot)?;
        let said = |mode: &str| {
            let mut cargo = compiler::cargo(sysroot, None, &[]);
            cargo
                .args(["metadata", "--locked", mode, "--format-version", "1"])
                .args(["--filter-platform", &platform, "--manifest-path"])
                .arg(sources.join("Cargo.toml"))
                .output()
        };
        // cargo wants the manifests of all crates, and a build has not downloaded those that only
        // tests use: where that is all that is missing, the second call gets them.
        let mut output = said("--offline")?;
        if !output.status.success() {
            output = said("--quiet")?;
        }
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(reason.trim().to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(io::Error::other)
    }

    /// The crates of the view, reached from the root.
    fn view(&self) -> io::Result<Vec<Package>> {
        let packages: BTreeMap<&str, &MetadataPackage> = self
            .packages
            .iter()
            .map(|package| (&*package.id, package))
            .collect();
        let nodes: BTreeMap<&str, &Node> = self
            .resolve
            .nodes
            .iter()
            .map(|node| (&*node.id, node))
            .collect();
        let root = self
            .packages
            .iter()
            .find(|package| package.name == ROOT && package.source.is_none());
        let Some(root) = root else {
            return Err(io::Error::other("the checkout has no crate `stratoscope`"));
        };
        let mut waiting = vec![&*root.id];
        let mut seen = BTreeSet::new();
        let mut view = Vec::new();
        while let Some(id) = waiting.pop() {
            let (Some(package), Some(node)) = (packages.get(id), nodes.get(id)) else {
                continue;
            };
            let Some(library) = package.library().filter(|_| seen.insert(id)) else {
                continue;
            };
            let mut dependencies = BTreeMap::new();
            for edge in &node.deps {
                let is_normal = edge.dep_kinds.iter().any(|kind| kind.kind.is_none());
                let target = packages.get(&*edge.pkg).filter(|target| target.is_shown());
                if let (true, Some(target)) = (is_normal, target) {
                    dependencies.insert(edge.name.clone(), target.name.clone());
                    waiting.push(&target.id);
                }
            }
            view.push(Package {
                name: package.name.clone(),
                version: package.version.clone(),
                edition: library.edition.clone(),
                library: library.name.replace('-', "_"),
                source: library.src_path.clone(),
                is_ours: package.source.is_none(),
                features: node.features.clone(),
                dependencies,
            });
        }
        Ok(view)
    }
}

impl MetadataPackage {
    fn library(&self) -> Option<&Target> {
        let is_library = |target: &&Target| {
            let kinds = ["lib", "rlib", "dylib"];
            target.kind.iter().any(|kind| kinds.contains(&&**kind))
        };
        self.targets.iter().find(is_library)
    }

    fn is_shown(&self) -> bool {
        let is_ours = self.source.is_none() && self.name.starts_with(ROOT);
        (is_ours || BURN.contains(&&*self.name)) && self.library().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_of_this_checkout_points_at_real_sources_and_is_closed() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = tempfile::tempdir().expect("a folder");
        let view = folder.path().join("view");
        let sysroot = crate::compiler::any().expect("there is one").sysroot;
        generate(&sources, &sysroot, &view).expect("generates");
        assert!(is_current(&sources, &sysroot, &view));
        let core = view.join(standard_library::FOLDER).join("core/src/lib.rs");
        assert!(core.is_file(), "{}", core.display());
        let metadata = Metadata::read(&sources, &sysroot).expect("reads");
        let packages = metadata.view().expect("is there");
        let names: Vec<&str> = packages.iter().map(|package| &*package.name).collect();
        for name in BURN.iter().chain(&["stratoscope", "stratoscope-models"]) {
            assert!(names.contains(name), "{name} is missing");
        }
        for package in &packages {
            assert!(package.source.is_file(), "{}", package.source.display());
            let outline = view.join(&package.name).join("src/lib.rs");
            assert_eq!(outline.is_file(), !package.is_ours, "{}", outline.display());
            for dependency in package.dependencies.values() {
                assert!(
                    view.join(dependency).join("Cargo.toml").is_file(),
                    "{dependency}"
                );
            }
        }
        let tensor = packages
            .iter()
            .find(|package| package.name == "burn-tensor");
        assert!(tensor.is_some_and(|package| package.features.contains("std")));
    }
}
