//! SC0626 `layout-does-not-fit`.

use crate::check::suggest::similar;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A map of layouts that does not fit the variables of a model, or its mesh.
#[derive(Clone, Debug)]
pub enum LayoutDoesNotFit {
    /// A pattern that is the name of no variable.
    Nothing {
        /// The pattern.
        pattern: String,
        /// The names of all variables.
        names: Vec<String>,
    },
    /// Two patterns match one variable.
    Both {
        /// The variable.
        variable: String,
        /// The patterns.
        patterns: [String; 2],
    },
    /// A layout for another number of axes than a variable has.
    Rank {
        /// The pattern.
        pattern: String,
        /// Axes of the layout.
        axes: usize,
        /// The variable.
        variable: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A variable that cannot be cut in equal slices.
    Size {
        /// The variable.
        variable: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The axis along which it is to be cut.
        axis: usize,
        /// Devices that divide it.
        devices: usize,
    },
    /// The name of an axis along which variables cannot be cut.
    Axis {
        /// The pattern.
        pattern: String,
        /// The name.
        axis: String,
        /// The axes of the mesh.
        axes: Vec<String>,
    },
    /// A layout that cuts along two axes.
    Twice {
        /// The pattern.
        pattern: String,
    },
}

impl Rule for LayoutDoesNotFit {
    const PAGE: RulePage = RulePage {
        code: "SC0626",
        name: "layout-does-not-fit",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A `LayoutMap` that cannot be followed: a pattern that matches no variable, two patterns that match the same one, a \
                layout for another number of axes than the variable has, an axis whose size the number of devices does not \
                divide, or the name of an axis that the mesh cannot cut variables along.",
        why: "A pattern that matches nothing leaves variables whole on the first device, and the memory that was to be saved is \
              not. Of two layouts for one variable only one can hold. All slices have the same size, so that no device waits.",
        bad: "let mesh = DeviceMesh::logical([1, 2], [\"batch\", \"model\"])?;\n\
              let layout = LayoutMap::new(&mesh).cut(\"intermediate.kernel\", [None, Some(\"model\")])?;\n\
              let parallel = ModelParallel::new(layout)?;\n\
              scope!(parallel, {\n    \
                  let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              });",
        good: "let mesh = DeviceMesh::logical([1, 2], [\"batch\", \"model\"])?;\n\
               let layout = LayoutMap::new(&mesh).cut(\"intermediate.dense.weight\", [Some(\"model\"), None])?;\n\
               let parallel = ModelParallel::new(layout)?;\n\
               scope!(parallel, {\n    \
                   let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               });",
        tensorflow: "Keras reports two patterns that match (`ValueError`), and leaves a variable replicated, without a word, where none \
                     does. Its kernels have the shape (inputs, outputs), where a weight here is [outputs, inputs].",
    };

    fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Nothing { pattern, names } => nothing(pattern, names),
            Self::Both { variable, patterns } => Self::start(format!(
                "two patterns match `{variable}`: `{}` and `{}`",
                patterns[0], patterns[1]
            ))
            .label(Place::call("cut"), "the second of them")
            .why("a variable is cut in one way")
            .fix("make one of the patterns longer, so that each variable has one layout"),
            Self::Rank {
                pattern,
                axes,
                variable,
                shape,
            } => Self::start(format!(
                "the layout of `{pattern}` has {axes}, and `{variable}` has the shape {shape:?}",
                axes = in_axes(*axes)
            ))
            .label(Place::call("cut"), format!("{axes} of {}", in_axes(shape.len())))
            .why("a layout names for each axis of a variable the axis of the mesh that cuts it, or `None`")
            .fix(match shape.len() {
                1 => "write `[Some(\"model\")]` for a bias".to_owned(),
                _ => "write `[Some(\"model\"), None]` to cut by rows, `[None, Some(\"model\")]` to cut by columns".to_owned(),
            })
            .fix("use a pattern for weights and another for biases: `….weight`, `….bias`"),
            Self::Size {
                variable,
                shape,
                axis,
                devices,
            } => {
                let size = shape.get(*axis).copied().unwrap_or(0);
                let fewer = (2..*devices).rev().find(|count| size > 0 && size.is_multiple_of(*count));
                let found = Self::start(format!(
                    "axis {axis} of `{variable}`, of the shape {shape:?}, is not divisible among {devices} devices"
                ))
                .label(Place::call("from_pretrained"), format!("{size} {}", rows(*axis)))
                .why("all slices have the same size: the devices compute a layer together, and the largest slice would be waited for");
                match fewer {
                    Some(fewer) => found.fix(format!("make the strategy with {fewer} devices")),
                    None => found.fix("leave the variable whole: take its pattern out of the layout"),
                }
            }
            Self::Axis {
                pattern,
                axis,
                axes,
            } => {
                let model = axes.last().cloned().unwrap_or_default();
                let (label, why) = match axes.contains(axis) {
                    true => (
                        "divides the batch",
                        "variables are cut along the last axis of the mesh; the first one divides the batch",
                    ),
                    false => ("the mesh has no such axis", "variables are cut along the last axis of the mesh"),
                };
                Self::start(format!("the layout of `{pattern}` names the axis `{axis}`"))
                    .label(Place::call("cut"), label)
                    .why(why)
                    .fix(format!("write `Some(\"{model}\")`"))
            }
            Self::Twice { pattern } => {
                Self::start(format!("the layout of `{pattern}` cuts along two axes"))
                    .label(Place::call("cut"), "named twice")
                    .why("the devices along one axis of a mesh have one slice each")
                    .fix("name the axis once: `[Some(\"model\"), None]` cuts by rows")
            }
        }
    }
}

fn nothing(pattern: &str, names: &[String]) -> Diagnostic {
    let ends: Vec<&str> = names.iter().map(|name| end(name, pattern)).collect();
    let found = LayoutDoesNotFit::start(format!("no variable of the model is called `{pattern}`"))
        .label(Place::call("cut"), "matches nothing")
        .why("what no pattern matches stays whole on the first device: the variables that were meant would not be cut");
    let mut found = match pattern.contains("kernel") {
        true => found.fix(
            "the weight of a linear layer is called `weight` here, and has the shape [outputs, inputs]: \
             `(None, \"model\")` for a kernel of Keras is `[Some(\"model\"), None]`",
        ),
        false => found,
    };
    for name in similar(pattern, ends).iter().take(3) {
        found = found.suggest(name);
    }
    found.fix(
        "write the end of a name as `\"attention.self.query.weight\"`, in which a star stands for any text; \
         `model.placement()?` shows the names",
    )
}

/// The end of a name with as many parts as a pattern.
fn end<'a>(name: &'a str, pattern: &str) -> &'a str {
    let parts = pattern.matches('.').count();
    let mut dots = name.rmatch_indices('.');
    dots.nth(parts).map_or(name, |(at, _)| &name[at + 1..])
}

fn in_axes(count: usize) -> String {
    match count {
        1 => "1 axis".to_owned(),
        count => format!("{count} axes"),
    }
}

fn rows(axis: usize) -> &'static str {
    if axis == 0 { "rows" } else { "columns" }
}
