//! Writes the fields of accounts at a block.

use std::rc::Rc;

use alloy_primitives::{Address, KECCAK256_EMPTY, U256, keccak256};
use ophion_primitives::errors::Error;
use ophion_storage::state::{StateData, View};

use super::block_cache::Loaded;
use super::plan_execution::{INVALID_PARAMS, Run, Stop, Written, cost};
use crate::document::fields::Field;
use crate::document::plan::Node;
use crate::values::value::Value;

pub const STATE_MISSING: (i64, &str) = (-32008, "Initial sync is still in progress");
/// Maximum number of states (one per block) that one request holds open.
const MAX_OPEN_STATES: usize = 8;

/// An account, and the block whose state is used.
pub struct Account<'a> {
    pub address: Address,
    pub block: Rc<Loaded<'a>>,
}

impl<'a> Run<'a> {
    fn view(&mut self, node: &Node, block: &Loaded<'_>) -> Result<Rc<View>, Stop> {
        let number = block.header.number;
        if number != 0 && number < self.inputs.oldest_state {
            // Refuse pruned states even if their trie nodes still exist, so that clients see one consistent limit.
            return Err(self.fail_with(node, STATE_MISSING));
        }
        let root = block.header.state_root;
        if let Some(view) = self.views.get(&root) {
            return Ok(view.clone());
        }
        self.spend(cost::ACCOUNT)?;
        let opened = StateData::at(self.snapshot, root).and_then(|state| state.open());
        match opened {
            Ok(view) => {
                // Bound the number of open states, because each state holds a database reader and LMDB limits readers.
                if self.views.len() >= MAX_OPEN_STATES {
                    self.views.clear();
                }
                let view = Rc::new(view);
                self.views.insert(root, view.clone());
                Ok(view)
            }
            Err(Error::MissingState(_)) => Err(self.fail_with(node, STATE_MISSING)),
            Err(error) => Err(error.into()),
        }
    }

    /// Write an account as JSON. The state of the account is opened only if a field needs it.
    pub fn account_object(&mut self, node: &'a Node, account: &Account<'a>) -> Written {
        self.inside(node, |run| run.object(&node.children, |run, node| run.account_field(node, account)))
    }

    fn account_field(&mut self, node: &'a Node, account: &Account<'a>) -> Written {
        let address = &account.address;
        if node.field == Field::AccountAddress {
            return self.bytes(address);
        }
        let view = self.view(node, &account.block)?;
        self.spend(cost::ACCOUNT)?;
        let hash = keccak256(address);
        if node.field == Field::AccountStorage {
            let Value::Hash(slot) = *self.argument(node, 0) else {
                return Err(self.fail_with(node, INVALID_PARAMS));
            };
            let value = view.storage(address, &hash, &slot.into(), &keccak256(slot))?;
            return self.bytes(value.to_be_bytes::<32>());
        }
        let found = view.account(address, &hash)?;
        match node.field {
            Field::AccountBalance => self.big(found.map_or(U256::ZERO, |account| account.balance)),
            Field::AccountNonce => self.integer(found.map_or(0, |account| account.nonce)),
            _ => {
                let code = view.code(&found.map_or(KECCAK256_EMPTY, |account| account.code_hash))?;
                self.bytes(code.original_bytes())
            }
        }
    }

    /// Return an account at the block that an argument names, or else at the block of the enclosing object, or else at
    /// the head.
    pub fn account_at(
        &mut self,
        node: &'a Node,
        address: Address,
        own: Option<&Rc<Loaded<'a>>>,
    ) -> Result<Account<'a>, Stop> {
        let block = match (self.long(node, 0), own) {
            (Some(number), _) => match self.canonical(number)? {
                Some(block) => block,
                None => return Err(self.fail_with(node, INVALID_PARAMS)),
            },
            (None, Some(block)) => self.with_state(block)?,
            (None, None) => self.head_block()?,
        };
        Ok(Account { address, block })
    }
}
