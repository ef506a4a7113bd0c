//! Receipts: contents, hashing, storage format.
//!
//! Each block has one record; numbers in parentheses are sizes in bytes. A receipt has a type (1), an outcome (0
//! failed, 1 succeeded, 2 followed by a 32-byte state root), cumulative gas (varint), revert data (length, bytes) and a
//! number of logs (varint). A log has an address (20), a number of topics (1), topics (32 each) and data (length,
//! bytes). Blooms are recomputed on demand.

use alloy_consensus::{Eip658Value, Receipt, ReceiptEnvelope, ReceiptWithBloom, TxType};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, B256, Bloom, BloomInput, Bytes, Log, LogData};
use ophion_primitives::bytes::{Reader, put_bytes, put_varint};
use ophion_primitives::errors::{Error, Result};

use crate::chain::ordered_root::OrderedRoot;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Failed,
    Succeeded,
    /// State root after the transaction, in a receipt before Byzantium.
    Root(B256),
}

#[derive(Clone)]
pub struct ReceiptData {
    pub tx_type: u8,
    pub outcome: Outcome,
    pub cumulative_gas: u64,
    pub logs: Vec<Log>,
    /// Output of a reverted transaction, if the node stores it.
    pub revert_data: Bytes,
}

impl ReceiptData {
    pub fn bloom(&self) -> Bloom {
        let mut bloom = Bloom::ZERO;
        self.logs.iter().for_each(|log| add_log(&mut bloom, log));
        bloom
    }

    /// Return the EIP-2718 encoding of the receipt, including the bloom.
    pub fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(self.bloom(), &mut out);
        out
    }

    /// Append the EIP-2718 encoding for the receipts root.
    pub fn encode(&self, bloom: Bloom, out: &mut Vec<u8>) {
        let status = match self.outcome {
            Outcome::Failed => Eip658Value::Eip658(false),
            Outcome::Succeeded => Eip658Value::Eip658(true),
            Outcome::Root(root) => Eip658Value::PostState(root),
        };
        let receipt = Receipt { status, cumulative_gas_used: self.cumulative_gas, logs: self.logs.clone() };
        let with_bloom = ReceiptWithBloom::new(receipt, bloom);
        let envelope = match TxType::try_from(self.tx_type).unwrap_or(TxType::Legacy) {
            TxType::Legacy => ReceiptEnvelope::Legacy(with_bloom),
            TxType::Eip2930 => ReceiptEnvelope::Eip2930(with_bloom),
            TxType::Eip1559 => ReceiptEnvelope::Eip1559(with_bloom),
            TxType::Eip4844 => ReceiptEnvelope::Eip4844(with_bloom),
            TxType::Eip7702 => ReceiptEnvelope::Eip7702(with_bloom),
        };
        envelope.encode_2718(out);
    }
}

fn add_log(bloom: &mut Bloom, log: &Log) {
    bloom.accrue(BloomInput::Raw(log.address.as_slice()));
    for topic in log.data.topics() {
        bloom.accrue(BloomInput::Raw(topic.as_slice()));
    }
}

/// Collects the receipts of a block, and computes their root and their bloom incrementally.
#[derive(Default)]
pub struct Receipts {
    all: Vec<ReceiptData>,
    root: OrderedRoot,
    bloom: Bloom,
    buffer: Vec<u8>,
}

impl Receipts {
    pub fn push(&mut self, receipt: ReceiptData) {
        self.count(&receipt);
        self.all.push(receipt);
    }

    fn count(&mut self, receipt: &ReceiptData) {
        let bloom = receipt.bloom();
        self.buffer.clear();
        receipt.encode(bloom, &mut self.buffer);
        self.root.push(&self.buffer);
        self.bloom |= bloom;
    }

    pub fn all(&self) -> &[ReceiptData] {
        &self.all
    }

    /// Return the receipts, the receipts root and the block bloom.
    pub fn finish(self) -> (Vec<ReceiptData>, B256, Bloom) {
        (self.all, self.root.finish(), self.bloom)
    }
}

/// Return the root of the receipts of a block.
pub fn root(receipts: &[ReceiptData]) -> B256 {
    let mut counted = Receipts::default();
    receipts.iter().for_each(|receipt| counted.count(receipt));
    counted.root.finish()
}

pub fn store(receipts: &[ReceiptData]) -> Vec<u8> {
    let mut out = Vec::with_capacity(receipts.len() * 64);
    for receipt in receipts {
        out.push(receipt.tx_type);
        match receipt.outcome {
            Outcome::Failed => out.push(0),
            Outcome::Succeeded => out.push(1),
            Outcome::Root(root) => {
                out.push(2);
                out.extend_from_slice(root.as_slice());
            }
        }
        put_varint(receipt.cumulative_gas, &mut out);
        put_bytes(&receipt.revert_data, &mut out);
        put_logs(&receipt.logs, &mut out);
    }
    out
}

