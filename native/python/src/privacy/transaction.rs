//! Python bindings of private transactions, their groups, contracts and markers.

use alloy_primitives::{Address, Bytes, U256};
use ophion_privacy::marker_transaction::signed_marker;
use ophion_privacy::transaction::{self, Decoded, DynamicFee, Recipients, Unsigned};
use ophion_privacy::{contract_addresses, flexible_groups};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::values::convert::{Addr, Hash, Raw, to_bytes, to_int};
use crate::values::errors::{Answer, Raised};

#[pyclass(frozen, module = "ophion._native")]
pub struct PrivateTransaction {
    pub decoded: Decoded,
    raw: Bytes,
}

#[pymethods]
impl PrivateTransaction {
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.raw)
    }

    #[getter]
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.decoded.hash)
    }

    #[getter]
    fn sender<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.decoded.sender.map(|sender| to_bytes(py, sender))
    }

    #[getter]
    fn nonce(&self) -> u64 {
        self.decoded.tx.fields.nonce
    }

    #[getter]
    fn gas_price(&self) -> u128 {
        self.decoded.tx.fields.gas_price
    }

    /// Priority fee per gas of a type 2 transaction; None for a legacy transaction. The `gas_price` of a type 2
    /// transaction is the maximum fee per gas.
    #[getter]
    fn max_priority_fee(&self) -> Option<u128> {
        self.decoded.tx.fields.dynamic_fee.map(|fee| fee.max_priority_fee)
    }

    #[getter]
    fn gas_limit(&self) -> u64 {
        self.decoded.tx.fields.gas_limit
    }

    #[getter]
    fn to<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.decoded.tx.fields.to.map(|to| to_bytes(py, to))
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Answer<Bound<'py, PyAny>> {
        to_int(py, &self.decoded.tx.fields.value)
    }

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.decoded.tx.fields.data)
    }

    #[getter]
    fn signature<'py>(&self, py: Python<'py>) -> Answer<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let tx = &self.decoded.tx;
        Ok((to_int(py, &tx.v)?, to_int(py, &tx.r)?, to_int(py, &tx.s)?))
    }

    #[getter]
    fn chain_id(&self) -> Option<u64> {
        self.decoded.tx.chain_id()
    }

    #[getter]
    fn private_from<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.decoded.tx.fields.private_from)
    }

    #[getter]
    fn private_for<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        match &self.decoded.tx.fields.recipients {
            Recipients::Keys(keys) => Some(keys.iter().map(|key| to_bytes(py, key)).collect()),
            Recipients::Group(_) => None,
        }
    }

    #[getter]
    fn privacy_group_id<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        match &self.decoded.tx.fields.recipients {
            Recipients::Keys(_) => None,
            Recipients::Group(id) => Some(to_bytes(py, id)),
        }
    }

    /// The privacy group of the transaction; None when its group id is not 32 bytes long.
    #[getter]
    fn group<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.decoded.tx.fields.group().map(|group| to_bytes(py, group))
    }

    #[getter]
    fn restriction<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.decoded.tx.fields.restriction)
    }
}

fn opened(raw: &[u8]) -> Answer<PrivateTransaction> {
    let decoded = transaction::decode(raw)?;
    Ok(PrivateTransaction { decoded, raw: Bytes::copy_from_slice(raw) })
}

/// Return the gas limit of a private transaction without checking the signature; None for other bytes.
#[pyfunction]
#[pyo3(signature = (raw, /))]
fn private_gas_limit(raw: &[u8]) -> Option<u64> {
    ophion_enclave::gas_limit(raw)
}

#[pyfunction]
#[pyo3(signature = (raw, /))]
fn decode_private_transaction(py: Python<'_>, raw: &[u8]) -> Answer<PrivateTransaction> {
    py.detach(|| opened(raw))
}

/// Decode many private transactions on all cores. For an item that cannot be decoded, the list holds an exception.
#[pyfunction]
#[pyo3(signature = (raws, /))]
fn decode_private_transactions(py: Python<'_>, raws: Vec<PyBackedBytes>) -> PyResult<Vec<Py<PyAny>>> {
    let found = py.detach(|| transaction::decode_all(&raws));
    let one = |(decoded, raw): (ophion_primitives::errors::Result<Decoded>, &PyBackedBytes)| match decoded {
        Ok(decoded) => {
            let raw = Bytes::copy_from_slice(raw);
            Ok(Py::new(py, PrivateTransaction { decoded, raw })?.into_any())
        }
        Err(cause) => Ok(PyErr::from(Raised::from(cause)).into_value(py).into_any()),
    };
    found.into_iter().zip(&raws).map(one).collect()
}

