//! Executes sequences of empty blocks for development nodes.
//!
//! A test that skips a voting period mines tens of thousands of blocks. Only parent, number, time, randomness and state
//! root differ between them, so they share one EVM. Slow path: `block_execution::execute` for each block.
//! tests/unit/dev/test_empty_blocks.py compares both.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::Encodable;
use ophion_primitives::errors::Result;
use ophion_storage::chain::body::BodyData;
use ophion_storage::state::StateData;
use ophion_storage::store::{BlockRecord, Effects};
use ophion_storage::trie::{Account, Trie};

use super::block_execution::{Progress, Run, settled};
use crate::evm::block_environment::BlockEnv;

/// Maximum number of blocks that share one EVM. Each block adds storage slots, and every later trie update visits these
/// slots.
const MAX_RUN: usize = 64;

/// A sequence of blocks without transactions that follows a committed block.
pub struct EmptyRun {
    /// Header of the first block, complete except for the state root.
    pub first: Header,
    pub count: usize,
    /// Seconds between the timestamps of two blocks.
    pub step: u64,
    /// If set, the `mix_hash` of each block is keccak256(parent hash, this number). If None, all blocks have the
    /// `mix_hash` of the first block.
    pub randomness: Option<u32>,
    /// Total difficulty of the parent of the first block.
    pub total_difficulty: U256,
    pub rewards: Vec<(Address, U256)>,
}

impl EmptyRun {
    /// Execute the blocks. `env` belongs to the first block. Returns the records to commit, oldest first. If the
    /// requests of a block (EIP-7685) differ from those of the first header, the records end before the run of up to
    /// `MAX_RUN` blocks that contains this block.
    ///
    /// Only every `MAX_RUN`th record holds preimages, so the records must be committed together.
    pub fn execute(
        mut self,
        parent: &StateData,
        env: &BlockEnv,
        body: &Arc<BodyData>,
    ) -> Result<Vec<Arc<BlockRecord>>> {
        let (mut state, mut env) = (parent.clone(), env.clone());
        let mut records = Vec::with_capacity(self.count);
        while records.len() < self.count {
            let share = MAX_RUN.min(self.count - records.len());
            env.follow(&self.first);
            let complete = records.len();
            match self.execute_run(share, &state, &env, body, &mut records)? {
                Some(next) => state = next,
                None => {
                    records.truncate(complete);
                    break;
                }
            }
        }
        Ok(records)
    }

    /// Execute `count` blocks. `self.first` is the header of the first block; afterwards it is the header of the block
    /// after these blocks. Returns the state after these blocks. Returns None if the requests of a block differ from
    /// the header; then the records of this call are incomplete.
    fn execute_run(
        &mut self,
        count: usize,
        parent: &StateData,
        env: &BlockEnv,
        body: &Arc<BodyData>,
        records: &mut Vec<Arc<BlockRecord>>,
    ) -> Result<Option<StateData>> {
        let mut run = Run::start(parent, env, false)?;
        let (mut parent_root, mut left) = (parent.root, count);
        loop {
            if run.end_empty(&self.rewards)? != self.first.requests_hash {
                return Ok(None);
            }
            left -= 1;
            if left == 0 {
                let (effects, state) = run.into_effects()?;
                self.push(Effects { parent_root, ..effects }, body, records);
                return Ok(Some(state));
            }
            let state_root = run.trie().hash();
            let effects = Effects {
                parent_root,
                state_root,
                receipts: Vec::new(),
                blob_price: env.blob_price(),
                trie: run.trie().clone(),
                weight: parent.weight,
                preimages: Vec::new(),
                codes: Vec::new(),
            };
            self.push(effects, body, records);
            parent_root = state_root;
            run.begin_empty(&self.first)?;
        }
    }

    /// Add the record of the block with header `first`, and advance `first` to the header of the next block.
    fn push(&mut self, effects: Effects, body: &Arc<BodyData>, records: &mut Vec<Arc<BlockRecord>>) {
        let header = &mut self.first;
        header.state_root = effects.state_root;
        self.total_difficulty = self.total_difficulty.wrapping_add(header.difficulty);
        let mut encoded = Vec::with_capacity(header.length());
        header.encode(&mut encoded);
        let hash = keccak256(&encoded);
        records.push(Arc::new(BlockRecord {
            hash,
            number: header.number,
            header: Bytes::from(encoded),
            body: body.clone(),
            effects: Arc::new(effects),
            total_difficulty: self.total_difficulty,
        }));
        header.parent_hash = hash;
        header.number += 1;
        header.timestamp = header.timestamp.saturating_add(self.step);
        if let Some(branch) = self.randomness {
            header.mix_hash = randomness(hash, branch);
        }
    }
}

fn randomness(parent: B256, branch: u32) -> B256 {
    let mut seed = [0; 36];
    seed[..32].copy_from_slice(parent.as_slice());
    seed[32..].copy_from_slice(&branch.to_be_bytes());
    keccak256(seed)
}

impl Run {
    /// Begin the next empty block on the state after the previous block.
    fn begin_empty(&mut self, header: &Header) -> Result<()> {
        self.progress.env.follow(header);
        self.evm.ctx.block = self.progress.env.block();
        self.begin()
    }

    /// End an empty block. Returns the hash of its requests; None before Prague.
    fn end_empty(&mut self, rewards: &[(Address, U256)]) -> Result<Option<B256>> {
        let requests = self.end(&[], rewards)?;
        Ok(requests.map(|requests| requests.requests_hash()))
    }

    /// Return the state trie after the last completed block.
    fn trie(&self) -> &Trie<Account> {
        &self.progress.trie
    }

    /// Return the changes of all blocks of this sequence, and the state after the last block.
    fn into_effects(self) -> Result<(Effects, StateData)> {
        let Progress { env, parent, trie, .. } = self.progress;
        let db = self.evm.ctx.journaled_state.database;
        settled(db, &parent, trie, Vec::new(), env.blob_price())
    }
}
