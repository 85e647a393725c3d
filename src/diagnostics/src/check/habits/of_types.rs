//! Habits on types that a path begins with: `AutoTokenizer::from_pretrained("…")`.

use super::Habit;
use super::of_paths::Module;

pub(super) const TYPES: &[Module] = &[
    Module {
        names: &["AutoTokenizer", "BertTokenizerFast", "DistilBertTokenizer"],
        habits: &[],
        otherwise: "a model has its tokenizer: `from_pretrained` reads it, and `fit!` and `predict` take texts",
    },
    Module {
        names: &[
            "AutoModelForSequenceClassification",
            "TFBertForSequenceClassification",
            "TFAutoModelForSequenceClassification",
            "DistilBertForSequenceClassification",
            "RobertaForSequenceClassification",
            "ModernBertForSequenceClassification",
            "MPNetForSequenceClassification",
            "DebertaV2ForSequenceClassification",
            "AlbertForSequenceClassification",
        ],
        habits: &[Habit(
            "from_pretrained(_, _)",
            "BertForSequenceClassification::from_pretrained({0}, {1})?",
            "one type reads BERT, DistilBERT, RoBERTa, CamemBERT, ELECTRA, ModernBERT, MPNet, DeBERTa and ALBERT",
        )],
        otherwise: "`BertForSequenceClassification::from_pretrained(name, labels)?` reads BERT, DistilBERT, RoBERTa, CamemBERT, \
                    ELECTRA, ModernBERT, MPNet, DeBERTa and ALBERT",
    },
    Module {
        names: &[
            "AutoModel",
            "BertModel",
            "SentenceTransformer",
            "TFBertModel",
        ],
        habits: &[Habit(
            "from_pretrained(_) | new(_)",
            "BertForSentenceEmbedding::from_pretrained({0})?",
            "`embed` makes a vector of a text",
        )],
        otherwise: "`BertForSentenceEmbedding::from_pretrained(name)?` makes vectors of texts; other heads are `BertFor…`",
    },
    Module {
        names: &[
            "AutoModelForTokenClassification",
            "TFBertForTokenClassification",
        ],
        habits: &[Habit(
            "from_pretrained(_, _)",
            "BertForTokenClassification::from_pretrained({0}, {1})?",
            "the head that tags words",
        )],
        otherwise: "`BertForTokenClassification::from_pretrained(name, tags)?` tags words",
    },
    Module {
        names: &[
            "AutoModelForMaskedLM",
            "AutoModelForQuestionAnswering",
            "AutoModelForMultipleChoice",
        ],
        habits: &[],
        otherwise: "heads are called `BertForMaskedLM`, `BertForQuestionAnswering` and `BertForMultipleChoice`",
    },
    Module {
        names: &[
            "Trainer",
            "TrainingArguments",
            "DataLoader",
            "DataCollatorWithPadding",
            "Accelerator",
        ],
        habits: &[],
        otherwise: "`compile!` has the settings and `fit!` trains, makes the batches and pads them: `fit!(model, data, epochs = 3)?`",
    },
    Module {
        names: &["WandbCallback"],
        habits: &[Habit(
            "new(..)",
            "~WandbLogger::new(\"wandb\", \"project\")?",
            "`WandbLogger` writes an offline run, which `wandb sync` uploads",
        )],
        otherwise: "`WandbLogger::new(\"wandb\", \"project\")?` writes an offline run, which `wandb sync` uploads",
    },
    Module {
        names: &["MlflowCallback"],
        habits: &[Habit(
            "new(..)",
            "~MlflowLogger::new(\"mlruns\", \"project\")?",
            "`MlflowLogger` writes a run that `mlflow ui` shows",
        )],
        otherwise: "`MlflowLogger::new(\"mlruns\", \"project\")?` writes a run that `mlflow ui` shows",
    },
    Module {
        names: &["CSVLogger"],
        habits: &[Habit(
            "new(..)",
            "~CsvLogger::new(\"log.csv\")?",
            "`CsvLogger` and `TensorBoard` write what was measured to files",
        )],
        otherwise: "`CsvLogger::new(\"log.csv\")?` and `TensorBoard::new(\"logs\")?` write what was measured to files",
    },
    Module {
        names: &["ModelCheckpoint"],
        habits: &[],
        otherwise: "checkpoints are an argument of `fit!`: `checkpoint = \"folder\"`",
    },
    Module {
        names: &["LearningRateScheduler", "ReduceLROnPlateau"],
        habits: &[],
        otherwise: "no callback changes the rate: a schedule is the optimizer's rate, as in `Adam::new(CosineDecay::new(0.01, 100))`, and in \
                    a run of `start!` `run.set_learning_rate(scale(0.5))?` changes it between two steps",
    },
    Module {
        names: &["DataFrame", "Series"],
        habits: &[],
        otherwise: "`Dataset::from_rows(texts, labels)?` takes texts, `Dataset::from_arrays(rows, labels)?` rows of numbers; `Table` shows a table",
    },
    Module {
        names: &[
            "LabelEncoder",
            "StandardScaler",
            "TfidfVectorizer",
            "CountVectorizer",
            "OneHotEncoder",
        ],
        habits: &[],
        otherwise: "data sets number their labels and models have their tokenizer; numbers are scaled by `data.map(|example| …)`",
    },
];

/// On the layers of a `Sequential`.
pub(super) const LAYER: &[Habit] = &[
    Habit(
        "relu() | gelu() | silu() | elu() | softplus() | tanh() | sigmoid() | softmax()",
        "{it}.activation(\"{name}\")",
        "a layer has its activation by name",
    ),
    Habit(
        "input_dim(_) | shape(_)",
        "{it}.input_shape({0})",
        "the first layer has the number of columns of the data",
    ),
];
