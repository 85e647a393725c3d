//! Writes the files of adapters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use burn::tensor::TensorData;
use serde_json::{Value, json};
use stratoscope_diagnostics::Result;

use super::super::save::{create_folder, serialized, write};
use super::names::{BODY, Names};
use super::{CONFIG, VALUES, holds_weights};
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::lora::{self, LoraConfig};
use crate::names::{named_values, trained_names};
use crate::problem;
use crate::tokenizer::BertTokenizer;

/// Writes adapters, head, configuration and tokenizer. Whatever is or was trained is written: the head always.
///
/// # Errors
/// SC0908 for a folder with the weights of a whole model, and for the first file that cannot be written.
pub(in crate::checkpoint) fn save<N: BertNetwork>(
    folder: &Path,
    network: &N,
    (config, lora): (&BertConfig, &LoraConfig),
    tokenizer: &BertTokenizer,
) -> Result<Vec<PathBuf>> {
    create_folder(folder)?;
    if holds_weights(folder) {
        let reason = "the folder has the weights of a whole model; adapters need a folder of their own, or \
                      `merge_lora()` before";
        return Err(problem::not_saved(&folder.join(VALUES), reason.to_owned()));
    }
    let names = Names::of::<N>(config);
    let mut trained = trained_names(network);
    trained.extend(lora.trained.iter().cloned());
    let prefix = config.family.prefix();
    let mut modules = BTreeSet::new();
    let mut values: Vec<(String, TensorData)> = Vec::new();
    for (parameter, data) in named_values(network) {
        if let Some((layer, matrix)) = split(&parameter, lora) {
            let weight = names.layout.name(&format!("{layer}.weight"));
            let layer = weight
                .as_deref()
                .and_then(|name| name.strip_suffix(".weight"));
            values.extend(layer.map(|layer| (names.of_matrix(layer, matrix), data)));
            continue;
        }
        let Some(tensor) = names.layout.name(&parameter) else {
            continue;
        };
        if !tensor.starts_with(prefix) || trained.contains(&parameter) {
            modules.extend(names.module_to_save(&parameter));
            let data = names.layout.as_in_file(&parameter, data);
            values.push((names.with_prefix(&tensor), data));
        }
    }
    let bytes = serialized(&values, &folder.join(VALUES))?;
    let described = description::<N>(network, config, lora, &modules);
    let described = format!("{described:#}\n");
    let mut written = vec![
        write(
            folder,
            "config.json",
            config.to_json(N::ARCHITECTURE).as_bytes(),
        )?,
        write(folder, VALUES, &bytes)?,
        write(folder, CONFIG, described.as_bytes())?,
    ];
    written.extend(tokenizer.save(folder, config.max_position_embeddings)?);
    Ok(written)
}

/// Layer and matrix of an adapter's parameter.
fn split<'a>(parameter: &'a str, lora: &LoraConfig) -> Option<(&'a str, &'a str)> {
    let (layer, matrix) = parameter.rsplit_once('.')?;
    (matrix.starts_with("lora_") && lora.modules.contains(layer)).then_some((layer, matrix))
}

/// `adapter_config.json`.
fn description<N: BertNetwork>(
    network: &N,
    config: &BertConfig,
    lora: &LoraConfig,
    modules_to_save: &BTreeSet<String>,
) -> Value {
    let task = match N::ARCHITECTURE {
        "BertForSequenceClassification" => json!("SEQ_CLS"),
        "BertForTokenClassification" => json!("TOKEN_CLS"),
        "BertForQuestionAnswering" => json!("QUESTION_ANS"),
        BODY => json!("FEATURE_EXTRACTION"),
        _ => Value::Null,
    };
    let modules_to_save = match modules_to_save.is_empty() {
        true => Value::Null,
        false => json!(modules_to_save),
    };
    json!({
        "alpha_pattern": {},
        "auto_mapping": null,
        "base_model_name_or_path": lora.base,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "init_lora_weights": true,
        "layers_pattern": null,
        "layers_to_transform": null,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "modules_to_save": modules_to_save,
        "peft_type": "LORA",
        "r": lora.rank,
        "rank_pattern": {},
        "revision": null,
        "target_modules": in_words_of_peft(network, config, lora),
        "task_type": task,
        "use_dora": false,
        "use_rslora": false,
    })
}

/// The targets as they were given, where PEFT finds the same layers by them; else every layer by its path.
fn in_words_of_peft<N: BertNetwork>(
    network: &N,
    config: &BertConfig,
    lora: &LoraConfig,
) -> Vec<String> {
    let names = Names::of::<N>(config);
    let path = |in_file: &str| {
        in_file
            .strip_prefix(names.without)
            .unwrap_or(in_file)
            .to_owned()
    };
    let layers: Vec<(bool, String)> = lora::candidates(network, config)
        .into_iter()
        .map(|layer| (lora.modules.contains(&layer.module), path(&layer.in_file)))
        .collect();
    let is_named = |layer: &str| {
        let mut targets = lora.targets.iter();
        targets.any(|target| layer == target || layer.ends_with(&format!(".{target}")))
    };
    match layers
        .iter()
        .all(|(adapted, layer)| *adapted == is_named(layer))
    {
        true => lora.targets.clone(),
        false => {
            let adapted = layers.into_iter().filter(|(adapted, _)| *adapted);
            adapted.map(|(_, layer)| layer).collect()
        }
    }
}

/// Removes the files of adapters from a folder into which a whole model was written.
pub(in crate::checkpoint) fn remove(folder: &Path) -> Result<()> {
    for name in [CONFIG, VALUES] {
        let path = folder.join(name);
        if path.is_file() {
            let removed = std::fs::remove_file(&path);
            removed.map_err(|error| problem::not_saved(&path, error.to_string()))?;
        }
    }
    Ok(())
}
