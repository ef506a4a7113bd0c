//! State pruning: remove old roots, mark the nodes of all other states, delete unmarked nodes
//! (docs/decisions/0110-state-pruning-by-mark-and-sweep.md).
//!
//! ```text
//! forget   delete roots of blocks below `oldest`                          short write transactions
//! mark     mark every node that the remaining states reach                short read transactions
//! sweep    delete unmarked nodes written before marking started           short write transactions
//! ```
//! The database is consistent at every moment: every listed state is complete, and the next round deletes nodes that
//! this round misses. Blocks may be written meanwhile. They build on listed states, whose nodes are marked, including
//! the versions that their deltas need. Nodes of new blocks have higher ids than all deleted nodes.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_primitives::map::B256Set;
use ophion_primitives::errors::{Error, Result};

use super::database::Database;
use super::reachability::Reach;
use super::read_snapshot::Snapshot;
use super::records::{decode_header, number};
use super::state_roots::RootRecord;
use super::tables::meta;

/// A database key greater than every state root.
const END: &[u8] = &[0xff; 33];

/// Repack a range only if this frees at least 1/`WORTH` of its bytes; otherwise leave the range to a later round. Most
/// deleted nodes are near the oldest stored state. Repacking older ranges would copy much and free little.
const WORTH: usize = 8;

/// One round of state pruning. Call `forget`, `mark` and `sweep` in this order, each until it returns false.
pub struct Pruning {
    database: Arc<Database>,
    /// Number of the oldest block whose state is kept.
    oldest: u64,
    kept: B256Set,
    forget_from: Vec<u8>,
    reach: Option<Reach>,
    /// The first id of the trie nodes that were written after marking started. `sweep` does not check nodes from this
    /// id on.
    bound: u64,
    /// The id from which `sweep` continues.
    sweep_from: u64,
    pub forgotten: u64,
    pub freed: u64,
}

impl Pruning {
    pub fn begin(database: &Arc<Database>, oldest: u64) -> Result<Self> {
        let snapshot = database.snapshot()?;
        let mut kept = B256Set::default();
        let head = snapshot.head()?.map_or(0, |(_, number)| number);
        // Keep the genesis state and the states of recent blocks. Look up their roots here, because root records of
        // older versions have no block number.
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
            sweep_from: 0,
            forgotten: 0,
            freed: 0,
        })
    }

    /// Check up to `max` listed states and delete old state roots. Returns false when all states are checked.
    pub fn forget(&mut self, max: usize) -> Result<bool> {
        let (oldest, kept) = (self.oldest, &self.kept);
        let mut forgotten = 0;
        let next = self.database.write_alone(|txn, tables| {
            tables.roots.sweep(txn, &self.forget_from, END, max, |root, record| {
                let last = RootRecord::restore(record)?.number;
                let stays = last.is_some_and(|number| number >= oldest) || kept.contains(&B256::from_slice(root));
                forgotten += u64::from(!stays);
                Ok(stays)
            })
        })?;
        self.forgotten += forgotten;
        Ok(next.map(|next| self.forget_from = next).is_some())
    }

    /// Mark up to `max` reachable trie nodes. Returns false when all reachable nodes are marked.
    pub fn mark(&mut self, max: usize) -> Result<bool> {
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
        reach.advance(&snapshot.nodes(), max)
    }

    /// Check up to `max` stored trie nodes and delete the unmarked nodes. Returns false when all nodes are checked.
    pub fn sweep(&mut self, max: usize) -> Result<bool> {
        let Some(Reach { needed, .. }) = self.reach.as_ref().filter(|reach| reach.is_complete()) else {
            return Err(Error::Storage("sweep called before mark has finished".into()));
        };
        let (freed, next) = self.database.write_alone(|txn, tables| {
            let (from, keep) = (self.sweep_from, |id| needed.contains(id));
            let (freed, next) = tables.state_nodes().repack(txn, from, self.bound, max, WORTH, keep)?;
            if freed > 0 && from >= tables.first_packed {
                let all = tables.meta.get(txn, meta::FREED_PACKED)?.map_or(0, number) + freed as u64;
                tables.meta.put(txn, meta::FREED_PACKED, &all.to_be_bytes())?;
            }
            Ok((freed, next))
        })?;
        self.freed += freed as u64;
        Ok(next.map(|next| self.sweep_from = next).is_some())
    }

    /// Return the number of marked trie nodes. `sweep` keeps these nodes.
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
