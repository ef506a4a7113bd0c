//! System contracts and the execution-layer requests they return (EIP-7685).

use alloy_primitives::{Address, B256, Bytes, address, b256};
use ophion_primitives::errors::{Error, Result};
use ophion_storage::chain::receipts::ReceiptData;

/// Contract of the beacon roots (EIP-4788).
pub const BEACON_ROOTS: Address = address!("000F3df6D732807Ef1319fB7B8bB8522d0Beac02");
/// Contract of the block hash history (EIP-2935).
pub const HISTORY_STORAGE: Address = address!("0000F90827F1C53a10cb7A02335B175320002935");

/// Topic of DepositEvent(bytes,bytes,bytes,bytes,bytes).
const DEPOSIT_EVENT: B256 = b256!("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5");

/// Layout of the five byte strings in the data of a deposit event: position of the word that holds the offset, the
/// offset, and the length of the byte string.
const DEPOSIT_FIELDS: [(usize, usize, usize); 5] =
    [(0, 160, 48), (32, 256, 32), (64, 320, 8), (96, 384, 96), (128, 512, 8)];
const DEPOSIT_EVENT_LENGTH: usize = 576;

/// Concatenate the deposits of a block (EIP-6110).
pub fn deposits(contract: Address, receipts: &[ReceiptData]) -> Result<Bytes> {
    let mut out = Vec::new();
    for log in receipts.iter().flat_map(|receipt| &receipt.logs) {
        if log.address != contract || log.data.topics().first() != Some(&DEPOSIT_EVENT) {
            continue;
        }
        let data = &log.data.data;
        let word = |at: usize| -> Option<usize> {
            let (high, low) = data.get(at..at + 32)?.split_at(24);
            high.iter().all(|byte| *byte == 0).then(|| usize::from_be_bytes(low.try_into().expect("eight bytes")))
        };
        let laid_out = data.len() == DEPOSIT_EVENT_LENGTH
            && DEPOSIT_FIELDS.iter().all(|(slot, at, length)| word(*slot) == Some(*at) && word(*at) == Some(*length));
        if !laid_out {
            return Err(Error::InvalidBody("a deposit event is not laid out as EIP-6110 says".into()));
        }
        for (_, at, length) in DEPOSIT_FIELDS {
            out.extend_from_slice(&data[at + 32..at + 32 + length]);
        }
    }
    Ok(out.into())
}
