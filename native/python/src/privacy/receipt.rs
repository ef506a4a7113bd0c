//! Python binding of the receipt of a private transaction.

use alloy_primitives::{Bloom, Log};
use ophion_storage::store::PrivateReceipt;
use pyo3::prelude::*;

use crate::chain::store::{PyTopics, log_filter};
use crate::values::convert::Addr;

/// A log of a private transaction: position, address, topics and data.
type PyLog<'a> = (usize, &'a [u8], Vec<&'a [u8]>, &'a [u8]);

#[pyclass(frozen, module = "ophion._native")]
pub struct PrivateReceiptRecord {
    pub receipt: PrivateReceipt,
}

#[pymethods]
impl PrivateReceiptRecord {
    /// Status of the private transaction: 0 failed, 1 succeeded, 2 invalid.
    #[getter]
    fn status(&self) -> u8 {
        self.receipt.status as u8
    }

    #[getter]
    fn group(&self) -> &[u8] {
        self.receipt.group.as_slice()
    }

    #[getter]
    fn root(&self) -> &[u8] {
        self.receipt.root.as_slice()
    }

    #[getter]
    fn payload_key(&self) -> &[u8] {
        self.receipt.payload_key.as_slice()
    }

    #[getter]
    fn index(&self) -> u32 {
        self.receipt.index
    }

    #[getter]
    fn hash(&self) -> &[u8] {
        self.receipt.hash.as_slice()
    }

    #[getter]
    fn sender(&self) -> &[u8] {
        self.receipt.sender.as_slice()
    }

    #[getter]
    fn to(&self) -> Option<&[u8]> {
        self.receipt.to.as_ref().map(|to| to.as_slice())
    }

    #[getter]
    fn created(&self) -> Option<&[u8]> {
        self.receipt.created.as_ref().map(|created| created.as_slice())
    }

    #[getter]
    fn private_from(&self) -> &[u8] {
        &self.receipt.private_from
    }

    #[getter]
    fn private_for(&self) -> Option<Vec<&[u8]>> {
        self.receipt.private_for.as_ref().map(|keys| keys.iter().map(|key| &key[..]).collect())
    }

    #[getter]
    fn output(&self) -> &[u8] {
        &self.receipt.output
    }

    #[getter]
    fn revert_data(&self) -> &[u8] {
        &self.receipt.revert_data
    }

    #[getter]
    fn reason(&self) -> &str {
        &self.receipt.reason
    }

    #[getter]
    fn log_count(&self) -> usize {
        self.receipt.logs.len()
    }

    /// Return up to `most` matching logs from position `start` on, each with its position.
    #[pyo3(signature = (addresses, topics, start, most, /))]
    fn matching(&self, addresses: Vec<Addr>, topics: PyTopics, start: usize, most: usize) -> Vec<PyLog<'_>> {
        let filter = log_filter(addresses, topics);
        let logs = self.receipt.logs.iter().enumerate().skip(start);
        logs.filter(|(_, log)| filter.matches(log)).take(most).map(log_row).collect()
    }

    #[getter]
    fn logs_bloom(&self) -> [u8; 256] {
        let mut bloom = Bloom::ZERO;
        self.receipt.logs.iter().for_each(|log| bloom.accrue_log(log));
        bloom.0.0
    }
}

fn log_row((position, log): (usize, &Log)) -> PyLog<'_> {
    let topics = log.data.topics().iter().map(|topic| topic.as_slice()).collect();
    (position, log.address.as_slice(), topics, &log.data.data)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PrivateReceiptRecord>()
}
