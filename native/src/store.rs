//! The database: opening it, snapshots for reading, and the one function that writes blocks.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use alloy_consensus::Header;
use alloy_primitives::map::{B256Map, HashMap};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_rlp::Decodable;
use heed::types::Bytes as Raw;
use heed::{CommitOrAbort, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use revm::state::Bytecode;

use crate::account::{Account, FlatAccount, Slot};
use crate::body::{BodyData, Known, decode_body};
use crate::errors::{Error, Result};
use crate::execute::ExecutionData;
use crate::receipts::{self, ReceiptData};
use crate::state::StateData;
use crate::tables::{Table, Tables, meta};
use crate::trie::{Child, EMPTY_ROOT, Saver, Source, Trie, save_root};

/// Virtual size of the map; halved while the system refuses it. Only what is used takes memory or disk.
const MAP_SIZE: usize = 1 << 38;
const SMALLEST_MAP: usize = 1 << 30;
/// Contract codes kept analysed, so that a call does not look for jump destinations again.
const CODES_KEPT: usize = 2048;
/// Accounts and slots touched since the head's trie was last let go of; bounds the memory of cached nodes.
const TOUCHES_KEPT: usize = 400_000;

pub struct Inner {
    pub tables: Tables,
    env: Env<WithoutTls>,
    codes: RwLock<B256Map<Bytecode>>,
    /// The trie of the head as the last commit left it in memory.
    live: Mutex<Option<(B256, Trie<Account>)>>,
    touches: Mutex<usize>,
    /// One writer at a time, and the reason why no more may be written.
    writer: Mutex<Option<String>>,
    durable: bool,
    closed: AtomicBool,
}

/// A consistent view of the database for as long as it lives; keep it short.
pub struct Snapshot {
    txn: RoTxn<'static, WithoutTls>,
    pub inner: Arc<Inner>,
}

/// A block ready to be written.
pub struct BlockRecord {
    pub hash: B256,
    pub number: u64,
    pub header: Bytes,
    pub body: Arc<BodyData>,
    pub execution: Arc<ExecutionData>,
    pub total_difficulty: U256,
}

/// Where the trie reads its nodes in the database.
pub struct Nodes<'t> {
    pub table: Table,
    pub txn: &'t RoTxn<'t>,
}

impl Source for Nodes<'_> {
    fn load<T>(&self, id: u64, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        match self.table.get(self.txn, &id.to_be_bytes())? {
            Some(bytes) => read(bytes),
            None => Err(Error::damaged(format!("trie node {id} is missing"))),
        }
    }
}

impl Inner {
    pub fn open(path: &Path, create: bool, read_only: bool, durable: bool) -> Result<Arc<Self>> {
        let place = path.display();
        if create && !read_only {
            std::fs::create_dir_all(path).map_err(|cause| Error::Storage(format!("cannot create {place}: {cause}")))?;
        } else if !path.join("data.mdb").exists() {
            return Err(Error::Storage(format!("there is no database in {place}")));
        }
        let mut flags = EnvFlags::empty();
        if read_only {
            flags |= EnvFlags::READ_ONLY;
        }
        if !durable {
            flags |= EnvFlags::NO_SYNC;
        }
        let env = Self::open_env(path, flags)?;
        env.clear_stale_readers()?;
        let tables = Self::open_tables(&env, read_only)?;
        let inner = Arc::new(Inner {
            tables,
            env,
            codes: RwLock::default(),
            live: Mutex::new(None),
            touches: Mutex::new(0),
            writer: Mutex::new(None),
            durable,
            closed: AtomicBool::new(false),
        });
        inner.check_layout(read_only)?;
        Ok(inner)
    }

    fn open_env(path: &Path, flags: EnvFlags) -> Result<Env<WithoutTls>> {
        let mut size = MAP_SIZE;
        loop {
            let mut options = EnvOpenOptions::new().read_txn_without_tls();
            options.map_size(size).max_dbs(Tables::COUNT).max_readers(1024);
            // SAFETY: the data directory's lock keeps other processes out, and the flags used here never
            // weaken what a reader sees.
            let opened = unsafe { options.flags(flags).open(path) };
            match opened {
                Ok(env) => return Ok(env),
                Err(heed::Error::Io(cause)) if cause.raw_os_error() == Some(12) && size > SMALLEST_MAP => size /= 2,
                Err(cause) => {
                    return Err(Error::Storage(format!("cannot open the database in {}: {cause}", path.display())));
                }
            }
        }
    }

