//! `LazyZeros`: the system allocator, with large zeroed blocks that occupy memory only where they are used.
//!
//! Rust writes zeros over a zeroed block that needs more than the usual alignment, so a cache of 2 MiB occupies 2 MiB
//! before its first entry. Here the system replaces the inner pages of such a block by empty pages.

use std::alloc::{GlobalAlloc, Layout, System};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum size in bytes of a block that has empty pages instead of written zeros.
const LARGE: usize = 1 << 20;

/// Start and size of the newest block with empty pages: in this extension, the cache of hashes.
#[cfg(target_os = "linux")]
static NEWEST: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// Give memory to all pages of the newest block with empty pages. Otherwise, a page that is read before it is written
/// maps the empty page. Its first write then interrupts all processors on which a thread of this process runs, because
/// they must forget the empty page.
pub fn fill_newest_block() {
    #[cfg(target_os = "linux")]
    {
        let (start, size) = (NEWEST.0.load(Ordering::Acquire), NEWEST.1.load(Ordering::Relaxed));
        if start != 0 {
            // SAFETY: MADV_POPULATE_WRITE keeps the content of all pages, even if the block was freed. A kernel before
            // 5.14, and an address that is not mapped, give an error without any other effect.
            unsafe { libc::madvise(start as *mut libc::c_void, size, libc::MADV_POPULATE_WRITE) };
        }
    }
}

/// Allocator for `#[global_allocator]`.
pub struct LazyZeros;

// SAFETY: all blocks come from `System` and return to it with the same layout.
unsafe impl GlobalAlloc for LazyZeros {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `System.alloc` has the same contract as this function, and the caller keeps it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE || layout.align() <= size_of::<libc::max_align_t>() {
            // SAFETY: as in `alloc`.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: as in `alloc`.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block is new and has this size.
            unsafe { zero(block, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Zero a block: the inner pages become empty pages, and zeros are written before and after these pages.
///
/// # Safety
///
/// The caller owns the block of `size` bytes, and its memory is private and anonymous.
#[cfg(target_os = "linux")]
unsafe fn zero(block: *mut u8, size: usize) {
    /// A multiple of the page size of every supported processor.
    const PAGE: usize = 64 << 10;
    let head = block.align_offset(PAGE).min(size);
    let inner = (size - head) / PAGE * PAGE;
    // SAFETY: the three parts are inside of the block. MADV_DONTNEED fills private anonymous pages with zeros.
    unsafe {
        let middle = block.add(head);
        if libc::madvise(middle.cast(), inner, libc::MADV_DONTNEED) == 0 {
            NEWEST.1.store(inner, Ordering::Relaxed);
            NEWEST.0.store(middle as usize, Ordering::Release);
            block.write_bytes(0, head);
            middle.add(inner).write_bytes(0, size - head - inner);
        } else {
            block.write_bytes(0, size);
        }
    }
}

/// Zero a block.
///
/// # Safety
///
/// The caller owns the block of `size` bytes.
#[cfg(not(target_os = "linux"))]
unsafe fn zero(block: *mut u8, size: usize) {
    // SAFETY: the caller owns the block.
    unsafe { block.write_bytes(0, size) }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Only one test at a time may have the newest block.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Allocate a zeroed block, check that each byte is zero, and fill it before it is freed.
    fn check(size: usize, align: usize) {
        let layout = Layout::from_size_align(size, align).unwrap();
        // SAFETY: the block is used within its layout and freed once.
        unsafe {
            let block = LazyZeros.alloc_zeroed(layout);
            assert_eq!(block.align_offset(align), 0);
            assert!(std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == 0));
            block.write_bytes(0xff, size);
            LazyZeros.dealloc(block, layout);
        }
    }

    #[test]
    fn every_byte_of_a_zeroed_block_is_zero() {
        let _alone = ALONE.lock().unwrap();
        for align in [1, 16, 128, 4096, 1 << 17] {
            for size in [1, LARGE - 1, LARGE, LARGE + 1, LARGE + 65_537, 3 * LARGE + 12_345] {
                // twice, because the second block may be the first one, freed
                check(size, align);
                check(size, align);
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_zeroed_block_occupies_no_memory() {
        let _alone = ALONE.lock().unwrap();
        let layout = Layout::from_size_align(64 * LARGE, 128).unwrap();
        let before = resident_pages();
        // SAFETY: the block is freed once and never read.
        unsafe {
            let block = LazyZeros.alloc_zeroed(layout);
            let grown = resident_pages().saturating_sub(before);
            assert!(grown < 4096, "{grown} pages of 16,384");
            block.add(5 * LARGE).write(7);
            fill_newest_block();
            let filled = resident_pages().saturating_sub(before);
            assert!(filled == grown || filled > 15_000, "{filled} pages of 16,384");
            assert_eq!((block.add(5 * LARGE).read(), block.add(9 * LARGE).read()), (7, 0));
            LazyZeros.dealloc(block, layout);
        }
    }

    #[cfg(target_os = "linux")]
    fn resident_pages() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}
