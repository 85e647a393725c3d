//! Which optimizer value this is, and which model trains with it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use stratoscope_strategy::strategy::StrategyId;
use stratoscope_strategy::{Strategy, scope};

/// Which optimizer value this is: clones share it, a changed one has its own. It remembers the
/// model that trains with it, since moments belong to one model's variables, and the strategy in
/// whose scope it was made (SC0202).
#[derive(Clone, Debug)]
pub struct Identity {
    owner: Arc<Mutex<Option<Owner>>>,
    /// The strategy whose scope was active: its id, so that it is not kept alive, and its label.
    made_under: Option<(StrategyId, String)>,
}

#[derive(Clone, Debug)]
struct Owner {
    model: Weak<()>,
    compiled_at: String,
}

impl Identity {
    /// A new optimizer, made in the scope that is active now.
    pub(crate) fn new() -> Self {
        let strategy = scope::current();
        Self {
            owner: Arc::default(),
            made_under: strategy.map(|strategy| (strategy.id(), strategy.label())),
        }
    }

    /// A changed copy: nobody trains with it yet.
    pub(crate) fn without_owner(&self) -> Self {
        Self {
            owner: Arc::default(),
            made_under: self.made_under.clone(),
        }
    }

    /// The label of the strategy in whose scope it was made, if that is not `strategy`.
    pub fn other_strategy(&self, strategy: &Strategy) -> Option<String> {
        let (id, label) = self.made_under.as_ref()?;
        (*id != strategy.id()).then(|| label.clone())
    }

    /// Where another model that still lives was compiled with this optimizer, if there is one.
    pub fn other_owner(&self, model: &Arc<()>) -> Option<String> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owner.as_ref()?;
        let other = owner.model.upgrade()?;
        (!Arc::ptr_eq(&other, model)).then(|| owner.compiled_at.clone())
    }

    /// From now on this optimizer is the model's.
    pub fn claim(&self, model: &Arc<()>, compiled_at: String) {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        *owner = Some(Owner {
            model: Arc::downgrade(model),
            compiled_at,
        });
    }
}
