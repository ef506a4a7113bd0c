//! Fast path for eth_blockNumber, eth_getBalance, eth_getTransactionCount and eth_call at the latest block.
//!
//! Each function returns the text of a JSON value, or None if the slow path must answer. The slow path answers unusual
//! spellings of an address, calls that fail or time out, and unreadable states. So only the slow path, the handlers in
//! `rpc/methods`, produces errors. `tests/unit/rpc/dispatch/test_fast_path.py` compares both.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{Bytes, U256};
use ophion_primitives::{deadline, json};
use ophion_storage::state::StateData;
use revm::context::TxEnv;
use revm::state::AccountInfo;

use super::call_cost_cache::CallCostCache;
use super::eth_call;
use super::fast_call::PlainCall;
use crate::evm::block_environment::BlockEnv;
use crate::evm::database::{Ancestors, ExecDb};

/// Maximum number of accounts and slots in the read cache, which uses less than 1 MB. A full cache is cleared.
const MAX_READS: usize = 4096;
/// Maximum input length in bytes of a call that the field `declined` stores.
const MAX_DECLINED: usize = 4096;

/// Environment and gas limits of calls at a block.
pub struct CallSettings {
    pub env: BlockEnv,
    /// Default gas limit of calls without a gas limit.
    pub gas: u64,
    pub max_gas: u64,
    pub limit_s: f64,
    pub costs: Arc<CallCostCache>,
}

/// State and call settings of the latest block.
pub struct Latest {
    pub number: u64,
    state: StateData,
    /// The open latest state with its read cache. It stays open between requests, because opening a state takes as long
    /// as reading an account. Until the next block releases the state, LMDB cannot reuse the pages of its snapshot.
    db: Option<ExecDb>,
    /// Environment and limits of calls; None until the node has set them.
    pub settings: Option<CallSettings>,
    /// The last call that the fast path passed to the slow path. If the next request is the same call, the fast path
    /// does not try it. Large calls are not stored.
    declined: Option<TxEnv>,
}

impl Latest {
    pub fn new(number: u64, state: StateData) -> Self {
        Latest { number, state, db: None, settings: None, declined: None }
    }

    pub fn balance(&mut self, out: &mut Vec<u8>, address: &str) -> Option<()> {
        let found = self.account(address)?;
        json::wide(out, "", found.map_or(U256::ZERO, |account| account.balance));
        Some(())
    }

    pub fn nonce(&mut self, out: &mut Vec<u8>, address: &str) -> Option<()> {
        let found = self.account(address)?;
        json::quantity(out, "", found.map_or(0, |account| account.nonce));
        Some(())
    }

    /// Run a call and return its output; None if the slow path must answer.
    pub fn call(&mut self, plain: PlainCall) -> Option<Bytes> {
        let settings = self.settings.as_ref()?;
        let tx = plain.finish(settings.gas, settings.max_gas)?;
        let to = *tx.kind.to()?;
        let is_light = settings.costs.is_light(&to, &tx.data);
        let is_declined = self.declined.take().is_some_and(|declined| declined == tx);
        if is_declined || !(is_light || settings.costs.may_try(&to, &tx.data)) {
            return None;
        }
        let mut db = self.db.take().map_or_else(|| opened(&self.state), Some)?;
        db.ancestors = settings.env.ancestors();
        let began = Instant::now();
        let (db, returned) = eth_call::returned(db, &settings.env, tx.clone(), deadline::after(settings.limit_s));
        let returned = returned.ok().flatten();
        if db.has_read_console() {
            // the call has used `console.log`: let the slow path run it again, because only the slow path reports the
            // printed text
            return None;
        }
        if returned.is_some() {
            if !is_light {
                settings.costs.note(&to, &tx.data, false);
            }
        } else {
            settings.costs.wasted(&to, &tx.data, began.elapsed().as_secs_f64());
            self.declined = (tx.data.len() <= MAX_DECLINED).then_some(tx);
        }
        self.keep(db);
        returned
    }

    fn account(&mut self, address: &str) -> Option<Option<AccountInfo>> {
        let address = json::address(address)?;
        let mut db = self.db.take().map_or_else(|| opened(&self.state), Some)?;
        let found = db.info(&address);
        self.keep(db);
        found.ok()
    }

    fn keep(&mut self, db: ExecDb) {
        self.db = (db.reads() < MAX_READS).then_some(db);
    }
}

fn opened(state: &StateData) -> Option<ExecDb> {
    Some(ExecDb::new(state.open().ok()?, Ancestors::Canonical))
}
