//! Python bindings of transactions and block bodies.

use std::io::Write;
use std::sync::Arc;

use alloy_consensus::transaction::Transaction as _;
use alloy_consensus::{SignableTransaction, TxEip1559};
use alloy_eips::eip2718::Encodable2718;
use alloy_eips::eip2930::AccessList;
use alloy_eips::eip4895::Withdrawal as WithdrawalData;
use alloy_primitives::map::AddressSet;
use alloy_primitives::{Address, Bytes, Signature, TxKind, U256, hex};
use ophion_execution::block::admission_fast_path;
use ophion_execution::block::transaction_rules;
use ophion_execution::evm::block_environment::Fork;
use ophion_primitives::errors::{Error, Result};
use ophion_primitives::keys;
use ophion_rendering::objects;
use ophion_storage::chain::body::{self, BodyData, Envelope, Known, Tx};
use ophion_storage::chain::decoder::{self, Decoded};
use ophion_storage::chain::sender_cache;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::values::convert::{Addr, Raw, Wide, to_bytes, to_int};
use crate::values::errors::Answer;

#[pyclass(frozen, module = "ophion._native")]
pub struct Transaction {
    pub tx: Arc<Tx>,
    pub known: Known,
}

#[pymethods]
impl Transaction {
    /// Make a transaction that its sender has not signed. Only development networks execute it.
    ///
    /// Stores the sender in the sender cache, so that a body that is decoded later also has this sender.
    #[staticmethod]
    #[pyo3(signature = (raw, sender, /))]
    fn impersonated(raw: Raw, sender: Addr) -> Answer<Self> {
        let tx = Tx::decode(raw.0)?;
        let known = Known { hash: tx.hash(), sender: sender.0 };
        sender_cache::keep(known.hash, known.sender);
        Ok(Transaction { tx: Arc::new(tx), known })
    }

