//! Private transaction results: group states, receipts, processed markers.
//!
//! All rows have the hash of the public block in their key, so a reorganisation needs no rollback: reads skip blocks
//! that are not canonical.

use std::collections::HashSet;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, Log};
use heed::{RoTxn, RwTxn};
use ophion_primitives::bytes::{Reader, put_bytes, put_varint};
use ophion_primitives::errors::{Error, Result};

use super::database::Database;
use super::node_writer::NodeWriter;
use super::packed_nodes::NodeTable;
use super::read_snapshot::Snapshot;
use super::records::{Nodes, number};
use super::tables::{Tables, meta};
use crate::chain::receipts::{put_logs, read_logs};
use crate::trie::{Account, Child, EMPTY_ROOT, Trie, save_root};

/// How a private transaction ended: the receipt's status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrivateStatus {
    Failed = 0,
    Succeeded = 1,
    /// The transaction did not run, because its nonce, signature or group is wrong.
    Invalid = 2,
}

/// Result of a private transaction.
#[derive(Clone, Debug)]
pub struct PrivateReceipt {
    pub status: PrivateStatus,
    pub group: B256,
    /// Root of the privacy group's state after the transaction.
    pub root: B256,
    pub payload_key: B256,
    /// Index of the marker transaction in its block.
    pub index: u32,
    /// Hash of the private transaction; zero if the transaction could not be decoded.
    pub hash: B256,
    pub sender: Address,
    pub to: Option<Address>,
    pub created: Option<Address>,
    pub private_from: Bytes,
    /// Keys of the recipients; None if the transaction names a group.
    pub private_for: Option<Vec<Bytes>>,
    pub output: Bytes,
    /// Output of a reverted transaction.
    pub revert_data: Bytes,
    /// Reason why the transaction failed or did not run.
    pub reason: String,
    pub logs: Vec<Log>,
}

/// States of one privacy group in one block: one state after each transaction.
pub struct GroupStates {
    pub group: B256,
    pub block: B256,
    pub number: u64,
    /// Hash of each transaction's marker, and the state root after the transaction.
    pub roots: Vec<(B256, B256)>,
    /// State of the privacy group after the last transaction.
    pub trie: Trie<Account>,
}

/// A marker transaction on the chain, addressed to this node or to other participants.
pub struct Marker {
    pub payload_key: B256,
    pub number: u64,
    pub index: u32,
    pub block: B256,
    pub hash: B256,
}

/// All database rows that one step of the private transaction processor writes.
#[derive(Default)]
pub struct PrivateWrites {
    pub states: Vec<GroupStates>,
    pub receipts: Vec<(B256, B256, PrivateReceipt)>,
    pub markers: Vec<Marker>,
    pub codes: Vec<(B256, Bytes)>,
    /// Last block that the private transaction processor has handled. None leaves the stored value unchanged.
    pub followed: Option<(B256, u64)>,
    /// Keys of late payloads that have been processed.
    pub settled: Vec<B256>,
}

impl PrivateReceipt {
    pub fn store(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.output.len());
        out.push(self.status as u8);
        for hash in [&self.group, &self.root, &self.payload_key, &self.hash] {
            out.extend_from_slice(hash.as_slice());
        }
        put_varint(u64::from(self.index), &mut out);
        out.extend_from_slice(self.sender.as_slice());
        for address in [&self.to, &self.created] {
            out.push(u8::from(address.is_some()));
            out.extend_from_slice(address.as_ref().map_or(&[][..], |address| address.as_slice()));
        }
        put_bytes(&self.private_from, &mut out);
        out.push(u8::from(self.private_for.is_some()));
        if let Some(keys) = &self.private_for {
            put_varint(keys.len() as u64, &mut out);
            keys.iter().for_each(|key| put_bytes(key, &mut out));
        }
        put_bytes(&self.output, &mut out);
        put_bytes(&self.revert_data, &mut out);
        put_bytes(self.reason.as_bytes(), &mut out);
        put_logs(&self.logs, &mut out);
        out
    }

    pub fn restore(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader(bytes);
        let status = match reader.byte()? {
            0 => PrivateStatus::Failed,
            1 => PrivateStatus::Succeeded,
            2 => PrivateStatus::Invalid,
            other => return Err(Error::damaged(format!("unknown status {other} of a private receipt"))),
        };
        let mut hashes = [B256::ZERO; 4];
        for hash in &mut hashes {
            *hash = B256::from_slice(reader.take(32)?);
        }
        let [group, root, payload_key, hash] = hashes;
        let index = reader.varint()? as u32;
        let sender = Address::from_slice(reader.take(20)?);
        let to = optional_address(&mut reader)?;
        let created = optional_address(&mut reader)?;
        let private_from = Bytes::copy_from_slice(reader.bytes()?);
        let private_for = match reader.byte()? {
            0 => None,
            _ => {
                let count = reader.varint()?;
                Some((0..count).map(|_| Ok(Bytes::copy_from_slice(reader.bytes()?))).collect::<Result<_>>()?)
            }
        };
        let output = Bytes::copy_from_slice(reader.bytes()?);
        let revert_data = Bytes::copy_from_slice(reader.bytes()?);
        let reason = String::from_utf8_lossy(reader.bytes()?).into_owned();
        let logs = read_logs(&mut reader)?;
        Ok(PrivateReceipt {
            status,
            group,
            root,
            payload_key,
            index,
            hash,
            sender,
            to,
            created,
            private_from,
            private_for,
            output,
            revert_data,
            reason,
            logs,
        })
    }
}

