//! Kernel specs: the folders in which Jupyter finds its kernels.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/kernels.html#kernel-specs>

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};

/// The spec that `install` completes, and the logos beside it.
const TEMPLATE: &str = include_str!("../../../../kernel-spec/kernel.json");
const LOGOS: [(&str, &[u8]); 3] = [
    (
        "logo-32x32.png",
        include_bytes!("../../../../kernel-spec/logo-32x32.png"),
    ),
    (
        "logo-64x64.png",
        include_bytes!("../../../../kernel-spec/logo-64x64.png"),
    ),
    (
        "logo-svg.svg",
        include_bytes!("../../../../kernel-spec/logo-svg.svg"),
    ),
];

/// How a wheel's spec starts the executable.
const THROUGH_PYTHON: [&str; 3] = ["python", "-m", "stratoscope"];

/// The default name of the kernel in Jupyter.
pub const DEFAULT_NAME: &str = "stratoscope";

/// What differs between installations.
pub struct KernelSpec<'a> {
    /// The executable that Jupyter starts.
    pub executable: &'a Path,
    /// The name that launchers show; `None`: that of the template.
    pub display_name: Option<&'a str>,
    /// Environment of the kernel.
    pub environment: Map<String, Value>,
}

impl KernelSpec<'_> {
    /// `kernel.json`.
    fn json(&self) -> anyhow::Result<String> {
        let mut spec: Map<String, Value> =
            serde_json::from_str(TEMPLATE).context("the template in kernel-spec/ is not JSON")?;
        let executable = self
            .executable
            .to_str()
            .context("the executable's path is not UTF-8")?;
        if let Some(program) = spec.get_mut("argv").and_then(|argv| argv.get_mut(0)) {
            *program = json!(executable);
        }
        if let Some(name) = self.display_name {
            spec.insert("display_name".to_owned(), json!(name));
        }
        spec.insert("env".to_owned(), Value::Object(self.environment.clone()));
        Ok(serde_json::to_string_pretty(&spec)? + "\n")
    }

    /// Writes the spec's files into `folder`.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let json = self.json()?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
        };
        for (name, bytes) in LOGOS {
            write(name, bytes)?;
        }
        // Last, since this file makes the folder a kernel.
        write("kernel.json", json.as_bytes())
    }
}

/// The files of the spec in a wheel, which starts the executable through the environment's Python: where the environment
/// will lie is not known, and Jupyter puts its own interpreter in place of `python`.
pub fn files_of_wheel() -> anyhow::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut spec: Map<String, Value> =
        serde_json::from_str(TEMPLATE).context("the template in kernel-spec/ is not JSON")?;
    if let Some(Value::Array(words)) = spec.get_mut("argv") {
        words.splice(0..1, THROUGH_PYTHON.map(Value::from));
    }
    let json = serde_json::to_string_pretty(&spec)? + "\n";
    let mut files: Vec<_> = LOGOS.map(|(name, bytes)| (name, bytes.to_vec())).into();
    files.push(("kernel.json", json.into_bytes()));
    Ok(files)
}

/// Where Jupyter looks for kernels.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Location {
    /// The kernels of this user (the default)
    #[arg(long, conflicts_with_all = ["sys_prefix", "prefix"])]
    pub user: bool,
    /// The kernels of the active Python environment
    #[arg(long, conflicts_with = "prefix")]
    pub sys_prefix: bool,
    /// The kernels in PREFIX/share/jupyter/kernels
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<PathBuf>,
}

impl Location {
    /// Jupyter's data folder.
    pub fn data(&self) -> anyhow::Result<PathBuf> {
        if let Some(prefix) = &self.prefix {
            Ok(std::path::absolute(prefix)?.join("share/jupyter"))
        } else if self.sys_prefix {
            let prefix = super::python::prefix()
                .context("`--sys-prefix` needs Python, which is not on PATH")?;
            Ok(prefix.join("share/jupyter"))
        } else {
            user_data()
        }
    }

    /// The location, for a kernel that was installed with pip: its own environment unless another place is named or the
    /// environment belongs to somebody else.
    #[must_use]
    pub fn or_environment(&self, environment: &Path) -> Self {
        let data = environment.join("share/jupyter");
        let is_named = self.user || self.sys_prefix || self.prefix.is_some();
        let is_own = tempfile::Builder::new()
            .prefix(".probe-")
            .tempfile_in(data)
            .is_ok();
        if is_named || !is_own {
            return self.clone();
        }
        Self {
            prefix: Some(environment.to_owned()),
            ..Self::default()
        }
    }