pub fn put_logs(logs: &[Log], out: &mut Vec<u8>) {
    put_varint(logs.len() as u64, out);
    for log in logs {
        out.extend_from_slice(log.address.as_slice());
        out.push(log.data.topics().len() as u8);
        log.data.topics().iter().for_each(|topic| out.extend_from_slice(topic.as_slice()));
        put_bytes(&log.data.data, out);
    }
}

pub fn read_logs(reader: &mut Reader<'_>) -> Result<Vec<Log>> {
    let count = reader.varint()?;
    let one = |_| {
        let address = Address::from_slice(reader.take(20)?);
        let topics = (0..reader.byte()?).map(|_| Ok(B256::from_slice(reader.take(32)?))).collect::<Result<Vec<_>>>()?;
        let data = Bytes::copy_from_slice(reader.bytes()?);
        let data = LogData::new(topics, data).ok_or_else(|| Error::damaged("a log has too many topics"))?;
        Ok(Log { address, data })
    };
    (0..count).map(one).collect()
}

pub fn restore(bytes: &[u8]) -> Result<Vec<ReceiptData>> {
    let mut reader = Reader(bytes);
    let mut receipts = Vec::new();
    while !reader.0.is_empty() {
        receipts.push(read(&mut reader)?);
    }
    Ok(receipts)
}

/// One receipt of a block, with the cumulative gas and the number of logs of the receipts before it.
pub struct ReceiptInBlock {
    pub receipt: ReceiptData,
    pub gas_before: u64,
    pub logs_before: u64,
}

/// Decode one receipt of a stored record. Returns None if the index is out of range, and an error if the receipt
/// exceeds `max_bytes`.
pub fn decode_receipt_at(bytes: &[u8], index: usize, max_bytes: usize) -> Result<Option<ReceiptInBlock>> {
    let mut reader = Reader(bytes);
    let (mut gas_before, mut logs_before) = (0, 0);
    for _ in 0..index {
        if reader.0.is_empty() {
            return Ok(None);
        }
        let (cumulative_gas, logs) = pass(&mut reader)?;
        gas_before = cumulative_gas;
        logs_before += logs;
    }
    if reader.0.is_empty() {
        return Ok(None);
    }
    let mut after = Reader(reader.0);
    pass(&mut after)?;
    if reader.0.len() - after.0.len() > max_bytes {
        return Err(Error::Storage(format!("limit: the receipt takes more than {max_bytes} bytes")));
    }
    Ok(Some(ReceiptInBlock { receipt: read(&mut reader)?, gas_before, logs_before }))
}

/// A receipt of a record without its logs.
pub struct ReceiptHead<'a> {
    /// Whether the transaction succeeded; None before Byzantium.
    pub has_succeeded: Option<bool>,
    pub cumulative_gas: u64,
    pub revert_data: &'a [u8],
    pub logs: u64,
}

/// A log of a stored receipts record. The log borrows the bytes of the record.
pub struct StoredLog<'a> {
    /// Index of the transaction in the block.
    pub transaction: usize,
    /// Index of the log in the block.
    pub index: u64,
    pub address: &'a [u8],
    /// The topics of the log, 32 bytes each.
    pub topics: &'a [u8],
    pub data: &'a [u8],
}

fn read_head<'a>(reader: &mut Reader<'a>) -> Result<ReceiptHead<'a>> {
    let has_succeeded = match reader.take(2)?[1] {
        0 => Some(false),
        1 => Some(true),
        2 => {
            reader.take(32)?;
            None
        }
        other => return Err(unknown_outcome(other)),
    };
    let cumulative_gas = reader.varint()?;
    let revert_data = reader.bytes()?;
    Ok(ReceiptHead { has_succeeded, cumulative_gas, revert_data, logs: reader.varint()? })
}

fn read_log<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], &'a [u8], &'a [u8])> {
    let address = reader.take(20)?;
    let topics = usize::from(reader.byte()?);
    Ok((address, reader.take(topics * 32)?, reader.bytes()?))
}

/// Visit the receipts of a stored record without their logs.
pub fn visit_heads<'a>(bytes: &'a [u8], mut see: impl FnMut(ReceiptHead<'a>)) -> Result<()> {
    let mut reader = Reader(bytes);
    while !reader.0.is_empty() {
        let head = read_head(&mut reader)?;
        for _ in 0..head.logs {
            read_log(&mut reader)?;
        }
        see(head);
    }
    Ok(())
}

/// Visit the logs of a stored receipts record.
pub fn visit_logs<'a>(bytes: &'a [u8], mut see: impl FnMut(StoredLog<'a>)) -> Result<()> {
    let mut reader = Reader(bytes);
    let (mut transaction, mut index) = (0, 0);
    while !reader.0.is_empty() {
        for _ in 0..read_head(&mut reader)?.logs {
            let (address, topics, data) = read_log(&mut reader)?;
            see(StoredLog { transaction, index, address, topics, data });
            index += 1;
        }
        transaction += 1;
    }
    Ok(())
}

