//! How a [`Batch`] is divided: over replicas, in parts that are computed one after the other.

use std::ops::Range;

use crate::batch::{Batch, Labels, TokenLabels};

impl Batch {
    /// How many of the examples each of so many replicas gets: those of its worker, where the batch says how many these
    /// are. Else they are divided evenly, and where that leaves a rest, the first replicas get one example more: 5 over 2
    /// is 3 + 2.
    pub fn shares(&self, replicas: usize) -> Vec<usize> {
        match &self.by_worker {
            Some(shares) if shares.len() == replicas => shares.clone(),
            _ => even_shares(self.size(), replicas).collect(),
        }
    }

    /// Divides the batch over replicas, in order, as [`Batch::shares`] says. All parts keep the row length of the full
    /// batch, so every replica computes on the same shapes. A replica without an example has no part, and skips the batch.
    pub fn split(&self, replicas: usize) -> Vec<Option<Batch>> {
        let mut start = 0;
        let part = |share: usize| {
            let rows = start..start + share;
            start = rows.end;
            (share > 0).then(|| Batch {
                by_worker: None,
                ..self.slice(rows)
            })
        };
        self.shares(replicas.max(1)).into_iter().map(part).collect()
    }

    /// The examples in parts of at most `most`, in order, each padded to its own longest row: the batches that the same
    /// examples make with `batch_size = most`.
    pub fn in_parts_of(&self, most: usize) -> Vec<Batch> {
        let most = most.max(1);
        let starts = (0..self.size()).step_by(most);
        starts
            .map(|start| {
                let part = self.slice(start..(start + most).min(self.size()));
                part.without_spare_padding()
            })
            .collect()
    }

    /// The same examples at the length of the longest of them.
    fn without_spare_padding(self) -> Self {
        if self.seq == 0 {
            return self;
        }
        let is_token = |row: &[i32]| row.iter().rposition(|&mask| mask == 1);
        let length = (self.seq / self.choices.max(1)).max(1);
        let longest = self.mask.chunks(length).filter_map(is_token).max();
        let kept = longest.map_or(0, |last| last + 1);
        let cut = |rows: &[i32]| -> Vec<i32> {
            let sequences = rows.chunks(length);
            sequences.flat_map(|row| &row[..kept]).copied().collect()
        };
        let seq = self.choices * kept;
        let labels = match &self.labels {
            // Those of a head that answers some tokens are not as many as the row has.
            Labels::Tokens(tokens) if tokens.places.is_none() => Labels::Tokens(TokenLabels {
                classes: cut(&tokens.classes),
                seq,
                ..tokens.clone()
            }),
            other => other.clone(),
        };
        Self {
            ids: cut(&self.ids),
            mask: cut(&self.mask),
            type_ids: cut(&self.type_ids),
            labels,
            seq,
            ..self
        }
    }

    /// A range of the examples, at the same row length.
    ///
    /// # Panics
    /// If the range goes past the end.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let positions = rows.start * self.seq..rows.end * self.seq;
        let numbers = rows.start * self.width()..rows.end * self.width();
        Self {
            ids: self.ids[positions.clone()].to_vec(),
            mask: self.mask[positions.clone()].to_vec(),
            type_ids: self.type_ids[positions].to_vec(),
            features: self.features[numbers].to_vec(),
            labels: self.labels.slice(rows.clone()),
            rows: self.rows[rows.clone()].to_vec(),
            weights: self.weights.as_ref().map(|all| all[rows.clone()].to_vec()),
            seq: self.seq,
            choices: self.choices,
            by_worker: self.by_worker.as_ref().map(|all| within(all, &rows)),
        }
    }
}

/// How many of so many examples each replica gets, where they are divided evenly: the first ones get one more where there
/// is a rest.
pub fn even_shares(examples: usize, replicas: usize) -> impl Iterator<Item = usize> {
    let share = move |index| examples / replicas + usize::from(index < examples % replicas);
    (0..replicas).map(share)
}

/// How many of the rows of a range each worker has.
fn within(by_worker: &[usize], rows: &Range<usize>) -> Vec<usize> {
    let mut start = 0;
    let own = by_worker.iter().map(|&share| {
        let (first, end) = (start.max(rows.start), (start + share).min(rows.end));
        start += share;
        end.saturating_sub(first)
    });
    own.collect()
}
