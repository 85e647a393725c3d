//! A process that writes checkpoints is killed at random moments, and its disk becomes full.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use stratoscope_data::Dataset;
use stratoscope_models::{BertForSequenceClassification, FitArgs};
use tempfile::TempDir;

use crate::support::{compiled, heard, is_full, plain_args, recipe, sentences, weights};

/// Set in a process that a test has started: the folder of its checkpoints.
const FOLDER: &str = "STRATOSCOPE_TEST_CHECKPOINTS";

fn model() -> BertForSequenceClassification {
    compiled(None, "float32", plain_args().optimizer(recipe()))
}

fn args(data: &Dataset) -> FitArgs<'_> {
    FitArgs::new()
        .epochs(4)
        .batch_size(4)
        .seed(3)
        .validation_data(data)
        .verbose(false)
}

/// Losses and weights, to the bit.
fn trained(args: FitArgs<'_>, train: &Dataset) -> String {
    let model = model();
    let history = model.fit(train, args).expect("it trains");
    let losses = history.steps.iter().map(|it| (it.step, it.loss.to_bits()));
    let weights = weights(&model).into_iter();
    let weights = weights.map(|(name, values)| {
        (
            name,
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>(),
        )
    });
    format!(
        "{:?} {:?}",
        losses.collect::<Vec<_>>(),
        weights.collect::<Vec<_>>()
    )
}

/// Not a test of its own: what the processes of the tests below do.
#[test]
fn a_process_that_trains() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let (train, dev) = (sentences(40), sentences(7));
    let mut args = args(&dev).checkpoint(folder).every(1).keep_last(2);
    if newest(folder).is_some() {
        args = args.resume_from(folder);
    }
    let (result, notices) = heard(&["SC0525", "SC0526"], || trained(args, &train));
    let codes: Vec<String> = notices.into_iter().map(|it| it.code).collect();
    fs::write(folder.join("codes"), codes.join(",")).expect("a few bytes");
    // Where files may have a few bytes only, this is too long.
    let _ = fs::write(
        folder.join("result"),
        format!("{} {result}", codes.join(",")),
    );
}

fn start(folder: &Path, before: &str) -> Child {
    let program = std::env::current_exe().expect("this program");
    let name = "checkpoints_killed::a_process_that_trains";
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(program)
        .args([name, "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("it starts")
}

/// The step of the newest checkpoint by its name; every folder of that name must have a manifest.
fn newest(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let steps = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let step = name.strip_prefix("step-")?;
        assert!(
            entry.path().join("manifest.json").exists(),
            "{name} is not complete"
        );
        step.split('.').next()?.parse().ok()
    });
    steps.max()
}

