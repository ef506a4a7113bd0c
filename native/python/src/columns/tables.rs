//! Tables: Rust fills columns without the GIL, and Python reads them through the buffer protocol.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use ophion_columns::datasets::{ALL, Dataset};
use ophion_columns::parquet::file::{Encoder, Field};
use ophion_columns::replay::replay;
use ophion_columns::scan;
use ophion_columns::tables::column::Column;
use ophion_columns::tables::filter::Filter;
use ophion_columns::tables::table::Table;
use ophion_primitives::lazy_zeros::fill_newest_block;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::chain::store::{PyTopics, Store};
use crate::tracing::trace::TracedBlock;
use crate::values::convert::Addr;
use crate::values::errors::{Answer, Raised};

enum Content {
    Encoded(Vec<u8>),
    Values(Arc<Column>),
    Offsets(Arc<Column>),
    Validity(Arc<Column>),
}

/// Bytes of a column or of a Parquet file, readable from Python without a copy. The bytes are read-only and do not
/// move.
#[pyclass(frozen, module = "ophion._native")]
pub struct ColumnBuffer {
    content: Content,
}

impl ColumnBuffer {
    fn bytes(&self) -> (*const u8, usize) {
        let plain = |bytes: &Vec<u8>| (bytes.as_ptr(), bytes.len());
        match &self.content {
            Content::Encoded(bytes) => plain(bytes),
            Content::Values(column) => plain(&column.values),
            Content::Validity(column) => plain(&column.validity),
            Content::Offsets(column) => (column.offsets.as_ptr().cast(), size_of_val(column.offsets.as_slice())),
        }
    }
}

#[pymethods]
impl ColumnBuffer {
    fn __len__(&self) -> usize {
        self.bytes().1
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, length) = slf.get().bytes();
        // SAFETY: the interpreter passes a `Py_buffer` to fill in. It will point to bytes of `slf`, which do not
        // move: `slf` is frozen, and the `Py_buffer` holds a reference to it.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                start.cast_mut().cast::<c_void>(),
                length as ffi::Py_ssize_t,
                1,
                flags,
            )
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Parts of a column: number of nulls, validity bitmap, offsets, values.
type PyColumn = (usize, Option<ColumnBuffer>, Option<ColumnBuffer>, ColumnBuffer);

fn buffers_of(column: &Arc<Column>) -> PyColumn {
    let buffer = |content: fn(Arc<Column>) -> Content| ColumnBuffer { content: content(column.clone()) };
    let validity = (column.nulls > 0).then(|| buffer(Content::Validity));
    let offsets = (!column.offsets.is_empty()).then(|| buffer(Content::Offsets));
    (column.nulls, validity, offsets, buffer(Content::Values))
}

/// Rows of one dataset: the requested columns, in the order of the dataset.
#[pyclass(frozen, module = "ophion._native")]
pub struct TableData {
    columns: Vec<Arc<Column>>,
    #[pyo3(get)]
    rows: usize,
}

#[pymethods]
impl TableData {
    /// Return the size of the table in memory, in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.columns.iter().map(|column| column.size()).sum()
    }

    fn columns(&self) -> Vec<PyColumn> {
        self.columns.iter().map(buffers_of).collect()
    }
}

/// Encodes tables of one dataset as a Parquet file.
#[pyclass(frozen, module = "ophion._native")]
pub struct ParquetEncoder {
    encoder: Mutex<Encoder>,
}

