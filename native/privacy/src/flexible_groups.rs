//! Flexible groups: a contract in the group's own state holds the member list (privacy.md 4.5).
//!
//! A group starts with two contracts: the proxy, which members call, and the management contract behind the proxy.
//! Nodes read the storage slots of the management contract, which are the same at every member. A payload names the
//! version of the member list for which it was made, and must be sealed for that whole list. So a sender cannot leave
//! out a member. The version also makes all members decide alike about a transaction that was sent while the list
//! changed.

use std::sync::LazyLock;

use alloy_primitives::{Address, B256, Bytes, U256, address, hex, keccak256};
use alloy_rlp::{Decodable, Encodable, Header};
use ophion_execution::evm::database::{ExecDb, coded};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::state::View;
use ophion_storage::trie::EMPTY_ROOT;
use revm::state::AccountInfo;

use crate::transaction::{Unsigned, decode};

/// Address to which the marker transactions of flexible groups are sent.
pub const PRECOMPILE: Address = address!("000000000000000000000000000000000000007d");
/// Address of the proxy contract that members call.
pub const PROXY: Address = address!("000000000000000000000000000000000000007c");
/// Address of the management contract that holds the member list.
pub const MANAGEMENT: Address = address!("000000000000000000000000000000000000007b");

const MAX_MEMBERS: u64 = 256;
const ADD: [[u8; 4]; 2] = [hex!("965a25ef"), hex!("b4926e25")];
const OPEN_SLOT: U256 = U256::ZERO;
const VERSION_SLOT: U256 = U256::from_limbs([1, 0, 0, 0]);
const KEYS_SLOT: U256 = U256::from_limbs([2, 0, 0, 0]);

static COMPILED: &str = include_str!("../contracts/compiled.json");
static CODES: LazyLock<[Bytes; 2]> = LazyLock::new(|| ["GroupProxy", "GroupManagement"].map(runtime));

fn runtime(name: &str) -> Bytes {
    let text = COMPILED.split_once(&format!("\"{name}\"")).and_then(|(_, rest)| rest.split_once("\"runtime\": \"0x"));
    let digits = text.and_then(|(_, rest)| rest.split('"').next()).expect("the file is part of the program");
    hex::decode(digits).expect("the compiler wrote it").into()
}

/// Members of a flexible group, as its management contract lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// False while the group is locked. A locked group runs only management transactions.
    pub is_open: bool,
    pub version: B256,
    pub keys: Vec<B256>,
}

fn slot(view: &View, slot: U256) -> Result<U256> {
    view.storage(&MANAGEMENT, &keccak256(MANAGEMENT), &slot, &keccak256(slot.to_be_bytes::<32>()))
}

/// Read the member list of a group; None when the group does not exist yet.
pub fn membership(view: &View) -> Result<Option<Membership>> {
    if view.trie_account(&keccak256(MANAGEMENT))?.is_none() {
        return Ok(None);
    }
    let is_open = slot(view, OPEN_SLOT)?.byte(0) != 0;
    let version = slot(view, VERSION_SLOT)?.into();
    let count = slot(view, KEYS_SLOT)?.saturating_to::<u64>().min(MAX_MEMBERS);
    let first = U256::from_be_bytes(keccak256(KEYS_SLOT.to_be_bytes::<32>()).0);
    let keys =
        (0..count).map(|at| Ok(slot(view, first.wrapping_add(U256::from(at)))?.into())).collect::<Result<_>>()?;
    Ok(Some(Membership { is_open, version, keys }))
}

/// Check a private transaction of a flexible group. Returns whether it creates the group, or the reason why it cannot
/// run.
pub fn check(
    view: &View,
    fields: &Unsigned,
    version: &B256,
    recipients: &[Bytes],
) -> Result<std::result::Result<bool, String>> {
    let is_management = fields.to == Some(PROXY);
    let Some(found) = membership(view)? else {
        let adds = is_management && fields.data.get(..4).is_some_and(|name| ADD.iter().any(|add| add == name));
        // a flexible group can only be created without a state, because an existing state belongs to a group of another
        // type
        return Ok(match adds && view.root == EMPTY_ROOT && version.is_zero() {
            true => Ok(true),
            false => Err("its group does not exist".into()),
        });
    };
    if !found.keys.iter().any(|key| key[..] == fields.private_from[..]) {
        return Ok(Err("privateFrom is not a member of the group".into()));
    }
    if found.version != *version {
        return Ok(Err("the members of its group have changed since it was sent".into()));
    }
    if !found.is_open && !is_management {
        return Ok(Err("its group is locked".into()));
    }
    Ok(if covers(&found, recipients) { Ok(false) } else { Err(LEFT_OUT.into()) })
}

pub const LEFT_OUT: &str = "it was not sent to every member";

/// Return whether a payload was sealed for all members of the group.
pub fn covers(membership: &Membership, recipients: &[Bytes]) -> bool {
    membership.keys.iter().all(|key| recipients.iter().any(|one| one[..] == key[..]))
}

/// Install the proxy and the management contract in the state of a new flexible group.
pub fn found(db: &mut ExecDb) -> Result<()> {
    for (address, code) in [PROXY, MANAGEMENT].iter().zip(CODES.iter()) {
        let (code_hash, code) = coded(code.clone());
        db.set_info(address, Some(AccountInfo { nonce: 1, code_hash, code, ..AccountInfo::default() }))?;
    }
    db.set_storage(&PROXY, U256::ZERO, U256::from_be_slice(MANAGEMENT.as_slice()))
}

/// A payload of a flexible group: the transaction, and the version of the member list for which it was made.
pub struct Versioned {
    pub tx: Bytes,
    pub version: B256,
    pub group: B256,
}

pub fn encode_versioned(tx: &[u8], version: &B256) -> Vec<u8> {
    let is_list = tx.first().is_some_and(|first| *first >= 0xc0);
    let mut item = Vec::with_capacity(tx.len() + 4);
    // a typed transaction is not an RLP list, so wrap it in an RLP string
    if is_list {
        item.extend_from_slice(tx)
    } else {
        tx.encode(&mut item)
    }
    let mut out = Vec::with_capacity(item.len() + 48);
    Header { list: true, payload_length: item.len() + version.length() }.encode(&mut out);
    out.extend_from_slice(&item);
    version.encode(&mut out);
    out
}

pub fn decode_versioned(payload: &[u8]) -> Result<Versioned> {
    let wrong = |cause: alloy_rlp::Error| Error::Decode(format!("payload of a flexible group: {cause}"));
    let mut rest = payload;
    let mut items = Header::decode_bytes(&mut rest, true).map_err(wrong)?;
    let start = items;
    let header = Header::decode(&mut items).map_err(wrong)?;
    if !rest.is_empty() || items.len() < header.payload_length {
        return Err(wrong(alloy_rlp::Error::UnexpectedString));
    }
    let content = &items[..header.payload_length];
    items = &items[header.payload_length..];
    let tx = Bytes::copy_from_slice(if header.list { &start[..start.len() - items.len()] } else { content });
    let version = B256::decode(&mut items).map_err(wrong)?;
    if !items.is_empty() {
        return Err(wrong(alloy_rlp::Error::UnexpectedLength));
    }
    let group = decode(&tx)?.tx.fields.group();
    let group = group.ok_or_else(|| Error::Decode("payload of a flexible group: it names no group".into()))?;
    Ok(Versioned { tx, version, group })
}
