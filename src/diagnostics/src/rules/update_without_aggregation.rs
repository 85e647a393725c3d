//! SC0515 `update-without-aggregation`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Profile, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Replicas that each bring a value for one variable, and nothing that says how to make one of them.
#[derive(Clone, Debug)]
pub struct UpdateWithoutAggregation {
    /// The variable's name.
    pub variable: String,
    /// Its kind: `Mirrored`.
    pub kind: String,
    /// How many replicas there are.
    pub replicas: usize,
    /// The first number of each copy: as it would be after the update, or as it is when read.
    pub copies: Vec<f64>,
    /// The copies were to be read as one value, rather than updated.
    pub reading: bool,
}

impl Rule for UpdateWithoutAggregation {
    const PAGE: RulePage = RulePage {
        code: "SC0515",
        name: "update-without-aggregation",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "A variable without aggregation that has one copy per replica, if replicas update it or if it is read \
                as one value.",
        why: "Each replica computes its own value. Without a sum, a mean or a choice of one replica the copies \
              diverge, and the value of the variable depends on the replica.",
        bad: "let two = MirroredStrategy::logical(2)?;\n\
              let counter = two.variable(\"counter\", 1.0, Synchronization::Auto, Aggregation::None)?;\n\
              counter.replica_update(|replica| replica.0 as f32)?;",
        good: "let two = MirroredStrategy::logical(2)?;\n\
               let counter = two.variable(\"counter\", 1.0, Synchronization::Auto, Aggregation::Mean)?;\n\
               counter.replica_update(|replica| replica.0 as f32)?;",
        tensorflow: tensorflow::page("SC0515"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            variable,
            kind,
            replicas,
            copies,
            reading,
        } = self;
        let replicas = text::count(*replicas, "replica");
        let copies: Vec<String> = copies.iter().map(f64::to_string).collect();
        let copies = copies.join(", ");
        let diagnostic = match reading {
            true => Self::start(format!(
                "`{variable}` is written by each of {replicas} separately and has no aggregation: read as one \
                 value, it could be any of {copies}"
            ))
            .evidence("copies", copies),
            false => Self::start(format!(
                "`{variable}` has no aggregation and {replicas} update it: its copies would become {copies}"
            ))
            .evidence("copies after the update", copies),
        };
        diagnostic
            .evidence("kind", kind)
            .why("an aggregation defines how the values of the replicas are combined")
            .fix("set `Aggregation::Mean`, `Aggregation::Sum` or `Aggregation::OnlyFirstReplica`")
            .tensorflow(Quote::of("SC0515"))
            .with_answers(|profile| {
                let does = match profile {
                    // Measured on 2.3, 2.6 and 2.18.
                    Profile::Tf24 => {
                        "each replica updates its own copy, without a message (seen on 2.6)"
                    }
                    _ => "each replica updates its own copy, without a message",
                };
                Answer::does(profile, does)
            })
    }
}
