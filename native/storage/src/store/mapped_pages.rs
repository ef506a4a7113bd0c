//! Limits how much of the database file counts as memory of this process.
//!
//! LMDB maps the file. Each page that was read stays mapped and counts as memory of the process, as long as the page
//! cache of the system holds it. A reader of the whole chain would seem to need as much memory as the database has.

/// Unmap the pages of a file if more than `max_bytes` of files are mapped. The pages stay in the page cache, and the
/// next read maps them again. Does nothing if the system does not list the mappings of the process.
#[cfg(target_os = "linux")]
pub fn limit(file: &std::path::Path, max_bytes: usize) {
    if mapped_bytes().is_none_or(|mapped| mapped <= max_bytes) {
        return;
    }
    let (Ok(file), Ok(maps)) = (file.canonicalize(), std::fs::read_to_string("/proc/self/maps")) else { return };
    for (start, end) in maps.lines().filter_map(|line| range_of(line, file.to_str()?)) {
        // SAFETY: the range is a shared map of a file. Its pages are read from the file again when they are needed, so
        // no reader sees a difference.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

#[cfg(not(target_os = "linux"))]
pub fn limit(_: &std::path::Path, _: usize) {}

/// Return how many bytes of files this process has mapped and read.
#[cfg(target_os = "linux")]
fn mapped_bytes() -> Option<usize> {
    let sizes = std::fs::read_to_string("/proc/self/statm").ok()?;
    // SAFETY: the function takes and returns plain integers.
    let page_bytes = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    sizes.split(' ').nth(2)?.parse::<usize>().ok()?.checked_mul(page_bytes)
}

/// Return start and end of a map, if it is a shared map of this file. The line has the form
/// `start-end permissions offset device inode path`.
#[cfg(target_os = "linux")]
fn range_of(line: &str, file: &str) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    let is_shared = rest.as_bytes().get(3) == Some(&b's');
    let path = rest.splitn(5, ' ').last()?.trim_start();
    let (start, end) = range.split_once('-')?;
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    if is_shared && path == file { Some((address(start)?, address(end)?)) } else { None }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_shared_maps_of_the_file_are_taken() {
        let line = |mode: &str, path: &str| format!("7f10-7f20 {mode} 00000000 fe:00 1234                 {path}");
        assert_eq!(range_of(&line("r--s", "/a b/data.mdb"), "/a b/data.mdb"), Some((0x7f10, 0x7f20)));
        assert_eq!(range_of(&line("r--p", "/a/data.mdb"), "/a/data.mdb"), None);
        assert_eq!(range_of(&line("r--s", "/a/lock.mdb"), "/a/data.mdb"), None);
        assert_eq!(range_of("7f10-7f20 rw-p 00000000 00:00 0", "/a/data.mdb"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn unmapped_pages_are_read_again() {
        let (size, folder) = (8 << 20, std::env::temp_dir().join(format!("ophion-maps-{}", std::process::id())));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("data.mdb");
        std::fs::write(&path, vec![7u8; size]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        // SAFETY: the arguments describe a new map of an open file.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_SHARED, descriptor, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: the map has this size and stays until the end of the test.
        let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) };
        let resident = || {
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let own = smaps.split_once(path.to_str().unwrap()).unwrap().1;
            let line = own.lines().find(|line| line.starts_with("Rss:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
        };
        assert!(bytes.iter().all(|byte| *byte == 7));
        assert_eq!(resident(), size >> 10);
        limit(&path, usize::MAX);
        assert_eq!(resident(), size >> 10);
        limit(&path, 0);
        assert_eq!(resident(), 0);
        assert!(bytes.iter().all(|byte| *byte == 7));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
