//! What holds for every card: front ends take nothing away, and text of others stays text.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::check::{CellContext, check_cell};
use crate::rules::{BuiltAt, CATALOGUE, ModelOutsideScope, StrategyName};
use crate::{ArgumentRow, ArgumentState, Figure, Rule};

fn cards() -> Vec<String> {
    let mut cards = Vec::new();
    for page in CATALOGUE.iter().map(|entry| &entry.page) {
        let source = Source {
            text: page.bad,
            name: "Cell In[3]",
        };
        for diagnostic in check_cell(page.bad, &CellContext::default()) {
            cards.push(html(&diagnostic, &source));
        }
    }
    let facts = ModelOutsideScope {
        strategy: StrategyName::of_variable("strategy"),
        replicas: 2,
        bound: None,
        variables: 104,
        device: "cpu:0".into(),
        compile_inside: false,
        is_named: false,
        built: BuiltAt::Here(Some(2)),
        figure: Some(Figure {
            html: "<div>grid</div>".into(),
            plain: "grid".into(),
        }),
    };
    let text = ModelOutsideScope::PAGE.bad;
    cards.push(html(
        &facts.diagnostic(),
        &Source {
            text,
            name: "Cell In[3]",
        },
    ));
    cards
}

/// Only the tags and styles of our own are in a card, none of which a front end removes, and roles that one may remove.
fn check_tags(card: &str) {
    const TAGS: &[&str] = &[
        "div", "span", "b", "code", "pre", "table", "thead", "tbody", "tr", "th", "td",
    ];
    const PROPERTIES: &[&str] = &[
        "background-color",
        "border",
        "border-bottom",
        "border-collapse",
        "border-left",
        "border-radius",
        "color",
        "display",
        "flex",
        "flex-wrap",
        "font-family",
        "font-size",
        "font-weight",
        "line-height",
        "margin",
        "max-width",
        "min-width",
        "opacity",
        "overflow-wrap",
        "overflow-x",
        "padding",
        "padding-left",
        "padding-right",
        "text-align",
        "text-indent",
        "vertical-align",
        "white-space",
        "word-break",
    ];
    for tag in card.split('<').skip(1) {
        let name = tag
            .trim_start_matches('/')
            .split([' ', '>'])
            .next()
            .unwrap_or_default();
        assert!(TAGS.contains(&name), "<{name}>");
        let attributes = tag.split('>').next().unwrap_or_default();
        let attributes = attributes
            .trim_start_matches('/')
            .trim_start_matches(name)
            .trim();
        const MARKS: [&str; 5] = [
            "",
            "class=\"stratoscope-fix\"",
            "class=\"stratoscope-card\" role=\"group\" ",
            "class=\"stratoscope-card-head\" role=\"heading\" aria-level=\"4\" ",
            "class=\"stratoscope-card-part\" role=\"heading\" aria-level=\"5\" ",
        ];
        let (marks, style) = match attributes.split_once("style=\"") {
            Some((marks, style)) => (marks, style),
            None => (attributes, ""),
        };
        assert!(MARKS.contains(&marks), "{attributes}");
        if style.is_empty() {
            continue;
        }
        for declaration in style.trim_end_matches('"').split(';') {
            let (property, value) = declaration.split_once(':').expect("property:value");
            assert!(PROPERTIES.contains(&property), "{property}");
            for banned in ["rgb", "var(", "url", "expression", "inherit;", "ch;"] {
                assert!(!value.contains(banned), "{declaration}");
            }
        }
    }
}

#[test]
fn the_card_survives_sanitizing() {
    cards().iter().for_each(|card| check_tags(card));
}

#[test]
fn tags_are_balanced() {
    for card in cards() {
        for tag in ["div", "span", "b", "code", "pre", "table", "tr", "td", "th"] {
            let open = card.matches(&format!("<{tag}>")).count()
                + card.matches(&format!("<{tag} ")).count();
            assert_eq!(
                open,
                card.matches(&format!("</{tag}>")).count(),
                "{tag} in {card}"
            );
        }
    }
}

