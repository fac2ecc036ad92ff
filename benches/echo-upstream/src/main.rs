//! An upstream that echoes: MCP in both eras, and an OpenAPI face.

fn main() {}
