//! How every rule looks as text, and the forms of one diagnostic: snapshots to be read.

use stratoscope_diagnostics::check::{CellContext, check_cell, resolve};
use stratoscope_diagnostics::render::{self, Source};
use stratoscope_diagnostics::rules::*;
use stratoscope_diagnostics::{Diagnostic, Edit, Figure, Fix, Place, Rule, RulePage, Stage};
use unicode_width::UnicodeWidthStr;

use common::context;

mod common;
#[path = "rendering/data.rs"]
mod data;
#[path = "rendering/fixes.rs"]
mod fixes;
#[path = "rendering/scopes.rs"]
mod scopes;
#[path = "rendering/training.rs"]
mod training;

const NAME: &str = "Cell In[3]";
/// No line is longer in a terminal.
const COLUMNS: usize = 100;

fn page<R: Rule>() -> RulePage {
    R::PAGE
}

/// The facts of the rules that only a run can find, as they stand for the bad cell of their page.
fn at_run_time() -> Vec<(RulePage, Diagnostic)> {
    fn example<R: Rule>(facts: R) -> (RulePage, Diagnostic) {
        (page::<R>(), facts.diagnostic())
    }
    vec![
        example(StepsPerExecutionWithoutScope::of_text(16, false)),
        example(NotCompiled { call: "fit".into() }),
        example(NoLoss),
        example(ModelOutsideScope {
            strategy: StrategyName {
                is_made_here: true,
                ..StrategyName::of_variable("strategy")
            },
            replicas: 2,
            bound: None,
            variables: 104,
            device: "cpu:0".into(),
            compile_inside: false,
            is_named: false,
            built: BuiltAt::Here(Some(2)),
            figure: Some(Figure {
                html: "<div>the grid</div>".into(),
                plain: "variable  cpu:0  cpu:1\nkernel    red    –".into(),
            }),
        }),
        example(OptimizerOfOtherModel {
            optimizer: "AdamW".into(),
            owner: OptimizerOwner::Model {
                compiled_at: "cell 3, line 2".into(),
            },
        }),
        example(OptimizerOfOtherModel {
            optimizer: "AdamW".into(),
            owner: OptimizerOwner::Strategy {
                made_under: "mirrored#1".into(),
                model: "one device#2".into(),
            },
        }),
        example(MixedStrategies {
            active: "mirrored".into(),
            entered: "one_device".into(),
        }),
        example(LabelOutOfRange {
            label: 2,
            row: 17,
            rows: 412,
            largest: 7,
            smallest: Some(0),
            classes: 2,
            head: Some(HeadWritten {
                call: Some("from_pretrained"),
                elsewhere: None,
                line: Some(1),
                is_binary: false,
            }),
            source: "mnli/train.tsv".into(),
            text: Some("the premise does not follow".into()),
            call: "fit".into(),
        }),
        example(MissingColumn {
            column: "label".into(),
            reader: None,
            found: vec!["text".into(), "labels".into()],
            path: "reviews.tsv".into(),
        }),
        example(TextTooLong {
            max_length: 1024,
            limit: 512,
            call: "fit".into(),
        }),
        example(TokenOutOfRange {
            id: 30_600,
            token: Some("größe".into()),
            vocabulary: 30_522,
            row: 4,
            call: "fit".into(),
        }),
        example(TruncatedTexts {
            texts: 680,
            total: 2000,
            tokens_lost: 27_880,
            max_length: 64,
            call: "fit".into(),
        }),
        example(NonFiniteLoss {
            quantity: "loss".into(),
            value: f64::NAN,
            step: 37,
            epoch: 0,
            first_in: Some("encoder.layer.3".into()),
            learning_rate: Some(1e6),
            last_loss: Some(2.08),
            gradient_norm: Some(3.1e4),
            rows: vec![12, 7, 1999],
        }),
        example(LengthMismatch {
            first: "texts".into(),
            first_length: 16,
            second: "labels".into(),
            second_length: 8,
        }),
        example(NothingToDraw {
            chart: "histogram".into(),
            values: 2,
        }),
        example(ChartLengthsDiffer {
            chart: "scatter".into(),
            first: "xs".into(),
            first_length: 3,
            second: "ys".into(),
            second_length: 2,
        }),
        example(CheckpointNotFound {
            name: "no-such-checkpoint".into(),
            looked_in: vec![
                (
                    "local folder".into(),
                    "`./no-such-checkpoint` does not exist".into(),
                ),
                ("Hugging Face cache".into(), "not there".into()),
                ("hub".into(), "not asked: HF_HUB_OFFLINE is set".into()),
            ],
            offline: true,
            install: None,
            similar: Vec::new(),
        }),
        example(CheckpointUnreadable {
            path: "half-downloaded/model.safetensors".into(),
            reason: "the header announces 90 868 376 bytes, the file has 1 048 576".into(),
        }),
        example(ArchitectureMismatch {
            path: "longformer-base-4096/config.json".into(),
            field: "model_type".into(),
            found: "longformer".into(),
            accepted: vec!["bert".into()],
        }),
        example(TensorMismatch {
            tensor: "encoder.layer.0.attention.self.query.weight".into(),
            expected: vec![384, 384],
            found: Some(vec![768, 768]),
            tensors: 101,
            path: "edited-config/model.safetensors".into(),
        }),
        example(VocabularyMismatch {
            tokenizer: 119_547,
            model: 30_522,
            path: "other-vocabulary/vocab.txt".into(),
        }),
        example(DeviceNotFound {
            device: "cuda:1".into(),
            found: vec!["cpu:0".into(), "cuda:0".into()],
            reason: None,
            instead: Vec::new(),
        }),
        example(VariableTooLarge {
            variable: "bert.embeddings.word_embeddings.weight".into(),
            shape: vec![119_547, 768],
            size: "350 MiB".into(),
            device: "wgpu:0".into(),
            limit: "128 MiB".into(),
            count: 1,
        }),
        example(BackendFailed {
            device: "wgpu:0".into(),
            reason: "the adapter has no compute shaders".into(),
        }),
        example(WriteFailed {
            path: "/proc/model".into(),
            reason: "no such file or directory".into(),
        }),
        example(DataUnreadable {
            path: "trian.tsv".into(),
            line: None,
            reason: "no such file".into(),
            fix: None,
        }),
        example(RaggedRow {
            path: "ragged.tsv".into(),
            line: 3,
            expected: 2,
            found: 3,
            text: "a text\twith a tab\tgames".into(),
            rows: 2,
        }),
        example(MissingLabels {
            source: "gaps.tsv".into(),
            column: Some("label".into()),
            is_file: true,
            first: vec![3, 8, 21],
            count: 14,
            rows: 200,
            call: "Dataset::tsv".into(),
        }),
        example(DuplicateColumn {
            column: "label".into(),
            positions: vec![2, 4],
            path: "two_labels.csv".into(),
        }),
        example(TagsWithoutBegin {
            plain: Vec::new(),
            words: 31,
            of: 480,
            first: Some(("Lovelace".into(), 12, Some(140))),
            source: "train.conll".into(),
            call: "fit".into(),
        }),
        example(AnswerOutsideContext {
            source: "dev.json".into(),
            row: 7,
            question: "who wrote it ?".into(),
            answer: "Ada".into(),
            start: Some(4),
            found: "wrote it in 1843".into(),
            length: 20,
            elsewhere: Some(0),
            was_there: false,
        }),
        example(AnswersOutsideWindows {
            answered: 1_280,
            first: Some((
                "who wrote it ?".into(),
                "Ada Lovelace, who lived in London".into(),
            )),
            max_length: 12,
            source: "train.json".into(),
            call: "fit".into(),
        }),
        example(FalseNegatives {
            rows: 12,
            total: 480,
            first: ("a server for mail".into(), [3, 71]),
            loss: "MultipleNegativesRanking".into(),
            source: "pairs.tsv".into(),
            call: "fit".into(),
        }),
        example(DataOfOtherHead {
            model: "BertForTokenClassification".into(),
            wants: "words with tags",
            has: "a class for each text",
            reader: "Dataset::conll(\"train.conll\")?",
            fitting: Some("BertForSequenceClassification"),
            row: 0,
            source: "reviews.tsv".into(),
            call: "fit".into(),
        }),
        example(UnknownLabel {
            label: "gamse".into(),
            path: "dev.tsv".into(),
            line: 7,
            known: vec!["games".into(), "science".into()],
            rows: 1,
        }),
        example(EmptyDataset {
            source: "`only-a-header.tsv`".into(),
            wanted_by: "`fit!`".into(),
        }),
        example(InvalidSize {
            what: "num_labels".into(),
            given: "0".into(),
            expects: "at least 1".into(),
            place: Some(Place::call("from_pretrained")),
        }),
        example(InvalidConfiguration {
            path: "edited-config/config.json".into(),
            field: "hidden_size".into(),
            found: "770".into(),
            expects: "a multiple of `num_attention_heads`, which is 12".into(),
        }),
        example(TokenizerUnusable {
            path: "word-list/tokenizer.json".into(),
            reason: "it has whole words only: WordPiece, BPE and Unigram are read".into(),
        }),
        example(DownloadFailed {
            name: "bert-base-uncased".into(),
            file: "model.safetensors".into(),
            endpoint: "https://huggingface.co".into(),
            reason: "the connection broke off".into(),
        }),
        example(RustcMissing),
        example(LibraryMissing {
            build: "`stratoscope install`, about 15 minutes".into(),
        }),
        example(LibraryStale {
            library: "libstratoscope.so".into(),
            built: "rustc 1.95.0".into(),
            now: "rustc 1.96.0".into(),
            build: "`stratoscope install`, about 15 minutes".into(),
        }),
        example(SourcesUnreadable {
            sources: "the checkout".into(),
            reason: "no such file or directory".into(),
            lacks_standard_library: false,
        }),
        example(LibraryBuildFailed {
            reason: "no space left on device".into(),
            build: "`stratoscope install`, about 15 minutes".into(),
        }),
        example(ExecutionUnavailable {
            what: "the folder for compiled cells".into(),
            reason: "permission denied".into(),
        }),
        example(DebuggerUnavailable {
            problem: DebuggerProblem::NotFound,
            reason: "`PATH` has no `lldb-dap`".into(),
        }),
        example(DebuggerEnded {
            given_up: Some("the debugger has not answered `stackTrace` within 60s".into()),
        }),
        example(ConditionNotEvaluated {
            condition: "names.contains(&\"a\")".into(),
            line: 1,
            reason: "calls and assignments are not evaluated".into(),
        }),
        example(EvaluatorFailed {
            reason: "index out of bounds".into(),
        }),
        example(LibraryLinkFailed {
            folder: "target/debug".into(),
            reason: "permission denied".into(),
        }),
        example(StepsPerExecutionSavesNothing),
        example(ArgumentAddedByLibrary),
        example(SingleSeed { examples: 408 }),
        example(ReplicasSaveNoMemory),
        example(LateDeviceConfiguration),
        example(VariableNotKept {
            first: None,
            name: "double".into(),
            place: Some(Place::span(4, 10)),
            problem: "is a closure, and closures cannot live between cells".into(),
            fixes: vec!["make it a function".into()],
        }),
        example(UnknownStrategy {
            given: "stategy".into(),
            place: place_in(UnknownStrategy::PAGE.bad, "stategy"),
            known: vec!["strategy".into()],
        }),
        example(QuestionMarkWithoutResult {
            function: "rows".into(),
            returns: Some("usize".into()),
            what: "?".into(),
            place: place_in(QuestionMarkWithoutResult::PAGE.bad, "?"),
            function_place: place_in(QuestionMarkWithoutResult::PAGE.bad, "rows"),
            fix: Fix {
                kind: stratoscope_diagnostics::FixKind::Change,
                title:
                    "let `rows` return a `Result`: `-> Result<usize, Box<dyn std::error::Error>>`, \
                        and end with `Ok(…)`"
                        .into(),
                edits: Vec::new(),
            },
        }),
        example(NameOfAnotherLibrary {
            given: "len(rows)".into(),
            written: Some("rows.len()".into()),
            place: place_in(NameOfAnotherLibrary::PAGE.bad, "len(rows)"),
            reason: "the length is a method".into(),
            edits: vec![Edit {
                place: place_in(NameOfAnotherLibrary::PAGE.bad, "len(rows)"),
                replacement: "rows.len()".into(),
            }],
            label: "another library's name",
        }),
        example(VariableInFunction {
            function: "total".into(),
            names: vec!["numbers".into()],
            parameters: "numbers: &Vec<f64>".into(),
            places: vec![place_in(VariableInFunction::PAGE.bad, "numbers.iter")],
            function_place: place_in(VariableInFunction::PAGE.bad, "total"),
            edits: Vec::new(),
        }),
    ]
}

