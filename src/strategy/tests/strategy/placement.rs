//! Placement of a module with a BERT's names: kinds, copies, checksums and the three renderings.

use std::fs;
use std::path::Path;

use crate::encoder::{Encoder, named};
use stratoscope_strategy::placement::{Phase, SlotState, Timeline};
use stratoscope_strategy::{
    AsStrategy, CentralStorageStrategy, CrossDeviceOps, MirroredStrategy, OneDeviceStrategy,
    Origin, ParameterServerStrategy, PlacementReport, Replicas, TpuStrategy, VariableKind, cpu,
    scope,
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

fn made_outside(layers: usize) -> Replicas<Encoder> {
    let module = Encoder::new(layers, &scope::device().expect("a processor"));
    let names = named(&module);
    Replicas::place_under(None, module, &names, made_at(2, 1)).expect("the processor takes a copy")
}

/// Writes what people look at: `target/tmp/placement/*.html`.
fn show(name: &str, report: &PlacementReport) {
    write(name, &report.to_html(), &report.to_plain());
}

fn write(name: &str, html: &str, plain: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("placement");
    fs::create_dir_all(&folder).expect("a folder under target");
    fs::write(folder.join(format!("{name}.html")), html).expect("a file under target");
    fs::write(folder.join(format!("{name}.txt")), plain).expect("a file under target");
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
    let [timeline] = report.collectives.as_slice() else {
        panic!("one collective")
    };
    assert_eq!((timeline.payload_bytes, timeline.moved_bytes()), (348, 696));
    assert_eq!(timeline.state, SlotState::Planned);
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

    let replicas = made_outside(1);
    assert!(replicas.records().iter().all(|r| r.strategy.is_none()));
    assert_eq!(
        replicas.records()[0].why,
        "made outside any scope: one copy, on the default device"
    );
}

#[test]
fn variables_outside_are_red() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let report = PlacementReport::unplaced(&made_outside(1), &strategy.strategy())
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
    let expected = "variable                        kind     shape       one copy  cpu:0   cpu:1\n\
                    ✗ …ddings.word_embeddings.weight  outside  f32 11 × 4     176 B  ######  no copy";
    let first: Vec<String> = figure.plain.lines().take(2).map(squeezed).collect();
    let expected: Vec<String> = expected.lines().map(squeezed).collect();
    assert_eq!(first[0], expected[0]);
    assert!(first[1].starts_with("✗ …"), "{}", first[1]);
    assert!(
        first[1].ends_with("outside f32 11 × 4 176 B ###### no copy"),
        "{}",
        first[1]
    );
    assert!(
        figure.plain.ends_with("made at cell 2, line 1"),
        "{}",
        figure.plain
    );
    assert_eq!(figure.html.matches("no copy</span>").count(), 7);
    assert!(
        figure.html.contains("no copy here"),
        "the device's block says so too"
    );
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
    // A notebook keeps all of it.
    assert!(html.len() < 220_000, "{} bytes", html.len());
    let json = report.to_json().to_string();
    assert!(json.len() < 80_000, "{} bytes", json.len());
    let figure = report.figure().html;
    assert!(figure.len() < html.len(), "{} bytes", figure.len());
    let plain = report.to_plain();
    assert!(plain.contains("bert.encoder.layer.49"), "{plain}");
    assert!(plain.lines().count() < 85, "{plain}");
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
        &PlacementReport::unplaced(&made_outside(6), &strategy.strategy()).expect("checksums"),
    );
}

#[test]
fn many_devices_share_a_column() {
    let strategy = MirroredStrategy::logical(12).expect("twelve logical devices");
    let report = PlacementReport::of(&placed(&strategy, 2))
        .expect("checksums")
        .titled("Twelve");
    assert_eq!(report.verdict(), "11 variables, equal on all 12 replicas");
    let plain = report.to_plain();
    assert!(plain.contains("12 of 12 equal"), "{plain}");
    assert!(report.to_html().contains("●●●●●●●●●●●●</span>"));
    show("twelve", &report);
}

