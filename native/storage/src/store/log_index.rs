//! Log index: blocks that may hold a log with an address or topic.

use crate::chain::receipts::ReceiptData;

/// Return an eight-byte hash of an address or topic, for the log index. Collisions are harmless: the index only finds
/// candidates, and the receipts decide.
pub fn fold(value: &[u8]) -> u64 {
    value.chunks(8).fold(0x9e37_79b9_7f4a_7c15, |state: u64, chunk| {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (state ^ u64::from_be_bytes(word)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

/// Return the log index hashes of all addresses and topics in a block's receipts.
pub fn folds(receipts: &[ReceiptData]) -> Vec<u64> {
    let mut found = Vec::new();
    for log in receipts.iter().flat_map(|receipt| &receipt.logs) {
        found.push(fold(log.address.as_slice()));
        found.extend(log.data.topics().iter().map(|topic| fold(topic.as_slice())));
    }
    found.sort_unstable();
    found.dedup();
    found
}
