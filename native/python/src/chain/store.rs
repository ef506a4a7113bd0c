//! Python binding of the database.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use alloy_primitives::B256;
use ophion_primitives::deadline;
use ophion_primitives::errors::{Error, Result};
use ophion_rendering::chain::blocks;
use ophion_rendering::chain::logs::{self, Limits, LogFilter};
use ophion_storage::chain::body::{decode_transaction_at, encode_block};
use ophion_storage::chain::receipts::ReceiptData;
use ophion_storage::state::{self, RangeLimits, StateData};
use ophion_storage::store::{self, BlockRecord, Database, Effects, Snapshot};
use ophion_storage::trie::{EMPTY_ROOT, Trie};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::body::Body;
use super::state::{Execution, State};
use super::state_download::Receipts;
use crate::values::convert::{Addr, Hash, Raw, Wide, to_bytes, to_int};
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct NewBlock {
    record: Arc<BlockRecord>,
}

#[pymethods]
impl NewBlock {
    #[new]
    #[pyo3(signature = (*, hash, number, header, body, execution, total_difficulty))]
    fn new(
        hash: Hash,
        number: u64,
        header: Raw,
        body: &Bound<'_, Body>,
        execution: &Bound<'_, Execution>,
        total_difficulty: Wide,
    ) -> Self {
        NewBlock {
            record: Arc::new(BlockRecord {
                hash: hash.0,
                number,
                header: header.0,
                body: body.get().data.clone(),
                effects: execution.get().data.effects.clone(),
                total_difficulty: total_difficulty.0,
            }),
        }
    }

    /// Make a block that is not executed: its receipts come from another node.
    #[staticmethod]
    #[pyo3(signature = (*, hash, number, header, body, receipts, total_difficulty, blob_price))]
    fn received(
        hash: Hash,
        number: u64,
        header: Raw,
        body: &Bound<'_, Body>,
        receipts: &Bound<'_, Receipts>,
        total_difficulty: Wide,
        blob_price: u128,
    ) -> Answer<Self> {
        let body = body.get().data.clone();
        let effects = Effects {
            parent_root: EMPTY_ROOT,
            state_root: store::decode_header(&header.0)?.state_root,
            receipts: receipts.get().all.clone(),
            blob_price,
            trie: Trie::default(),
            weight: 0,
            preimages: store::addresses_in(&body)?,
            codes: Vec::new(),
        };
        let (effects, total_difficulty) = (Arc::new(effects), total_difficulty.0);
        let record = BlockRecord { hash: hash.0, number, header: header.0, body, effects, total_difficulty };
        Ok(NewBlock { record: Arc::new(record) })
    }

    #[pyo3(signature = (index, with_revert_reason, /))]
    fn receipt_json<'py>(&self, py: Python<'py>, index: usize, with_revert_reason: bool) -> PyJson<'py> {
        let found = blocks::new_receipt_json(&self.record, index, with_revert_reason)?;
        Ok(found.map(|text| to_bytes(py, text)))
    }
}

/// An object as JSON text; None if the object does not exist.
type PyJson<'py> = Answer<Option<Bound<'py, PyBytes>>>;
/// Key and value of a database row.
type PyRow<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);
pub type PyTopics = Vec<Option<Vec<Hash>>>;

pub fn log_filter(addresses: Vec<Addr>, topics: PyTopics) -> LogFilter {
    let any_of = |hashes: Vec<Hash>| hashes.into_iter().map(|hash| hash.0).collect();
    LogFilter {
        addresses: addresses.into_iter().map(|address| address.0).collect(),
        topics: topics.into_iter().map(|position| position.map(any_of)).collect(),
    }
}

