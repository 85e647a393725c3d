//! Every method of a model, called from a callback of its own run and from within `with_network`: it
//! answers, or it is SC0121. Nothing waits for ever.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stratoscope_data::Dataset;
use stratoscope_diagnostics::{Diagnostic, Result};
use stratoscope_models::{
    BertForSequenceClassification, Callback, EpochRecord, EvaluateArgs, ExecutionRecord, FitArgs,
    FitStarted, Flow, History, Model, RateRange, Sequential, memory_plan,
};
use stratoscope_strategy::{MirroredStrategy, scope};
use tempfile::TempDir;

use crate::support::{load, plain_args, sentences, tiny_bert, weights};

type Bert = BertForSequenceClassification;

/// What a call may change, and where.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Works everywhere.
    Reads,
    /// SC0121 in a callback of the model's own run.
    Changes,
}

use Kind::{Changes, Reads};

/// A method, by name.
struct Method {
    name: &'static str,
    kind: Kind,
    call: fn(&Bert, &Dataset) -> Result<()>,
}

const fn reads(name: &'static str, call: fn(&Bert, &Dataset) -> Result<()>) -> Method {
    let kind = Reads;
    Method { name, kind, call }
}

const fn changes(name: &'static str, call: fn(&Bert, &Dataset) -> Result<()>) -> Method {
    let kind = Changes;
    Method { name, kind, call }
}

fn quiet<'a>() -> FitArgs<'a> {
    FitArgs::new().batch_size(4).verbose(false)
}

/// Rows of the table: all methods of all models, and what else takes a model.
const METHODS: &[Method] = &[
    reads("placement", |it, _| it.placement().map(drop)),
    reads("strategy", |it, _| {
        assert!(it.strategy().is_some());
        Ok(())
    }),
    reads("pipeline", |it, _| {
        let other = it.pipeline().expect_err("it is under another strategy");
        assert_eq!(other.code.as_str(), "SC0103");
        Ok(())
    }),
    reads("label_names", |it, _| {
        assert_eq!(it.label_names().len(), 3);
        Ok(())
    }),
    reads("num_parameters", |it, _| {
        assert!(it.num_parameters() > 0);
        Ok(())
    }),
    reads("is_built", |it, _| {
        assert!(it.is_built());
        Ok(())
    }),
    reads("with_network", |it, _| {
        assert!(!weights(it).is_empty());
        Ok(())
    }),
    reads("evaluate", |it, data| {
        it.evaluate(data, EvaluateArgs::new().verbose(false))
            .map(drop)
    }),
    reads("predict", |it, _| it.predict("w10 w11").map(drop)),
    reads("gradients", |it, data| {
        it.gradients(&data.take(4)).map(drop)
    }),
    reads("evaluation_gradients", |it, data| {
        it.evaluation_gradients(&data.take(4)).map(drop)
    }),
    reads("save_pretrained", |it, _| {
        let folder = TempDir::new().expect("a temporary folder");
        it.save_pretrained(folder.path())?;
        let path = folder.path().to_str().expect("a path in UTF-8");
        let saved = Bert::from_pretrained(path, 3)?;
        assert_eq!(weights(&saved).len(), weights(it).len());
        Ok(())
    }),
    reads("export_onnx", |it, _| {
        let folder = TempDir::new().expect("a temporary folder");
        it.export_onnx(folder.path().join("model.onnx")).map(drop)
    }),
    reads("export_onnx_int8", |it, _| {
        let folder = TempDir::new().expect("a temporary folder");
        it.export_onnx_int8(folder.path().join("model.onnx"))
            .map(drop)
    }),
    reads("tokenizer", |it, _| {
        let _ = it.tokenizer();
        Ok(())
    }),
    reads("load_report", |it, _| {
        assert!(!it.load_report().summary().is_empty());
        Ok(())
    }),
    reads("clone, Debug", |it, _| {
        let shown = format!("{:?}", it.clone());
        assert!(shown.contains("3 labels"), "{shown}");
        Ok(())
    }),
    reads("average", |it, _| Model::average([it, it]).map(drop)),
    reads("memory_plan", |it, _| {
        assert!(memory_plan(it, 4, 16).total() > 0);
        Ok(())
    }),
    changes("fit", |it, data| it.fit(data, quiet()).map(drop)),
    changes("start", |it, data| it.start(data, quiet()).map(drop)),
    changes("compile", |it, _| it.compile(plain_args()).map(drop)),
    // It trains a copy, and needs the model for itself.
    changes("find_learning_rate", |it, data| {
        it.find_learning_rate(data, 4).map(drop)
    }),
    changes("find_learning_rate_with", |it, data| {
        it.find_learning_rate_with(data, &RateRange::new().steps(10).batch_size(4))
            .map(drop)
    }),
    changes("build", |it, _| it.build((None, 5))),
    changes("apply", |it, data| {
        let gradients = it.gradients(&data.take(4))?;
        it.apply(gradients).map(drop)
    }),
    changes("freeze", |it, _| it.freeze("bert.embeddings").map(drop)),
    changes("unfreeze", |it, _| it.unfreeze("bert").map(drop)),
    changes("set_tokenizer", |it, _| it.set_tokenizer(it.tokenizer())),
];

