//! Reading the ledger: a whole export for the verifier, the newest entries for a person, all entries of one call.

use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::io::Write;

use jiff::Timestamp;
use model::CallId;
use store::{LedgerFilter, LedgerOrder, LedgerRow, Store, StoreFault};
use uuid::Uuid;

use crate::chain::call_uuid;
use crate::entry::heads_named;
use crate::report::{Hole, HoleKind, Report};
use crate::{Entry, EntryFault};

/// What is exported. Anything but everything gives an export that can only be verified as a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    /// This chain only.
    pub chain: Option<Uuid>,
    /// Entries of this time or later.
    pub since: Option<Timestamp>,
}

/// Why the ledger could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ExportFault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// A row is no entry.
    #[error(transparent)]
    Entry(#[from] EntryFault),
    /// The export cannot be written.
    #[error("the export cannot be written: {0}")]
    Write(#[from] std::io::Error),
}

/// How many entries are held in memory at once.
const PAGE: u32 = 500;
/// The same number, as lengths are counted.
const PAGE_ROWS: usize = 500;

/// Writes entries as JSON Lines and gives how many there were.
///
/// **Shape**: `{"body":…,"hash":"sha256:…","prev":"sha256:…"}` per line, members in this order, no white space outside
/// `body`; `body` is the entry's text to the byte. Chains stand one behind the other, entries in their order, and a
/// chain stands before all chains that its `start` names, so that the newest comes first and a verifier needs to remember
/// little.
///
/// Nothing is checked here: a damaged ledger is exported as it is, for [`verify`](crate::verify()) to say what is wrong.
///
/// # Errors
/// [`ExportFault`] of the store and of `out`. What was written before stays written.
pub async fn export(store: &Store, selection: Selection, mut out: impl Write) -> Result<u64, ExportFault> {
    let entries = each(store, selection, |row, _| Ok(write_line(&mut out, row)?)).await?;
    out.flush()?;
    Ok(entries)
}

/// Adds to a report of a whole export of this store where an entry is filed under another call, time or kind than it says.
/// An export does not show that, and whoever asks for a call or a time would not find the entry.
///
/// # Errors
/// [`ExportFault::Store`].
pub async fn check_filing(store: &Store, report: &mut Report) -> Result<(), ExportFault> {
    each(store, Selection::default(), |row, line| {
        if let Err(fault @ EntryFault::Column { .. }) = Entry::from_row(row) {
            report.fault(Hole {
                line,
                chain: Some(row.chain),
                seq: Some(row.seq),
                kind: HoleKind::Misfiled,
                text: fault.to_string(),
            });
        }
        Ok(())
    })
    .await?;
    Ok(())
}

/// Visits rows in the order of an export, with their lines from 1, and gives how many there were.
async fn each(
    store: &Store,
    selection: Selection,
    mut visit: impl FnMut(&LedgerRow, u64) -> Result<(), ExportFault>,
) -> Result<u64, ExportFault> {
    let mut entries = 0;
    for chain in chains(store, selection.chain).await? {
        let mut filter = LedgerFilter {
            chain: Some(chain),
            since: selection.since.map(Timestamp::as_microsecond),
            limit: PAGE,
            ..LedgerFilter::default()
        };
        loop {
            let rows = store.ledger_read(&filter).await?;
            for row in &rows {
                entries += 1;
                visit(row, entries)?;
            }
            match rows.last() {
                Some(last) if rows.len() >= PAGE_ROWS => filter.after = Some(last.seq),
                _ => break,
            }
        }
    }
    Ok(entries)
}

/// Entries that a filter leaves, as it orders them; for the newest set [`LedgerOrder::Newest`].
///
/// # Errors
/// [`ExportFault::Entry`] where one of them is no entry, [`ExportFault::Store`] otherwise.
pub async fn tail(store: &Store, filter: &LedgerFilter) -> Result<Vec<Entry>, ExportFault> {
    let rows = store.ledger_read(filter).await?;
    Ok(rows.iter().map(Entry::from_row).collect::<Result<_, _>>()?)
}

/// All entries of one call, in the order in which they were written. Empty where there is no such call.
///
/// # Errors
/// As [`tail`].
pub async fn show(store: &Store, call: CallId) -> Result<Vec<Entry>, ExportFault> {
    let filter = LedgerFilter {
        call: Some(call_uuid(call)),
        order: LedgerOrder::Newest,
        ..LedgerFilter::default()
    };
    let mut entries = tail(store, &filter).await?;
    entries.reverse();
    Ok(entries)
}

fn write_line(out: &mut impl Write, row: &LedgerRow) -> std::io::Result<()> {
    writeln!(
        out,
        "{{\"body\":{},\"hash\":\"{}\",\"prev\":\"{}\"}}",
        row.body, row.hash, row.prev
    )
}

/// The chains of an export, each before all that its start names; among equals the newest first.
async fn chains(store: &Store, only: Option<Uuid>) -> Result<Vec<Uuid>, ExportFault> {
    let all: Vec<Uuid> = store
        .ledger_heads()
        .await?
        .into_iter()
        .map(|head| head.chain)
        .collect();
    let starts = store.ledger_starts().await?;
    let names: HashMap<Uuid, BTreeSet<Uuid>> = starts
        .iter()
        .map(|row| {
            (
                row.chain,
                heads_named(&row.body)
                    .into_iter()
                    .map(|head| head.chain)
                    .collect(),
            )
        })
        .collect();
    let mut ordered = in_order(&all, &names);
    ordered.retain(|chain| only.is_none_or(|only| only == *chain));
    Ok(ordered)
}

fn in_order(all: &[Uuid], names: &HashMap<Uuid, BTreeSet<Uuid>>) -> Vec<Uuid> {
    // How many chains that are still to come name this one.
    let mut waiting: HashMap<Uuid, usize> = all.iter().map(|chain| (*chain, 0)).collect();
    for named in all.iter().filter_map(|chain| names.get(chain)).flatten() {
        if let Some(count) = waiting.get_mut(named) {
            *count += 1;
        }
    }
    let mut ready: BinaryHeap<Uuid> = waiting
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(chain, _)| *chain)
        .collect();
    let mut ordered = Vec::with_capacity(all.len());
    while let Some(chain) = ready.pop() {
        waiting.remove(&chain);
        ordered.push(chain);
        for named in names.get(&chain).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(named) {
                *count -= 1;
                if *count == 0 {
                    ready.push(*named);
                }
            }
        }
    }
    // Chains that name each other in a circle cannot be, unless somebody wrote them. They are exported all the same.
    let mut circle: Vec<Uuid> = waiting.into_keys().collect();
    circle.sort_unstable_by(|one, two| two.cmp(one));
    ordered.extend(circle);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_stands_before_those_it_names_whatever_their_ids_say() {
        let id = Uuid::from_u128;
        let check = |names: &[(u128, &[u128])], expected: &[u128]| {
            let all: Vec<Uuid> = names.iter().map(|(chain, _)| id(*chain)).collect();
            let names = names
                .iter()
                .map(|(chain, named)| (id(*chain), named.iter().map(|n| id(*n)).collect()))
                .collect();
            let expected: Vec<Uuid> = expected.iter().map(|n| id(*n)).collect();
            assert_eq!(in_order(&all, &names), expected);
        };
        check(&[], &[]);
        check(&[(1, &[]), (2, &[1]), (3, &[2])], &[3, 2, 1]);
        // A clock that was behind gave the naming chain a smaller id.
        check(&[(1, &[2]), (2, &[])], &[1, 2]);
        check(&[(1, &[]), (2, &[]), (3, &[])], &[3, 2, 1]);
        check(&[(1, &[]), (2, &[1]), (3, &[1]), (4, &[2, 3, 9])], &[4, 3, 2, 1]);
        check(&[(1, &[2]), (2, &[1]), (3, &[])], &[3, 2, 1]);
    }
}
