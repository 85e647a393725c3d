//! Cargo looks at build dependencies of crates with a build script only: those unite the features of what macros are made of.

fn main() {}
