use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

fn file(folder: &Path, limits: Limits) -> HistoryFile {
    HistoryFile::new(folder.join("data").join("history.jsonl"), limits)
}

fn texts(file: &HistoryFile) -> Vec<String> {
    let entries = file.read().expect("is read");
    entries.into_iter().map(|entry| entry.input).collect()
}

#[test]
fn cells_of_sessions_are_kept_in_a_private_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(folder.path(), Limits::DEFAULT);
    assert_eq!(file.read().expect("there is none"), []);
    for session in 1..=3 {
        assert_eq!(file.begin().expect("begins"), (session, None));
    }
    file.append(3, 1, "let größe = \"\n\";").expect("is kept");
    file.append(3, 2, "größe").expect("is kept");
    assert_eq!(texts(&file), ["let größe = \"\n\";", "größe"]);
    for name in ["history.jsonl", "history.lock"] {
        let metadata = fs::metadata(folder.path().join("data").join(name)).expect("is there");
        assert_eq!(metadata.mode() & 0o777, 0o600, "{name}");
    }
    let parent = fs::metadata(folder.path().join("data")).expect("is there");
    assert_eq!(parent.mode() & 0o777, 0o700);
    file.clear().expect("is removed");
    assert_eq!(texts(&file), [""; 0]);
    assert_eq!(
        file.begin().expect("begins").0,
        4,
        "numbers are not used again"
    );
}

#[test]
fn several_kernels_append_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    // So small that it is shortened all the time.
    let small = Limits {
        entries: 40,
        bytes: 1 << 20,
        cell: 1000,
    };
    for limits in [Limits::DEFAULT, small] {
        let file = file(&folder.path().join(limits.entries.to_string()), limits);
        let write = |_| {
            let file = file.clone();
            std::thread::spawn(move || {
                let (session, _) = file.begin().expect("begins");
                for line in 1..=50 {
                    file.append(session, line, &format!("{session} {line}"))
                        .expect("is kept");
                    if line % 10 == 0 {
                        file.shorten().expect("is shortened");
                    }
                }
                session
            })
        };
        let writers: Vec<_> = (0..4).map(write).collect();
        let mut sessions: Vec<i64> = writers
            .into_iter()
            .map(|it| it.join().expect("ends"))
            .collect();
        sessions.sort_unstable();
        assert_eq!(sessions, [1, 2, 3, 4]);
        let kept = file.read().expect("is read");
        assert!(
            kept.iter()
                .all(|it| it.input == format!("{} {}", it.session, it.line))
        );
        match limits.entries {
            40 => assert!(kept.len() <= 80, "{}", kept.len()),
            _ => assert_eq!(kept.len(), 200),
        }
        assert_eq!(
            file.begin().expect("begins"),
            (5, None),
            "nothing is damaged"
        );
    }
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits {
        entries: 8,
        bytes: 1000,
        cell: 200,
    };
    let file = file(folder.path(), limits);
    for line in 1..=9 {
        file.append(1, line, &line.to_string()).expect("is kept");
    }
    file.shorten().expect("is shortened");
    assert_eq!(texts(&file), ["4", "5", "6", "7", "8", "9"]);
    file.append(1, 10, &"x".repeat(201)).expect("is left out");
    for line in 11..=30 {
        file.append(1, line, &"y".repeat(100)).expect("is kept");
        let size = fs::metadata(file.path()).expect("is there").len();
        assert!(size <= 1000, "{size}");
    }
    let kept = file.read().expect("is read");
    assert!(kept.len() >= 4 && kept.last().is_some_and(|it| it.line == 30));
}

#[test]
fn what_is_not_ours_is_set_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(folder.path(), Limits::DEFAULT);
    file.append(1, 1, "kept").expect("is kept");
    let good = fs::read(file.path()).expect("is read");
    let line = &good[HEADER.len()..];
    for (content, kept) in [
        (b"SQLite format 3\0".to_vec(), 0),
        (vec![0xff; 1000], 0),
        ([HEADER.as_bytes(), b"{}\n", line].concat(), 1),
        ([HEADER.as_bytes(), line, b"\0\0\0\xff\n", line].concat(), 2),
    ] {
        fs::write(file.path(), &content).expect("writes");
        let notice = file.append(2, 1, "new").expect("is kept");
        let notice = notice.or_else(|| file.begin().expect("begins").1);
        let notice = notice.expect("is reported");
        assert!(notice.contains("history.damaged"), "{notice}");
        let aside = fs::read(file.beside("damaged")).expect("is there");
        assert!(aside.starts_with(&content));
        let texts = texts(&file);
        assert_eq!(texts.len(), kept + 1, "{texts:?}");
        assert_eq!(file.begin().expect("begins").1, None, "once");
    }
}

#[test]
fn a_line_that_was_not_finished_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(folder.path(), Limits::DEFAULT);
    file.append(1, 1, "first").expect("is kept");
    file.append(1, 2, "second").expect("is kept");
    let whole = fs::read(file.path()).expect("is read");
    for end in 0..whole.len() {
        fs::write(file.path(), &whole[..end]).expect("writes");
        let complete = found(&whole[..end]).entries.len();
        let notice = file.append(1, 3, "third").expect("is kept");
        assert_eq!(notice.is_some(), (1..HEADER.len()).contains(&end), "{end}");
        let texts = texts(&file);
        assert_eq!(texts.len(), complete + 1, "{end}: {texts:?}");
        assert_eq!(texts.last().map(String::as_str), Some("third"));
    }
}

#[test]
fn a_place_that_cannot_be_used_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").expect("writes");
    fs::create_dir(at("folder.jsonl")).expect("makes");
    symlink(at("file"), at("link.jsonl")).expect("links");
    let pipe = std::ffi::CString::new(at("pipe.jsonl").display().to_string()).expect("no zeros");
    // SAFETY: the path is a C string that lives through the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    for path in [
        at("file").join("history.jsonl"),
        at("folder.jsonl"),
        at("link.jsonl"),
        at("pipe.jsonl"),
    ] {
        let file = HistoryFile::new(path.clone(), Limits::DEFAULT);
        let error = file.append(1, 1, "x").expect_err("cannot be written");
        if path == at("link.jsonl") {
            let words = format!("a symbolic link to {}", at("file").display());
            let said = error.to_string();
            assert!(
                said.contains(&words) && said.contains("STRATOSCOPE_HISTORY"),
                "{said}"
            );
        }
    }
    assert_eq!(
        fs::read(at("file")).expect("is read"),
        b"",
        "a link is not followed"
    );
}
