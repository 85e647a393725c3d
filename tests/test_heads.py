"""The heads of BERT in a notebook: each is made under a scope, compiled, trained, evaluated and asked, and says what is wrong
with its data."""

import json
import pathlib
import re
import shutil

import pytest

from kernel_client import check_card, check_static_html

WORDS = """let words = Dataset::from_words((0..48).map(|row| {
    let (name, place) = (["game", "server", "font"][row % 3], ["library", "editor"][row % 2]);
    (vec!["the", name, "of", "a", place], vec!["O", "B-TOOL", "O", "O", "B-PLACE"])
}))?;"""

ENTROPY = "loss = SparseCategoricalCrossentropy { from_logits: true }"


@pytest.fixture(scope="module")
def ready(kernel):
    kernel.run(WORDS)
    return kernel


def test_words_are_tagged(ready, tiny, tmp_path):
    ready.run("let strategy = MirroredStrategy::logical(2)?;")
    ready.run(f"""scope!(strategy, {{
    let tagger = BertForTokenClassification::from_pretrained_labels("{tiny}", words.label_names.clone())?;
    compile!(tagger, optimizer = AdamW::new(5e-3), {ENTROPY}, metrics = ["entity_f1", "accuracy"])?;
}});""")
    history = ready.run("let history = fit!(tagger, words, validation_data = words, batch_size = 8, epochs = 20)?; history").shown()
    assert "entity_f1" in history, history
    assert "entity_f1 = 1" in ready.run("""let found = evaluate!(tagger, words)?;
format!("entity_f1 = {:.3}", found.metrics.iter().find(|it| it.name == "entity_f1").unwrap().value.unwrap())""").shown()
    cell = ready.run("tagger.predict(\"the server of a library\")?")
    assert "[server TOOL" in cell.shown() and "[library PLACE" in cell.shown(), cell.shown()
    html = cell.shown("text/html")
    check_static_html(html)
    assert "background-color" in html and "TOOL" in html
    ready.run(f'tagger.save_pretrained("{tmp_path}/tagger")?;')
    config = json.loads((tmp_path / "tagger" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForTokenClassification"]
    assert config["id2label"] == {"0": "O", "1": "B-PLACE", "2": "B-TOOL"}


def test_texts_are_no_words(ready):
    ready.run('let texts = Dataset::from_labelled([("a game", "game"), ("a server", "server")]);')
    check_card(ready.execute("fit!(tagger, texts)?;"), "SC0431", "BertForSequenceClassification")
    ready.run('std::fs::write("bad.conll", "game B-TOOL\\nserver\\n")?;')
    check_card(ready.execute('Dataset::conll("bad.conll")?;'), "SC0911", "is not a word and its tag")


def test_questions_are_answered(ready, tiny, tmp_path):
    ready.run("""let questions = Dataset::from_questions((0..48).map(|row| {
    let (name, place) = (["game", "server", "font"][row % 3], ["library", "editor"][row % 2]);
    let answer = if row % 4 == 3 { "" } else { name };
    (if row % 4 == 3 { "system" } else { "tool" }, format!("the {name} of a {place}"), answer.to_owned())
}))?;""")
    ready.run(f"""scope!(strategy, {{
    let answerer = BertForQuestionAnswering::from_pretrained("{tiny}")?;
    compile!(answerer, optimizer = AdamW::new(5e-3), {ENTROPY}, metrics = ["exact_match", "answer_f1"])?;
}});""")
    history = ready.run("let history = fit!(answerer, questions, validation_data = questions, batch_size = 8, epochs = 40)?; history").shown()
    assert "exact_match" in history, history
    # Two of the questions that it was trained on: what it makes of others depends on rounding.
    cell = ready.run('answerer.predict(Dataset::from_pairs([("tool", "the server of a editor"), ("system", "the server of a editor")]))?')
    assert "tool → server" in cell.shown() and "system → no answer in this text" in cell.shown(), cell.shown()
    html = cell.shown("text/html")
    check_static_html(html)
    assert "server</span>" in html
    ready.run(f'answerer.save_pretrained("{tmp_path}/answerer")?;')
    config = json.loads((tmp_path / "answerer" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForQuestionAnswering"]


def test_texts_have_several_labels(ready, tiny, tmp_path):
    (tmp_path / "tags.csv").write_text("text,tags\n" + "".join(
        f"the {['game', 'server'][row % 2]} of a {['library', 'editor'][row // 2 % 2]},{';'.join(['play'] * (row % 2 == 0) + ['text'] * (row // 2 % 2))}\n"
        for row in range(48)), encoding="utf-8")
    ready.run(f'let tagged = Dataset::csv_with("{tmp_path}/tags.csv", &Columns::new().text("text").labels("tags", ";"))?;')
    assert "any of 2 labels" in ready.run("tagged").shown()
    ready.run(f"""scope!(strategy, {{
    let labels = BertForSequenceClassification::from_pretrained_multi_label("{tiny}", tagged.label_names.clone())?;
    compile!(labels, optimizer = AdamW::new(5e-3), loss = BinaryCrossentropy {{ from_logits: true }}, metrics = ["micro_f1", "exact_match"])?;
}});""")
    history = ready.run("let history = fit!(labels, tagged, validation_data = tagged, batch_size = 8, epochs = 20)?; history").shown()
    assert "micro_f1" in history, history
    cell = ready.run('labels.predict(["the game of a editor", "the server of a library"])?')
    assert "→ play" in cell.shown() and ", text" in cell.shown() and "→ no label" in cell.shown(), cell.shown()
    check_static_html(cell.shown("text/html"))
    check_card(ready.execute("fit!(labels, texts)?;"), "SC0431", "from_label_sets")
    ready.run(f'labels.save_pretrained("{tmp_path}/labels")?;')
    config = json.loads((tmp_path / "labels" / "config.json").read_text(encoding="utf-8"))
    assert config["problem_type"] == "multi_label_classification"


def test_a_text_is_chosen(ready, tiny, tmp_path):
    rows = [(["library", "editor", "font"][row % 3], ["the game", "the server"][:: 1 - 2 * (row // 3 % 2)], row // 3 % 2) for row in range(48)]
    (tmp_path / "choices.csv").write_text("text,first,second,label\n" + "".join(f"a {text},{','.join(choices)},{right}\n" for text, choices, right in rows), encoding="utf-8")
    ready.run(f'let prompts = Dataset::csv_with("{tmp_path}/choices.csv", &Columns::new().choices(["first", "second"]))?;')
    assert "48 prompts with 2 choices each" in ready.run("prompts").shown()
    ready.run(f"""scope!(strategy, {{
    let chooser = BertForMultipleChoice::from_pretrained("{tiny}", 2)?;
    compile!(chooser, optimizer = AdamW::new(5e-3), {ENTROPY}, metrics = ["accuracy"])?;
}});""")
    history = ready.run("let history = fit!(chooser, prompts, validation_data = prompts, batch_size = 8, epochs = 10)?; history").shown()
    assert "accuracy" in history, history
    cell = ready.run('chooser.choose("a font", ["the server", "the game"])?')
    assert "a font → the game" in cell.shown(), cell.shown()
    html = cell.shown("text/html")
    check_static_html(html)
    assert html.count("height:9px") == 2
    check_card(ready.execute("fit!(chooser, texts)?;"), "SC0431", "prompts with choices")
    check_card(ready.execute('Dataset::from_choices([("a font", vec!["the game"], 0)])?;'), "SC0911", "one choice")
    check_card(ready.execute('Dataset::from_choices([("a font", vec!["the game", "the server"], 2)])?;'), "SC0913", "2")
    ready.run(f'chooser.save_pretrained("{tmp_path}/chooser")?;')
    config = json.loads((tmp_path / "chooser" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForMultipleChoice"]


def test_texts_have_vectors(kernel):
    """Those of the reference, up to its limit; `embed` cuts at 512 tokens, so the text that was cut at 128 is left out."""
    reference = json.loads((pathlib.Path(__file__).parent / "parity/minilm/sentences.json").read_text(encoding="utf-8"))
    chosen = [row for row, sentence in enumerate(reference["sentences"]) if not sentence["text_pair"] and sentence["length"] < 128 and sentence["text"]]
    assert len(chosen) >= 4
    texts = ", ".join(json.dumps(reference["sentences"][row]["text"], ensure_ascii=False) for row in chosen)
    # Control characters as Rust writes them.
    texts = re.sub(r"\\u([0-9a-f]{4})", r"\\u{\1}", texts)
    kernel.run('let encoder = BertForSentenceEmbedding::from_pretrained("all-MiniLM-L6-v2")?;')
    assert "vectors of 384 numbers" in kernel.run(f"let found = encoder.embed([{texts}])?; found").shown()
    vectors = json.loads(kernel.run('println!("{:?}", found.vectors);').stream())
    for row, vector in zip(chosen, vectors, strict=True):
        expected = reference["embedding_f32"][row]
        assert max(abs(a - b) for a, b in zip(vector, expected, strict=True)) < 2e-6
    cell = kernel.run("""let packages = encoder.embed(["a server for mail", "a game of chess"])?;
packages.nearest(&encoder.embed("send e-mail")?, 1)?[0][0].text.clone()""")
    assert "a server for mail" in cell.shown()
    check_static_html(kernel.run("packages").shown("text/html"))
    check_card(kernel.execute('encoder.predict("a")?'), "SC0103", "embed")
    check_card(kernel.execute(f"compile!(encoder, optimizer = AdamW::new(1e-4), {ENTROPY})?;"), "SC0103", "a loss of numbers")


def test_vectors_learn_from_pairs(kernel, tmp_path):
    kernel.run("""let pairs = Dataset::from_examples([
    Example::new("send e-mail").with_pair("a server for mail").with_label(Label::Value(0.0)),
    Example::new("send e-mail").with_pair("a game of chess").with_label(Label::Value(1.0)),
], Vec::new(), "the wrong way round");
let two = MirroredStrategy::logical(2)?;
let packages = ["a server for mail", "a game of chess"];""")
    kernel.run("""scope!(two, {
    let encoder = BertForSentenceEmbedding::from_pretrained("all-MiniLM-L6-v2")?;
    compile!(encoder, optimizer = AdamW::new(1e-4), loss = "mse", metrics = [pearson()])?;
});""")
    nearest = 'encoder.embed(packages)?.nearest(&encoder.embed("send e-mail")?, 1)?[0][0].text.clone()'
    assert "a server for mail" in kernel.run(nearest).shown()
    history = kernel.run("let history = fit!(encoder, pairs, batch_size = 2, epochs = 8)?; history").shown()
    assert "pearson" in history, history
    assert "a game of chess" in kernel.run(nearest).shown()
    kernel.run(f'encoder.save_pretrained("{tmp_path}/encoder")?;')
    config = json.loads((tmp_path / "encoder" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertModel"]
    check_card(kernel.execute("fit!(encoder, Dataset::from_texts(packages))?"), "SC0431", "pairs of texts")


def test_masks_are_filled_in(ready, tiny, tmp_path):
    ready.run("""let texts = Dataset::from_texts((0..48).map(|row| {
    vec![["game", "server", "library"][row % 3]; 6].join(" ")
}));""")
    ready.run(f"""scope!(strategy, {{
    let lm = BertForMaskedLM::from_pretrained("{tiny}")?;
    lm.set_masking(Masking {{ share: 0.2, whole_words: true }})?;
    compile!(lm, optimizer = AdamW::new(5e-3), {ENTROPY}, metrics = ["perplexity", "accuracy"])?;
}});""")
    history = ready.run("let history = fit!(lm, texts, validation_data = texts, batch_size = 8, epochs = 30)?; history").shown()
    assert "perplexity" in history, history
    cell = ready.run('lm.fill(["server server [MASK] server", "game [MASK] game game"])?')
    assert "server server [server] server" in cell.shown() and "game [game] game game" in cell.shown(), cell.shown()
    html = cell.shown("text/html")
    check_static_html(html)
    assert "server</span>" in html and "probability" in html
    check_card(ready.execute('lm.fill("server server")?'), "SC0103", "[MASK]")
    ready.run(f'lm.save_pretrained("{tmp_path}/lm")?;')
    config = json.loads((tmp_path / "lm" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForMaskedLM"]
    ready.run(f'BertForSequenceClassification::from_pretrained("{tmp_path}/lm", 2)?;')


def test_answers_stand_in_their_texts(ready):
    check_card(ready.execute('Dataset::from_questions([("tool", "a game", "server")])?;'), "SC0432", "is not in its context")
    check_card(ready.execute("fit!(answerer, texts)?;"), "SC0431", "questions with answers")


def test_a_modernbert_is_trained_watched_and_resumed(ready, tmp_path):
    """The texts are longer than its windows, which reach 4 tokens to either side."""
    folder = pathlib.Path(__file__).parent / "parity/families/modernbert"
    ready.run("""let packages = Dataset::from_labelled((0..33).map(|row| {
    let (label, words) = [("game", "a chess game for two players"), ("mail", "a server that sends mail"), ("font", "letters with serifs")][row % 3];
    (format!("{words}, version {row}"), label)
}));""")
    ready.run(f"""let modern = BertForSequenceClassification::from_pretrained_labels("{folder}", packages.label_names.clone())?;
compile!(modern, optimizer = AdamW::new(2e-3), {ENTROPY}, metrics = ["accuracy"], strategy = none)?;""")
    summary = ready.run("modern.summary()").shown()
    # The first layer has no LayerNorm before its attention, and the last one has that of the model.
    for line in (r"layer\.0 +5 variables", r"layer\.1–2 +2 × 6 variables", r"layer\.3 +7 variables", r"pooler\.LayerNorm\.weight"):
        assert re.search(line, summary), summary
    history = ready.run(f'let history = fit!(modern, packages, batch_size = 8, epochs = 3, max_length = 48, seed = 1, checkpoint = "{tmp_path}/runs", every = 4)?; history').shown()
    assert "accuracy" in history and "warning" not in history, history
    placed = ready.run("placement(&modern)")
    assert "bert.encoder.layer.3" in placed.shown(), placed.shown()
    check_static_html(placed.shown("text/html"))
    ready.run("let run = start!(modern, packages, batch_size = 8, max_length = 48, seed = 2)?;")
    assert "finite" in ready.run("run.why()?").shown()
    ready.run("drop(run);")
    # A run that goes on from the checkpoint of step 12 of 15 ends at the weights of the first.
    shutil.rmtree(tmp_path / "runs" / "step-15")
    ready.run(f"""let later = BertForSequenceClassification::from_pretrained_labels("{folder}", packages.label_names.clone())?;
compile!(later, optimizer = AdamW::new(2e-3), {ENTROPY}, metrics = ["accuracy"], strategy = none)?;
fit!(later, packages, batch_size = 8, epochs = 3, max_length = 48, seed = 1, resume_from = "{tmp_path}/runs")?;""")
    same = "format!(\"{}\", later.predict([\"a chess game\", \"a mail server\"])?.rows == {other}.predict([\"a chess game\", \"a mail server\"])?.rows)"
    assert "true" in ready.run(same.replace("{other}", "modern")).shown()
    ready.run(f'modern.save_pretrained("{tmp_path}/modern")?;')
    config = json.loads((tmp_path / "modern" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["ModernBertForSequenceClassification"]
    ready.run(f'let read = BertForSequenceClassification::from_pretrained("{tmp_path}/modern", 3)?;')
    assert "true" in ready.run(same.replace("{other}", "read")).shown()
    check_card(ready.execute("fit!(modern, packages, max_length = 65)?;"), "SC0401", "64")
