//! Transactions, bodies, receipts and the sender cache.

pub mod bft_header;
pub mod body;
pub mod decoder;
pub mod ordered_root;
pub mod receipts;
pub mod received_receipts;
pub mod rlp_item;
pub mod sender_cache;
pub mod stored_decoding;