    /// The folder that holds a folder per kernel.
    pub fn kernels(&self) -> anyhow::Result<PathBuf> {
        Ok(self.data()?.join("kernels"))
    }
}

/// Jupyter's data folder of this user.
fn user_data() -> anyhow::Result<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|it| !it.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = variable("JUPYTER_DATA_DIR") {
        return Ok(folder);
    }
    let home = variable("HOME").context("HOME is not set; use `--prefix`")?;
    if cfg!(target_os = "macos") {
        return Ok(home.join("Library/Jupyter"));
    }
    Ok(variable("XDG_DATA_HOME")
        .unwrap_or_else(|| home.join(".local/share"))
        .join("jupyter"))
}

/// The kernel's folder under `kernels`.
pub fn folder(kernels: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    ensure!(
        !name.is_empty() && name.chars().all(valid) && !name.starts_with('.'),
        "`{name}` is not a kernel name; use letters, digits, `.`, `_` and `-`"
    );
    // Jupyter compares names in lower case.
    Ok(kernels.join(name.to_lowercase()))
}

/// Reads the spec in a kernel's folder.
pub fn read(folder: &Path) -> anyhow::Result<Value> {
    let path = folder.join("kernel.json");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

/// Whether the spec in a folder starts stratoscope.
pub fn is_ours(folder: &Path) -> bool {
    let Ok(spec) = read(folder) else { return false };
    let program = spec["argv"][0].as_str().unwrap_or_default();
    let name = Path::new(program).file_stem();
    name.is_some_and(|name| name == "stratoscope") || is_of_wheel(&spec)
}

/// Whether a spec is that of a wheel.
pub fn is_of_wheel(spec: &Value) -> bool {
    let words = spec["argv"].as_array();
    words.is_some_and(|words| words.starts_with(&THROUGH_PYTHON.map(Value::from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec<'a>(display_name: Option<&'a str>) -> KernelSpec<'a> {
        KernelSpec {
            executable: Path::new("/opt/bin/stratoscope"),
            display_name,
            environment: Map::from_iter([("RUST_LOG".to_owned(), json!("warn"))]),
        }
    }

    #[test]
    fn a_spec_is_written_read_and_known_again() {
        let kernels = tempfile::tempdir().expect("a folder");
        let folder = folder(kernels.path(), "Rust-BERT").expect("a good name");
        assert!(folder.ends_with("rust-bert"));
        assert!(!is_ours(&folder));
        spec(Some("Rust & BERT")).write(&folder).expect("writes");
        assert!(is_ours(&folder));
        let read = read(&folder).expect("reads");
        assert_eq!(read["argv"][0], "/opt/bin/stratoscope");
        assert_eq!(read["argv"][3], "{connection_file}");
        assert_eq!(read["display_name"], "Rust & BERT");
        assert_eq!(read["language"], "rust");
        assert_eq!(read["interrupt_mode"], "message");
        assert_eq!(read["env"]["RUST_LOG"], "warn");
        for (name, bytes) in LOGOS {
            assert_eq!(fs::read(folder.join(name)).expect("is there"), bytes);
        }
    }

    #[test]
    fn the_spec_of_a_wheel_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in files_of_wheel().expect("is JSON") {
            fs::write(folder.path().join(name), bytes).expect("writes");
        }
        let read = read(folder.path()).expect("reads");
        assert!(is_of_wheel(&read) && is_ours(folder.path()));
        assert_eq!(read["argv"][5], "{connection_file}");
    }

    #[test]
    fn the_template_names_the_kernel() {
        let json: Value = serde_json::from_str(&spec(None).json().expect("is JSON")).expect("too");
        assert_eq!(json["display_name"], "Rust (stratoscope)");
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["", "..", "a/b", ".hidden", "ü", "a b"] {
            folder(Path::new("/k"), name).expect_err(name);
        }
    }

    #[test]
    fn a_prefix_is_where_jupyter_looks() {
        let location = Location {
            prefix: Some("/opt/x".into()),
            ..Location::default()
        };
        let kernels = location.kernels().expect("is absolute");
        assert_eq!(kernels, Path::new("/opt/x/share/jupyter/kernels"));
    }
}
