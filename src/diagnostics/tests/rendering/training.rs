//! Example facts of the rules of `compile!` and of training, as they stand for the bad cells of their pages.

use stratoscope_diagnostics::rules::*;
use stratoscope_diagnostics::{Diagnostic, Rule, RulePage};

pub fn examples() -> Vec<(RulePage, Diagnostic)> {
    fn example<R: Rule>(facts: R) -> (RulePage, Diagnostic) {
        (R::PAGE, facts.diagnostic())
    }
    vec![
        example(FrozenAfterCompile {
            changed: [
                "bert.embeddings.word_embeddings.weight",
                "bert.embeddings.LayerNorm.bias",
            ]
            .map(str::to_owned)
            .to_vec(),
            frozen: 2,
            variables: 105,
        }),
        example(NothingToTrain {
            variables: 105,
            head: Some("classifier".into()),
        }),
        example(UnknownHistoryName {
            given: "val_loss".into(),
            known: vec!["loss".into(), "learning_rate".into()],
        }),
        example(LossWithoutLogits {
            loss: "SparseCategoricalCrossentropy".into(),
            binary: false,
            outputs: NoProbabilities::Activation("linear".into()),
        }),
        example(DoubleSoftmax {
            loss: "SparseCategoricalCrossentropy".into(),
            classes: 3,
            outputs: Probabilities::Activation("softmax".into()),
        }),
        example(ReluOnBinaryLogit),
        example(SimilarLabels {
            sentence: "labels differ only in blanks or case: \"Game \" and \"game\"".into(),
            classes: 3,
            source: "reviews.csv".into(),
            call: "fit".into(),
        }),
        example(LabelsNotOneHot {
            classes: 3,
            from_logits: true,
        }),
        example(SoftmaxOverOneOutput {
            loss: "SparseCategoricalCrossentropy".into(),
            in_the_head: false,
        }),
        example(BinaryLossForManyClasses {
            outputs: 2,
            loss: "BinaryCrossentropy".into(),
        }),
        example(ImplicitBroadcast {
            outputs: 2,
            loss: "MeanSquaredError".into(),
        }),
        example(AccuracyOnRegression {
            metric: "accuracy".into(),
            loss: Some("MeanSquaredError".into()),
        }),
        example(PerBatchMetric {
            metrics: vec!["macro_f1".into(), "mcc".into()],
        }),
        example(LearningRateOutOfRange {
            optimizer: "Adam::new(1e-3)".into(),
            rate: 1e-3,
            by_name: true,
            is_pretrained: true,
        }),
        example(IneffectiveSchedule {
            schedule: "ExponentialDecay::new(3e-5, 1000, 0.96).staircase(true)".into(),
            steps: 345,
            fault: ScheduleFault::Constant {
                from: 3e-5,
                to: 3e-5,
            },
            rates: "3e-5 at step 0, 3e-5 at 34, 3e-5 at 172, 3e-5 at 344".into(),
        }),
        example(WarmUpTooLong {
            warmup: 1000,
            steps: 345,
            peak: 5e-5,
            reached: 1.72e-5,
            schedule: "CosineDecay::new(5e-5, 2000).warmup_steps(1000)".into(),
        }),
        example(DroppedMicroBatches {
            computed: 4,
            applied: 1,
            weight: 0.25,
            norm: 250.0,
        }),
        example(DecayOfAllWeights {
            decay: 0.01,
            also: ["bert.embeddings.LayerNorm.weight", "classifier.bias"]
                .map(str::to_owned)
                .to_vec(),
            variables: 105,
        }),
        example(PerTensorClipping {
            clipnorm: 1.0,
            tensors: 105,
        }),
        example(DropoutOff::Mode),
        example(UntrainedHead {
            call: "predict".into(),
            variables: vec!["classifier.weight".into(), "classifier.bias".into()],
            shape: vec![8, 384],
            classes: Some(8),
        }),
        example(HalfPrecisionUnderflow {
            zero_in_f16: 0.12,
            zero_in_bf16: 0.0,
            zero_when_scaled: 0.002,
            scale: 1024.0,
        }),
        example(UnevenLastBatch {
            shares: vec![3, 2],
            batch_size: 32,
            examples: 37,
        }),
        example(SmallPerReplicaBatch {
            batch_size: 8,
            replicas: 4,
        }),
        example(MajorityCollapse {
            class: "games".into(),
            examples: 400,
            of_this_class: 105,
            classes: 4,
            split: "validation".into(),
            epoch: 0,
            rate: 1e-2,
            loss: 1.3863,
            steps: 60,
            optimizer: "Adam".into(),
            pretrained: false,
        }),
        example(Interrupted {
            work: "tokenizing".into(),
            reached: "12 800 of 400 000 texts".into(),
        }),
        example(CheckpointsStopped {
            folder: "runs/debian".into(),
            step: 150,
            reason: "No space left on device (os error 28)".into(),
            newest: Some(100),
        }),
        example(DamagedCheckpoint {
            folder: "runs/debian".into(),
            unusable: vec![(
                "runs/debian/step-150/state.safetensors".into(),
                "its bytes are not those that were written: the checksum differs".into(),
            )],
            used: Some("runs/debian/step-100".into()),
            exists: true,
        }),
        example(DamagedCheckpoint {
            folder: "runs/debian".into(),
            unusable: Vec::new(),
            used: None,
            exists: true,
        }),
        example(DamagedCheckpoint {
            folder: "runs/none".into(),
            unusable: Vec::new(),
            used: None,
            exists: false,
        }),
        example(CheckpointOfOtherRun {
            checkpoint: "runs/debian/step-150".into(),
            differences: vec![("epochs".into(), "3".into(), "4".into())],
            reason: None,
        }),
        example(CheckpointOfOtherRun {
            checkpoint: "runs/debian/step-150".into(),
            differences: vec![(
                "strategy".into(),
                "MirroredStrategy, replicas on [Flex, Flex]".into(),
                "none, on [Flex]".into(),
            )],
            reason: Some(
                "with `sync_every` each replica has its own weights and moments, and there is no way to divide them \
                 among other replicas"
                    .into(),
            ),
        }),
        example(ResumedOnOtherDevices {
            step: 150,
            then: "one CPU".into(),
            now: "MirroredStrategy, 2 logical CPU devices".into(),
            batch_size: 32,
            differences: vec![(
                "a batch is divided by".into(),
                "1 replica".into(),
                "2 replicas".into(),
            )],
        }),
        example(CheckpointOfOtherVersion {
            checkpoint: "runs/debian/step-150".into(),
            written_by: "version 0.1.0 (format 1)".into(),
            now: "version 0.2.0 (format 2)".into(),
        }),
        example(ExamplesNotInData {
            unknown: vec!["32".into()],
            examples: 32,
        }),
        example(NoExampleLeft { examples: 32 }),
        example(RowsNotInData {
            call: "relabel".into(),
            unknown: vec!["32".into()],
            rows: 32,
        }),
        example(ClassNotInData {
            call: "relabel".into(),
            given: "gmaes".into(),
            known: vec!["fonts".into(), "games".into()],
        }),
        example(AuditWithoutClasses {
            call: "audit".into(),
            source: "2 texts".into(),
            labels: "row 0 has no label".into(),
        }),
        example(TooFewRowsForFolds {
            call: "audit".into(),
            folds: 5,
            class: "fonts".into(),
            rows: 2,
        }),
        example(NoWordToExplain {
            call: "explain".into(),
            text: "   ".into(),
        }),
        example(NothingToChange {
            call: "what_if".into(),
            what: "head".into(),
            given: "99".into(),
            expects: "a head, 0 to 11".into(),
            similar: Vec::new(),
        }),
        example(ChangeNotFinite {
            call: "what_if".into(),
            what: "loss".into(),
            value: f64::INFINITY,
            changes: vec!["weights `classifier.weight` × 1e30".into()],
        }),
        example(StepHasPassed {
            step: 1,
            coming: Some(2),
        }),
        example(ChangeNotByWorkers {
            call: "what_if".into(),
            changes: vec!["gradients `classifier.*` × 0".into()],
        }),
        example(TextsNotAligned {
            call: "attribution_patching".into(),
            tokens: (5, 7),
            texts: ("a game client".into(), "a very small music server".into()),
        }),
        example(OnnxOfUnbuiltModel {
            call: "export_onnx".into(),
        }),
        example(OnnxOfUnknownNetwork {
            call: "export_onnx".into(),
            model: "Two".into(),
        }),
        example(OnnxFileTooLarge {
            call: "export_onnx".into(),
            model: "BertForMaskedLM".into(),
            bytes: "13.0 GiB".into(),
            in_32_bits: true,
        }),
        example(ClassWithoutExamples {
            classes: vec!["games".into()],
            dropped: 31,
        }),
        example(ForkHasLess {
            callbacks: 1,
            folder: None,
        }),
        example(ReplayDiffers {
            step: 41,
            before: 0.5012,
            replayed: 0.5013,
            devices: "wgpu:0".into(),
        }),
        example(StepNotHeld {
            first: 40,
            last: 49,
            replayable: (1, 3),
            made: 2,
        }),
        example(NothingToProfile {
            reason: "the run has made all its steps".into(),
            made: 12,
        }),
        example(RowsNotInRun {
            unknown: vec!["32".into()],
            rows: 32,
        }),
        example(NoReplayFromSnapshot {
            call: "influence".into(),
            made: 0,
            snapshots: "none".into(),
        }),
        example(UpdateWithoutAggregation {
            variable: "counter".into(),
            kind: "Mirrored".into(),
            replicas: 2,
            copies: vec![1.0, 2.0],
            reading: false,
        }),
        example(NotEnoughMemory {
            batch_size: 4096,
            length: 512,
            needed: "1.2 TB".into(),
            free: "20 GB".into(),
            parts: vec![
                ("weights".into(), "91 MB".into()),
                ("activations".into(), "1.2 TB".into()),
            ],
            fits: Some(64),
            recomputed: Some(("160 GB".into(), false)),
            are_copies: true,
        }),
        example(LoraOutOfOrder::AddedAfterCompile),
        example(RecomputeUnsupported {
            model: "Sequential".into(),
        }),
        example(OutOfMemory {
            device: "cpu:0".into(),
            work: "1 example × 64 tokens".into(),
            limit: Some(("376 MiB".into(), "100 MiB".into())),
            reason: None,
            parts: vec![("weights".into(), "91 MB".into())],
            is_update: false,
            are_copies: true,
        }),
        example(BatchesDivided {
            found: "wgpu:0 is out of memory".into(),
            step: 12,
            batch_size: 32,
            part: 16,
        }),
        example(UpdateUndone {
            call: "finish".into(),
            made: 42,
            step: 42,
            snapshot: 40,
        }),
        example(StagesDoNotFit {
            stages: 8,
            layers: 6,
            given: None,
        }),
        example(StagesDoNotFit {
            stages: 2,
            layers: 6,
            given: Some(vec![3, 4]),
        }),
        example(FewMicroBatches {
            stages: 4,
            micro_batches: 2,
            bubble: 0.6,
        }),
        example(BatchNotInMicroBatches {
            batch_size: 30,
            micro_batches: 4,
            replicas: 1,
            call: "fit".into(),
        }),
        example(BatchNotInMicroBatches {
            batch_size: 12,
            micro_batches: 4,
            replicas: 2,
            call: "fit".into(),
        }),
        example(HeavyStage {
            stage: 0,
            has: "the embeddings and layers 0 to 4".into(),
            share: 0.82,
            stages: 2,
        }),
        example(NetworkNotInStages::NoChain {
            model: "Sequential".into(),
        }),
        example(NetworkNotInStages::TiedDecoder {
            model: "BertForMaskedLM".into(),
        }),
        example(HeadsNotDivided {
            model: "BertForSequenceClassification".into(),
            heads: 12,
            devices: 5,
        }),
        example(LayoutDoesNotFit::Nothing {
            pattern: "intermediate.kernel".into(),
            names: vec![
                "bert.encoder.layer.0.intermediate.dense.weight".into(),
                "bert.encoder.layer.0.intermediate.dense.bias".into(),
            ],
        }),
        example(LayoutDoesNotFit::Both {
            variable: "bert.encoder.layer.0.attention.output.dense.weight".into(),
            patterns: ["output.dense.weight".into(), "attention.*.weight".into()],
        }),
        example(LayoutDoesNotFit::Rank {
            pattern: "intermediate.dense.*".into(),
            axes: 2,
            variable: "bert.encoder.layer.0.intermediate.dense.bias".into(),
            shape: vec![3072],
        }),
        example(LayoutDoesNotFit::Size {
            variable: "bert.embeddings.word_embeddings.weight".into(),
            shape: vec![30_522, 768],
            axis: 0,
            devices: 4,
        }),
        example(LayoutDoesNotFit::Axis {
            pattern: "query.weight".into(),
            axis: "data".into(),
            axes: vec!["batch".into(), "model".into()],
        }),
        example(MeshDoesNotFit::Axes {
            axis: "text".into(),
            shape: vec![2, 3, 2],
            names: vec!["batch".into(), "text".into(), "model".into()],
            last: LastAxis::Slices,
            call: "ModelParallel::over",
        }),
        example(MeshDoesNotFit::Whole {
            axis: "model".into(),
            batch: ("batch".into(), 4),
            shape: vec![4, 1],
            last: LastAxis::Slices,
            call: "ModelParallel::new",
        }),
        example(MeshDoesNotFit::Axes {
            axis: "model".into(),
            shape: vec![2, 2, 2],
            names: vec!["batch".into(), "model".into(), "stage".into()],
            last: LastAxis::Stages,
            call: "PipelineStrategy::over",
        }),
        example(MeshDoesNotFit::Whole {
            axis: "stage".into(),
            batch: ("batch".into(), 4),
            shape: vec![4, 1],
            last: LastAxis::Stages,
            call: "PipelineStrategy::over",
        }),
        example(NetworkNotInSlices::Unknown {
            model: "Sequential".into(),
        }),
        example(NetworkNotInSlices::Adapters {
            model: "BertForSequenceClassification".into(),
        }),
        example(DeviceLost {
            device: "wgpu:0".into(),
            reason: "Unknown: the driver was reset".into(),
        }),
        example(OneWorker {
            source: "TF_CONFIG".into(),
        }),
        example(WaitingForWorkers {
            workers: vec!["worker 1 at host1:2222".into()],
            waited: "10 s".into(),
            limit: "30 s".into(),
            reason: "Connection refused (os error 111)".into(),
        }),
        example(FilesNotSharded {
            source: "data/*.csv".into(),
            files: 3,
            unknown: 0,
            workers: 4,
        }),
        example(FilesNotSharded {
            source: "rows in memory".into(),
            files: 0,
            unknown: 3600,
            workers: 4,
        }),
        example(SeenByEveryWorker {
            workers: 4,
            examples: 3600,
        }),
        example(InvalidCluster {
            variable: "TF_CONFIG".into(),
            found: "`host1:2222` twice".into(),
            expects: "another address for each process".into(),
        }),
        example(NoCluster),
        example(WorkersDidNotCome {
            worker: "worker 1 at host1:2222".into(),
            waited: "30 s".into(),
            reason: "Connection refused (os error 111)".into(),
        }),
        example(WorkerLost {
            worker: "worker 2 (process 4711 on node1)".into(),
            reason: "its process ended with signal: 9 (SIGKILL)".into(),
            heard: "0.2 s before, when it computed a batch".into(),
            step: 17,
            left: 3,
            replaced: true,
        }),
        example(TooFewWorkers {
            alive: 2,
            least: 4,
            waited: "30 s".into(),
            reason: String::new(),
        }),
        example(ModelCannotTravel {
            model: "Two".into(),
            reason: None,
        }),
        example(WorkersDiffer {
            worker: "worker 2 (process 4711 on node1)".into(),
            variable: "dense.weight".into(),
            count: 3,
            step: 100,
        }),
        example(WorkerCame {
            worker: "worker 2 (process 4720 on node1)".into(),
            failed: None,
            step: 19,
        }),
        example(KernelNotCompiled {
            device: "wgpu:0".into(),
            reason: "WGSL compilation failed for kernel `reduce`".into(),
        }),
        example(MemoryHeldByOlderModels {
            models: vec![(
                "BertForSequenceClassification, cell 2, line 1".into(),
                "3.4 GB".into(),
            )],
            held: "3.4 GB".into(),
            capacity: "24 GB".into(),
        }),
    ]
}
