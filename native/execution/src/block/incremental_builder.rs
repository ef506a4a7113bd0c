//! A block of our own while it grows: transactions run as they come, and it can be sealed at any moment.
//!
//! ```text
//! start  ->  take, take, settle, take ...  ->  seal  =  body and Execution
//! ```
//! What a root needs is worked out on the way, so sealing costs what came last and not what the block holds.

use std::sync::Arc;
use std::time::Instant;

use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, U256};
use ophion_primitives::errors::Result;
use ophion_storage::chain::body::{BodyData, Known, Tx};
use ophion_storage::chain::ordered_root::OrderedRoot;
use ophion_storage::state::StateData;

use super::run::{ExecutionData, Paused, Refusal, Run};
use crate::evm::env::BlockEnv;

/// Gas of the smallest transaction.
const MIN_GAS: u64 = 21_000;

/// A transaction that may go into the block.
pub struct Candidate {
    pub tx: Arc<Tx>,
    pub known: Known,
}

/// What became of candidates, by their positions.
#[derive(Default)]
pub struct Taken {
    pub included: Vec<usize>,
    /// No block can hold these as things stand.
    pub skipped: Vec<(usize, String)>,
    /// Earlier nonces of their senders are missing.
    pub early: Vec<usize>,
    /// This block has no room for them.
    pub unfit: Vec<usize>,
    /// It was still running at the deadline.
    pub unfinished: Option<usize>,
    /// How many were looked at before gas or time came to an end.
    pub seen: usize,
    /// Not even the smallest transaction fits any more.
    pub is_full: bool,
}

pub struct Growth {
    run: Paused,
    txs: Vec<Tx>,
    known: Vec<Known>,
    root: OrderedRoot,
}

impl Growth {
    pub fn start(parent: &StateData, env: &BlockEnv, keep_revert_data: bool) -> Result<Self> {
        let run = Run::start(parent, env, keep_revert_data)?.pause();
        Ok(Growth { run, txs: Vec::new(), known: Vec::new(), root: OrderedRoot::default() })
    }

    /// Run candidates in the order given until gas or time comes to an end.
    pub fn take(mut self, candidates: &[Candidate], deadline: Instant) -> Result<(Self, Taken)> {
        let mut run = self.run.resume();
        run.watch(deadline);
        let mut taken = Taken::default();
        for (index, candidate) in candidates.iter().enumerate() {
            if run.gas_left() < MIN_GAS || (index % 64 == 63 && Instant::now() >= deadline) {
                break;
            }
            taken.seen += 1;
            match run.transact(&candidate.tx, candidate.known.sender) {
                Ok(()) => {
                    self.root.push(&candidate.tx.raw);
                    self.txs.push(Tx { envelope: candidate.tx.envelope.clone(), raw: candidate.tx.raw.clone() });
                    self.known.push(candidate.known);
                    taken.included.push(index);
                }
                Err(Refusal::Fatal(cause)) => return Err(cause),
                Err(Refusal::Invalid(reason)) => taken.skipped.push((index, reason)),
                Err(Refusal::NonceTooHigh) => taken.early.push(index),
                Err(Refusal::NoRoom) => taken.unfit.push(index),
                Err(Refusal::TooLong) => {
                    taken.unfinished = Some(index);
                    break;
                }
            }
        }
        taken.is_full = run.gas_left() < MIN_GAS;
        self.run = run.pause();
        Ok((self, taken))
    }

    /// Hash what has changed so far.
    pub fn settle(&mut self) -> Result<()> {
        self.run.settle()
    }

    pub fn seal(
        self,
        withdrawals: Option<Vec<Withdrawal>>,
        rewards: &[(Address, U256)],
    ) -> Result<(BodyData, ExecutionData)> {
        let execution = self.run.resume().finish(withdrawals.as_deref(), rewards)?;
        let body =
            BodyData::new(self.txs, Vec::new(), withdrawals).with_known(self.known).with_root(self.root.finish());
        Ok((body, execution))
    }
}
