//! Converts Python values to Rust types.

use alloy_primitives::{Address, B256, Bytes, U256};
use ophion_primitives::keys::fixed;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyInt};

use super::errors::{Answer, Raised};

/// A 32-byte hash given as `bytes`.
pub struct Hash(pub B256);

impl<'a, 'py> FromPyObject<'a, 'py> for Hash {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let bytes = fixed::<32>("hash", value.extract()?).map_err(Raised::from)?;
        Ok(Hash(bytes.into()))
    }
}

/// A 20-byte address given as `bytes`.
pub struct Addr(pub Address);

impl<'a, 'py> FromPyObject<'a, 'py> for Addr {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let bytes = fixed::<20>("address", value.extract()?).map_err(Raised::from)?;
        Ok(Addr(bytes.into()))
    }
}

/// An unsigned integer of up to 256 bits.
pub struct Wide(pub U256);

impl<'a, 'py> FromPyObject<'a, 'py> for Wide {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(small) = value.extract::<u64>() {
            return Ok(Wide(U256::from(small)));
        }
        if !value.is_instance_of::<PyInt>() {
            return Err(PyTypeError::new_err("an integer is expected"));
        }
        let bytes = value
            .call_method1("to_bytes", (32, "big"))
            .map_err(|_| PyOverflowError::new_err("an unsigned integer of at most 256 bits is expected"))?;
        Ok(Wide(U256::from_be_slice(bytes.extract::<&[u8]>()?)))
    }
}

/// Any byte string, copied.
pub struct Raw(pub Bytes);

impl<'a, 'py> FromPyObject<'a, 'py> for Raw {
    type Error = PyErr;
    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Raw(Bytes::copy_from_slice(&value.extract::<PyBackedBytes>()?)))
    }
}

pub fn to_bytes<'py>(py: Python<'py>, bytes: impl AsRef<[u8]>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, bytes.as_ref())
}

pub fn to_int<'py>(py: Python<'py>, value: &U256) -> Answer<Bound<'py, PyAny>> {
    if let Ok(small) = u64::try_from(*value) {
        return Ok(small.into_bound_py_any(py)?);
    }
    if let Ok(wide) = u128::try_from(*value) {
        return Ok(wide.into_bound_py_any(py)?);
    }
    Ok(py.get_type::<PyInt>().call_method1("from_bytes", (to_bytes(py, value.to_be_bytes::<32>()), "big"))?)
}