/// The public methods of all models, as they stand in the sources.
fn methods_in_the_sources() -> BTreeSet<String> {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("it can be read").flatten() {
            match entry.path() {
                path if path.is_dir() => files(&path, found),
                path => found.push(path),
            }
        }
    }
    let mut sources = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut sources,
    );
    let mut methods = BTreeSet::new();
    for source in sources {
        let text = std::fs::read_to_string(source).expect("it can be read");
        let mut of_a_model = false;
        for line in text.lines() {
            if line.starts_with("impl") {
                of_a_model = [" Model {", " ModelOf<"].iter().any(|it| line.contains(it))
                    && !line.contains(" for ");
            }
            let name = line.strip_prefix("    pub fn ").filter(|_| of_a_model);
            if let Some(name) = name {
                let end = name.find(['(', '<']).expect("a function");
                methods.insert(name[..end].to_owned());
            }
        }
    }
    methods
}

#[test]
fn the_table_has_every_method() {
    let of_values = methods_in_the_sources();
    assert!(of_values.contains("fit") && of_values.contains("predict"));
    let constructors = ["new", "of", "made_by", "from_pretrained"];
    // Makes another reference, and takes nothing (`downgrade`). Of lists of layers alone; of `BertForQuestionAnswering`, `BertForMaskedLM`, `BertForSentenceEmbedding` and
    // `BertForMultipleChoice` alone, which have tests of their own.
    let others = [
        "downgrade",
        "is_in_training",
        "look",
        "outline",
        "read_length",
        "summary",
        "variables",
        "typed",
        "with_files",
        "save",
        "load",
        "answer",
        "set_stride",
        "fill",
        "set_masking",
        "embed",
        "choose",
    ];
    for name in of_values {
        let is_in = METHODS.iter().any(|method| method.name == name);
        let is_other =
            constructors.iter().any(|it| name.starts_with(it)) || others.contains(&name.as_str());
        assert!(is_in || is_other, "`Model::{name}` is not in the table");
    }
}

/// The moments of a run, and whether it is one of them.
#[derive(Clone)]
struct At {
    moment: &'static str,
    call: Arc<dyn Fn() + Send + Sync>,
}

impl At {
    fn is(&self, moment: &str) {
        if self.moment == moment {
            (self.call)();
        }
    }
}

impl Callback for At {
    fn on_train_begin(&mut self, _run: &FitStarted) {
        self.is("train begin");
    }

    fn on_epoch_begin(&mut self, _epoch: u64) {
        self.is("epoch begin");
    }

    fn on_batch_end(&mut self, _execution: &ExecutionRecord) -> Flow {
        self.is("batch end");
        Flow::Continue
    }

    fn on_epoch_end(&mut self, _epoch: &EpochRecord) -> Flow {
        self.is("epoch end");
        Flow::Continue
    }

    fn on_train_end(&mut self, _history: &History) {
        self.is("train end");
    }
}

/// Runs a test that may hang, and fails where it does.
pub fn watched(test: impl FnOnce() + Send + 'static) {
    let (sender, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = sender.send(());
    });
    let in_time = ended.recv_timeout(Duration::from_secs(300));
    assert_ne!(in_time, Err(mpsc::RecvTimeoutError::Timeout), "it hangs");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Trains with every method called at one moment; returns what the calls answered.
