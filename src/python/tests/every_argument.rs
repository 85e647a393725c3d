//! No argument of a Python text is dropped without a word: of generated programs, each one is in the translated cell, or named on
//! the card. The programs are the same in every run.

use std::collections::BTreeSet;

use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::check::is_rust;
use stratoscope_python::{Answer, Known, answer};

const PROGRAMS: u64 = 240;

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // The steps of SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn is(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Some of these arguments, each once, in any order.
    fn some(&mut self, from: &[&'static str], program: &mut Program) -> Vec<String> {
        let mut names: Vec<&str> = from.to_vec();
        let mut taken = Vec::new();
        for _ in 0..self.below(5) {
            if names.is_empty() {
                break;
            }
            let (name, value) = names
                .swap_remove(self.below(names.len()))
                .split_once('=')
                .expect("an argument has a value");
            let value = match value {
                "INT" => program.whole(),
                "FLOAT" => program.share(),
                "TEXT" => format!("\"t{}\"", program.whole()),
                value => value.to_owned(),
            };
            taken.push(program.argument(name, &value));
        }
        taken
    }
}

/// A program with its arguments.
#[derive(Default)]
struct Program {
    lines: Vec<String>,
    /// The line, the name and the value of each argument.
    arguments: Vec<(usize, String, String)>,
    count: usize,
}

impl Program {
    /// A number that stands nowhere else in the program.
    fn whole(&mut self) -> String {
        self.count += 1;
        (7_000 + 13 * self.count).to_string()
    }

    fn share(&mut self) -> String {
        self.count += 1;
        format!("0.{}", 10_007 + 13 * self.count)
    }

    fn argument(&mut self, name: &str, value: &str) -> String {
        let line = self.lines.len() + 1;
        self.arguments
            .push((line, name.to_owned(), value.to_owned()));
        format!("{name}={value}")
    }

