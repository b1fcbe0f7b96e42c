//! `cargo xtask schemathesis`: a server is asked all that its OpenAPI document allows, and much that
//! it does not. It must not fail, and every answer must be one that the document promises.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::command::{self, cargo, program, root};
use crate::tools;

/// What is installed: exactly these versions.
const REQUIREMENTS: &str = "xtask/schemathesis/requirements.txt";
/// Where it is installed, and where the server keeps its tasks meanwhile.
const FOLDER: &str = "target/schemathesis";
const SECONDS: u64 = 600;
/// In the tests of every change.
const SECONDS_SHORT: u64 = 50;
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let seconds = match args {
        [] => SECONDS,
        [flag, number] if flag == "--seconds" => {
            number.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
                format!("--seconds needs a whole number above 0, such as 60, not `{number}`.")
            })?
        }
        [arg, ..] => return Err(command::unknown_argument("schemathesis", arg)),
    };
    let tool = install()?;
    command::run(&mut cargo("build -p tenure-cli"))?;
    ask_for(&tool, seconds)
}

/// The form for every change. Without Python it says so; under CI it must run.
pub(crate) fn short() -> Result<(), String> {
    match install() {
        Ok(tool) => {
            // The server of the tests before this: built alone it has fewer features, and every
            // crate that notices would be compiled once more.
            command::run(&mut cargo("test --workspace --no-run --test it"))?;
            ask_for(&tool, SECONDS_SHORT)
        }
        Err(reason) if tools::is_ci() => Err(reason),
        Err(reason) => {
            println!("SKIPPED: schemathesis cannot be installed here.\n{reason}");
            Ok(())
        }
    }
}

/// Installs it into a folder of its own, unless it is there.
fn install() -> Result<PathBuf, String> {
    let folder = root().join(FOLDER);
    let wanted = fs::read_to_string(root().join(REQUIREMENTS))
        .map_err(|error| format!("{REQUIREMENTS} cannot be read: {error}."))?;
    let (venv, installed) = (folder.join("venv"), folder.join("installed.txt"));
    let tool = venv.join("bin/schemathesis");
    if tool.exists() && fs::read_to_string(&installed).is_ok_and(|there| there == wanted) {
        return Ok(tool);
    }
    let failed = |error: std::io::Error| format!("{} cannot be made: {error}.", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    command::run(program("python3").args(["-m", "venv"]).arg(&venv))?;
    let mut pip = program(venv.join("bin/pip"));
    command::run(pip.args(["install", "--quiet", "--no-deps", "--requirement", REQUIREMENTS]))?;
    fs::write(&installed, wanted).map_err(failed)?;
    Ok(tool)
}

/// Asks the server that was built last.
fn ask_for(tool: &Path, seconds: u64) -> Result<(), String> {
    let mut server = Server::start()?;
    let mut asking = program(tool);
    asking
        .arg("run")
        .arg(format!("http://{}/openapi.json", server.address))
        // It does not end.
        .args(["--exclude-path", "/v1/events"])
        .args(["--phases", "examples,coverage,fuzzing", "--checks", CHECKS])
        // More than one at a time trips over Python itself.
        .args(["--workers", "1", "--request-timeout", "30", "--continue-on-failure"])
        .args(["--max-time", &seconds.to_string()])
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("TENURE_ADDRESS", &server.address)
        .env("PYTHONPATH", root().join("xtask/schemathesis"))
        .env("NO_COLOR", "1");
    command::run(&mut asking)?;
    server.has_survived()
}

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Result<Self, String> {
        let data = root().join(FOLDER).join("data");
        let _ = fs::remove_dir_all(&data);
        let mut serve = program("target/debug/tenure");
        serve.args(["serve", "--log", "quiet", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        serve.stdout(Stdio::piped());
        let failed = |error: std::io::Error| format!("The server could not be started: {error}.");
        let mut process = serve.spawn().map_err(failed)?;
        let mut ready = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut ready).map_err(failed)?;
        }
        let mut server = Self { process, address: String::new() };
        match ready.trim().rsplit_once("http://") {
            Some((_, address)) => server.address = address.to_owned(),
            None => return Err("The server ended before it was ready.".to_owned()),
        }
        Ok(server)
    }

    fn has_survived(&mut self) -> Result<(), String> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("The server has ended: {status}.")),
            Err(error) => Err(format!("The server cannot be asked how it is: {error}.")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already if that fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_is_none_is_refused() {
        for args in [&["--seconds"][..], &["--seconds", "0"], &["--second", "5"], &["all"]] {
            let args: Vec<_> = args.iter().map(|&arg| arg.to_owned()).collect();
            assert!(run(&args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn every_version_is_pinned() {
        let wanted = fs::read_to_string(root().join(REQUIREMENTS)).unwrap();
        assert!(wanted.lines().all(|line| line.contains("==")), "{wanted}");
        assert!(wanted.contains("schemathesis=="));
    }
}
