//! `model.save_pretrained("folder")`: a model as files.

use std::path::{Path, PathBuf};

use stratoscope_diagnostics::Result;

use crate::model::Model;
use crate::problem;

impl Model {
    /// Writes the model to a folder and returns the paths of the files. Of BERT these are Hugging Face's files, with the
    /// names of its labels and its tokenizer: transformers and `from_pretrained` load the folder. Of a model with
    /// adapters these and the head are written, in the layout of PEFT: the frozen weights stay where they are. Of a
    /// `Sequential` they are its layers and its weights, which `Sequential::from_pretrained("folder")?` loads.
    ///
    /// # Errors
    /// A diagnostic for the first file that cannot be written; SC0103 for a network of your own, which has no files, and
    /// for an empty path.
    pub fn save_pretrained(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        self.save_to(folder.as_ref(), "save_pretrained")
    }

    /// The same as [`save_pretrained`](Self::save_pretrained), by Keras's name.
    ///
    /// # Errors
    /// As there.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        self.save_to(folder.as_ref(), "save")
    }

    fn save_to(&self, folder: &Path, call: &str) -> Result<Vec<PathBuf>> {
        if folder.as_os_str().is_empty() {
            let expects = "the path of a folder, such as `\"runs/model\"`";
            return Err(Box::new(problem::bad_value(
                call, "folder", "\"\"", expects,
            )));
        }
        let state = self.state();
        let (network, files) = (state.settled()?.first().clone(), state.files.clone());
        // Others may use the model while the files are written.
        drop(state);
        if !network.can_be_saved() {
            let expects = "a BERT or a `Sequential`: complete checkpoints have the weights of a network of your own, \
                           `fit!(…, checkpoint = \"runs\", every = 50)?`";
            let name = files.model_name();
            return Err(Box::new(problem::bad_value(call, "model", name, expects)));
        }
        network.save(&*files, folder)
    }
}
