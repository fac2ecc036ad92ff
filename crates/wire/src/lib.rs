//! Bytes to words and back: JSON-RPC and MCP of every revision. No I/O.

#![forbid(unsafe_code)]
