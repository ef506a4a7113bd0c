//! Cache of senders by transaction hash. A node sees a transaction several times: in gossip, pool, proposal and block.
//! A recovery takes fifty times as long as a lookup.
//!
//! The cache has a fixed size and is four-way set-associative. In a full set, the oldest entry is evicted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use alloy_primitives::{Address, B256};

use ophion_primitives::errors::Result;

/// Number of cache sets. The cache holds 65,536 senders in 3.6 MB, allocated with the first transaction.
const SETS: usize = 1 << 14;
const PLACES: usize = 4;

#[derive(Default)]
struct Set {
    places: [(B256, Address); PLACES],
    oldest: usize,
}

struct Senders {
    sets: Box<[Mutex<Set>]>,
}

impl Senders {
    fn new(sets: usize) -> Self {
        Senders { sets: (0..sets).map(|_| Mutex::default()).collect() }
    }

    /// Return the cache set for a transaction hash. An attacker with colliding hashes evicts only the entries of one
    /// set.
    fn set(&self, hash: &B256) -> std::sync::MutexGuard<'_, Set> {
        let number = u64::from_be_bytes(*hash.first_chunk().expect("a hash has 32 bytes")) as usize;
        self.sets[number % self.sets.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, hash: &B256) -> Option<Address> {
        let set = self.set(hash);
        set.places.iter().find(|(known, _)| known == hash).map(|(_, sender)| *sender)
    }

    fn put(&self, hash: B256, sender: Address) {
        let mut set = self.set(&hash);
        if set.places.iter().all(|(known, _)| *known != hash) {
            let oldest = set.oldest;
            set.places[oldest] = (hash, sender);
            set.oldest = (oldest + 1) % PLACES;
        }
    }
}

static SENDERS: LazyLock<Senders> = LazyLock::new(|| Senders::new(SETS));
static RECOVERED: AtomicU64 = AtomicU64::new(0);

/// Return the sender of a transaction from the cache, or compute it with `recover`.
pub fn sender_of(hash: B256, recover: impl FnOnce() -> Result<Address>) -> Result<Address> {
    if let Some(sender) = SENDERS.get(&hash) {
        return Ok(sender);
    }
    recover().inspect(|sender| remember(hash, *sender))
}

/// Store the sender of an impersonated transaction, because its signature does not give the sender.
pub fn keep(hash: B256, sender: Address) {
    SENDERS.put(hash, sender);
}

fn remember(hash: B256, sender: Address) {
    RECOVERED.fetch_add(1, Ordering::Relaxed);
    SENDERS.put(hash, sender);
}

/// Return the senders of many transactions. `recover` computes the senders that are not cached; it gets their indexes.
pub fn senders_of(hashes: &[B256], recover: impl FnOnce(&[usize]) -> Vec<Result<Address>>) -> Vec<Result<Address>> {
    let known: Vec<Option<Address>> = hashes.iter().map(|hash| SENDERS.get(hash)).collect();
    let unknown: Vec<usize> = (0..hashes.len()).filter(|place| known[*place].is_none()).collect();
    let mut recovered = recover(&unknown).into_iter();
    let sender = |(hash, known): (&B256, Option<Address>)| match known {
        Some(sender) => Ok(sender),
        None => recovered.next().expect("one for each").inspect(|sender| remember(*hash, *sender)),
    };
    hashes.iter().zip(known).map(sender).collect()
}

/// Return the number of cache misses: how many senders were recovered.
pub fn recovered() -> u64 {
    RECOVERED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use ophion_primitives::errors::Error;

    use super::*;

    fn hash(number: u64) -> B256 {
        keccak256(number.to_be_bytes())
    }

    fn sender(number: u64) -> Address {
        Address::left_padding_from(&number.to_be_bytes())
    }

    #[test]
    fn the_recent_ones_are_known() {
        let senders = Senders::new(SETS);
        for number in 0..500_000 {
            senders.put(hash(number), sender(number));
        }
        let known = |from: u64| {
            let found = (from..from + 10_000).filter_map(|number| Some((number, senders.get(&hash(number))?)));
            found.inspect(|(number, found)| assert_eq!(*found, sender(*number))).count()
        };
        assert!(known(490_000) > 9_990, "{} of the last 10,000", known(490_000));
        assert!(known(0) < 10, "{} of the first 10,000", known(0));
    }

    #[test]
    fn a_set_holds_four_and_forgets_the_oldest() {
        let senders = Senders::new(1);
        for number in [1, 2, 3, 4, 1, 5] {
            senders.put(hash(number), sender(number));
        }
        assert_eq!(senders.get(&hash(1)), None, "put twice, held once");
        assert_eq!(
            [2, 3, 4, 5].map(|number| senders.get(&hash(number))),
            [2, 3, 4, 5].map(|number| Some(sender(number)))
        );
    }

    #[test]
    fn what_is_known_is_not_worked_out_again() {
        let hash = hash(u64::MAX);
        let fails = || Err(Error::Decode("no signature".into()));
        assert!(sender_of(hash, fails).is_err(), "a failure is not remembered");
        assert_eq!(sender_of(hash, || Ok(sender(7))).unwrap(), sender(7));
        assert_eq!(sender_of(hash, fails).unwrap(), sender(7));
    }

    #[test]
    fn of_many_only_the_unknown_are_worked_out() {
        let hashes = [1u64, 2, 3, 4].map(|number| keccak256((number << 32).to_be_bytes()));
        sender_of(hashes[1], || Ok(sender(1))).unwrap();
        let found = senders_of(&hashes, |unknown| {
            assert_eq!(unknown, [0, 2, 3]);
            vec![Ok(sender(10)), Err(Error::Decode("no signature".into())), Ok(sender(13))]
        });
        assert_eq!(
            found.into_iter().map(Result::ok).collect::<Vec<_>>(),
            [Some(sender(10)), Some(sender(1)), None, Some(sender(13))]
        );
        senders_of(&hashes, |unknown| {
            assert_eq!(unknown, [2], "a failure is not remembered");
            vec![Ok(sender(12))]
        });
    }
}