/// Each time a complete checkpoint is left, or none was ever complete; and the run goes on from it to the same bits.
#[test]
fn a_process_that_is_killed_leaves_a_complete_checkpoint() {
    let kills = if is_full() { 100 } else { 12 };
    let (train, dev) = (sentences(40), sentences(7));
    let expected = trained(args(&dev), &train);

    // How long a whole run takes.
    let begun = Instant::now();
    let whole = TempDir::new().expect("a temporary folder");
    assert!(start(whole.path(), "").wait().expect("it ends").success());
    let seconds = begun.elapsed().as_secs_f64();
    let result = fs::read_to_string(whole.path().join("result")).expect("it ended");
    assert!(
        result == format!(" {expected}"),
        "another process computes the same"
    );

    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut folder = TempDir::new().expect("a temporary folder");
    let (mut killed, mut complete) = (0, 0);
    while killed < kills {
        let mut child = start(folder.path(), "");
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let share = (random >> 33) as f64 / (1_u64 << 31) as f64;
        thread::sleep(Duration::from_secs_f64(seconds * (0.1 + 0.6 * share)));
        // SIGKILL.
        child.kill().expect("it is our child");
        child.wait().expect("it ends");
        killed += 1;
        if newest(folder.path()).is_some() {
            complete += 1;
            let (found, notices) = heard(&["SC0526"], || {
                trained(args(&dev).resume_from(folder.path()), &train)
            });
            assert!(found == expected, "other bits after {killed} kills");
            assert!(notices.is_empty(), "{notices:?}");
        }
        if folder.path().join("result").exists() {
            // It had ended: from the beginning again.
            folder = TempDir::new().expect("a temporary folder");
        }
    }
    assert!(complete > kills / 2, "{complete} of {kills} left one");
    // What is left is brought to its end by a process, which also removes what the killed ones have left.
    assert!(start(folder.path(), "").wait().expect("it ends").success());
    let result = fs::read_to_string(folder.path().join("result")).expect("it ended");
    assert!(result == format!(" {expected}"));
    let entries = fs::read_dir(folder.path()).expect("it is there").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> = names
        .filter(|name| name.starts_with(".unfinished"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// No file may grow beyond 128 KB, which the weights do not and the moments do: writing stops with a warning, and training does not.
#[test]
fn a_full_disk_stops_the_writing_and_not_the_training() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut child = start(folder.path(), "trap '' XFSZ; ulimit -f 250;");
    let status = child.wait().expect("it ends");
    assert_eq!(newest(folder.path()), None);
    let codes = fs::read_to_string(folder.path().join("codes"));
    assert!(status.success(), "{status}");
    assert_eq!(codes.expect("it ended"), "SC0525");
    let entries = fs::read_dir(folder.path()).expect("it is there").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> = names
        .filter(|name| name.starts_with(".unfinished"))
        .collect();
    assert!(left.is_empty(), "nothing half-written is left: {left:?}");
}

/// A run that goes on from earlier checkpoints, where no file may grow beyond 128 KB any more: the writing stops and is
/// reported once, the training ends as ever, and the earlier checkpoints are as they were.
#[test]
fn a_disk_that_becomes_full_leaves_the_earlier_checkpoints() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut child = start(folder.path(), "");
    let begun = Instant::now();
    while newest(folder.path()).is_none_or(|step| step < 5) {
        assert!(begun.elapsed() < Duration::from_secs(120));
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it is our child");
    child.wait().expect("it ends");
    let _ = fs::remove_file(folder.path().join("result"));
    let _ = fs::remove_file(folder.path().join("codes"));
    let before = newest(folder.path()).expect("one is complete");
    let mut child = start(folder.path(), "trap '' XFSZ; ulimit -f 250;");
    assert!(child.wait().expect("it ends").success());
    let codes = fs::read_to_string(folder.path().join("codes"));
    assert_eq!(codes.expect("it ended"), "SC0525", "one warning");
    assert_eq!(newest(folder.path()), Some(before), "the earlier one");
    goes_on_from(folder.path());
}

/// The same on a file system that is full, where this user may make one: a folder in memory with room for some checkpoints.
#[test]
#[cfg(target_os = "linux")]
fn a_full_file_system_stops_the_writing_and_not_the_training() {
    let (folder, copied) = (TempDir::new(), TempDir::new());
    let (folder, copied) = (folder.expect("a folder"), copied.expect("a folder"));
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=1400k none \"$1\" || exit 77; \"$0\" \
        checkpoints_killed::a_process_that_trains --exact --nocapture; status=$?; cp -r \"$1/.\" \"$2\"; exit $status";
    command
        .args(["-m", "sh", "-c", script])
        .arg(std::env::current_exe().expect("this program"))
        .args([folder.path(), copied.path()])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = match command.status() {
        Ok(status)
            if status.code() != Some(77)
                && (status.success() || newest(copied.path()).is_some()) =>
        {
            status
        }
        refused => {
            eprintln!("skipped: no file system can be mounted: {refused:?}");
            return;
        }
    };
    assert!(status.success(), "{status}");
    let codes = fs::read_to_string(copied.path().join("codes"));
    assert_eq!(codes.expect("it ended"), "SC0525", "one warning");
    let newest = newest(copied.path()).expect("there was room for one");
    assert!(newest < 40, "it was not full");
    goes_on_from(copied.path());
}

/// What is in the folder is sound, and leads to the bits of a run that was never disturbed.
fn goes_on_from(folder: &Path) {
    let (train, dev) = (sentences(40), sentences(7));
    let expected = trained(args(&dev), &train);
    let (found, notices) = heard(&["SC0526"], || {
        trained(args(&dev).resume_from(folder), &train)
    });
    assert!(found == expected, "other bits");
    assert!(notices.is_empty(), "{notices:?}");
}
