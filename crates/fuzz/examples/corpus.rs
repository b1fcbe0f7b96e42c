//! The corpus between its text files and the folders that a fuzzer wants:
//! `corpus unpack <target> <folder>` writes every known input as a file, and
//! `corpus keep <target> <folder>` adds the files that are not known yet to the text.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use tenure_fuzz::{Target, target};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["unpack", name, folder] => target(name).map(|target| unpack(target, folder.as_ref())),
        ["keep", name, folder] => target(name).map(|target| keep(target, folder.as_ref())),
        _ => None,
    };
    match done {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("The corpus could not be read or written: {error}.");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("Say `unpack` or `keep`, a target, and a folder.");
            ExitCode::FAILURE
        }
    }
}

fn unpack(target: &Target, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (nth, input) in target.known().iter().enumerate() {
        fs::write(folder.join(format!("known-{nth:04}")), input)?;
    }
    Ok(())
}

fn keep(target: &Target, folder: &Path) -> io::Result<()> {
    let known = target.known();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        found.push(fs::read(entry?.path())?);
    }
    found.retain(|input| !input.is_empty() && !known.contains(input));
    found.sort_by_key(|input| (input.len(), input.clone()));
    found.dedup();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let path = path.join(format!("{}.txt", target.name));
    let mut text = fs::OpenOptions::new().append(true).open(path)?;
    for input in &found {
        let mut line = String::with_capacity(input.len() * 2 + 1);
        for byte in input {
            let _ = write!(line, "{byte:02x}");
        }
        writeln!(text, "{line}")?;
    }
    println!("{}: {} more inputs in the corpus.", target.name, found.len());
    Ok(())
}