/// A report of every shape that there is.
fn gallery() -> Vec<(&'static str, PlacementReport)> {
    let slots = |report: PlacementReport| {
        let report = report.titled("BertForSequenceClassification");
        report
            .planned("gradients")
            .planned("Adam m")
            .planned("Adam v")
    };
    let of = |strategy: &dyn AsStrategy, layers| {
        let replicas = placed(&strategy.strategy(), layers);
        slots(PlacementReport::of(&replicas).expect("checksums"))
    };
    let mut gallery = Vec::new();
    for (name, count, ops) in [
        ("ring-2", 2, CrossDeviceOps::Ring),
        ("tree-4", 4, CrossDeviceOps::Tree),
        ("ring-8", 8, CrossDeviceOps::Ring),
        ("tree-8", 8, CrossDeviceOps::Tree),
        ("centralized-8", 8, CrossDeviceOps::Centralized),
    ] {
        let strategy = MirroredStrategy::logical(count).expect("logical devices");
        gallery.push((name, of(&strategy.cross_device_ops(ops), 1)));
    }
    let central = CentralStorageStrategy::logical(3).expect("logical devices");
    gallery.push(("central", of(&central, 1)));
    let servers = ParameterServerStrategy::logical(3, 2).expect("logical devices");
    gallery.push(("servers", of(&servers, 4)));
    let tpu = TpuStrategy::simulated().expect("eight cores");
    gallery.push(("tpu", of(&tpu, 1)));
    let one = OneDeviceStrategy::new(cpu(0)).expect("a processor");
    gallery.push(("one", of(&one, 4)));
    let note = "estimated by a formula";
    let active = of(&MirroredStrategy::logical(2).expect("logical devices"), 4);
    gallery.push((
        "active",
        active
            .estimated_activations(note, &[4096, 2048])
            .activations(),
    ));
    gallery.push((
        "nowhere",
        slots(PlacementReport::of(&made_outside(4)).expect("checksums")),
    ));
    let two = MirroredStrategy::logical(2).expect("two logical devices");
    let red = PlacementReport::unplaced(&made_outside(4), &two.strategy()).expect("checksums");
    gallery.push(("red", red));
    gallery
}

/// The three renderings are drawn from the same rows: what one tells, all tell.
#[test]
fn the_three_renderings_tell_the_same() {
    for (name, report) in gallery() {
        show(name, &report);
        let (html, plain, json) = (report.to_html(), report.to_plain(), report.to_json());
        let texts = [&html, &plain, &json.to_string()];
        // A sentence may be wrapped, and a name in backticks is set as code.
        let bare: Vec<String> = texts.iter().map(|text| bare(text)).collect();
        let mut facts = vec![report.verdict()];
        facts.extend(
            report
                .strategy
                .iter()
                .map(|strategy| strategy.description.clone()),
        );
        for device in &report.devices {
            facts.extend([device.name.clone(), device.kind.word().to_owned()]);
        }
        for row in &report.variables {
            facts.push(row.kind.title().to_owned());
            facts.push(row.why.clone());
            facts.push(row.origin.to_string());
        }
        facts.extend(report.slots.iter().map(|slot| slot.name.clone()));
        for timeline in &report.collectives {
            facts.push(timeline.name.clone());
            facts.push(timeline.ops.title().to_owned());
        }
        for fact in facts.iter().map(|fact| self::bare(fact)) {
            // What is outside is not called by its kind in a grid.
            if fact == "Local" && report.variables_outside() > 0 {
                continue;
            }
            for text in &bare {
                assert!(text.contains(&fact), "{name}: {fact:?} is not in\n{text}");
            }
        }
        // Every variable, with its checksums; text folds layers, and has the digits of the others.
        let variables = json["variables"].as_array().expect("a list");
        assert_eq!(variables.len(), report.variables.len(), "{name}");
        for (value, row) in variables.iter().zip(&report.variables) {
            assert_eq!(value["name"], row.name.as_str());
            let last = row.name.rsplit('.').next().expect("a name");
            assert!(html.contains(last), "{name}: {}", row.name);
            for copy in &row.copies {
                let digits = copy.checksum.to_string();
                assert_eq!(value["checksums"][copy.device], digits.as_str(), "{name}");
            }
        }
        assert!(
            plain.lines().all(|line| line.chars().count() <= 80),
            "{name} is wider than a terminal:\n{plain}"
        );
    }
}

