//! How much memory the system allows this process: the smallest of its control groups' limits, its
//! limit of address space, and the machine's memory.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use tenure_coordinator::{Memory, Pool};

use crate::limits::{
    ANSWERS_BYTES_MAX, BODIES_BYTES_MAX, MEMORY_BYTES_MIN, MEMORY_PERCENT_DEFAULT,
    SUBSCRIBERS_BYTES_MAX,
};

/// Where the system shows its limits.
#[derive(Clone, Debug)]
struct Places {
    proc: PathBuf,
    cgroups: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self { proc: "/proc".into(), cgroups: "/sys/fs/cgroup".into() }
    }
}

/// The memory budget: the one that was given, or a part of what the system allows.
pub(crate) fn budget(given: Option<u64>) -> Memory {
    let max = given.unwrap_or_else(|| {
        let allowed = allowed(&Places::default());
        let part = allowed.map_or(u64::MAX, |allowed| allowed / 100 * MEMORY_PERCENT_DEFAULT);
        if part < MEMORY_BYTES_MIN {
            tracing::warn!(
                "the system allows {} bytes of memory, which is less than a server needs; the \
                 budget is {MEMORY_BYTES_MIN} bytes",
                allowed.unwrap_or_default()
            );
        }
        part.max(MEMORY_BYTES_MIN)
    });
    Memory::new(max)
        .bound(Pool::Bodies, BODIES_BYTES_MAX as u64)
        .bound(Pool::Answers, ANSWERS_BYTES_MAX)
        .bound(Pool::Subscribers, SUBSCRIBERS_BYTES_MAX)
}

/// Bytes of memory that the process has at the moment; 0 where the system does not say.
pub(crate) fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The smallest of all limits; none where there is none.
fn allowed(places: &Places) -> Option<u64> {
    let address_space = getrlimit(Resource::As).current;
    let limits = [machine(places), address_space].into_iter().flatten();
    limits.chain(control_groups(places)).min()
}

/// The machine's memory.
fn machine(places: &Places) -> Option<u64> {
    let meminfo = fs::read_to_string(places.proc.join("meminfo")).ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes = total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kilobytes.checked_mul(1024)
}

/// The limits of the process's own control groups and of those around them, in both versions.
fn control_groups(places: &Places) -> Vec<u64> {
    let groups = fs::read_to_string(places.proc.join("self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (root, file) = match controllers {
            "" => (places.cgroups.clone(), "memory.max"),
            v1 if v1.split(',').any(|name| name == "memory") => {
                (places.cgroups.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(group.trim_start_matches('/'));
        // In a container the path may be that of the host, which is not there; its root is.
        limits.extend(group.ancestors().filter_map(|group| limit(&root.join(group).join(file))));
    }
    limits
}

/// A limit from a file; `max` says that there is none, and so does a number near the largest one.
fn limit(file: &Path) -> Option<u64> {
    let bytes = fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()?;
    (bytes < i64::MAX as u64 / 2).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system with these files.
    fn system(name: &str, files: &[(&str, &str)]) -> Places {
        let root =
            std::env::temp_dir().join(format!("tenure-memory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Places { proc: root.join("proc"), cgroups: root.join("cgroup") }
    }

    #[test]
    fn the_smallest_limit_of_all_groups_around_the_process_counts() {
        let meminfo = ("proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\n");
        let v2 = system(
            "v2",
            &[
                meminfo,
                ("proc/self/cgroup", "0::/a.slice/b.service\n"),
                ("cgroup/memory.max", "max\n"),
                ("cgroup/a.slice/memory.max", "3000000\n"),
                ("cgroup/a.slice/b.service/memory.max", "max\n"),
            ],
        );
        assert_eq!(allowed(&v2), Some(3_000_000), "the group around it has a limit");
        let v1 = system(
            "v1",
            &[
                meminfo,
                ("proc/self/cgroup", "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n"),
                ("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("cgroup/memory/docker/x/memory.limit_in_bytes", "2000000\n"),
                ("cgroup/cpu,cpuacct/docker/x/memory.limit_in_bytes", "1\n"),
            ],
        );
        assert_eq!(allowed(&v1), Some(2_000_000));
        let namespaced = system(
            "namespaced",
            &[
                meminfo,
                ("proc/self/cgroup", "0::/../host/path\n"),
                ("cgroup/memory.max", "1000000\n"),
            ],
        );
        assert_eq!(allowed(&namespaced), Some(1_000_000), "the root of the container counts");
    }

    #[test]
    fn without_groups_the_machine_is_the_limit() {
        let bare = system("bare", &[("proc/meminfo", "MemTotal:  1000 kB\n")]);
        assert_eq!(allowed(&bare), Some(1_024_000));
        assert_eq!(machine(&system("none", &[])), None);
    }

    #[test]
    fn a_budget_is_what_was_given_or_a_part_of_what_the_system_allows() {
        assert_eq!(budget(Some(1 << 30)).max(), 1 << 30);
        let allowed = allowed(&Places::default()).unwrap();
        assert_eq!(budget(None).max(), (allowed / 100 * 80).max(MEMORY_BYTES_MIN));
        assert!(resident_bytes() > 1 << 20);
    }
}