fn optional_address(reader: &mut Reader<'_>) -> Result<Option<Address>> {
    match reader.byte()? {
        0 => Ok(None),
        _ => Ok(Some(Address::from_slice(reader.take(20)?))),
    }
}

fn group_key(group: &B256, number: u64, block: &B256) -> [u8; 72] {
    let mut key = [0u8; 72];
    key[..32].copy_from_slice(group.as_slice());
    key[32..40].copy_from_slice(&number.to_be_bytes());
    key[40..].copy_from_slice(block.as_slice());
    key
}

fn receipt_key(block: &B256, marker: &B256) -> [u8; 64] {
    let mut key = [0u8; 64];
    key[..32].copy_from_slice(block.as_slice());
    key[32..].copy_from_slice(marker.as_slice());
    key
}

impl Database {
    /// Write one step of the private transaction processor, in one database transaction.
    pub fn commit_private(self: &Arc<Self>, writes: &PrivateWrites) -> Result<()> {
        // allow no writes after a failed write: trie nodes have ids already, and later writes could refer to missing
        // trie nodes
        self.write_or_stop(|txn| self.write_private(txn, writes))
    }

    fn write_private(&self, txn: &mut RwTxn<'_>, writes: &PrivateWrites) -> Result<()> {
        let tables = &self.tables;
        let next = tables.meta.get(txn, meta::NEXT_PRIVATE_NODE)?.map_or(1, number);
        let mut writer = NodeWriter::new(NodeTable::single(tables.private_nodes), next);
        for states in &writes.states {
            let root = states.trie.root.as_ref();
            let id = root.map_or(Ok(0), |root| save_root(root, None, &mut writer.beside(txn)))?;
            let mut record = Vec::with_capacity(8 + states.roots.len() * 64);
            record.extend_from_slice(&id.to_be_bytes());
            for (marker, root) in &states.roots {
                record.extend_from_slice(marker.as_slice());
                record.extend_from_slice(root.as_slice());
            }
            let key = group_key(&states.group, states.number, &states.block);
            tables.private_groups.put(txn, &key, &record)?;
        }
        tables.meta.put(txn, meta::NEXT_PRIVATE_NODE, &writer.next.to_be_bytes())?;
        writer.flush(txn)?;
        for (hash, code) in &writes.codes {
            tables.private_code.put(txn, hash.as_slice(), code)?;
        }
        for (block, marker, receipt) in &writes.receipts {
            tables.private_receipts.put(txn, &receipt_key(block, marker), &receipt.store())?;
        }
        for marker in &writes.markers {
            let mut key = marker.payload_key.to_vec();
            key.extend_from_slice(&marker.number.to_be_bytes());
            key.extend_from_slice(&marker.index.to_be_bytes());
            let value = [marker.block.as_slice(), marker.hash.as_slice()].concat();
            tables.private_markers.put(txn, &key, &value)?;
        }
        self.note_late_arrivals(txn, writes)?;
        for key in &writes.settled {
            tables.private_late.delete(txn, key.as_slice())?;
        }
        if let Some((hash, at)) = &writes.followed {
            let mark = [hash.as_slice(), &at.to_be_bytes()].concat();
            tables.meta.put(txn, meta::FOLLOWED, &mark)?;
        }
        Ok(())
    }