impl ParquetEncoder {
    fn encoded<T: Send>(&self, py: Python<'_>, encode: impl Send + FnOnce(&mut Encoder) -> T) -> T {
        py.detach(|| encode(&mut self.encoder.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl ParquetEncoder {
    #[new]
    #[pyo3(signature = (dataset, columns, repeating, metadata, hex, /))]
    fn new(
        dataset: &str,
        columns: Vec<String>,
        repeating: Vec<String>,
        metadata: Vec<(String, String)>,
        hex: bool,
    ) -> PyResult<Self> {
        let specs = dataset_of(dataset)?.specs().into_iter().filter(|(name, _)| columns.iter().any(|one| one == name));
        let fields = specs.map(|(name, kind)| Field {
            name: name.into(),
            kind: if hex { kind.in_hex() } else { kind },
            has_dictionary: repeating.iter().any(|one| one == name),
        });
        Ok(ParquetEncoder { encoder: Mutex::new(Encoder::new(fields.collect(), metadata)) })
    }

    #[pyo3(signature = (tables, threads, write, /))]
    fn row_group(&self, py: Python<'_>, tables: Vec<Py<TableData>>, threads: usize, write: Py<PyAny>) -> Answer<()> {
        let columns: Vec<Vec<Arc<Column>>> = tables.iter().map(|table| table.get().columns.clone()).collect();
        if columns.is_empty() {
            return Err(PyValueError::new_err("a row group needs a table").into());
        }
        let pass = |bytes: Vec<u8>| {
            let part = ColumnBuffer { content: Content::Encoded(bytes) };
            Ok(Python::attach(|py| write.call1(py, (part,)).map(drop))?)
        };
        self.encoded(py, |encoder| encoder.row_group::<Raised>(&columns, threads, pass))
    }

    fn finish(&self, py: Python<'_>) -> ColumnBuffer {
        ColumnBuffer { content: Content::Encoded(self.encoded(py, Encoder::finish)) }
    }
}

/// Selects rows by addresses and topics. Empty lists select all rows.
#[pyclass(frozen, module = "ophion._native")]
pub struct RowFilter {
    filter: Filter,
}

#[pymethods]
impl RowFilter {
    #[new]
    #[pyo3(signature = (addresses=vec![], topics=vec![], senders=vec![], recipients=vec![], /))]
    fn new(addresses: Vec<Addr>, topics: PyTopics, senders: Vec<Addr>, recipients: Vec<Addr>) -> Self {
        let plain = |all: Vec<Addr>| all.into_iter().map(|one| one.0).collect();
        let any_of = |hashes: Vec<_>| hashes.into_iter().map(|hash: crate::values::convert::Hash| hash.0).collect();
        RowFilter {
            filter: Filter {
                addresses: plain(addresses),
                topics: topics.into_iter().map(|position| position.map(any_of)).collect(),
                from: plain(senders),
                to: plain(recipients),
            },
        }
    }
}

/// Stops a replay that runs in another thread.
#[pyclass(frozen, module = "ophion._native")]
pub struct ReplayStop {
    flag: Arc<AtomicBool>,
}

#[pymethods]
impl ReplayStop {
    #[new]
    fn new() -> Self {
        ReplayStop { flag: Arc::new(AtomicBool::new(false)) }
    }

    fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

fn dataset_of(name: &str) -> PyResult<Dataset> {
    Dataset::named(name).ok_or_else(|| PyValueError::new_err(format!("no dataset is named {name}")))
}

/// Give memory to the cache of hashes, once per process, before several threads execute blocks and write to the cache.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(fill_newest_block);
}

fn finished(table: Table, hex: bool) -> TableData {
    let wanted = table.columns.into_iter().filter(|column| column.is_wanted);
    let shown = wanted.map(|column| Arc::new(if hex { column.into_hex() } else { column }));
    TableData { columns: shown.collect(), rows: table.rows }
}

#[pyfunction]
fn table_columns() -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let named = |dataset: Dataset| dataset.specs().into_iter().map(|(name, kind)| (name, kind.name())).collect();
    ALL.iter().map(|(name, dataset)| (*name, named(*dataset))).collect()
}

#[pyfunction]
#[pyo3(signature = (store, dataset, columns, first, last, filter, chain_id, hex, max_bytes, /))]
#[allow(clippy::too_many_arguments)]
fn scan_table(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    dataset: &str,
    columns: Vec<String>,
    first: u64,
    last: u64,
    filter: &Bound<'_, RowFilter>,
    chain_id: u64,
    hex: bool,
    max_bytes: usize,
) -> Answer<(u64, TableData)> {
    let dataset = dataset_of(dataset)?;
    let filter = &filter.get().filter;
    store.get().read(py, |snapshot| {
        let mut table = Table::new(&dataset.specs(), &columns);
        let next = scan::scan(&mut table, dataset, snapshot, (first, last), filter, chain_id, max_bytes)?;
        snapshot.inner.limit_mapped_pages(scan::MAX_MAPPED_BYTES);
        Ok((next, finished(table, hex)))
    })
}

#[pyfunction]
#[pyo3(signature = (store, first, last, max_transactions, /))]
fn block_ranges(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    first: u64,
    last: u64,
    max_transactions: usize,
) -> Answer<Vec<u64>> {
    store.get().read(py, |snapshot| scan::range_ends(snapshot, first, last, max_transactions))
}

#[pyfunction]
#[pyo3(signature = (blocks, datasets, filter, chain_id, hex, stop, max_bytes, /, *, is_fast=true))]
#[allow(clippy::too_many_arguments)]
fn replay_tables(
    py: Python<'_>,
    blocks: Vec<Py<TracedBlock>>,
    datasets: Vec<(String, Vec<String>)>,
    filter: &Bound<'_, RowFilter>,
    chain_id: u64,
    hex: bool,
    stop: &Bound<'_, ReplayStop>,
    max_bytes: usize,
    is_fast: bool,
) -> Answer<(usize, Vec<TableData>)> {
    let blocks: Vec<_> = blocks.iter().map(|block| block.get().block.clone()).collect();
    let empty = |(name, columns): &(String, Vec<String>)| {
        dataset_of(name).map(|dataset| (dataset, Table::new(&dataset.specs(), columns)))
    };
    let mut tables = datasets.iter().map(empty).collect::<PyResult<Vec<_>>>()?;
    let (filter, flag) = (&filter.get().filter, &stop.get().flag);
    Ok(py.detach(|| {
        prepare();
        let (mut done, mut previous) = (0, None);
        // reserve one row per transaction, because most transactions have at least one row in these datasets
        let transactions = blocks.iter().map(|block| block.body.txs.len()).sum();
        for (_, table) in tables.iter_mut().filter(|(dataset, _)| dataset.is_frequent()) {
            table.reserve(transactions);
        }
        for block in &blocks {
            previous = Some(replay(&mut tables, block, previous, filter, chain_id, flag, is_fast)?);
            done += 1;
            if tables.iter().map(|(_, table)| table.size()).sum::<usize>() >= max_bytes {
                break;
            }
        }
        if let Some(store) = blocks.first().and_then(|block| block.parent.store.as_ref()) {
            store.limit_mapped_pages(scan::MAX_MAPPED_BYTES);
        }
        let rows = tables.into_iter().map(|(_, table)| finished(table, hex)).collect();
        Ok::<_, ophion_primitives::errors::Error>((done, rows))
    })?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ColumnBuffer>()?;
    module.add_class::<TableData>()?;
    module.add_class::<ParquetEncoder>()?;
    module.add_class::<RowFilter>()?;
    module.add_class::<ReplayStop>()?;
    module.add_function(wrap_pyfunction!(table_columns, module)?)?;
    module.add_function(wrap_pyfunction!(block_ranges, module)?)?;
    module.add_function(wrap_pyfunction!(scan_table, module)?)?;
    module.add_function(wrap_pyfunction!(replay_tables, module)?)
}
