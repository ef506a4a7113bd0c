//! What ends long work early: its deadline, or that nobody waits for it any more.
//!
//! Searches ask between two steps (`is_over`); calls are watched while they run (execution, evm/watch.rs).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// Set by whoever gave this thread its work.
    static GIVEN_UP: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
}

/// Lets another thread end what this one computes.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// From here on the work of this thread ends soon after `cancel`.
    pub fn enter(&self) {
        GIVEN_UP.set(Some(self.clone()));
    }

    /// What this thread does from now on is not given up by anybody.
    pub fn leave() {
        GIVEN_UP.set(None);
    }
}

/// Whether work with this deadline shall stop.
pub fn is_over(deadline: Instant) -> bool {
    is_given_up() || Instant::now() >= deadline
}

fn is_given_up() -> bool {
    GIVEN_UP.with_borrow(|given_up| given_up.as_ref().is_some_and(|flag| flag.0.load(Ordering::Relaxed)))
}

/// The moment `seconds` from now; a time that no clock reaches for anything absurd.
pub fn after(seconds: f64) -> Instant {
    let bounded = if seconds.is_finite() { seconds.clamp(0.0, 86_400.0) } else { 86_400.0 };
    Instant::now() + Duration::from_secs_f64(bounded)
}
