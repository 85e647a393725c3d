//! Placement of a module with a BERT's names: kinds, copies, checksums and the three renderings.

mod encoder;

use std::fs;
use std::path::Path;

use encoder::{Encoder, named};
use stratoscope_strategy::placement::SlotState;
use stratoscope_strategy::{
    AsStrategy, MirroredStrategy, OneDeviceStrategy, Origin, PlacementReport, Replicas,
    VariableKind, cpu, scope,
};

fn made_at(cell: u64, line: u32) -> Origin {
    Origin {
        cell: Some(cell),
        line: Some(line),
        file: None,
    }
}

fn placed(strategy: &impl AsStrategy, layers: usize) -> Replicas<Encoder> {
    let _scope = scope::enter(strategy).expect("no scope is active");
    let module = Encoder::new(layers, &scope::device().expect("a processor"));
    let names = named(&module);
    Replicas::place(module, &names, made_at(3, 7)).expect("the processor takes copies")
}

fn outside(layers: usize) -> Replicas<Encoder> {
    let module = Encoder::new(layers, &scope::device().expect("a processor"));
    let names = named(&module);
    Replicas::place_under(None, module, &names, made_at(2, 1)).expect("the processor takes a copy")
}

/// Writes what people look at: `target/tmp/placement/*.html`.
fn show(name: &str, report: &PlacementReport) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("placement");
    fs::create_dir_all(&folder).expect("a folder under target");
    fs::write(folder.join(format!("{name}.html")), report.to_html()).expect("a file under target");
    fs::write(folder.join(format!("{name}.txt")), report.to_plain()).expect("a file under target");
}

#[test]
fn mirrored_variables_have_a_copy_per_replica() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let replicas = placed(&strategy, 1);
    let label = strategy.strategy().label();
    let why = format!("made in the scope of `{label}`: a copy on each of its 2 replicas");
    let found: Vec<(&str, &[usize], u64)> = replicas
        .records()
        .iter()
        .map(|r| (r.name.as_str(), r.shape.as_slice(), r.bytes))
        .collect();
    let expected: [(&str, &[usize], u64); 7] = [
        ("bert.embeddings.word_embeddings.weight", &[11, 4], 176),
        ("bert.encoder.layer.0.attention.weight", &[4, 4], 64),
        ("bert.encoder.layer.0.attention.bias", &[4], 16),
        ("bert.encoder.layer.0.LayerNorm.weight", &[4], 16),
        ("bert.encoder.layer.0.LayerNorm.bias", &[4], 16),
        ("classifier.weight", &[4, 3], 48),
        ("classifier.bias", &[3], 12),
    ];
    assert_eq!(found, expected);
    for record in replicas.records() {
        assert_eq!(
            (record.kind, record.why.as_str()),
            (VariableKind::Mirrored, why.as_str())
        );
        assert_eq!(record.origin.to_string(), "cell 3, line 7");
        assert_eq!((record.dtype.as_str(), record.trainable), ("f32", true));
        assert_eq!(record.strategy, Some(strategy.strategy().id()));
    }
    let report = PlacementReport::of(&replicas)
        .expect("checksums")
        .planned("gradients");
    assert_eq!(report.verdict(), "7 variables, equal on all 2 replicas");
    for device in 0..2 {
        let totals = report.device_totals(device);
        assert_eq!(
            (totals.weights, totals.slots.as_slice()),
            (348, [348].as_slice())
        );
    }
    let [row] = report.collectives.as_slice() else {
        panic!("one kind of collective")
    };
    assert_eq!((row.tensors, row.bytes, row.moved_bytes), (7, 348, 696));
    assert_eq!(row.state, SlotState::Planned);
}

#[test]
fn one_device_and_no_scope_have_local_variables() {
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    let replicas = placed(&one, 1);
    assert_eq!(replicas.len(), 1);
    assert!(
        replicas
            .records()
            .iter()
            .all(|r| r.kind == VariableKind::Local)
    );
    let report = PlacementReport::of(&replicas).expect("checksums");
    assert_eq!(report.verdict(), "7 variables, one copy each");
    assert!(report.collectives.is_empty(), "one replica reduces nothing");

    let replicas = outside(1);
    assert!(replicas.records().iter().all(|r| r.strategy.is_none()));
    assert_eq!(
        replicas.records()[0].why,
        "made outside any scope: one copy, on the processor"
    );
}

