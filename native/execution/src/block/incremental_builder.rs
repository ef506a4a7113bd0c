//! Incremental block builder: runs transactions as they arrive; the block can be sealed at any moment.
//!
//! ```text
//! start  ->  take, take, settle, take ...  ->  seal  =  body and Execution
//! ```
//! `settle` hashes the changes so far, so that `seal` hashes only later changes.

use std::sync::Arc;
use std::time::Instant;

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, U256};
use ophion_primitives::errors::Result;
use ophion_storage::chain::body::{BodyData, Known, Tx};
use ophion_storage::chain::ordered_root::OrderedRoot;
use ophion_storage::state::StateData;

use super::block_execution::{ExecutionData, Paused, Refusal, Run};
use crate::evm::block_environment::BlockEnv;

/// Intrinsic gas of a plain transfer, the smallest transaction.
const MIN_GAS: u64 = 21_000;

/// A transaction that may be included in the block.
pub struct Candidate {
    pub tx: Arc<Tx>,
    pub known: Known,
}

/// Result of `IncrementalBuilder::take`. The lists refer to candidates by their index.
#[derive(Default)]
pub struct TakeResult {
    pub included: Vec<usize>,
    /// Candidates that are invalid on this state, with the reason. No block on this state can include them.
    pub skipped: Vec<(usize, String)>,
    /// Candidates with a nonce gap: transactions of the sender with lower nonces are missing.
    pub early: Vec<usize>,
    /// Candidates that need more gas than is left in the block.
    pub unfit: Vec<usize>,
    /// The candidate that was still running at the deadline.
    pub unfinished: Option<usize>,
    /// Number of candidates processed before gas or time ran out.
    pub seen: usize,
    /// Whether the block has less gas left than the smallest transaction needs.
    pub is_full: bool,
}

pub struct IncrementalBuilder {
    run: Paused,
    content: Content,
}

/// The transactions of a block under construction, with hash and sender of each.
#[derive(Default)]
struct Content {
    txs: Vec<Tx>,
    known: Vec<Known>,
    root: OrderedRoot,
}

impl Content {
    fn take(&mut self, run: &mut Run, candidates: &[Candidate], deadline: Instant) -> Result<TakeResult> {
        run.watch(deadline);
        let mut result = TakeResult::default();
        for (index, candidate) in candidates.iter().enumerate() {
            if run.gas_left() < MIN_GAS || (index % 64 == 63 && Instant::now() >= deadline) {
                break;
            }
            result.seen += 1;
            match run.transact(&candidate.tx, candidate.known.sender) {
                Ok(()) => {
                    self.root.push(&candidate.tx.raw);
                    self.txs.push(Tx { envelope: candidate.tx.envelope.clone(), raw: candidate.tx.raw.clone() });
                    self.known.push(candidate.known);
                    result.included.push(index);
                }
                Err(Refusal::Fatal(cause)) => return Err(cause),
                Err(Refusal::Invalid(reason)) => result.skipped.push((index, reason)),
                Err(Refusal::NonceTooHigh) => result.early.push(index),
                Err(Refusal::ExceedsGas) => result.unfit.push(index),
                Err(Refusal::TooLong) => {
                    result.unfinished = Some(index);
                    break;
                }
            }
        }
        result.is_full = run.gas_left() < MIN_GAS;
        Ok(result)
    }

    fn into_body(self, withdrawals: Option<Vec<Withdrawal>>) -> BodyData {
        BodyData::new(self.txs, Vec::new(), withdrawals).with_known(self.known).with_root(self.root.finish())
    }
}

/// Build a whole block in one call, with one EVM. The result is the same as with `IncrementalBuilder`.
pub fn build(
    parent: &StateData,
    env: &BlockEnv,
    candidates: &[Candidate],
    keep_revert_data: bool,
    withdrawals: Option<Vec<Withdrawal>>,
    rewards: &[(Address, U256)],
    deadline: Instant,
) -> Result<(TakeResult, BodyData, ExecutionData)> {
    let mut run = Run::start(parent, env, keep_revert_data)?;
    let mut content = Content::default();
    let result = content.take(&mut run, candidates, deadline)?;
    run.unwatch();
    let execution = run.finish(withdrawals.as_deref(), rewards)?;
    Ok((result, content.into_body(withdrawals), execution))
}

impl IncrementalBuilder {
    pub fn start(parent: &StateData, env: &BlockEnv, keep_revert_data: bool) -> Result<Self> {
        let run = Run::start(parent, env, keep_revert_data)?.pause();
        Ok(IncrementalBuilder { run, content: Content::default() })
    }

    /// Run candidates in the given order until the block has no gas left or the deadline passes.
    pub fn take(mut self, candidates: &[Candidate], deadline: Instant) -> Result<(Self, TakeResult)> {
        let mut run = self.run.resume();
        let result = self.content.take(&mut run, candidates, deadline)?;
        self.run = run.pause();
        Ok((self, result))
    }

    /// Hash all state changes so far, so that `seal` takes less time.
    pub fn settle(&mut self) -> Result<()> {
        self.run.settle()
    }

    pub fn seal(
        self,
        withdrawals: Option<Vec<Withdrawal>>,
        rewards: &[(Address, U256)],
    ) -> Result<(BodyData, ExecutionData)> {
        let execution = self.run.resume().finish(withdrawals.as_deref(), rewards)?;
        Ok((self.content.into_body(withdrawals), execution))
    }
}