fn read(reader: &mut Reader<'_>) -> Result<ReceiptData> {
    let tx_type = reader.byte()?;
    let outcome = match reader.byte()? {
        0 => Outcome::Failed,
        1 => Outcome::Succeeded,
        2 => Outcome::Root(B256::from_slice(reader.take(32)?)),
        other => return Err(unknown_outcome(other)),
    };
    let cumulative_gas = reader.varint()?;
    let revert_data = Bytes::copy_from_slice(reader.bytes()?);
    Ok(ReceiptData { tx_type, outcome, cumulative_gas, logs: read_logs(reader)?, revert_data })
}

/// Skip a receipt. Returns the cumulative gas and the number of logs of the receipt.
fn pass(reader: &mut Reader<'_>) -> Result<(u64, u64)> {
    let head = read_head(reader)?;
    for _ in 0..head.logs {
        read_log(reader)?;
    }
    Ok((head.cumulative_gas, head.logs))
}

fn unknown_outcome(byte: u8) -> Error {
    Error::damaged(format!("unknown outcome {byte} of a receipt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(number: u64) -> ReceiptData {
        let log = |topics: u64| Log {
            address: Address::left_padding_from(&number.to_be_bytes()),
            data: LogData::new_unchecked(
                (0..topics).map(|topic| B256::left_padding_from(&topic.to_be_bytes())).collect(),
                vec![7; number as usize].into(),
            ),
        };
        ReceiptData {
            tx_type: (number % 3) as u8,
            outcome: match number % 3 {
                0 => Outcome::Failed,
                1 => Outcome::Succeeded,
                _ => Outcome::Root(B256::repeat_byte(number as u8)),
            },
            cumulative_gas: (number + 1) * 21_000,
            logs: (0..number % 5).map(log).collect(),
            revert_data: vec![1; (number % 4) as usize].into(),
        }
    }

    #[test]
    fn one_receipt_is_what_it_is_among_all() {
        let all: Vec<ReceiptData> = (0..40).map(receipt).collect();
        let record = store(&all);
        let restored = restore(&record).unwrap();
        let (mut gas, mut logs) = (0, 0);
        for (index, one) in restored.iter().enumerate() {
            let found = decode_receipt_at(&record, index, usize::MAX).unwrap().unwrap();
            assert_eq!((found.gas_before, found.logs_before), (gas, logs));
            assert_eq!(store(&[found.receipt]), store(std::slice::from_ref(one)));
            assert_eq!(store(std::slice::from_ref(one)), store(&all[index..=index]));
            gas = one.cumulative_gas;
            logs += one.logs.len() as u64;
        }
        assert!(decode_receipt_at(&record, 40, usize::MAX).unwrap().is_none());
        assert!(decode_receipt_at(&record, 1000, usize::MAX).unwrap().is_none());
        assert!(decode_receipt_at(&[], 0, usize::MAX).unwrap().is_none());
    }

    #[test]
    fn visited_parts_are_those_of_restored_receipts() {
        let all: Vec<ReceiptData> = (0..40).map(receipt).collect();
        let record = store(&all);
        let mut at = 0;
        let heads = |head: ReceiptHead<'_>| {
            let one = &all[at];
            let succeeded = match one.outcome {
                Outcome::Failed => Some(false),
                Outcome::Succeeded => Some(true),
                Outcome::Root(_) => None,
            };
            assert_eq!((head.has_succeeded, head.cumulative_gas), (succeeded, one.cumulative_gas));
            assert_eq!((head.revert_data, head.logs), (&one.revert_data[..], one.logs.len() as u64));
            at += 1;
        };
        visit_heads(&record, heads).unwrap();
        assert_eq!(at, all.len());
        let expected: Vec<(usize, &Log)> =
            all.iter().enumerate().flat_map(|(at, one)| one.logs.iter().map(move |log| (at, log))).collect();
        let mut seen = 0;
        visit_logs(&record, |log| {
            let (transaction, one) = expected[seen];
            let topics: Vec<u8> = one.data.topics().iter().flat_map(|topic| topic.0).collect();
            assert_eq!((log.transaction, log.index, log.address), (transaction, seen as u64, one.address.as_slice()));
            assert_eq!((log.topics, log.data), (&topics[..], &one.data.data[..]));
            seen += 1;
        })
        .unwrap();
        assert_eq!(seen, expected.len());
        for cut in 1..record.len() {
            let _ = visit_logs(&record[..cut], |_| ());
            let _ = visit_heads(&record[..cut], |_| ());
        }
    }

    #[test]
    fn a_receipt_that_is_too_long_or_cut_off_is_refused() {
        let record = store(&[receipt(3), receipt(4)]);
        let length = store(&[receipt(4)]).len();
        assert!(decode_receipt_at(&record, 1, length).unwrap().is_some());
        let refused = decode_receipt_at(&record, 1, length - 1).err().expect("it is too long");
        assert!(refused.to_string().starts_with("limit: "), "{refused}");
        for cut in 0..record.len() {
            assert!(!matches!(decode_receipt_at(&record[..cut], 1, usize::MAX), Ok(Some(_))));
        }
    }
}