/// Without tags, entities and marks for code, and with single spaces.
fn bare(text: &str) -> String {
    let mut bare = String::new();
    let mut inside = false;
    for (at, character) in text.char_indices() {
        match character {
            // `< 0.1 %` is no tag.
            '<' if !text[at + 1..].starts_with(' ') => inside = true,
            '>' if inside => inside = false,
            '`' => {}
            _ if inside => {}
            other => bare.push(other),
        }
    }
    let bare = bare.replace("&lrm;", "");
    let bare = bare.replace("&#39;", "'").replace("&lt;", "<");
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Single spaces, and six hexadecimal digits as `######`: they differ from run to run.
fn squeezed(line: &str) -> String {
    let is_sum = |word: &str| word.len() == 6 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = line.split_whitespace();
    let words: Vec<&str> = words
        .map(|word| if is_sum(word) { "######" } else { word })
        .collect();
    words.join(" ")
}

/// What stands below the grid of a report: who sends what to whom.
fn drawn(count: usize, ops: CrossDeviceOps) -> (Timeline, String) {
    let strategy = MirroredStrategy::logical(count).expect("logical devices");
    let replicas = placed(&strategy.cross_device_ops(ops), 1);
    let report = PlacementReport::of(&replicas).expect("checksums");
    let plain = report.to_plain();
    let (_, timeline) = plain
        .split_once("every optimizer step: ")
        .expect("a timeline");
    let timeline: Vec<&str> = timeline.lines().map(str::trim_end).collect();
    (report.collectives[0].clone(), timeline.join("\n"))
}

#[test]
fn a_timeline_is_read_like_a_picture() {
    let (_, ring) = drawn(4, CrossDeviceOps::Ring);
    assert_eq!(
        ring,
        "\
gradients, ring: 348 B on each of 4 replicas (planned)
     cpu:0       cpu:1       cpu:2       cpu:3
hops 1–3, 4 messages of 88 B in each: each sends a piece to the next, which adds
to it
        │──────────►│──────────►│──────────►│
        │◄──────────────────────────────────│
hops 4–6, 4 messages of 88 B in each: the finished pieces go round until each
has all
        │──────────►│──────────►│──────────►│
        │◄──────────────────────────────────│
6 hops, one after the other; 2.04 KiB in all, every device sends and receives
1.02 KiB"
    );
    let (_, tree) = drawn(4, CrossDeviceOps::Tree);
    assert_eq!(
        tree,
        "\
gradients, tree: 348 B on each of 4 replicas (planned)
     cpu:0       cpu:1       cpu:2       cpu:3
hop 1, 2 messages of 348 B: in pairs: one sends, one adds
        │◄──────────│           │◄──────────│
hop 2, 348 B: in pairs: one sends, one adds
        │◄──────────────────────│           │
hop 3, 348 B: the sum goes back
        │──────────────────────►│           │
hop 4, 2 messages of 348 B: the sum goes back
        │──────────►│           │──────────►│
4 hops, one after the other; 2.04 KiB in all, a device sends and receives 696 B
to 1.36 KiB"
    );
    let (_, two) = drawn(2, CrossDeviceOps::Centralized);
    assert_eq!(
        two,
        "\
gradients, centralized: 348 B on each of 2 replicas
(planned)
     cpu:0       cpu:1
hop 1, 348 B: from `cpu:1` to `cpu:0`
        │◄──────────│
hop 2, 348 B: from `cpu:0` to `cpu:1`
        │──────────►│
2 hops, one after the other; 696 B in all, every device sends and receives 696 B"
    );
}

/// Hops, bytes and the busiest device against the closed formulas: payload P on R replicas.
#[test]
fn timelines_keep_the_formulas() {
    const PAYLOAD: u64 = 348;
    for count in [2_usize, 3, 4, 8] {
        let others = count as u64 - 1;
        for ops in CrossDeviceOps::ALL {
            let (timeline, _) = drawn(count, ops);
            let case = format!("{} of {count}", ops.title());
            assert_eq!(timeline.moved_bytes(), 2 * others * PAYLOAD, "{case}");
            let hops = match ops {
                CrossDeviceOps::Ring | CrossDeviceOps::Chain => 2 * (count - 1),
                CrossDeviceOps::Tree => 2 * count.next_power_of_two().ilog2() as usize,
                CrossDeviceOps::Centralized => 2,
            };
            assert_eq!(timeline.hop_count(), hops, "{case}");
            let sums = timeline.hops.iter().filter(|hop| hop.phase == Phase::Sum);
            assert_eq!(
                sums.map(|hop| hop.count()).sum::<usize>(),
                hops / 2,
                "{case}"
            );
            let through: u64 = timeline.traffic.iter().sum();
            assert_eq!(
                through,
                2 * timeline.moved_bytes(),
                "each byte has two ends: {case}"
            );
            let busiest = timeline.traffic.iter().max().copied().expect("replicas");
            if ops == CrossDeviceOps::Centralized {
                assert_eq!(busiest, 2 * others * PAYLOAD, "{case}");
            }
        }
    }
}

#[test]
fn a_step_is_measured_afterwards() {
    let strategy = MirroredStrategy::logical(3).expect("three logical devices");
    let replicas = placed(&strategy.cross_device_ops(CrossDeviceOps::Ring), 1);
    let planned = PlacementReport::of(&replicas)
        .expect("checksums")
        .collectives;
    replicas.begin_step();
    let gradients = replicas.modules().iter();
    let gradients = gradients
        .map(|module| crate::encoder::constant_gradients(module, 1.0))
        .collect();
    replicas
        .all_reduce(gradients, &[1, 1, 1])
        .expect("one set per replica");
    let report = PlacementReport::of(&replicas).expect("checksums");
    let measured = &report.collectives;
    assert_eq!(measured[0].state, SlotState::Measured);
    assert_eq!(
        measured[0].hops, planned[0].hops,
        "it was planned as it was done"
    );
    assert_eq!(report.totals.all_reduces, 1);
    for text in [report.to_plain(), report.to_html()] {
        let text = bare(&text);
        assert!(
            text.contains("so far: 1 all-reduce, 1.36 KiB between devices"),
            "{text}"
        );
        assert!(!text.contains("every optimizer step"), "{text}");
    }
}

#[test]
fn one_copy_for_all_is_not_missing_elsewhere() {
    let strategy = ParameterServerStrategy::logical(3, 2).expect("logical devices");
    let report = PlacementReport::of(&placed(&strategy, 1)).expect("checksums");
    assert_eq!(report.verdict(), "7 variables, one copy each");
    let names: Vec<&str> = report
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    assert_eq!(names.len(), 5, "three workers, two servers: {names:?}");
    assert!(
        report
            .variables
            .iter()
            .all(|row| row.kind == VariableKind::Central)
    );
    let held: Vec<u64> = (0..5)
        .map(|device| report.device_totals(device).weights)
        .collect();
    assert_eq!(held[..3], [0, 0, 0], "workers keep nothing");
    assert_eq!(held[3] + held[4], 348, "the servers keep it all, in turn");
    let (html, plain) = (report.to_html(), report.to_plain());
    assert!(
        !html.contains("no copy here") && !plain.contains("no copy"),
        "{plain}"
    );
    assert!(html.contains("keeps no variable") && html.contains("server 1"));
}

#[test]
fn activations_are_shown_if_asked_for() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let report = PlacementReport::of(&placed(&strategy, 4)).expect("checksums");
    let report = report.estimated_activations("estimated for 8 × 16 tokens", &[4096, 2048]);
    let before = report.device_totals(0);
    assert_eq!(before.activations, 0, "nobody asked");
    assert!(!report.to_plain().contains("activations"));
    let report = report.activations();
    assert_eq!(report.device_totals(0).sum(), before.sum() + 4096);
    assert_eq!(report.device_totals(1).activations, 2048);
    for text in [report.to_plain(), report.to_html()] {
        let text = bare(&text);
        assert!(text.contains("estimated for 8 × 16 tokens"), "{text}");
        assert!(text.contains("activations (estimated)"), "{text}");
        assert!(
            text.contains("1.00 KiB"),
            "a quarter for each of four layers: {text}"
        );
    }
}

