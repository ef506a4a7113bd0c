//! Removes all rows of a received database that the integrity check does not cover.
//!
//! `check` covers the canonical chain and the state of the head. A received database may hold further rows: side
//! blocks, older states, private data, values of the node that wrote it. These rows are deleted, so that no unchecked
//! row is read later.

use std::sync::Arc;

use alloy_primitives::{B256, KECCAK256_EMPTY, keccak256};
use alloy_trie::Nibbles;
use ophion_primitives::errors::{Error, Result};

use super::database::Database;
use super::integrity_check::{Findings, check_nodes};
use super::read_snapshot::Snapshot;
use super::records::{decode_header, read_header};
use super::state_roots::{note_root, root_id};
use super::tables::{Table, meta};
use crate::trie::{Account, Child, EMPTY_ROOT, Trie};

/// Number of rows that are read and deleted at a time.
const STRIDE: usize = 10_000;
const NODE_VALUES: &[u8] = b"node:";

impl Database {
    /// Keep only the canonical chain with the states of the genesis block and the head. Deletes private states and
    /// key-value tables too. Call `check` before. A pruning round afterwards deletes the trie nodes of the other
    /// states.
    pub fn retain_checked(self: &Arc<Self>) -> Result<()> {
        let snapshot = self.snapshot()?;
        let (_, head) = snapshot.head()?.ok_or_else(|| Error::damaged("the database has no head"))?;
        let states = [state_of(&snapshot, 0)?, state_of(&snapshot, head)?];
        check_state_hashes(&snapshot, states[0])?;
        drop(snapshot);
        let tables = self.tables;
        // delete headers last, because `is_canonical_up_to` reads the number of a block from its header
        for table in [tables.bodies, tables.receipts, tables.headers] {
            self.retain(table, |snapshot, hash, _| snapshot.is_canonical_up_to(hash, head))?;
        }
        self.retain(tables.canonical, |_, number, _| Ok(number <= &head.to_be_bytes()[..]))?;
        self.retain(tables.code, |_, hash, code| Ok(keccak256(code).as_slice() == hash))?;
        self.retain(tables.roots, |_, root, _| Ok(states.iter().any(|state| state.as_slice() == root)))?;
        self.retain(tables.meta, |_, key, _| Ok(!key.starts_with(NODE_VALUES) && key != meta::FOLLOWED))?;
        self.write_or_stop(|txn| {
            for (root, number) in states.into_iter().zip([0, head]) {
                // the row of a state in `roots` may list several root nodes: keep only the one that was checked
                if let Some(id) = root_id(&tables, txn, &root)? {
                    tables.roots.delete(txn, root.as_slice())?;
                    note_root(&tables, txn, &root, id, number)?;
                }
            }
            let private = [
                tables.private_nodes,
                tables.private_code,
                tables.private_groups,
                tables.private_receipts,
                tables.private_markers,
                tables.private_late,
            ];
            private.into_iter().chain(self.row_tables.into_iter().flatten()).try_for_each(|table| table.clear(txn))
        })
    }

    /// Delete the rows of a table that `keep` rejects.
    fn retain(self: &Arc<Self>, table: Table, keep: impl Fn(&Snapshot, &[u8], &[u8]) -> Result<bool>) -> Result<()> {
        let mut start = vec![0];
        loop {
            let (mut rejected, mut next) = (Vec::new(), None);
            let snapshot = self.snapshot()?;
            for (index, entry) in table.from(snapshot.txn(), &start)?.enumerate() {
                let (key, value) = entry?;
                if index == STRIDE {
                    next = Some(key.to_vec());
                    break;
                }
                if !keep(&snapshot, key, value)? {
                    rejected.push(key.to_vec());
                }
            }
            drop(snapshot);
            if !rejected.is_empty() {
                self.write_or_stop(|txn| rejected.iter().try_for_each(|key| table.delete(txn, key).map(drop)))?;
            }
            match next {
                Some(key) => start = key,
                None => return Ok(()),
            }
        }
    }
}

impl Snapshot {
    fn is_canonical_up_to(&self, hash: &[u8], head: u64) -> Result<bool> {
        let Ok(hash) = B256::try_from(hash) else { return Ok(false) };
        let Some((number, _, _)) = read_header(self.tables(), self.txn(), &hash)? else { return Ok(false) };
        Ok(number <= head && self.canonical_hash(number)? == Some(hash))
    }
}

fn state_of(snapshot: &Snapshot, at: u64) -> Result<B256> {
    let missing = || Error::damaged(format!("block {at} has no header"));
    let hash = snapshot.canonical_hash(at)?.ok_or_else(missing)?;
    let (_, _, header) = snapshot.header(&hash)?.ok_or_else(missing)?;
    Ok(decode_header(header)?.state_root)
}

/// Check that every node and code of a state has the hash under which it is stored. A state that is not stored passes.
fn check_state_hashes(snapshot: &Snapshot, root: B256) -> Result<()> {
    let Some(id) = root_id(snapshot.tables(), snapshot.txn(), &root)? else { return Ok(()) };
    if root == EMPTY_ROOT {
        return Ok(());
    }
    let mut watch = |_, _| true;
    let mut findings = Findings::new(1, 0, &mut watch);
    let trie: Trie<Account> = Trie { root: Some(Child::Stored { hash: root, id }) };
    let nodes = snapshot.nodes();
    check_nodes(&nodes, &trie, "the state", &mut findings);
    if findings.lines.is_empty() {
        trie.walk(&Nibbles::new(), &nodes, &mut |_, account| {
            check_nodes(&nodes, &account.storage, "storage", &mut findings);
            if account.code_hash != KECCAK256_EMPTY {
                let code = snapshot.tables().code.get(snapshot.txn(), account.code_hash.as_slice())?;
                if code.is_none_or(|code| keccak256(code) != account.code_hash) {
                    findings.add(format!("code {} is missing or wrong", account.code_hash));
                }
            }
            Ok(findings.lines.is_empty())
        })?;
    }
    match findings.lines.first() {
        None => Ok(()),
        Some(line) => Err(Error::damaged(format!("the genesis state: {line}"))),
    }
}