    /// Make a dynamic-fee transaction of a development network. Without a secret, the signature names an impersonated
    /// sender: r is the sender, and s is 1.
    #[staticmethod]
    #[pyo3(signature = (secret, sender, chain_id, nonce, gas, to, value, input, max_fee, max_priority_fee, /))]
    #[allow(clippy::too_many_arguments)]
    fn dynamic_fee(
        secret: Option<&[u8]>,
        sender: Addr,
        chain_id: u64,
        nonce: u64,
        gas: u64,
        to: Option<Addr>,
        value: Wide,
        input: Raw,
        max_fee: u128,
        max_priority_fee: u128,
    ) -> Answer<Self> {
        let fields = TxEip1559 {
            chain_id,
            nonce,
            gas_limit: gas,
            max_fee_per_gas: max_fee,
            max_priority_fee_per_gas: max_priority_fee,
            to: to.map_or(TxKind::Create, |to| TxKind::Call(to.0)),
            value: value.0,
            access_list: AccessList::default(),
            input: input.0,
        };
        let signature = match secret {
            Some(secret) => {
                let signed = keys::sign(&keys::secret_key(secret)?, fields.signature_hash().0);
                Signature::from_bytes_and_parity(&signed[..64], signed[64] == 1)
            }
            None => {
                let r = U256::from_be_slice(sender.0.as_slice());
                Signature::new(if r.is_zero() { U256::ONE } else { r }, U256::ONE, false)
            }
        };
        let signed = fields.into_signed(signature);
        let known = Known { hash: *signed.hash(), sender: sender.0 };
        let envelope = Envelope::Eip1559(signed);
        let raw = envelope.encoded_2718().into();
        Ok(Transaction { tx: Arc::new(Tx { envelope, raw }), known })
    }

    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, &self.tx.raw)
    }

    #[getter]
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.known.hash)
    }

    #[getter]
    fn sender<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.known.sender)
    }

    #[getter]
    fn r#type(&self) -> u8 {
        self.tx.envelope.tx_type() as u8
    }

    #[getter]
    fn chain_id(&self) -> Option<u64> {
        self.tx.envelope.chain_id()
    }

    #[getter]
    fn nonce(&self) -> u64 {
        self.tx.envelope.nonce()
    }

    #[getter]
    fn gas_limit(&self) -> u64 {
        self.tx.envelope.gas_limit()
    }

    #[getter]
    fn max_fee_per_gas(&self) -> u128 {
        self.tx.envelope.max_fee_per_gas()
    }

    #[getter]
    fn max_priority_fee_per_gas(&self) -> u128 {
        self.tx.envelope.max_priority_fee_per_gas().unwrap_or_else(|| self.tx.envelope.max_fee_per_gas())
    }

    #[getter]
    fn max_fee_per_blob_gas(&self) -> Option<u128> {
        self.tx.envelope.max_fee_per_blob_gas()
    }

    #[getter]
    fn blob_hashes<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.tx.envelope.blob_versioned_hashes().unwrap_or_default().iter().map(|hash| to_bytes(py, hash)).collect()
    }

    #[getter]
    fn to<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        match self.tx.envelope.kind() {
            TxKind::Call(address) => Some(to_bytes(py, address)),
            TxKind::Create => None,
        }
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Answer<Bound<'py, PyAny>> {
        to_int(py, &self.tx.envelope.value())
    }

    #[getter]
    fn input<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.tx.envelope.input())
    }

    #[getter]
    fn authorization_count(&self) -> usize {
        self.tx.envelope.authorization_list().map_or(0, <[_]>::len)
    }

    #[getter]
    fn is_low_s(&self) -> bool {
        self.tx.is_low_s()
    }

    #[getter]
    fn cost<'py>(&self, py: Python<'py>) -> Answer<Bound<'py, PyAny>> {
        to_int(py, &self.tx.cost())
    }

    /// Return all values that pool admission (`pool/admission.py`) needs, in one call.
    #[pyo3(signature = (fork, /))]
    #[expect(clippy::type_complexity)]
    fn admission_values<'py>(
        &self,
        py: Python<'py>,
        fork: &str,
    ) -> Answer<(
        Bound<'py, PyBytes>,
        Bound<'py, PyBytes>,
        u8,
        Option<u64>,
        u64,
        u64,
        u128,
        u128,
        Bound<'py, PyAny>,
        usize,
        u64,
        bool,
    )> {
        Ok((
            self.hash(py),
            self.sender(py),
            self.r#type(),
            self.chain_id(),
            self.nonce(),
            self.gas_limit(),
            self.max_fee_per_gas(),
            self.max_priority_fee_per_gas(),
            self.cost(py)?,
            self.tx.raw.len(),
            self.intrinsic_gas(fork)?,
            self.is_low_s(),
        ))
    }

    /// Fast path of pool admission (`ophion_execution::block::admission_fast_path`). Returns the values that the pool
    /// stores of a plain transaction; None if the slow path must decide.
    #[pyo3(signature = (bounds, /))]
    fn plain_admission_values<'py>(
        &self,
        py: Python<'py>,
        bounds: &Bounds,
    ) -> Answer<Option<PlainAdmissionValues<'py>>> {
        if !bounds.data.hold(&self.tx) {
            return Ok(None);
        }
        let max_fee = self.tx.envelope.max_fee_per_gas();
        let fee = price(py, max_fee)?;
        let tip = match self.tx.envelope.max_priority_fee_per_gas() {
            Some(tip) if tip != max_fee => price(py, tip)?,
            _ => fee.clone(),
        };
        let size = self.tx.raw.len();
        let cost = self.cost(py)?;
        Ok(Some((self.hash(py), self.sender(py), self.nonce(), self.gas_limit(), fee, tip, size, cost)))
    }

    fn json<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut out = Vec::with_capacity(800);
        objects::write_transaction(&mut out, &self.tx.envelope, &self.known, None);
        PyBytes::new(py, &out)
    }

    #[pyo3(signature = (fork, /))]
    fn intrinsic_gas(&self, fork: &str) -> Answer<u64> {
        Ok(transaction_rules::intrinsic_gas(&(&self.tx.envelope).into(), Fork::parse(fork)?))
    }
}

/// Values that the pool stores of a plain transaction: hash, sender, nonce, gas limit, maximum fee and tip per gas,
/// size, cost.
type PlainAdmissionValues<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    u64,
    u64,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    usize,
    Bound<'py, PyAny>,
);