#[test]
fn before_and_after() {
    let two = MirroredStrategy::logical(2).expect("two logical devices");
    let module = Encoder::new(4, &scope::device().expect("a processor"));
    let names = named(&module);
    let place = |strategy: Option<_>| {
        Replicas::place_under(strategy, module.clone(), &names, made_at(1, 1)).expect("a copy")
    };
    let (alone, mut mirrored) = (place(None), place(Some(two.strategy())));
    let report = |replicas: &Replicas<Encoder>| PlacementReport::of(replicas).expect("checksums");
    let (before, after) = (report(&alone), report(&mirrored));
    let diff = before.diff(&after);
    assert_eq!((diff.moved(), diff.changed()), (19, 0));
    assert_eq!(
        diff.verdict(),
        "19 of 19 variables moved from Local to Mirrored, values as before; 684 B → 1.34 KiB on all devices"
    );
    let rows: Vec<String> = diff.to_plain().lines().map(squeezed).collect();
    let layer = "bert.encoder.layer.3 4 112 B → 224 B same";
    assert!(rows.iter().any(|row| row == layer), "{rows:#?}");
    let way = "all of them: Local → Mirrored, cpu:0 → cpu:0, cpu:1";
    assert_eq!(rows.last().map(String::as_str), Some(way));
    assert!(
        diff.to_plain()
            .lines()
            .all(|line| line.chars().count() <= 80),
        "{rows:#?}"
    );
    assert_eq!(diff.to_json()["rows"][0]["before"]["kind"], "Local");
    let html = diff.to_html();
    assert!(html.contains("Local → <b>Mirrored</b>"), "{html}");
    write("diff", &html, &diff.to_plain());
    // The same place, other values.
    let changed = mirrored.modules()[0].clone().with_other_bias();
    for module in mirrored.modules_mut() {
        *module = changed.clone();
    }
    let diff = after.diff(&report(&mirrored));
    assert_eq!((diff.moved(), diff.changed()), (0, 1));
    let rows: Vec<String> = diff.to_plain().lines().map(squeezed).collect();
    let head = "classifier 2 120 B some changed";
    assert!(rows.iter().any(|row| row == head), "{rows:#?}");
}