    fn open_tables(env: &Env<WithoutTls>, read_only: bool) -> Result<Tables> {
        let mut names = Vec::new();
        Tables::open(|name| -> Result<Table> {
            names.push(name);
            let missing = || Error::Storage(format!("the database has no table '{name}'"));
            let database = if read_only {
                let txn = env.read_txn()?;
                env.open_databases_and_commit(txn, |opener, txn| {
                    opener.open_database::<Raw, Raw>(txn, Some(name)).map(CommitOrAbort::<_, ()>::Commit)
                })?
                .unwrap_commit()
                .ok_or_else(missing)?
            } else {
                let txn = env.write_txn()?;
                env.create_databases_and_commit(txn, |opener, txn| {
                    opener.create_database::<Raw, Raw>(txn, Some(name)).map(CommitOrAbort::<_, ()>::Commit)
                })?
                .unwrap_commit()
            };
            // SAFETY: only the lifetime changes. The handle is a number that stays valid while the environment is
            // open, and `Inner` owns both.
            Ok(Table::new(unsafe {
                std::mem::transmute::<heed::Database<'_, Raw, Raw>, heed::Database<'static, Raw, Raw>>(database)
            }))
        })
    }

    fn check_layout(&self, read_only: bool) -> Result<()> {
        let txn = self.env.read_txn()?;
        let found = self.tables.meta.get(&txn, meta::LAYOUT)?.map(<[u8]>::to_vec);
        drop(txn);
        match found {
            Some(version) if version == meta::LAYOUT_VERSION => Ok(()),
            Some(version) => Err(Error::Storage(format!(
                "the database has layout {}, this program knows layout {}: use a newer Ophion or another data path",
                version.first().copied().unwrap_or(0),
                meta::LAYOUT_VERSION[0]
            ))),
            None if read_only => Ok(()),
            None => {
                let mut txn = self.env.write_txn()?;
                self.tables.meta.put(&mut txn, meta::LAYOUT, meta::LAYOUT_VERSION)?;
                Ok(txn.commit()?)
            }
        }
    }

    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Storage("the database is closed".into()));
        }
        Ok(Snapshot { txn: self.env.clone().static_read_txn()?, inner: self.clone() })
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        *self.live.lock().expect("no panic while locked") = None;
    }

    pub fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    /// Contract code, analysed, from memory when it was used before.
    pub fn cached_code(&self, hash: &B256) -> Option<Bytecode> {
        self.codes.read().expect("no panic while locked").get(hash).cloned()
    }

    pub fn keep_code(&self, hash: B256, code: &Bytecode) {
        let mut codes = self.codes.write().expect("no panic while locked");
        if codes.len() >= CODES_KEPT {
            codes.clear();
        }
        codes.insert(hash, code.clone());
    }

    /// The trie of a state root: the one in memory when it is the head's.
    pub fn trie(&self, root: B256, snapshot: &Snapshot) -> Result<Trie<Account>> {
        if root == EMPTY_ROOT {
            return Ok(Trie::default());
        }
        if let Some((live, trie)) = &*self.live.lock().expect("no panic while locked")
            && *live == root
        {
            return Ok(trie.clone());
        }
        match self.tables.roots.get(&snapshot.txn, root.as_slice())? {
            Some(id) => {
                let id =
                    u64::from_be_bytes(id.try_into().map_err(|_| Error::damaged("a state root has no proper id"))?);
                Ok(Trie { root: Some(Child::Stored { hash: root, id }) })
            }
            None => Err(Error::MissingState(format!("the state {root} is not in the database"))),
        }
    }

    pub fn put_meta(&self, key: &str, value: &[u8]) -> Result<()> {
        let failed = self.writer.lock().expect("no panic while locked");
        if let Some(reason) = &*failed {
            return Err(Error::Storage(reason.clone()));
        }
        let mut txn = self.env.write_txn()?;
        self.tables.meta.put(&mut txn, format!("node:{key}").as_bytes(), value)?;
        Ok(txn.commit()?)
    }

    /// Write blocks and move the canonical chain, all or nothing.
    pub fn commit(self: &Arc<Self>, blocks: &[Arc<BlockRecord>], removed: &[B256], added: &[B256]) -> Result<()> {
        let mut failed = self.writer.lock().expect("no panic while locked");
        if let Some(reason) = &*failed {
            return Err(Error::Storage(reason.clone()));
        }
        let outcome = self.write(blocks, removed, added);
        if let Err(cause) = &outcome {
            // Nodes in memory may carry ids that were never written: nothing may be built on them.
            *failed = Some(format!("{cause}; no more is written until the node is restarted"));
            *self.live.lock().expect("no panic while locked") = None;
        }
        outcome
    }

    fn write(self: &Arc<Self>, blocks: &[Arc<BlockRecord>], removed: &[B256], added: &[B256]) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        let tables = &self.tables;
        let next = tables.meta.get(&txn, meta::NEXT_NODE)?.map_or(1, number);
        let mut saver = NodeWriter { table: tables.nodes, next, buffer: Vec::new() };
        for block in blocks {
            self.write_block(&mut txn, &mut saver, block)?;
        }
        saver.flush(&mut txn)?;
        let fresh: B256Map<&BlockRecord> = blocks.iter().map(|block| (block.hash, block.as_ref())).collect();
        for hash in removed {
            self.take_off(&mut txn, *hash)?;
        }
        self.put_on(&mut txn, &fresh, added)?;
        tables.meta.put(&mut txn, meta::NEXT_NODE, &saver.next.to_be_bytes())?;
        let live = match added.last() {
            Some(head) => Some(self.move_flat(&mut txn, &fresh, added, *head)?),
            None => None,
        };
        txn.commit()?;
        if let Some((root, trie)) = live {
            self.keep_live(root, trie, blocks);
        }
        Ok(())
    }

    fn keep_live(&self, root: B256, trie: Trie<Account>, blocks: &[Arc<BlockRecord>]) {
        let mut touches = self.touches.lock().expect("no panic while locked");
        *touches += blocks.iter().map(|block| block.execution.touched()).sum::<usize>();
        let mut live = self.live.lock().expect("no panic while locked");
        if *touches > TOUCHES_KEPT {
            *touches = 0;
            *live = None;
        } else {
            *live = Some((root, trie));
        }
    }

    fn write_block(&self, txn: &mut RwTxn<'_>, saver: &mut NodeWriter, block: &BlockRecord) -> Result<()> {
        let tables = &self.tables;
        let execution = &block.execution;
        if let Some(root) = &execution.trie.root {
            let id = save_root(root, saver)?;
            if tables.roots.get(txn, execution.state_root.as_slice())?.is_none() {
                tables.roots.put(txn, execution.state_root.as_slice(), &id.to_be_bytes())?;
            }
        }
        for (hash, code) in &execution.codes {
            tables.code.put(txn, hash.as_slice(), code)?;
        }
        for (hash, preimage) in &execution.preimages {
            tables.preimages.put(txn, hash.as_slice(), preimage)?;
        }
        let mut record = Vec::with_capacity(HEADER_AT + block.header.len());
        record.extend_from_slice(&block.number.to_be_bytes());
        record.extend_from_slice(&block.total_difficulty.to_be_bytes::<32>());
        record.extend_from_slice(&execution.blob_price.to_be_bytes());
        record.extend_from_slice(&block.header);
        tables.headers.put(txn, block.hash.as_slice(), &record)?;

        let known = block.body.known()?;
        let mut record = Vec::new();
        record.extend_from_slice(&(known.len() as u32).to_be_bytes());
        for one in known {
            record.extend_from_slice(one.sender.as_slice());
            record.extend_from_slice(one.hash.as_slice());
        }
        record.extend_from_slice(&block.body.encode());
        tables.bodies.put(txn, block.hash.as_slice(), &record)?;
        tables.receipts.put(txn, block.hash.as_slice(), &receipts::store(&execution.receipts))
    }

    fn take_off(&self, txn: &mut RwTxn<'_>, hash: B256) -> Result<()> {
        let (block_number, _, _) = read_header(&self.tables, txn, &hash)?.ok_or_else(|| unknown(hash))?;
        let body = read_body(&self.tables, txn, &hash)?.ok_or_else(|| unknown(hash))?;
        for transaction in body.hashes() {
            self.tables.positions.delete(txn, transaction.as_slice())?;
        }
        self.tables.canonical.delete(txn, &block_number.to_be_bytes())?;
        Ok(())
    }

    fn put_on(&self, txn: &mut RwTxn<'_>, fresh: &B256Map<&BlockRecord>, added: &[B256]) -> Result<()> {
        let mut positions: Vec<(B256, [u8; 12])> = Vec::new();
        let mut logs: Vec<[u8; 16]> = Vec::new();
        for hash in added {
            let (block_number, hashes, found) = match fresh.get(hash) {
                Some(block) => (block.number, block.body.hashes(), folds(&block.execution.receipts)),
                None => {
                    let (block_number, _, _) = read_header(&self.tables, txn, hash)?.ok_or_else(|| unknown(*hash))?;
                    let body = read_body(&self.tables, txn, hash)?.ok_or_else(|| unknown(*hash))?;
                    let receipts = read_receipts(&self.tables, txn, hash)?.ok_or_else(|| unknown(*hash))?;
                    (block_number, body.hashes(), folds(&receipts))
                }
            };
            for (index, transaction) in hashes.into_iter().enumerate() {
                let mut place = [0u8; 12];
                place[..8].copy_from_slice(&block_number.to_be_bytes());
                place[8..].copy_from_slice(&(index as u32).to_be_bytes());
                positions.push((transaction, place));
            }
            for fold in found {
                let mut key = [0u8; 16];
                key[..8].copy_from_slice(&fold.to_be_bytes());
                key[8..].copy_from_slice(&block_number.to_be_bytes());
                logs.push(key);
            }
            self.tables.canonical.put(txn, &block_number.to_be_bytes(), hash.as_slice())?;
            let mut head = hash.to_vec();
            head.extend_from_slice(&block_number.to_be_bytes());
            self.tables.meta.put(txn, meta::HEAD, &head)?;
        }
        // Keys in order cost 15 to 50 percent less.
        positions.sort_unstable();
        for (transaction, place) in &positions {
            self.tables.positions.put(txn, transaction.as_slice(), place)?;
        }
        logs.sort_unstable();
        logs.dedup();
        for key in &logs {
            self.tables.logs.put(txn, key, &[])?;
        }
        Ok(())
    }

    /// Bring the flat tables to the state of the new head; its root and trie.
    fn move_flat(
        self: &Arc<Self>,
        txn: &mut RwTxn<'_>,
        fresh: &B256Map<&BlockRecord>,
        added: &[B256],
        head: B256,
    ) -> Result<(B256, Trie<Account>)> {
        let flat_root = self.tables.meta.get(txn, meta::FLAT_ROOT)?.map_or(EMPTY_ROOT, B256::from_slice);
        let mut reached = flat_root;
        let mut changes = FlatChanges::default();
        let straight = added.iter().all(|hash| match fresh.get(hash) {
            Some(block) if block.execution.parent_root == reached => {
                reached = block.execution.state_root;
                changes.follow(&block.execution.flat);
                true
            }
            _ => false,
        });
        let (root, trie) = match fresh.get(&head) {
            Some(block) => (block.execution.state_root, block.execution.trie.clone()),
            None => {
                let (_, _, header) = read_header(&self.tables, txn, &head)?.ok_or_else(|| unknown(head))?;
                let root = decode_header(header)?.state_root;
                (root, self.stored_trie(txn, root)?)
            }
        };
        if !straight {
            let before = self.stored_trie(txn, flat_root)?;
            changes = FlatChanges::between(&before, &trie, &Nodes { table: self.tables.nodes, txn })?;
        }
        changes.write(txn, &self.tables)?;
        self.tables.meta.put(txn, meta::FLAT_ROOT, root.as_slice())?;
        Ok((root, trie))
    }

    fn stored_trie(&self, txn: &RoTxn<'_>, root: B256) -> Result<Trie<Account>> {
        if root == EMPTY_ROOT {
            return Ok(Trie::default());
        }
        let id = self.tables.roots.get(txn, root.as_slice())?.map(number);
        let id = id.ok_or_else(|| Error::MissingState(format!("the state {root} is not in the database")))?;
        Ok(Trie { root: Some(Child::Stored { hash: root, id }) })
    }

    pub fn is_durable(&self) -> bool {
        self.durable
    }
}

