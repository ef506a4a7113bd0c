//! Python binding to cancel the work of another thread.

use ophion_primitives::deadline;
use pyo3::prelude::*;

#[pyclass(frozen, module = "ophion._native")]
pub struct Cancellation {
    flag: deadline::Cancellation,
}

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Cancellation { flag: deadline::Cancellation::default() }
    }

    fn cancel(&self) {
        self.flag.cancel();
    }

    /// Attach this thread: from now on, `cancel` stops the calls, searches and simulations of the thread.
    fn __enter__(&self) {
        self.flag.enter();
    }

    #[pyo3(signature = (kind, error, trace, /))]
    fn __exit__(&self, kind: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>, trace: &Bound<'_, PyAny>) {
        let _ = (kind, error, trace);
        deadline::Cancellation::leave();
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Cancellation>()
}
