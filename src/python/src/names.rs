//! What the names of a cell stand for: `tf.keras.layers.Dense`, `layers.Dense` and an imported `Dense` are all
//! `keras.layers.Dense`.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Statement, StatementKind, Value, each_statement, each_value};

/// Names that notebooks import in another cell.
const USUAL: &[(&str, &str)] = &[
    ("tf", "tensorflow"),
    ("tensorflow", "tensorflow"),
    ("keras", "keras"),
    ("layers", "keras.layers"),
    ("models", "keras.models"),
    ("optimizers", "keras.optimizers"),
    ("losses", "keras.losses"),
    ("metrics", "keras.metrics"),
    ("callbacks", "keras.callbacks"),
    ("np", "numpy"),
    ("pd", "pandas"),
    ("plt", "matplotlib.pyplot"),
    ("tfds", "tensorflow_datasets"),
    ("tfa", "tensorflow_addons"),
    ("datasets", "datasets"),
    ("transformers", "transformers"),
    ("sns", "seaborn"),
    ("sklearn", "sklearn"),
    (
        "train_test_split",
        "sklearn.model_selection.train_test_split",
    ),
    ("torch", "torch"),
    ("nn", "torch.nn"),
    ("F", "torch.nn.functional"),
    ("optim", "torch.optim"),
    ("util", "sentence_transformers.util"),
    ("time", "time"),
    ("os", "os"),
    ("random", "random"),
    ("tqdm", "tqdm.tqdm"),
    ("trange", "tqdm.trange"),
    ("evaluate", "evaluate"),
    ("peft", "peft"),
    (
        "SentenceTransformer",
        "sentence_transformers.SentenceTransformer",
    ),
    ("DataLoader", "torch.utils.data.DataLoader"),
    ("LoraConfig", "peft.LoraConfig"),
    ("get_peft_model", "peft.get_peft_model"),
];

/// Modules of Keras by their older and inner names.
const SAME: &[(&str, &str)] = &[
    ("tensorflow.compat.v1.", "tensorflow."),
    ("tensorflow.compat.v2.", "tensorflow."),
    ("tensorflow.python.keras.", "keras."),
    ("tensorflow.keras.", "keras."),
    ("tf_keras.", "keras."),
    ("keras.api.", "keras."),
    ("keras.src.", "keras."),
    ("tensorflow.optimizers.", "keras.optimizers."),
    ("tensorflow.losses.", "keras.losses."),
    ("tensorflow.metrics.", "keras.metrics."),
    ("tensorflow_addons.optimizers.", "keras.optimizers."),
    ("keras.optimizers.legacy.", "keras.optimizers."),
    ("keras.optimizers.experimental.", "keras.optimizers."),
    ("keras.models.", "keras."),
];

