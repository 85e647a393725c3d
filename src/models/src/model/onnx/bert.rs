//! BERT with any head as a graph. Inputs and outputs have the names that Hugging Face's optimum gives them:
//! `optimum/exporters/onnx/model_configs.py`, `BertOnnxConfig`, `DistilBertOnnxConfig`, `RobertaOnnxConfig`.
//! Dimensions: B sequences, S positions, H = hidden_size, N heads of D = H / N.

use burn::tensor::TensorData;
use stratoscope_bert::config::Gelu;
use stratoscope_bert::{
    BertConfig, BertNetwork, Family, MaskedLm, MultipleChoice, QuestionAnswerer, SentenceEncoder,
    TokenClassifier,
};
use stratoscope_onnx::{Attribute, Dimension, ElementType, Graph, Value};

use super::layers::{IDS, Table, Translation, Weights};
use stratoscope_network::Activation;

const ROWS: Dimension = Dimension::Named("batch_size");
const POSITIONS: Dimension = Dimension::Named("sequence_length");
const CHOICES: Dimension = Dimension::Named("num_choices");

/// What is added to the score of padding, as in `stratoscope_bert::ops`: finite, so that a row of padding only does not
/// become NaN, and so low that a score vanishes beside it.
const MASKED_SCORE: f32 = -3.0e38;

/// The inputs of the body, each [B, S].
struct Inputs {
    ids: Value,
    mask: Value,
    /// Which of two texts a token is of, in families that learn it.
    types: Option<Value>,
}

/// A BERT while it is translated.
struct Bert<'a> {
    to: Translation,
    config: &'a BertConfig,
    /// Its table of words is its last layer, too.
    decodes: bool,
}

/// The graph of a network of the class `architecture` with these variables, which have no adapters.
pub(super) fn graph(
    values: Vec<(String, TensorData)>,
    config: &BertConfig,
    architecture: &'static str,
    weights: Weights,
) -> Graph {
    let to = Translation::new(Graph::new(architecture), values, weights);
    let mut bert = Bert {
        to,
        config,
        decodes: architecture == MaskedLm::ARCHITECTURE,
    };
    match architecture {
        TokenClassifier::ARCHITECTURE => bert.token_classifier(),
        QuestionAnswerer::ARCHITECTURE => bert.question_answerer(),
        MultipleChoice::ARCHITECTURE => bert.multiple_choice(),
        MaskedLm::ARCHITECTURE => bert.masked_lm(),
        SentenceEncoder::ARCHITECTURE => bert.sentence_encoder(),
        _ => bert.sequence_classifier(),
    }
    bert.to.finished()
}

