//! Weights in PyTorch's own format: read without running anything in them; files of `tests/parity/tiny-bert/pytorch`.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use stratoscope_bert::{LoadOptions, checkpoint};
use stratoscope_data::RandomStream;
use stratoscope_diagnostics::Diagnostic;
use tempfile::TempDir;

use crate::fixtures::parity;

fn fixture(name: &str) -> PathBuf {
    parity("tiny-bert/pytorch").join(name)
}

/// The tiny classifier with these weights.
fn with(weights: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = parity("tiny-bert/sequence-classification").join("config.json");
    fs::copy(config, folder.path().join("config.json")).unwrap();
    fs::write(folder.path().join("pytorch_model.bin"), weights).unwrap();
    folder
}

type Values = Vec<(String, Vec<f32>)>;

fn load(folder: &Path) -> Result<Values, Box<Diagnostic>> {
    let loaded = checkpoint::load_network(folder, &LoadOptions::new(), &Device::flex())?;
    let values = stratoscope_bert::names::named_values(&loaded.network);
    let values = values.into_iter().map(|(name, data)| {
        let data = data.convert::<f32>();
        (name, data.iter::<f32>().collect())
    });
    Ok(values.collect())
}

#[test]
fn a_pytorch_file_has_the_weights_of_the_safetensors_file() {
    let expected = load(&parity("tiny-bert/sequence-classification")).unwrap();
    let whole = fs::read(fixture("pytorch_model.bin")).unwrap();
    let folder = with(&whole);
    assert_eq!(load(folder.path()).unwrap(), expected);

    // The same as a file that an index names.
    let name = "pytorch_model-00001-of-00001.bin";
    fs::rename(
        folder.path().join("pytorch_model.bin"),
        folder.path().join(name),
    )
    .unwrap();
    let names = expected
        .iter()
        .map(|(tensor, _)| (tensor.clone(), name.into()));
    let names: serde_json::Map<String, serde_json::Value> = names.collect();
    let index = serde_json::json!({"metadata": {}, "weight_map": names});
    let path = folder.path().join("pytorch_model.bin.index.json");
    fs::write(path, index.to_string()).unwrap();
    assert_eq!(load(folder.path()).unwrap(), expected);
}

#[test]
fn what_python_would_run_is_refused() {
    let folder = with(&fs::read(fixture("code.bin")).unwrap());
    let problem = load(folder.path()).unwrap_err();
    assert_eq!(problem.code, "SC0902");
    assert!(
        problem.message.contains("`code` is a `posix.system`")
            && problem.message.contains("only tensors are read"),
        "{problem}"
    );
    assert!(!Path::new("this-was-run").exists());
}

#[test]
fn tensors_that_share_their_numbers_do_not_fill_the_memory() {
    let folder = with(&fs::read(fixture("shared.bin")).unwrap());
    let problem = load(folder.path()).unwrap_err();
    assert_eq!(problem.code, "SC0902");
    assert!(
        problem
            .message
            .contains("its 1000 tensors need 4096000 bytes"),
        "{problem}"
    );
}

#[test]
fn a_damaged_file_is_a_diagnostic() {
    let whole = fs::read(fixture("pytorch_model.bin")).unwrap();
    let mut random = RandomStream::new(5, 0);
    let mut refused = 0;
    for case in 0..300 {
        let mut bytes = whole.clone();
        match case % 3 {
            0 => bytes.truncate(random.below(bytes.len())),
            // The pickle is at the beginning, the list of the entries at the end.
            1 => {
                let at = random.below(6000);
                bytes[at] = random.next_u64() as u8;
            }
            _ => {
                let at = bytes.len() - 1 - random.below(3000);
                bytes[at] = random.next_u64() as u8;
            }
        }
        match load(with(&bytes).path()) {
            Ok(_) => {}
            Err(problem) => {
                refused += 1;
                assert!(problem.code.starts_with("SC09"), "{case}: {problem}");
            }
        }
    }
    assert!(refused > 150, "{refused}");
    for bytes in [&b""[..], b"pickle", b"\x80\x02}q\x00."] {
        let problem = load(with(bytes).path()).unwrap_err();
        assert!(problem.code.starts_with("SC09"), "{problem}");
    }
}
