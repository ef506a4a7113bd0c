//! Python bindings of JSON outlines and WebSocket frames (crate `ophion-messages`).

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ophion_messages::json_outline::{self as parser, Form, Member};
use ophion_messages::websocket_frames::{Event, Reader};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::values::convert::to_bytes;

/// Minimum text length in bytes for which the GIL is released.
const LONG: usize = 64 << 10;

#[pyclass(frozen, module = "ophion._native")]
pub struct JsonOutline {
    /// Outline of each request of a batch.
    members: Vec<Member>,
    #[pyo3(get)]
    is_request: bool,
    #[pyo3(get)]
    is_batch: bool,
    #[pyo3(get)]
    count: usize,
    #[pyo3(get)]
    values: usize,
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<Range<usize>>,
}

fn pair(place: &Option<Range<usize>>) -> Option<(usize, usize)> {
    place.as_ref().map(|place| (place.start, place.end))
}

#[pymethods]
impl JsonOutline {
    #[getter]
    fn id(&self) -> Option<(usize, usize)> {
        pair(&self.id)
    }

    #[getter]
    fn method(&self) -> Option<(usize, usize)> {
        pair(&self.method)
    }

    #[getter]
    fn params(&self) -> Option<(usize, usize)> {
        pair(&self.params)
    }

    #[pyo3(signature = (position, /))]
    fn member(&self, position: usize) -> PyResult<(usize, usize, usize)> {
        let one = self.members.get(position).ok_or_else(|| PyIndexError::new_err("there are fewer members"))?;
        Ok((one.place.start, one.place.end, one.values))
    }
}

#[pyfunction]
#[pyo3(signature = (text, max_members, /))]
fn json_outline(py: Python<'_>, text: &[u8], max_members: usize) -> Option<JsonOutline> {
    let found = if text.len() < LONG {
        parser::outline(text, max_members)
    } else {
        py.detach(|| parser::outline(text, max_members))
    };
    let found = found.ok()?;
    let values = found.values;
    let nothing = JsonOutline {
        members: Vec::new(),
        is_request: false,
        is_batch: false,
        count: 0,
        values,
        id: None,
        method: None,
        params: None,
    };
    Some(match found.form {
        Form::Scalar => nothing,
        Form::Batch(members, count) => JsonOutline { members, is_batch: true, count, ..nothing },
        Form::Request(one) => {
            JsonOutline { is_request: true, id: one.id, method: one.method, params: one.params, ..nothing }
        }
    })
}

#[pyclass(frozen, module = "ophion._native")]
pub struct FrameReader {
    reader: Mutex<Reader>,
}

#[pymethods]
impl FrameReader {
    #[new]
    #[pyo3(signature = (max_frame, max_message, /))]
    fn new(max_frame: u64, max_message: u64) -> Self {
        FrameReader { reader: Mutex::new(Reader::new(max_frame, max_message)) }
    }

    #[getter]
    fn held_bytes(&self) -> usize {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).held()
    }

    #[pyo3(signature = (data, start, max_frames, /))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        start: usize,
        max_frames: usize,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let data = &data[start.min(data.len())..];
        let outcome = self.reader.lock().unwrap_or_else(PoisonError::into_inner).read(data, max_frames);
        let events = PyList::empty(py);
        for event in outcome.events {
            // drop each payload before copying the next, to save memory
            let (opcode, payload): (u8, Bound<'py, PyBytes>) = match event {
                Event::Text(text) => (0x1, to_bytes(py, &text)),
                Event::Binary(bytes) => (0x2, to_bytes(py, &bytes)),
                Event::Ping(payload) => (0x9, to_bytes(py, &payload)),
                Event::Close(code) => (0x8, to_bytes(py, code.map_or(Vec::new(), |code| code.to_be_bytes().to_vec()))),
            };
            events.append((opcode, payload))?;
        }
        let fault = outcome.fault.map(|fault| fault as u16);
        (start + outcome.consumed, events, outcome.controls, fault).into_pyobject(py)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<JsonOutline>()?;
    module.add_class::<FrameReader>()?;
    module.add_function(wrap_pyfunction!(json_outline, module)?)
}
