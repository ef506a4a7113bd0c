//! Python binding of the enclave's keys. Private keys never leave this class.

use ophion_enclave::{
    Costs, Keyring, MAX_BOXES, RANDOMNESS, Sealed, agrees, group_id, is_sound, lock, payload_gas_limit, public_of,
    unlock,
};
use ophion_primitives::errors::{Error, Result};
use ophion_primitives::keys::fixed;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::chain::store::Store;
use crate::values::convert::to_bytes;
use crate::values::errors::Answer;

/// An opened payload, its group and its sender.
type Opened<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyclass(frozen, module = "ophion._native")]
pub struct SealedRecord {
    key: [u8; 32],
    sender: [u8; 32],
    group: [u8; 32],
    recipients: Vec<[u8; 32]>,
    #[pyo3(get)]
    members: usize,
    #[pyo3(get)]
    opens: bool,
    #[pyo3(get)]
    agrees: bool,
    #[pyo3(get)]
    gas_limit: Option<u64>,
}

impl SealedRecord {
    fn of(sealed: &Sealed<'_>, payload: Option<&[u8]>) -> Self {
        let recipients: Vec<[u8; 32]> = sealed.boxes.iter().map(|one| one.recipient).collect();
        SealedRecord {
            key: sealed.key(),
            sender: sealed.sender,
            group: sealed.group,
            recipients,
            members: sealed.members,
            opens: payload.is_some(),
            agrees: payload.is_some_and(|payload| agrees(payload, sealed)),
            gas_limit: payload.and_then(payload_gas_limit),
        }
    }
}

#[pymethods]
impl SealedRecord {
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.key)
    }

    #[getter]
    fn sender<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.sender)
    }

    #[getter]
    fn group<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.group)
    }

    /// Whether the payload's group is a legacy group. The value is computed only on access, because the computation
    /// hashes all members.
    #[getter]
    fn is_legacy(&self) -> bool {
        group_id(&self.recipients[..self.members], None) == self.group
    }

    #[getter]
    fn recipients<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.recipients.iter().map(|key| to_bytes(py, key)).collect()
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct EnclaveKeyring {
    inner: Keyring,
}

#[pymethods]
impl EnclaveKeyring {
    #[new]
    #[pyo3(signature = (secrets, /))]
    fn new(secrets: Vec<PyBackedBytes>) -> Answer<Self> {
        let secrets: Result<Vec<[u8; 32]>> = secrets.iter().map(|secret| fixed("private key", secret)).collect();
        Ok(EnclaveKeyring { inner: Keyring::new(&secrets?) })
    }

    #[getter]
    fn public_keys<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.inner.public_keys().into_iter().map(|key| to_bytes(py, key)).collect()
    }

    #[pyo3(signature = (payload, sender, recipients, members, group, randomness, /))]
    #[allow(clippy::too_many_arguments)]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
        sender: &[u8],
        recipients: Vec<PyBackedBytes>,
        members: usize,
        group: &[u8],
        randomness: &[u8],
    ) -> Answer<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let sender = fixed("enclave key", sender)?;
        let recipients: Result<Vec<[u8; 32]>> = recipients.iter().map(|key| fixed("enclave key", key)).collect();
        let (recipients, group) = (recipients?, fixed("group id", group)?);
        let randomness: [u8; RANDOMNESS] = fixed("randomness", randomness)?;
        let (key, record) =
            py.detach(|| self.inner.seal(payload, &sender, &recipients, members, &group, &randomness))?;
        Ok((to_bytes(py, key), to_bytes(py, record)))
    }

    #[pyo3(signature = (records, /))]
    fn judge(&self, py: Python<'_>, records: Vec<PyBackedBytes>) -> Vec<Option<SealedRecord>> {
        py.detach(|| {
            let judged = records.iter().map(|record| {
                let sealed = Sealed::decode(record).ok()?;
                Some(SealedRecord::of(&sealed, self.inner.open(&sealed).as_ref().map(|payload| payload.as_slice())))
            });
            judged.collect()
        })
    }

    #[pyo3(signature = (record, /))]
    fn open<'py>(&self, py: Python<'py>, record: &[u8]) -> Answer<Option<Bound<'py, PyBytes>>> {
        let sealed = Sealed::decode(record)?;
        let payload = py.detach(|| self.inner.open(&sealed));
        Ok(payload.map(|payload| to_bytes(py, payload.as_slice())))
    }

    #[pyo3(signature = (store, keys, /))]
    fn open_stored<'py>(
        &self,
        py: Python<'py>,
        store: &Store,
        keys: Vec<PyBackedBytes>,
    ) -> Answer<Vec<Option<Opened<'py>>>> {
        let opened = store.read(py, |snapshot| {
            let mut opened = Vec::with_capacity(keys.len());
            for key in &keys {
                let Some(record) = snapshot.row("payloads", key)? else {
                    opened.push(None);
                    continue;
                };
                let sealed = Sealed::decode(record).map_err(Error::damaged)?;
                opened.push(self.inner.open(&sealed).map(|payload| (payload, sealed.group, sealed.sender)));
            }
            Ok(opened)
        })?;
        let shown = |(payload, group, sender): (_, [u8; 32], [u8; 32])| {
            let payload: zeroize::Zeroizing<Vec<u8>> = payload;
            (to_bytes(py, payload.as_slice()), to_bytes(py, group), to_bytes(py, sender))
        };
        Ok(opened.into_iter().map(|one| one.map(shown)).collect())
    }

    #[pyo3(signature = (own, other, nonce, text, /))]
    fn box_for<'py>(
        &self,
        py: Python<'py>,
        own: &[u8],
        other: &[u8],
        nonce: &[u8],
        text: &[u8],
    ) -> Answer<Option<Bound<'py, PyBytes>>> {
        let (own, other) = (fixed("enclave key", own)?, fixed("enclave key", other)?);
        Ok(self.inner.box_for(&own, &other, &fixed("nonce", nonce)?, text).map(|boxed| to_bytes(py, boxed)))
    }

    #[pyo3(signature = (own, other, nonce, boxed, /))]
    fn unbox<'py>(
        &self,
        py: Python<'py>,
        own: &[u8],
        other: &[u8],
        nonce: &[u8],
        boxed: &[u8],
    ) -> Answer<Option<Bound<'py, PyBytes>>> {
        let (own, other) = (fixed("enclave key", own)?, fixed("enclave key", other)?);
        Ok(self.inner.unbox(&own, &other, &fixed("nonce", nonce)?, boxed).map(|text| to_bytes(py, text)))
    }
}

