//! The database handle: caches, the writer lock and the commit of blocks.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use alloy_primitives::B256;
use alloy_primitives::map::{B256Map, B256Set};
use heed::{CompactionOption, Env, RoTxn, RwTxn, WithoutTls};
use ophion_primitives::errors::{Error, Result};
use revm_state::Bytecode;

use super::block_records::{BlockRecord, Effects};
use super::forked_state::Fork;
use super::log_index::{self, folds};
use super::mapped_pages;
use super::node_cache::NodeCache;
use super::node_writer::NodeWriter;
use super::opening;
use super::preimage_runs;
use super::records::{HEADER_AT, append_body_prefix, decode_header, number, read_body, read_header, read_receipts};
use super::state_download::WholeStorages;
use super::state_roots::{note_root, root_id};
use super::tables::{RowTables, Tables, meta};
use super::tx_index;
use super::tx_index_buffer::{Parts, TxIndexBuffer};
use crate::chain::receipts;
use crate::trie::{Account, Child, EMPTY_ROOT, Trie, save_root};

/// Maximum number of analysed contract codes (with jump destinations) in the cache.
const MAX_CACHED_CODES: usize = 2048;

/// Number of commits between two checks that remove the LMDB reader entries of killed processes.
const COMMITS_PER_READER_CHECK: u32 = 16;

/// Trie of the head state, held in memory.
struct HeadTrie {
    root: B256,
    trie: Trie<Account>,
    /// Estimated memory of the trie's nodes, in bytes.
    weight: usize,
}

#[derive(Default)]
struct Live {
    head: Option<HeadTrie>,
    /// Trie of the previous head state. It stays for one more block, so that the writer thread, not the event loop,
    /// frees its memory.
    before: Option<HeadTrie>,
}

pub struct Database {
    pub(super) tables: Tables,
    pub(super) row_tables: RowTables,
    env: Env<WithoutTls>,
    codes: RwLock<B256Map<Bytecode>>,
    /// Cache of nodes of the table `nodes`. Private nodes are in another table, with ids of its own, so this cache does
    /// not hold them.
    pub(crate) node_cache: NodeCache,
    /// On a development node that forks another chain: the state of that chain, below the local state.
    fork: RwLock<Option<Arc<Fork>>>,
    live: Mutex<Live>,
    /// Buffered rows of the transaction index. A read-only process has the rows of the moment when it opened the
    /// database, or of the last `follow`.
    pub(super) tx_index_buffer: TxIndexBuffer,
    /// While a state is downloaded: ids of complete storage tries.
    pub(super) whole_storages: WholeStorages,
    /// Maximum memory in bytes for trie nodes of the latest state.
    state_cache: AtomicUsize,
    /// Writer lock. After a failed write, the lock holds the reason of the failure.
    writer: Mutex<Option<String>>,
    closed: AtomicBool,
    /// Whether to write trie branches as deltas (trie/branch_delta.rs). Readers support both forms.
    writes_changes: AtomicBool,
    commits: AtomicU32,
}

impl Database {
    /// Unmap the pages of the database if more than `max_bytes` of files are mapped. Later reads map them again.
    pub fn limit_mapped_pages(&self, max_bytes: usize) {
        mapped_pages::limit(&self.env.path().join("data.mdb"), max_bytes);
    }

    pub fn open(path: &Path, create: bool, read_only: bool, durable: bool) -> Result<Arc<Self>> {
        let (env, tables, row_tables) = opening::open(path, create, read_only, durable)?;
        let txn = env.read_txn()?;
        let tx_index_buffer = TxIndexBuffer::rebuild(&tables, &txn)?;
        drop(txn);
        Ok(Arc::new(Database {
            tables,
            row_tables,
            env,
            codes: RwLock::default(),
            node_cache: NodeCache::default(),
            fork: RwLock::default(),
            live: Mutex::default(),
            tx_index_buffer,
            whole_storages: WholeStorages::default(),
            state_cache: AtomicUsize::new(usize::MAX),
            writer: Mutex::new(None),
            closed: AtomicBool::new(false),
            writes_changes: AtomicBool::new(false),
            commits: AtomicU32::new(0),
        }))
    }

