//! SC0622 `batch-not-in-micro-batches`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A batch that cannot be cut in equal micro-batches.
#[derive(Clone, Debug)]
pub struct BatchNotInMicroBatches {
    /// Examples of a batch.
    pub batch_size: usize,
    /// Micro-batches of a batch.
    pub micro_batches: usize,
    /// Replicas that divide each of them: the rows of a mesh.
    pub replicas: usize,
    /// The call that sets the size: `fit`, `set_batch_size`.
    pub call: String,
}

impl BatchNotInMicroBatches {
    /// What the batch has to be a multiple of.
    fn parts(&self) -> usize {
        (self.micro_batches * self.replicas).max(1)
    }

    /// The nearest multiple that is not smaller.
    fn next(&self) -> usize {
        self.batch_size.max(1).next_multiple_of(self.parts())
    }

    /// The largest number of micro-batches up to the given one that divides the batch, with the replicas.
    fn divisor(&self) -> usize {
        let divides = |count: &usize| self.batch_size.is_multiple_of(count * self.replicas);
        (1..=self.micro_batches).rev().find(divides).unwrap_or(1)
    }
}

impl Rule for BatchNotInMicroBatches {
    const PAGE: RulePage = RulePage {
        code: "SC0622",
        name: "batch-not-in-micro-batches",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "A `batch_size` that is no multiple of the pipeline's number of micro-batches; on a mesh, of that number times the \
                replicas.",
        why: "All micro-batches but those of an epoch's last batch have the same number of examples: then a step has the bits of \
              one device that accumulates gradients over batches of that size. On a mesh each replica has as many examples of every \
              micro-batch as the others.",
        bad: "fit!(model, train.take(60), batch_size = 30)?; // under .micro_batches(4)",
        good: "fit!(model, train.take(64), batch_size = 32)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "let pipeline = PipelineStrategy::logical(2)?.micro_batches(4)?;",
        "scope!(pipeline, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn applies(&self) -> bool {
        !self.batch_size.is_multiple_of(self.parts())
    }

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            batch_size,
            micro_batches,
            replicas,
            call,
        } = self;
        let place = match call.as_str() {
            "fit" => Place::argument("fit", "batch_size"),
            other => Place::call(other),
        };
        let fewer = self.divisor();
        let micro_batches = match micro_batches {
            1 => "1 micro-batch".to_owned(),
            more => format!("{more} micro-batches"),
        };
        let (parts, why) = match replicas {
            0 | 1 => (
                micro_batches,
                "micro-batches have the same number of examples, so that each counts the same in time and memory",
            ),
            replicas => (
                format!("{micro_batches} for {replicas} replicas"),
                "each replica has as many examples of a micro-batch as the others, so that each counts the same in time and memory",
            ),
        };
        let found = Self::start(format!(
            "a batch of {batch_size} is not divisible in {parts}"
        ))
        .label(place, format!("no multiple of {}", self.parts()))
        .why(why)
        .fix(format!("write `batch_size = {}`", self.next()));
        match fewer > 1 {
            true => found.fix(format!(
                "or make the strategy with `.micro_batches({fewer})?`"
            )),
            false => found,
        }
    }
}