    /// Record payloads as late if they are in the database but were not executed: they arrived between the processor's
    /// lookup and this write, or they wait in the backlog, which is only in memory. Without this record, a restarted
    /// node would not execute them.
    fn note_late_arrivals(&self, txn: &mut RwTxn<'_>, writes: &PrivateWrites) -> Result<()> {
        let run: HashSet<(&B256, &B256)> = writes.receipts.iter().map(|(block, marker, _)| (block, marker)).collect();
        for marker in writes.markers.iter().filter(|marker| !run.contains(&(&marker.block, &marker.hash))) {
            if self.has_payload(txn, &marker.payload_key)? {
                self.tables.private_late.put(txn, marker.payload_key.as_slice(), &[])?;
            }
        }
        Ok(())
    }

    /// Record payloads as late: their markers were processed, and the payloads still have to be executed. Payloads
    /// without a processed marker are ignored.
    pub fn note_late(self: &Arc<Self>, keys: &[B256]) -> Result<()> {
        self.write_alone(|txn, _| keys.iter().try_for_each(|key| note_late(&self.tables, txn, key).map(drop)))
    }

    /// Delete all private states and results, for a rebuild. Payloads stay.
    pub fn clear_private(self: &Arc<Self>) -> Result<()> {
        self.write_alone(|txn, _| {
            let Tables { private_nodes, private_code, private_groups, private_receipts, .. } = &self.tables;
            let Tables { private_markers, private_late, .. } = &self.tables;
            for table in [private_nodes, private_code, private_groups, private_receipts, private_markers, private_late]
            {
                table.clear(txn)?;
            }
            self.tables.meta.delete(txn, meta::FOLLOWED)?;
            Ok(())
        })
    }
}

/// State of a privacy group after one block.
pub struct GroupState {
    pub block: B256,
    pub number: u64,
    pub root: B256,
    pub trie: Trie<Account>,
}