/// Classes and functions that are known without their module.
const CLASSES: &[(&str, &[&str])] = &[
    ("keras.", &["Sequential", "Input"]),
    (
        "keras.layers.",
        &[
            "Dense",
            "Dropout",
            "Embedding",
            "Flatten",
            "GlobalAveragePooling1D",
            "InputLayer",
            "Activation",
            "Softmax",
            "ReLU",
            "Conv1D",
            "Conv2D",
            "LSTM",
            "GRU",
            "BatchNormalization",
            "LayerNormalization",
            "MaxPooling2D",
        ],
    ),
    (
        "keras.optimizers.",
        &[
            "Adam",
            "AdamW",
            "SGD",
            "RMSprop",
            "Lion",
            "Lamb",
            "Adafactor",
            "Adagrad",
        ],
    ),
    (
        "keras.losses.",
        &[
            "SparseCategoricalCrossentropy",
            "CategoricalCrossentropy",
            "BinaryCrossentropy",
            "MeanSquaredError",
            "MeanAbsoluteError",
        ],
    ),
    (
        "keras.callbacks.",
        &[
            "EarlyStopping",
            "ModelCheckpoint",
            "ReduceLROnPlateau",
            "TensorBoard",
        ],
    ),
    (
        "keras.optimizers.schedules.",
        &["ExponentialDecay", "CosineDecay", "PolynomialDecay"],
    ),
    (
        "tensorflow.distribute.",
        &[
            "MirroredStrategy",
            "OneDeviceStrategy",
            "CentralStorageStrategy",
            "ParameterServerStrategy",
            "MultiWorkerMirroredStrategy",
            "TPUStrategy",
        ],
    ),
    (
        "keras.distribution.",
        &[
            "DeviceMesh",
            "LayoutMap",
            "TensorLayout",
            "ModelParallel",
            "DataParallel",
        ],
    ),
    (
        "datasets.",
        &[
            "load_dataset",
            "load_from_disk",
            "Dataset",
            "DatasetDict",
            "concatenate_datasets",
        ],
    ),
    (
        "sklearn.",
        &[
            "TfidfVectorizer",
            "CountVectorizer",
            "LogisticRegression",
            "LinearSVC",
            "MultinomialNB",
            "RandomForestClassifier",
            "make_pipeline",
        ],
    ),
    (
        "transformers.",
        &[
            "AutoTokenizer",
            "AutoModel",
            "AutoConfig",
            "BertModel",
            "BertForSequenceClassification",
            "DistilBertForSequenceClassification",
            "RobertaForSequenceClassification",
            "DistilBertTokenizer",
            "DistilBertTokenizerFast",
            "RobertaTokenizer",
            "RobertaTokenizerFast",
            "BertTokenizer",
            "BertTokenizerFast",
            "AutoModelForSequenceClassification",
            "AutoModelForTokenClassification",
            "AutoModelForQuestionAnswering",
            "AutoModelForMultipleChoice",
            "AutoModelForMaskedLM",
            "Trainer",
            "TrainingArguments",
            "Seq2SeqTrainer",
            "Seq2SeqTrainingArguments",
            "DataCollatorWithPadding",
            "DataCollatorForTokenClassification",
            "DataCollatorForLanguageModeling",
            "EarlyStoppingCallback",
            "get_scheduler",
            "get_linear_schedule_with_warmup",
            "get_cosine_schedule_with_warmup",
            "set_seed",
            "pipeline",
        ],
    ),
];

/// The names of a cell.
#[derive(Clone, Debug, Default)]
pub struct Names {
    imports: BTreeMap<String, String>,
    assigned: BTreeSet<String>,
    /// The last names of what is called.
    called: BTreeSet<String>,
}

impl Names {
    /// Reads the imports and assignments of a cell.
    pub fn of(statements: &[Statement]) -> Self {
        let mut names = Self::default();
        each_statement(statements, &mut |statement| match &statement.kind {
            StatementKind::Import(imports) => {
                for import in imports {
                    names
                        .imports
                        .insert(import.name.clone(), import.path.clone());
                }
            }
            StatementKind::Assign(targets, _) => {
                // `torch.backends.cudnn.benchmark = True` leaves `torch` what it is.
                for target in targets {
                    let several = target.elements().unwrap_or(std::slice::from_ref(target));
                    names
                        .assigned
                        .extend(several.iter().filter_map(Value::name).map(str::to_owned));
                }
            }
            StatementKind::Function(it) => {
                names.assigned.insert(it.name.clone());
            }
            StatementKind::Class(it) => {
                names.assigned.insert(it.name.clone());
            }
            _ => {}
        });
        each_value(statements, &mut |value| {
            let path = value.call().and_then(|call| call.function.path());
            let last = path.and_then(|path| path.last().map(|it| (*it).to_owned()));
            names.called.extend(last);
        });
        names
    }

    /// The full name of `a.b.c`, if its first name is a module or a class of a library.
    pub fn full(&self, value: &Value) -> Option<String> {
        self.written(value).map(same)
    }

    /// The full name, as modules are called where they are imported.
    fn written(&self, value: &Value) -> Option<String> {
        let path = value.path()?;
        let (first, rest) = path.split_first()?;
        let mut full = match self.imports.get(*first) {
            Some(path) => path.clone(),
            None if self.assigned.contains(*first) => return None,
            None => usual(first)?,
        };
        for name in rest {
            full.push('.');
            full += name;
        }
        Some(full)
    }

    /// Whether something is of TensorFlow Addons, whose optimizers have the names of Keras's.
    pub fn is_addon(&self, value: &Value) -> bool {
        let full = self.written(value);
        full.is_some_and(|full| full.starts_with("tensorflow_addons."))
    }

    /// The full name of what a call calls.
    pub fn called(&self, value: &Value) -> Option<String> {
        self.full(&value.call()?.function)
    }

    /// Whether a name is imported or assigned in the cell.
    pub fn has(&self, name: &str) -> bool {
        self.imports.contains_key(name) || self.assigned.contains(name)
    }

