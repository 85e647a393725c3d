//! Process trees: who descends from whom, how to end them, and how to tie a child's life to its parent's.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The processes that descend from `root`, parents before their children, without `except` and its descendants.
pub fn descendants(root: u32, except: Option<u32>) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    for entry in entries.flatten() {
        let Some(process) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(status) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        if let Some(parent) = parent_in(&status) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(process) = waiting.pop() {
        for &child in children.get(&process).into_iter().flatten() {
            if Some(child) != except {
                found.push(child);
                waiting.push(child);
            }
        }
    }
    found
}

/// Sends `SIGKILL` to every process that descends from this one.
pub fn kill_descendants() {
    descendants(std::process::id(), None)
        .into_iter()
        .for_each(kill);
}

/// Sends `SIGKILL` to a process. Nothing happens when it has ended.
pub fn kill(process: u32) {
    // Not every `u32` is a process number, and negative numbers would address groups.
    let Ok(process) = i32::try_from(process) else {
        return;
    };
    // SAFETY: a system call without pointers; the worst outcome is an error code.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Makes the operating system kill the command's process when this process ends. An interrupt that kills
/// the kernel's compiler driver thereby ends the compiler too.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only async-signal-safe functions may run; `prctl` is a plain system
    // call, and the closure neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    }
}

/// Puts this process into a process group of its own and makes it end with its parent. Without the kernel
/// nothing would ever end a helper process, such as a cell that computes; and Ctrl-C in a terminal, which
/// goes to the whole group, is meant for the kernel alone.
pub fn start_own_group_and_die_with_parent() {
    // SAFETY: system calls without pointers on our own process; a failure changes nothing.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::setpgid(0, 0);
    }
}

/// The parent's number in `/proc/<pid>/stat`. The name before it is in parentheses and may contain anything.
fn parent_in(status: &str) -> Option<u32> {
    let (_, rest) = status.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_whatever_the_name() {
        assert_eq!(parent_in("12 (cargo) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a ) b) S 8 12"), Some(8));
        assert_eq!(parent_in("nonsense"), None);
    }

    #[test]
    fn only_descendants_are_found() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("starts");
        let own = std::process::id();
        assert!(descendants(own, None).contains(&child.id()));
        assert!(!descendants(own, Some(child.id())).contains(&child.id()));
        kill(child.id());
        child.wait().expect("has ended");
    }
}
