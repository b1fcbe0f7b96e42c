//! Other programs: how chores start them, and how they are named to a person.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// The top of the repository.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask is a folder of the repository")
}

/// A program that will run at the top of the repository and is asked nothing on its stdin.
pub(crate) fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Cargo, the very one that runs this chore, with arguments that hold no spaces.
pub(crate) fn cargo(args: &str) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args.split(' '));
    command
}

/// Runs to the end with its output shown as it comes.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(failed(command, status))
}

/// Runs to the end and gives back what was written to stdout; stderr is shown.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String, String> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        return Err(failed(command, output.status));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("This printed something that is not UTF-8:\n    {}", line(command)))
}

/// The command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    let env = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.display(), quoted(&value?.to_string_lossy())))
    });
    // Cargo is started by its full path, but nobody types that.
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let program = std::iter::once(program.to_string_lossy().into_owned());
    let args = command.get_args().map(|arg| quoted(&arg.to_string_lossy()));
    env.chain(program).chain(args).collect::<Vec<_>>().join(" ")
}

pub(crate) fn no_arguments(chore: &str, args: &[String]) -> Result<(), String> {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(unknown_argument(chore, arg)),
    }
}

pub(crate) fn unknown_argument(chore: &str, arg: &str) -> String {
    format!("`{arg}` means nothing to `{chore}`. `cargo xtask {chore} --help` shows what does.")
}

fn failed(command: &Command, status: ExitStatus) -> String {
    let line = line(command);
    format!("The reason is above ({status}). Mend it, and repeat this alone with:\n    {line}")
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    let program = command.get_program().display();
    if error.kind() == ErrorKind::NotFound {
        format!("`{program}` was not found. Install it and try again.")
    } else {
        format!("`{program}` could not be started: {error}.")
    }
}

fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("'{text}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_so_that_it_can_be_pasted() {
        let mut command = cargo("doc --no-deps");
        command.env("RUSTDOCFLAGS", "-D warnings");
        let text = line(&command);
        assert_eq!(text, "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn a_failing_command_fails_the_chore() {
        let sentence = run(&mut program("false")).unwrap_err();
        assert!(sentence.ends_with("false"), "{sentence}");
        assert!(stdout_of(&mut program("false")).is_err());
    }

    #[test]
    fn a_missing_program_is_named() {
        let sentence = run(&mut program("no-such-program-here")).unwrap_err();
        assert!(sentence.contains("`no-such-program-here` was not found"), "{sentence}");
    }
}
