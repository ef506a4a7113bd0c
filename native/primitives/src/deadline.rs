//! Deadlines and cancellation of long work.
//!
//! Searches poll `is_over`. The EVM checks deadlines while a call runs (execution, evm/deadline_watch.rs).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// Cancellation to which the current job of this thread is attached.
    static GIVEN_UP: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
}

/// Cancels the work of other threads.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Attach this thread: from now on, `cancel` stops the work of the thread.
    pub fn enter(&self) {
        GIVEN_UP.set(Some(self.clone()));
    }

    /// Detach this thread from any cancellation.
    pub fn leave() {
        GIVEN_UP.set(None);
    }
}

/// Return whether work with this deadline must stop.
pub fn is_over(deadline: Instant) -> bool {
    is_given_up() || Instant::now() >= deadline
}

fn is_given_up() -> bool {
    GIVEN_UP.with_borrow(|given_up| given_up.as_ref().is_some_and(|flag| flag.0.load(Ordering::Relaxed)))
}

/// Return the instant `seconds` from now; for huge values, an instant in the far future.
pub fn after(seconds: f64) -> Instant {
    Instant::now() + bounded(seconds)
}

/// Return a time limit of at most a day.
pub fn bounded(seconds: f64) -> Duration {
    Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, 86_400.0) } else { 86_400.0 })
}
