"""The placement report in a notebook: before and after a step, with activations, compared with a later one, with rings
and trees, and on the card of SC0201. HTML, text and data of one bundle show the same facts."""

import html
import json
import re

import pytest

from kernel_client import DIAGNOSTIC, check_card, check_error, check_static_html

PLACEMENT = "application/vnd.stratoscope.placement+json"
DIFF = "application/vnd.stratoscope.placement-diff+json"
KIB = 1024


def compile_cell(tiny, name="model", scope="strategy"):
    return f"""scope!({scope}, {{
    let {name} = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;
    compile!({name},
        optimizer = AdamW::new(1e-3),
        loss = SparseCategoricalCrossentropy {{ from_logits: true }},
    )?;
}});"""


@pytest.fixture(scope="module")
def before(kernel, tiny):
    """The bundle before the first step; the report stays in the notebook as `before`."""
    kernel.run("let (train, dev) = debian_sections()?;\nlet train = train.take(16);")
    kernel.run("let strategy = MirroredStrategy::logical(2)?.cross_device_ops(CrossDeviceOps::Ring);")
    kernel.run(compile_cell(tiny))
    kernel.run("let before = placement_of(&model)?;")
    return shown(kernel.run("placement(&model);"), PLACEMENT)


@pytest.fixture(scope="module")
def after(kernel, before):
    """The bundle after two steps; the report stays in the notebook as `after`."""
    kernel.run("let history = fit!(model, train, epochs = 1, batch_size = 8, max_length = 16, seed = 3)?;")
    kernel.run("let after = placement_of(&model)?;")
    return shown(kernel.run("placement(&model);"), PLACEMENT)


def shown(cell, mime):
    """The one bundle of a cell that has data of this type."""
    (bundle,) = [bundle for bundle in cell.bundles if mime in bundle]
    check_static_html(bundle["text/html"])
    widest = max(map(len, bundle["text/plain"].splitlines()))
    assert widest <= 80, f"{widest} columns:\n{bundle['text/plain']}"
    return bundle


def bare(text):
    """The words of HTML or text: no tags, no entities, no marks for code, single spaces."""
    text = html.unescape(re.sub(r"<[/a-z][^>]*>", "", text)).replace("\u200e", "").replace("`", "")
    return " ".join(text.split())


def both(bundle):
    """The words of HTML and text."""
    return bare(bundle["text/html"]), bare(bundle["text/plain"])


def test_before_a_step_it_is_a_plan(before):
    report = before[PLACEMENT]
    assert report["verdict"] == f"{len(report['variables'])} variables, equal on all 2 replicas"
    assert [part["name"] for part in report["parts"]] == ["weights", "gradients", "Adam m", "Adam v"]
    assert [part["state"] for part in report["parts"]] == ["measured", "planned", "planned", "planned"]
    (collective,) = report["collectives"]
    assert (collective["ops"], collective["state"]) == ("ring", "planned")
    for text in both(before):
        for part in (report["verdict"], "planned", "logical", "Mirrored", "gradients, ring", "hop 1"):
            assert part in text, part


def test_after_a_step_it_is_measured(before, after):
    report = after[PLACEMENT]
    assert {part["state"] for part in report["parts"]} == {"measured"}
    weights = sum(variable["bytes"] for variable in report["variables"])
    for device in report["devices"]:
        # Every variable is trained: weights, gradients and both moments have the same size.
        assert device["bytes"] == [weights] * 4 and device["sum"] == 4 * weights
        assert device["kind"] == "logical"
    (measured,), (planned,) = report["collectives"], before[PLACEMENT]["collectives"]
    assert measured["state"] == "measured"
    assert measured["hops"] == planned["hops"], "it was planned as it was done"
    # Two replicas: each sends half to the other, twice.
    assert measured["moved_bytes"] == 2 * weights
    assert report["totals"]["all_reduces"] == 2
    for text in both(after):
        assert "so far: 2 all-reduces" in text
        assert "planned" not in text


def test_every_copy_has_a_checksum(before, after):
    sums = [{v["name"]: v["checksums"] for v in bundle[PLACEMENT]["variables"]} for bundle in (before, after)]
    for name, checksums in sums[1].items():
        assert len(checksums) == 2 and len(set(checksums)) == 1, name
    changed = [name for name in sums[0] if sums[0][name] != sums[1][name]]
    assert len(changed) > 30, "training changed the weights"
    # They begin with the digits shown.
    for checksums in sums[1].values():
        assert checksums[0][:6] in after["text/html"]


