//! Computations of the enclave. External crates provide the ciphers. The format of sealed records is Ophion's own.
//!
//! | file                  | content                                                                 |
//! |-----------------------|-------------------------------------------------------------------------|
//! | sealed_payload.rs     | format of a sealed payload, and its key                                 |
//! | payload_encryption.rs | seals payloads for their participants and opens them                    |
//! | payload_claims.rs     | checks that a transaction belongs to the sender and group of its record |
//! | group_ids.rs          | ids of groups                                                           |
//! | public_keys.rs        | validates public keys                                                   |
//! | password.rs           | encrypts private keys with a password                                   |

mod group_ids;
mod password;
mod payload_claims;
mod payload_encryption;
mod public_keys;
mod sealed_payload;

pub use group_ids::group_id;
pub use password::{Costs, lock, unlock};
pub use payload_claims::{agrees, gas_limit, payload_gas_limit};
pub use payload_encryption::{Keyring, RANDOMNESS, public_of};
pub use public_keys::is_sound;
pub use sealed_payload::{Key, MAX_BOXES, Sealed, SealedBox, key_of};
