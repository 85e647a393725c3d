"""Writes tiny models of ALBERT and what transformers computes with them: `python make_albert.py`, with transformers, torch and
sentencepiece. Three layers share their weights."""

import io

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from transformers import (
    AlbertConfig, AlbertForMaskedLM, AlbertForMultipleChoice, AlbertForQuestionAnswering, AlbertForSequenceClassification,
    AlbertForTokenClassification, AlbertTokenizer,
)

from make_relative import HERE, SIZES, corpus, family

OF_ALBERT = SIZES | {"embedding_size": 8, "num_hidden_layers": 3, "max_position_embeddings": 64, "hidden_dropout_prob": 0.1,
                     "attention_probs_dropout_prob": 0.1}
# A table of characters, which is short beside the published one: a dash and a quotation mark, which the other normalizers leave.
RULES = "2013\t2D\n2019\t27\n"


def of_albert():
    """SentencePiece's unigrams between BERT's special tokens, with a table of characters: the settings of the published files."""
    rules = HERE / "rules.tsv"
    rules.write_text(RULES)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, vocab_size=300, model_type="unigram", pad_id=0, unk_id=1, bos_id=-1,
        eos_id=-1, pad_piece="<pad>", control_symbols=["[CLS]", "[SEP]", "[MASK]"], normalization_rule_tsv=str(rules),
        num_threads=1, minloglevel=2)
    rules.unlink()
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    vocab = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = AlbertTokenizer(vocab=vocab, _spm_precompiled_charsmap=proto.normalizer_spec.precompiled_charsmap)
    # As in the paper and in the files; transformers 5 leaves them out where nobody asks for them.
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return tokenizer


def watched(body):
    layer = body.encoder.albert_layer_groups[0].albert_layers[0]
    calls = (f"hidden.{at + 1}" for at in range(body.config.num_hidden_layers))
    return [(body.encoder.embedding_hidden_mapping_in, iter(["embeddings"])), (layer, calls)]


if __name__ == "__main__":
    family("albert", of_albert(), lambda **options: AlbertConfig(**OF_ALBERT, **options), AlbertForSequenceClassification,
           AlbertForMaskedLM, AlbertForTokenClassification, AlbertForQuestionAnswering, AlbertForMultipleChoice, watched)
