//! Decides which calls (eth_call) may run on the event loop.
//!
//! A contract function that returned quickly is light and may run again on the event loop. A slow function is heavy and
//! runs in a worker thread. A failed attempt is a call that ran on the event loop and must run again, for example
//! because it timed out. Clients can call any number of unknown functions, so all failed attempts share a small time
//! budget. When the budget is used up, only functions known to be light run on the event loop.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use alloy_primitives::Address;

/// Maximum number of contract functions in each of the two tables, light and heavy. A full table is cleared.
const MAX_FUNCTIONS: usize = 4096;
/// Maximum fraction of the event loop's time for failed attempts.
const SHARE: f64 = 0.05;
/// Maximum unused time budget in seconds for failed attempts.
const MAX_S: f64 = 0.1;
/// Duration in seconds of a failed attempt above which the contract function is no longer light.
const SOON_S: f64 = 0.001;

/// Selector of a contract function; an input shorter than four bytes is padded.
type Selector = [u8; 4];

type Function = (Address, Selector);

fn function(to: Address, input: &[u8]) -> Function {
    let mut name = Selector::default();
    let size = input.len().min(name.len());
    name[..size].copy_from_slice(&input[..size]);
    (to, name)
}

/// Contract functions known to be light or heavy, by contract address and selector.
#[derive(Default)]
pub struct CallCostCache {
    known: Mutex<Known>,
}

struct Known {
    light: HashSet<Function>,
    heavy: HashSet<Function>,
    /// Remaining time budget for failed attempts in seconds, at the time `as_of`.
    left_s: f64,
    as_of: Instant,
}

impl Default for Known {
    fn default() -> Self {
        Known { light: HashSet::new(), heavy: HashSet::new(), left_s: MAX_S, as_of: Instant::now() }
    }
}

impl CallCostCache {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_light(&self, to: &Address, input: &[u8]) -> bool {
        self.known().light.contains(&function(*to, input))
    }

    pub fn is_heavy(&self, to: &Address, input: &[u8]) -> bool {
        self.known().heavy.contains(&function(*to, input))
    }

    pub fn may_try(&self, to: &Address, input: &[u8]) -> bool {
        let (mut known, function) = (self.known(), function(*to, input));
        known.light.contains(&function) || (!known.heavy.contains(&function) && known.time_left() > 0.0)
    }

    /// Record whether a finished call was heavy (too slow for the event loop).
    pub fn note(&self, to: &Address, input: &[u8], is_heavy: bool) {
        let (mut known, function) = (self.known(), function(*to, input));
        let Known { light, heavy, .. } = &mut *known;
        let (joined, left) = if is_heavy { (heavy, light) } else { (light, heavy) };
        left.remove(&function);
        if joined.len() >= MAX_FUNCTIONS {
            joined.clear();
        }
        joined.insert(function);
    }

    /// Record a failed attempt. Its duration reduces the time budget. After an attempt above `SOON_S`, the function is
    /// not known as light any more.
    pub fn wasted(&self, to: &Address, input: &[u8], took_s: f64) {
        let mut known = self.known();
        known.left_s = known.time_left() - took_s;
        if took_s > SOON_S {
            known.light.remove(&function(*to, input));
        }
    }
}

impl Known {
    fn time_left(&mut self) -> f64 {
        let now = Instant::now();
        self.left_s = (self.left_s + SHARE * (now - self.as_of).as_secs_f64()).min(MAX_S);
        self.as_of = now;
        self.left_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: Address = Address::with_last_byte(1);

    #[test]
    fn a_function_is_what_it_was_last_seen_to_be() {
        let costs = CallCostCache::default();
        assert!(costs.may_try(&CONTRACT, &[1, 2, 3, 4]), "nothing is known of it");
        costs.note(&CONTRACT, &[1, 2, 3, 4, 5], true);
        costs.note(&CONTRACT, &[9], true);
        for input in [&[1, 2, 3, 4, 6][..], &[9]] {
            assert!(costs.is_heavy(&CONTRACT, input) && !costs.may_try(&CONTRACT, input));
        }
        assert!(!costs.is_heavy(&CONTRACT, &[1, 2, 3, 5]) && !costs.is_heavy(&Address::ZERO, &[1, 2, 3, 4]));
        costs.note(&CONTRACT, &[1, 2, 3, 4], false);
        assert!(!costs.is_heavy(&CONTRACT, &[1, 2, 3, 4]) && costs.is_light(&CONTRACT, &[1, 2, 3, 4]));
        costs.note(&CONTRACT, &[7; 40], false);
        assert!(costs.is_light(&CONTRACT, &[7; 4]));
    }

    #[test]
    fn tries_in_vain_leave_time_for_what_is_known_to_be_light_alone() {
        let costs = CallCostCache::default();
        costs.note(&CONTRACT, b"good", false);
        costs.note(&CONTRACT, b"both", false);
        for number in 0..100_000_u32 {
            if !costs.may_try(&CONTRACT, &number.to_be_bytes()) {
                assert!((30..60).contains(&number), "{number} of two milliseconds each");
                break;
            }
            costs.wasted(&CONTRACT, &number.to_be_bytes(), 0.002);
        }
        costs.wasted(&CONTRACT, b"both", 0.002);
        costs.wasted(&CONTRACT, b"good", 0.000_01);
        assert!(costs.may_try(&CONTRACT, b"good"));
        assert!(!costs.may_try(&CONTRACT, b"both"), "it was light and is not");
        assert!(!costs.may_try(&CONTRACT, b"else"));
        costs.known().left_s = 1e-9;
        assert!(costs.may_try(&CONTRACT, b"else"), "time passes");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let costs = CallCostCache::default();
        for number in 0..10_000_u32 {
            costs.note(&CONTRACT, &number.to_be_bytes(), number % 2 == 0);
        }
        let known = costs.known();
        assert!(known.light.len() <= MAX_FUNCTIONS && known.heavy.len() <= MAX_FUNCTIONS);
    }
}