#[pyfunction]
#[pyo3(signature = (secret, *, nonce, gas_price, gas_limit, to, data, private_from, private_for=None, privacy_group_id=None, chain_id=None, value=0, restriction=None, max_priority_fee=None))]
#[allow(clippy::too_many_arguments)]
fn sign_private_transaction<'py>(
    py: Python<'py>,
    secret: &[u8],
    nonce: u64,
    gas_price: u128,
    gas_limit: u64,
    to: Option<Addr>,
    data: Raw,
    private_from: Raw,
    private_for: Option<Vec<Raw>>,
    privacy_group_id: Option<Raw>,
    chain_id: Option<u64>,
    value: u64,
    restriction: Option<Raw>,
    max_priority_fee: Option<u128>,
) -> Answer<Bound<'py, PyBytes>> {
    let recipients = match privacy_group_id {
        Some(id) => Recipients::Group(id.0),
        None => Recipients::Keys(private_for.unwrap_or_default().into_iter().map(|key| key.0).collect()),
    };
    let chain = chain_id.unwrap_or_default();
    let fields = Unsigned {
        dynamic_fee: max_priority_fee.map(|fee| DynamicFee { chain_id: chain, max_priority_fee: fee }),
        nonce,
        gas_price,
        gas_limit,
        to: to.map(|to| to.0),
        value: U256::from(value),
        data: data.0,
        private_from: private_from.0,
        recipients,
        restriction: restriction.map_or_else(|| Bytes::from_static(transaction::RESTRICTED), |given| given.0),
    };
    let signed = fields.sign(secret, chain_id)?;
    Ok(to_bytes(py, signed.encode()))
}

/// Encode a payload of a flexible group: a transaction, and the version of the member list for which it was made.
#[pyfunction]
#[pyo3(signature = (raw, version, /))]
fn encode_versioned<'py>(py: Python<'py>, raw: &[u8], version: Hash) -> Bound<'py, PyBytes> {
    to_bytes(py, flexible_groups::encode_versioned(raw, &version.0))
}

/// Decode a payload of a flexible group. Returns transaction, version and group.
#[pyfunction]
#[pyo3(signature = (payload, /))]
#[allow(clippy::type_complexity)]
fn decode_versioned<'py>(
    py: Python<'py>,
    payload: &[u8],
) -> Answer<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let found = py.detach(|| flexible_groups::decode_versioned(payload))?;
    Ok((to_bytes(py, &found.tx), to_bytes(py, found.version), to_bytes(py, found.group)))
}

/// Sign marker transactions. Each item has secret, nonce, gas price, gas limit and data.
#[pyfunction]
#[pyo3(signature = (precompile, markers, /))]
fn sign_markers<'py>(
    py: Python<'py>,
    precompile: Addr,
    markers: Vec<(PyBackedBytes, u64, u128, u64, PyBackedBytes)>,
) -> Answer<Vec<Bound<'py, PyBytes>>> {
    let signed = py.detach(|| {
        let one = |(secret, nonce, gas_price, gas_limit, data): &(PyBackedBytes, u64, u128, u64, PyBackedBytes)| {
            signed_marker(secret, *nonce, *gas_price, *gas_limit, &precompile.0, data)
        };
        markers.iter().map(one).collect::<ophion_primitives::errors::Result<Vec<_>>>()
    })?;
    Ok(signed.iter().map(|raw| to_bytes(py, raw)).collect())
}

#[pyfunction]
#[pyo3(signature = (sender, nonce, group, /))]
fn private_contract_address<'py>(py: Python<'py>, sender: Addr, nonce: u64, group: Hash) -> Bound<'py, PyBytes> {
    let address: Address = contract_addresses::contract_address(&sender.0, nonce, &group.0);
    to_bytes(py, address)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PrivateTransaction>()?;
    module.add_function(wrap_pyfunction!(decode_private_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(decode_private_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(private_gas_limit, module)?)?;
    module.add_function(wrap_pyfunction!(sign_private_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(sign_markers, module)?)?;
    module.add_function(wrap_pyfunction!(encode_versioned, module)?)?;
    module.add_function(wrap_pyfunction!(decode_versioned, module)?)?;
    module.add_function(wrap_pyfunction!(private_contract_address, module)?)
}
