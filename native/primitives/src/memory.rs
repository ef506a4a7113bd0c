//! What the allocator of the process keeps of what was freed. Only that of glibc can be told; elsewhere nothing happens.
//!
//! Each thread has a heap of its own, and what lies free at the end of a heap goes back when somebody frees something
//! large in it. A thread that sleeps frees nothing. So whoever runs a thread notes its heap (`note_heap`), by a small
//! piece of memory in it: making that large and small again, which any thread may do, frees something large there.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    use std::ffi::{c_int, c_void};
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::sync::{Mutex, PoisonError};

    const SMALL: usize = 64;
    /// More than what the allocator looks at the end of a heap for (64 KiB).
    const LARGE: usize = 256 << 10;
    /// What stays at the end of a heap when everything is given back.
    const LEAST: c_int = 128 << 10;
    const MAX_HEAPS: usize = 1024;

    static KEPT: AtomicI32 = AtomicI32::new(LEAST);
    static HEAPS: Mutex<Vec<Piece>> = Mutex::new(Vec::new());

    struct Piece(NonNull<c_void>);

    // SAFETY: a piece is touched by whoever has the lock of `HEAPS`, and the allocator lets any thread do that.
    unsafe impl Send for Piece {}

    pub fn keep(max_bytes: usize) {
        let most = c_int::try_from(max_bytes).unwrap_or(c_int::MAX);
        KEPT.store(most, Ordering::Relaxed);
        // SAFETY: numbers in, a number out.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, most);
            libc::mallopt(libc::M_MMAP_THRESHOLD, most);
        }
    }

    pub fn note_heap() {
        let mut heaps = HEAPS.lock().unwrap_or_else(PoisonError::into_inner);
        if heaps.len() < MAX_HEAPS {
            // SAFETY: a new piece, which nobody but `HEAPS` knows and which is never freed.
            heaps.extend(NonNull::new(unsafe { libc::malloc(SMALL) }).map(Piece));
        }
    }

    pub fn give_back() {
        let mut heaps = HEAPS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: numbers in, a number out; each piece was made by this allocator, is known to nobody else, and what
        // `realloc` answers takes its place. Where there is no memory for it the piece stays as it was.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, LEAST);
            for piece in heaps.iter_mut() {
                for size in [LARGE, SMALL] {
                    piece.0 = NonNull::new(libc::realloc(piece.0.as_ptr(), size)).unwrap_or(piece.0);
                }
            }
            libc::malloc_trim(0);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT.load(Ordering::Relaxed));
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub fn keep(_max_bytes: usize) {}

    pub fn note_heap() {}

    pub fn give_back() {}
}

/// Let each heap keep so much of what was freed; what is larger goes back at once.
pub fn keep(max_bytes: usize) {
    allocator::keep(max_bytes);
}

/// Called by a thread that is there to stay.
pub fn note_heap() {
    allocator::note_heap();
}

/// Return to the system what nobody uses.
pub fn give_back() {
    allocator::give_back();
}
