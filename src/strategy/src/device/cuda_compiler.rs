//! What compiles CUDA's kernels at run time: NVRTC, and the headers that generated kernels include. burn cannot be
//! queried: without one of them it panics on a thread of its own at the first kernel.

use std::path::{Path, PathBuf};

use libloading::Library;

/// The names of NVRTC on Linux.
const NAMES: [&str; 4] = [
    "libnvrtc.so",
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
];

/// Headers of four packages of NVIDIA; all are part of the CUDA toolkit. The last one may be in `cccl/`.
const HEADERS: [&str; 3] = ["cuda_fp16.h", "crt/mma.h", "cuda/barrier"];

/// What to do where something is missing.
const REMEDY: &str = "`pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl`, then set CUDA_PATH \
                      to the folder nvidia/cu13 of its site-packages and add $CUDA_PATH/lib to LD_LIBRARY_PATH; \
                      `stratoscope doctor --cuda` checks it";

/// Looks for NVRTC and the headers, on Linux only; elsewhere the first kernel tells.
///
/// # Errors
/// What is missing and how to install it.
pub(super) fn complete() -> Result<(), String> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    // SAFETY: the initializers of NVRTC have no requirements, and it stays loaded.
    let loads = |name: &&str| unsafe { Library::new(*name) }.map(std::mem::forget).is_ok();
    if !NAMES.iter().any(loads) {
        return Err(format!(
            "NVRTC ({}), which compiles CUDA kernels, was not found: {REMEDY}",
            NAMES[0]
        ));
    }
    headers(toolkit().as_deref())
}

/// The folder in which cubecl looks for `include`.
fn toolkit() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CUDA_PATH") {
        return Some(named.into());
    }
    let usual = ["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from);
    let usual = usual.into_iter().find(|folder| folder.exists());
    usual.or_else(|| {
        Path::new("/usr/bin/nvcc")
            .exists()
            .then(|| PathBuf::from("/usr"))
    })
}

/// Whether the headers are in a folder's `include`.
fn headers(toolkit: Option<&Path>) -> Result<(), String> {
    let Some(toolkit) = toolkit else {
        return Err(format!(
            "CUDA_PATH, the folder of the headers that CUDA kernels include, is not set: {REMEDY}"
        ));
    };
    let include = toolkit.join("include");
    let lacks = |header: &&&str| {
        !include.join(header).exists() && !include.join("cccl").join(header).exists()
    };
    match HEADERS.iter().find(lacks) {
        None => Ok(()),
        Some(header) => Err(format!(
            "{header}, which CUDA kernels include, is not in {} (CUDA_PATH): {REMEDY}",
            include.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_is_named() {
        let folder = std::env::temp_dir().join(format!("cuda-headers-{}", std::process::id()));
        let include = folder.join("include");
        std::fs::create_dir_all(include.join("crt")).expect("a folder");
        std::fs::create_dir_all(include.join("cccl/cuda")).expect("a folder");
        let make = |name: &str| std::fs::write(include.join(name), "").expect("a file");
        let missing = || headers(Some(&folder)).expect_err("it is missing");
        assert!(missing().starts_with("cuda_fp16.h"));
        make("cuda_fp16.h");
        assert!(missing().starts_with("crt/mma.h"));
        make("crt/mma.h");
        assert!(missing().starts_with("cuda/barrier"));
        make("cccl/cuda/barrier");
        assert_eq!(headers(Some(&folder)), Ok(()));
        assert!(headers(None).is_err_and(|why| why.starts_with("CUDA_PATH")));
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
