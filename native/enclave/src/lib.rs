//! What the enclave computes. The ciphers come from the crates of their field; what is ours is the form of a record.
//!
//! | file        | question it answers                                                   |
//! |-------------|-----------------------------------------------------------------------|
//! | record.rs   | what of a sealed payload is stored and sent, and under which key       |
//! | keyring.rs  | how is a payload sealed for its participants, how is it opened         |
//! | claims.rs   | does a private transaction belong to the sender and group of its record |
//! | groups.rs   | what is the id of a group                                             |
//! | points.rs   | which public keys are sound                                           |
//! | password.rs | how does a private key lie behind a password                          |

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
