//! Writes the fields of logs.

use std::rc::Rc;

use alloy_primitives::B256;
use ophion_rendering::chain::logs::LogFilter;

use super::block_cache::{Loaded, LogPlace};
use super::plan_execution::{Run, Written, cost};
use super::transaction_fields::Transaction;
use crate::document::fields::Field;
use crate::document::plan::Node;
use crate::values::value::FilterArguments;

pub fn log_filter(filter: &FilterArguments) -> LogFilter {
    let any_of = |row: &Vec<B256>| (!row.is_empty()).then(|| row.clone());
    LogFilter { addresses: filter.addresses.clone(), topics: filter.topics.iter().map(any_of).collect() }
}

impl<'a> Run<'a> {
    /// Append the logs of a block that match a filter to `found`, in block order.
    pub fn matching_logs(
        &mut self,
        block: &Rc<Loaded<'a>>,
        filter: &LogFilter,
        found: &mut Vec<(Rc<Loaded<'a>>, LogPlace)>,
    ) -> Written {
        let receipts = block.receipts()?;
        self.spend(receipts.all.len() as u64)?;
        for (transaction, (receipt, before)) in receipts.all.iter().zip(&receipts.logs_before).enumerate() {
            for (inner, log) in receipt.logs.iter().enumerate() {
                if filter.matches(log) {
                    found.push((block.clone(), LogPlace { transaction, inner, index: before + inner }));
                }
            }
        }
        Ok(())
    }

    pub fn log_object(&mut self, nodes: &'a [Node], block: &Rc<Loaded<'a>>, at: LogPlace) -> Written {
        let log = &block.receipt(at.transaction)?.logs[at.inner];
        self.object(nodes, |run, node| match node.field {
            Field::LogIndex => run.integer(at.index as u64),
            Field::LogTopics => run.hashes(log.data.topics()),
            Field::LogData => run.bytes(&log.data.data),
            Field::LogAccount => {
                let account = run.account_at(node, log.address, Some(block))?;
                run.account_object(node, &account)
            }
            _ => {
                run.spend(cost::TRANSACTION)?;
                let transaction = Transaction::mined(block, at.transaction, true)?;
                run.inside(node, |run| run.transaction_object(&node.children, &transaction))
            }
        })
    }
}
