//! The input tensors of a BERT.

use burn::tensor::{Device, Int, Tensor, TensorData};
use stratoscope_data::{Batch, Encoding};

/// A tokenized batch on a device, padded on the right.
///
/// # Shapes
/// All are [B, S]: B sequences of S positions.
#[derive(Clone, Debug)]
pub struct BatchTensors {
    /// Token ids, below the model's vocabulary size.
    pub input_ids: Tensor<2, Int>,
    /// 1 = token, 0 = padding, as floats (burn's own padding masks are the reverse).
    pub attention_mask: Tensor<2>,
    /// The segment of each token: 0 for the first text, 1 for the second.
    pub token_type_ids: Tensor<2, Int>,
}

impl BatchTensors {
    /// Puts a batch of the data pipeline on a device: a row for each sequence, those of an example one after the other.
    pub fn from_batch(batch: &Batch, device: &Device) -> Self {
        let choices = batch.choices.max(1);
        let shape = [batch.size() * choices, batch.seq / choices];
        Self::from_values(
            batch.ids.iter().map(|&id| id as i64).collect(),
            batch.mask.iter().map(|&mask| mask as f32).collect(),
            batch.type_ids.iter().map(|&id| id as i64).collect(),
            shape,
            device,
        )
    }

    /// The texts of pairs, each by itself: all first texts, then all second ones, each with the token that a row begins
    /// with and padded to the longest of them. For tokenizers whose segments tell the texts apart.
    ///
    /// # Shapes
    /// B pairs → [2·B, S]
    pub fn of_pairs(batch: &Batch, device: &Device) -> Self {
        let row = |row: usize, segment: i32| -> Vec<i64> {
            let places = row * batch.seq..(row + 1) * batch.seq;
            let begin = (segment == 1).then(|| i64::from(batch.ids[places.start]));
            let is_in = |&at: &usize| batch.mask[at] == 1 && batch.type_ids[at] == segment;
            let own = places.filter(is_in).map(|at| i64::from(batch.ids[at]));
            begin.into_iter().chain(own).collect()
        };
        let rows: Vec<Vec<i64>> = [0, 1]
            .into_iter()
            .flat_map(|segment| (0..batch.size()).map(move |index| (index, segment)))
            .map(|(index, segment)| row(index, segment))
            .collect();
        let length = rows.iter().map(Vec::len).max().unwrap_or(0);
        let (mut ids, mut mask) = (Vec::new(), Vec::new());
        for row in &rows {
            let padding = length - row.len();
            ids.extend(row.iter().copied().chain(std::iter::repeat_n(0, padding)));
            mask.extend(std::iter::repeat_n(1.0, row.len()));
            mask.extend(std::iter::repeat_n(0.0, padding));
        }
        let types = vec![0; ids.len()];
        Self::from_values(ids, mask, types, [rows.len(), length], device)
    }

    /// Pads encoded texts to the longest of them with `pad_id` and puts them on a device.
    pub fn from_rows(rows: &[Encoding], pad_id: u32, device: &Device) -> Self {
        let length = rows.iter().map(|row| row.ids.len()).max().unwrap_or(0);
        let (mut ids, mut mask, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            for position in 0..length {
                ids.push(i64::from(*row.ids.get(position).unwrap_or(&pad_id)));
                mask.push(if position < row.ids.len() { 1.0 } else { 0.0 });
                types.push(i64::from(*row.type_ids.get(position).unwrap_or(&0)));
            }
        }
        Self::from_values(ids, mask, types, [rows.len(), length], device)
    }

    /// Puts row-major values of the given shape on a device.
    pub fn from_values(
        input_ids: Vec<i64>,
        attention_mask: Vec<f32>,
        token_type_ids: Vec<i64>,
        shape: [usize; 2],
        device: &Device,
    ) -> Self {
        Self {
            input_ids: Tensor::from_data(TensorData::new(input_ids, shape), device),
            attention_mask: Tensor::from_data(TensorData::new(attention_mask, shape), device),
            token_type_ids: Tensor::from_data(TensorData::new(token_type_ids, shape), device),
        }
    }
}