def test_data_and_card_are_small(before, after):
    for bundle in (before, after):
        sizes = len(bundle["text/html"]), len(json.dumps(bundle[PLACEMENT]))
        assert sizes[0] < 60 * KIB and sizes[1] < 16 * KIB, sizes


def test_activations_are_shown_if_asked_for(kernel, after):
    for text in both(after):
        assert "activations" not in text
    bundle = shown(kernel.run("placement_of(&model)?.activations()"), PLACEMENT)
    report = bundle[PLACEMENT]
    assert report["parts"][-1] == {"name": "activations", "state": "estimated"}
    layers = report["activations"]["layers"]
    assert [layer["layer"] for layer in layers] == ["bert.encoder.layer.0", "bert.encoder.layer.1"]
    for index, device in enumerate(report["devices"]):
        assert device["bytes"][-1] == sum(layer["bytes"][index] for layer in layers) > 0
    for text in both(bundle):
        assert "estimated from the sizes of the layers, for the last batch: 4 ×" in text
        assert "tokens on each replica" in text


def test_before_and_after_a_step(kernel, after):
    bundle = shown(kernel.run("placement_diff(&before, &after)"), DIFF)
    diff = bundle[DIFF]
    assert diff["moved"] == 0 and diff["changed"] > 30
    for text in both(bundle):
        assert diff["verdict"] in text
        assert "none moved" in text and "changed" in text


def test_before_and_after_a_change_of_strategy(kernel, tiny, after):
    kernel.run("let alone = OneDeviceStrategy::new(cpu(0))?;")
    kernel.run(compile_cell(tiny, "single", "alone"))
    bundle = shown(kernel.run("placement_diff(&placement_of(&single)?, &after)"), DIFF)
    diff = bundle[DIFF]
    assert diff["moved"] == len(after[PLACEMENT]["variables"])
    assert {row["before"]["kind"] for row in diff["rows"]} == {"Local"}
    assert {row["after"]["kind"] for row in diff["rows"]} == {"Mirrored"}
    for text in both(bundle):
        assert "moved from Local to Mirrored" in text
        assert "Local → Mirrored" in text and "cpu:0 → cpu:0, cpu:1" in text
    kernel.run("drop(alone);")


@pytest.mark.parametrize(("ops", "hops"), [("Ring", 6), ("Tree", 4), ("Centralized", 2)])
def test_transfers_between_devices(kernel, tiny, after, ops, hops):
    kernel.run(f"let four = MirroredStrategy::logical(4)?.cross_device_ops(CrossDeviceOps::{ops});")
    kernel.run(compile_cell(tiny, "drawn", "four"))
    bundle = shown(kernel.run("placement(&drawn);"), PLACEMENT)
    (collective,) = bundle[PLACEMENT]["collectives"]
    assert collective["hop_count"] == hops
    payload = collective["payload_bytes"]
    # The chunks of the ring have rounded sizes that add up to the whole.
    assert collective["moved_bytes"] == 2 * 3 * payload
    assert sum(collective["traffic"]) == 2 * collective["moved_bytes"]
    for text in both(bundle):
        assert f"gradients, {ops.lower()}:" in text
        assert f"{hops} hops, one after the other" in text
    # In text the arrows run between the lifelines of four devices.
    lanes = [line for line in bundle["text/plain"].splitlines() if "►" in line or "◄" in line]
    assert lanes and all(line.count("│") + line.count("─") > 10 for line in lanes)
    kernel.run("drop(four);")


def test_the_card_of_a_model_outside_has_the_same_grid(kernel, tiny, after):
    made = kernel.run(f'let outside = BertForSequenceClassification::from_pretrained("{tiny}", 8)?;')
    code = "compile!(outside, optimizer = AdamW::new(1e-3), " \
           "loss = SparseCategoricalCrossentropy { from_logits: true })?;"
    cell = kernel.execute(code)
    check_error(cell, "SC0201")
    card = check_card(cell, "SC0201")
    figure = card[DIAGNOSTIC]["figure"]
    check_static_html(figure["html"])
    assert figure["html"] in card["text/html"]
    for text in bare(figure["html"]), bare(figure["plain"]):
        for part in ("variable kind shape one copy", "bert.encoder.layer.1", "outside", "no copy",
                     f"cell {made.number}"):
            assert part in text, f"{part!r} is not in {text}"
    # In the same columns as the report's own grid, which is not red.
    own = after["text/html"]
    for head in ("variable </span>", "kind </span>", "shape </span>", "one copy </span>"):
        style = re.search(r'<span[^>]*style="([^"]*)"[^>]*>' + re.escape(head), figure["html"])
        assert style and style[1] in own, head
    assert len(json.dumps(card[DIAGNOSTIC])) < 40 * KIB, "the figure travels with every card"
