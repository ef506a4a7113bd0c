//! Writes the fields of blocks and withdrawals.

use std::rc::Rc;

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::U256;
use ophion_storage::chain::body::encode_block;

use super::account_fields::Account;
use super::block_cache::Loaded;
use super::log_fields::log_filter;
use super::plan_execution::{INVALID_PARAMS, Run, Stop, Written, cost};
use super::transaction_fields::Transaction;
use crate::document::fields::Field;
use crate::document::plan::Node;
use crate::values::value::Value;

impl<'a> Run<'a> {
    pub fn block_object(&mut self, nodes: &'a [Node], block: &Rc<Loaded<'a>>) -> Written {
        self.object(nodes, |run, node| run.block_field(node, block))
    }

    fn block_field(&mut self, node: &'a Node, block: &Rc<Loaded<'a>>) -> Written {
        let header = &block.header;
        match node.field {
            Field::BlockNumber => self.integer(header.number),
            Field::BlockHash => self.bytes(block.hash),
            Field::BlockNonce => self.bytes(header.nonce),
            Field::BlockTransactionsRoot => self.bytes(header.transactions_root),
            Field::BlockStateRoot => self.bytes(header.state_root),
            Field::BlockReceiptsRoot => self.bytes(header.receipts_root),
            Field::BlockExtraData => self.bytes(&header.extra_data),
            Field::BlockGasLimit => self.integer(header.gas_limit),
            Field::BlockGasUsed => self.integer(header.gas_used),
            Field::BlockBaseFee => self.big_or_null(header.base_fee_per_gas.map(U256::from)),
            Field::BlockTimestamp => self.big(U256::from(header.timestamp)),
            Field::BlockLogsBloom => self.bytes(header.logs_bloom),
            Field::BlockMixHash => self.bytes(header.mix_hash),
            Field::BlockDifficulty => self.big(header.difficulty),
            Field::BlockTotalDifficulty => self.big(block.total_difficulty),
            Field::BlockOmmerHash => self.bytes(header.ommers_hash),
            Field::BlockRawHeader => self.bytes(&block.rlp),
            Field::BlockBlobGasUsed => self.integer_or_null(header.blob_gas_used),
            Field::BlockExcessBlobGas => self.integer_or_null(header.excess_blob_gas),
            Field::BlockTransactionCount => self.integer(block.known()?.len() as u64),
            Field::BlockWithdrawalsRoot => match header.withdrawals_root {
                Some(root) => self.bytes(root),
                None => self.nothing(),
            },
            _ => self.block_relation(node, block),
        }
    }

    /// Write a field of a block whose value is another object.
    fn block_relation(&mut self, node: &'a Node, block: &Rc<Loaded<'a>>) -> Written {
        match node.field {
            Field::BlockParent => self.parent(node, block),
            Field::BlockMiner => {
                let account = self.account_at(node, block.header.beneficiary, Some(block))?;
                self.account_object(node, &account)
            }
            Field::BlockNextBaseFee => {
                let fee = self.next_base_fee(block)?;
                self.big_or_null(fee.map(U256::from))
            }
            Field::BlockOmmerCount if block.is_ommer => self.nothing(),
            Field::BlockOmmerCount => self.integer(block.ommers()?.len() as u64),
            Field::BlockOmmers => self.list(node, block.ommers()?, |run, rlp| {
                run.spend(cost::BLOCK)?;
                let ommer = Rc::new(Loaded::ommer(run.snapshot, rlp)?);
                run.block_object(&node.children, &ommer)
            }),
            Field::BlockOmmerAt => match block.ommers()?.get(self.position(node).unwrap_or(usize::MAX)) {
                Some(rlp) => {
                    let ommer = Rc::new(Loaded::ommer(self.snapshot, rlp)?);
                    self.inside(node, |run| run.block_object(&node.children, &ommer))
                }
                None => self.nothing(),
            },
            Field::BlockTransactions => {
                let count = block.known()?.len();
                self.list(node, 0..count, |run, index| {
                    run.spend(cost::TRANSACTION)?;
                    run.transaction_object(&node.children, &Transaction::mined(block, index, false)?)
                })
            }
            Field::BlockTransactionAt => {
                let count = block.known()?.len();
                match self.position(node).filter(|at| *at < count) {
                    Some(at) => {
                        self.spend(cost::TRANSACTION)?;
                        let transaction = Transaction::mined(block, at, true)?;
                        self.inside(node, |run| run.transaction_object(&node.children, &transaction))
                    }
                    None => self.nothing(),
                }
            }
            Field::BlockLogs => {
                let Value::Filter(filter) = self.argument(node, 0) else {
                    return Err(self.fail_with(node, INVALID_PARAMS));
                };
                let mut found = Vec::new();
                self.matching_logs(block, &log_filter(filter), &mut found)?;
                self.list(node, found, |run, (block, at)| run.log_object(&node.children, &block, at))
            }
            Field::BlockAccount => {
                let Value::Address(address) = *self.argument(node, 0) else {
                    return Err(self.fail_with(node, INVALID_PARAMS));
                };
                let block = self.with_state(block)?;
                self.account_object(node, &Account { address, block })
            }
            Field::BlockCall => {
                let block = self.with_state(block)?;
                self.call(node, Some(block.hash))
            }
            Field::BlockEstimateGas => {
                let block = self.with_state(block)?;
                self.estimate(node, Some(block.hash))
            }
            Field::BlockRaw if block.is_ommer => self.bytes([]),
            Field::BlockRaw => self.bytes(encode_block(&block.rlp, block.payload()?)),
            _ => match block.withdrawals()? {
                Some(withdrawals) => {
                    self.list(node, withdrawals, |run, one| run.withdrawal_object(&node.children, one))
                }
                None => self.nothing(),
            },
        }
    }

    pub fn nothing(&mut self) -> Written {
        self.null();
        Ok(())
    }

    /// Return the index argument of a list field; None for a negative index, which is out of range.
    fn position(&self, node: &Node) -> Option<usize> {
        match self.argument(node, 0) {
            Value::Int(position) => usize::try_from(*position).ok(),
            _ => None,
        }
    }

    fn parent(&mut self, node: &'a Node, block: &Rc<Loaded<'a>>) -> Written {
        let parent = if block.header.number == 0 { None } else { self.block(block.header.parent_hash)? };
        match parent {
            Some(parent) => self.inside(node, |run| run.block_object(&node.children, &parent)),
            None => self.nothing(),
        }
    }

    /// Return the base fee of the block after `block`. The value comes from the stored next block. If `block` is the
    /// head, the node predicts the value. None before London and for blocks that are not canonical.
    fn next_base_fee(&mut self, block: &Loaded<'_>) -> Result<Option<u64>, Stop> {
        if block.hash == self.inputs.head.0 {
            return Ok(self.inputs.next_base_fee);
        }
        if block.is_ommer || self.snapshot.canonical_hash(block.header.number)? != Some(block.hash) {
            return Ok(None);
        }
        Ok(self.canonical(block.header.number + 1)?.and_then(|next| next.header.base_fee_per_gas))
    }

    fn withdrawal_object(&mut self, nodes: &'a [Node], one: &Withdrawal) -> Written {
        self.object(nodes, |run, node| match node.field {
            Field::WithdrawalIndex => run.integer(one.index),
            Field::WithdrawalValidator => run.integer(one.validator_index),
            Field::WithdrawalAddress => run.bytes(one.address),
            _ => run.integer(one.amount),
        })
    }
}
