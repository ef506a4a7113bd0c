//! Text of a long response, which Python sends without copying.

use std::ffi::{c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

#[pyclass(frozen, weakref, module = "ophion._native")]
pub struct GraphqlText {
    text: Vec<u8>,
}

impl GraphqlText {
    pub fn new(mut text: Vec<u8>) -> Self {
        text.shrink_to_fit();
        GraphqlText { text }
    }
}

#[pymethods]
impl GraphqlText {
    fn __len__(&self) -> usize {
        self.text.len()
    }

    /// Return a view of the bytes, which keeps this object alive.
    fn view<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyMemoryView>> {
        PyMemoryView::from(slf.as_any())
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let text = &slf.get().text;
        let length = text.len() as ffi::Py_ssize_t;
        // SAFETY: the interpreter passes a `Py_buffer` to fill in. It will point to bytes of `slf`, which do not
        // move: `slf` is frozen, and the `Py_buffer` holds a reference to it.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), text.as_ptr().cast_mut().cast::<c_void>(), length, 1, flags)
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