fn unknown(hash: B256) -> Error {
    Error::Storage(format!("block {hash} is not in the database"))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

/// Appends nodes; they are collected first because saving a trie borrows no transaction.
struct NodeWriter {
    table: Table,
    next: u64,
    buffer: Vec<(u64, Vec<u8>)>,
}

impl Saver for NodeWriter {
    fn put(&mut self, stored: &[u8]) -> Result<u64> {
        let id = self.next;
        self.next += 1;
        self.buffer.push((id, stored.to_vec()));
        Ok(id)
    }
}

impl NodeWriter {
    fn flush(&mut self, txn: &mut RwTxn<'_>) -> Result<()> {
        for (id, stored) in self.buffer.drain(..) {
            self.table.append(txn, &id.to_be_bytes(), &stored)?;
        }
        Ok(())
    }
}

/// Changes of one block to the flat tables, by hashed keys.
#[derive(Default)]
pub struct FlatChanges {
    pub accounts: B256Map<Option<FlatAccount>>,
    /// Accounts whose whole storage went away before `storage` applies.
    pub wiped: Vec<B256>,
    pub storage: HashMap<(B256, B256), U256>,
}

impl FlatChanges {
    /// Put the changes of the next block on top of these.
    fn follow(&mut self, next: &FlatChanges) {
        for wiped in &next.wiped {
            self.storage.retain(|(account, _), _| account != wiped);
            self.wiped.push(*wiped);
        }
        self.accounts.extend(next.accounts.iter().map(|(hash, account)| (*hash, *account)));
        self.storage.extend(next.storage.iter().map(|(key, value)| (*key, *value)));
    }

    fn between(before: &Trie<Account>, after: &Trie<Account>, nodes: &Nodes<'_>) -> Result<Self> {
        let mut changes = FlatChanges::default();
        for (key, old, new) in before.difference(after, nodes)? {
            let account = B256::from_slice(&key.pack());
            changes.accounts.insert(account, new.as_ref().map(FlatAccount::from));
            let Some(new) = new else {
                changes.wiped.push(account);
                continue;
            };
            let old_storage = old.map_or_else(Trie::default, |old| old.storage);
            for (slot, _, value) in old_storage.difference(&new.storage, nodes)? {
                let value: Option<Slot> = value;
                changes
                    .storage
                    .insert((account, B256::from_slice(&slot.pack())), value.map_or(U256::ZERO, |slot| slot.0));
            }
        }
        Ok(changes)
    }

    fn write(self, txn: &mut RwTxn<'_>, tables: &Tables) -> Result<()> {
        for account in &self.wiped {
            tables.storage.delete_prefix(txn, account.as_slice())?;
        }
        let mut accounts: Vec<_> = self.accounts.into_iter().collect();
        accounts.sort_unstable_by_key(|(hash, _)| *hash);
        for (hash, account) in accounts {
            match account {
                Some(account) => tables.accounts.put(txn, hash.as_slice(), &account.store())?,
                None => {
                    tables.accounts.delete(txn, hash.as_slice())?;
                }
            }
        }
        let mut storage: Vec<_> = self.storage.into_iter().collect();
        storage.sort_unstable_by_key(|(key, _)| *key);
        for ((account, slot), value) in storage {
            let key = storage_key(&account, &slot);
            if value.is_zero() {
                tables.storage.delete(txn, &key)?;
            } else {
                tables.storage.put(txn, &key, &value.to_be_bytes_trimmed_vec())?;
            }
        }
        Ok(())
    }
}

pub fn storage_key(account: &B256, slot: &B256) -> [u8; 64] {
    let mut key = [0u8; 64];
    key[..32].copy_from_slice(account.as_slice());
    key[32..].copy_from_slice(slot.as_slice());
    key
}

/// Eight bytes that stand for an address or topic in the log index. Two values may share them: the index names
/// candidates, the receipts decide.
pub fn fold(value: &[u8]) -> u64 {
    value.chunks(8).fold(0x9e37_79b9_7f4a_7c15, |state: u64, chunk| {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (state ^ u64::from_be_bytes(word)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

fn folds(receipts: &[ReceiptData]) -> Vec<u64> {
    let mut found = Vec::new();
    for log in receipts.iter().flat_map(|receipt| &receipt.logs) {
        found.push(fold(log.address.as_slice()));
        found.extend(log.data.topics().iter().map(|topic| fold(topic.as_slice())));
    }
    found.sort_unstable();
    found.dedup();
    found
}

pub fn decode_header(mut rlp: &[u8]) -> Result<Header> {
    Header::decode(&mut rlp).map_err(|cause| Error::decode("header", cause))
}

/// Where the RLP begins in a record of the table `headers`.
const HEADER_AT: usize = 8 + 32 + 16;

/// Number, total difficulty and RLP of a header.
pub fn read_header<'t>(tables: &Tables, txn: &'t RoTxn<'_>, hash: &B256) -> Result<Option<(u64, U256, &'t [u8])>> {
    match tables.headers.get(txn, hash.as_slice())? {
        Some(record) if record.len() > HEADER_AT => {
            Ok(Some((number(&record[..8]), U256::from_be_slice(&record[8..40]), &record[HEADER_AT..])))
        }
        Some(_) => Err(Error::damaged(format!("the header of block {hash} is too short"))),
        None => Ok(None),
    }
}

pub fn read_body(tables: &Tables, txn: &RoTxn<'_>, hash: &B256) -> Result<Option<BodyData>> {
    let Some(record) = tables.bodies.get(txn, hash.as_slice())? else { return Ok(None) };
    let (known, payload) = split_body(record, hash)?;
    let body = decode_body(payload).map_err(|cause| Error::damaged(format!("body of block {hash}: {cause}")))?;
    if known.len() != body.txs.len() {
        return Err(Error::damaged(format!("the body of block {hash} names {} senders", known.len())));
    }
    Ok(Some(body.with_known(known)))
}

/// Senders and hashes of a stored body's transactions, and its RLP.
pub fn split_body<'t>(record: &'t [u8], hash: &B256) -> Result<(Vec<Known>, &'t [u8])> {
    let damaged = || Error::damaged(format!("the body of block {hash} is too short"));
    let count = record.get(..4).ok_or_else(damaged)?;
    let count = u32::from_be_bytes(count.try_into().expect("four bytes")) as usize;
    let (known, payload) = record[4..].split_at_checked(count * KNOWN_LENGTH).ok_or_else(damaged)?;
    let one = |entry: &[u8]| Known { sender: Address::from_slice(&entry[..20]), hash: B256::from_slice(&entry[20..]) };
    Ok((known.chunks_exact(KNOWN_LENGTH).map(one).collect(), payload))
}

/// Sender and hash of one transaction in a stored body.
const KNOWN_LENGTH: usize = 20 + 32;

pub fn read_receipts(tables: &Tables, txn: &RoTxn<'_>, hash: &B256) -> Result<Option<Vec<ReceiptData>>> {
    tables.receipts.get(txn, hash.as_slice())?.map(receipts::restore).transpose()
}

impl Snapshot {
    pub fn txn(&self) -> &RoTxn<'static> {
        &self.txn
    }

    pub fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    pub fn nodes(&self) -> Nodes<'_> {
        Nodes { table: self.inner.tables.nodes, txn: &self.txn }
    }

    pub fn head(&self) -> Result<Option<(B256, u64)>> {
        Ok(self
            .tables()
            .meta
            .get(&self.txn, meta::HEAD)?
            .map(|head| (B256::from_slice(&head[..32]), number(&head[32..]))))
    }

    pub fn flat_root(&self) -> Result<B256> {
        Ok(self.tables().meta.get(&self.txn, meta::FLAT_ROOT)?.map_or(EMPTY_ROOT, B256::from_slice))
    }

    pub fn canonical_hash(&self, at: u64) -> Result<Option<B256>> {
        Ok(self.tables().canonical.get(&self.txn, &at.to_be_bytes())?.map(B256::from_slice))
    }

    pub fn header(&self, hash: &B256) -> Result<Option<(u64, U256, &[u8])>> {
        read_header(self.tables(), &self.txn, hash)
    }

    /// Price of blob gas in a block, from Cancun on.
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

    /// Number of the block and index in it of a transaction on the canonical chain.
    pub fn position(&self, transaction: &B256) -> Result<Option<(u64, u32)>> {
        let Some(place) = self.tables().positions.get(&self.txn, transaction.as_slice())? else { return Ok(None) };
        let damaged = || Error::damaged(format!("the place of transaction {transaction} cannot be read"));
        let place: [u8; 12] = place.try_into().map_err(|_| damaged())?;
        Ok(Some((number(&place[..8]), u32::from_be_bytes(place[8..].try_into().expect("four bytes")))))
    }

    pub fn state(&self, root: B256) -> Result<StateData> {
        Ok(StateData::at(self.inner.clone(), root, self.inner.trie(root, self)?))
    }
}
