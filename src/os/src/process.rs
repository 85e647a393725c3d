//! Process trees: who descends from whom, how to end them, and how to tie a child's life to its parent's; and what a
//! program prints within a time.

use std::collections::HashMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The last bytes of a program's output that are kept. The answers that are read are at its end; a driver may print any
/// number of lines before.
const KEPT_OUTPUT: usize = 1 << 20;
/// How often a program that prints nothing is looked at.
const POLL: Duration = Duration::from_millis(10);

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

/// Runs a command without input and returns what it printed on standard output: the last mebibyte of it. What it prints
/// is read all the time, so that a program that prints more than a pipe holds does not wait for us.
///
/// `None` where it cannot be started or has not ended within `limit`; it is killed then, with the processes that descend
/// from it. A process that it leaves behind is not waited for, also where that one keeps the output open.
pub fn output_within(command: &mut Command, limit: Duration) -> Option<Vec<u8>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = read_until_end(&mut child, limit);
    if output.is_none() {
        descendants(child.id(), None).into_iter().for_each(kill);
        let _ = child.kill();
        let _ = child.wait();
    }
    output
}

/// What a child prints until it ends; `None` where it does not end in time or its output cannot be read.
///
/// A thread that reads would hang with the pipe, which ends only when every process that has inherited it is gone. So
/// nothing here blocks: what can be read is read, then it is asked whether the child has ended.
fn read_until_end(child: &mut Child, limit: Duration) -> Option<Vec<u8>> {
    let started = Instant::now();
    let mut pipe = child.stdout.take()?;
    // SAFETY: a system call on a descriptor that `pipe` keeps open; only this end of the pipe no longer blocks.
    if unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } == -1 {
        return None;
    }
    let mut output = Vec::new();
    let mut piece = vec![0_u8; 1 << 16];
    loop {
        // Before reading: of a child that had ended by then, everything is in the pipe.
        let has_ended = child.try_wait().ok()?.is_some();
        let is_drained = match pipe.read(&mut piece) {
            Ok(0) => true,
            Ok(length) => {
                output.extend_from_slice(&piece[..length]);
                output.drain(..output.len().saturating_sub(KEPT_OUTPUT));
                false
            }
            Err(error) => error.kind() != ErrorKind::Interrupted,
        };
        // What a process that was left behind prints without end is not read without end.
        let is_late = started.elapsed() >= limit;
        if has_ended && (is_drained || is_late) {
            return Some(output);
        }
        if is_late {
            return None;
        }
        if is_drained {
            thread::sleep(POLL);
        }
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

    /// Much more than any of these programs takes, much less than they would hang.
    const LIMIT: Duration = Duration::from_secs(20);

    fn output_of(script: &str, limit: Duration) -> (Option<String>, Duration) {
        let started = Instant::now();
        let output = output_within(Command::new("sh").args(["-c", script]), limit);
        let text = output.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (text, started.elapsed())
    }

    #[test]
    fn a_program_may_print_more_than_a_pipe_holds() {
        let script = "head -c 200000 /dev/zero | tr '\\0' x; echo; echo answer";
        let (text, took) = output_of(script, LIMIT * 2);
        let text = text.expect("it ends");
        assert_eq!(text.len(), 200_000 + "\nanswer\n".len());
        assert!(text.ends_with("x\nanswer\n"));
        assert!(took < LIMIT, "{took:?}");
    }

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo answer";
        let (text, _) = output_of(script, LIMIT * 2);
        let text = text.expect("it ends");
        assert_eq!(text.len(), KEPT_OUTPUT);
        assert!(text.ends_with("x\nanswer\n"));
    }

    #[test]
    fn a_program_without_an_end_is_killed() {
        let (text, took) = output_of(
            "echo begins; sleep 60; echo ends",
            Duration::from_millis(300),
        );
        assert_eq!(text, None);
        assert!(took < LIMIT, "{took:?}");
        let missing = output_within(&mut Command::new("/nowhere/no-such-program"), LIMIT);
        assert_eq!(missing, None);
    }

    #[test]
    fn a_process_that_is_left_behind_is_not_waited_for() {
        let (text, took) = output_of("sleep 60 & echo $!", LIMIT * 2);
        let text = text.expect("the shell ends");
        assert!(took < LIMIT, "{took:?}");
        kill(text.trim().parse().expect("the number of the process"));
    }
}