    fn call(
        &mut self,
        random: &mut Random,
        head: &str,
        first: &[String],
        from: &[&'static str],
    ) -> String {
        let mut all = first.to_vec();
        all.extend(random.some(from, self));
        format!("{head}({})", all.join(", "))
    }

    fn line(&mut self, text: String) {
        self.lines.push(text);
    }

    fn text(&self) -> String {
        self.lines.join("\n")
    }
}

const LAYER: &[&str] = &[
    "name=TEXT",
    "dtype=\"float32\"",
    "use_bias=True",
    "use_bias=False",
    "kernel_initializer=\"he_normal\"",
    "kernel_initializer=\"glorot_uniform\"",
    "bias_initializer=\"zeros\"",
    "kernel_regularizer=TEXT",
    "activity_regularizer=None",
    "trainable=True",
    "activation=\"relu\"",
    "dtype=\"mixed_float16\"",
];
const DROPOUT: &[&str] = &["seed=INT", "noise_shape=None", "name=TEXT"];
const OPTIMIZER: &[&str] = &[
    "learning_rate=FLOAT",
    "beta_1=FLOAT",
    "beta_2=FLOAT",
    "epsilon=FLOAT",
    "amsgrad=True",
    "clipnorm=FLOAT",
    "clipvalue=FLOAT",
    "global_clipnorm=FLOAT",
    "use_ema=True",
    "ema_momentum=FLOAT",
    "jit_compile=True",
    "name=TEXT",
    "weight_decay=FLOAT",
    "loss_scale_factor=None",
    "decay=FLOAT",
    "wieght_decay=FLOAT",
];
const COMPILE: &[&str] = &[
    "metrics=[\"accuracy\"]",
    "steps_per_execution=INT",
    "run_eagerly=True",
    "jit_compile=False",
    "loss_weights=None",
    "weighted_metrics=None",
    "auto_scale_loss=True",
    "lerning_rate=FLOAT",
];
const LOSS: &[&str] = &[
    "from_logits=True",
    "reduction=\"sum_over_batch_size\"",
    "reduction=\"sum\"",
    "name=TEXT",
    "ignore_class=INT",
];
const FIT: &[&str] = &[
    "epochs=INT",
    "batch_size=INT",
    "verbose=0",
    "verbose=2",
    "shuffle=False",
    "validation_split=FLOAT",
    "initial_epoch=INT",
    "steps_per_epoch=INT",
    "validation_steps=INT",
    "validation_freq=INT",
    "validation_batch_size=INT",
    "workers=INT",
    "use_multiprocessing=True",
    "max_queue_size=INT",
    "class_weight={0: 1.0, 1: 3.5}",
    "sample_weight=None",
    "epoch=INT",
];
const STOPPING: &[&str] = &[
    "monitor=\"val_accuracy\"",
    "monitor=\"loss\"",
    "patience=INT",
    "min_delta=FLOAT",
    "mode=\"min\"",
    "mode=\"max\"",
    "mode=\"auto\"",
    "verbose=1",
    "restore_best_weights=True",
    "restore_best_weights=False",
    "baseline=FLOAT",
    "start_from_epoch=INT",
];
const CHECKPOINT: &[&str] = &[
    "monitor=\"val_accuracy\"",
    "monitor=\"val_loss\"",
    "mode=\"max\"",
    "mode=\"min\"",
    "save_freq=INT",
    "save_freq=\"epoch\"",
    "save_best_only=True",
    "save_weights_only=True",
    "period=INT",
    "initial_value_threshold=FLOAT",
    "options=None",
    "verbose=1",
];
const LOG: &[&str] = &[
    "histogram_freq=INT",
    "write_graph=True",
    "update_freq=\"epoch\"",
    "profile_batch=INT",
];
const EVALUATE: &[&str] = &[
    "batch_size=INT",
    "verbose=0",
    "return_dict=True",
    "steps=INT",
    "callbacks=None",
    "workers=INT",
];
const PREDICT: &[&str] = &["batch_size=INT", "verbose=1", "steps=None", "workers=INT"];
const PRETRAINED: &[&str] = &[
    "num_labels=INT",
    "from_pt=True",
    "cache_dir=TEXT",
    "id2label={0: \"a\", 1: \"b\", 2: \"c\"}",
    "problem_type=\"single_label_classification\"",
    "hidden_dropout_prob=FLOAT",
    "output_attentions=True",
    "revision=TEXT",
];
const TOKENIZER: &[&str] = &[
    "truncation=True",
    "truncation=\"only_first\"",
    "padding=True",
    "padding=\"max_length\"",
    "max_length=INT",
    "return_tensors=\"tf\"",
    "stride=INT",
    "add_special_tokens=True",
];
const SHUFFLE: &[&str] = &[
    "seed=INT",
    "reshuffle_each_iteration=True",
    "reshuffle_each_iteration=False",
];
const BATCH: &[&str] = &[
    "drop_remainder=True",
    "drop_remainder=False",
    "num_parallel_calls=INT",
    "deterministic=False",
];

/// A model with its layers.
fn model(random: &mut Random, program: &mut Program) {
    let mut layers = Vec::new();
    for place in 0..1 + random.below(3) {
        let units = program.whole();
        let units = program.argument("units", &units);
        let mut given = vec![units];
        if place == 0 {
            let width = program.whole();
            given.push(program.argument("input_shape", &format!("({width},)")));
        }
        layers.push(program.call(random, "tf.keras.layers.Dense", &given, LAYER));
        if random.is(3) {
            let rate = program.share();
            let rate = program.argument("rate", &rate);
            layers.push(program.call(random, "tf.keras.layers.Dropout", &[rate], DROPOUT));
        }
    }
    program.line(format!(
        "model = tf.keras.Sequential([{}])",
        layers.join(", ")
    ));
}

fn compile(random: &mut Random, program: &mut Program) {
    let class = random.pick(&["Adam", "AdamW", "SGD", "RMSprop", "Lion"]);
    let optimizer = program.call(
        random,
        &format!("tf.keras.optimizers.{class}"),
        &[],
        OPTIMIZER,
    );
    program.line(format!("optimizer = {optimizer}"));
    let loss = program.call(
        random,
        "tf.keras.losses.SparseCategoricalCrossentropy",
        &[],
        LOSS,
    );
    let mut given = vec![format!("loss={loss}")];
    if !random.is(6) {
        given.push("optimizer=optimizer".to_owned());
    }
    let call = program.call(random, "model.compile", &given, COMPILE);
    program.line(call);
}

fn callbacks(random: &mut Random, program: &mut Program) -> String {
    let mut calls = Vec::new();
    for _ in 0..1 + random.below(3) {
        calls.push(match random.below(4) {
            0 => program.call(random, "tf.keras.callbacks.EarlyStopping", &[], STOPPING),
            1 => program.call(
                random,
                "tf.keras.callbacks.ModelCheckpoint",
                &["\"best\"".to_owned()],
                CHECKPOINT,
            ),
            2 => program.call(random, "tf.keras.callbacks.TensorBoard", &[], LOG),
            _ => {
                let factor = program.share();
                let factor = program.argument("factor", &factor);
                format!("tf.keras.callbacks.ReduceLROnPlateau({factor})")
            }
        });
    }
    format!("[{}]", calls.join(", "))
}

fn training(random: &mut Random, program: &mut Program) {
    let data = match random.below(3) {
        0 => "x, y".to_owned(),
        1 => "train".to_owned(),
        _ => {
            let size = program.whole();
            let shuffled = program.argument("buffer_size", &size);
            let shuffle = program.call(random, ".shuffle", &[shuffled], SHUFFLE);
            let size = program.whole();
            let size = program.argument("batch_size", &size);
            let batch = program.call(random, ".batch", &[size], BATCH);
            program.line(format!("ds = tf.data.Dataset.from_tensor_slices((x, y)){shuffle}{batch}.prefetch(tf.data.AUTOTUNE)"));
            "ds".to_owned()
        }
    };
    let mut given = vec![data.clone()];
    match random.below(4) {
        0 => {
            let list = callbacks(random, program);
            program.line(format!("calls = {list}"));
            given.push("callbacks=calls".to_owned());
        }
        1 => given.push(format!("callbacks={}", callbacks(random, program))),
        2 => {
            let call = program.call(random, "tf.keras.callbacks.EarlyStopping", &[], STOPPING);
            program.line(format!("early = {call}"));
            given.push("callbacks=[early]".to_owned());
        }
        _ => {}
    }
    let call = program.call(random, "model.fit", &given, FIT);
    program.line(format!("history = {call}"));
    if random.is(2) {
        let call = program.call(random, "model.evaluate", &[data], EVALUATE);
        program.line(format!("result = {call}"));
    }
    if random.is(2) {
        let call = program.call(random, "model.predict", &["x_new".to_owned()], PREDICT);
        program.line(format!("answers = {call}"));
    }
}

/// A program of a network, or of BERT.
fn program(seed: u64) -> Program {
    let (mut random, mut program) = (Random(seed), Program::default());
    program.line("import tensorflow as tf".to_owned());
    if random.is(3) {
        let call = program.call(
            &mut random,
            "TFBertForSequenceClassification.from_pretrained",
            &["\"bert-base-uncased\"".to_owned()],
            PRETRAINED,
        );
        program.line(
            "from transformers import TFBertForSequenceClassification, BertTokenizer".to_owned(),
        );
        // The arguments stand one line further down.
        let line = program.lines.len() + 1;
        for argument in &mut program.arguments {
            argument.0 = line;
        }
        program.line(format!("model = {call}"));
        program.line("tokenizer = BertTokenizer.from_pretrained(\"bert-base-uncased\")".to_owned());
        let call = program.call(&mut random, "tokenizer", &["texts".to_owned()], TOKENIZER);
        program.line(format!("tokens = {call}"));
        program.line(
            "train = tf.data.Dataset.from_tensor_slices((dict(tokens), labels)).batch(16)"
                .to_owned(),
        );
    } else {
        model(&mut random, &mut program);
    }
    compile(&mut random, &mut program);
    training(&mut random, &mut program);
    program
}

/// What is read on the card, without the table that has the Python text itself.
fn words_of_card(answer: &Answer) -> String {
    let of = |found: &Diagnostic| {
        let mut words = vec![found.message.clone()];
        words.extend(found.why.iter().cloned());
        words.extend(found.evidence.iter().map(|it| it.value.clone()));
        words.extend(found.labels.iter().map(|it| it.text.clone()));
        words.join("\n")
    };
    answer
        .diagnostics
        .iter()
        .map(of)
        .collect::<Vec<_>>()
        .join("\n")
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

/// The number or text of a value that stands nowhere else, if it is one.
fn mark(value: &str) -> Option<&str> {
    let mark = value.trim_matches(['(', ')', ',', '"']);
    let is_number =
        mark.len() >= 4 && mark.starts_with(|it: char| it.is_ascii_digit() || it == 't');
    is_number.then_some(mark)
}

#[test]
fn each_argument_is_in_the_cell_or_on_the_card() {
    let mut wrong = BTreeSet::new();
    let mut translated = 0;
    for seed in 0..PROGRAMS {
        let program = program(seed);
        let text = program.text();
        let answer = answer(&text, &Known::default()).expect("it is Python");
        let (cell, card) = (answer.cell(), words_of_card(&answer));
        // A comment names what a pipeline says about a `fit!` that may be left out.
        let code: Vec<&str> = cell
            .lines()
            .filter(|line| {
                let line = line.trim_start();
                !line.starts_with("//") || line.starts_with("// Arguments of `fit!`")
            })
            .collect();
        let code = code.join("\n");
        translated += usize::from(answer.has_cell());
        if !is_rust(&cell) {
            wrong.insert(format!("{seed}: no Rust\n{text}\n{cell}"));
        }
        for (line, name, value) in &program.arguments {
            // A whole statement, or a whole callback, that is left out is named with its line.
            let written = format!("{name}={value}");
            let statement = program.lines[line - 1].as_str();
            let is_left = answer.translation.left.iter().any(|left| {
                let is_whole = statement.starts_with(&left.python)
                    || left.python.starts_with("tf.keras.callbacks.");
                left.lines.0 == *line && is_whole && left.python.contains(&written)
            });
            let is_there = match mark(value) {
                Some(mark) => has_word(&code, mark),
                None => has_word(&code, name),
            };
            if !is_left && !is_there && !has_word(&card, name) {
                wrong.insert(format!(
                    "{seed}: line {line}, `{name}={value}` of `{statement}`"
                ));
            }
        }
    }
    assert!(translated > 200, "{translated} programs have a cell");
    let shown: Vec<String> = wrong.iter().take(20).cloned().collect();
    assert!(
        wrong.is_empty(),
        "{} are dropped:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}
