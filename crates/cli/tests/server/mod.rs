//! A server in a process of its own, on a folder of its own.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

const ANY_PORT: &str = "127.0.0.1:0";
/// The media type of request bodies.
pub(crate) const JSON: &str = "application/json";
pub(crate) const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

pub(crate) struct Server {
    pub(crate) folder: PathBuf,
    pub(crate) address: String,
    child: Child,
}

impl Server {
    pub(crate) fn start(name: &str) -> Self {
        Self::start_with(name, &[], &[])
    }

    pub(crate) fn start_with(name: &str, args: &[&str], envs: &[(&str, &str)]) -> Self {
        let folder = folder_of(name);
        let _ = std::fs::remove_dir_all(&folder);
        let (child, address) = spawn(&folder, ANY_PORT, args, envs);
        Self { folder, address, child }
    }

    /// Runs `tenure serve` where it is expected to end by itself.
    pub(crate) fn run(name: &str, args: &[&str], envs: &[(&str, &str)]) -> Output {
        let folder = folder_of(name);
        let output = Self::run_on(&folder, args, envs);
        let _ = std::fs::remove_dir_all(&folder);
        output
    }

    pub(crate) fn run_on(folder: &Path, args: &[&str], envs: &[(&str, &str)]) -> Output {
        command(folder, args, envs).output().unwrap()
    }

    /// A server whose lines can be read.
    pub(crate) fn start_listening(name: &str, args: &[&str]) -> (Self, std::process::ChildStderr) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = folder_of(&format!("{name}-{number}"));
        let _ = std::fs::remove_dir_all(&folder);
        let (mut child, address) =
            begin(command(&folder, args, &[]).stderr(Stdio::piped()), ANY_PORT);
        let stderr = child.stderr.take().unwrap();
        (Self { folder, address: address.unwrap(), child }, stderr)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A server that another program runs, which must make it a child of this process.
    pub(crate) fn start_under(name: &str, runner: &[String]) -> Option<Self> {
        let folder = folder_of(name);
        let _ = std::fs::remove_dir_all(&folder);
        Self::start_on(folder, runner)
    }

    /// The same on a folder; none if it ended before it was ready.
    pub(crate) fn start_on(folder: PathBuf, runner: &[String]) -> Option<Self> {
        let serve = command(&folder, &[], &[]);
        let mut command = match runner.split_first() {
            None => serve,
            Some((program, args)) => {
                let mut command = Command::new(program);
                command.args(args).arg(TENURE).args(serve.get_args());
                command
            }
        };
        let (child, address) = begin(&mut command, ANY_PORT);
        let mut server = Self { folder, address: String::new(), child };
        match address {
            Some(address) => server.address = address,
            None => {
                let _ = server.child.wait();
                // The folder is looked at by whoever wanted this.
                server.folder = PathBuf::new();
                return None;
            }
        }
        Some(server)
    }

    /// Leaves the folder behind when this is dropped.
    pub(crate) fn keep_folder(&mut self) -> PathBuf {
        std::mem::take(&mut self.folder)
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The exit code, if it has ended by itself.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap()?.code()
    }

    /// Asserts that it answers, and that it does not hold more memory than so.
    pub(crate) fn assert_well(&self, what: &str, mib_max: u64) {
        assert_eq!(self.text("/healthz"), "ok\n", "{what}");
        let mib = self.memory_mib();
        assert!(mib < mib_max, "{what}: {mib} MiB are held");
    }

    /// What it holds in memory.
    pub(crate) fn memory_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }

    /// A connection on which nothing was said yet.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        (self.child, self.address) = spawn(&self.folder, ANY_PORT, &[], &[]);
    }

    /// The same with other flags.
    pub(crate) fn restart_with(&mut self, args: &[&str]) {
        (self.child, self.address) = spawn(&self.folder, ANY_PORT, args, &[]);
    }

    /// The same at the address that it had, for those who come back to it.
    pub(crate) fn restart_where_it_was(&mut self) {
        (self.child, self.address) = spawn(&self.folder, &self.address, &[], &[]);
    }

    /// SIGKILL, and a new process where the old one was.
    pub(crate) fn crash_and_come_back(&mut self) {
        self.kill();
        self.restart_where_it_was();
    }

    /// SIGTERM; gives the exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// Another command on the server's folder.
    pub(crate) fn tenure(&self, args: &[&str]) -> Output {
        Command::new(TENURE).args(args).arg("--data").arg(&self.folder).output().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        get_from(&self.address, path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        let mut answer = agent().get(url(&self.address, path)).call().unwrap();
        answer.body_mut().read_to_string().unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        post_to(&self.address, path, &body.to_string())
    }

    pub(crate) fn post_text(&self, path: &str, body: &str) -> (u16, Value) {
        post_to(&self.address, path, body)
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.put_as(path, JSON, &body.to_string())
    }

    pub(crate) fn put_as(&self, path: &str, media_type: &str, body: &str) -> (u16, Value) {
        let request = agent().put(url(&self.address, path)).content_type(media_type);
        read(request.send(body).unwrap())
    }

    pub(crate) fn delete(&self, path: &str) -> (u16, Value) {
        read(agent().delete(url(&self.address, path)).call().unwrap())
    }

    /// Sends bytes as they are, and gives the beginning of the answer.
    pub(crate) fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 1024];
        let size = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..size]).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !self.folder.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn command(folder: &Path, args: &[&str], envs: &[(&str, &str)]) -> Command {
    let mut command = Command::new(TENURE);
    command.arg("serve").arg("--data").arg(folder).args(args).envs(envs.iter().copied());
    if !args.contains(&"--log") {
        command.args(["--log", "quiet"]);
    }
    command
}

fn spawn(folder: &Path, listen: &str, args: &[&str], envs: &[(&str, &str)]) -> (Child, String) {
    let (child, address) = begin(&mut command(folder, args, envs), listen);
    (child, address.expect("the ready line has an address"))
}

/// Starts it, and waits for its ready line; there is none if it ends before that.
fn begin(command: &mut Command, listen: &str) -> (Child, Option<String>) {
    let mut child = command.args(["--listen", listen]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned());
    (child, address)
}

pub(crate) fn folder_of(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tenure-serve-{name}-{}", std::process::id()))
}

/// Why something needs `strace` and cannot have it. Under CI it must be there.
pub(crate) fn lacks_strace() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let why = match tried {
        Ok(output) if output.status.success() => return false,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "under CI this must run: {why}");
    println!("SKIPPED: strace cannot be used: {why}");
    true
}

pub(crate) fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(70)));
    config.build().into()
}

pub(crate) fn url(address: &str, path: &str) -> String {
    format!("http://{address}{path}")
}

pub(crate) fn get_from(address: &str, path: &str) -> (u16, Value) {
    read(agent().get(url(address, path)).call().unwrap())
}

pub(crate) fn post_to(address: &str, path: &str, body: &str) -> (u16, Value) {
    read(agent().post(url(address, path)).content_type(JSON).send(body).unwrap())
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> (u16, Value) {
    let status = answer.status().as_u16();
    let text = answer.body_mut().read_to_string().unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}