#[pyfunction]
#[pyo3(signature = (record, /))]
fn read_sealed(record: &[u8]) -> Answer<SealedRecord> {
    Ok(SealedRecord::of(&Sealed::decode(record)?, None))
}

#[pyfunction]
#[pyo3(signature = (members, seed, /))]
fn enclave_group_id<'py>(py: Python<'py>, members: Vec<PyBackedBytes>, seed: Option<&[u8]>) -> Bound<'py, PyBytes> {
    to_bytes(py, group_id(&members, seed))
}

#[pyfunction]
#[pyo3(signature = (secret, /))]
fn enclave_public_key<'py>(py: Python<'py>, secret: &[u8]) -> Answer<Bound<'py, PyBytes>> {
    Ok(to_bytes(py, public_of(&fixed("private key", secret)?)))
}

#[pyfunction]
#[pyo3(signature = (key, /))]
fn is_sound_enclave_key(key: &[u8]) -> bool {
    key.try_into().is_ok_and(|key| is_sound(&key))
}

#[pyfunction]
#[pyo3(signature = (secret, password, salt, nonce, costs, /))]
fn lock_enclave_key<'py>(
    py: Python<'py>,
    secret: &[u8],
    password: &[u8],
    salt: &[u8],
    nonce: &[u8],
    costs: (u32, u32, u32),
) -> Answer<Bound<'py, PyBytes>> {
    let (secret, nonce) = (fixed("private key", secret)?, fixed("nonce", nonce)?);
    let locked = py.detach(|| lock(&secret, password, salt, &nonce, costs_of(costs)))?;
    Ok(to_bytes(py, locked))
}

#[pyfunction]
#[pyo3(signature = (locked, password, salt, nonce, costs, /))]
fn unlock_enclave_key<'py>(
    py: Python<'py>,
    locked: &[u8],
    password: &[u8],
    salt: &[u8],
    nonce: &[u8],
    costs: (u32, u32, u32),
) -> Answer<Option<Bound<'py, PyBytes>>> {
    let nonce = fixed("nonce", nonce)?;
    let opened = py.detach(|| unlock(locked, password, salt, &nonce, costs_of(costs)))?;
    Ok(opened.map(|secret| to_bytes(py, secret)))
}

fn costs_of((memory_kib, iterations, lanes): (u32, u32, u32)) -> Costs {
    Costs { memory_kib, iterations, lanes }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_SEALED_BOXES", MAX_BOXES)?;
    module.add_class::<SealedRecord>()?;
    module.add_class::<EnclaveKeyring>()?;
    module.add_function(wrap_pyfunction!(read_sealed, module)?)?;
    module.add_function(wrap_pyfunction!(enclave_group_id, module)?)?;
    module.add_function(wrap_pyfunction!(enclave_public_key, module)?)?;
    module.add_function(wrap_pyfunction!(is_sound_enclave_key, module)?)?;
    module.add_function(wrap_pyfunction!(lock_enclave_key, module)?)?;
    module.add_function(wrap_pyfunction!(unlock_enclave_key, module)?)
}
