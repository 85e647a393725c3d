//! What this kernel is: the content of `kernel_info_reply`, and the language that notebooks record.

use serde_json::{Value, json};

use super::message::{HelpLink, KernelInfoReply, PROTOCOL_VERSION};

/// The reply to `kernel_info_request`.
pub fn kernel_info() -> KernelInfoReply {
    KernelInfoReply {
        status: "ok",
        protocol_version: PROTOCOL_VERSION,
        implementation: "stratoscope",
        implementation_version: env!("CARGO_PKG_VERSION"),
        language_info: language_info(),
        banner: format!(
            "stratoscope {}: Rust, with BERT under a distribution strategy",
            env!("CARGO_PKG_VERSION")
        ),
        help_links: vec![
            HelpLink {
                text: "stratoscope",
                url: env!("CARGO_PKG_REPOSITORY"),
            },
            HelpLink {
                text: "burn",
                url: "https://burn.dev/book/",
            },
            HelpLink {
                text: "The Rust book",
                url: "https://doc.rust-lang.org/book/",
            },
        ],
        debugger: true,
        // No subshells: while a cell runs, everything but cells is answered without them.
        supported_features: vec!["debugger"],
    }
}

/// The language of the cells, for `kernel_info_reply` and a notebook's `language_info`.
pub fn language_info() -> Value {
    json!({
        "name": "rust",
        "version": env!("CARGO_PKG_RUST_VERSION"),
        "mimetype": "text/rust",
        "file_extension": ".rs",
        "pygments_lexer": "rust",
        "codemirror_mode": "rust",
        "nbconvert_exporter": "script",
    })
}
