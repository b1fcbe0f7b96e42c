//! The data folder as the machine's users meet it: one server at a time, readable by its owner only,
//! refused where other users could change it, and not to be confused with a backup.
//!
//! Proves P8.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::server::{Server, TENURE, agent, folder_of, url};
use serde_json::json;

/// What is waited for comes long before.
const LONG: Duration = Duration::from_secs(30);
/// The SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

/// A path of this test at which there is nothing yet, and nothing is left.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = Self(folder_of(name));
        let _ = fs::remove_dir_all(&place.0);
        place
    }

    fn made(name: &str, mode: u32) -> Self {
        let place = Self::new(name);
        fs::create_dir(&place.0).unwrap();
        place.set_mode(mode);
        place
    }

    fn set_mode(&self, mode: u32) {
        fs::set_permissions(&self.0, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs a server that is expected to end by itself; one that does not is stopped.
fn refused(folder: &Path) -> (Option<i32>, String) {
    let seconds = LONG.as_secs().to_string();
    let serve = ["serve", "--log", "quiet", "--listen", "127.0.0.1:0", "--data"];
    let mut command = Command::new("timeout");
    let ended = command.arg(seconds).arg(TENURE).args(serve).arg(folder).output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

/// Runs a server under a shell that does something first.
fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", &format!("{script}; exec \"$0\" \"$@\"")].map(str::to_owned).to_vec()
}

/// A server whose lines go to a file.
fn start_heard(folder: &Place, lines: &Place) -> Server {
    let runner = shell(&format!("exec 2>> '{}'", lines.text()));
    Server::start_on(folder.0.clone(), &runner).unwrap()
}

fn submit(server: &Server) -> u64 {
    let (status, task) = server.post("/v1/tasks", &json!({"payload": "secret"}));
    assert_eq!(status, 201, "{task}");
    task["id"].as_u64().unwrap()
}

fn tenure(script: &str, args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script}; exec \"$0\" \"$@\"")]).arg(TENURE).args(args);
    command.output().unwrap()
}

/// All files and folders under a folder, itself included, with their modes.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![(folder.to_owned(), fs::metadata(folder).unwrap().mode() & 0o7777)];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(modes(&path)),
            false => found.push((path.clone(), fs::metadata(&path).unwrap().mode() & 0o7777)),
        }
    }
    found
}

#[track_caller]
fn assert_private(folder: &Path) -> usize {
    let found = modes(folder);
    for (path, mode) in &found {
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:04o}", path.display());
    }
    found.len()
}