fn range_limits(bytes: usize, deadline_s: f64) -> RangeLimits {
    RangeLimits { bytes, deadline: deadline::after(deadline_s) }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct Store {
    inner: RwLock<Option<Arc<Database>>>,
    #[pyo3(get)]
    is_read_only: bool,
}

impl Store {
    pub fn inner(&self) -> Result<Arc<Database>> {
        let inner = self.inner.read().expect("no panic while locked");
        inner.clone().ok_or_else(|| Error::Storage("the database is closed".into()))
    }

    /// Build JSON text from one snapshot without the GIL.
    fn json<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce(&Snapshot) -> Result<Option<Vec<u8>>> + Send,
    ) -> PyJson<'py> {
        Ok(self.read(py, make)?.map(|text| to_bytes(py, text)))
    }

    /// Read from one database snapshot without the GIL.
    pub fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&Snapshot) -> Result<T> + Send) -> Answer<T> {
        let inner = self.inner()?;
        Ok(py.detach(|| read(&inner.snapshot()?))?)
    }
}

#[pymethods]
impl Store {
    #[staticmethod]
    #[pyo3(signature = (path, *, create=true, read_only=false, durable=true))]
    fn open(py: Python<'_>, path: &str, create: bool, read_only: bool, durable: bool) -> Answer<Self> {
        let inner = py.detach(|| Database::open(Path::new(path), create, read_only, durable))?;
        Ok(Store { inner: RwLock::new(Some(inner)), is_read_only: read_only })
    }

    fn close(&self) {
        if let Some(inner) = self.inner.write().expect("no panic while locked").take() {
            inner.close();
        }
    }

    fn follow(&self, py: Python<'_>) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.follow())?)
    }

    fn sync(&self, py: Python<'_>) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.sync())?)
    }

    #[pyo3(signature = (blocks, removed, added, named=Vec::new(), /))]
    fn commit(
        &self,
        py: Python<'_>,
        blocks: Vec<Py<NewBlock>>,
        removed: Vec<Hash>,
        added: Vec<Hash>,
        named: Vec<(String, Vec<u8>)>,
    ) -> Answer<()> {
        let inner = self.inner()?;
        let records: Vec<Arc<BlockRecord>> = blocks.iter().map(|block| block.get().record.clone()).collect();
        let plain = |hashes: Vec<Hash>| hashes.into_iter().map(|hash| hash.0).collect::<Vec<B256>>();
        let (removed, added) = (plain(removed), plain(added));
        Ok(py.detach(|| inner.commit(&records, &removed, &added, &named))?)
    }

    #[pyo3(signature = (hash, state_root, /))]
    fn rewind(&self, py: Python<'_>, hash: Hash, state_root: Hash) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.rewind(hash.0, state_root.0))?)
    }

