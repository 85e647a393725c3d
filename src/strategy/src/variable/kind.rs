//! The rules by which a strategy decides how many copies a variable has and where.

use std::ops::Range;

use stratoscope_render::text;

use super::VariableKind;
use crate::strategy::{Shard, Strategy, shard};

/// How a strategy stores a variable.
pub(crate) struct Kind {
    pub(crate) kind: VariableKind,
    /// As [`VariableRecord::why`].
    pub(crate) why: String,
    /// As in [`VariableRecord::homes`].
    pub(crate) homes: Vec<usize>,
    /// As in [`VariableRecord::rows`].
    pub(crate) rows: Vec<Range<usize>>,
    /// As in [`VariableRecord::updated`].
    pub(crate) updated: Vec<(usize, Range<usize>)>,
}

impl Kind {
    /// A variable that is whole on each of these devices.
    pub(crate) fn whole(kind: VariableKind, why: String, homes: Vec<usize>) -> Self {
        Self {
            kind,
            why,
            homes,
            rows: Vec::new(),
            updated: Vec::new(),
        }
    }
}

/// The rows of a variable that can be split.
pub(crate) struct Rows {
    pub(crate) count: usize,
    /// Of all of them.
    pub(crate) bytes: u64,
}

/// The creation rules: the kind that a strategy gives to a variable. `taken` is the number of variables and shards that
/// its servers store already, or of variables that its replicas have cut; `rows` is given for variables that may be split.
pub(crate) fn kind_under(strategy: Option<&Strategy>, taken: usize, rows: Option<Rows>) -> Kind {
    let Some(strategy) = strategy else {
        let why = "made outside any scope: one copy, on the default device".to_owned();
        return Kind::whole(VariableKind::Local, why, vec![0]);
    };
    match (strategy.shard(), &rows) {
        (Some(shard), Some(rows)) => divided(strategy, shard, taken, rows.count),
        _ => strategy.distribution().created(strategy, taken, rows),
    }
}

/// The rule of replicas that divide the state of training among them.
fn divided(strategy: &Strategy, shard: Shard, taken: usize, rows: usize) -> Kind {
    let (label, replicas) = (strategy.label(), strategy.replicas().len());
    let parts = shard::cut(rows, replicas, taken);
    let made = format!("made in the scope of `{label}`");
    let each = text::count(replicas, "replica");
    match shard {
        Shard::Optimizer | Shard::Gradients => Kind {
            kind: VariableKind::Mirrored,
            why: format!("{made}: a copy on each of its {each}, which update some rows each"),
            homes: (0..replicas).collect(),
            rows: Vec::new(),
            updated: parts,
        },
        Shard::Parameters => Kind {
            kind: VariableKind::Sharded,
            why: format!("{made}: some rows on each of its {each}, gathered to compute"),
            homes: parts.iter().map(|(replica, _)| *replica).collect(),
            rows: parts.into_iter().map(|(_, rows)| rows).collect(),
            updated: Vec::new(),
        },
    }
}

/// [`kind_under`] for a variable that is synchronized when it is read: each replica writes its own copy.
pub(crate) fn kind_when_read(strategy: Option<&Strategy>, rows: Option<Rows>) -> Kind {
    let made = kind_under(strategy, 0, rows);
    let Some(strategy) = strategy.filter(|_| made.kind == VariableKind::Mirrored) else {
        return made;
    };
    let copies = text::count(strategy.replicas().len(), "replica");
    let label = strategy.label();
    Kind {
        kind: VariableKind::OnRead,
        why: format!("synchronized when read, in `{label}`: each of {copies} writes its own copy"),
        ..made
    }
}
