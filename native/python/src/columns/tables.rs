//! Tables: Rust fills columns without the GIL, and Python reads them through the buffer protocol.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ophion_columns::datasets::{ALL, Dataset};
use ophion_columns::replay::replay;
use ophion_columns::scan;
use ophion_columns::tables::column::Column;
use ophion_columns::tables::filter::Filter;
use ophion_columns::tables::table::Table;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::chain::store::{PyTopics, Store};
use crate::tracing::trace::TracedBlock;
use crate::values::convert::Addr;
use crate::values::errors::Answer;

enum Content {
    Bytes(Vec<u8>),
    Offsets(Vec<i32>),
}

/// A buffer of a column. It is read-only and does not move.
#[pyclass(frozen, module = "ophion._native")]
pub struct ColumnBuffer {
    content: Content,
}

impl ColumnBuffer {
    fn bytes(&self) -> (*const u8, usize) {
        match &self.content {
            Content::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
            Content::Offsets(offsets) => (offsets.as_ptr().cast(), size_of_val(offsets.as_slice())),
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
        // SAFETY: the interpreter passes a buffer to fill. The bytes do not move, because the object is frozen and the
        // buffer holds a reference to the object.
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

/// Number of nulls, validity bitmap, offsets, values.
type PyColumn = (usize, Option<ColumnBuffer>, Option<ColumnBuffer>, ColumnBuffer);

fn handed_over(column: Column) -> PyColumn {
    let bytes = |bytes: Vec<u8>| ColumnBuffer { content: Content::Bytes(bytes) };
    let validity = (column.nulls > 0).then(|| bytes(column.validity));
    let offsets = (!column.offsets.is_empty()).then_some(ColumnBuffer { content: Content::Offsets(column.offsets) });
    (column.nulls, validity, offsets, bytes(column.values))
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

/// Return the number of rows, and the requested columns in the order of the dataset.
fn finished(table: Table, hex: bool) -> (usize, Vec<Column>) {
    let wanted = table.columns.into_iter().filter(|column| column.is_wanted);
    (table.rows, wanted.map(|column| if hex { column.into_hex() } else { column }).collect())
}

type PyTable = (usize, Vec<PyColumn>);

fn to_python((rows, columns): (usize, Vec<Column>)) -> PyTable {
    (rows, columns.into_iter().map(handed_over).collect())
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
) -> Answer<(u64, PyTable)> {
    let dataset = dataset_of(dataset)?;
    let filter = &filter.get().filter;
    let (next, found) = store.get().read(py, |snapshot| {
        let mut table = Table::new(&dataset.specs(), &columns);
        let next = scan::scan(&mut table, dataset, snapshot, (first, last), filter, chain_id, max_bytes)?;
        Ok((next, finished(table, hex)))
    })?;
    Ok((next, to_python(found)))
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
#[pyo3(signature = (blocks, dataset, columns, filter, chain_id, hex, stop, /))]
#[allow(clippy::too_many_arguments)]
fn replay_table(
    py: Python<'_>,
    blocks: Vec<Py<TracedBlock>>,
    dataset: &str,
    columns: Vec<String>,
    filter: &Bound<'_, RowFilter>,
    chain_id: u64,
    hex: bool,
    stop: &Bound<'_, ReplayStop>,
) -> Answer<PyTable> {
    let dataset = dataset_of(dataset)?;
    let blocks: Vec<_> = blocks.iter().map(|block| block.get().block.clone()).collect();
    let (filter, flag) = (&filter.get().filter, &stop.get().flag);
    let found = py.detach(|| {
        let mut table = Table::new(&dataset.specs(), &columns);
        for block in &blocks {
            replay(&mut table, dataset, block, filter, chain_id, flag)?;
        }
        Ok::<_, ophion_primitives::errors::Error>(finished(table, hex))
    })?;
    Ok(to_python(found))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ColumnBuffer>()?;
    module.add_class::<RowFilter>()?;
    module.add_class::<ReplayStop>()?;
    module.add_function(wrap_pyfunction!(table_columns, module)?)?;
    module.add_function(wrap_pyfunction!(block_ranges, module)?)?;
    module.add_function(wrap_pyfunction!(scan_table, module)?)?;
    module.add_function(wrap_pyfunction!(replay_table, module)?)
}