    /// Return a read transaction for a snapshot.
    pub(super) fn read_txn(&self) -> Result<RoTxn<'static, WithoutTls>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Storage("the database is closed".into()));
        }
        Ok(self.env.clone().static_read_txn()?)
    }

    /// Follow the commits of another process: update the buffer of the transaction index. All other data is read from
    /// the database.
    pub fn follow(&self) -> Result<()> {
        let txn = self.read_txn()?;
        self.tx_index_buffer.follow(&self.tables, &txn)
    }

    /// Commit a write transaction. Every `COMMITS_PER_READER_CHECK` commits, also remove the reader entries of killed
    /// processes. The entry of a process that was killed while it read, such as an SQL query above its time limit,
    /// keeps freed pages from being reused.
    fn finish(&self, txn: RwTxn<'_>) -> Result<()> {
        txn.commit()?;
        if self.commits.fetch_add(1, Ordering::Relaxed).is_multiple_of(COMMITS_PER_READER_CHECK) {
            // the data is committed, so a failure here must not fail the write
            let _ = self.env.clear_stale_readers();
        }
        Ok(())
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.forget_live();
        self.node_cache.clear();
    }

    /// Limit the memory in bytes for trie nodes of the latest state.
    pub fn set_state_cache(&self, bytes: usize) {
        self.state_cache.store(bytes, Ordering::Relaxed);
    }

    /// Return the estimated memory in bytes of the nodes of the latest state.
    pub fn state_cached(&self) -> usize {
        self.live.lock().expect("no panic while locked").head.as_ref().map_or(0, |head| head.weight)
    }

    pub fn state_cache(&self) -> usize {
        self.state_cache.load(Ordering::Relaxed)
    }

    /// Write trie branches as deltas from now on.
    pub fn write_changes(&self) {
        self.writes_changes.store(true, Ordering::Relaxed);
    }

    pub fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    /// Set the forked chain, or remove it with None. Keys that the local state lacks are read from the forked chain.
    pub fn set_fork(&self, fork: Option<Arc<Fork>>) {
        *self.fork.write().expect("no panic while locked") = fork;
    }

    pub fn fork(&self) -> Option<Arc<Fork>> {
        self.fork.read().expect("no panic while locked").clone()
    }

    /// Return the analysed contract code from the cache.
    pub fn cached_code(&self, hash: &B256) -> Option<Bytecode> {
        self.codes.read().expect("no panic while locked").get(hash).cloned()
    }

    pub fn keep_code(&self, hash: B256, code: &Bytecode) {
        let mut codes = self.codes.write().expect("no panic while locked");
        if codes.len() >= MAX_CACHED_CODES {
            codes.clear();
        }
        codes.insert(hash, code.clone());
    }

    /// Return the cached trie of the head state and its size in memory; None if `root` is not the root of that state.
    pub(super) fn live_trie(&self, root: B256) -> Option<(Trie<Account>, usize)> {
        let live = self.live.lock().expect("no panic while locked");
        let head = live.head.as_ref().filter(|head| head.root == root)?;
        Some((head.trie.clone(), head.weight))
    }

    fn forget_live(&self) {
        *self.live.lock().expect("no panic while locked") = Live::default();
    }

    /// Acquire the writer lock. Returns an error if an earlier write has failed.
    fn writer(&self) -> Result<MutexGuard<'_, Option<String>>> {
        let failed = self.writer.lock().expect("no panic while locked");
        match &*failed {
            Some(reason) => Err(Error::Storage(reason.clone())),
            None => Ok(failed),
        }
    }

    pub fn put_meta(&self, key: &str, value: &[u8]) -> Result<()> {
        self.write_alone(|txn, tables| tables.meta.put(txn, &meta::own(key), value))
    }

    /// Run a write transaction. After a failure, the database writes nothing until a restart.
    pub(super) fn write_or_stop(&self, write: impl FnOnce(&mut RwTxn<'_>) -> Result<()>) -> Result<()> {
        let outcome = self.write_alone(|txn, _| write(txn));
        if let Err(cause) = &outcome {
            *self.writer.lock().expect("no panic while locked") = Some(stopped(cause));
        }
        outcome
    }

    /// Write blocks and values of the table `meta`, and move the head of the canonical chain, in one transaction.
    pub fn commit(
        self: &Arc<Self>,
        blocks: &[Arc<BlockRecord>],
        removed: &[B256],
        added: &[B256],
        named: &[(String, Vec<u8>)],
    ) -> Result<()> {
        let mut failed = self.writer()?;
        self.refuse_rootless(blocks)?;
        let outcome = self.write(blocks, removed, added, named);
        if let Err(cause) = &outcome {
            // stop all writes: trie nodes in memory may have ids that the failed write did not store
            *failed = Some(stopped(cause));
            self.forget_live();
        }
        outcome
    }

    /// Make a committed block the head of the canonical chain again.
    ///
    /// The cost does not depend on the number of later blocks. Rows of later blocks stay until new blocks replace them;
    /// reads ignore these rows.
    pub fn rewind(self: &Arc<Self>, hash: B256, state_root: B256) -> Result<()> {
        let trie = self.write_alone(|txn, tables| {
            let (number, _, _) = read_header(tables, txn, &hash)?.ok_or_else(|| unknown(hash))?;
            let mut head = hash.to_vec();
            head.extend_from_slice(&number.to_be_bytes());
            tables.meta.put(txn, meta::HEAD, &head)?;
            tables.meta.put(txn, meta::HEAD_ROOT, state_root.as_slice())?;
            tables.canonical.put(txn, &number.to_be_bytes(), hash.as_slice())?;
            self.stored_trie(txn, state_root)
        })?;
        let mut live = self.live.lock().expect("no panic while locked");
        live.before = live.head.replace(HeadTrie { root: state_root, trie, weight: 0 });
        Ok(())
    }

    /// Write a state that a development node has edited. It replaces the state of the head, without a new block.
    pub fn commit_state(self: &Arc<Self>, effects: &Effects, number: u64) -> Result<()> {
        let mut failed = self.writer()?;
        let outcome = self.write_state(effects, number);
        if let Err(cause) = &outcome {
            *failed = Some(stopped(cause));
            self.forget_live();
        }
        outcome
    }

    fn write_state(self: &Arc<Self>, effects: &Effects, block_number: u64) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        let tables = &self.tables;
        let next = tables.meta.get(&txn, meta::NEXT_NODE)?.map_or(1, number);
        let mut writer = NodeWriter::new(tables.state_nodes(), next);
        self.write_trie(&mut txn, &mut writer, effects, block_number)?;
        writer.flush(&mut txn)?;
        preimage_runs::add(tables.preimage_runs, &mut txn, effects.preimages.iter())?;
        tables.meta.put(&mut txn, meta::NEXT_NODE, &writer.next.to_be_bytes())?;
        tables.meta.put(&mut txn, meta::HEAD_ROOT, effects.state_root.as_slice())?;
        self.finish(txn)?;
        let head = HeadTrie { root: effects.state_root, trie: effects.trie.clone(), weight: effects.weight };
        let mut live = self.live.lock().expect("no panic while locked");
        live.before = live.head.replace(head);
        Ok(())
    }

    /// Reject a block whose parent state was pruned since execution, because the block would refer to deleted nodes.
    fn refuse_rootless(&self, blocks: &[Arc<BlockRecord>]) -> Result<()> {
        let txn = self.read_txn()?;
        let mut fresh = B256Set::default();
        for block in blocks {
            let parent = block.effects.parent_root;
            if parent != EMPTY_ROOT && !fresh.contains(&parent) && root_id(&self.tables, &txn, &parent)?.is_none() {
                return Err(missing(parent));
            }
            fresh.insert(block.effects.state_root);
        }
        Ok(())
    }

    /// Run a short write transaction that writes no trie nodes.
    pub(super) fn write_alone<T>(&self, write: impl FnOnce(&mut RwTxn<'_>, &Tables) -> Result<T>) -> Result<T> {
        let _writer = self.writer()?;
        let mut txn = self.env.write_txn()?;
        let done = write(&mut txn, &self.tables)?;
        self.finish(txn)?;
        Ok(done)
    }

    /// Copy the database without free pages to a file or pipe. Blocks can be written meanwhile, but freed pages are
    /// reused only after the copy.
    pub fn copy(&self, target: BorrowedFd<'_>) -> Result<()> {
        // SAFETY: the descriptor is open while borrowed, and LMDB writes to it without closing it.
        unsafe { self.env.copy_to_fd(target.as_raw_fd(), CompactionOption::Enabled) }?;
        Ok(())
    }

    fn write(
        self: &Arc<Self>,
        blocks: &[Arc<BlockRecord>],
        removed: &[B256],
        added: &[B256],
        named: &[(String, Vec<u8>)],
    ) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        let tables = &self.tables;
        for (key, value) in named {
            tables.meta.put(&mut txn, &meta::own(key), value)?;
        }
        let next = tables.meta.get(&txn, meta::NEXT_NODE)?.map_or(1, number);
        let mut writer = NodeWriter::new(tables.state_nodes(), next);
        for block in blocks {
            self.write_block(&mut txn, &mut writer, block)?;
        }
        writer.flush(&mut txn)?;
        let preimages = blocks.iter().flat_map(|block| &block.effects.preimages);
        preimage_runs::add(tables.preimage_runs, &mut txn, preimages)?;
        let fresh: B256Map<&BlockRecord> = blocks.iter().map(|block| (block.hash, block.as_ref())).collect();
        for hash in removed {
            self.take_off(&mut txn, *hash)?;
        }
        let written = self.put_on(&mut txn, &fresh, added)?;
        tables.meta.put(&mut txn, meta::NEXT_NODE, &writer.next.to_be_bytes())?;
        let live = added.last().map(|head| self.move_head(&mut txn, &fresh, *head)).transpose()?;
        self.finish(txn)?;
        self.tx_index_buffer.settle(written);
        if let Some(head) = live {
            let mut live = self.live.lock().expect("no panic while locked");
            let before = live.head.replace(head);
            let gone = std::mem::replace(&mut live.before, before);
            drop(live);
            drop(gone);
        }
        Ok(())
    }

    fn write_block(&self, txn: &mut RwTxn<'_>, writer: &mut NodeWriter, block: &BlockRecord) -> Result<()> {
        let tables = &self.tables;
        let effects = &block.effects;
        self.write_trie(txn, writer, effects, block.number)?;
        let mut record = Vec::with_capacity(HEADER_AT + block.header.len());
        record.extend_from_slice(&block.number.to_be_bytes());
        record.extend_from_slice(&block.total_difficulty.to_be_bytes::<32>());
        record.extend_from_slice(&effects.blob_price.to_be_bytes());
        record.extend_from_slice(&block.header);
        tables.headers.put(txn, block.hash.as_slice(), &record)?;

        let known = block.body.known()?;
        let mut record = Vec::new();
        append_body_prefix(known, &mut record);
        record.extend_from_slice(&block.body.encode());
        tables.bodies.put(txn, block.hash.as_slice(), &record)?;
        tables.receipts.put(txn, block.hash.as_slice(), &receipts::store(&effects.receipts))
    }

    fn write_trie(
        &self,
        txn: &mut RwTxn<'_>,
        writer: &mut NodeWriter,
        effects: &Effects,
        block_number: u64,
    ) -> Result<()> {
        let tables = &self.tables;
        if let Some(root) = &effects.trie.root {
            let before = match self.writes_changes.load(Ordering::Relaxed) {
                true => root_id(tables, txn, &effects.parent_root)?,
                false => None,
            };
            let id = save_root(root, before, &mut writer.beside(txn))?;
            note_root(tables, txn, &effects.state_root, id, block_number)?;
        }
        for (hash, code) in &effects.codes {
            tables.code.put(txn, hash.as_slice(), code)?;
        }
        Ok(())
    }

    fn take_off(&self, txn: &mut RwTxn<'_>, hash: B256) -> Result<()> {
        let (block_number, _, _) = read_header(&self.tables, txn, &hash)?.ok_or_else(|| unknown(hash))?;
        let body = read_body(&self.tables, txn, &hash)?.ok_or_else(|| unknown(hash))?;
        for (index, transaction) in body.hashes().iter().enumerate() {
            let place = (block_number, index as u32);
            tx_index::delete(self.tables.positions, txn, transaction, place)?;
            self.tx_index_buffer.remove(transaction, place);
        }
        self.tables.canonical.delete(txn, &block_number.to_be_bytes())?;
        Ok(())
    }

    fn put_on(&self, txn: &mut RwTxn<'_>, fresh: &B256Map<&BlockRecord>, added: &[B256]) -> Result<Parts> {
        let mut numbers = Vec::with_capacity(added.len());
        let mut logs: Vec<(u64, u64)> = Vec::new();
        for hash in added {
            let (block_number, hashes, found) = match fresh.get(hash) {
                Some(block) => (block.number, block.body.hashes(), folds(&block.effects.receipts)),
                None => {
                    let (block_number, _, _) = read_header(&self.tables, txn, hash)?.ok_or_else(|| unknown(*hash))?;
                    let body = read_body(&self.tables, txn, hash)?.ok_or_else(|| unknown(*hash))?;
                    let receipts = read_receipts(&self.tables, txn, hash)?.ok_or_else(|| unknown(*hash))?;
                    (block_number, body.hashes(), folds(&receipts))
                }
            };
            for (index, transaction) in hashes.iter().enumerate() {
                self.tx_index_buffer.add(transaction, (block_number, index as u32));
            }
            numbers.push(block_number);
            logs.extend(found.into_iter().map(|fold| (fold, block_number)));
            self.tables.canonical.put(txn, &block_number.to_be_bytes(), hash.as_slice())?;
        }
        if let (Some(hash), Some(number)) = (added.last(), numbers.last()) {
            let mut head = hash.to_vec();
            head.extend_from_slice(&number.to_be_bytes());
            self.tables.meta.put(txn, meta::HEAD, &head)?;
        }
        log_index::write(&self.tables, txn, &logs)?;
        self.tx_index_buffer.write(&self.tables, txn, numbers)
    }

    /// Write the state root of the new head to the database. Returns the trie of that state.
    fn move_head(&self, txn: &mut RwTxn<'_>, fresh: &B256Map<&BlockRecord>, head: B256) -> Result<HeadTrie> {
        let (root, trie, weight) = match fresh.get(&head) {
            Some(block) => (block.effects.state_root, block.effects.trie.clone(), block.effects.weight),
            None => {
                let (_, _, header) = read_header(&self.tables, txn, &head)?.ok_or_else(|| unknown(head))?;
                let root = decode_header(header)?.state_root;
                (root, self.stored_trie(txn, root)?, 0)
            }
        };
        self.tables.meta.put(txn, meta::HEAD_ROOT, root.as_slice())?;
        Ok(HeadTrie { root, trie, weight })
    }

    /// Return the trie of a stored state, by its state root.
    pub(super) fn stored_trie(&self, txn: &RoTxn<'_>, root: B256) -> Result<Trie<Account>> {
        if root == EMPTY_ROOT {
            return Ok(Trie::default());
        }
        let id = root_id(&self.tables, txn, &root)?.ok_or_else(|| missing(root))?;
        Ok(Trie { root: Some(Child::Stored { hash: root, id }) })
    }
}

/// Return the error for a state that is not stored.
pub(crate) fn missing(root: B256) -> Error {
    Error::MissingState(format!("the state {root} is not in the database"))
}

fn stopped(cause: &Error) -> String {
    format!("{cause}; no more is written until the node is restarted")
}

fn unknown(hash: B256) -> Error {
    Error::Storage(format!("block {hash} is not in the database"))
}
