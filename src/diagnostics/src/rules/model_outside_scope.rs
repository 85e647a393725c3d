//! SC0201 `model-outside-scope`.

use crate::tensorflow::{self, Quote};
use crate::{
    Answer, Diagnostic, Figure, Fix, FixKind, Place, Profile, Rule, RulePage, Severity, Stage,
};
use stratoscope_render::text;

/// A model whose variables were made outside the scope of the live strategy.
#[derive(Clone, Debug)]
pub struct ModelOutsideScope {
    /// The strategy's name: `mirrored`.
    pub strategy: String,
    /// Its replicas.
    pub replicas: usize,
    /// How many variables the model has outside; 0 before it is built.
    pub variables: usize,
    /// Where they are: `cpu:0`.
    pub device: String,
    /// Whether `compile!` itself stands inside the scope.
    pub compile_inside: bool,
    /// Where the model was built, in words: `cell 3, line 7`.
    pub origin: Option<String>,
    /// The line of *this* cell that built the model, where it is in this cell.
    pub line: Option<usize>,
    /// The grid of variables by devices.
    pub figure: Option<Figure>,
}

impl ModelOutsideScope {
    /// The name of the strategy's variable in the fix, until the kernel knows the notebook's name for it: see
    /// [`name_strategy`](crate::check::name_strategy).
    pub(crate) const STRATEGY: &'static str = "strategy";

    /// The fix that builds the model inside the scope of the strategy in this variable.
    pub(crate) fn build_inside(variable: &str) -> Fix {
        Fix {
            kind: FixKind::Change,
            title: format!(
                "build the model inside the scope: `scope!({variable}, {{ let model = …; compile!(model, …)?; }});`, \
                 or `%%scope {variable}` as the first line of the cell that builds it"
            ),
            edits: Vec::new(),
        }
    }
}

impl Rule for ModelOutsideScope {
    const PAGE: RulePage = RulePage {
        code: "SC0201",
        name: "model-outside-scope",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "`compile!` of a model whose variables were created outside the scope of the notebook's strategy, \
                wherever `compile!` itself is called. A model that is not built yet may be compiled inside the \
                scope: its variables are then created there.",
        why: "Its variables exist on one device only. A strategy mirrors variables when they are created, not \
              afterwards: the other replicas would have nothing to train.",
        bad: "let strategy = MirroredStrategy::logical(2)?;\n\
              let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        good: "let strategy = MirroredStrategy::logical(2)?;\nscope!(strategy, {\n    \
               let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
        tensorflow: tensorflow::page("SC0201"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            strategy, device, ..
        } = self;
        let variables = text::count(self.variables, "variable");
        let verb = if self.variables == 1 { "is" } else { "are" };
        let (message, label) = match self.variables {
            0 if self.compile_inside => (
                format!(
                    "`compile!` is in `{strategy}`'s scope, but the model belongs to another strategy"
                ),
                "bound to another strategy".to_owned(),
            ),
            0 => (
                format!(
                    "the model and `compile!` are outside `{strategy}`'s scope: the variables, which are not \
                     created yet, will not belong to it"
                ),
                format!("not built yet, and outside `{strategy}`"),
            ),
            _ => (
                format!(
                    "the model was built outside `{strategy}`'s scope: its {variables} {verb} on {device} \
                     only"
                ),
                format!("{variables} outside `{strategy}`"),
            ),
        };
        let mut diagnostic = Self::start(message).label(Place::model("compile"), label);
        if let Some(line) = self.line {
            diagnostic = diagnostic.label(Place::Line(line), "built here, outside the scope");
        }
        diagnostic = diagnostic.why(format!(
            "`{strategy}` has {} and copies a variable to each when it is created, not afterwards",
            text::count(self.replicas, "replica")
        ));
        if let Some(origin) = &self.origin {
            diagnostic = diagnostic.evidence("built at", origin.clone());
        }
        diagnostic.fixes.push(Self::build_inside(Self::STRATEGY));
        diagnostic = diagnostic
            .fix("pass `strategy = none` to `compile!` to train on one device on purpose")
            .tensorflow(Quote::case(
                "SC0201",
                match self.compile_inside {
                    false => "outside",
                    true => "inside",
                },
            ))
            .with_answers(|profile| answer(profile, self.compile_inside));
        match &self.figure {
            Some(figure) => diagnostic.figure(figure.clone()),
            None => diagnostic,
        }
    }
}

/// docs/keras-semantics.md E10–E12.
fn answer(profile: Profile, compile_inside: bool) -> Answer {
    if !compile_inside {
        return Answer::does(profile, "compiles; trains on one device, no message");
    }
    let scope = "<tensorflow.python.distribute.mirrored_strategy.MirroredStrategy object at 0x7f…>";
    let reason = match profile {
        Profile::Tf23 | Profile::Tf24 => {
            "It is most likely due to not all layers or the model or optimizer being created outside the \
             distribution strategy scope."
        }
        Profile::TfKeras218 => {
            "It is most likely because some layers, model, or optimizer was being created outside the \
             distribution strategy scope."
        }
        Profile::Keras3 => {
            return Answer::says(
                profile,
                "`compile` succeeds; `fit` fails",
                "ValueError: `colocate_vars_with` must only be passed a variable created in this \
                 tf.distribute.Strategy.scope(), not: <tf.Variable …>",
            );
        }
    };
    Answer::says(
        profile,
        "raises in `compile`",
        format!(
            "ValueError: Variable (<tf.Variable …>) was not created in the distribution strategy scope of \
             ({scope}). {reason} Try to make sure your code looks similar to the following.\n\
             with strategy.scope():\n  model=_create_model()\n  model.compile(...)"
        ),
    )
}
