//! `Option`, `Result`, `Vec` and arrays of values that have a card show their contents.

use std::fmt::Debug;

use serde_json::Value;
use stratoscope_render::html::escape;
use stratoscope_wire::MimeBundle;

use super::{IntoBundle, html_and_plain, plain};

/// Longer lists are cut.
const MOST_SHOWN: usize = 20;

impl<T: IntoBundle> IntoBundle for Option<T> {
    fn bundle(&self) -> MimeBundle {
        match self {
            Some(value) => wrapped("Some", value.bundle()),
            None => plain("None"),
        }
    }
}

impl<T: IntoBundle, E: Debug> IntoBundle for Result<T, E> {
    fn bundle(&self) -> MimeBundle {
        match self {
            Ok(value) => wrapped("Ok", value.bundle()),
            Err(error) => plain(format!("Err({error:?})")),
        }
    }
}

impl<T: IntoBundle> IntoBundle for [T] {
    fn bundle(&self) -> MimeBundle {
        T::bundle_of_list(self)
    }
}

impl<T: IntoBundle> IntoBundle for Vec<T> {
    fn bundle(&self) -> MimeBundle {
        self.as_slice().bundle()
    }
}

impl<T: IntoBundle, const N: usize> IntoBundle for [T; N] {
    fn bundle(&self) -> MimeBundle {
        self.as_slice().bundle()
    }
}

impl<T: IntoBundle + ?Sized> IntoBundle for &T {
    fn bundle(&self) -> MimeBundle {
        (**self).bundle()
    }
}

impl<T: IntoBundle + ?Sized> IntoBundle for Box<T> {
    fn bundle(&self) -> MimeBundle {
        (**self).bundle()
    }
}

fn text_of(bundle: &MimeBundle) -> String {
    let text = bundle.get("text/plain").and_then(Value::as_str);
    text.unwrap_or("()").to_owned()
}

/// The bundle of the inner value; its text names what is around it.
fn wrapped(name: &str, mut inner: MimeBundle) -> MimeBundle {
    let text = format!("{name}({})", text_of(&inner));
    inner.extend(plain(text));
    inner
}

/// The items one below the other, with the names of what is around them.
pub(super) fn one_by_one<T: IntoBundle>(items: &[T]) -> MimeBundle {
    let shown = items.iter().take(MOST_SHOWN).map(IntoBundle::bundle);
    list(shown.collect(), items.len())
}

/// The items one below the other. `length` includes those that are cut.
fn list(items: Vec<MimeBundle>, length: usize) -> MimeBundle {
    let mut text = String::from("[\n");
    let mut html = String::new();
    for item in &items {
        for line in text_of(item).lines() {
            text += &format!("    {line}\n");
        }
        let drawn = item.get("text/html").and_then(Value::as_str);
        let drawn = drawn.map(str::to_owned);
        let drawn = drawn.unwrap_or_else(|| format!("<pre>{}</pre>", escape(&text_of(item))));
        html += &format!("<div style=\"margin:4px 0\">{drawn}</div>");
    }
    if length > items.len() {
        let more = format!("… and {} more", length - items.len());
        text += &format!("    {more}\n");
        html += &format!("<div>{more}</div>");
    }
    text.push(']');
    if items.is_empty() {
        return plain("[]");
    }
    match items.iter().any(|item| item.contains_key("text/html")) {
        true => html_and_plain(html, text),
        false => plain(text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Html, Markdown};
    use super::*;

    fn check(value: &dyn IntoBundle, text: &str, html: Option<&str>) {
        let bundle = value.bundle();
        assert_eq!(bundle["text/plain"], text);
        let drawn = bundle.get("text/html").and_then(Value::as_str);
        assert_eq!(drawn.is_some(), html.is_some());
        assert!(drawn.unwrap_or_default().contains(html.unwrap_or_default()));
    }

    #[test]
    fn what_is_inside_is_shown() {
        check(&Some(Html("<b>1</b>")), "Some(1)", Some("<b>1</b>"));
        check(&None::<Html<&str>>, "None", None);
        check(&Ok::<_, String>(Markdown("# t")), "Ok(# t)", None);
        check(&Err::<Html<&str>, _>("no"), "Err(\"no\")", None);
        check(
            &vec![Html("<i>a</i>"), Html("b")],
            "[\n    a\n    b\n]",
            Some("<i>a</i>"),
        );
        check(
            &vec![Markdown("a"); 30],
            &format!("[\n{}    … and 10 more\n]", "    a\n".repeat(20)),
            None,
        );
        check(&Vec::<Html<&str>>::new(), "[]", None);
        check(&Some(()), "Some(())", None);
    }
}