impl Bert<'_> {
    fn sequence_classifier(&mut self) {
        let inputs = self.inputs(&[ROWS, POSITIONS]);
        let (hidden, _) = self.body(&inputs);
        let pooled = self.pooled(&hidden);
        let logits = self.to.head("classifier", &pooled);
        let labels = Dimension::Size(self.config.num_labels());
        self.output("logits", &logits, &[ROWS, labels]);
    }

    fn token_classifier(&mut self) {
        let inputs = self.inputs(&[ROWS, POSITIONS]);
        let (hidden, _) = self.body(&inputs);
        let logits = self.to.head("classifier", &hidden);
        let labels = Dimension::Size(self.config.num_labels());
        self.output("logits", &logits, &[ROWS, POSITIONS, labels]);
    }

    fn question_answerer(&mut self) {
        let inputs = self.inputs(&[ROWS, POSITIONS]);
        let (hidden, _) = self.body(&inputs);
        let logits = self.to.head("qa_outputs", &hidden); // [B, S, 2]
        for (index, name) in [(0, "start_logits"), (1, "end_logits")] {
            let index = self.to.integer(index);
            let last = [("axis", Attribute::Int(2))];
            let part = "qa_outputs";
            let one = self
                .to
                .graph
                .node(part, "Gather", &[&logits, &index], &last);
            self.output(name, &one, &[ROWS, POSITIONS]);
        }
    }

    /// The choices of a prompt are sequences of their own: [B, C, S] → [B·C, S], and the logits back to [B, C].
    fn multiple_choice(&mut self) {
        let part = "choices";
        let given = self.inputs(&[ROWS, CHOICES, POSITIONS]);
        let prompts = self.to.shape(part, &given.ids, [0, 2]);
        let length = self.to.shape(part, &given.ids, [2, 3]);
        let all = self.to.integers(&[-1]);
        let first = [("axis", Attribute::Int(0))];
        let flat = (self.to.graph).node(part, "Concat", &[&all, &length], &first);
        let mut flattened = |x: &Value| self.to.graph.node(part, "Reshape", &[x, &flat], &[]);
        let inputs = Inputs {
            ids: flattened(&given.ids),
            mask: flattened(&given.mask),
            types: given.types.as_ref().map(flattened),
        };
        let (hidden, _) = self.body(&inputs);
        let pooled = self.pooled(&hidden);
        let logits = self.to.head("classifier", &pooled); // [B·C, 1]
        let logits = (self.to.graph).node(part, "Reshape", &[&logits, &prompts], &[]);
        self.output("logits", &logits, &[ROWS, CHOICES]);
    }

    fn masked_lm(&mut self) {
        let inputs = self.inputs(&[ROWS, POSITIONS]);
        let (hidden, words) = self.body(&inputs);
        let part = "cls.predictions";
        let dense = self.to.dense(&format!("{part}.transform.dense"), &hidden);
        let transform = format!("{part}.transform");
        let widened = activated(&mut self.to, self.config, &transform, &dense);
        let (norm, eps) = (
            format!("{part}.transform.LayerNorm"),
            self.config.layer_norm_eps,
        );
        let normalized = self.to.layer_norm(&norm, &widened, eps);
        let bias = format!("{part}.bias");
        let logits =
            (self.to).against_table(&format!("{part}.decoder"), &normalized, &words, &bias);
        let vocabulary = Dimension::Size(self.config.vocab_size);
        self.output("logits", &logits, &[ROWS, POSITIONS, vocabulary]);
    }

    /// The mean over the tokens of a text, of length 1; the vectors of the tokens are an output beside it.
    fn sentence_encoder(&mut self) {
        let inputs = self.inputs(&[ROWS, POSITIONS]);
        let (hidden, _) = self.body(&inputs);
        let width = Dimension::Size(self.config.hidden_size);
        let hidden = self.output("token_embeddings", &hidden, &[ROWS, POSITIONS, width]);
        let part = "pooling";
        let to = &mut self.to;
        let mask = to.as_floats(part, &inputs.mask); // [B, S]
        let (second, third) = (to.integers(&[1]), to.integers(&[2]));
        let (one, tiny) = (to.float(1.0), to.float(1e-12));
        let flat = [("keepdims", Attribute::Int(0))];
        let graph = &mut to.graph;
        let tokens = graph.node(part, "Unsqueeze", &[&mask, &third], &[]); // [B, S, 1]
        let own = graph.node(part, "Mul", &[&hidden, &tokens], &[]);
        let sum = graph.node(part, "ReduceSum", &[&own, &second], &flat); // [B, H]
        let count = graph.node(part, "ReduceSum", &[&mask, &second], &[]); // [B, 1]
        let count = graph.node(part, "Max", &[&count, &one], &[]);
        let mean = graph.node(part, "Div", &[&sum, &count], &[]);
        let axis = [("axes", Attribute::Ints(&[1]))];
        let length = graph.node(part, "ReduceL2", &[&mean], &axis); // [B, 1]
        let length = graph.node(part, "Max", &[&length, &tiny], &[]);
        let vector = graph.node(part, "Div", &[&mean, &length], &[]);
        self.output("sentence_embedding", &vector, &[ROWS, width]);
    }

    fn inputs(&mut self, dims: &[Dimension]) -> Inputs {
        let graph = &mut self.to.graph;
        let ids = graph.input("input_ids", IDS, dims);
        let mask = graph.input("attention_mask", IDS, dims);
        let with_types = [Family::Bert, Family::Electra, Family::Albert];
        let learned = with_types.contains(&self.config.family);
        let types = learned.then(|| graph.input("token_type_ids", IDS, dims));
        Inputs { ids, mask, types }
    }

    fn output(&mut self, name: &str, value: &Value, dims: &[Dimension]) -> Value {
        (self.to.graph).output(name, value, ElementType::Float, dims)
    }

    /// Embeddings and encoder, and the table of words, which a masked language model decodes with.
    ///
    /// # Shapes
    /// [B, S] → [B, S, H]
    fn body(&mut self, inputs: &Inputs) -> (Value, Table) {
        let (mut hidden, words) = self.embeddings(inputs);
        let part = "bert.encoder";
        let to = &mut self.to;
        // 0 for a token, the score of padding for the rest, for all heads and queries: [B, 1, 1, S].
        let mask = to.as_floats(part, &inputs.mask);
        let (one, low) = (to.float(1.0), to.float(MASKED_SCORE));
        let axes = to.integers(&[1, 2]);
        let padding = to.graph.node(part, "Sub", &[&one, &mask], &[]);
        let scores = to.graph.node(part, "Mul", &[&padding, &low], &[]);
        let scores = to.graph.node(part, "Unsqueeze", &[&scores, &axes], &[]);
        for layer in 0..self.config.num_hidden_layers {
            // ALBERT computes its first layer at each place.
            let layer = if self.config.family.shares_layers() {
                0
            } else {
                layer
            };
            hidden = self.layer(&format!("{part}.layer.{layer}"), &hidden, &scores);
        }
        (hidden, words)
    }

    /// [B, S] → [B, S, H]
    fn embeddings(&mut self, inputs: &Inputs) -> (Value, Table) {
        let part = "bert.embeddings";
        let words = self
            .to
            .table(&format!("{part}.word_embeddings"), self.decodes);
        let sum = (self.to).lookup(&format!("{part}.word_embeddings"), &words, &inputs.ids);
        let name = format!("{part}.token_type_embeddings");
        let sum = match (&inputs.types, self.config.family) {
            (Some(types), _) => {
                let table = self.to.variable(&format!("{name}.weight"));
                let found = self.to.graph.node(&name, "Gather", &[&table, types], &[]);
                self.to.graph.node(part, "Add", &[&sum, &found], &[])
            }
            // It has one type, whose vector is zero.
            (None, Family::DistilBert) => {
                self.to.leave_out(&format!("{name}.weight"));
                sum
            }
            // Every token is of the first type.
            (None, _) => {
                let table = self.to.variable(&format!("{name}.weight"));
                let first = self.to.integer(0);
                let found = self.to.graph.node(&name, "Gather", &[&table, &first], &[]);
                self.to.graph.node(part, "Add", &[&sum, &found], &[])
            }
        };
        let name = format!("{part}.position_embeddings");
        let table = self.to.variable(&format!("{name}.weight"));
        let length = self.to.shape(&name, &inputs.ids, [1, 2]);
        let first = self.to.integers(&[0]);
        let positions = [&table, &first, &length, &first]; // rows 0 to S
        let positions = self.to.graph.node(&name, "Slice", &positions, &[]);
        let sum = self.to.graph.node(part, "Add", &[&sum, &positions], &[]);
        let eps = self.config.layer_norm_eps;
        let embedded = self.to.layer_norm(&format!("{part}.LayerNorm"), &sum, eps);
        let embedded = match self.config.embedding_size {
            Some(_) => self.to.dense("bert.embeddings_project", &embedded),
            None => embedded,
        };
        (embedded, words)
    }

    /// [B, S, H] → [B, S, H]; `padding` [B, 1, 1, S] is added to the scores.
    fn layer(&mut self, part: &str, x: &Value, padding: &Value) -> Value {
        let eps = self.config.layer_norm_eps;
        let attended = self.attention(&format!("{part}.attention.self"), x, padding);
        let to = &mut self.to;
        let with_residual = |to: &mut Translation, part: &str, x: &Value, residual: &Value| {
            let dense = to.dense(&format!("{part}.dense"), x);
            let sum = to.graph.node(part, "Add", &[&dense, residual], &[]);
            to.layer_norm(&format!("{part}.LayerNorm"), &sum, eps)
        };
        let attended = with_residual(to, &format!("{part}.attention.output"), &attended, x);
        let inner = format!("{part}.intermediate");
        let widened = to.dense(&format!("{inner}.dense"), &attended);
        let widened = activated(to, self.config, &inner, &widened);
        with_residual(to, &format!("{part}.output"), &widened, &attended)
    }

    /// `softmax(Q·Kᵀ/√D + padding) · V` for each head.
    fn attention(&mut self, part: &str, x: &Value, padding: &Value) -> Value {
        let to = &mut self.to;
        let (hidden, heads) = (self.config.hidden_size, self.config.num_attention_heads);
        let size = hidden / heads;
        let by_heads = to.integers(&[0, 0, heads as i64, size as i64]);
        let together = to.integers(&[0, 0, hidden as i64]);
        let scale = to.float((size as f64).sqrt() as f32);
        let mut project = |name: &str, order: &[i64]| {
            let part = format!("{part}.{name}");
            let projected = to.dense(&part, x);
            let split = to
                .graph
                .node(&part, "Reshape", &[&projected, &by_heads], &[]);
            let order = [("perm", Attribute::Ints(order))];
            to.graph.node(&part, "Transpose", &[&split], &order)
        };
        let query = project("query", &[0, 2, 1, 3]); // [B, N, S, D]
        let key = project("key", &[0, 2, 3, 1]); // [B, N, D, S]
        let value = project("value", &[0, 2, 1, 3]);
        let graph = &mut to.graph;
        let scores = graph.node(part, "MatMul", &[&query, &key], &[]);
        let scores = graph.node(part, "Div", &[&scores, &scale], &[]);
        let scores = graph.node(part, "Add", &[&scores, padding], &[]);
        let last = [("axis", Attribute::Int(-1))];
        let probabilities = graph.node(part, "Softmax", &[&scores], &last);
        let mixed = graph.node(part, "MatMul", &[&probabilities, &value], &[]);
        let order = [("perm", Attribute::Ints(&[0, 2, 1, 3]))];
        let mixed = graph.node(part, "Transpose", &[&mixed], &order);
        graph.node(part, "Reshape", &[&mixed, &together], &[])
    }

    /// The first token's vector through a dense layer and the activation of the family: [B, S, H] → [B, H]
    fn pooled(&mut self, hidden: &Value) -> Value {
        let part = "bert.pooler";
        let first = self.to.integer(0);
        let positions = [("axis", Attribute::Int(1))];
        let first = (self.to.graph).node(part, "Gather", &[hidden, &first], &positions);
        let dense = self.to.dense("bert.pooler.dense", &first);
        match self.config.family {
            Family::DistilBert => self.to.activation(part, dense, Activation::Relu),
            Family::Electra => self.to.gelu(part, &dense),
            _ => self.to.activation(part, dense, Activation::Tanh),
        }
    }
}

/// The activation of the feed-forward parts.
fn activated(to: &mut Translation, config: &BertConfig, part: &str, x: &Value) -> Value {
    match config.gelu {
        Gelu::Exact => to.gelu(part, x),
        Gelu::Tanh => to.gelu_tanh(part, x),
    }
}
