//! What is asked of the newest block more often than anything else: an account, a usual call.
//!
//! Each answer is the text of a JSON value. None stands for whatever is not a plain question with a plain answer:
//! another way to write an address, a call that does not return or not in time, a state that cannot be read. Whoever
//! asks then goes the long way, which says why.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, Bytes, U256};
use ophion_primitives::{deadline, json};
use ophion_storage::state::StateData;
use revm::context::TxEnv;
use revm::state::AccountInfo;

use super::calls;
use super::usual::UsualCall;
use crate::evm::database::{Ancestors, ExecDb};
use crate::evm::env::BlockEnv;

/// So many accounts and slots are kept at hand, less than a megabyte; whoever reads more begins anew.
const MOST_READS: usize = 4096;
/// Bytes of the input of a call that is remembered.
const MOST_DECLINED: usize = 4096;

/// The part of a call's input that names a function of its contract; a shorter input is filled up.
type Selector = [u8; 4];

fn selector(input: &[u8]) -> Selector {
    let mut name = Selector::default();
    let size = input.len().min(name.len());
    name[..size].copy_from_slice(&input[..size]);
    name
}

/// Functions that are not to be tried where others wait.
#[derive(Default)]
pub struct HeavyCalls {
    functions: Mutex<HashSet<(Address, Selector)>>,
}

impl HeavyCalls {
    fn functions(&self) -> MutexGuard<'_, HashSet<(Address, Selector)>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn len(&self) -> usize {
        self.functions().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn knows(&self, to: &Address, input: &[u8]) -> bool {
        let functions = self.functions();
        !functions.is_empty() && functions.contains(&(*to, selector(input)))
    }

    pub fn note(&self, to: Address, input: &[u8], is_heavy: bool) {
        let function = (to, selector(input));
        if is_heavy {
            self.functions().insert(function);
        } else {
            self.functions().remove(&function);
        }
    }

    pub fn clear(&self) {
        self.functions().clear();
    }
}

/// What calls at a block run with.
pub struct Terms {
    pub env: BlockEnv,
    /// Where a call names none.
    pub gas: u64,
    pub most_gas: u64,
    pub limit_s: f64,
    pub heavy: Arc<HeavyCalls>,
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
        let tx = usual.finish(terms.gas, terms.most_gas)?;
        if terms.heavy.knows(tx.kind.to()?, &tx.data) {
            return None;
        }
        if self.declined.take().is_some_and(|declined| declined == tx) {
            return None;
        }
        let mut db = self.db.take().map_or_else(|| opened(&self.state), Some)?;
        db.ancestors = terms.env.ancestors();
        let (db, returned) = calls::returned(db, &terms.env, tx.clone(), deadline::after(terms.limit_s));
        self.keep(db);
        let returned = returned.ok().flatten();
        if returned.is_none() && tx.data.len() <= MOST_DECLINED {
            self.declined = Some(tx);
        }
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
        self.db = (db.reads() < MOST_READS).then_some(db);
    }
}

fn opened(state: &StateData) -> Option<ExecDb> {
    Some(ExecDb::new(state.open().ok()?, Ancestors::Canonical))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_heavy_until_it_is_seen_to_be_light() {
        let (heavy, contract) = (HeavyCalls::default(), Address::with_last_byte(1));
        assert!(heavy.is_empty() && !heavy.knows(&contract, &[1, 2, 3, 4]));
        heavy.note(contract, &[1, 2, 3, 4, 5], true);
        heavy.note(contract, &[9], true);
        assert_eq!(heavy.len(), 2);
        assert!(heavy.knows(&contract, &[1, 2, 3, 4, 6]) && heavy.knows(&contract, &[9]));
        assert!(!heavy.knows(&contract, &[1, 2, 3, 5]) && !heavy.knows(&Address::ZERO, &[1, 2, 3, 4]));
        heavy.note(contract, &[1, 2, 3, 4], false);
        assert!(!heavy.knows(&contract, &[1, 2, 3, 4]));
        heavy.clear();
        assert!(heavy.is_empty());
    }
}
