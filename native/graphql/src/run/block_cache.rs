//! Block cache of one request. Transactions, receipts and ommers of a block are read only when a field needs them.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::rc::Rc;

use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{B256, Bytes, U256, keccak256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::{self, BodyData, Known, Tx};
use ophion_storage::chain::receipts::ReceiptData;
use ophion_storage::store::{Snapshot, decode_header};

pub struct Loaded<'a> {
    pub hash: B256,
    pub header: Header,
    pub rlp: Cow<'a, [u8]>,
    pub total_difficulty: U256,
    pub is_ommer: bool,
    snapshot: &'a Snapshot,
    record: OnceCell<(Vec<Known>, &'a [u8])>,
    body: OnceCell<BodyData>,
    rest: OnceCell<(Vec<Bytes>, Option<Vec<Withdrawal>>)>,
    receipts: OnceCell<Receipts>,
    alone: RefCell<HashMap<usize, Rc<Tx>>>,
}

/// Receipts of a block, with the number of logs before each receipt.
pub struct Receipts {
    pub all: Vec<ReceiptData>,
    pub logs_before: Vec<usize>,
}

/// Position of a log in its transaction and in its block.
#[derive(Clone, Copy)]
pub struct LogPlace {
    pub transaction: usize,
    /// Index of the log among the logs of its transaction.
    pub inner: usize,
    /// Index of the log among the logs of its block.
    pub index: usize,
}

/// A decoded transaction: one of a completely decoded block, or one that was decoded alone.
pub enum Decoded<'t> {
    Shared(&'t Tx),
    Alone(Rc<Tx>),
}

impl Deref for Decoded<'_> {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        match self {
            Decoded::Shared(tx) => tx,
            Decoded::Alone(tx) => tx,
        }
    }
}

fn kept<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}

impl<'a> Loaded<'a> {
    pub fn read(snapshot: &'a Snapshot, hash: B256) -> Result<Option<Self>> {
        let Some((_, total, rlp)) = snapshot.header(&hash)? else { return Ok(None) };
        Ok(Some(Self::new(snapshot, hash, decode_header(rlp)?, Cow::Borrowed(rlp), total, false)))
    }

    pub fn ommer(snapshot: &'a Snapshot, rlp: &Bytes) -> Result<Self> {
        let header = decode_header(rlp)?;
        Ok(Self::new(snapshot, keccak256(rlp), header, Cow::Owned(rlp.to_vec()), U256::ZERO, true))
    }

    fn new(snapshot: &'a Snapshot, hash: B256, header: Header, rlp: Cow<'a, [u8]>, total: U256, ommer: bool) -> Self {
        Loaded {
            hash,
            header,
            rlp,
            total_difficulty: total,
            is_ommer: ommer,
            snapshot,
            record: OnceCell::new(),
            body: OnceCell::new(),
            rest: OnceCell::new(),
            receipts: OnceCell::new(),
            alone: RefCell::default(),
        }
    }

    fn incomplete(&self) -> Error {
        Error::damaged(format!("block {} is incomplete", self.hash))
    }

    fn record(&self) -> Result<&(Vec<Known>, &'a [u8])> {
        kept(&self.record, || {
            if self.is_ommer {
                return Ok((Vec::new(), &[0xc0, 0xc0]));
            }
            self.snapshot.stored_body(&self.hash)?.ok_or_else(|| self.incomplete())
        })
    }

    /// Return hash and sender of each transaction of the block; empty for an ommer.
    pub fn known(&self) -> Result<&[Known]> {
        Ok(&self.record()?.0)
    }

    /// Return the RLP of the block after the header.
    pub fn payload(&self) -> Result<&'a [u8]> {
        Ok(self.record()?.1)
    }

    fn body(&self) -> Result<&BodyData> {
        kept(&self.body, || body::decode_body(self.payload()?))
    }

    /// Return a transaction of the block. `alone` means that the request needs no other transaction of the block.
    pub fn transaction(&self, index: usize, alone: bool) -> Result<Decoded<'_>> {
        if !alone || self.body.get().is_some() {
            return self.body()?.txs.get(index).map(Decoded::Shared).ok_or_else(|| self.incomplete());
        }
        if let Some(tx) = self.alone.borrow().get(&index) {
            return Ok(Decoded::Alone(tx.clone()));
        }
        let found = body::decode_transaction_at(self.payload()?, index)?;
        let tx = Rc::new(found.ok_or_else(|| self.incomplete())?);
        self.alone.borrow_mut().insert(index, tx.clone());
        Ok(Decoded::Alone(tx))
    }

    fn rest(&self) -> Result<&(Vec<Bytes>, Option<Vec<Withdrawal>>)> {
        kept(&self.rest, || body::decode_rest(self.payload()?))
    }

    /// Return the header RLP of each ommer.
    pub fn ommers(&self) -> Result<&[Bytes]> {
        Ok(&self.rest()?.0)
    }

    pub fn withdrawals(&self) -> Result<Option<&[Withdrawal]>> {
        Ok(self.rest()?.1.as_deref())
    }

    pub fn receipts(&self) -> Result<&Receipts> {
        kept(&self.receipts, || {
            let all = if self.is_ommer { Some(Vec::new()) } else { self.snapshot.receipts(&self.hash)? };
            let all = all.ok_or_else(|| self.incomplete())?;
            let mut logs = 0;
            let before = |receipt: &ReceiptData| {
                let so_far = logs;
                logs += receipt.logs.len();
                so_far
            };
            let logs_before = all.iter().map(before).collect();
            Ok(Receipts { all, logs_before })
        })
    }

    pub fn receipt(&self, index: usize) -> Result<&ReceiptData> {
        self.receipts()?.all.get(index).ok_or_else(|| self.incomplete())
    }
}

/// The last blocks that the request has read, cached because neighbouring blocks refer to each other. At most
/// `MAX_BLOCKS` blocks stay, so that a long range of blocks uses little memory.
#[derive(Default)]
pub struct RecentBlocks<'a> {
    known: HashMap<B256, Rc<Loaded<'a>>>,
    order: VecDeque<B256>,
}

impl<'a> RecentBlocks<'a> {
    const MAX_BLOCKS: usize = 16;

    pub fn get(&self, hash: &B256) -> Option<Rc<Loaded<'a>>> {
        self.known.get(hash).cloned()
    }

    pub fn insert(&mut self, block: Rc<Loaded<'a>>) {
        if self.order.len() >= Self::MAX_BLOCKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(block.hash);
        self.known.insert(block.hash, block);
    }
}
