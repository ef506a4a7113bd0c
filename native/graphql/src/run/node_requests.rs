//! Writes fields that need the node: calls, gas estimates, sent transactions.

use std::sync::Arc;

use alloy_primitives::B256;

use super::account_fields::STATE_MISSING;
use super::plan_execution::{INVALID_PARAMS, Run, Stop, Written, cost};
use super::run_inputs::{Ask, Reply};
use crate::document::fields::Field;
use crate::document::plan::Node;
use crate::values::value::{CallArguments, Value};

impl<'a> Run<'a> {
    /// Return the node's result for the next task. The first round only collects tasks and returns None.
    fn ask(&mut self, node: &Node, make: impl FnOnce() -> Ask) -> Result<Option<&'a Reply>, Stop> {
        self.spend(cost::ASK)?;
        let position = self.asked;
        self.asked += 1;
        if self.asked > self.bounds.max_asks {
            let max = self.bounds.max_asks;
            return Err(self.fail(node, None, &format!("more than {max} calls in one request"), None));
        }
        match self.replies {
            Some(replies) => Ok(replies.get(position)),
            None => {
                self.asks.push(make());
                Ok(None)
            }
        }
    }

    fn call_arguments(&self, node: &Node) -> Arc<CallArguments> {
        match self.argument(node, 0) {
            Value::Call(call) => call.clone(),
            _ => Arc::default(),
        }
    }

    pub fn call(&mut self, node: &'a Node, block: Option<B256>) -> Written {
        let call = self.call_arguments(node);
        match self.ask(node, || Ask::Call { block, is_estimate: false, call })? {
            Some(Reply::Call { succeeded, gas_used, output }) => self.inside(node, |run| {
                run.object(&node.children, |run, node| match node.field {
                    Field::CallData => run.bytes(output),
                    Field::CallGasUsed => run.integer(*gas_used),
                    _ => run.integer(u64::from(*succeeded)),
                })
            }),
            Some(reply @ Reply::Failed { .. }) => Err(self.replied_failure(node, reply)),
            _ => {
                self.null();
                Ok(())
            }
        }
    }

    pub fn estimate(&mut self, node: &'a Node, block: Option<B256>) -> Written {
        let call = self.call_arguments(node);
        match self.ask(node, || Ask::Call { block, is_estimate: true, call })? {
            Some(Reply::Gas(gas)) => self.integer(*gas),
            Some(Reply::Nothing) => Err(self.fail_with(node, STATE_MISSING)),
            Some(reply) => Err(self.replied_failure(node, reply)),
            None => self.integer(0),
        }
    }

    pub(super) fn send(&mut self, node: &'a Node) -> Written {
        let Value::Bytes(raw) = self.argument(node, 0) else { return Err(self.fail_with(node, INVALID_PARAMS)) };
        match self.ask(node, || Ask::Send(raw.clone()))? {
            Some(Reply::Sent(hash)) => self.bytes(hash),
            Some(reply) => Err(self.replied_failure(node, reply)),
            None => {
                self.null();
                Ok(())
            }
        }
    }

    fn replied_failure(&mut self, node: &Node, reply: &Reply) -> Stop {
        match reply {
            Reply::Failed { code, message, data } => {
                let code = code.map(|code| (code, message.as_str()));
                self.fail(node, code, message, data.clone())
            }
            _ => self.fail(node, None, "it was not answered", None),
        }
    }
}