/// Where a part of a cell stands.
fn place_in(cell: &str, part: &str) -> Place {
    let start = cell.find(part).expect("stands in the cell");
    Place::span(start, start + part.len())
}

/// The bad cell of every page with its diagnostic, in the order of the catalogue.
fn all() -> Vec<(RulePage, Diagnostic)> {
    let mut run = at_run_time();
    run.extend(data::examples());
    run.extend(training::examples());
    run.extend(scopes::examples());
    let mut all = Vec::new();
    for entry in CATALOGUE {
        let page = &entry.page;
        if page.stage == Stage::Text {
            let found = check_cell(page.bad, &context(entry));
            all.extend(found.into_iter().map(|found| (*page, found)));
        } else {
            let at = run.iter().position(|(other, _)| other.code == page.code);
            let at = at.unwrap_or_else(|| panic!("{} has no example above", page.code));
            // Of several examples the first is shown, whatever others the list has.
            all.push(run.remove(at));
        }
    }
    all
}

/// One snapshot per rule: the bad cell of its page with its diagnostic.
#[test]
fn every_rule_as_text() {
    for (page, diagnostic) in all() {
        let source = Source {
            text: page.bad,
            name: NAME,
        };
        let shown = render::plain(&diagnostic, &source);
        assert!(shown.starts_with(&format!("{}[{}]", word(&diagnostic), page.code)));
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("{}_{}", page.code, page.name), shown);
        });
    }
}

