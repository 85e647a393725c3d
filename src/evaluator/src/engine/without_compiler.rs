//! `!COMMAND` where nothing can be compiled, since the disk is full: the command may be the one that makes room.

use std::process::{Command, Stdio};

use stratoscope_compile::home;
use stratoscope_os::environment;
use stratoscope_session::{CellOutcome, OutputSink, Stream};

/// Runs a cell of commands for the shell without rustc, in a process of the kernel. `None`: the cell has other lines, or a
/// command fails, so that the first error is the one to show.
pub fn run(code: &str, outputs: &dyn OutputSink) -> Option<CellOutcome> {
    for command in commands(code)? {
        let mut shell = Command::new("sh");
        home::hide(&mut shell);
        shell.args(["-c", command]).stdin(Stdio::null());
        if let Some(folder) = environment::notebook_folder() {
            shell.current_dir(folder);
        }
        let ended = shell.output().ok()?;
        for (stream, bytes) in [
            (Stream::Stdout, &ended.stdout),
            (Stream::Stderr, &ended.stderr),
        ] {
            if !bytes.is_empty() {
                outputs.stream(stream, &String::from_utf8_lossy(bytes));
            }
        }
        if !ended.status.success() {
            return None;
        }
    }
    Some(CellOutcome::Ok)
}

/// The commands of a cell that has nothing else, empty lines aside.
fn commands(code: &str) -> Option<Vec<&str>> {
    let lines = code.lines().map(str::trim).filter(|it| !it.is_empty());
    let commands: Option<Vec<&str>> = lines.map(|it| it.strip_prefix('!')).collect();
    commands.filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cells_of_commands_are_run() {
        assert_eq!(commands("!ls -l\n\n  !rm x\n"), Some(vec!["ls -l", "rm x"]));
        for code in ["", "!ls\nlet x = 1;", "%env A=1\n!ls", "let x = !true;"] {
            assert_eq!(commands(code), None, "{code}");
        }
    }
}
