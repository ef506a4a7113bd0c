//! Python bindings of `ophion_primitives::memory`, which returns memory of the C allocator to the system.

use ophion_primitives::memory;
use pyo3::prelude::*;

#[pyfunction]
#[pyo3(signature = (max_bytes, /))]
fn keep_freed(max_bytes: usize) {
    memory::keep(max_bytes);
}

#[pyfunction]
fn note_heap() {
    memory::note_heap();
}

#[pyfunction]
fn give_back(py: Python<'_>) {
    py.detach(memory::give_back);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(keep_freed, module)?)?;
    module.add_function(wrap_pyfunction!(note_heap, module)?)?;
    module.add_function(wrap_pyfunction!(give_back, module)?)
}
