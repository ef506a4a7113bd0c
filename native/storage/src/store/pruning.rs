//! Dropping old states: forget their roots, mark what the others reach, delete the rest.
//!
//! ```text
//! forget   roots of blocks below `oldest` leave the table of states       short write transactions
//! mark     every node that the remaining states reach                     short read transactions
//! sweep    nodes written before the marking began that were not marked    short write transactions
//! ```
//! Whenever the process ends, the database is sound: a listed state is complete, and what is left over is found by the
//! next round. Blocks may be written meanwhile. They are built on listed states, whose nodes are all marked (with the earlier
//! versions they are changes of), and their own nodes have higher ids than those that are swept. docs/decisions/0110-state-pruning-by-mark-and-sweep.md says why it is done so.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::B256Set;
use ophion_primitives::errors::{Error, Result};

use super::database::Database;
use super::mark::Reach;
use super::records::{decode_header, number};
use super::roots::RootRecord;
use super::snapshot::Snapshot;
use super::tables::{Stretch, meta};

/// Greater than every root and every id.
const END: &[u8] = &[0xff; 33];

/// A stretch of nodes is written anew when that gives back one of so many pages; less waits for a later round. Most of what
/// goes lies where the oldest kept state was written, and what is older than that would be copied for a handful each time.
const WORTH: usize = 8;

/// One round of dropping states. Its steps are made in order, each until it has nothing more to do.
pub struct Pruning {
    database: Arc<Database>,
    /// The states of blocks from this number on stay.
    oldest: u64,
    kept: B256Set,
    forget_from: Vec<u8>,
    reach: Option<Reach>,
    /// Nodes from this id on were written after the marking had begun.
    bound: u64,
    sweep_from: Stretch,
    pub forgotten: u64,
    pub freed: u64,
}

impl Pruning {
    pub fn begin(database: &Arc<Database>, oldest: u64) -> Result<Self> {
        let snapshot = database.snapshot()?;
        let mut kept = B256Set::default();
        let head = snapshot.head()?.map_or(0, |(_, number)| number);
        // The genesis is always there to be asked for; the others only matter where a record has no number.
        for at in std::iter::once(0).chain(oldest.min(head)..=head) {
            kept.insert(state_root(&snapshot, at)?);
        }
        Ok(Pruning {
            database: database.clone(),
            oldest: oldest.min(head),
            kept,
            forget_from: vec![0],
            reach: None,
            bound: 0,
            sweep_from: Stretch::at(vec![0]),
            forgotten: 0,
            freed: 0,
        })
    }

    /// Look at up to `most` states; true while there are more.
    pub fn forget(&mut self, most: usize) -> Result<bool> {
        let (oldest, kept) = (self.oldest, &self.kept);
        let mut forgotten = 0;
        let next = self.database.write_alone(|txn, tables| {
            tables.roots.sweep(txn, &self.forget_from, END, most, |root, record| {
                let last = RootRecord::restore(record)?.number;
                let stays = last.is_some_and(|number| number >= oldest) || kept.contains(&B256::from_slice(root));
                forgotten += u64::from(!stays);
                Ok(stays)
            })
        })?;
        self.forgotten += forgotten;
        Ok(next.map(|next| self.forget_from = next).is_some())
    }

    /// Visit up to `most` nodes; true while there are more.
    pub fn mark(&mut self, most: usize) -> Result<bool> {
        let snapshot = self.database.snapshot()?;
        if self.reach.is_none() {
            let mut reach = Reach::default();
            for entry in snapshot.tables().roots.from(snapshot.txn(), &[0])? {
                RootRecord::restore(entry?.1)?.ids.into_iter().for_each(|id| reach.add_root(id));
            }
            self.bound = snapshot.tables().meta.get(snapshot.txn(), meta::NEXT_NODE)?.map_or(0, number);
            self.reach = Some(reach);
        }
        let reach = self.reach.as_mut().expect("made above");
        reach.advance(&snapshot.nodes(), most)
    }

    /// Look at up to `most` nodes and delete those that no state reaches; true while there are more.
    pub fn sweep(&mut self, most: usize) -> Result<bool> {
        let Some(Reach { needed, .. }) = self.reach.as_ref().filter(|reach| reach.is_complete()) else {
            return Err(Error::Storage("nothing is deleted before everything that stays is marked".into()));
        };
        let (freed, next) = self.database.write_alone(|txn, tables| {
            let (from, bound) = (&self.sweep_from, self.bound.to_be_bytes());
            tables.nodes.repack(txn, from, &bound, most, WORTH, |id| needed.contains(number(id)))
        })?;
        self.freed += freed as u64;
        Ok(next.map(|next| self.sweep_from = next).is_some())
    }

    /// Nodes that stay.
    pub fn marked(&self) -> u64 {
        self.reach.as_ref().map_or(0, |reach| reach.needed.count())
    }
}

fn state_root(snapshot: &Snapshot, at: u64) -> Result<B256> {
    let missing = || Error::damaged(format!("block {at} has no header"));
    let hash = snapshot.canonical_hash(at)?.ok_or_else(missing)?;
    let (_, _, header) = snapshot.header(&hash)?.ok_or_else(missing)?;
    Ok(decode_header(header)?.state_root)
}
