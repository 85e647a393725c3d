//! LLDB, which stops cells at breakpoints.

use std::path::Path;
use std::process::{Command, Stdio};

use super::Finding;

/// What stops cells at breakpoints.
pub(super) fn debugger() -> Finding {
    let restriction = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let restriction = restriction
        .ok()
        .and_then(|it| it.trim().parse::<u32>().ok());
    match stratoscope_jupyter::debug_adapter() {
        // 1 is what a process allows its ancestors.
        Ok(program) if restriction.is_some_and(|it| it > 1) => Finding::Optional(format!(
            "{} stops cells at breakpoints only where processes may be traced: `sysctl kernel.yama.ptrace_scope=1`",
            program.display()
        )),
        Ok(program) if !has_python(&program) => Finding::Optional(format!(
            "{} stops cells at breakpoints, but LLDB has no Python module, so values are shown without Rust's formatters: on \
             Debian, `apt install python3-lldb-19`, with the version of LLDB",
            program.display()
        )),
        Ok(program) => Finding::Ok(format!("{} stops cells at breakpoints", program.display())),
        Err(reason) => Finding::Optional(reason),
    }
}

/// Whether the LLDB beside the adapter finds its Python module, which runs the formatters. Without such a program it is not
/// known, and taken for granted.
fn has_python(adapter: &Path) -> bool {
    let adapter = adapter
        .canonicalize()
        .unwrap_or_else(|_| adapter.to_owned());
    let name = adapter.file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(|name| name.strip_prefix("lldb-dap")) else {
        return true;
    };
    let printed = Command::new(adapter.with_file_name(format!("lldb{name}")))
        .arg("--python-path")
        .stdin(Stdio::null())
        .output();
    match printed {
        Ok(printed) if printed.status.success() => {
            let folder = String::from_utf8_lossy(&printed.stdout);
            Path::new(folder.trim()).join("lldb/__init__.py").is_file()
        }
        _ => true,
    }
}
