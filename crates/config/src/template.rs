//! The file that a new installation starts from. A text; `tollhouse init` writes it.

/// A commented configuration to start from. It loads once `openapi.yaml` and a folder `policy` stand beside it.
#[must_use]
pub const fn template() -> &'static str {
    include_str!("template.toml")
}