fn price(py: Python<'_>, price: u128) -> PyResult<Bound<'_, PyAny>> {
    match u64::try_from(price) {
        Ok(small) => small.into_bound_py_any(py),
        Err(_) => price.into_bound_py_any(py),
    }
}

/// Limits by which the fast path of pool admission accepts plain transactions.
#[pyclass(frozen, module = "ophion._native")]
pub struct Bounds {
    data: admission_fast_path::Bounds,
}

#[pymethods]
impl Bounds {
    #[new]
    #[pyo3(signature = (*, fork, chain_id, last_type, max_gas, base_fee, min_fee, min_price, min_tip, max_total_fee, max_init_code))]
    #[expect(clippy::too_many_arguments)]
    fn new(
        fork: &str,
        chain_id: u64,
        last_type: u8,
        max_gas: u64,
        base_fee: u128,
        min_fee: u128,
        min_price: u128,
        min_tip: u128,
        max_total_fee: Option<Wide>,
        max_init_code: Option<usize>,
    ) -> Answer<Self> {
        Ok(Bounds {
            data: admission_fast_path::Bounds {
                fork: Fork::parse(fork)?,
                chain_id,
                last_type,
                max_gas,
                base_fee,
                min_fee,
                min_price,
                min_tip,
                max_total_fee: max_total_fee.map_or(U256::MAX, |max| max.0),
                max_init_code: max_init_code.unwrap_or(usize::MAX),
            },
        })
    }
}

/// Encode lines of the pool's journal file: arrival time in milliseconds, a space, the raw transaction as hex.
#[pyfunction]
#[pyo3(signature = (transactions, arrived_ms, /))]
fn journal_lines<'py>(py: Python<'py>, transactions: Vec<Py<Transaction>>, arrived_ms: u64) -> Bound<'py, PyBytes> {
    let mut out = Vec::with_capacity(transactions.iter().map(|one| 2 * one.get().tx.raw.len() + 24).sum());
    for transaction in &transactions {
        write!(out, "{arrived_ms} ").expect("a vector takes everything");
        out.extend_from_slice(hex::encode(&transaction.get().tx.raw).as_bytes());
        out.push(b'\n');
    }
    PyBytes::new(py, &out)
}

#[pyfunction]
#[pyo3(signature = (raws, /))]
fn decode_transactions<'py>(py: Python<'py>, raws: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyList>> {
    let decoded = py.detach(|| decoder::decode_all(&raws));
    listed(py, decoded)
}

/// Convert decoding results to a list: each transaction, or its error as text.
fn listed(py: Python<'_>, decoded: impl IntoIterator<Item = Result<Decoded>>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for result in decoded {
        match result {
            Ok(Decoded { tx, known }) => list.append(Py::new(py, Transaction { tx, known })?)?,
            Err(cause) => list.append(PyString::new(py, &cause.to_string()))?,
        }
    }
    Ok(list)
}

#[pyfunction]
fn senders_recovered() -> u64 {
    sender_cache::recovered()
}

/// Queue of raw transactions for the decoding thread.
#[pyclass(frozen, module = "ophion._native")]
pub struct Decoder {
    desk: decoder::Decoder<Py<PyAny>>,
}

#[pymethods]
impl Decoder {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Decoder { desk: decoder::Decoder::new()? })
    }

    #[getter]
    fn fd(&self) -> i32 {
        self.desk.fd()
    }

    /// Submit transactions. `senders` has the addresses of the expected senders, one after the other, or no bytes.
    /// Returns whether the transactions are held until more transactions arrive.
    #[pyo3(signature = (arrival, raws, senders=None, /))]
    fn submit(&self, arrival: Py<PyAny>, raws: Vec<Raw>, senders: Option<&[u8]>) -> bool {
        let senders = senders.unwrap_or_default().chunks_exact(Address::len_bytes()).map(Address::from_slice).collect();
        self.desk.submit_with_senders(arrival, raws.into_iter().map(|raw| raw.0).collect(), senders)
    }

    fn start(&self) {
        self.desk.start();
    }

    /// Return up to `max` decoded submissions: the tags that the submitters chose, and one list of all transactions.
    #[pyo3(signature = (max, /))]
    fn collect<'py>(&self, py: Python<'py>, max: usize) -> PyResult<(Vec<Py<PyAny>>, Bound<'py, PyList>)> {
        let (arrivals, decoded): (Vec<_>, Vec<_>) = self.desk.collect(max).into_iter().unzip();
        Ok((arrivals, listed(py, decoded.into_iter().flatten())?))
    }
}

#[pyclass(frozen, module = "ophion._native")]
pub struct Withdrawal {
    pub data: WithdrawalData,
}

#[pymethods]
impl Withdrawal {
    #[new]
    fn new(index: u64, validator: u64, address: Addr, amount_gwei: u64) -> Self {
        Withdrawal {
            data: WithdrawalData { index, validator_index: validator, address: address.0, amount: amount_gwei },
        }
    }

    #[getter]
    fn index(&self) -> u64 {
        self.data.index
    }

    #[getter]
    fn validator(&self) -> u64 {
        self.data.validator_index
    }

    #[getter]
    fn address<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.data.address)
    }

    #[getter]
    fn amount_gwei(&self) -> u64 {
        self.data.amount
    }
}

pub fn withdrawals_of(given: Option<Vec<Py<Withdrawal>>>) -> Option<Vec<WithdrawalData>> {
    given.map(|list| list.iter().map(|one| one.get().data).collect())
}

/// Transaction hashes and senders of a body.
type HashesAndSenders<'py> = (Vec<Bound<'py, PyBytes>>, Vec<Bound<'py, PyBytes>>);

#[pyclass(frozen, module = "ophion._native")]
pub struct Body {
    pub data: Arc<BodyData>,
}