fn word(diagnostic: &Diagnostic) -> &'static str {
    match diagnostic.severity {
        stratoscope_diagnostics::Severity::Error => "error",
        stratoscope_diagnostics::Severity::Warning => "warning",
        stratoscope_diagnostics::Severity::Note => "note",
    }
}

#[test]
fn every_rule_says_the_same_in_all_forms() {
    for (page, diagnostic) in all() {
        let source = Source {
            text: page.bad,
            name: NAME,
        };
        let plain = render::plain(&diagnostic, &source);
        let ansi = render::ansi(&diagnostic, &source);
        assert_eq!(without_colors(&ansi), plain, "{}", page.code);
        let traceback = render::traceback(std::slice::from_ref(&diagnostic), &source).join("\n");
        for line in plain.lines().chain(without_colors(&traceback).lines()) {
            assert!(line.width() <= COLUMNS, "{}: {line}", page.code);
        }
        let html = render::html(&diagnostic, &source);
        assert!(html.starts_with("<div") && html.contains(page.code));
        let data = render::json(&diagnostic, &source);
        assert_eq!(data["code"], page.code);
        assert_eq!(data["message"], diagnostic.message);
        for fix in &diagnostic.fixes {
            let plain: String = plain.split_whitespace().collect();
            let title: String = fix.title.split_whitespace().collect();
            assert!(plain.contains(&title), "{}: {title}", page.code);
        }
    }
}

