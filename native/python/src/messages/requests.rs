//! Fast path of the dispatcher: parses plain requests and answers requests about the latest block.
//!
//! Slow path: `rpc/dispatch/dispatcher.py`. `tests/unit/rpc/dispatch/test_fast_path.py` and
//! `tests/unit/native/test_messages.py` compare both.

use std::sync::{Mutex, PoisonError};

use ophion_messages::plain_request::{self, Param, Params};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::execution::latest::LatestRead;
use crate::values::convert::to_bytes;

/// Initial buffer size of a reply in bytes.
const ANSWER: usize = 160;

#[pyclass(frozen, module = "ophion._native")]
#[derive(Default)]
pub struct PlainRequests {
    answered: Mutex<Vec<(Vec<u8>, Py<LatestRead>)>>,
}

#[pymethods]
impl PlainRequests {
    #[new]
    fn new() -> Self {
        PlainRequests::default()
    }

    #[pyo3(signature = (method, read, /))]
    fn answer(&self, method: &str, read: Py<LatestRead>) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.iter().all(|(known, _)| known != method.as_bytes()) {
            answered.push((method.into(), read));
        }
    }

    #[pyo3(signature = (text, /))]
    fn read<'py>(&self, py: Python<'py>, text: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(found) = plain_request::parse(text) else { return Ok(None) };
        if let Params::Plain(params) = &found.params
            && let Some(answer) = self.answered(py, found.id, found.method, params)
        {
            return Ok(Some(to_bytes(py, answer).into_any()));
        }
        let params = match found.params {
            Params::Transaction(raw) => to_bytes(py, raw).into_any(),
            Params::Plain(params) => list(py, params)?.into_any(),
        };
        let request = (to_bytes(py, found.id), PyString::from_bytes(py, found.method)?, params);
        Ok(Some(request.into_pyobject(py)?.into_any()))
    }
}

impl PlainRequests {
    fn answered(&self, py: Python<'_>, id: &[u8], method: &[u8], params: &[Param<'_>]) -> Option<Vec<u8>> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, read) = answered.iter().find(|(known, _)| known == method)?;
        let mut out = Vec::with_capacity(ANSWER);
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id);
        out.extend_from_slice(br#","result":"#);
        read.get().answer(py, params, &mut out)?;
        out.push(b'}');
        Some(out)
    }
}

fn list<'py>(py: Python<'py>, params: Vec<Param<'_>>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for param in params {
        match param {
            Param::Word(word) => list.append(PyString::from_bytes(py, word)?)?,
            Param::Truth(truth) => list.append(truth)?,
            Param::Fields(fields) => {
                let object = PyDict::new(py);
                for (name, word) in fields {
                    object.set_item(PyString::from_bytes(py, name)?, PyString::from_bytes(py, word)?)?;
                }
                list.append(object)?;
            }
        }
    }
    Ok(list)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PlainRequests>()
}
