//! BERT's networks as models: how they are loaded. What training needs of them is in `stratoscope_network::bert`.

use std::path::Path;
use stratoscope_bert::checkpoint::AdapterFolder;
use stratoscope_bert::{
    BertNetwork, BertTokenizer, LoadOptions, LoadReport, SequenceClassifier, checkpoint, source,
};
use stratoscope_data::Masking;
use stratoscope_diagnostics::rules::InvalidSize;
use stratoscope_diagnostics::{Place, Result, Rule};
use stratoscope_strategy::{Origin, scope};

use crate::model::lora::freeze_all_but_adapters;
use crate::model::{Model, ModelOf};
use stratoscope_arguments::IntoCount;
use stratoscope_network::Network;

mod choice;
mod masked;
mod question;
mod sentence;
mod token;

pub use stratoscope_network::bert::BertFiles;

pub use choice::BertForMultipleChoice;
pub use masked::BertForMaskedLM;
pub use question::BertForQuestionAnswering;
pub use sentence::BertForSentenceEmbedding;
pub use token::BertForTokenClassification;

/// BERT with a classifier, or a regression, on its pooled output.
pub type BertForSequenceClassification = ModelOf<SequenceClassifier>;

impl ModelOf<SequenceClassifier> {
    /// Loads a checkpoint, with a head of `num_labels` outputs; 1 makes it a regression, or a decision between
    /// two classes if its loss is `BinaryCrossentropy`. A head that
    /// the checkpoint has for another number of labels is an error; one it lacks is new.
    ///
    /// `name` is a folder, or a model's name, which is looked for in the Hugging Face cache, in the
    /// installed Python package and on the hub, in this order.
    ///
    /// # Errors
    /// SC0915 for a number of labels that is not at least 1; the checkpoint's own diagnostics; SC0907
    /// if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained(name: &str, num_labels: impl IntoCount) -> Result<Self> {
        let origin = Origin::current();
        let num_labels = labels_of_a_head(num_labels)?;
        load(name, &LoadOptions::new().num_labels(num_labels), origin)
    }

    /// The same with the names of the labels, in the order of the outputs.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_labels<L: Into<String>>(
        name: &str,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self> {
        let origin = Origin::current();
        load_labels(name, labels.into_iter().map(Into::into).collect(), origin)
    }

    /// The same for texts that may have several of these labels, or none: each is decided by itself, under
    /// `BinaryCrossentropy`.
    ///
    /// # Errors
    /// As [`Self::from_pretrained`].
    #[track_caller]
    pub fn from_pretrained_multi_label<L: Into<String>>(
        name: &str,
        labels: impl IntoIterator<Item = L>,
    ) -> Result<Self> {
        let origin = Origin::current();
        let labels = labels.into_iter().map(Into::into).collect();
        let options = LoadOptions::new().multi_label();
        load_with_labels(name, labels, options, origin)
    }

    /// The same with every choice that there is, such as the seed of a new head.
    ///
    /// # Errors
    /// The checkpoint's own diagnostics; SC0907 if a device does not take its copy.
    #[track_caller]
    pub fn from_pretrained_with(name: &str, options: &LoadOptions) -> Result<Self> {
        load(name, options, Origin::current())
    }
}

impl<N: Network<Files = BertFiles>> ModelOf<N> {
    /// Gives the model another tokenizer; weights and labels stay. Its ids must be those that the
    /// model's word embeddings were trained with: ids that have no vector are SC0402 in the next call
    /// with texts.
    ///
    /// # Errors
    /// SC0121 in a callback of the model's own run.
    pub fn set_tokenizer(&self, tokenizer: BertTokenizer) -> Result<()> {
        self.free_state("set_tokenizer")?
            .files
            .of_mut::<BertFiles>()
            .tokenizer = tokenizer;
        Ok(())
    }

    /// The tokenizer that it carries.
    pub fn tokenizer(&self) -> BertTokenizer {
        self.state().files.of::<BertFiles>().tokenizer.clone()
    }

    /// What every variable was filled with when it was loaded.
    pub fn load_report(&self) -> LoadReport {
        self.state().files.of::<BertFiles>().report.clone()
    }
}

/// A model of a checkpoint, in the scope.
fn load<N>(name: &str, options: &LoadOptions, origin: Origin) -> Result<ModelOf<N>>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let own = AdapterFolder::of(Path::new(name.trim()))?;
    let found = source::find(own.as_ref().map_or(name, |adapters| &adapters.base))?;
    let device = scope::device()?;
    let loaded = match &own {
        Some(adapters) => adapters.load::<N>(&found.folder, options, &device)?,
        None => checkpoint::load_as::<N>(&found.folder, options, &device)?,
    };
    let files = BertFiles {
        config: loaded.config,
        tokenizer: loaded.tokenizer,
        source: match own {
            Some(_) => format!("adapters in {} for {found}", name.trim()),
            None => found.to_string(),
        },
        checkpoint: found.again(),
        report: loaded.report,
        architecture: N::ARCHITECTURE,
        stride: None,
        masking: Masking::default(),
    };
    let model = Model::with_files(loaded.network, files, origin)?;
    freeze_all_but_adapters::<N>(&mut model.state());
    Ok(model)
}

/// The same with these names of its labels.
fn load_labels<N>(name: &str, labels: Vec<String>, origin: Origin) -> Result<ModelOf<N>>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    load_with_labels(name, labels, LoadOptions::new(), origin)
}

/// The same with more options.
fn load_with_labels<N>(
    name: &str,
    labels: Vec<String>,
    options: LoadOptions,
    origin: Origin,
) -> Result<ModelOf<N>>
where
    N: BertNetwork + Network<Files = BertFiles>,
{
    let num_labels = labels_of_a_head(labels.len())?;
    let model = load::<N>(name, &options.num_labels(num_labels), origin)?;
    let mut state = model.state();
    state.files.set_label_names(labels);
    drop(state);
    Ok(model)
}

fn labels_of_a_head(given: impl IntoCount) -> Result<usize> {
    let given = given.into_count();
    let found = given.value().and_then(|count| usize::try_from(count).ok());
    found.filter(|&count| count > 0).ok_or_else(|| {
        let rule = InvalidSize {
            what: "num_labels".to_owned(),
            given: given.to_string(),
            expects: "an integer ≥ 1".to_owned(),
            place: Some(Place::call("from_pretrained")),
        };
        rule.error()
    })
}
