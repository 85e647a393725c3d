//! The features of third-party crates that the workspace as a whole asks for, and a single crate would not.
//!
//! Cargo unites the features of the crates that a command names. A command for one crate, such as `cargo test -p
//! stratoscope-bert`, would therefore see `serde_json` or `tokio` with fewer features than the build of everything, and compile
//! them, and burn above them, again. All crates of the workspace depend on this one, so that each of them sees the same. There
//! is no code here, and what nothing calls is not linked.
//!
//! `tests/features.py` compares each crate with the workspace, and with `--write` writes the manifest.
