//! Consistent read access to the database.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use heed::{RoTxn, WithoutTls};
use ophion_primitives::errors::{Error, Result};

use super::database::{Database, missing};
use super::known_rows::KnownRows;
use super::log_index;
use super::missing_bodies::{body_row, receipts_row};
use super::records::{
    HEADER_AT, Nodes, counted, head, known_at, number, read_body, read_header, read_receipts, split_body,
};
use super::state_roots::root_id;
use super::tables::{Tables, meta};
use super::tx_index;
use crate::chain::body::{BodyData, Known, decode_rest};
use crate::chain::receipts::{self, ReceiptData, ReceiptInBlock};
use crate::trie::{Account, EMPTY_ROOT, Trie};

/// An open read transaction. It should be short-lived, because LMDB cannot reuse the pages that the transaction sees.
pub struct Snapshot {
    txn: RoTxn<'static, WithoutTls>,
    /// Rows of the table `nodes` that this snapshot has read.
    known: KnownRows,
    pub inner: Arc<Database>,
}

impl Database {
    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot> {
        Ok(Snapshot { txn: self.read_txn()?, known: KnownRows::default(), inner: self.clone() })
    }
}

impl Snapshot {
    pub(crate) fn txn(&self) -> &RoTxn<'static> {
        &self.txn
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    pub(crate) fn nodes(&self) -> Nodes<'_> {
        Nodes::new(self.inner.tables.state_nodes(), &self.txn)
    }

    /// Return the source of trie nodes for an execution, which reads a node and then changes it. The second read of a
    /// node needs no lookup.
    pub(crate) fn remembered_nodes(&self) -> Nodes<'_> {
        Nodes { known: Some(&self.known), ..self.nodes() }
    }

    pub fn head(&self) -> Result<Option<(B256, u64)>> {
        head(self.tables(), &self.txn)
    }

    /// Return the root of the head's state.
    pub fn head_root(&self) -> Result<B256> {
        Ok(self.tables().meta.get(&self.txn, meta::HEAD_ROOT)?.map_or(EMPTY_ROOT, B256::from_slice))
    }

    pub fn canonical_hash(&self, at: u64) -> Result<Option<B256>> {
        Ok(self.tables().canonical.get(&self.txn, &at.to_be_bytes())?.map(B256::from_slice))
    }

    pub fn header(&self, hash: &B256) -> Result<Option<(u64, U256, &[u8])>> {
        read_header(self.tables(), &self.txn, hash)
    }

    /// Return the blob gas price of a block; None before Cancun.
    pub fn blob_price(&self, hash: &B256) -> Result<Option<u128>> {
        let record = self.tables().headers.get(&self.txn, hash.as_slice())?;
        let price = record.and_then(|record| record.get(40..HEADER_AT));
        let price = price.map(|bytes| u128::from_be_bytes(bytes.try_into().expect("sixteen bytes")));
        Ok(price.filter(|price| *price > 0))
    }

    pub fn body(&self, hash: &B256) -> Result<Option<BodyData>> {
        read_body(self.tables(), &self.txn, hash)
    }

    pub fn receipts(&self, hash: &B256) -> Result<Option<Vec<ReceiptData>>> {
        read_receipts(self.tables(), &self.txn, hash)
    }

    /// Return the undecoded receipts of a block.
    pub fn receipts_record(&self, hash: &B256) -> Result<Option<&[u8]>> {
        receipts_row(self.tables(), &self.txn, hash)
    }

    /// Return the number of transactions of a block, and the RLP size of its body.
    pub fn body_size(&self, hash: &B256) -> Result<Option<(usize, usize)>> {
        let Some(record) = body_row(self.tables(), &self.txn, hash)? else { return Ok(None) };
        let (transactions, payload) = counted(record)?;
        Ok(Some((transactions, payload.len())))
    }

    /// Return one receipt of a block. Fails if the stored receipt exceeds `max_bytes`.
    pub fn receipt(&self, hash: &B256, index: usize, max_bytes: usize) -> Result<Option<ReceiptInBlock>> {
        let record = receipts_row(self.tables(), &self.txn, hash)?;
        Ok(record.map(|record| receipts::decode_receipt_at(record, index, max_bytes)).transpose()?.flatten())
    }

    /// Return block number and index of a canonical transaction; None if it is unknown.
    pub fn position(&self, transaction: &B256) -> Result<Option<(u64, u32)>> {
        let (tables, txn) = (self.tables(), &self.txn);
        // Read the buffer of the transaction index before the table, because a row leaves the buffer only after it was
        // written.
        let tx_index_buffer = self.inner.tx_index_buffer.places(transaction);
        if let Some(place) = tx_index::confirmed(tables, txn, transaction, tx_index_buffer)? {
            return Ok(Some(place));
        }
        if let Some(place) = tx_index::find(tables, txn, transaction)? {
            return Ok(Some(place));
        }
        // The index row may have left the buffer after this snapshot was opened, so look in a newer snapshot.
        let later = self.inner.read_txn()?;
        tx_index::confirmed(tables, txn, transaction, tx_index::places(tables, &later, transaction)?)
    }

    /// Return hash and sender of each transaction of a block, and the undecoded body RLP.
    pub fn stored_body(&self, hash: &B256) -> Result<Option<(Vec<Known>, &[u8])>> {
        let record = body_row(self.tables(), &self.txn, hash)?;
        record.map(|record| split_body(record, hash)).transpose()
    }

    /// Return hash and sender of one transaction of a block, and the undecoded body RLP.
    pub fn stored_transaction(&self, hash: &B256, index: usize) -> Result<Option<(Known, &[u8])>> {
        let record = body_row(self.tables(), &self.txn, hash)?;
        Ok(record.map(|record| known_at(record, index)).transpose()?.flatten())
    }

    /// Return the numbers of transactions and ommers of a block.
    pub fn counts(&self, hash: &B256) -> Result<Option<(usize, usize)>> {
        let Some(record) = body_row(self.tables(), &self.txn, hash)? else { return Ok(None) };
        let (transactions, payload) = counted(record)?;
        Ok(Some((transactions, decode_rest(payload)?.0.len())))
    }

    /// Return the trie of a state root, and the size of the trie in memory. For the head, this is the cached trie.
    pub fn trie(&self, root: B256) -> Result<(Trie<Account>, usize)> {
        match self.inner.live_trie(root) {
            Some(found) => Ok(found),
            None => Ok((self.inner.stored_trie(&self.txn, root)?, 0)),
        }
    }

    /// Return the trie of a stored state, read only from this snapshot; None if the state is not stored.
    pub(crate) fn stored_state(&self, root: B256) -> Result<Option<Trie<Account>>> {
        match self.inner.stored_trie(&self.txn, root) {
            Ok(trie) => Ok(Some(trie)),
            Err(Error::MissingState(_)) => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    pub(crate) fn stored_code(&self, hash: &B256) -> Result<Option<&[u8]>> {
        self.tables().code.get(&self.txn, hash.as_slice())
    }

    /// Fail if a state has been pruned since it was opened.
    pub(crate) fn expect_state(&self, root: &B256) -> Result<()> {
        match root_id(self.tables(), &self.txn, root)? {
            Some(_) => Ok(()),
            None => Err(missing(*root)),
        }
    }

    /// Return the number of trie nodes written since the database was created.
    pub fn nodes_written(&self) -> Result<u64> {
        Ok(self.tables().meta.get(&self.txn, meta::NEXT_NODE)?.map_or(0, |next| number(next) - 1))
    }

    /// Return a named value of the table `meta`.
    pub fn meta(&self, key: &str) -> Result<Option<&[u8]>> {
        self.tables().meta.get(&self.txn, &meta::own(key))
    }

    /// Return the number of trie nodes in the table `node_rows`.
    fn packed_nodes(&self) -> Result<u64> {
        let value = |key: &[u8]| Ok::<_, Error>(self.tables().meta.get(&self.txn, key)?.map(number));
        let (next, freed) = (value(meta::NEXT_NODE)?.unwrap_or(1), value(meta::FREED_PACKED)?.unwrap_or(0));
        Ok(value(meta::FIRST_PACKED)?.map_or(0, |first| next.saturating_sub(first + freed)))
    }

    /// Return name, number of entries and bytes of every table. The entries of the table `node_rows` are trie nodes.
    /// Empty key-value tables are omitted.
    pub fn usage(&self) -> Result<Vec<(String, u64, u64)>> {
        let mut used = Vec::new();
        for (index, (name, table)) in self.tables().each().into_iter().enumerate() {
            let (entries, bytes) = table.usage(&self.txn)?;
            let entries = if index == Tables::NODE_ROWS { self.packed_nodes()? } else { entries };
            used.push((name.to_string(), entries, bytes));
        }
        used.extend(self.rows_usage()?);
        Ok(used)
    }

    /// Append to `blocks` the canonical blocks from `first` to `last` that may hold a log with this fold (the hash of
    /// an address or topic).
    pub fn listed(&self, fold: u64, first: u64, last: u64, blocks: &mut Vec<u64>) -> Result<()> {
        log_index::search(self.tables(), &self.txn, fold, first, last, blocks)
    }
}
