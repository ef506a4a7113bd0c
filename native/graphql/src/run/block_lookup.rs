//! Looks up blocks: by hash, by canonical number, or the block whose state is needed.

use std::rc::Rc;

use alloy_primitives::B256;
use ophion_primitives::errors::Error;

use super::block_cache::Loaded;
use super::plan_execution::{Run, Stop, cost};

impl<'a> Run<'a> {
    pub fn block(&mut self, hash: B256) -> Result<Option<Rc<Loaded<'a>>>, Stop> {
        if let Some(block) = self.blocks.get(&hash) {
            return Ok(Some(block));
        }
        self.spend(cost::BLOCK)?;
        let Some(loaded) = Loaded::read(self.snapshot, hash)? else { return Ok(None) };
        let loaded = Rc::new(loaded);
        self.blocks.insert(loaded.clone());
        Ok(Some(loaded))
    }

    /// Return the canonical block with this number; None if the number is above the head.
    pub fn canonical(&mut self, number: u64) -> Result<Option<Rc<Loaded<'a>>>, Stop> {
        if number > self.head.1 {
            return Ok(None);
        }
        match self.snapshot.canonical_hash(number)? {
            Some(hash) => self.block(hash),
            None => Ok(None),
        }
    }

    pub fn head_block(&mut self) -> Result<Rc<Loaded<'a>>, Stop> {
        let found = self.block(self.head.0)?;
        found.ok_or_else(|| Stop::Broken(Error::damaged("the head has no header")))
    }

    /// Return the block whose state is used for accounts and calls. An ommer has no state, so the canonical block of
    /// the same number is used, or else the head.
    pub(super) fn with_state(&mut self, block: &Rc<Loaded<'a>>) -> Result<Rc<Loaded<'a>>, Stop> {
        if !block.is_ommer {
            return Ok(block.clone());
        }
        match self.canonical(block.header.number)? {
            Some(beside) => Ok(beside),
            None => self.head_block(),
        }
    }

    /// Return whether the block is stored but not announced as head yet.
    pub(super) fn is_ahead(&self, block: &Loaded<'_>) -> Result<bool, Error> {
        Ok(block.header.number > self.head.1 && self.snapshot.canonical_hash(block.header.number)? == Some(block.hash))
    }
}
