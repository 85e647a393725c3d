//! The names of tensors in the files of adapters.

use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::layout::Layout;

/// What PEFT puts before the names of a model's tensors.
pub(super) const PREFIX: &str = "base_model.model.";
/// The body without a head: its tensors have no prefix of their own.
pub(super) const BODY: &str = "BertModel";

/// What PEFT calls tensors of a model.
pub(super) struct Names {
    pub(super) layout: Layout,
    /// What the names of the body's tensors begin with in our layout, and not in PEFT's.
    pub(super) without: &'static str,
}

impl Names {
    pub(super) fn of<N: BertNetwork>(config: &BertConfig) -> Self {
        Self {
            layout: Layout::of::<N>(config),
            without: match N::ARCHITECTURE {
                BODY => config.family.prefix(),
                _ => "",
            },
        }
    }

    pub(super) fn with_prefix(&self, tensor: &str) -> String {
        let tensor = tensor.strip_prefix(self.without).unwrap_or(tensor);
        format!("{PREFIX}{tensor}")
    }

    /// Of one of the two matrices of a layer.
    pub(super) fn of_matrix(&self, layer: &str, matrix: &str) -> String {
        format!("{}.{matrix}.weight", self.with_prefix(layer))
    }

    pub(super) fn of_parameter(&self, parameter: &str) -> Option<String> {
        Some(self.with_prefix(&self.layout.name(parameter)?))
    }

    /// What `modules_to_save` has for a parameter of the model: the head as a whole, or a layer of the body.
    pub(super) fn module_to_save(&self, parameter: &str) -> Option<String> {
        let tensor = self.layout.name(parameter)?;
        let (module, _) = tensor.rsplit_once('.')?;
        let module = match module.starts_with(self.layout.family.prefix()) {
            true => module,
            false => module.split('.').next()?,
        };
        Some(
            module
                .strip_prefix(self.without)
                .unwrap_or(module)
                .to_owned(),
        )
    }
}
