//! Example facts of the rules of data, as they stand for the bad cells of their pages.

use stratoscope_diagnostics::rules::*;
use stratoscope_diagnostics::{Diagnostic, Rule, RulePage};

fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

pub fn examples() -> Vec<(RulePage, Diagnostic)> {
    fn example<R: Rule>(facts: R) -> (RulePage, Diagnostic) {
        (R::PAGE, facts.diagnostic())
    }
    let memory = || "rows in memory".to_owned();
    let fit = || "fit".to_owned();
    vec![
        example(CallbackPerExecution {
            steps_per_execution: 4,
            batches_per_epoch: 8,
            callbacks: 1,
        }),
        example(ModelInUse {
            holder: ModelHolder::Callbacks,
            call: "freeze".into(),
        }),
        example(RunIsOver {
            call: "step".into(),
        }),
        example(FloatClassLabels {
            first: vec![(0, 1.0), (1, 0.0)],
            rows: 2,
            classes: 8,
            whole: true,
            source: "two rows".into(),
            call: fit(),
        }),
        example(ClassesAsNumbers {
            labels: strings(["game", "server"]),
            rows: 4,
            source: memory(),
        }),
        example(IgnoredLabelIndex),
        example(ClassOrderDiffers {
            model: strings(["server", "game"]),
            data: strings(["game", "server"]),
            source: memory(),
            call: fit(),
        }),
        example(UnknownTokens {
            unknown: 4,
            tokens: 4,
            rows: 2,
            total: 2,
            first: vec![
                (0, "ጨዋታ ቼዝ".into(), "[CLS] [UNK] [UNK] [SEP]".into()),
                (1, "የፖስታ አገልጋይ".into(), "[CLS] [UNK] [UNK] [SEP]".into()),
            ],
            in_lower_case: (0, 4),
            source: memory(),
            call: fit(),
        }),
        example(PaddingIsMasked),
        example(PairWithoutSegments {
            rows: 2,
            total: 2,
            written: true,
            first: (0, "[CLS] a chess game [SEP] a game of chess [SEP]".into()),
            source: memory(),
            call: fit(),
        }),
        example(AutomaticPadding),
        example(TokenizerInMap),
        example(EmptyTexts {
            first: vec![(1, None)],
            rows: 1,
            total: 3,
            source: memory(),
            call: fit(),
        }),
        example(PaddingWaste {
            positions: 5184,
            tokens: 255,
            median: 3,
            longest: 162,
            most: 3,
            grouped: Some(612),
            call: fit(),
        }),
        example(SplitsOverlap {
            shared: 32,
            validation: 32,
            first: vec![
                (0, 0, "simple DNS server".into()),
                (1, 1, "fast paced game of chess".into()),
            ],
            other_label: 1,
            one_data_set: false,
        }),
        example(ValidationClassMismatch {
            validation: strings(["sound"]),
            unseen: strings(["sound"]),
            training: 7,
            examples: 20,
            is_tail: true,
        }),
        example(MajorityBaseline {
            class: "game".into(),
            count: 38,
            total: 40,
            classes: 2,
            split: "training",
        }),
        example(AutomaticBatching),
        example(FiniteDataset),
        example(UnseenExamples {
            never: 20,
            examples: 52,
            steps_per_epoch: 4,
            batches: 7,
            batch_size: 8,
            epochs: 1,
            shuffle: true,
        }),
        example(PerEpochShuffling),
    ]
}
