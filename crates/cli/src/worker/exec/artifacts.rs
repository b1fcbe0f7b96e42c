//! The folder whose files become artifacts: a command of a run's task writes into
//! `$TENURE_ARTIFACTS`, and what is there when it ends well goes with its completion.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tenure_sdk::{Failure, LeasedTask, Output};

/// What one completion may have.
const FILES_MAX: usize = 100;
const BYTES_MAX: u64 = 7 << 20;
const LEVELS_MAX: usize = 16;
/// Names that are tried for a folder, each with 128 random bits.
const TRIES_MAX: u32 = 8;

/// A folder of one attempt. It goes with it.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes one for a task of a run; other tasks have none.
    pub(super) fn of(task: &LeasedTask) -> Result<Option<Self>, Failure> {
        if task.run_id().is_none() {
            return Ok(None);
        }
        let parent = std::env::temp_dir();
        let made = Self::make(&parent, "artifacts").map_err(|error| {
            let shown = parent.display();
            Failure::new(format!("no folder for artifacts could be made in {shown}: {error}"))
        })?;
        Ok(Some(made))
    }

    /// Makes a folder that only this user can enter, under a name that other users of the machine
    /// cannot predict: in a shared folder a predictable name can be taken by anyone first.
    pub(super) fn make(parent: &Path, what: &str) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            let name = format!("tenure-{what}-{:016x}{:016x}", random(), random());
            let path = parent.join(name);
            tries += 1;
            // Without `recursive`, whatever has the name already is an error, a link too.
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES_MAX => {
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The output with all files in the folder.
    pub(super) fn add_to(&self, output: Output) -> Result<Output, Failure> {
        let mut files = Vec::new();
        gather(&self.0, "", 1, &mut files)?;
        files.sort();
        let mut output = output;
        let mut bytes = 0;
        for (name, path) in files {
            let length = fs::metadata(&path).map_err(|error| unreadable(&name, &error))?.len();
            bytes += length;
            if bytes > BYTES_MAX {
                return Err(too_much(format!(
                    "the files in $TENURE_ARTIFACTS have more than {BYTES_MAX} bytes; upload large \
                     ones with PUT /v1/blobs/{{sha256}}, or put them elsewhere and print where"
                )));
            }
            let data = fs::read(&path).map_err(|error| unreadable(&name, &error))?;
            let media_type = media_type(&name);
            output = output.with_artifact(name, media_type, data);
        }
        Ok(output)
    }
}

/// A number that only this process knows: the standard library seeds its hashers from the system's
/// random numbers.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever clears the folder for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Regular files, with their names from the top. Links are not followed: they may lead anywhere.
fn gather(
    folder: &Path,
    above: &str,
    level: usize,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(above, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(above, &error))?;
        let kind = entry.file_type().map_err(|error| unreadable(above, &error))?;
        let file_name = entry.file_name();
        let Some(file_name) = file_name.to_str() else {
            return Err(too_much(format!(
                "the file {} in $TENURE_ARTIFACTS has a name that is not UTF-8; rename it",
                entry.path().display()
            )));
        };
        let name = format!("{above}{file_name}");
        if kind.is_dir() && level < LEVELS_MAX {
            gather(&entry.path(), &format!("{name}/"), level + 1, files)?;
        } else if kind.is_file() {
            files.push((name, entry.path()));
        } else {
            return Err(too_much(format!(
                "{name:?} in $TENURE_ARTIFACTS is no file, or too deep; put plain files there, in at \
                 most {LEVELS_MAX} levels"
            )));
        }
        if files.len() > FILES_MAX {
            return Err(too_much(format!(
                "there are more than {FILES_MAX} files in $TENURE_ARTIFACTS; put them into an archive"
            )));
        }
    }
    Ok(())
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("the artifact {name:?} cannot be read: {error}"))
}

/// It would be so again, so it is not tried again.
fn too_much(reason: String) -> Failure {
    Failure::permanent(reason).code("artifacts_invalid")
}

/// What a file is by the end of its name.
fn media_type(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end).to_ascii_lowercase();
    match end.as_str() {
        "txt" | "log" | "md" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "html" | "htm" => "text/html; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn folder() -> Folder {
        Folder::make(&std::env::temp_dir(), "artifacts").unwrap()
    }

    #[test]
    fn no_other_user_can_predict_or_enter_the_folder() {
        use std::os::unix::fs::PermissionsExt;
        let (one, other) = (folder(), folder());
        let name = |folder: &Folder| {
            let name = folder.path().file_name().unwrap().to_str().unwrap();
            name.strip_prefix("tenure-artifacts-").unwrap().to_owned()
        };
        assert_ne!(name(&one), name(&other));
        for folder in [&one, &other] {
            let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            let name = name(folder);
            assert_eq!(name.len(), 32, "128 bits");
        }
    }

    #[test]
    fn files_go_with_the_output_and_the_folder_goes_with_the_attempt() {
        let folder = folder();
        fs::create_dir(folder.path().join("logs")).unwrap();
        fs::write(folder.path().join("logs/a.log"), "one").unwrap();
        fs::write(folder.path().join("b.bin"), [0, 1]).unwrap();
        let output = folder.add_to(Output::from("1")).unwrap();
        let shown = format!("{output:?}");
        assert!(shown.contains("logs/a.log") && shown.contains("b.bin"), "{shown}");
        assert!(shown.contains("text/plain") && shown.contains("octet-stream"), "{shown}");
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn links_and_too_many_files_are_refused() {
        let folder = folder();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let refused = folder.add_to(Output::from("1")).unwrap_err();
        assert!(format!("{refused:?}").contains("no file"), "{refused:?}");
        fs::remove_file(folder.path().join("link")).unwrap();
        (0..=FILES_MAX).for_each(|n| fs::write(folder.path().join(n.to_string()), "").unwrap());
        let refused = folder.add_to(Output::from("1")).unwrap_err();
        assert!(format!("{refused:?}").contains("archive"), "{refused:?}");
    }

    #[test]
    fn too_many_bytes_are_refused() {
        let folder = folder();
        let file = fs::File::create(folder.path().join("large")).unwrap();
        file.set_len(BYTES_MAX + 1).unwrap();
        let refused = folder.add_to(Output::from("1")).unwrap_err();
        assert!(format!("{refused:?}").contains("PUT /v1/blobs"), "{refused:?}");
    }
}
