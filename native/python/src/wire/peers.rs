//! Python bindings of the crate `ophion-wire`.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use ophion_primitives::keccak::keccak256_many;
use ophion_storage::chain::body;
use ophion_wire::frames::{Content, Egress, Ingress, Session as Both};
use ophion_wire::handshake::{self, Initiator};
use ophion_wire::{discovery_packet, node_record, rlp};
use pyo3::create_exception;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyTuple};
use rayon::prelude::*;

use crate::chain::body::Body;
use crate::values::convert::to_bytes;
use crate::values::errors::NativeError;
use crate::wire::payload;

create_exception!(_native, WireError, NativeError, "Bytes of a peer that are not what they should be.");

fn wrong(error: impl std::fmt::Display) -> PyErr {
    WireError::new_err(error.to_string())
}

/// Minimum input size for releasing the GIL. Smaller inputs take a few microseconds, and reacquiring the GIL can take
/// milliseconds while another thread holds it.
const LONG: usize = 16 << 10;

fn maybe_detached<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce() -> T + Send) -> T {
    if size < LONG { work() } else { py.detach(work) }
}

/// Lock a mutex. Ignores poisoning, because the panic behind the poisoning has already been reported.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lock a mutex. The thread releases the GIL while it waits, because the thread that holds the lock may need the GIL to
/// allocate.
fn lock_attached<'mutex, T: Send>(py: Python<'_>, mutex: &'mutex Mutex<T>) -> MutexGuard<'mutex, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(error)) => return error.into_inner(),
            Err(TryLockError::WouldBlock) => py.detach(|| drop(lock(mutex))),
        }
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct Handshake {
    initiator: Initiator,
}

#[pymethods]
impl Handshake {
    #[staticmethod]
    #[pyo3(signature = (secret, remote_id, entropy, /))]
    fn initiate(py: Python<'_>, secret: &[u8], remote_id: &[u8], entropy: &[u8]) -> PyResult<Self> {
        let initiator = py.detach(|| Initiator::new(secret, remote_id, entropy)).map_err(wrong)?;
        Ok(Handshake { initiator })
    }

    #[getter]
    fn auth<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.initiator.auth())
    }

    #[pyo3(signature = (ack, /))]
    fn finish(&self, py: Python<'_>, ack: &[u8]) -> PyResult<Session> {
        Ok(py.detach(|| self.initiator.finish(ack)).map_err(wrong)?.into())
    }

    #[staticmethod]
    #[pyo3(signature = (secret, auth, entropy, /))]
    fn answer<'py>(
        py: Python<'py>,
        secret: &[u8],
        auth: &[u8],
        entropy: &[u8],
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Session)> {
        let answer = py.detach(|| handshake::answer(secret, auth, entropy)).map_err(wrong)?;
        Ok((to_bytes(py, answer.ack), to_bytes(py, answer.remote), answer.session.into()))
    }

    /// Return the claimed node id of an auth message, without releasing the GIL. The call takes some tens of
    /// microseconds, and must stay cheap in a flood of connections.
    #[staticmethod]
    #[pyo3(signature = (secret, auth, /))]
    fn caller<'py>(py: Python<'py>, secret: &[u8], auth: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        Ok(to_bytes(py, handshake::caller(secret, auth).map_err(wrong)?))
    }
}

/// An RLPx session. Sending and receiving have separate locks, so that a writer never waits for a reader.
#[pyclass(frozen, module = "ophion._native")]
pub struct Session {
    egress: Mutex<Egress>,
    ingress: Mutex<Ingress>,
}

impl From<Both> for Session {
    fn from(mut both: Both) -> Self {
        both.ingress.allocate = payload::allocate;
        Session { egress: Mutex::new(both.egress), ingress: Mutex::new(both.ingress) }
    }
}

#[pymethods]
impl Session {
    #[getter]
    fn is_compressed(&self, py: Python<'_>) -> bool {
        lock_attached(py, &self.ingress).is_compressed()
    }

    #[setter]
    fn set_is_compressed(&self, py: Python<'_>, value: bool) {
        lock_attached(py, &self.ingress).set_compressed(value);
        lock(&self.egress).is_compressed = value;
    }