impl Snapshot {
    /// Return the source of private trie nodes.
    pub(crate) fn private_nodes(&self) -> Nodes<'_> {
        Nodes::new(NodeTable::single(self.tables().private_nodes), self.txn())
    }

    /// Return the last block processed for private transactions.
    pub fn followed(&self) -> Result<Option<(B256, u64)>> {
        let mark = self.tables().meta.get(self.txn(), meta::FOLLOWED)?;
        Ok(mark.map(|mark| (B256::from_slice(&mark[..32]), number(&mark[32..]))))
    }

    /// Return the latest state of a privacy group in the canonical blocks up to `up_to`; None if the group has no state
    /// yet.
    pub fn group_state(&self, group: &B256, up_to: u64) -> Result<Option<GroupState>> {
        let mut key = group_key(group, up_to, &B256::repeat_byte(0xff));
        let mut found = self.tables().private_groups.up_to(self.txn(), &key)?;
        while let Some((at, record)) = found {
            let Some((block, block_number)) = split_group_key(at, group) else { return Ok(None) };
            if self.canonical_hash(block_number)? == Some(block) {
                return group_state(block, block_number, record).map(Some);
            }
            key = group_key(group, block_number, &block);
            found = self.tables().private_groups.below(self.txn(), &key)?;
        }
        Ok(None)
    }

    /// Return marker hash and state root of each transaction of a group in a block.
    pub fn group_roots(&self, group: &B256, at: u64, block: &B256) -> Result<Vec<(B256, B256)>> {
        let record = self.tables().private_groups.get(self.txn(), &group_key(group, at, block))?;
        Ok(record.map(roots_of).unwrap_or_default())
    }

    /// Return up to `max` canonical blocks in which a privacy group has transactions, from number `from` on.
    pub fn group_blocks(&self, group: &B256, from: u64, max: usize) -> Result<Vec<(u64, B256)>> {
        let mut found = Vec::new();
        for entry in self.tables().private_groups.from(self.txn(), &group_key(group, from, &B256::ZERO))? {
            let Some((block, at)) = split_group_key(entry?.0, group) else { break };
            if self.canonical_hash(at)? == Some(block) {
                found.push((at, block));
                if found.len() == max {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Return the ids of up to `max` privacy groups that have a state, from id `start` on.
    pub fn groups_from(&self, start: &B256, max: usize) -> Result<Vec<B256>> {
        let mut found: Vec<B256> = Vec::new();
        let mut at = group_key(start, 0, &B256::ZERO);
        while found.len() < max {
            let Some(entry) = self.tables().private_groups.from(self.txn(), &at)?.next() else { break };
            let group = B256::from_slice(&entry?.0[..32]);
            found.push(group);
            at = group_key(&group, u64::MAX, &B256::repeat_byte(0xff));
        }
        Ok(found)
    }

    pub fn private_receipt(&self, block: &B256, marker: &B256) -> Result<Option<PrivateReceipt>> {
        let record = self.tables().private_receipts.get(self.txn(), &receipt_key(block, marker))?;
        record.map(PrivateReceipt::restore).transpose()
    }

    /// Return the canonical markers of a payload: number, index, block hash and marker hash.
    pub fn markers_of(&self, payload_key: &B256) -> Result<Vec<Marker>> {
        let mut found = Vec::new();
        for entry in self.tables().private_markers.prefix(self.txn(), payload_key.as_slice())? {
            let (key, value) = entry?;
            let (Some(place), Some((block, hash))) = (key.get(32..44), value.split_at_checked(32)) else {
                return Err(Error::damaged("a marker cannot be read"));
            };
            let block = B256::from_slice(block);
            let at = number(&place[..8]);
            if self.canonical_hash(at)? == Some(block) {
                let index = u32::from_be_bytes(place[8..].try_into().expect("four bytes"));
                found.push(Marker {
                    payload_key: *payload_key,
                    number: at,
                    index,
                    block,
                    hash: B256::try_from(hash).map_err(|_| Error::damaged("a marker has no hash"))?,
                });
            }
        }
        Ok(found)
    }

    /// Return up to `max` keys of payloads whose canonical markers have no result yet, from key `start` on, and the key
    /// from which to continue; None at the end.
    pub fn unread(&self, start: &[u8], max: usize) -> Result<(Vec<B256>, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        // the start key has at least one byte, because LMDB rejects empty keys
        for entry in self.tables().private_markers.from(self.txn(), start.max(&[0]))? {
            let (key, value) = entry?;
            if found.len() == max {
                return Ok((found, Some(key.to_vec())));
            }
            let (Some(place), Some(payload), Some((block, marker))) =
                (key.get(32..44), key.get(..32), value.split_at_checked(32))
            else {
                return Err(Error::damaged("a marker cannot be read"));
            };
            let block = B256::from_slice(block);
            let is_read = self.tables().private_receipts.get(self.txn(), value)?.is_some() || marker.len() != 32;
            if !is_read && self.canonical_hash(number(&place[..8]))? == Some(block) {
                found.push(B256::from_slice(payload));
            }
        }
        Ok((found, None))
    }

    /// Return up to `max` keys of late payloads, from key `start` on: payloads whose markers were processed, but
    /// which still have to be executed.
    pub fn late(&self, start: &[u8], max: usize) -> Result<Vec<B256>> {
        // the start key has at least one byte, because LMDB rejects empty keys
        let entries = self.tables().private_late.from(self.txn(), start.max(&[0]))?;
        entries.take(max).map(|entry| Ok(B256::from_slice(&entry?.0[..32]))).collect()
    }

    pub(crate) fn private_code(&self, hash: &B256) -> Result<Option<&[u8]>> {
        self.tables().private_code.get(self.txn(), hash.as_slice())
    }
}

fn split_group_key(key: &[u8], group: &B256) -> Option<(B256, u64)> {
    (key.len() == 72 && key[..32] == group[..]).then(|| (B256::from_slice(&key[40..]), number(&key[32..40])))
}

fn roots_of(record: &[u8]) -> Vec<(B256, B256)> {
    let pairs = record.get(8..).unwrap_or_default().chunks_exact(64);
    pairs.map(|pair| (B256::from_slice(&pair[..32]), B256::from_slice(&pair[32..]))).collect()
}

fn group_state(block: B256, at: u64, record: &[u8]) -> Result<GroupState> {
    let root = roots_of(record).last().map(|(_, root)| *root);
    let root = root.ok_or_else(|| Error::damaged(format!("a group has no state in block {block}")))?;
    let stored = (root != EMPTY_ROOT).then(|| Child::Stored { hash: root, id: number(&record[..8]) });
    let trie = Trie { root: stored };
    Ok(GroupState { block, number: at, root, trie })
}

/// Record an arriving payload as late if its marker was already processed. Returns whether the payload is late.
pub fn note_late(tables: &Tables, txn: &mut RwTxn<'_>, payload_key: &B256) -> Result<bool> {
    let is_passed = has_marker(tables, txn, payload_key)?;
    if is_passed {
        tables.private_late.put(txn, payload_key.as_slice(), &[])?;
    }
    Ok(is_passed)
}

fn has_marker(tables: &Tables, txn: &RoTxn<'_>, payload_key: &B256) -> Result<bool> {
    Ok(tables.private_markers.prefix(txn, payload_key.as_slice())?.next().transpose()?.is_some())
}
