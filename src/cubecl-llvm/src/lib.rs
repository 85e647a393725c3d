//! Stands in for the crates.io crate `cubecl-llvm`, whose build script downloads an LLVM bundle.
//!
//! `cubecl-cuda` has two ways to compile a kernel: CUDA C++ through NVRTC, and LLVM. This project
//! builds it with `cuda-cpp`, which makes NVRTC the default, so the LLVM way is never taken; its
//! types must exist all the same. Here they are, and nothing more: the types `cubecl-cuda` 0.11.3
//! names, and a compiler that refuses. CUDA can so be built on any machine, with no download.

use std::fmt;

use cubecl_core::environment::backtrace::BackTrace;
use cubecl_core::ir::nvidia::SmArch;
use cubecl_core::prelude::KernelDefinition;
use cubecl_runtime::compiler::{CompilationError, Compiler};
use cubecl_runtime::kernel::BufferIOAttr;

/// Paths as `cubecl-cuda` imports them.
pub mod nvptx {
    pub mod ptx_version {
        use std::fmt;

        /// A PTX version; never known here, since no PTX is written here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct PtxVersion(());

        impl PtxVersion {
            /// The version a driver loads. Only the LLVM way asks for it.
            pub fn for_driver(_driver: i32) -> Option<Self> {
                None
            }
        }

        impl fmt::Display for PtxVersion {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("ptx")
            }
        }
    }
}

/// Paths as `cubecl-cuda` imports them.
pub mod shared {
    pub mod lowered_features {
        use cubecl_core::ir::DeviceProperties;

        /// The target whose features would be narrowed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum GpuTarget {
            Nvptx,
        }

        /// Narrows nothing: only the LLVM way calls it.
        pub fn restrict_features(_properties: &mut DeviceProperties, _target: GpuTarget) {}
    }
}

/// The target of a compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LlvmTarget {
    #[default]
    Nvptx,
}

/// A compiler that refuses every kernel and says why.
#[derive(Clone, Debug, Default)]
pub struct PlironCompiler {
    pub target: LlvmTarget,
}

/// Options of [`PlironCompiler`]; the fields that `cubecl-cuda` sets.
#[derive(Clone, Debug, Default)]
pub struct PlironOptions {
    /// An AMD architecture: never one here.
    pub arch: Option<()>,
    pub sm_arch: Option<SmArch>,
    pub ptx_version: Option<nvptx::ptx_version::PtxVersion>,
    pub grid_constants: bool,
}

/// A compiled module; never made here.
#[derive(Clone, Debug)]
pub struct NvptxModule {
    pub ptx: Vec<std::ffi::c_char>,
    pub entrypoint: String,
    pub ir: String,
    pub shared_memory_size: usize,
    pub io: Vec<BufferIOAttr>,
}

/// What a compilation yields; never made here.
#[derive(Clone)]
#[non_exhaustive]
pub enum PlironArtifact {
    NvptxCode(NvptxModule),
}

impl fmt::Display for PlironArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlironArtifact::NvptxCode(module) = self;
        f.write_str(&module.ir)
    }
}

impl Compiler for PlironCompiler {
    type Representation = PlironArtifact;
    type CompilationOptions = PlironOptions;

    fn compile(
        &mut self,
        _kernel: KernelDefinition,
        _options: &PlironOptions,
    ) -> Result<PlironArtifact, CompilationError> {
        Err(CompilationError::Generic {
            reason: "this build compiles CUDA kernels through NVRTC only; the LLVM route was left out because its \
                     build downloads LLVM"
                .to_owned(),
            backtrace: BackTrace::capture(),
        })
    }

    fn extension(&self) -> &'static str {
        "ll"
    }

    fn lang_tag(&self) -> &'static str {
        "llvm"
    }
}
