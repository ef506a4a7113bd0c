//! The Python bytes object for a large peer message, which the decompressor fills directly.

use std::any::Any;
use std::ptr;

use ophion_wire::snappy::{Output, allocate_vec};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A Python bytes object of fixed size, being filled with a message. Python sees the object only when it is complete.
struct Payload {
    bytes: Py<PyBytes>,
    start: *mut u8,
    size: usize,
    filled: usize,
}

// SAFETY: `start` points into `bytes`, which this object owns alone, so one thread at a time writes there.
unsafe impl Send for Payload {}

/// Allocate the Python bytes object for a message of `size` bytes. If there is not enough memory, return a `Vec` that
/// grows as data arrives.
pub fn allocate(size: usize) -> Box<dyn Output> {
    let payload = Python::attach(|py| {
        // SAFETY: with a null pointer as source, PyBytes_FromStringAndSize returns a new bytes object of `size` bytes,
        // or null with an exception. Only this code refers to the object and may write to it.
        unsafe {
            let object = ffi::PyBytes_FromStringAndSize(ptr::null(), size as ffi::Py_ssize_t);
            let bytes: Py<PyBytes> = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked().unbind();
            let start = ffi::PyBytes_AsString(bytes.as_ptr()).cast::<u8>();
            Ok::<_, PyErr>(Payload { bytes, start, size, filled: 0 })
        }
    });
    payload.map_or_else(|_| allocate_vec(size), |payload| Box::new(payload) as Box<dyn Output>)
}

impl Output for Payload {
    fn len(&self) -> usize {
        self.filled
    }

    fn append(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.size - self.filled, "more bytes than announced");
        // SAFETY: the target lies inside the object, and `bytes` is other memory, so both cannot overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(self.filled), bytes.len()) };
        self.filled += bytes.len();
    }

    fn repeat(&mut self, distance: usize, size: usize) {
        assert!(distance <= self.filled && size <= self.size - self.filled, "a copy out of bounds");
        let (from, end) = (self.filled - distance, self.filled + size);
        while self.filled < end {
            // Copy at most the bytes from `from` to the end, so that source and target never overlap. Each round
            // doubles the repeated part.
            let count = (end - self.filled).min(self.filled - from);
            // SAFETY: the source is filled. The target begins where the source ends or later, and ends inside the
            // object.
            unsafe { ptr::copy_nonoverlapping(self.start.add(from), self.start.add(self.filled), count) };
            self.filled += count;
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        assert_eq!(self.filled, self.size, "bytes that were never written");
        Box::new(self.bytes)
    }
}
