//! `kernel_info_reply`: what this kernel is, and its protocol version. Shell or control, to the sender of the request.
//!
//! <https://jupyter-client.readthedocs.io/en/stable/messaging.html#kernel-info>

use serde::Serialize;
use serde_json::Value;

use super::Content;

/// The reply to `kernel_info_request`, which has no content.
#[derive(Debug, Serialize)]
pub struct KernelInfoReply {
    /// Always `ok`.
    pub status: &'static str,
    /// The version of this protocol.
    pub protocol_version: &'static str,
    /// The kernel's name.
    pub implementation: &'static str,
    /// The kernel's version.
    pub implementation_version: &'static str,
    /// The language of the cells, as notebooks record it.
    pub language_info: Value,
    /// Shown when a console starts.
    pub banner: String,
    /// Pages about the kernel for a front end's help menu.
    pub help_links: Vec<HelpLink>,
    /// Whether `debug_request` is answered. Replaced by the next field since version 5.5; front ends read either.
    pub debugger: bool,
    /// Optional parts of the protocol that work.
    pub supported_features: Vec<&'static str>,
}

/// A page for the help menu.
#[derive(Debug, Serialize)]
pub struct HelpLink {
    /// The entry's text.
    pub text: &'static str,
    /// The page's address.
    pub url: &'static str,
}

impl Content for KernelInfoReply {
    const TYPE: &'static str = "kernel_info_reply";
}
