//! How much memory there is for this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The share of it that messages may take by default.
const SHARE: u64 = 2;

/// Default of `--memory-limit`: half of the smaller of the machine's memory and the limits of this process's
/// cgroups. Where nothing can be read, there is no limit.
pub fn default_limit() -> u64 {
    let read = |path: PathBuf| fs::read_to_string(path).ok();
    limit(read("/proc/meminfo".into()), read("/proc/self/cgroup".into()), read)
}

fn limit(meminfo: Option<String>, cgroups: Option<String>, read: impl Fn(PathBuf) -> Option<String>) -> u64 {
    let machine = meminfo.as_deref().and_then(machine_bytes);
    let cgroups = cgroups.unwrap_or_default();
    let limits = cgroups.lines().flat_map(limit_files).filter_map(|file| read(file)?.trim().parse().ok());
    limits.chain(machine).min().map_or(u64::MAX, |bytes: u64| bytes / SHARE)
}

/// `MemTotal` of /proc/meminfo.
fn machine_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Where the limits of a line of /proc/self/cgroup stand: its own and those of all above it. An unlimited one says
/// `max`, or a number larger than any memory.
fn limit_files(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        v1 if v1.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let own = Path::new(path.trim_start_matches('/'));
    own.ancestors().map(|group| Path::new(root).join(group).join(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:        2048 kB\nMemFree:  12 kB\n";

    fn limit_with(cgroup: &str, files: &[(&str, &str)]) -> u64 {
        let read = |path: PathBuf| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        limit(Some(MEMINFO.to_owned()), Some(cgroup.to_owned()), read)
    }

    #[test]
    fn the_machine_alone() {
        assert_eq!(limit_with("", &[]), 1024 * 1024);
        let unlimited = [("/sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(limit_with("0::/a\n", &unlimited), 1024 * 1024);
    }

    #[test]
    fn the_smallest_of_the_groups_above() {
        let files =
            [("/sys/fs/cgroup/a/b/memory.max", "1000000\n"), ("/sys/fs/cgroup/a/memory.max", "4000\n")];
        assert_eq!(limit_with("0::/a/b\n", &files), 2000);
        let old = [("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "6000\n")];
        assert_eq!(limit_with("4:cpu,memory:/x\n3:cpuset:/y\n", &old), 3000);
    }

    #[test]
    fn nothing_to_read() {
        assert_eq!(limit(None, None, |_| None), u64::MAX);
    }
}