    #[getter]
    fn max_message(&self, py: Python<'_>) -> usize {
        lock_attached(py, &self.ingress).max_message()
    }

    #[setter]
    fn set_max_message(&self, py: Python<'_>, size: usize) {
        lock_attached(py, &self.ingress).set_max_message(size);
    }

    #[pyo3(signature = (id, size, /))]
    fn set_max_size(&self, py: Python<'_>, id: u8, size: usize) {
        lock_attached(py, &self.ingress).set_max_size(id, size);
    }

    #[getter]
    fn buffered(&self, py: Python<'_>) -> usize {
        lock_attached(py, &self.ingress).buffered()
    }

    #[pyo3(signature = (messages, /))]
    fn seal<'py>(&self, py: Python<'py>, messages: Vec<(u8, PyBackedBytes)>) -> PyResult<Bound<'py, PyBytes>> {
        let size = messages.iter().map(|(_, payload)| payload.len()).sum();
        let work = || lock(&self.egress).seal(messages.iter().map(|(id, payload)| (*id, &payload[..])));
        Ok(to_bytes(py, maybe_detached(py, size, work).map_err(wrong)?))
    }

    #[pyo3(signature = (data, /))]
    fn feed<'py>(&self, py: Python<'py>, data: PyBackedBytes) -> PyResult<Bound<'py, PyList>> {
        let messages = if data.len() < LONG {
            lock_attached(py, &self.ingress).feed(&data)
        } else {
            py.detach(|| lock(&self.ingress).feed(&data))
        };
        let messages = messages.map_err(wrong)?;
        let list = PyList::empty(py);
        for (id, content) in messages {
            match content {
                Content::Payload(payload) => list.append((id, to_bytes(py, payload)))?,
                Content::Allocated(payload) => match payload.downcast::<Py<PyBytes>>() {
                    Ok(payload) => list.append((id, *payload))?,
                    Err(_) => return Err(wrong("a payload of another allocator")),
                },
                Content::Oversized(size) => list.append((id, size))?,
            }
        }
        Ok(list)
    }
}

/// Number of Python objects after which a thread releases the GIL, because a message may have tens of thousands of
/// items.
const MADE_AT_ONCE: usize = 1024;

fn pieces<'py>(py: Python<'py>, data: &[u8], found: Vec<Range<usize>>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (index, range) in found.into_iter().enumerate() {
        if index % MADE_AT_ONCE == MADE_AT_ONCE - 1 {
            py.detach(|| ());
        }
        list.append(to_bytes(py, &data[range]))?;
    }
    Ok(list)
}

#[pyfunction]
#[pyo3(signature = (rlp, max_items, /))]
fn split_list<'py>(py: Python<'py>, rlp: &[u8], max_items: usize) -> PyResult<Bound<'py, PyList>> {
    pieces(py, rlp, maybe_detached(py, rlp.len(), || rlp::split_list(rlp, max_items)).map_err(wrong)?)
}

#[pyfunction]
#[pyo3(signature = (rlp, max_items, /))]
fn split_transactions<'py>(py: Python<'py>, rlp: &[u8], max_items: usize) -> PyResult<Bound<'py, PyList>> {
    pieces(py, rlp, maybe_detached(py, rlp.len(), || rlp::split_transactions(rlp, max_items)).map_err(wrong)?)
}

/// Split a list of transactions. Returns the hash and the EIP-2718 encoding of each.
#[pyfunction]
#[pyo3(signature = (rlp, max_items, /))]
fn split_and_hash_transactions<'py>(
    py: Python<'py>,
    rlp: &[u8],
    max_items: usize,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    let work = || -> ophion_wire::Result<_> {
        let found = rlp::split_transactions(rlp, max_items)?;
        let mut hashes = Vec::with_capacity(found.len());
        keccak256_many(&found.iter().map(|range| &rlp[range.clone()]).collect::<Vec<_>>(), &mut hashes);
        Ok((found, hashes))
    };
    let (found, hashes) = maybe_detached(py, rlp.len(), work).map_err(wrong)?;
    let list = PyList::empty(py);
    for (index, hash) in hashes.into_iter().enumerate() {
        if index % MADE_AT_ONCE == MADE_AT_ONCE - 1 {
            py.detach(|| ());
        }
        list.append(to_bytes(py, hash))?;
    }
    Ok((list, pieces(py, rlp, found)?))
}

