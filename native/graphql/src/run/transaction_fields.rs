//! Writes the fields of transactions, in a block or in the pool.

use std::rc::Rc;

use alloy_consensus::transaction::Transaction as _;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::{TxKind, U256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::body::{Known, Tx};
use ophion_storage::chain::receipts::{Outcome, ReceiptData};

use super::block_cache::{Decoded, Loaded, LogPlace};
use super::plan_execution::{Run, Stop, Written};
use super::run_inputs::Pooled;
use crate::document::fields::Field;
use crate::document::plan::Node;

pub struct Transaction<'t, 'a> {
    known: Known,
    place: Place<'t, 'a>,
}

enum Place<'t, 'a> {
    /// A transaction of a block. `alone` means that the request shows no other transaction of the block.
    Block {
        block: &'t Rc<Loaded<'a>>,
        index: usize,
        alone: bool,
    },
    Pool(&'t Tx),
}

impl<'t, 'a> Transaction<'t, 'a> {
    pub fn mined(block: &'t Rc<Loaded<'a>>, index: usize, alone: bool) -> Result<Self> {
        let known = block.known()?.get(index);
        let known = *known.ok_or_else(|| Error::damaged(format!("block {} has too few transactions", block.hash)))?;
        Ok(Transaction { known, place: Place::Block { block, index, alone } })
    }

    pub fn pooled(pooled: &'t Pooled) -> Self {
        Transaction { known: pooled.known, place: Place::Pool(&pooled.tx) }
    }

    fn decoded(&self) -> Result<Decoded<'t>> {
        match self.place {
            Place::Block { block, index, alone } => block.transaction(index, alone),
            Place::Pool(tx) => Ok(Decoded::Shared(tx)),
        }
    }

    fn block(&self) -> Option<&'t Rc<Loaded<'a>>> {
        match self.place {
            Place::Block { block, .. } => Some(block),
            Place::Pool(_) => None,
        }
    }

    fn receipt(&self) -> Result<Option<&'t ReceiptData>> {
        match self.place {
            Place::Block { block, index, .. } => block.receipt(index).map(Some),
            Place::Pool(_) => Ok(None),
        }
    }

    fn gas_used(&self) -> Result<Option<u64>> {
        let Place::Block { block, index, .. } = self.place else { return Ok(None) };
        let before = if index == 0 { 0 } else { block.receipt(index - 1)?.cumulative_gas };
        Ok(Some(block.receipt(index)?.cumulative_gas.saturating_sub(before)))
    }

    fn base_fee(&self) -> Option<u64> {
        self.block().and_then(|block| block.header.base_fee_per_gas)
    }
}

impl<'a> Run<'a> {
    pub fn transaction_object(&mut self, nodes: &'a [Node], tx: &Transaction<'_, 'a>) -> Written {
        self.object(nodes, |run, node| run.transaction_field(node, tx))
    }

    fn transaction_field(&mut self, node: &'a Node, tx: &Transaction<'_, 'a>) -> Written {
        match node.field {
            Field::TxHash => self.bytes(tx.known.hash),
            Field::TxIndex => self.integer_or_null(match tx.place {
                Place::Block { index, .. } => Some(index as u64),
                Place::Pool(_) => None,
            }),
            Field::TxFrom => {
                let account = self.account_at(node, tx.known.sender, tx.block())?;
                self.account_object(node, &account)
            }
            Field::TxBlock => match tx.block() {
                Some(block) => self.inside(node, |run| run.block_object(&node.children, block)),
                None => self.nothing(),
            },
            Field::TxStatus
            | Field::TxGasUsed
            | Field::TxCumulativeGas
            | Field::TxLogs
            | Field::TxRawReceipt
            | Field::TxRevertReason => self.receipt_field(node, tx),
            Field::TxR | Field::TxS | Field::TxV | Field::TxParity => self.signature_field(node, tx),
            Field::TxMaxBlobFee | Field::TxBlobGasUsed | Field::TxBlobGasPrice | Field::TxBlobHashes => {
                self.blob_field(node, tx)
            }
            _ => self.content_field(node, tx),
        }
    }