#[test]
fn variables_outside_are_red() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let report = PlacementReport::outside(&outside(1), &strategy.strategy())
        .expect("checksums")
        .titled("Model");
    assert_eq!(report.verdict(), "7 variables are outside `mirrored`");
    let names: Vec<&str> = report.devices.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(
        names,
        ["cpu:0", "cpu:1"],
        "the processor is the first share's memory too"
    );
    assert_eq!(report.device_totals(0).weights, 348);
    assert_eq!(report.device_totals(1).weights, 0);
    let figure = report.figure();
    let short = report.variables[6].copies[0].checksum.short();
    let line = figure.plain.lines().last().expect("a line per variable");
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        [
            "✗",
            "classifier.bias",
            "outside",
            "3",
            "12",
            "B",
            &short,
            "no",
            "copy",
            "cell",
            "2,",
            "line",
            "1"
        ]
    );
    assert_eq!(figure.html.matches("no copy</span>").count(), 7);
    show("outside-small", &report);
}

#[test]
fn a_difference_is_seen() {
    let strategy = MirroredStrategy::logical(3).expect("three logical devices");
    let mut replicas = placed(&strategy, 1);
    let changed = replicas.modules()[1].clone().with_other_bias();
    replicas.modules_mut()[1] = changed;
    let report = PlacementReport::of(&replicas).expect("checksums");
    assert!(!report.copies_are_equal());
    assert_eq!(
        report.verdict(),
        "1 of 7 variables differs between replicas"
    );
    assert!(
        report.to_plain().contains("≠ classifier.bias"),
        "{}",
        report.to_plain()
    );
    show("different", &report);
    replicas.broadcast().expect("the processor takes copies");
    let report = PlacementReport::of(&replicas).expect("checksums");
    assert_eq!(report.verdict(), "7 variables, equal on all 3 replicas");
}

#[test]
fn hundreds_fold_by_layer() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let replicas = placed(&strategy, 50);
    let report = PlacementReport::of(&replicas)
        .expect("checksums")
        .titled("BertForSequenceClassification")
        .planned("gradients")
        .planned("Adam m")
        .planned("Adam v");
    assert_eq!(report.variables.len(), 203);
    let html = report.to_html();
    assert_eq!(
        html.matches("<details").count(),
        51,
        "50 layers and the classifier"
    );
    assert_eq!(html.matches("<details open").count(), 0);
    let plain = report.to_plain();
    assert!(plain.contains("bert.encoder.layer.49"), "{plain}");
    assert!(plain.lines().count() < 70, "{plain}");
    assert!(
        plain.lines().all(|line| line.chars().count() <= 100),
        "{plain}"
    );
    show("folded", &report);
    let measured = PlacementReport::of(&replicas)
        .expect("checksums")
        .titled("BertForSequenceClassification")
        .measured("gradients", |_| Some(4))
        .measured("Adam m", |_| Some(4))
        .measured("Adam v", |_| None);
    assert_eq!(measured.device_totals(1).slots, [4 * 203, 4 * 203, 0]);
    show("measured", &measured);
    show(
        "outside",
        &PlacementReport::outside(&outside(6), &strategy.strategy()).expect("checksums"),
    );
}

#[test]
fn many_devices_share_a_column() {
    let strategy = MirroredStrategy::logical(12).expect("twelve logical devices");
    let report = PlacementReport::of(&placed(&strategy, 2))
        .expect("checksums")
        .titled("Twelve");
    assert_eq!(report.verdict(), "11 variables, equal on all 12 replicas");
    assert!(
        report.to_plain().contains("12 of 12, equal"),
        "{}",
        report.to_plain()
    );
    show("twelve", &report);
}

#[test]
fn html_is_static_and_escaped() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let report = PlacementReport::of(&placed(&strategy, 1))
        .expect("checksums")
        .titled("<script>alert('&')</script>")
        .planned("\"quoted\"");
    let html = report.to_html();
    for word in [
        "<script",
        "<style",
        "<svg",
        "class=",
        "rgba(",
        "var(--",
        "\"\"quoted",
    ] {
        assert!(!html.contains(word), "{word} in {html}");
    }
    assert!(html.contains("&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"));
    assert_eq!(html.matches("<div").count(), html.matches("</div>").count());
    assert_eq!(
        html.matches("<span").count(),
        html.matches("</span>").count()
    );
}

#[test]
fn json_has_the_data_and_what_follows_from_it() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let report = PlacementReport::of(&placed(&strategy, 1))
        .expect("checksums")
        .planned("gradients");
    let value = report.to_json();
    assert_eq!(value["verdict"], "7 variables, equal on all 2 replicas");
    assert_eq!(value["device_totals"][1]["sum"], 696);
    assert_eq!(value["devices"][1]["kind"], "logical");
    assert_eq!(value["variables"][6]["name"], "classifier.bias");
    let copies = &value["variables"][6]["copies"];
    assert_eq!(copies[0]["checksum"], copies[1]["checksum"]);
    assert_eq!(copies[0]["checksum"].as_str().map(str::len), Some(16));
    let back: PlacementReport = serde_json::from_value(value).expect("what was written");
    assert_eq!(back.to_plain(), report.to_plain());
}
