//! State changes that a development node makes outside of any transaction.

use std::sync::Arc;

use ophion_primitives::errors::Result;
use ophion_storage::state::StateData;
use ophion_storage::store::Effects;

use super::block_execution::settled;
use crate::evm::database::{Ancestors, ExecDb};
use crate::evm::overrides::AccountOverride;

/// Apply changes of a development node to a state. Returns the database rows to commit and the new state.
pub fn edited(state: &StateData, changes: &[&AccountOverride]) -> Result<(Arc<Effects>, StateData)> {
    let mut db = ExecDb::new(state.open()?, Ancestors::Canonical);
    for change in changes {
        change.apply(&mut db)?;
    }
    let mut trie = state.trie.clone();
    db.update_trie(&mut trie)?;
    let (effects, after) = settled(db, state, trie, Vec::new(), 0)?;
    Ok((Arc::new(effects), after))
}