fn called_at(
    moment: &'static str,
    sync_every: usize,
) -> Vec<(&'static str, Kind, Option<Box<Diagnostic>>)> {
    let strategy = MirroredStrategy::logical(2).expect("logical devices");
    let _scope = scope::enter(&strategy).expect("no scope is active");
    let model = load(&tiny_bert(0.1));
    let compile = plain_args().sync_every(sync_every);
    model.compile(compile).expect("valid arguments");
    let data = sentences(16);
    let answers = Arc::new(Mutex::new(Vec::new()));
    let at = {
        let (model, data, answers) = (model.clone(), data.clone(), Arc::clone(&answers));
        let call = move || {
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.clear();
            for method in METHODS {
                let answer = (method.call)(&model, &data).err();
                answers.push((method.name, method.kind, answer));
            }
        };
        let call = Arc::new(call);
        At { moment, call }
    };
    let history = model.fit(&data, quiet().callbacks(at)).expect("it trains");
    assert_eq!(history.counters.optimizer_steps, 4);

    // What was called changed nothing, not even a bit.
    let alone = load(&tiny_bert(0.1));
    let compile = plain_args().sync_every(sync_every);
    alone.compile(compile).expect("valid arguments");
    alone.fit(&data, quiet()).expect("it trains");
    assert_eq!(weights(&model), weights(&alone), "{moment}");
    // The lock is given back.
    model.compile(plain_args()).expect("the run is over");
    std::mem::take(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn in_a_callback_a_method_answers_or_is_refused() {
    watched(|| {
        let moments = [
            "train begin",
            "epoch begin",
            "batch end",
            "epoch end",
            "train end",
        ];
        for moment in moments {
            // Replicas that step alone are read as their average.
            for sync_every in [1, 3] {
                let answers = called_at(moment, sync_every);
                assert_eq!(answers.len(), METHODS.len(), "{moment}");
                for (name, kind, problem) in answers {
                    let code = problem.map(|it| it.code);
                    let expected = (kind == Changes).then(|| "SC0121".to_owned());
                    assert_eq!(code, expected, "`{name}` at {moment}");
                }
            }
        }
    });
}

#[test]
fn within_with_network_everything_answers() {
    watched(|| {
        let strategy = MirroredStrategy::logical(2).expect("logical devices");
        let _scope = scope::enter(&strategy).expect("no scope is active");
        let model = load(&tiny_bert(0.1));
        model.compile(plain_args()).expect("valid arguments");
        let data = sentences(8);
        for method in METHODS {
            let answer = model.with_network(|_| (method.call)(&model, &data));
            // A BERT takes no rows of numbers, here or elsewhere.
            let code = answer.err().map(|problem| problem.code);
            match method.name {
                "build" => assert_ne!(code.as_deref(), Some("SC0121")),
                name => assert_eq!(code, None, "{name}"),
            }
        }
    });
}

/// A callback may start threads: they read the model too, and a thread that wants to change it waits for the
/// run, not the run for it.
#[test]
fn other_threads_read_meanwhile_and_change_afterwards() {
    watched(|| {
        let model = load(&tiny_bert(0.0));
        model.compile(plain_args()).expect("valid arguments");
        let data = sentences(8);
        let waiting = Arc::new(Mutex::new(None));
        let at = {
            let (model, waiting) = (model.clone(), Arc::clone(&waiting));
            let call = move || {
                let same = model.clone();
                let predicted = std::thread::spawn(move || same.predict("w10").map(drop));
                predicted.join().expect("no panic").expect("it can be read");
                let same = model.clone();
                let compiled = std::thread::spawn(move || same.compile(plain_args()).map(drop));
                *waiting.lock().expect("no panic") = Some(compiled);
            };
            let (moment, call) = ("epoch end", Arc::new(call) as _);
            At { moment, call }
        };
        model.fit(&data, quiet().callbacks(at)).expect("it trains");
        let thread = waiting
            .lock()
            .expect("no panic")
            .take()
            .expect("it was started");
        thread.join().expect("no panic").expect("the run is over");
    });
}

/// A callback that panics ends its run, and the model is free.
#[test]
fn after_a_panic_of_a_callback_the_model_is_free() {
    watched(|| {
        let model = load(&tiny_bert(0.0));
        model.compile(plain_args()).expect("valid arguments");
        let data = sentences(8);
        let (same, rows) = (model.clone(), data.clone());
        let run = std::thread::spawn(move || {
            fn mistake() {
                panic!("a mistake of the callback's");
            }
            let call = Arc::new(mistake);
            let at = At {
                moment: "batch end",
                call,
            };
            same.fit(&rows, quiet().callbacks(at)).map(drop)
        });
        assert!(run.join().is_err());
        model.fit(&data, quiet()).expect("it trains");
    });
}

#[test]
fn a_list_of_layers_is_summed_up_while_it_trains() {
    use stratoscope_models::{CompileArgs, Dense, MeanSquaredError, SGD};
    watched(|| {
        let (x, y) = ([[1.0, 2.0], [3.0, 4.0]], [1.0_f32, 2.0]);
        let data = Dataset::from_arrays(x, y).expect("two rows");
        let model = Sequential([Dense(4), Dense(1)]).expect("two layers");
        let args = CompileArgs::new()
            .optimizer(SGD::new(0.01))
            .loss(MeanSquaredError);
        model.compile(args).expect("valid arguments");
        let same = model.clone();
        let call = Arc::new(move || assert_eq!(same.summary().parameters(), Some(17)));
        let at = At {
            moment: "epoch end",
            call,
        };
        model.fit(&data, quiet().callbacks(at)).expect("it trains");
    });
}
