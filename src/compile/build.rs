//! Records which rustc builds this executable and, in the same build, the library that cells link to:
//! only that rustc can compile cells.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "sysroot"]).output();
    // Without the record the compiler is looked for where rustup keeps its toolchains, and on PATH.
    let sysroot = output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    println!("cargo::rustc-env=STRATOSCOPE_SYSROOT={sysroot}");
}
