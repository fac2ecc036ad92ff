//! What a server does beside lists and calls, as it said when it was approved: what is told to clients while it is not open.

/// What a server can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// It completes arguments.
    pub completes: bool,
    /// It logs to its clients (LOG-01).
    pub logs: bool,
    /// It tells when a resource changes (RES-01).
    pub subscribes: bool,
}
