//! Writes the fields of the query root and of the pending block.

use alloy_primitives::U256;
use ophion_primitives::deadline;
use ophion_primitives::errors::Error;
use ophion_rendering::chain::logs;

use super::account_fields::Account;
use super::log_fields::log_filter;
use super::plan_execution::{INVALID_PARAMS, OUT_OF_TIME, Run, Stop, Written, cost};
use super::run_inputs::Pooled;
use super::transaction_fields::Transaction;
use crate::document::error_entries::Entry;
use crate::document::fields::Field;
use crate::document::plan::Node;
use crate::values::value::Value;

const RANGE_TOO_LARGE: (i64, &str) = (-32005, "Requested range exceeds maximum RPC range limit");
const TOO_MANY_LOGS: (i64, &str) = (-32005, "Too many logs match; ask for fewer blocks");

impl<'a> Run<'a> {
    pub(super) fn introspect(&self) -> Result<Option<apollo_compiler::response::JsonMap>, Box<Entry>> {
        let Some((document, operation)) = &self.query.plan.introspection else { return Ok(None) };
        let refused =
            |cause: apollo_compiler::request::RequestError| Box::new(Entry::aborted(cause.message().to_string()));
        apollo_compiler::introspection::check_max_depth(document, operation).map_err(refused)?;
        let given = self.query.variables_text.as_deref().unwrap_or("{}");
        let given = serde_json::from_str(given).unwrap_or_default();
        let schema = &self.engine.schema;
        let variables = apollo_compiler::request::coerce_variable_values(schema, operation, &given).map_err(refused)?;
        let found = apollo_compiler::introspection::partial_execute(
            schema,
            &self.engine.implementers,
            document,
            operation,
            &variables,
        );
        Ok(Some(found.map_err(refused)?.data.unwrap_or_default()))
    }

    pub(super) fn root(
        &mut self,
        node: &'a Node,
        introspected: Option<&apollo_compiler::response::JsonMap>,
    ) -> Written {
        match node.field {
            Field::QueryBlock => self.root_block(node),
            Field::QueryBlocks => self.root_blocks(node),
            Field::QueryAccount => self.root_account(node),
            Field::QueryTransaction => self.root_transaction(node),
            Field::QueryLogs => self.root_logs(node),
            Field::QueryPending => self.inside(node, |run| run.object(&node.children, Self::pending_field)),
            Field::QueryGasPrice => self.big(self.inputs.gas_price),
            Field::QueryPriorityFee => self.big(self.inputs.priority_fee),
            Field::QueryProtocolVersion => self.decimal(u64::from(self.inputs.protocol_version)),
            Field::QueryChainId => self.big(U256::from(self.inputs.chain_id)),
            Field::QuerySyncing => match self.inputs.syncing {
                Some(status) => {
                    self.inside(node, |run| run.object(&node.children, |run, node| run.sync_field(node, status)))
                }
                None => {
                    self.null();
                    Ok(())
                }
            },
            Field::SendRawTransaction => self.send(node),
            _ => {
                let value = introspected.and_then(|data| data.get(&*node.name));
                match value {
                    Some(value) => serde_json::to_writer(&mut self.out, value).expect("writing to memory"),
                    None => self.null(),
                }
                Ok(())
            }
        }
    }

    fn root_block(&mut self, node: &'a Node) -> Written {
        let block = match (self.argument(node, 0), self.argument(node, 1)) {
            (Value::Null, Value::Null) => self.head_block()?,
            (Value::Long(number), Value::Null) => match self.canonical(*number)? {
                Some(block) => block,
                None => return Err(self.fail(node, None, &format!("Block number {number} was not found"), None)),
            },
            (Value::Null, Value::Hash(hash)) => match self.block(*hash)? {
                Some(block) if !self.is_ahead(&block)? => block,
                _ => return Err(self.fail(node, None, &format!("Block hash {hash} was not found"), None)),
            },
            _ => return Err(self.fail_with(node, INVALID_PARAMS)),
        };
        self.inside(node, |run| run.block_object(&node.children, &block))
    }

