//! The agent-facing ports: HTTP and stdio.

#![forbid(unsafe_code)]
