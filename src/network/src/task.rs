//! [`Task`]: what a model answers for an example. Everything above the network that depends on the kind of head asks here:
//! how data is checked and tokenized, which losses and metrics agree with the head, and what an answer is.

/// What a model answers for an example.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// One class, or one number.
    #[default]
    Example,
    /// A class for each word: the outputs of an example are S rows of C numbers, in one row.
    Words,
    /// A part of a text: the outputs of an example are S numbers for where it begins, and S for where it ends.
    Span,
    /// A vector.
    Embedding,
    /// Any of several labels: each output is decided by itself.
    Set,
    /// The token behind each mask: the outputs of an example are K rows of as many numbers as the vocabulary has tokens, in
    /// one row; K is the same for all examples of a batch.
    Masked,
    /// One of the texts that an example brings: an output for each, which are compared with each other.
    Choice,
}