    fn content_field(&mut self, node: &'a Node, tx: &Transaction<'_, 'a>) -> Written {
        let decoded = tx.decoded()?;
        let envelope = &decoded.envelope;
        match node.field {
            Field::TxNonce => self.integer(envelope.nonce()),
            Field::TxValue => self.big(envelope.value()),
            Field::TxGas => self.integer(envelope.gas_limit()),
            Field::TxInput => self.bytes(envelope.input()),
            Field::TxType => self.integer(envelope.tx_type() as u64),
            Field::TxRaw => self.bytes(&decoded.raw),
            Field::TxGasPrice => self.big(U256::from(envelope.effective_gas_price(tx.base_fee()))),
            Field::TxEffectivePrice if tx.block().is_none() => self.nothing(),
            Field::TxEffectivePrice => self.big(U256::from(envelope.effective_gas_price(tx.base_fee()))),
            Field::TxEffectiveTip if tx.block().is_none() => self.nothing(),
            Field::TxEffectiveTip => {
                let price = envelope.effective_gas_price(tx.base_fee());
                self.big(U256::from(price.saturating_sub(u128::from(tx.base_fee().unwrap_or(0)))))
            }
            Field::TxMaxFee => {
                let fee = envelope.is_dynamic_fee().then(|| U256::from(envelope.max_fee_per_gas()));
                self.big_or_null(fee)
            }
            Field::TxMaxPriorityFee => self.big_or_null(envelope.max_priority_fee_per_gas().map(U256::from)),
            Field::TxTo => match envelope.kind() {
                TxKind::Call(to) => {
                    let account = self.account_at(node, to, tx.block())?;
                    self.account_object(node, &account)
                }
                TxKind::Create => self.nothing(),
            },
            Field::TxCreatedContract => match (envelope.kind(), tx.block()) {
                (TxKind::Create, Some(block)) => {
                    let created = tx.known.sender.create(envelope.nonce());
                    let account = self.account_at(node, created, Some(block))?;
                    self.account_object(node, &account)
                }
                _ => self.nothing(),
            },
            _ => {
                let entries = envelope.access_list().map_or(&[][..], |list| &list.0);
                self.list(node, entries, |run, entry| {
                    run.object(&node.children, |run, node| match node.field {
                        Field::AccessAddress => run.bytes(entry.address),
                        _ => run.hashes(&entry.storage_keys),
                    })
                })
            }
        }
    }

    fn receipt_field(&mut self, node: &'a Node, tx: &Transaction<'_, 'a>) -> Written {
        let Some(receipt) = tx.receipt()? else {
            return if node.field == Field::TxRawReceipt { self.bytes([]) } else { self.nothing() };
        };
        match node.field {
            Field::TxStatus => self.integer_or_null(match receipt.outcome {
                Outcome::Succeeded => Some(1),
                Outcome::Failed => Some(0),
                Outcome::Root(_) => None,
            }),
            Field::TxGasUsed => {
                let used = tx.gas_used()?;
                self.integer_or_null(used)
            }
            Field::TxCumulativeGas => self.integer(receipt.cumulative_gas),
            Field::TxRawReceipt => self.bytes(receipt.encoded()),
            Field::TxRevertReason if receipt.revert_data.is_empty() => self.nothing(),
            Field::TxRevertReason => self.bytes(&receipt.revert_data),
            _ => {
                let Place::Block { block, index, .. } = tx.place else { return Err(Stop::Null) };
                let before = block.receipts()?.logs_before[index];
                self.list(node, 0..receipt.logs.len(), |run, inner| {
                    let at = LogPlace { transaction: index, inner, index: before + inner };
                    run.log_object(&node.children, block, at)
                })
            }
        }
    }

    /// Write a signature field. `v` of a legacy transaction includes the chain id (EIP-155); `v` of other types is the
    /// parity.
    fn signature_field(&mut self, node: &'a Node, tx: &Transaction<'_, 'a>) -> Written {
        let decoded = tx.decoded()?;
        let envelope = &decoded.envelope;
        let signature = envelope.signature();
        let parity = u64::from(signature.v());
        match node.field {
            Field::TxR => self.big(signature.r()),
            Field::TxS => self.big(signature.s()),
            Field::TxParity if envelope.is_legacy() => self.nothing(),
            Field::TxParity => self.big(U256::from(parity)),
            _ if envelope.is_eip4844() => self.nothing(),
            _ => self.big(match (envelope.is_legacy(), envelope.chain_id()) {
                (true, Some(chain_id)) => U256::from(u128::from(chain_id) * 2 + 35 + u128::from(parity)),
                (true, None) => U256::from(27 + parity),
                (false, _) => U256::from(parity),
            }),
        }
    }

    fn blob_field(&mut self, node: &'a Node, tx: &Transaction<'_, 'a>) -> Written {
        let decoded = tx.decoded()?;
        let Some(hashes) = decoded.envelope.blob_versioned_hashes() else { return self.nothing() };
        match (node.field, tx.block()) {
            (Field::TxMaxBlobFee, _) => self.big_or_null(decoded.envelope.max_fee_per_blob_gas().map(U256::from)),
            (Field::TxBlobHashes, _) => self.hashes(hashes),
            (_, None) => self.nothing(),
            (Field::TxBlobGasUsed, _) => self.integer(hashes.len() as u64 * DATA_GAS_PER_BLOB),
            (_, Some(block)) => {
                let price = self.snapshot.blob_price(&block.hash)?;
                self.big(U256::from(price.unwrap_or_default()))
            }
        }
    }
}
