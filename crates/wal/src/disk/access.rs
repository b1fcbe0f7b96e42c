//! Who may touch a data folder: its owner and modes are checked before it is used, and what is wider
//! than needed is narrowed.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tenure_log::Fault;

use super::private::FOLDER_MODE;

/// The file that says that a folder is a backup. Restoring does not copy it.
pub const BACKUP_FILE: &str = "BACKUP";

/// How many foreign files are named; the others are counted.
pub const FOREIGN_NAMED_MAX: usize = 3;

/// Bits of a mode that let the group and all other users write.
const OTHERS_WRITE: u32 = 0o022;
/// Bits of a mode that let the group and all other users do anything.
const OTHERS: u32 = 0o077;

/// What was found in a folder, and what was changed about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tightened {
    /// How many files and folders other users could read and no longer can.
    pub narrowed: u64,
    /// The mode of the folder, if other users can still read its names: it has foreign files, so it
    /// may be in use for something else, and is left alone.
    pub readable: Option<u32>,
    /// The first names that are not ours, in order.
    pub foreign: Vec<String>,
    /// How many there are in all.
    pub foreign_count: u64,
}

/// Refuses a folder that another user could change under a running server, and one that is a backup.
///
/// There is no exception for root: the owner of the folder could replace a file that root is about to
/// open, and what root creates in it would lock the owner out afterwards.
pub fn check(folder: &Path) -> Result<(), Fault> {
    let found = look_at(folder)?;
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        let (folder, owner) = (folder.display().to_string(), found.uid());
        let advice = format!(
            "start it as user {owner}, or run `chown -R {user} {folder}`, or give a folder inside of \
             it that does not exist yet"
        );
        let found = format!("belongs to user {owner}, and this process runs as user {user}");
        return Err(Fault::Exposed { folder, found, advice });
    }
    check_mode(folder)?;
    match is_backup(folder) {
        Ok(false) => Ok(()),
        Ok(true) => Err(Fault::IsBackup { folder: folder.display().to_string() }),
        Err(cause) => Err(Fault::NoFolder { folder: folder.display().to_string(), cause }),
    }
}

/// Refuses a folder that the group or other users may write to.
pub fn check_mode(folder: &Path) -> Result<(), Fault> {
    let mode = look_at(folder)?.mode() & 0o7777;
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let folder = folder.display().to_string();
    let found = format!("can be written by other users (mode {mode:04o})");
    let advice =
        format!("run `chmod 700 {folder}`, or give a folder inside of it that does not exist yet");
    Err(Fault::Exposed { folder, found, advice })
}

/// Whether a folder is a backup.
pub fn is_backup(folder: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(folder.join(BACKUP_FILE)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn look_at(folder: &Path) -> Result<fs::Metadata, Fault> {
    let name = || folder.display().to_string();
    fs::metadata(folder).map_err(|cause| Fault::NoFolder { folder: name(), cause })
}

/// Takes from other users what they could read: every file and folder that `is_ours` names, and the
/// folder itself unless it has something else in it.
pub fn tighten(folder: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<Tightened> {
    let mut seen = Tightened::default();
    let mut foreign = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_ours(&name) {
            foreign.push(name);
            continue;
        }
        // Of a link, this is the link itself, whose mode means nothing.
        let found = entry.metadata()?;
        if !found.is_symlink() && found.mode() & OTHERS != 0 {
            narrow(&entry.path(), found.mode())?;
            seen.narrowed += 1;
        }
    }
    let mode = fs::metadata(folder)?.mode() & 0o7777;
    match (mode & OTHERS != 0, foreign.is_empty()) {
        (true, true) => {
            narrow(folder, mode & FOLDER_MODE)?;
            seen.narrowed += 1;
        }
        (true, false) => seen.readable = Some(mode),
        (false, _) => {}
    }
    foreign.sort();
    seen.foreign_count = foreign.len() as u64;
    foreign.truncate(FOREIGN_NAMED_MAX);
    seen.foreign = foreign;
    Ok(seen)
}

fn narrow(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7777 & !OTHERS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::private;
    use std::path::PathBuf;

    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("tenure-access-{name}-{}", std::process::id()));
            private::create_folder(&path).unwrap();
            Self(path)
        }

        fn add(&self, name: &str, mode: u32) {
            let path = self.0.join(name);
            private::create_file(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }

        fn set_mode(&self, mode: u32) {
            fs::set_permissions(&self.0, fs::Permissions::from_mode(mode)).unwrap();
        }

        fn mode(&self, name: &str) -> u32 {
            fs::metadata(self.0.join(name)).unwrap().mode() & 0o7777
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused_with_what_to_run() {
        let folder = Temporary::new("writable");
        for mode in [0o777, 0o770, 0o707, 0o1777, 0o720] {
            folder.set_mode(mode);
            let refused = check(&folder.0).unwrap_err();
            assert_eq!(refused.exit_code(), 77, "{refused}");
            assert!(refused.to_string().contains("chmod 700"), "{refused}");
        }
        for mode in [0o700, 0o750, 0o755] {
            folder.set_mode(mode);
            check(&folder.0).unwrap();
        }
    }

    #[test]
    fn a_backup_is_refused_and_restore_is_named() {
        let folder = Temporary::new("backup");
        folder.add(BACKUP_FILE, 0o600);
        let refused = check(&folder.0).unwrap_err();
        assert_eq!(refused.exit_code(), 73);
        assert!(refused.to_string().contains("tenure restore"), "{refused}");
    }

    #[test]
    fn what_is_ours_is_narrowed_and_what_is_foreign_is_named() {
        let folder = Temporary::new("wide");
        folder.set_mode(0o755);
        folder.add("ours-1", 0o644);
        folder.add("ours-2", 0o600);
        let is_ours = |name: &str| name.starts_with("ours");
        let seen = tighten(&folder.0, is_ours).unwrap();
        assert_eq!(seen, Tightened { narrowed: 2, ..Tightened::default() });
        assert_eq!((folder.mode("ours-1"), folder.mode("")), (0o600, 0o700));
        folder.set_mode(0o755);
        for name in ["d", "b", "c", "a"] {
            folder.add(name, 0o644);
        }
        let seen = tighten(&folder.0, is_ours).unwrap();
        assert_eq!((seen.narrowed, seen.readable), (0, Some(0o755)));
        assert_eq!(
            (seen.foreign, seen.foreign_count),
            (vec!["a".into(), "b".into(), "c".into()], 4)
        );
        assert_eq!((folder.mode("a"), folder.mode("")), (0o644, 0o755), "not ours to change");
    }

    #[test]
    fn a_copy_does_not_inherit_a_wide_mode() {
        let folder = Temporary::new("copy");
        folder.add("from", 0o666);
        folder.add("to", 0o666);
        private::copy(&folder.0.join("from"), &folder.0.join("to")).unwrap();
        assert_eq!(folder.mode("to"), 0o600);
    }
}
