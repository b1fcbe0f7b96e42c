//! A task's payload as something to run.

use std::path::PathBuf;

use serde_json::{Map, Value};
use tenure_sdk::Failure;

use crate::worker::verbatim;

/// What to run, and with what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// The program and its arguments; never empty.
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) stdin: Option<Vec<u8>>,
    pub(super) cwd: Option<PathBuf>,
}

/// What a worker agrees to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Programs with arguments.
    Argv,
    /// Also text for a shell.
    ArgvAndShell,
}

/// Reads a payload. What is wrong with it will be wrong at the next attempt too.
pub(super) fn parse(payload: &[u8], accepts: Accepts) -> Result<Job, Failure> {
    read(payload, accepts).map_err(|sentence| Failure::permanent(sentence).code("invalid_payload"))
}

fn read(bytes: &[u8], accepts: Accepts) -> Result<Job, String> {
    let payload = serde_json::from_slice(bytes)
        .map_err(|error| format!("the payload is not JSON that can be read: {error}"))?;
    let Value::Object(payload) = payload else {
        return Err("the payload must be an object with `argv`, such as \
                    {\"argv\": [\"echo\", \"hello\"]}"
            .to_owned());
    };
    Ok(Job {
        argv: argv(&payload, accepts)?,
        env: env(payload.get("env"))?,
        stdin: match payload.get("stdin") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone().into_bytes()),
            Some(_) => verbatim::field(bytes, "stdin").map(String::into_bytes),
        },
        cwd: cwd(payload.get("cwd"))?,
    })
}

fn argv(payload: &Map<String, Value>, accepts: Accepts) -> Result<Vec<String>, String> {
    match (payload.get("argv"), payload.get("command")) {
        (Some(_), Some(_)) => Err("the payload has `argv` and `command`; give one of them".into()),
        (None, None) => Err("the payload has no `argv`: give a list of strings, such as \
                             [\"echo\", \"hello\"]"
            .into()),
        (Some(argv), None) => strings(argv),
        (None, Some(Value::String(command))) if accepts == Accepts::ArgvAndShell => {
            no_nul("command", command)?;
            Ok(["sh", "-c", command].map(str::to_owned).to_vec())
        }
        (None, Some(Value::String(_))) => Err("this worker runs no `command`, because that goes \
                                               through a shell: give `argv`, or start the worker \
                                               with --shell"
            .into()),
        (None, Some(_)) => Err("`command` must be a string".into()),
    }
}

fn strings(argv: &Value) -> Result<Vec<String>, String> {
    let wrong = || "`argv` must be a list of at least one string".to_owned();
    let list = argv.as_array().filter(|list| !list.is_empty()).ok_or_else(wrong)?;
    let string = |(at, value): (usize, &Value)| {
        let text = value.as_str().ok_or_else(|| format!("`argv[{at}]` must be a string"))?;
        no_nul("argv", text)?;
        Ok(text.to_owned())
    };
    let argv = list.iter().enumerate().map(string).collect::<Result<Vec<_>, String>>()?;
    match argv.first().is_some_and(|program| !program.is_empty()) {
        true => Ok(argv),
        false => Err("`argv[0]` is the program, and must not be empty".into()),
    }
}

fn env(env: Option<&Value>) -> Result<Vec<(String, String)>, String> {
    let env = match env {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(env)) => env,
        Some(_) => return Err("`env` must be an object of strings".into()),
    };
    let pair = |(name, value): (&String, &Value)| {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("`env` has {name:?}, which cannot be the name of a variable"));
        }
        let value = value.as_str().ok_or_else(|| {
            format!("`env` must be an object of strings, and {name:?} is none; put it in quotes")
        })?;
        no_nul("env", value)?;
        Ok((name.clone(), value.to_owned()))
    };
    env.iter().map(pair).collect()
}

fn cwd(cwd: Option<&Value>) -> Result<Option<PathBuf>, String> {
    match cwd {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(path)) if !path.is_empty() => {
            no_nul("cwd", path)?;
            Ok(Some(PathBuf::from(path)))
        }
        Some(_) => Err("`cwd` must be the path of a folder".into()),
    }
}

fn no_nul(field: &str, text: &str) -> Result<(), String> {
    match text.contains('\0') {
        true => Err(format!("`{field}` has a NUL character, which no program can be given")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
