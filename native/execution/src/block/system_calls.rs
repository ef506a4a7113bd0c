//! System calls at the start and at the end of a block.

use alloy_eips::eip7685::Requests;
use alloy_primitives::{Address, Bytes};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::store::forked_state;
use revm::context_interface::result::{EVMError, ExecutionResult};
use revm::handler::SystemCallCommitEvm;
use revm::primitives::hardfork::SpecId;

use super::block_execution::Run;
use super::execution_requests;
use crate::evm::block_environment::BlockEnv;
use crate::evm::evm_builder;

impl Run {
    /// Run the system calls at the start of a block.
    pub(super) fn begin(&mut self) -> Result<()> {
        let BlockEnv { fork, parent_hash, parent_beacon_root, .. } = self.progress.env;
        if fork.has(SpecId::PRAGUE) {
            self.system_call(execution_requests::HISTORY_STORAGE, parent_hash.0.into())?;
        }
        if let Some(root) = parent_beacon_root.filter(|_| fork.has(SpecId::CANCUN)) {
            self.system_call(execution_requests::BEACON_ROOTS, root.0.into())?;
        }
        Ok(())
    }

    /// Call a system contract. Does nothing if the contract is not deployed. A failed call has no effect.
    fn system_call(&mut self, contract: Address, input: Bytes) -> Result<Option<ExecutionResult>> {
        let code = evm_builder::db(&mut self.evm).info(&contract)?.is_some_and(|info| !info.is_empty_code_hash());
        if !code {
            return Ok(None);
        }
        match forked_state::without_fetching(|| self.evm.system_call_commit(contract, input)) {
            Ok(result) => Ok(Some(result)),
            Err(EVMError::Database(cause)) => Err(cause),
            Err(cause) => Err(Error::InvalidBody(format!("the system call to {contract} failed: {cause}"))),
        }
    }

    /// Read the requests of a system contract (EIP-7002, EIP-7251). If the call fails, the block is invalid.
    fn requests_of(&mut self, contract: Address) -> Result<Option<Bytes>> {
        match self.system_call(contract, Bytes::new())? {
            None => Ok(None),
            Some(ExecutionResult::Success { output, .. }) => Ok(Some(output.into_data())),
            Some(_) => Err(Error::InvalidBody(format!("the system call to {contract} failed"))),
        }
    }

    /// Collect all execution-layer requests of the block (EIP-7685): deposits, withdrawals, consolidations.
    pub(super) fn collect_requests(&mut self) -> Result<Requests> {
        let rules = self.progress.env.rules.clone();
        let mut all = Requests::default();
        let deposits = execution_requests::deposits(rules.deposit_contract, self.progress.receipts.all())?;
        let withdrawals = self.requests_of(rules.withdrawal_request_contract)?;
        let consolidations = self.requests_of(rules.consolidation_request_contract)?;
        let found = [(0u8, Some(deposits)), (1, withdrawals), (2, consolidations)];
        for (kind, data) in found {
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                all.push_request_with_type(kind, data);
            }
        }
        Ok(all)
    }
}