#[test]
fn removing_the_lock_file_lets_no_second_server_in() {
    let mut server = Server::start("lock-removed");
    let first = submit(&server);
    fs::remove_file(server.folder.join("LOCK")).unwrap();
    for _ in 0..2 {
        let (code, said) = refused(&server.folder);
        assert_eq!(code, Some(73), "{said}");
        assert!(said.contains("in use by another process"), "{said}");
        // Whatever is put there in its place is not what was locked.
        fs::write(server.folder.join("LOCK"), "").unwrap();
    }
    let doctor = server.tenure(&["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("a server is running on it"));
    let second = submit(&server);
    server.kill();
    server.restart();
    for task in [first, second] {
        assert_eq!(server.get(&format!("/v1/tasks/{task}")).0, 200, "task {task} is there");
    }
}

#[test]
fn a_server_whose_folder_was_replaced_ends_before_it_writes_again() {
    let mut server = Server::start("replaced");
    let task = submit(&server);
    let away = Place::new("replaced-away");
    fs::rename(&server.folder, &away.0).unwrap();
    let other = Server::start_on(server.folder.clone(), &[]).unwrap();
    let said = agent().post(url(&server.address, "/v1/tasks")).send("{}");
    assert!(said.is_err() || said.unwrap().status() != 201, "nothing more is acknowledged");
    let begun = Instant::now();
    let code = loop {
        if let Some(code) = server.exit_code() {
            break code;
        }
        assert!(begun.elapsed() < LONG, "it ends");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(code, 73);
    assert_eq!(other.get("/v1/tasks/1").0, 404, "the other folder has nothing of it");
    drop(other);
    fs::rename(&away.0, &server.folder).unwrap();
    server.restart();
    assert_eq!(server.get(&format!("/v1/tasks/{task}")).0, 200);
}

#[test]
fn only_the_owner_can_read_anything_whatever_the_umask() {
    let archive = Place::new("umask-archive");
    let options = format!("--archive {} --retention 1s", archive.text());
    let runner = ["sh", "-c", &format!("umask 0; exec \"$0\" \"$@\" {options}")];
    let runner = runner.map(str::to_owned).to_vec();
    let data = Place::new("umask");
    let mut server = Server::start_on(data.0.clone(), &runner).unwrap();
    let (status, _) =
        server.post("/v1/tasks", &json!({"queue": "kept", "payload": "x".repeat(100_000)}));
    assert_eq!(status, 201);
    let blob = agent().put(url(&server.address, &format!("/v1/blobs/{HELLO}"))).send("hello");
    assert_eq!(blob.unwrap().status(), 201);
    submit(&server);
    let leases = server.post("/v1/leases", &json!({"worker": "w", "queues": ["default"]})).1;
    let done = json!({"lease_id": leases["leases"][0]["lease_id"]});
    let task = leases["leases"][0]["task_id"].as_u64().unwrap();
    assert_eq!(server.post(&format!("/v1/tasks/{task}/complete"), &done).0, 200);
    assert_eq!(server.post("/v1/snapshots", &json!({})).0, 200);
    let begun = Instant::now();
    while server.get(&format!("/v1/tasks/{task}")).0 != 404 {
        assert!(begun.elapsed() < LONG, "the task is archived");
        std::thread::sleep(Duration::from_millis(50));
    }
    for name in ["LOCK", "shelf", "blobs"] {
        assert!(server.folder.join(name).exists(), "{name}");
    }
    assert!(assert_private(&server.folder) >= 8, "{:?}", modes(&server.folder));
    assert!(assert_private(&archive.0) >= 3, "{:?}", modes(&archive.0));
    let (copy, restored) = (Place::new("umask-copy"), Place::new("umask-restored"));
    let at = format!("http://{}", server.address);
    let ran = tenure("umask 0", &["backup", copy.text(), "--server", &at]);
    assert!(ran.status.success(), "{ran:?}");
    assert!(assert_private(&copy.0) >= 5, "{:?}", modes(&copy.0));
    let ran = tenure("umask 0", &["restore", copy.text(), "--data", restored.text()]);
    assert!(ran.status.success(), "{ran:?}");
    assert!(assert_private(&restored.0) >= 5, "{:?}", modes(&restored.0));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn what_other_users_could_read_is_narrowed_at_the_start_and_told() {
    let (folder, lines) = (Place::made("narrowed", 0o755), Place::new("narrowed-lines"));
    let mut server = start_heard(&folder, &lines);
    submit(&server);
    assert_eq!(server.terminate(), Some(0));
    server.keep_folder();
    for (path, _) in modes(&folder.0) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::remove_file(&lines.0).unwrap();
    server = start_heard(&folder, &lines);
    assert_private(&folder.0);
    let said = fs::read_to_string(&lines.0).unwrap();
    assert!(said.contains("other users could read"), "{said}");
    server.kill();
    server.keep_folder();
    fs::remove_file(&lines.0).unwrap();
    server = start_heard(&folder, &lines);
    let said = fs::read_to_string(&lines.0).unwrap();
    assert!(!said.contains("other users"), "a private folder is not spoken of: {said}");
    server.keep_folder();
}

#[test]
fn a_folder_that_others_may_write_to_or_own_is_refused_with_what_to_run() {
    let folder = Place::made("writable", 0o700);
    for mode in [0o777, 0o770, 0o1777] {
        folder.set_mode(mode);
        let (code, said) = refused(&folder.0);
        assert_eq!(code, Some(77), "{said}");
        assert!(said.contains("can be written by other users"), "{said}");
        assert!(said.contains(&format!("chmod 700 {}", folder.text())), "{said}");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "nothing was made in it");
    }
    folder.set_mode(0o700);
    // Root can give a folder away; for all others, one of root's will do.
    let strange = match chown(&folder.0, Some(12_345), None) {
        Ok(()) => folder.0.as_path(),
        Err(_) => Path::new("/usr"),
    };
    let (code, said) = refused(strange);
    assert_eq!(code, Some(77), "{said}");
    assert!(said.contains("belongs to user") && said.contains("chown"), "{said}");
    let inside = folder.0.join("inside");
    let _ = chown(&folder.0, Some(fs::metadata(env!("CARGO_TARGET_TMPDIR")).unwrap().uid()), None);
    let mut server = Server::start_on(inside, &[]).unwrap();
    submit(&server);
    assert_eq!(server.terminate(), Some(0), "a folder inside of it is made, and taken");
}

#[test]
fn foreign_files_are_named_and_left_alone() {
    let (folder, lines) = (Place::made("foreign", 0o755), Place::new("foreign-lines"));
    for name in ["notes.txt", "b", "a\u{1b}[2J", "c"] {
        fs::write(folder.0.join(name), "mine").unwrap();
    }
    let mut server = start_heard(&folder, &lines);
    let said = fs::read_to_string(&lines.0).unwrap();
    assert_eq!(said.matches("not from Tenure").count(), 1, "{said}");
    assert!(said.contains(r#""b", "c"] and 1 more"#), "{said}");
    assert!(!said.contains("\u{1b}[2J"), "a name is no command for a terminal");
    assert!(said.contains(&format!("chmod 700 {}", folder.text())), "{said}");
    assert_eq!(fs::metadata(&folder.0).unwrap().mode() & 0o777, 0o755, "it may be another's, too");
    assert_eq!(fs::read_to_string(folder.0.join("notes.txt")).unwrap(), "mine");
    submit(&server);
    assert_eq!(server.terminate(), Some(0));
    server.keep_folder();
}

#[test]
fn a_backup_is_not_served_from() {
    let server = Server::start("served-backup");
    submit(&server);
    let (copy, data) = (Place::new("served-copy"), Place::new("served-restored"));
    let at = format!("http://{}", server.address);
    let ran = tenure(":", &["backup", copy.text(), "--server", &at]);
    assert!(ran.status.success(), "{ran:?}");
    let before = modes(&copy.0);
    let (code, said) = refused(&copy.0);
    assert_eq!(code, Some(73), "{said}");
    assert!(said.contains("is a backup") && said.contains("tenure restore"), "{said}");
    assert_eq!(modes(&copy.0), before, "nothing was made in it");
    for verb in [&["wal", "verify"][..], &["wal", "stat"], &["doctor"]] {
        let ran = tenure(":", &[verb, &["--data", copy.text()]].concat());
        assert!(ran.status.success(), "{verb:?}: {ran:?}");
    }
    let ran = tenure(":", &["restore", copy.text(), "--data", data.text()]);
    assert!(ran.status.success(), "{ran:?}");
    assert!(!data.0.join("BACKUP").exists(), "what was restored is no backup");
    let restored = Server::start_on(data.0.clone(), &[]).unwrap();
    assert!(submit(&restored) > 1_000, "ids that the backup does not know are not given again");
}
