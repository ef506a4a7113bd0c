//! What the allocators of the process keep: that of C (the crate `ophion-primitives`), and which one objects come from.
//!
//! The interpreter places small objects into areas of a megabyte, and a single object that lives on keeps its area. A
//! large request is a hundred thousand objects for a moment, made in a lane; what the loop makes meanwhile and keeps, a
//! timer here and a key there, would lie among them, and all these areas would stay. So objects that a lane makes come
//! from the allocator of C, which gives back every free page. Freeing needs no care: the interpreter knows by the
//! address what is its own and hands everything else on to C, as it does with all objects that are not small.

use ophion_primitives::memory;
use pyo3::prelude::*;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod objects {
    use std::cell::Cell;
    use std::ffi::{CStr, c_int, c_void};
    use std::sync::{Once, OnceLock};

    /// Memory of objects, and what belongs to them.
    const DOMAINS: [c_int; 2] = [1, 2];

    type Malloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    type Calloc = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
    type Realloc = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void;
    type Free = unsafe extern "C" fn(*mut c_void, *mut c_void);
    type Access = unsafe extern "C" fn(c_int, *mut Allocator);

    /// `PyMemAllocatorEx`.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Allocator {
        context: *mut c_void,
        malloc: Option<Malloc>,
        calloc: Option<Calloc>,
        realloc: Option<Realloc>,
        free: Option<Free>,
    }

    impl Allocator {
        const NONE: Self =
            Self { context: std::ptr::null_mut(), malloc: None, calloc: None, realloc: None, free: None };
    }

    /// What the interpreter has used so far, for both; none of these needs a context.
    struct Usual {
        malloc: Malloc,
        calloc: Calloc,
        realloc: Realloc,
        free: Free,
        outside: unsafe extern "C" fn(usize) -> *mut c_void,
        outside_zeroed: unsafe extern "C" fn(usize, usize) -> *mut c_void,
        set: Access,
    }

    static USUAL: OnceLock<Option<Usual>> = OnceLock::new();
    static STAND_IN_FRONT: Once = Once::new();

    thread_local! {
        static IS_OUTSIDE: Cell<bool> = const { Cell::new(false) };
    }

    fn is_outside() -> bool {
        IS_OUTSIDE.get()
    }

    fn usual() -> &'static Usual {
        USUAL.get().and_then(Option::as_ref).expect("found before it is replaced")
    }

    unsafe extern "C" fn malloc(_: *mut c_void, size: usize) -> *mut c_void {
        let usual = usual();
        // SAFETY: functions of the interpreter, called as it would.
        unsafe { if is_outside() { (usual.outside)(size) } else { (usual.malloc)(std::ptr::null_mut(), size) } }
    }

    unsafe extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
        let usual = usual();
        // SAFETY: as above.
        unsafe {
            if is_outside() {
                (usual.outside_zeroed)(count, size)
            } else {
                (usual.calloc)(std::ptr::null_mut(), count, size)
            }
        }
    }

    unsafe extern "C" fn realloc(_: *mut c_void, piece: *mut c_void, size: usize) -> *mut c_void {
        let usual = usual();
        // SAFETY: as above; what there is already stays where it came from.
        unsafe {
            if piece.is_null() && is_outside() {
                (usual.outside)(size)
            } else {
                (usual.realloc)(std::ptr::null_mut(), piece, size)
            }
        }
    }

    /// A function of the interpreter that is not promised to be in every version; without it nothing happens here.
    ///
    /// SAFETY: `T` is the type of the function of that name.
    unsafe fn found<T: Copy>(name: &CStr) -> Option<T> {
        // SAFETY: a name in; what comes out is an address or null.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        assert_eq!(size_of::<T>(), size_of::<*mut c_void>());
        // SAFETY: of the same size, and the caller knows the type.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }

    /// The interpreter's allocators, where they are the usual ones: those for finding errors have a context, and mark
    /// every piece as their own.
    fn find() -> Option<Usual> {
        // SAFETY: the types are those of the interpreter's headers, unchanged since 3.5. Whoever calls this has the
        // interpreter's lock.
        unsafe {
            let (get, set): (Access, Access) = (found(c"PyMem_GetAllocator")?, found(c"PyMem_SetAllocator")?);
            let (outside, outside_zeroed) = (found(c"PyMem_RawMalloc")?, found(c"PyMem_RawCalloc")?);
            let mut both = [Allocator::NONE; 2];
            for (domain, allocator) in DOMAINS.into_iter().zip(&mut both) {
                get(domain, allocator);
            }
            let [one, other] = both;
            if !one.context.is_null() || !other.context.is_null() {
                return None;
            }
            let (malloc, calloc, realloc, free) = (one.malloc?, one.calloc?, one.realloc?, one.free?);
            let is_same = other.malloc.is_some_and(|same| std::ptr::fn_addr_eq(same, malloc));
            is_same.then_some(Usual { malloc, calloc, realloc, free, outside, outside_zeroed, set })
        }
    }

    fn stand_in_front(usual: &Usual) {
        for domain in DOMAINS {
            let mut ours = Allocator {
                context: std::ptr::null_mut(),
                malloc: Some(malloc),
                calloc: Some(calloc),
                realloc: Some(realloc),
                free: Some(usual.free),
            };
            // SAFETY: the interpreter's lock is held, and from here on these functions do as those before them, but for
            // pieces of threads that have said so, which `free` and `realloc` take for what they are.
            unsafe { (usual.set)(domain, &raw mut ours) };
        }
    }

    /// From here on objects of this thread come from the allocator of C. The interpreter's lock is held.
    pub fn come_from_c() {
        if let Some(usual) = USUAL.get_or_init(find) {
            STAND_IN_FRONT.call_once(|| stand_in_front(usual));
            IS_OUTSIDE.set(true);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod objects {
    pub fn come_from_c() {}
}

#[pyfunction]
#[pyo3(signature = (max_bytes, /))]
fn keep_freed(max_bytes: usize) {
    memory::keep(max_bytes);
}

#[pyfunction]
fn note_heap() {
    memory::note_heap();
    objects::come_from_c();
}

#[pyfunction]
fn give_back(py: Python<'_>) {
    py.detach(memory::give_back);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(keep_freed, module)?)?;
    module.add_function(wrap_pyfunction!(note_heap, module)?)?;
    module.add_function(wrap_pyfunction!(give_back, module)?)
}
