//! The package that spares a user the build: the library that cells link to, compressed, in a Python wheel with the
//! kernel. `stratoscope package` makes it, and the installed kernel unpacks it. This crate knows files and their
//! formats; `compile` and `kernel` decide which files a package contains.
//!
//! - [`archive`]: a folder as one compressed file, and back.
//! - [`contents`]: what a package says about its library: the compiler, the size.
//! - [`installed`]: the package of an installed kernel, and where its library is unpacked.
//! - [`elf`]: which version of the C library a program needs, and so the platform tag of a wheel.
//! - [`wheel`]: Python wheels.
//!
//! Start with [`installed`].

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod archive;
pub mod contents;
pub mod elf;
pub mod installed;
pub mod wheel;
