//! Returns freed memory of the glibc allocator to the system. Does nothing with other allocators.
//!
//! Each thread has a heap. glibc releases the end of a heap when a large block in it is freed, but an idle thread frees
//! no blocks. `note_heap` allocates a small block in the heap of the calling thread and registers it. `give_back`
//! enlarges and shrinks every registered block. This frees a large block in each heap, so glibc trims all of these
//! heaps. Any thread may call `give_back`.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    use std::ffi::{c_int, c_void};
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::sync::{Mutex, PoisonError};

    const SMALL: usize = 64;
    /// Size in bytes of a large block. When a block above 64 KiB is freed, glibc trims the end of the heap.
    const LARGE: usize = 256 << 10;
    /// Number of free bytes that stay at the end of a heap after trimming.
    const MIN_TRIM_BYTES: c_int = 128 << 10;
    const MAX_HEAPS: usize = 1024;

    static TRIM_BYTES: AtomicI32 = AtomicI32::new(MIN_TRIM_BYTES);
    static HEAPS: Mutex<Vec<Piece>> = Mutex::new(Vec::new());

    struct Piece(NonNull<c_void>);

    // SAFETY: access needs the lock of `HEAPS`, and the allocator is thread-safe.
    unsafe impl Send for Piece {}

    pub fn keep(max_bytes: usize) {
        let max = c_int::try_from(max_bytes).unwrap_or(c_int::MAX);
        TRIM_BYTES.store(max, Ordering::Relaxed);
        // SAFETY: the function takes and returns plain integers.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, max);
            libc::mallopt(libc::M_MMAP_THRESHOLD, max);
        }
    }

    pub fn note_heap() {
        let mut heaps = HEAPS.lock().unwrap_or_else(PoisonError::into_inner);
        if heaps.len() < MAX_HEAPS {
            // SAFETY: this new block is owned by `HEAPS` and never freed.
            heaps.extend(NonNull::new(unsafe { libc::malloc(SMALL) }).map(Piece));
        }
    }

    pub fn give_back() {
        let mut heaps = HEAPS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: each block comes from this allocator and is owned by `HEAPS`. The result of `realloc` replaces the
        // block; if `realloc` fails, the old block stays.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, MIN_TRIM_BYTES);
            for piece in heaps.iter_mut() {
                for size in [LARGE, SMALL] {
                    piece.0 = NonNull::new(libc::realloc(piece.0.as_ptr(), size)).unwrap_or(piece.0);
                }
            }
            libc::malloc_trim(0);
            libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_BYTES.load(Ordering::Relaxed));
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub fn keep(_max_bytes: usize) {}

    pub fn note_heap() {}

    pub fn give_back() {}
}

/// Let each allocator heap hold up to `max_bytes` of freed memory. Memory above this limit returns to the system at
/// once.
pub fn keep(max_bytes: usize) {
    allocator::keep(max_bytes);
}

/// Register the allocator heap of the calling thread, so that `give_back` trims it. Only long-lived threads need this.
pub fn note_heap() {
    allocator::note_heap();
}

/// Return free memory of all registered heaps to the system.
pub fn give_back() {
    allocator::give_back();
}