#[pyfunction]
#[pyo3(signature = (raws, /))]
fn join_transactions<'py>(py: Python<'py>, raws: Vec<PyBackedBytes>) -> Bound<'py, PyBytes> {
    to_bytes(py, rlp::join_transactions(raws.iter().map(|raw| &raw[..])))
}

#[pyfunction]
#[pyo3(signature = (rlp, max_items, /))]
fn split_bodies(py: Python<'_>, rlp: PyBackedBytes, max_items: usize) -> PyResult<Vec<Body>> {
    let work = || -> PyResult<Vec<Body>> {
        let found = rlp::split_list(&rlp, max_items).map_err(wrong)?;
        let one = |(index, range): (usize, Range<usize>)| {
            let place = format!("body {index}");
            let (payload, _) = rlp::list_at_front(&place, &rlp[range]).map_err(wrong)?;
            let data = body::decode_body(payload).map_err(|cause| wrong(format!("{place}: {cause}")))?;
            Ok(Body { data: Arc::new(data) })
        };
        if rlp.len() < LONG {
            found.into_iter().enumerate().map(one).collect()
        } else {
            found.into_par_iter().enumerate().map(one).collect()
        }
    };
    maybe_detached(py, rlp.len(), work)
}

#[pyfunction]
#[pyo3(signature = (block, /))]
fn body_rlp<'py>(py: Python<'py>, block: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    Ok(to_bytes(py, rlp::body_of_block(block).map_err(wrong)?))
}

#[pyfunction]
#[pyo3(signature = (secret, kind, data, /))]
fn seal_packet<'py>(py: Python<'py>, secret: &[u8], kind: u8, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    Ok(to_bytes(py, py.detach(|| discovery_packet::seal(secret, kind, data)).map_err(wrong)?))
}

#[pyfunction]
#[pyo3(signature = (datagram, /))]
fn open_packet<'py>(py: Python<'py>, datagram: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    let packet = py.detach(|| discovery_packet::open(datagram)).map_err(wrong)?;
    let (hash, signer) = (to_bytes(py, packet.hash), to_bytes(py, packet.signer));
    (hash, signer, packet.kind, to_bytes(py, packet.data)).into_pyobject(py)
}

#[pyfunction]
#[pyo3(signature = (secret, seq, pairs, /))]
fn sign_record<'py>(
    py: Python<'py>,
    secret: &[u8],
    seq: u64,
    pairs: Vec<(PyBackedBytes, PyBackedBytes)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let pairs: Vec<node_record::Pair<'_>> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    Ok(to_bytes(py, py.detach(|| node_record::sign(secret, seq, &pairs)).map_err(wrong)?))
}

#[pyfunction]
#[pyo3(signature = (rlp, /))]
fn read_record<'py>(py: Python<'py>, rlp: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    let record = py.detach(|| node_record::read(rlp)).map_err(wrong)?;
    let pairs = record.pairs.iter().map(|(key, value)| (to_bytes(py, key), to_bytes(py, value)));
    (to_bytes(py, record.id), record.sequence, PyList::new(py, pairs)?).into_pyobject(py)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("WireError", module.py().get_type::<WireError>())?;
    module.add("HANDSHAKE_ENTROPY", handshake::ENTROPY)?;
    module.add("MAX_HANDSHAKE_SIZE", handshake::MAX_SIZE)?;
    module.add_class::<Handshake>()?;
    module.add_class::<Session>()?;
    module.add_function(wrap_pyfunction!(split_list, module)?)?;
    module.add_function(wrap_pyfunction!(split_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(split_and_hash_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(join_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(split_bodies, module)?)?;
    module.add_function(wrap_pyfunction!(body_rlp, module)?)?;
    module.add_function(wrap_pyfunction!(seal_packet, module)?)?;
    module.add_function(wrap_pyfunction!(open_packet, module)?)?;
    module.add_function(wrap_pyfunction!(sign_record, module)?)?;
    module.add_function(wrap_pyfunction!(read_record, module)?)
}