    /// Whether the cell calls something of this name, of whatever module.
    pub fn calls(&self, last: &str) -> bool {
        self.called.contains(last)
    }

    /// The last names of what the cell calls.
    pub fn called_names(&self) -> &BTreeSet<String> {
        &self.called
    }

    /// Whether a library is imported.
    pub fn imports(&self, library: &str) -> bool {
        let is_of = |path: &String| {
            path == library
                || path
                    .strip_prefix(library)
                    .is_some_and(|rest| rest.starts_with('.'))
        };
        self.imports.values().any(is_of)
    }
}

/// Whether `name.attribute` is of a library that notebooks know by this name. A name that could be a variable of Rust counts with
/// a class only.
pub(crate) fn is_library(name: &str, attribute: &str) -> bool {
    const ALWAYS: &[&str] = &[
        "tf",
        "tensorflow",
        "keras",
        "np",
        "pd",
        "plt",
        "tfds",
        "tfa",
        "torch",
        "sns",
        "sklearn",
        "transformers",
    ];
    let is_class = |it: &str| it.starts_with(|it: char| it.is_uppercase());
    ALWAYS.contains(&name) || usual(name).is_some() && (is_class(name) || is_class(attribute))
}

fn usual(name: &str) -> Option<String> {
    if let Some((_, full)) = USUAL.iter().find(|(short, _)| *short == name) {
        return Some((*full).to_owned());
    }
    if name.starts_with("TFBert") || name.starts_with("TFAuto") || name.starts_with("TFDistil") {
        return Some(format!("transformers.{name}"));
    }
    let (module, _) = CLASSES
        .iter()
        .find(|(_, classes)| classes.contains(&name))?;
    Some(format!("{module}{name}"))
}

fn same(mut full: String) -> String {
    for (from, to) in SAME {
        if let Some(rest) = full.strip_prefix(from) {
            full = format!("{to}{rest}");
        }
    }
    if full == "keras.layers.Input" {
        return "keras.Input".to_owned();
    }
    // `from transformers.models.bert import …`.
    if full.starts_with("transformers.") {
        let class = full
            .split('.')
            .find(|it| it.starts_with(|c: char| c.is_uppercase()));
        if let Some(start) = class.and_then(|class| full.find(class)) {
            full = format!("transformers.{}", &full[start..]);
        }
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::program;

    fn check(text: &str, expected: &[Option<&str>]) {
        let program = program(text).expect("it is Python");
        let names = Names::of(&program.statements);
        let mut found = Vec::new();
        for statement in &program.statements {
            if let StatementKind::Expression(value) = &statement.kind {
                found.push(names.full(value));
            }
        }
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn one_class_has_many_names() {
        let dense = Some("keras.layers.Dense");
        check("import tensorflow as tf\ntf.keras.layers.Dense", &[dense]);
        check(
            "import tensorflow as t\nt.compat.v1.keras.layers.Dense",
            &[dense],
        );
        check(
            "from tensorflow.keras import layers as l\nl.Dense",
            &[dense],
        );
        check("from keras.layers import Dense as D\nD", &[dense]);
        check(
            "import tensorflow.keras\ntensorflow.keras.layers.Dense",
            &[dense],
        );
        check(
            "tf.keras.layers.Dense\nlayers.Dense\nDense",
            &[dense, dense, dense],
        );
        check("Dense = 3\nDense\nmodel.fit", &[None, None]);
        check(
            "tf.keras.optimizers.legacy.Adam",
            &[Some("keras.optimizers.Adam")],
        );
        check("tf.keras.models.Sequential", &[Some("keras.Sequential")]);
    }

    #[test]
    fn addons_are_not_keras_itself() {
        for (text, is_addon) in [
            ("tfa.optimizers.AdamW", true),
            (
                "from tensorflow_addons.optimizers import AdamW\nAdamW",
                true,
            ),
            ("tf.keras.optimizers.AdamW", false),
            ("from keras.optimizers import AdamW\nAdamW", false),
            ("AdamW", false),
        ] {
            let program = program(text).expect("it is Python");
            let names = Names::of(&program.statements);
            let Some(StatementKind::Expression(value)) =
                program.statements.last().map(|it| &it.kind)
            else {
                panic!("{text}");
            };
            assert_eq!(names.is_addon(value), is_addon, "{text}");
            assert_eq!(
                names.full(value).as_deref(),
                Some("keras.optimizers.AdamW"),
                "{text}"
            );
        }
    }
}
