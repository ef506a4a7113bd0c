//! Which calls may be tried where others wait.
//!
//! A function of a contract that returned soon is expected to do so again. One that took long is not tried. Of all others
//! nobody knows, and anybody can make up as many as he likes: tries that come to nothing have a small share of the time,
//! and once it is used up only what is known to be light is tried.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use alloy_primitives::Address;

/// So many functions of each kind are remembered; then it is forgotten what was known.
const MOST: usize = 4096;
/// Share of the time that may go into tries that come to nothing.
const SHARE: f64 = 0.05;
/// As much at once.
const MAX_S: f64 = 0.1;
/// What did not return within this time is not light.
const SOON_S: f64 = 0.001;

/// The part of a call's input that names a function of its contract; a shorter input is filled up.
type Selector = [u8; 4];

type Function = (Address, Selector);

fn function(to: Address, input: &[u8]) -> Function {
    let mut name = Selector::default();
    let size = input.len().min(name.len());
    name[..size].copy_from_slice(&input[..size]);
    (to, name)
}

/// What became of calls, by the function that they called.
#[derive(Default)]
pub struct CallCostCache {
    known: Mutex<Known>,
}

struct Known {
    light: HashSet<Function>,
    heavy: HashSet<Function>,
    /// Time that tries may still take in vain, as of a moment.
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

    /// A call ended, here or elsewhere, and this is what it turned out to be.
    pub fn note(&self, to: &Address, input: &[u8], is_heavy: bool) {
        let (mut known, function) = (self.known(), function(*to, input));
        let Known { light, heavy, .. } = &mut *known;
        let (joined, left) = if is_heavy { (heavy, light) } else { (light, heavy) };
        left.remove(&function);
        if joined.len() >= MOST {
            joined.clear();
        }
        joined.insert(function);
    }

    /// A call was tried in vain: it took so long.
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
        let tried = CallCostCache::default();
        assert!(tried.may_try(&CONTRACT, &[1, 2, 3, 4]), "nothing is known of it");
        tried.note(&CONTRACT, &[1, 2, 3, 4, 5], true);
        tried.note(&CONTRACT, &[9], true);
        for input in [&[1, 2, 3, 4, 6][..], &[9]] {
            assert!(tried.is_heavy(&CONTRACT, input) && !tried.may_try(&CONTRACT, input));
        }
        assert!(!tried.is_heavy(&CONTRACT, &[1, 2, 3, 5]) && !tried.is_heavy(&Address::ZERO, &[1, 2, 3, 4]));
        tried.note(&CONTRACT, &[1, 2, 3, 4], false);
        assert!(!tried.is_heavy(&CONTRACT, &[1, 2, 3, 4]) && tried.is_light(&CONTRACT, &[1, 2, 3, 4]));
        tried.note(&CONTRACT, &[7; 40], false);
        assert!(tried.is_light(&CONTRACT, &[7; 4]));
    }

    #[test]
    fn tries_in_vain_leave_time_for_what_is_known_to_be_light_alone() {
        let tried = CallCostCache::default();
        tried.note(&CONTRACT, b"good", false);
        tried.note(&CONTRACT, b"both", false);
        for number in 0..100_000_u32 {
            if !tried.may_try(&CONTRACT, &number.to_be_bytes()) {
                assert!((30..60).contains(&number), "{number} of two milliseconds each");
                break;
            }
            tried.wasted(&CONTRACT, &number.to_be_bytes(), 0.002);
        }
        tried.wasted(&CONTRACT, b"both", 0.002);
        tried.wasted(&CONTRACT, b"good", 0.000_01);
        assert!(tried.may_try(&CONTRACT, b"good"));
        assert!(!tried.may_try(&CONTRACT, b"both"), "it was light and is not");
        assert!(!tried.may_try(&CONTRACT, b"else"));
        tried.known().left_s = 1e-9;
        assert!(tried.may_try(&CONTRACT, b"else"), "time passes");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let tried = CallCostCache::default();
        for number in 0..10_000_u32 {
            tried.note(&CONTRACT, &number.to_be_bytes(), number % 2 == 0);
        }
        let known = tried.known();
        assert!(known.light.len() <= MOST && known.heavy.len() <= MOST);
    }
}
