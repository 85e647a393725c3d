//! What the attention of MPNet and DeBERTa knows of the distance between a query and a key. Checkpoint keys
//! `mpnet.encoder.relative_attention_bias`, `deberta.encoder.rel_embeddings` and `deberta.encoder.LayerNorm`. All encoder layers
//! use the same table. Source: Song et al. 2020, "MPNet"; Raffel et al. 2020, "Exploring the limits of transfer learning",
//! section 2.1 (the buckets of MPNet); He et al. 2021, "DeBERTa", section 3.1, and "DeBERTaV3"; transformers v5.24.0
//! `modeling_mpnet.py` and `modeling_deberta_v2.py`.
//! Dimensions: B sequences, S positions, N heads of size D, H = N·D, P vectors in the table.

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};

use crate::config::{BertConfig, DistanceVectors, Relative};
use crate::embedding_table::EmbeddingTable;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::parameters::Parameters;
use crate::{operation, ops, taps};

/// Buckets of distances in MPNet, half of them for each direction.
const BUCKETS: usize = 32;
/// The distance from which on all are in MPNet's last bucket.
const LARGEST_DISTANCE: f64 = 128.0;

/// The table that all layers look distances up in.
#[derive(Module, Debug)]
pub struct RelativePositions {
    /// MPNet: [32, N], a number for each head. DeBERTa: [P, H].
    pub table: EmbeddingTable,
    /// Of DeBERTa's vectors, over H.
    pub layer_norm: Option<LayerNorm>,
    #[module(skip)]
    kind: Relative,
    #[module(skip)]
    dropout_prob: f64,
}

/// The queries or the keys of a layer, and the layer that makes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projected<'a> {
    /// H → H
    pub layer: &'a Linear,
    /// [B, S, H]
    pub values: &'a Tensor<3>,
}

impl RelativePositions {
    /// Takes the parameters under `relative` of the encoder, where the model has such a table.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Option<Self> {
        let kind = config.relative?;
        let mut inside = parameters.enter("relative");
        let (rows, width, normalized) = match kind {
            Relative::Scores => (BUCKETS, config.num_attention_heads, false),
            Relative::Vectors(it) => (2 * it.span, config.hidden_size, it.normalized),
        };
        let table = EmbeddingTable::new(&mut inside.enter("table"), rows, width, None);
        let layer_norm = normalized.then(|| {
            let mut inside = inside.enter("LayerNorm");
            LayerNorm::new(&mut inside, width, config.layer_norm_eps)
        });
        Some(Self {
            table,
            layer_norm,
            kind,
            dropout_prob: config.hidden_dropout_prob,
        })
    }

    /// What the product of a query and a key is multiplied with: 1/√D, and where vectors of distances are multiplied, too, the
    /// same for all products of a score.
    pub(crate) fn scale(&self, size: usize) -> f64 {
        let products = match self.kind {
            Relative::Scores => 1,
            Relative::Vectors(it) => {
                1 + usize::from(it.content_to_position) + usize::from(it.position_to_content)
            }
        };
        1.0 / ((size * products) as f64).sqrt()
    }

    /// What is added to the scores of an encoder layer, [1, N, S, S] or [B, N, S, S]; `None`: nothing.
    ///
    /// # Shapes
    /// queries and keys [B, S, H]
    pub(crate) fn scores(
        &self,
        [queries, keys]: [Projected<'_>; 2],
        heads: usize,
        layer: usize,
        mode: Mode,
    ) -> Option<Tensor<4>> {
        let [_, sequence, hidden] = queries.values.dims();
        let vectors = match self.kind {
            Relative::Scores => return Some(self.looked_up(sequence)),
            Relative::Vectors(it) => it,
        };
        let rows = vectors.rows(sequence);
        let distances = self.distances(layer, mode);
        // A query meets the distances as keys, a key meets them as queries.
        let products = |of: Projected<'_>, with: Projected<'_>| {
            let distances = with.layer.forward(distances.clone(), mode); // [1, P, H]
            ops::products_of_heads(of.values.clone(), distances, heads) // [B, N, S, P]
        };
        let by_query = (vectors.content_to_position).then(|| products(queries, keys));
        let by_key = (vectors.position_to_content).then(|| products(keys, queries));
        let picked = ops::by_distance([by_query, by_key], &rows)?;
        let scale = self.scale(hidden / heads);
        Some(operation!("scale", [picked], picked * scale))
    }

    /// MPNet's numbers for each query and key.
    ///
    /// # Shapes
    /// → [1, N, S, S]
    fn looked_up(&self, sequence: usize) -> Tensor<4> {
        let far = sequence as i64 - 1;
        let rows: Vec<usize> = (-far..=far).map(|it| bucket(-it)).collect();
        let buckets = TensorData::new(ops::of_pairs(&rows, sequence), [sequence, sequence]);
        let table = &self.table;
        let buckets = Tensor::<2, Int>::from_data(buckets, &table.weight.val().device());
        let numbers = taps::within("table", || table.forward(buckets)); // [S, S, N]
        operation!("by head", [numbers], {
            numbers.permute([2, 0, 1]).unsqueeze_dim::<4>(0)
        })
    }

    /// DeBERTa's vectors, as a layer takes them.
    ///
    /// # Shapes
    /// → [1, P, H]
    fn distances(&self, layer: usize, mode: Mode) -> Tensor<3> {
        let table = self.table.weight.val().unsqueeze_dim::<3>(0);
        let vectors = match &self.layer_norm {
            Some(layer_norm) => layer_norm.forward(table),
            None => table,
        };
        match mode.dropout(self.dropout_prob, DropoutSite::Distances(layer)) {
            Some((rate, key)) => ops::dropout(vectors, rate, key),
            None => vectors,
        }
    }
}

