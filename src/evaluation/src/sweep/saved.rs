//! The folder of a sweep: `sweep.json` with the settings, and a file for each trial that has ended. Files are written
//! whole or not at all. What is read is checked; a trial whose file is damaged is made again.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::Result;
use stratoscope_render::text;

use super::Axis;
use crate::bad_value;
use crate::scores::Scores;

/// No file of a sweep is larger.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Serialize, Deserialize, PartialEq)]
struct Settings {
    names: Vec<String>,
    values: Vec<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct Ended {
    settings: Vec<String>,
    scores: Scores,
    seconds: f64,
    /// Of results by name, whether a smaller number is a better one. Missing in files of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    is_smaller_better: Vec<(String, bool)>,
}

/// An open folder.
pub(super) struct Folder {
    path: PathBuf,
    axes: Vec<Axis>,
}

impl Folder {
    /// Makes the folder, or opens that of an earlier sweep over the same settings.
    ///
    /// # Errors
    /// SC0103 for the folder of another sweep, and for one that cannot be made or read.
    pub fn open(path: &Path, axes: &[Axis]) -> Result<Self> {
        let own = Settings {
            names: axes.iter().map(|axis| axis.name.clone()).collect(),
            values: axes.iter().map(|axis| axis.values.clone()).collect(),
        };
        let folder = Self {
            path: path.to_owned(),
            axes: axes.to_vec(),
        };
        let file = path.join("sweep.json");
        match read::<Settings>(&file) {
            Ok(Some(before)) if before == own => Ok(folder),
            Ok(None) => {
                let made =
                    fs::create_dir_all(path).and_then(|()| folder.write_file("sweep.json", &own));
                made.map_err(|problem| {
                    folder.bad(problem.to_string(), "a folder that can be written")
                })?;
                Ok(folder)
            }
            Ok(Some(before)) => {
                let names = text::names(&before.names, 8);
                let given =
                    format!("the folder of a sweep over {names} with other settings or values");
                Err(folder.bad(given, "the folder of the same sweep, or a new one"))
            }
            Err(problem) => {
                let given = format!("`sweep.json` that cannot be read: {problem}");
                Err(folder.bad(given, "the folder of the same sweep, or a new one"))
            }
        }
    }

    fn bad(&self, given: String, expects: &str) -> Box<stratoscope_diagnostics::Diagnostic> {
        let given = format!("`{}`: {given}", self.path.display());
        bad_value("sweep", "folder", given, expects.to_owned())
    }

    /// `trial-0-2.json`: the numbers of the values.
    fn file_name(chosen: &[usize]) -> String {
        let numbers: Vec<String> = chosen.iter().map(usize::to_string).collect();
        format!("trial-{}.json", numbers.join("-"))
    }

    fn settings(&self, chosen: &[usize]) -> Vec<String> {
        let values = self.axes.iter().zip(chosen);
        values
            .map(|(axis, &value)| axis.values[value].clone())
            .collect()
    }

    /// Results and seconds of a trial that has ended.
    pub fn read(&self, chosen: &[usize]) -> Option<(Scores, f64)> {
        let ended: Ended = read(&self.path.join(Self::file_name(chosen)))
            .ok()
            .flatten()?;
        let scores = ended.scores.with_directions(ended.is_smaller_better);
        (ended.settings == self.settings(chosen)).then_some((scores, ended.seconds))
    }

    /// Keeps the results of a trial.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, chosen: &[usize], scores: &Scores, seconds: f64) -> io::Result<()> {
        let ended = Ended {
            settings: self.settings(chosen),
            scores: scores.clone(),
            seconds,
            is_smaller_better: scores.directions().to_vec(),
        };
        self.write_file(&Self::file_name(chosen), &ended)
    }

    fn write_file(&self, name: &str, content: &impl Serialize) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.path)?;
        serde_json::to_writer_pretty(&mut file, content)?;
        file.flush()?;
        file.persist(self.path.join(name))?;
        Ok(())
    }
}

/// `None` where there is no such file.
fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<Option<T>> {
    let size = match fs::metadata(path) {
        Ok(found) => found.len(),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(problem) => return Err(problem),
    };
    if size > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MB"));
    }
    Ok(Some(serde_json::from_slice(&fs::read(path)?)?))
}
