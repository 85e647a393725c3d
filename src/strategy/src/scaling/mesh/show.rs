//! A prediction of meshes as a page and as text.

use std::fmt;

use stratoscope_render::html::{NOTE_STYLE, TITLE_STYLE, escape};
use stratoscope_render::text;

use super::super::words::{number, share, time};
use super::{MeshCost, MeshPrediction};
use crate::strategy::{html_of, text_of};

/// The heads of the columns.
const COLUMNS: [&str; 11] = [
    "devices",
    "data × tensor × pipeline",
    "micro-batches",
    "memory",
    "step",
    "bubble",
    "data",
    "tensor",
    "pipeline",
    "sequences/s",
    "efficiency",
];

/// Bytes in gigabytes or megabytes of ten.
fn bytes(bytes: f64) -> String {
    match bytes {
        0.0 => "–".to_owned(),
        it if it < 0.9995e9 => format!("{} MB", number(it / 1e6)),
        it => format!("{} GB", number(it / 1e9)),
    }
}

fn cells(cost: &MeshCost) -> Vec<String> {
    let recompute = if cost.recompute { ", recompute" } else { "" };
    vec![
        cost.shape.devices().to_string(),
        cost.shape.to_string(),
        format!("{} of {}{recompute}", cost.micro_batches, cost.micro_batch),
        bytes(cost.bytes()),
        time(cost.seconds),
        share(cost.bubble),
        bytes(cost.data_bytes),
        bytes(cost.tensor_bytes),
        bytes(cost.pipeline_bytes),
        number(cost.sequences_per_second),
        share(cost.efficiency),
    ]
}

impl MeshPrediction {
    fn table(&self) -> Vec<Vec<String>> {
        let heads = COLUMNS.map(str::to_owned).to_vec();
        let row = |(devices, best): &(usize, Option<MeshCost>)| match best {
            Some(cost) => cells(cost),
            None => {
                let mut row = vec![devices.to_string(), "nothing fits".to_owned()];
                row.resize(COLUMNS.len(), "–".to_owned());
                row
            }
        };
        std::iter::once(heads)
            .chain(self.rows.iter().map(row))
            .collect()
    }

    fn title(&self) -> String {
        format!(
            "a prediction for {}, {} parameters, sequences of {} tokens: nothing of it was measured",
            self.network.name(),
            match self.network.parameters() {
                it if it < 1e9 => format!("{} million", number(it / 1e6)),
                it => format!("{} billion", number(it / 1e9)),
            },
            self.network.length()
        )
    }

    fn notes(&self) -> [String; 2] {
        let it = &self.options;
        [
            format!(
                "The fastest mesh that fits. Assumed or given: {} · 10¹² operations a second and {} of memory on a device, {} to a machine; {}/s \
                 from a device to one of its machine, {}/s to another machine; {} sequences a device; micro-batches of {} tokens or more; {} of \
                 the exchange of gradients and weights goes on while devices compute.",
                number(it.operations_per_second / 1e12),
                bytes(it.memory),
                it.devices_per_machine,
                bytes(it.inside.bandwidth),
                bytes(it.between.bandwidth),
                it.sequences_per_device,
                it.tokens_of_micro_batch,
                share(it.overlap),
            ),
            "data, tensor, pipeline: bytes that a device sends in a step for gradients and weights, within layers, and between stages."
                .to_owned(),
        ]
    }

    /// The table as HTML.
    pub fn to_html(&self) -> String {
        let notes = self
            .notes()
            .map(|note| format!("<div style=\"{NOTE_STYLE}\">{}</div>", escape(&note)));
        format!(
            "<div style=\"{TITLE_STYLE}\">{}</div><div style=\"overflow-x:auto\">{}</div>{}",
            escape(&self.title()),
            html_of(&self.table()),
            notes.concat()
        )
    }

    /// The same as text.
    pub fn to_plain(&self) -> String {
        let notes = self.notes().map(|note| text::wrap(&note, 100).join("\n"));
        format!(
            "{}\n{}\n\n{}",
            self.title(),
            text_of(&self.table()),
            notes.join("\n")
        )
    }
}

impl fmt::Display for MeshPrediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_plain())
    }
}
