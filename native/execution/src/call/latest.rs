//! What is asked of the newest block more often than anything else: an account, a usual call.
//!
//! Each answer is the text of a JSON value. None stands for whatever is not a plain question with a plain answer:
//! another way to write an address, a call that does not return or not in time, a state that cannot be read. Whoever
//! asks then goes the long way, which says why.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{Bytes, U256};
use ophion_primitives::{deadline, json};
use ophion_storage::state::StateData;
use revm::context::TxEnv;
use revm::state::AccountInfo;

use super::call_cost_cache::CallCostCache;
use super::calls;
use super::fast_call::UsualCall;
use crate::evm::database::{Ancestors, ExecDb};
use crate::evm::env::BlockEnv;

/// So many accounts and slots are kept at hand, less than a megabyte; whoever reads more begins anew.
const MAX_READS: usize = 4096;
/// Bytes of the input of a call that is remembered.
const MAX_DECLINED: usize = 4096;

/// What calls at a block run with.
pub struct Terms {
    pub env: BlockEnv,
    /// Where a call names none.
    pub gas: u64,
    pub max_gas: u64,
    pub limit_s: f64,
    pub tried: Arc<CallCostCache>,
}

/// The newest block.
pub struct Newest {
    pub number: u64,
    state: StateData,
    /// The state, open since somebody first read from it, with what was read at hand: opening it takes as long as
    /// reading an account. The pages that it keeps from being used again on disk are those that the next block leaves, and
    /// it goes with that block.
    db: Option<ExecDb>,
    /// None until somebody has said what calls run with.
    pub terms: Option<Terms>,
    /// The last call, where it did not return: whoever asks for its answer the long way asks here first, and it is not run
    /// again for that. A long one is not kept, since it did not come in a usual request.
    declined: Option<TxEnv>,
}

impl Newest {
    pub fn new(number: u64, state: StateData) -> Self {
        Newest { number, state, db: None, terms: None, declined: None }
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

    /// What a call returns.
    pub fn call(&mut self, usual: UsualCall) -> Option<Bytes> {
        let terms = self.terms.as_ref()?;
        let tx = usual.finish(terms.gas, terms.max_gas)?;
        let to = *tx.kind.to()?;
        let is_light = terms.tried.is_light(&to, &tx.data);
        let is_declined = self.declined.take().is_some_and(|declined| declined == tx);
        if is_declined || !(is_light || terms.tried.may_try(&to, &tx.data)) {
            return None;
        }
        let mut db = self.db.take().map_or_else(|| opened(&self.state), Some)?;
        db.ancestors = terms.env.ancestors();
        let began = Instant::now();
        let (db, returned) = calls::returned(db, &terms.env, tx.clone(), deadline::after(terms.limit_s));
        let returned = returned.ok().flatten();
        if returned.is_some() {
            if !is_light {
                terms.tried.note(&to, &tx.data, false);
            }
        } else {
            terms.tried.wasted(&to, &tx.data, began.elapsed().as_secs_f64());
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
