//! Values in the leaves of tries: accounts and storage slots.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use alloy_rlp::{Encodable, Header};
use ophion_primitives::bytes::{Reader, put_bytes, put_varint};
use ophion_primitives::errors::{Error, Result};

use super::codec::save_root;
use super::node::{Child, Trie, Value};
use super::node_storage::Saver;

/// Value of a storage slot. A trie has no entry for a slot with value zero.
#[derive(Clone, Copy)]
pub struct Slot(pub U256);

impl Value for Slot {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(trimmed(&self.0.to_be_bytes()));
    }

    fn stored_length(&self) -> usize {
        self.0.byte_len()
    }

    fn restore(bytes: &[u8]) -> Result<Self> {
        U256::try_from_be_slice(bytes).map(Slot).ok_or_else(|| Error::damaged("a storage value is too long"))
    }

    fn save(&self, _: Option<u64>, _: &mut dyn Saver) -> Result<()> {
        Ok(())
    }
}

/// An account of the state trie, with its storage trie.
#[derive(Clone)]
pub struct Account {
    pub nonce: u64,
    pub balance: U256,
    pub code_hash: B256,
    pub storage: Trie<Slot>,
}

impl Default for Account {
    fn default() -> Self {
        Account { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY, storage: Trie::default() }
    }
}

impl Value for Account {
    fn encode(&self, out: &mut Vec<u8>) {
        let root = self.storage.hash();
        let payload = self.nonce.length() + self.balance.length() + 33 + 33;
        Header { list: true, payload_length: payload }.encode(out);
        self.nonce.encode(out);
        self.balance.encode(out);
        root.encode(out);
        self.code_hash.encode(out);
    }

    /// Append the stored form: nonce | balance | flags (1 code, 2 storage) | code hash? | root hash? and id (8)?
    fn store(&self, out: &mut Vec<u8>) {
        let flags = if self.storage.root.is_some() { HAS_STORAGE } else { 0 };
        store_head(self.nonce, &self.balance, &self.code_hash, flags, out);
        if let Some(root) = &self.storage.root {
            out.extend_from_slice(root.root_hash().as_slice());
            out.extend_from_slice(&root.id().to_be_bytes());
        }
    }

    fn stored_length(&self) -> usize {
        let nonce = (64 - self.nonce.leading_zeros()).div_ceil(7).max(1) as usize;
        let code = if self.code_hash == KECCAK256_EMPTY { 0 } else { 32 };
        let storage = if self.storage.root.is_none() { 0 } else { 40 };
        nonce + 1 + self.balance.byte_len() + 1 + code + storage
    }

    fn restore(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader(bytes);
        let (nonce, balance, code_hash, flags) = restore_head(&mut reader)?;
        let root = if flags & HAS_STORAGE != 0 {
            let hash = B256::from_slice(reader.take(32)?);
            let id = u64::from_be_bytes(reader.take(8)?.try_into().expect("eight bytes"));
            Some(Child::Stored { hash, id })
        } else {
            None
        };
        Ok(Account { nonce, balance, code_hash, storage: Trie { root } })
    }

    fn evict(&mut self, last: u64) {
        self.storage.evict(last);
    }

    fn save(&self, before: Option<u64>, saver: &mut dyn Saver) -> Result<()> {
        self.storage.root.as_ref().map_or(Ok(()), |root| save_root(root, before, saver).map(drop))
    }

    fn below(&self) -> Option<u64> {
        self.storage.root.as_ref().map(Child::id)
    }
}

const HAS_CODE: u8 = 1;
const HAS_STORAGE: u8 = 2;
/// Flag of a record in the table `accounts`: the address follows the account.
const HAS_ADDRESS: u8 = 4;

/// Return a number without its leading zeros.
fn trimmed(number: &[u8; 32]) -> &[u8] {
    &number[number.iter().take_while(|byte| **byte == 0).count()..]
}

fn store_head(nonce: u64, balance: &U256, code_hash: &B256, flags: u8, out: &mut Vec<u8>) {
    let has_code = *code_hash != KECCAK256_EMPTY;
    put_varint(nonce, out);
    put_bytes(trimmed(&balance.to_be_bytes()), out);
    out.push(flags | if has_code { HAS_CODE } else { 0 });
    if has_code {
        out.extend_from_slice(code_hash.as_slice());
    }
}

fn restore_head(reader: &mut Reader<'_>) -> Result<(u64, U256, B256, u8)> {
    let nonce = reader.varint()?;
    let balance = U256::try_from_be_slice(reader.bytes()?)
        .ok_or_else(|| Error::damaged("the balance of an account is too long"))?;
    let flags = reader.byte()?;
    let code_hash = if flags & HAS_CODE != 0 { B256::from_slice(reader.take(32)?) } else { KECCAK256_EMPTY };
    Ok((nonce, balance, code_hash, flags))
}

/// An account with its storage root instead of its storage trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatAccount {
    pub nonce: u64,
    pub balance: U256,
    pub code_hash: B256,
    pub storage_root: B256,
}

impl FlatAccount {
    /// Return the address in a record of the table `accounts`, if stored. Only databases before layout 5 have such
    /// records.
    pub fn restore_address(bytes: &[u8]) -> Result<Option<Address>> {
        let mut reader = Reader(bytes);
        let (_, _, _, flags) = restore_head(&mut reader)?;
        if flags & HAS_STORAGE != 0 {
            reader.take(32)?;
        }
        Ok(if flags & HAS_ADDRESS != 0 { Some(Address::from_slice(reader.take(20)?)) } else { None })
    }
}

impl From<&Account> for FlatAccount {
    fn from(account: &Account) -> Self {
        FlatAccount {
            nonce: account.nonce,
            balance: account.balance,
            code_hash: account.code_hash,
            storage_root: account.storage.hash(),
        }
    }
}