fn without_colors(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

/// The examples of rules that a run finds point at text of their bad cell.
#[test]
fn what_a_run_finds_is_found_again_in_the_text() {
    for (page, mut diagnostic) in all() {
        let in_cell = |diagnostic: &Diagnostic| {
            let places = diagnostic.labels.iter().map(|label| &label.place);
            places
                .filter(|place| !matches!(place, Place::File { .. }))
                .count()
        };
        let before = in_cell(&diagnostic);
        resolve(page.bad, &mut diagnostic);
        assert_eq!(
            in_cell(&diagnostic),
            before,
            "{}: {:?}",
            page.code,
            diagnostic.labels
        );
    }
}

/// The forms of the card that opens the notebook.
#[test]
fn the_first_card_in_all_forms() {
    let text = "let größe = 16;\ncompile!(model,\n\t\
                optimiser = AdamW::new(5e-5),\n\tmetrics = [accuracy()],\n)?;";
    let found = check_cell(text, &CellContext::default());
    let source = Source { text, name: NAME };
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("card_html", render::html(&found[0], &source).replace("><", ">\n<"));
        let json = serde_json::to_string_pretty(&render::json(&found[0], &source));
        insta::assert_snapshot!("card_json", json.expect("plain data"));
        let traceback = render::traceback(&found, &source).join("\n").replace('\u{1b}', "␛");
        insta::assert_snapshot!("card_traceback", traceback);
    });
}
