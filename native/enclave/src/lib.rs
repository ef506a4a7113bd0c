//! Computations of the enclave. Crates provide the ciphers; the record format is Ophion's own.
//!
//! | file              | content                                                          |
//! |-------------------|------------------------------------------------------------------|
//! | record.rs         | format of a sealed payload, and its key                          |
//! | keyring.rs        | seals payloads for their participants and opens them             |
//! | payload_claims.rs | checks that a transaction belongs to the sender and group of its record |
//! | groups.rs         | ids of groups                                                    |
//! | public_keys.rs    | validates public keys                                            |
//! | password.rs       | encrypts private keys with a password                            |

mod groups;
mod keyring;
mod password;
mod payload_claims;
mod public_keys;
mod record;

pub use groups::group_id;
pub use keyring::{Keyring, RANDOMNESS, public_of};
pub use password::{Costs, lock, unlock};
pub use payload_claims::{agrees, gas_limit, payload_gas_limit};
pub use public_keys::is_sound;
pub use record::{Key, MAX_BOXES, Sealed, SealedBox, key_of};
