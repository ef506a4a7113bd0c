//! The memory of this process: that of the machine, or less in a control group.

use std::path::{Path, PathBuf};

/// Root of the control groups of the system.
const GROUPS: &str = "/sys/fs/cgroup";

/// Return the memory in bytes that this process and the page cache of its files may take; None if it is unknown.
pub fn memory_limit() -> Option<u64> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = limit_files(&membership).into_iter().filter_map(|file| limit_in(&file));
    groups.chain(machine_memory()).min()
}

#[cfg(target_os = "linux")]
fn machine_memory() -> Option<u64> {
    // SAFETY: the function takes and returns plain integers.
    let (pages, page_bytes) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(page_bytes).ok()?)
}

#[cfg(not(target_os = "linux"))]
fn machine_memory() -> Option<u64> {
    None
}

/// Return the files that may have a limit, for the lines `id:controllers:path` of `/proc/self/cgroup`. A container may
/// see its own group at the root.
fn limit_files(membership: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => (PathBuf::from(GROUPS), "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                (Path::new(GROUPS).join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // groups above this group may have lower limits
        let group = root.join(path.trim_start_matches('/'));
        found.extend(group.ancestors().take_while(|group| group.starts_with(&root)).map(|group| group.join(name)));
    }
    found
}

/// Return the limit in a file; None without a limit (`max`) or without the file.
fn limit_in(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_groups_above_the_process_count() {
        let found = |membership| {
            let files = limit_files(membership);
            files.iter().map(|file| file.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            found("0::/system/node\n"),
            ["/sys/fs/cgroup/system/node/memory.max", "/sys/fs/cgroup/system/memory.max", "/sys/fs/cgroup/memory.max"]
        );
        assert_eq!(
            found("5:cpu,cpuacct:/a\n4:memory:/a\n1:name=systemd:/a:b\n"),
            ["/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
        assert_eq!(found("garbage\n\n"), Vec::<String>::new());
        assert_eq!(limit_in(Path::new("/nowhere/memory.max")), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_memory() {
        assert!(memory_limit().unwrap() > 1 << 20);
    }
}
