//! Why something could not be written down. The gateway then does not make the call, or withholds the answer.

use store::StoreFault;

/// Why an entry was not written, or why it is not known that it was.
///
/// `Clone`: one failed write is reported to everybody whose entry was in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerFault {
    /// There is no room. Nothing was written.
    #[error("the ledger has no room: {0}")]
    Full(StoreFault),
    /// Another process holds the store. Nothing was written.
    #[error("the ledger is locked: {0}")]
    Locked(StoreFault),
    /// It was not written by the deadline. It may still be: then it stands there as a call whose outcome is unknown.
    #[error("the ledger did not answer in time; check the disk or the database behind it")]
    TimedOut,
    /// The ledger is closed or closing. Nothing was written.
    #[error("the ledger is closed; the process is ending")]
    Closed,
    /// The store failed in another way.
    #[error("the ledger cannot be written: {0}")]
    Store(StoreFault),
    /// A key of the installation has another length than it was made with.
    #[error("the secret `{0}` of the store is not what it was made as; restore the store from a backup")]
    Key(&'static str),
    /// The system gives no random numbers to make a key of.
    #[error("the system gives no random numbers ({0})")]
    Random(String),
}

impl From<StoreFault> for LedgerFault {
    fn from(fault: StoreFault) -> Self {
        match fault {
            StoreFault::Full(_) => Self::Full(fault),
            StoreFault::Locked(_) => Self::Locked(fault),
            StoreFault::Unreachable(_)
            | StoreFault::Corrupt(_)
            | StoreFault::Schema(_)
            | StoreFault::Io(_)
            | StoreFault::Conflict(_)
            | StoreFault::Other(_) => Self::Store(fault),
        }
    }
}
