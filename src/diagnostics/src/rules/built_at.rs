//! What the rules of scopes say of a model and a strategy: where the model was built, what the notebook calls the strategy,
//! and how the model is built in a scope.

/// A strategy, as messages and fixes name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyName {
    /// The name in a sentence: that of its variable, else `mirrored#2`.
    pub shown: String,
    /// What a fix writes for it; none if no variable holds it.
    pub variable: Option<String>,
    /// Whether the running cell makes it, so that this cell cannot be run in its scope as a whole.
    pub is_made_here: bool,
}

impl StrategyName {
    /// A strategy that this variable of an earlier cell holds.
    pub fn of_variable(name: &str) -> Self {
        Self {
            shown: name.to_owned(),
            variable: Some(name.to_owned()),
            is_made_here: false,
        }
    }

    /// The name in code.
    pub(super) fn code(&self) -> &str {
        self.variable.as_deref().unwrap_or("strategy")
    }
}

/// Where a model was built, or where a model without variables is compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BuiltAt {
    /// In the running cell, on this line, counted from 1.
    Here(Option<usize>),
    /// In an earlier cell, `In[3]`.
    Cell {
        /// Its number.
        number: u64,
        /// The line there, counted from 1.
        line: Option<usize>,
    },
    /// In a program, `src/main.rs:7`; `None` where a model is built by the call itself.
    Program(Option<String>),
    /// Not known: only the text of the call is.
    #[default]
    Unknown,
}

impl BuiltAt {
    /// The line of the running cell.
    pub(super) fn line_here(&self) -> Option<usize> {
        match self {
            Self::Here(line) => *line,
            _ => None,
        }
    }

    /// In words, where it is not the running cell: `cell 3, line 7`.
    pub(super) fn elsewhere(&self) -> Option<String> {
        match self {
            Self::Cell {
                number,
                line: Some(line),
            } => Some(format!("cell {number}, line {line}")),
            Self::Cell { number, line: None } => Some(format!("cell {number}")),
            Self::Program(place) => place.clone(),
            Self::Here(_) | Self::Unknown => None,
        }
    }

    /// What to change so that the model is built in the scope of a strategy that exists. `before` is done first.
    pub(super) fn in_scope(&self, strategy: &StrategyName, before: &str) -> String {
        let code = strategy.code();
        match self {
            Self::Cell { number, .. } if strategy.is_made_here => format!(
                "{before}make `{code}` in a cell of its own and run it, write `%%scope {code}` as the first line of \
                 cell {number}, which builds the model, and run it; then run this cell"
            ),
            Self::Cell { number, .. } => format!(
                "{before}write `%%scope {code}` as the first line of cell {number}, which builds the model, and run \
                 it; then run this cell again"
            ),
            Self::Here(_) if !strategy.is_made_here => {
                format!("{before}write `%%scope {code}` as the first line of this cell")
            }
            Self::Here(_) | Self::Program(_) => format!(
                "{before}build and compile the model inside the scope: \
                 `scope!({code}, {{ let model = …; compile!(model, …)?; }});`"
            ),
            Self::Unknown => format!(
                "{before}write `%%scope {code}` as the first line of the cell that builds the model"
            ),
        }
    }
}