#[pymethods]
impl Body {
    #[staticmethod]
    fn of(
        py: Python<'_>,
        transactions: Vec<Raw>,
        ommers: Vec<Raw>,
        withdrawals: Option<Vec<Py<Withdrawal>>>,
    ) -> Answer<Self> {
        let withdrawals = withdrawals_of(withdrawals);
        let txs = py.detach(|| {
            let decode = |(index, raw): (usize, Raw)| {
                Tx::decode(raw.0).map_err(|cause| Error::decode(format_args!("transaction {index}"), cause))
            };
            transactions.into_iter().enumerate().map(decode).collect::<Result<Vec<_>>>()
        })?;
        let ommers: Vec<Bytes> = ommers.into_iter().map(|raw| raw.0).collect();
        Ok(Body { data: Arc::new(BodyData::new(txs, ommers, withdrawals)) })
    }

    #[getter]
    fn transaction_count(&self) -> usize {
        self.data.txs.len()
    }

    #[getter]
    fn transactions_root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, py.detach(|| self.data.transactions_root()))
    }

    #[getter]
    fn ommers<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.data.ommers.iter().map(|ommer| to_bytes(py, ommer)).collect()
    }

    #[getter]
    fn ommers_hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        to_bytes(py, self.data.ommers_hash())
    }

    #[getter]
    fn withdrawals(&self) -> Option<Vec<Withdrawal>> {
        self.data.withdrawals.as_ref().map(|all| all.iter().map(|one| Withdrawal { data: *one }).collect())
    }

    #[getter]
    fn withdrawals_root<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.data.withdrawals_root().map(|root| to_bytes(py, root))
    }

    #[getter]
    fn transactions(&self, py: Python<'_>) -> Answer<Vec<Transaction>> {
        let known = py.detach(|| self.data.known())?;
        let pairs = self.data.txs.iter().zip(known);
        Ok(pairs
            .map(|(tx, known)| Transaction {
                tx: Arc::new(Tx { envelope: tx.envelope.clone(), raw: tx.raw.clone() }),
                known: *known,
            })
            .collect())
    }

    #[getter]
    fn blob_gas(&self) -> u64 {
        self.data.txs.iter().map(Tx::blob_count).sum::<u64>() * alloy_eips::eip4844::DATA_GAS_PER_BLOB
    }

    /// Return the transaction hashes and the distinct senders of the body.
    fn hashes_and_senders<'py>(&self, py: Python<'py>) -> Answer<HashesAndSenders<'py>> {
        let known = py.detach(|| self.data.known())?;
        let senders: AddressSet = known.iter().map(|one| one.sender).collect();
        let hashes = known.iter().map(|one| to_bytes(py, one.hash)).collect();
        Ok((hashes, senders.into_iter().map(|sender| to_bytes(py, sender)).collect()))
    }

    fn recover(&self, py: Python<'_>) -> Answer<()> {
        py.detach(|| self.data.known())?;
        Ok(())
    }

    #[pyo3(signature = (header, /))]
    fn encode_block<'py>(&self, py: Python<'py>, header: &[u8]) -> Bound<'py, PyBytes> {
        to_bytes(py, body::encode_block(header, &self.data.encode()))
    }
}

#[pyfunction]
#[pyo3(signature = (block, start=0, end=None, /))]
fn decode_block<'py>(
    py: Python<'py>,
    block: PyBackedBytes,
    start: usize,
    end: Option<usize>,
) -> Answer<(Bound<'py, PyBytes>, Body)> {
    let range = block.get(start..end.unwrap_or(block.len())).unwrap_or(&[]);
    let (header, data) = py.detach(|| body::decode_block(range))?;
    Ok((to_bytes(py, header), Body { data: Arc::new(data) }))
}

#[pyfunction]
#[pyo3(signature = (bodies, /))]
fn recover_bodies(py: Python<'_>, bodies: Vec<Bound<'_, Body>>) {
    let all: Vec<Arc<BodyData>> = bodies.iter().map(|body| body.get().data.clone()).collect();
    py.detach(|| BodyData::recover_all(&all.iter().map(Arc::as_ref).collect::<Vec<_>>()));
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Transaction>()?;
    module.add_class::<Bounds>()?;
    module.add_function(wrap_pyfunction!(journal_lines, module)?)?;
    module.add_class::<Withdrawal>()?;
    module.add_class::<Body>()?;
    module.add_class::<Decoder>()?;
    module.add_function(wrap_pyfunction!(recover_bodies, module)?)?;
    module.add_function(wrap_pyfunction!(decode_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(senders_recovered, module)?)?;
    module.add_function(wrap_pyfunction!(decode_block, module)?)
}