    fn root_blocks(&mut self, node: &'a Node) -> Written {
        let head = self.head.1;
        let first = self.long(node, 0).unwrap_or(0);
        let last = self.long(node, 1).unwrap_or(head);
        if first > last {
            return Err(self.fail_with(node, INVALID_PARAMS));
        }
        let last = last.min(head);
        if last.saturating_sub(first) >= self.bounds.max_blocks {
            return Err(self.fail_with(node, RANGE_TOO_LARGE));
        }
        self.list(node, first..=last, |run, number| match run.canonical(number)? {
            Some(block) => run.block_object(&node.children, &block),
            None => Err(Stop::Broken(Error::damaged(format!("block {number} is missing")))),
        })
    }

    fn root_account(&mut self, node: &'a Node) -> Written {
        let Value::Address(address) = *self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        let block = match self.argument(node, 1) {
            Value::Long(number) => match self.canonical(*number)? {
                Some(block) => block,
                None => return Err(self.fail_with(node, INVALID_PARAMS)),
            },
            _ => self.head_block()?,
        };
        self.account_object(node, &Account { address, block })
    }

    fn root_transaction(&mut self, node: &'a Node) -> Written {
        let Value::Hash(hash) = *self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        if let Some((number, index)) = self.snapshot.position(&hash)?
            && let Some(block) = self.canonical(number)?
        {
            self.spend(cost::TRANSACTION)?;
            let transaction = Transaction::mined(&block, index as usize, true)?;
            return self.inside(node, |run| run.transaction_object(&node.children, &transaction));
        }
        match self.inputs.named.iter().find(|pooled| pooled.known.hash == hash) {
            Some(pooled) => {
                let transaction = Transaction::pooled(pooled);
                self.inside(node, |run| run.transaction_object(&node.children, &transaction))
            }
            None => {
                self.null();
                Ok(())
            }
        }
    }

    fn root_logs(&mut self, node: &'a Node) -> Written {
        let Value::Filter(filter) = self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        let head = self.head.1;
        let (first, last) = (filter.from_block.unwrap_or(head), filter.to_block.unwrap_or(head));
        if first > last {
            return Err(self.fail_with(node, INVALID_PARAMS));
        }
        let last = last.min(head);
        let log_filter = log_filter(filter);
        // a filter without addresses and topics selects every block; any other filter finds its blocks by the log index
        let takes_all = log_filter.addresses.is_empty() && log_filter.topics.iter().all(Option::is_none);
        let max = self.bounds.max_logs_range;
        let blocks = last.saturating_sub(first);
        if (max > 0 && blocks > max) || (takes_all && blocks >= self.bounds.max_blocks) {
            return Err(self.fail_with(node, RANGE_TOO_LARGE));
        }
        let limits = logs::Limits {
            max_results: self.bounds.max_logs,
            max_bytes: self.bounds.max_bytes,
            deadline: self.bounds.deadline,
        };
        let numbers = match logs::candidates(self.snapshot, first, last, &log_filter, &limits) {
            Err(_) if deadline::is_over(self.bounds.deadline) => return Err(Stop::Exhausted(OUT_OF_TIME)),
            found => found?,
        };
        let mut found = Vec::new();
        for number in numbers {
            self.spend(cost::BLOCK)?;
            if let Some(block) = self.canonical(number)? {
                self.matching_logs(&block, &log_filter, &mut found)?;
            }
            if found.len() > self.bounds.max_logs {
                return Err(self.fail_with(node, TOO_MANY_LOGS));
            }
        }
        self.list(node, found, |run, (block, at)| run.log_object(&node.children, &block, at))
    }

    fn sync_field(&mut self, node: &'a Node, (starting, current, highest): (u64, u64, u64)) -> Written {
        match node.field {
            Field::SyncStarting => self.integer(starting),
            Field::SyncCurrent => self.integer(current),
            Field::SyncHighest => self.integer(highest),
            _ => {
                self.null();
                Ok(())
            }
        }
    }

    fn pending_field(&mut self, node: &'a Node) -> Written {
        match node.field {
            Field::PendingTransactionCount => self.integer(self.inputs.pool.len() as u64),
            Field::PendingTransactions => {
                let pool: &'a [Pooled] = &self.inputs.pool;
                self.list(node, pool, |run, pooled| {
                    run.transaction_object(&node.children, &Transaction::pooled(pooled))
                })
            }
            Field::PendingAccount => {
                let Value::Address(address) = *self.argument(node, 0) else {
                    return Err(self.fail_with(node, INVALID_PARAMS));
                };
                let block = self.head_block()?;
                self.account_object(node, &Account { address, block })
            }
            Field::PendingCall => self.call(node, None),
            _ => self.estimate(node, None),
        }
    }
}
