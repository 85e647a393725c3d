//! SC0511 `half-precision-underflow`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Gradients that a 16-bit format would turn into 0 or infinity.
#[derive(Clone, Debug)]
pub struct HalfPrecisionUnderflow {
    /// The share of the gradients' elements, other than 0, that float16 would make 0.
    pub zero_in_f16: f64,
    /// The same for bfloat16.
    pub zero_in_bf16: f64,
    /// The same for float16 after multiplication with `scale`.
    pub zero_when_scaled: f64,
    /// A power of two by which nothing overflows.
    pub scale: f64,
}

impl HalfPrecisionUnderflow {
    /// The share of lost gradients above which training suffers.
    const TOO_MANY: f64 = 0.01;
}

impl Rule for HalfPrecisionUnderflow {
    const PAGE: RulePage = RulePage {
        code: "SC0511",
        name: "half-precision-underflow",
        severity: Severity::Note,
        stage: Stage::Training,
        finds: "`half_precision(&gradients)`: more than 1 % of the gradients of a batch are 0 in float16. Training \
                uses float32 unless `set_global_policy(\"mixed_float16\")?` was called before the model was built. \
                In that case `fit!` scales the loss; a custom training loop does not.",
        why: "The smallest float16 number is 6e-8. Many gradients of BERT are smaller: they become 0, and their \
              weights are not trained. Loss scaling multiplies the loss before the backward pass and divides the \
              gradients after it, in float32; bfloat16 has the range of float32 with fewer digits, and needs no \
              scaling.",
        bad: "let gradients = model.gradients(&train.take(8))?;\nhalf_precision(&gradients)?",
        good: "set_global_policy(\"mixed_float16\")?;\n\
               let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               set_global_policy(\"float32\")?; // of the models that follow\n\
               fit!(model, train)?; // the loss is scaled",
        tensorflow: tensorflow::page("SC0511"),
    };

    const GIVEN: &'static [&'static str] = &[
        "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
    ];

    fn applies(&self) -> bool {
        self.zero_in_f16 > Self::TOO_MANY
    }

    fn diagnostic(&self) -> Diagnostic {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        Self::start(format!(
            "{} of the gradients would be 0 in float16",
            percent(self.zero_in_f16)
        ))
        .label(Place::call("half_precision"), "computed from these gradients")
        .why("float16 has no number between 0 and 6e-8; weights with smaller gradients would not be trained")
        .evidence("0 in float16", percent(self.zero_in_f16))
        .evidence(
            format!("0 in float16, loss × {:.0}", self.scale),
            percent(self.zero_when_scaled),
        )
        .evidence("0 in bfloat16", percent(self.zero_in_bf16))
        .fix("stay with float32, or let `fit!` train under `mixed_float16`: it scales the loss")
        .fix(format!(
            "in a custom training loop: scale the loss by {:.0}, or use bfloat16, \
             `set_global_policy(\"mixed_bfloat16\")?`",
            self.scale
        ))
        .tensorflow(Quote::of("SC0511"))
    }
}
