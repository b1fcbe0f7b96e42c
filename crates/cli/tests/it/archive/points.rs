//! The server is killed inside each kind of call that archiving makes: `strace` does it. Whatever the
//! call, what the log says was forgotten is in the archive, and the next start brings all to its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Archive, finish, finished, forgotten, lost, said, wait_until};
use crate::server::{Server, lacks_strace};

/// Tasks of each part.
const TASKS: usize = 40;
/// So long a server has to come to a call.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// What is there when the server starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No archive file.
    First,
    /// An archive file with some tasks, and others that are due.
    Again,
    /// The same, with an unfinished frame at the end of that file.
    Torn,
}

/// Where the server is killed: in which call, on which files, the how-manieth of its thread.
const POINTS: [(Stage, &str, Files, u32); 11] = [
    (Stage::First, "write", Files::Unfinished, 1),
    (Stage::First, "fsync", Files::Unfinished, 1),
    (Stage::First, "rename", Files::Unfinished, 1),
    (Stage::First, "fsync", Files::Folder, 1),
    (Stage::First, "pwrite64", Files::Log, 1),
    (Stage::First, "fdatasync", Files::Log, 1),
    (Stage::Again, "pwrite64", Files::Named, 1),
    (Stage::Again, "fdatasync", Files::Named, 1),
    (Stage::Again, "fdatasync", Files::Log, 1),
    (Stage::Torn, "ftruncate", Files::Named, 1),
    (Stage::Torn, "fsync", Files::Named, 1),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// A new archive file, before it has its name.
    Unfinished,
    /// Archive files.
    Named,
    /// The archive's folder.
    Folder,
    /// The log, which learns what is forgotten.
    Log,
}

impl Files {
    fn paths(self, data: &Path, archive: &Archive) -> Vec<PathBuf> {
        match self {
            Files::Unfinished => vec![archive.0.join("tasks.part")],
            Files::Named => archive.files("tasks"),
            Files::Folder => vec![archive.0.clone()],
            Files::Log => (1..=6).map(|n| data.join(format!("segment-{n:016x}.wal"))).collect(),
        }
    }
}

/// A folder with tasks that are due, and an archive as the stage says.
fn prepared(stage: Stage, name: &str) -> (Server, Archive) {
    let archive = Archive::new(name);
    let mut server = archive.serve(name, "7d");
    if stage != Stage::First {
        finish(&server, TASKS);
        server.kill();
        server.restart_with(&["--archive", archive.path(), "--retention", "1ms"]);
        wait_until("it is forgotten", || finished(&server) == 0);
        server.kill();
        server.restart_with(&["--archive", archive.path(), "--retention", "7d"]);
    }
    finish(&server, TASKS);
    server.kill();
    if stage == Stage::Torn {
        let file = &archive.files("tasks")[0];
        let mut bytes = fs::read(file).unwrap();
        bytes.extend_from_within(..bytes.len() / 2);
        fs::write(file, bytes).unwrap();
    }
    (server, archive)
}

fn serve_under_strace(
    data: &Path,
    archive: &Archive,
    call: &str,
    files: Files,
    when: u32,
) -> Child {
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
    command.arg("-e").arg(format!("inject={call}:signal=KILL:when={when}"));
    for path in files.paths(data, archive) {
        command.arg("-P").arg(path);
    }
    command.arg(env!("CARGO_BIN_EXE_tenure")).arg("serve").arg("--data").arg(data);
    command.args(["--archive", archive.path(), "--retention", "1ms", "--log", "quiet"]);
    command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn killed_in_any_call_of_archiving_nothing_is_lost() {
    if lacks_strace() {
        return;
    }
    for (stage, call, files, when) in POINTS {
        let what = format!("{stage:?}, {call} on {files:?}, number {when}");
        let (mut server, archive) = prepared(stage, &format!("point-{stage:?}-{call}-{files:?}"));
        let mut child = serve_under_strace(&server.folder, &archive, call, files, when);
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > ENDS_WITHIN {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{what}: it was not killed");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let (tasks, _) = forgotten(&server);
        let (found, ran) = archive.history(&["--all"]);
        assert_eq!(ran.status.code(), Some(0), "{what}: {}", said(&ran.stderr));
        assert_eq!(lost(&tasks, &found), [0; 0], "{what}");
        server.restart_with(&["--archive", archive.path(), "--retention", "1ms"]);
        wait_until("all is forgotten", || finished(&server) == 0);
        let (tasks, _) = forgotten(&server);
        let found = archive.all(&[]);
        let expected = if stage == Stage::First { TASKS } else { 2 * TASKS };
        assert_eq!((tasks.len(), found.len()), (expected, expected), "{what}");
        assert_eq!(lost(&tasks, &found), [0; 0], "{what}");
    }
}