#[test]
fn html_is_static_and_escaped() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let report = PlacementReport::of(&placed(&strategy, 1))
        .expect("checksums")
        .titled("<script>alert('&')</script>")
        .planned("\"quoted\"");
    let html = report.to_html();
    assert!(html.contains("&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"));
    let mut pages: Vec<(&str, String)> = gallery()
        .iter()
        .map(|(name, report)| (*name, report.to_html()))
        .collect();
    pages.push(("quoted", html));
    for (name, html) in pages {
        for word in [
            "<script",
            "<style",
            "<svg",
            "class=",
            "rgba(",
            "var(--",
            "\"\"quoted",
            ";;",
        ] {
            assert!(!html.contains(word), "{name}: {word} in {html}");
        }
        for tag in ["div", "span", "details", "summary", "b"] {
            let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
            let opened = html
                .match_indices(&open)
                .filter(|(at, _)| html[at + open.len()..].starts_with([' ', '>']));
            assert_eq!(
                opened.count(),
                html.matches(&close).count(),
                "{name}: {tag}"
            );
        }
    }
}

#[test]
fn json_has_the_rows_that_are_drawn() {
    let strategy = MirroredStrategy::logical(2).expect("two logical devices");
    let report = PlacementReport::of(&placed(&strategy, 1))
        .expect("checksums")
        .planned("gradients");
    let value = report.to_json();
    assert_eq!(value["verdict"], "7 variables, equal on all 2 replicas");
    assert_eq!(value["parts"][1]["state"], "planned");
    assert_eq!(value["devices"][1]["sum"], 696);
    assert_eq!(value["devices"][1]["bytes"], serde_json::json!([348, 348]));
    assert_eq!(value["devices"][1]["kind"], "logical");
    assert_eq!(value["origins"][0], "cell 3, line 7");
    assert_eq!(value["kinds"][0]["kind"], "Mirrored");
    let row = &value["variables"][6];
    assert_eq!(
        (row["name"].as_str(), row["origin"].as_u64()),
        (Some("classifier.bias"), Some(0))
    );
    assert_eq!(row["checksums"][0], row["checksums"][1]);
    assert_eq!(row["checksums"][0].as_str().map(str::len), Some(16));
    assert_eq!(value["collectives"][0]["ops"], "centralized");
    assert_eq!(value["collectives"][0]["hops"][0]["arrows"][0]["from"], 1);
}
