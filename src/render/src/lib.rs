//! Building blocks of every card, report and message: HTML with one [`html::escape`], plain text, tables, charts and units; and
//! how names are written and matched.
//!
//! It knows no card: the crate that owns the facts decides what a card shows. Start reading at [`html`].
//!
//! ```
//! use stratoscope_render::{html, text, units};
//!
//! assert_eq!(html::escape("Vec<u8>"), "Vec&lt;u8&gt;");
//! assert_eq!(text::count(30522, "row"), "30 522 rows");
//! assert_eq!(units::bytes(1536), "1.50 KiB");
//! ```

#![deny(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod chart;
pub mod html;
pub mod pattern;
pub mod table;
pub mod text;
pub mod units;

/// Whether a character changes how the text around it is shown instead of being shown itself: control characters
/// (which a terminal obeys) and those that reorder text ("Trojan Source").
fn is_invisible_command(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
