//! A `Sequential` as a graph: an input `features`, an output `outputs`.

use stratoscope_onnx::{Attribute, Dimension, ElementType, Graph};

use super::layers::{IDS, Translation, Weights};
use crate::model::sequential::{Kind, Layers};

const ROWS: Dimension = Dimension::Named("batch_size");

/// The graph; `None` of layers that are not built.
pub(super) fn graph(network: &Layers, weights: Weights) -> Option<Graph> {
    let (plan, width) = network.described()?;
    let mut to = Translation::new(Graph::new("Sequential"), network.values(), weights);
    // What a table of vectors looks up are numbers of its rows.
    let element = match plan.first().map(|layer| layer.kind) {
        Some(Kind::Embedding { .. }) => IDS,
        _ => ElementType::Float,
    };
    let mut x = to
        .graph
        .input("features", element, &[ROWS, Dimension::Size(width)]);
    let is_dense = |kind: &Kind| matches!(kind, Kind::Dense { .. });
    let last = plan.iter().rposition(|layer| is_dense(&layer.kind));
    for (index, (layer, name)) in plan.iter().zip(network.names()).enumerate() {
        x = match layer.kind {
            Kind::Dense { .. } if Some(index) == last => to.head(&name, &x),
            Kind::Dense { .. } => to.dense(&name, &x),
            // It drops nothing but in training.
            Kind::Dropout { .. } => x,
            Kind::Embedding { .. } => {
                let table = to.table(&name, false);
                to.lookup(&name, &table, &x)
            }
            Kind::GlobalAveragePooling1D => {
                let positions = [
                    ("axes", Attribute::Ints(&[1])),
                    ("keepdims", Attribute::Int(0)),
                ];
                to.graph.node(&name, "ReduceMean", &[&x], &positions)
            }
            Kind::Flatten => {
                let rows = [("axis", Attribute::Int(1))];
                to.graph.node(&name, "Flatten", &[&x], &rows)
            }
        };
        x = to.activation(&name, x, layer.activation);
    }
    let outputs = Dimension::Size(network.outputs());
    (to.graph).output("outputs", &x, ElementType::Float, &[ROWS, outputs]);
    Some(to.finished())
}