impl DistanceVectors {
    /// The row of the table for a query and a key, by how far the query is behind the key: of distances from 1 − S to S − 1.
    fn rows(&self, sequence: usize) -> Vec<usize> {
        let far = sequence as i64 - 1;
        let last = 2 * self.span as i64 - 1;
        let row = |distance: i64| (self.bucket(distance) + self.span as i64).clamp(0, last);
        (-far..=far).map(|it| row(it) as usize).collect()
    }

    /// Near distances are buckets of their own; of those beyond half of the buckets, the longer share buckets.
    fn bucket(&self, distance: i64) -> i64 {
        let Some(largest) = self.largest_distance else {
            return distance;
        };
        let middle = (self.span / 2) as i64;
        if distance.abs() <= middle {
            return distance;
        }
        // transformers computes them in float32, which decides at the borders of the buckets.
        let middle = middle as f32;
        let last = ((largest - 1) as f32 / middle).ln();
        let share = (distance.abs() as f32 / middle).ln() / last;
        let bucket = (share * (middle - 1.0)).ceil() + middle;
        bucket as i64 * distance.signum()
    }
}

/// MPNet's bucket of a distance, of the key behind the query: half of a direction's buckets are for the nearest, the longer
/// distances share buckets.
fn bucket(distance: i64) -> usize {
    let of_direction = BUCKETS / 2;
    let nearest = of_direction / 2;
    let ahead = if distance > 0 { of_direction } else { 0 };
    let distance = distance.unsigned_abs() as usize;
    if distance < nearest {
        return ahead + distance;
    }
    let share = (distance as f32 / nearest as f32).ln();
    let share = share / (LARGEST_DISTANCE / nearest as f64).ln() as f32;
    let beyond = (share * (of_direction - nearest) as f32) as usize;
    ahead + (nearest + beyond).min(of_direction - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What transformers' `relative_position_bucket` says of some distances.
    #[test]
    fn buckets_of_mpnet() {
        for (distance, expected) in [
            (0, 0),
            (-1, 1),
            (1, 17),
            (-7, 7),
            (7, 23),
            (-8, 8),
            (12, 25),
            (-16, 10),
            (-31, 11),
            (-32, 12),
            (63, 29),
            (-64, 14),
            (127, 31),
            (500, 31),
            (-500, 15),
        ] {
            assert_eq!(bucket(distance), expected, "{distance}");
        }
    }

    /// What transformers' `make_log_bucket_position` says of some distances, with 8 buckets up to a distance of 32.
    #[test]
    fn buckets_of_deberta() {
        let vectors = DistanceVectors {
            span: 8,
            largest_distance: Some(32),
            content_to_position: true,
            position_to_content: true,
            normalized: true,
        };
        for (distance, expected) in [
            (0, 0),
            (-1, -1),
            (4, 4),
            (5, 5),
            (-7, -5),
            (8, 6),
            (-15, -6),
            (16, 7),
            (31, 7),
            (40, 8),
        ] {
            assert_eq!(vectors.bucket(distance), expected, "{distance}");
        }
        // The last bucket of this direction is the one before.
        assert_eq!(vectors.rows(41)[80], 15);
        assert_eq!(vectors.rows(1), [8]);
    }
}
