//! What goes into a child and comes out of it, without ever holding more than was agreed.

use std::io;
use std::process::{ChildStderr, ChildStdin, ChildStdout};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

/// How much of stderr becomes the reason of a failure; the server keeps no more.
const REASON_BYTES_MAX: usize = 4_096;
/// What is read at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// The three ends that are ours.
#[derive(Debug)]
pub(super) struct Pipes {
    stdin: Option<Sender>,
    stdout: Receiver,
    stderr: Receiver,
}

/// Stdout had more bytes than it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Pipes {
    pub(super) fn new(
        stdin: Option<ChildStdin>,
        stdout: ChildStdout,
        stderr: ChildStderr,
    ) -> io::Result<Self> {
        Ok(Self {
            stdin: stdin.map(|pipe| Sender::from_owned_fd(pipe.into())).transpose()?,
            stdout: Receiver::from_owned_fd(stdout.into())?,
            stderr: Receiver::from_owned_fd(stderr.into())?,
        })
    }

    /// Moves bytes until all pipes are closed, or until stdout has too many.
    pub(super) async fn pump(
        self,
        input: Option<Vec<u8>>,
        output: &mut Vec<u8>,
        output_max: usize,
        tail: &mut Tail,
    ) -> Result<(), TooLarge> {
        tokio::try_join!(
            feed(self.stdin, input),
            collect(self.stdout, output, output_max),
            follow(self.stderr, tail),
        )?;
        Ok(())
    }
}

/// A child need not read what it is given.
async fn feed(pipe: Option<Sender>, input: Option<Vec<u8>>) -> Result<(), TooLarge> {
    if let (Some(mut pipe), Some(input)) = (pipe, input) {
        let _ = pipe.write_all(&input).await;
    }
    Ok(())
}

async fn collect(mut pipe: Receiver, output: &mut Vec<u8>, max: usize) -> Result<(), TooLarge> {
    let mut chunk = vec![0; CHUNK_BYTES];
    // A pipe that cannot be read is as good as closed.
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        if output.len() + count > max {
            return Err(TooLarge);
        }
        output.extend_from_slice(&chunk[..count]);
    }
    Ok(())
}

async fn follow(mut pipe: Receiver, tail: &mut Tail) -> Result<(), TooLarge> {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        tail.push(&chunk[..count]);
    }
    Ok(())
}

/// The end of what was written to stderr.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if let Some(surplus) = self.bytes.len().checked_sub(REASON_BYTES_MAX).filter(|n| *n > 0) {
            self.bytes.drain(..surplus);
            self.is_cut = true;
        }
    }

    /// As text that fits into a reason, from the beginning of a character on.
    pub(super) fn text(&self) -> String {
        let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let torn = match self.is_cut {
            true => self.bytes.iter().take(3).take_while(is_inside).count(),
            false => 0,
        };
        let text = String::from_utf8_lossy(&self.bytes[torn..]);
        let text = text.trim_end();
        // What is no text became longer.
        let from = text.len().saturating_sub(REASON_BYTES_MAX);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[from..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: &[&[u8]]) -> String {
        let mut tail = Tail::default();
        parts.iter().for_each(|part| tail.push(part));
        tail.text()
    }

    #[test]
    fn the_end_of_stderr_is_kept() {
        assert_eq!(text(&[b"one\n", b"two\n"]), "one\ntwo");
        let long = [&[b'a'; 10_000][..], b"the end\n"];
        let kept = text(&long);
        assert!(kept.ends_with("athe end") && kept.len() == REASON_BYTES_MAX - 1, "{}", kept.len());
    }

    #[test]
    fn a_character_that_was_cut_in_two_is_left_out() {
        for shift in 0..4 {
            let long = format!("{}{}", "x".repeat(shift), "\u{1f600}".repeat(3_000));
            let kept = text(&[long.as_bytes()]);
            assert!(kept.chars().all(|c| c == '\u{1f600}'), "{shift}");
            assert!(kept.len() > REASON_BYTES_MAX - 4);
        }
    }

    #[test]
    fn what_is_no_text_still_fits() {
        let kept = text(&[&[0xff; 9_000]]);
        assert!(kept.len() <= REASON_BYTES_MAX && kept.chars().all(|c| c == '\u{fffd}'));
        assert_eq!(text(&[b"\x80\x80 whole"]), "\u{fffd}\u{fffd} whole");
    }
}