    #[pyo3(signature = (changes, /))]
    fn write_rows(&self, py: Python<'_>, changes: Vec<(String, PyBackedBytes, Option<PyBackedBytes>)>) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| {
            let changes: Vec<store::Change<'_>> =
                changes.iter().map(|(table, key, value)| (table.as_str(), key.as_ref(), value.as_deref())).collect();
            inner.write_rows(&changes)
        })?)
    }

    #[pyo3(signature = (tables, /))]
    fn clear_rows(&self, py: Python<'_>, tables: Vec<String>) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.clear_rows(&tables))?)
    }

    #[pyo3(signature = (table, key, /))]
    fn row<'py>(&self, py: Python<'py>, table: &str, key: &[u8]) -> Answer<Option<Bound<'py, PyBytes>>> {
        let snapshot = self.inner()?.snapshot()?;
        Ok(snapshot.row(table, key)?.map(|value| to_bytes(py, value)))
    }

    #[pyo3(signature = (table, prefix, after, limit, /))]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        prefix: &[u8],
        after: &[u8],
        limit: usize,
    ) -> Answer<Vec<PyRow<'py>>> {
        let snapshot = self.inner()?.snapshot()?;
        let found = snapshot.rows(table, prefix, after, limit)?;
        Ok(found.into_iter().map(|(key, value)| (to_bytes(py, key), to_bytes(py, value))).collect())
    }

    #[pyo3(signature = (table, prefix, /))]
    fn last_row<'py>(&self, py: Python<'py>, table: &str, prefix: &[u8]) -> Answer<Option<PyRow<'py>>> {
        let snapshot = self.inner()?.snapshot()?;
        Ok(snapshot.last_row(table, prefix)?.map(|(key, value)| (to_bytes(py, key), to_bytes(py, value))))
    }

    #[pyo3(signature = (key, value, /))]
    fn put_meta(&self, py: Python<'_>, key: &str, value: &[u8]) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.put_meta(key, value))?)
    }

    #[pyo3(signature = (key, /))]
    fn meta<'py>(&self, py: Python<'py>, key: &str) -> Answer<Option<Bound<'py, PyBytes>>> {
        let found = self.read(py, |snapshot| Ok(snapshot.meta(key)?.map(<[u8]>::to_vec)))?;
        Ok(found.map(|value| to_bytes(py, value)))
    }

    fn head<'py>(&self, py: Python<'py>) -> Answer<Option<(Bound<'py, PyBytes>, u64)>> {
        let head = self.inner()?.snapshot()?.head()?;
        Ok(head.map(|(hash, number)| (to_bytes(py, hash), number)))
    }

    #[pyo3(signature = (number, /))]
    fn canonical_hash<'py>(&self, py: Python<'py>, number: u64) -> Answer<Option<Bound<'py, PyBytes>>> {
        let found = self.inner()?.snapshot()?.canonical_hash(number)?;
        Ok(found.map(|hash| to_bytes(py, hash)))
    }

    #[pyo3(signature = (hash, /))]
    fn header<'py>(&self, py: Python<'py>, hash: Hash) -> Answer<Option<Bound<'py, PyBytes>>> {
        let snapshot = self.inner()?.snapshot()?;
        Ok(snapshot.header(&hash.0)?.map(|(_, _, header)| to_bytes(py, header)))
    }

    #[pyo3(signature = (hash, /))]
    fn total_difficulty<'py>(&self, py: Python<'py>, hash: Hash) -> Answer<Option<Bound<'py, PyAny>>> {
        let snapshot = self.inner()?.snapshot()?;
        snapshot.header(&hash.0)?.map(|(_, total, _)| to_int(py, &total)).transpose()
    }

    #[pyo3(signature = (hash, /))]
    fn number_of(&self, hash: Hash) -> Answer<Option<u64>> {
        let snapshot = self.inner()?.snapshot()?;
        Ok(snapshot.header(&hash.0)?.map(|(number, _, _)| number))
    }

    #[pyo3(signature = (hash, /))]
    fn body(&self, py: Python<'_>, hash: Hash) -> Answer<Option<Body>> {
        let found = self.read(py, |snapshot| snapshot.body(&hash.0))?;
        Ok(found.map(|data| Body { data: Arc::new(data) }))
    }

    #[pyo3(signature = (hash, /))]
    fn block<'py>(&self, py: Python<'py>, hash: Hash) -> Answer<Option<Bound<'py, PyBytes>>> {
        let found = self.read(py, |snapshot| {
            let Some((_, _, header)) = snapshot.header(&hash.0)? else { return Ok(None) };
            Ok(snapshot.stored_body(&hash.0)?.map(|(_, body)| encode_block(header, body)))
        })?;
        Ok(found.map(|block| to_bytes(py, block)))
    }

    #[pyo3(signature = (hash, /))]
    fn transaction_position<'py>(
        &self,
        py: Python<'py>,
        hash: Hash,
    ) -> Answer<Option<(Bound<'py, PyBytes>, u64, u32)>> {
        let snapshot = self.inner()?.snapshot()?;
        let Some((number, index)) = snapshot.position(&hash.0)? else { return Ok(None) };
        Ok(snapshot.canonical_hash(number)?.map(|block| (to_bytes(py, block), number, index)))
    }

    #[pyo3(signature = (block, index, /))]
    fn raw_transaction_at<'py>(
        &self,
        py: Python<'py>,
        block: Hash,
        index: usize,
    ) -> Answer<Option<Bound<'py, PyBytes>>> {
        let found = self.read(py, |snapshot| {
            let Some((_, payload)) = snapshot.stored_transaction(&block.0, index)? else { return Ok(None) };
            Ok(decode_transaction_at(payload, index)?.map(|tx| tx.raw))
        })?;
        Ok(found.map(|raw| to_bytes(py, raw)))
    }

    #[pyo3(signature = (block, /))]
    fn counts(&self, block: Hash) -> Answer<Option<(usize, usize)>> {
        Ok(self.inner()?.snapshot()?.counts(&block.0)?)
    }

    #[pyo3(signature = (hash, /))]
    fn raw_receipts<'py>(&self, py: Python<'py>, hash: Hash) -> Answer<Option<Vec<Bound<'py, PyBytes>>>> {
        let found = self.read(py, |snapshot| {
            Ok(snapshot.receipts(&hash.0)?.map(|all| all.iter().map(ReceiptData::encoded).collect::<Vec<_>>()))
        })?;
        Ok(found.map(|all| all.iter().map(|receipt| to_bytes(py, receipt)).collect()))
    }

    #[pyo3(signature = (root, /))]
    fn state(&self, root: Hash) -> Answer<State> {
        Ok(State { data: StateData::at(&self.inner()?.snapshot()?, root.0)? })
    }

    fn latest(&self) -> Answer<State> {
        let snapshot = self.inner()?.snapshot()?;
        Ok(State { data: StateData::latest(&snapshot)? })
    }

    #[pyo3(signature = (hash, full, with_total_difficulty, /))]
    fn block_json<'py>(&self, py: Python<'py>, hash: Hash, full: bool, with_total_difficulty: bool) -> PyJson<'py> {
        self.json(py, |snapshot| blocks::block_json(snapshot, &hash.0, full, with_total_difficulty))
    }

    #[pyo3(signature = (hash, /))]
    fn transaction_json<'py>(&self, py: Python<'py>, hash: Hash) -> PyJson<'py> {
        self.json(py, |snapshot| blocks::transaction_json(snapshot, &hash.0))
    }

    #[pyo3(signature = (block, index, /))]
    fn transaction_at_json<'py>(&self, py: Python<'py>, block: Hash, index: usize) -> PyJson<'py> {
        self.json(py, |snapshot| blocks::transaction_at_json(snapshot, &block.0, index))
    }

    #[pyo3(signature = (hash, with_revert_reason, max_bytes=None, /))]
    fn receipt_json<'py>(
        &self,
        py: Python<'py>,
        hash: Hash,
        with_revert_reason: bool,
        max_bytes: Option<usize>,
    ) -> PyJson<'py> {
        let max_bytes = max_bytes.unwrap_or(usize::MAX);
        self.json(py, |snapshot| blocks::receipt_json(snapshot, &hash.0, with_revert_reason, max_bytes))
    }

    #[pyo3(signature = (block, index, with_revert_reason, /))]
    fn receipt_at_json<'py>(
        &self,
        py: Python<'py>,
        block: Hash,
        index: usize,
        with_revert_reason: bool,
    ) -> PyJson<'py> {
        self.json(py, |snapshot| blocks::receipt_at_json(snapshot, &block.0, index, with_revert_reason))
    }

    #[pyo3(signature = (block, with_revert_reason, /))]
    fn block_receipts_json<'py>(&self, py: Python<'py>, block: Hash, with_revert_reason: bool) -> PyJson<'py> {
        self.json(py, |snapshot| blocks::block_receipts_json(snapshot, &block.0, with_revert_reason))
    }

    #[pyo3(signature = (first, last, addresses, topics, max_results, max_bytes, deadline_s, /))]
    #[allow(clippy::too_many_arguments)]
    fn logs_json<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        last: u64,
        addresses: Vec<Addr>,
        topics: PyTopics,
        max_results: usize,
        max_bytes: usize,
        deadline_s: f64,
    ) -> Answer<Bound<'py, PyBytes>> {
        let filter = log_filter(addresses, topics);
        let limits = Limits { max_results, max_bytes, deadline: deadline::after(deadline_s) };
        let found = self.read(py, |snapshot| logs::search(snapshot, first, last, &filter, &limits))?;
        Ok(to_bytes(py, found))
    }

    #[pyo3(signature = (block, addresses, topics, removed, /))]
    fn block_logs_json<'py>(
        &self,
        py: Python<'py>,
        block: Hash,
        addresses: Vec<Addr>,
        topics: PyTopics,
        removed: bool,
    ) -> PyJson<'py> {
        let filter = log_filter(addresses, topics);
        self.json(py, |snapshot| logs::of_block(snapshot, &block.0, &filter, removed))
    }

    fn nodes_written(&self) -> Answer<u64> {
        Ok(self.inner()?.snapshot()?.nodes_written()?)
    }

    fn state_cached(&self) -> Answer<usize> {
        Ok(self.inner()?.state_cached())
    }

    fn state_cache(&self) -> Answer<usize> {
        Ok(self.inner()?.state_cache())
    }

    #[pyo3(signature = (bytes, /))]
    fn set_state_cache(&self, bytes: usize) -> Answer<()> {
        self.inner()?.set_state_cache(bytes);
        Ok(())
    }

    fn write_changes(&self) -> Answer<()> {
        self.inner()?.write_changes();
        Ok(())
    }

    #[pyo3(signature = (oldest, /))]
    fn begin_pruning(&self, py: Python<'_>, oldest: u64) -> Answer<Pruning> {
        let inner = self.inner()?;
        let round = py.detach(|| store::Pruning::begin(&inner, oldest))?;
        Ok(Pruning { round: Mutex::new(round) })
    }

    fn retain_checked(&self, py: Python<'_>) -> Answer<()> {
        let inner = self.inner()?;
        Ok(py.detach(|| inner.retain_checked())?)
    }

    #[pyo3(signature = (request_id, root, origin, limit, max_bytes, deadline_s, /))]
    #[expect(clippy::too_many_arguments)]
    fn account_range<'py>(
        &self,
        py: Python<'py>,
        request_id: u64,
        root: Hash,
        origin: Hash,
        limit: Hash,
        max_bytes: usize,
        deadline_s: f64,
    ) -> Answer<Bound<'py, PyBytes>> {
        let limits = range_limits(max_bytes, deadline_s);
        let found =
            self.read(py, |snapshot| state::account_range(snapshot, request_id, root.0, origin.0, limit.0, limits))?;
        Ok(to_bytes(py, found))
    }

    #[pyo3(signature = (request_id, root, accounts, origin, limit, max_bytes, deadline_s, /))]
    #[expect(clippy::too_many_arguments)]
    fn storage_ranges<'py>(
        &self,
        py: Python<'py>,
        request_id: u64,
        root: Hash,
        accounts: Vec<Hash>,
        origin: Hash,
        limit: Hash,
        max_bytes: usize,
        deadline_s: f64,
    ) -> Answer<Bound<'py, PyBytes>> {
        let limits = range_limits(max_bytes, deadline_s);
        let accounts: Vec<B256> = accounts.into_iter().map(|hash| hash.0).collect();
        let found = self.read(py, |snapshot| {
            state::storage_ranges(snapshot, request_id, root.0, &accounts, (origin.0, limit.0), limits)
        })?;
        Ok(to_bytes(py, found))
    }

    #[pyo3(signature = (request_id, hashes, max_bytes, deadline_s, /))]
    fn byte_codes<'py>(
        &self,
        py: Python<'py>,
        request_id: u64,
        hashes: Vec<Hash>,
        max_bytes: usize,
        deadline_s: f64,
    ) -> Answer<Bound<'py, PyBytes>> {
        let limits = range_limits(max_bytes, deadline_s);
        let hashes: Vec<B256> = hashes.into_iter().map(|hash| hash.0).collect();
        let found = self.read(py, |snapshot| state::byte_codes(snapshot, request_id, &hashes, limits))?;
        Ok(to_bytes(py, found))
    }

    #[pyo3(signature = (request_id, root, paths, max_bytes, deadline_s, /))]
    fn trie_nodes<'py>(
        &self,
        py: Python<'py>,
        request_id: u64,
        root: Hash,
        paths: Vec<Vec<PyBackedBytes>>,
        max_bytes: usize,
        deadline_s: f64,
    ) -> Answer<Bound<'py, PyBytes>> {
        let limits = range_limits(max_bytes, deadline_s);
        let paths: Vec<state::PathSet> =
            paths.into_iter().map(|set| set.iter().map(|path| path.to_vec()).collect()).collect();
        let found = self.read(py, |snapshot| state::trie_nodes(snapshot, request_id, root.0, &paths, limits))?;
        Ok(to_bytes(py, found))
    }

    #[pyo3(signature = (descriptor, /))]
    fn copy_to(&self, py: Python<'_>, descriptor: i32) -> Answer<()> {
        let inner = self.inner()?;
        // SAFETY: the caller keeps the descriptor open until this function returns.
        let target = unsafe { BorrowedFd::borrow_raw(descriptor) };
        Ok(py.detach(|| inner.copy(target))?)
    }

    fn usage(&self, py: Python<'_>) -> Answer<Vec<(String, u64, u64)>> {
        self.read(py, Snapshot::usage)
    }

    #[pyo3(signature = (limit, watch=None, /))]
    fn check(&self, py: Python<'_>, limit: usize, watch: Option<Py<PyAny>>) -> Answer<Vec<String>> {
        let mut failure = None;
        let mut watch = |done: u64, total: u64| {
            if let Some(watch) = &watch {
                failure = Python::attach(|py| watch.call1(py, (done, total))).err();
            }
            failure.is_none()
        };
        let found = self.read(py, |snapshot| store::check(snapshot, limit, &mut watch))?;
        match failure {
            Some(failure) => Err(failure.into()),
            None => Ok(found),
        }
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct Pruning {
    round: Mutex<store::Pruning>,
}

impl Pruning {
    /// Run one pruning step without the GIL.
    fn step(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut store::Pruning, usize) -> Result<bool> + Send,
        max: usize,
    ) -> Answer<bool> {
        Ok(py.detach(|| step(&mut self.round.lock().expect("no panic while locked"), max))?)
    }
}

#[pymethods]
impl Pruning {
    #[pyo3(signature = (max, /))]
    fn forget(&self, py: Python<'_>, max: usize) -> Answer<bool> {
        self.step(py, store::Pruning::forget, max)
    }

    #[pyo3(signature = (max, /))]
    fn mark(&self, py: Python<'_>, max: usize) -> Answer<bool> {
        self.step(py, store::Pruning::mark, max)
    }

    #[pyo3(signature = (max, /))]
    fn sweep(&self, py: Python<'_>, max: usize) -> Answer<bool> {
        self.step(py, store::Pruning::sweep, max)
    }

    #[getter]
    fn forgotten(&self) -> u64 {
        self.round.lock().expect("no panic while locked").forgotten
    }

    #[getter]
    fn marked(&self) -> u64 {
        self.round.lock().expect("no panic while locked").marked()
    }

    #[getter]
    fn freed(&self) -> u64 {
        self.round.lock().expect("no panic while locked").freed
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NewBlock>()?;
    module.add_class::<Pruning>()?;
    module.add_class::<Store>()
}