#[test]
fn text_of_others_is_escaped() {
    let evil = "<script>alert('x')</script>\" onload=\"y & `<b>`";
    let diagnostic = Diagnostic::new("SC<i>", Severity::Error, evil)
        .label(Place::span(0, evil.len()), evil)
        .label(Place::file(evil, Some(1)), evil)
        .why(evil)
        .evidence(evil, evil)
        .fix_edit(evil, Place::span(0, 1), evil)
        .tensorflow(evil)
        .arguments(vec![ArgumentRow {
            name: evil.into(),
            expects: evil.into(),
            default: evil.into(),
            given: Some(evil.into()),
            state: ArgumentState::Invalid,
        }]);
    let card = html(
        &diagnostic,
        &Source {
            text: evil,
            name: evil,
        },
    );
    for raw in ["<script", "</script", "<i>", "onload=\"", "<b>`"] {
        assert!(!card.contains(raw), "{raw} in {card}");
    }
}

#[test]
fn what_is_meant_is_underlined_whatever_stands_before_it() {
    let text = "\t/* größe 日本 */ los = 1";
    let start = text.find("los").expect("it is there");
    let diagnostic = Diagnostic::new("SC0101", Severity::Error, "x")
        .label(Place::span(start, start + 3), "unknown");
    let card = html(&diagnostic, &Source { text, name: "c" });
    let underlined = format!("border-bottom:2px solid {RED}\">los</span> = 1");
    assert!(card.contains(&underlined), "{card}");
    assert!(card.contains("\t/* größe 日本 */ <span"), "{card}");
}

#[test]
fn a_related_diagnostic_has_a_card_of_its_own() {
    let first = Diagnostic::new("SC0201", Severity::Error, "first");
    let diagnostic = first.related(Diagnostic::new("SC0102", Severity::Error, "second"));
    let card = html(
        &diagnostic,
        &Source {
            text: "",
            name: "c",
        },
    );
    assert_eq!(card.matches("border-left:4px").count(), 2);
    assert!(card.find("first") < card.find("second"));
}

/// Pieces that would become tags, attributes, entities, mathematics or reordered text.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = select(vec![
        "<script>",
        "</div>",
        "<img src=x onerror=y>",
        "\"",
        "' onload='z",
        "&lt;",
        "&#60;",
        "<!--",
        "-->",
        "]]>",
        "`",
        "$x$",
        "$$",
        "\u{202e}",
        "\u{2066}",
        "\u{0}",
        "\u{1b}[31m",
        "\n",
        "\t",
        "text",
        "größe",
        "日本",
    ]);
    vec(pieces, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_becomes_markup(texts in vec(hostile(), 12), start in 0_usize..8) {
        let [code, message, label, file, path, why, name, value, fix, edit, version, cell] =
            <[String; 12]>::try_from(texts).expect("twelve texts");
        let source = Source { text: &cell, name: &code };
        let start = (0..=start.min(cell.len())).rev().find(|at| cell.is_char_boundary(*at)).unwrap_or(0);
        let row = ArgumentRow {
            name: name.clone(),
            expects: value.clone(),
            default: fix.clone(),
            given: Some(edit.clone()),
            state: ArgumentState::Invalid,
        };
        let place = Place::span(start, cell.len());
        let diagnostic = Diagnostic::new("SC0101", Severity::Error, message)
            .label(place.clone(), label)
            .label(Place::file(path, Some(1)), file)
            .why(why)
            .evidence(name, value)
            .fix_edit(fix, place, edit)
            .tensorflow(version)
            .arguments(vec![row]);
        let card = html(&diagnostic, &source);
        check_tags(&card);
        let dollars = card.matches('$').count();
        prop_assert_eq!(dollars, card.matches("<span>$</span>").count());
        let hidden = ['\u{202e}', '\u{2066}', '\u{1b}', '\u{0}'];
        prop_assert!(!card.contains(hidden), "{}", card);
        for entity in card.split('&').skip(1) {
            let known = ["amp;", "lt;", "gt;", "quot;", "#39;", "#160;"];
            prop_assert!(known.iter().any(|known| entity.starts_with(known)), "&{}", entity);
        }
    }
}
