//! A file as chunks of lines, each as large as one request may well be.

use std::io::{BufRead, BufReader, Read};

use tenure_sdk::api::NewTask;

use super::super::line;

/// Tasks in one chunk.
const CHUNK_TASKS_MAX: usize = 1_000;
/// Bytes of lines after which a chunk is full; a server takes messages of 16 MiB.
const CHUNK_BYTES: u64 = 4 << 20;
/// Bytes of one line: a payload of 1 MiB and more than enough around it.
const LINE_BYTES_MAX: u64 = 2 << 20;

/// Lines that are submitted together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) tasks: Vec<NewTask>,
    /// The line of each task.
    lines: Vec<u64>,
    pub(super) start_line: u64,
    /// The line after the last.
    pub(super) end_line: u64,
    /// Bytes read from the beginning of the file.
    pub(super) read_bytes: u64,
}

impl Chunk {
    /// A sentence of the server about `tasks[3]`, said of the line that it is; none if it names no
    /// task.
    pub(super) fn by_lines(&self, sentence: &str) -> Option<String> {
        let mut parts = sentence.split("tasks[");
        let mut said = parts.next()?.to_owned();
        let mut is_named = false;
        for part in parts {
            let named = part.split_once(']').and_then(|(index, rest)| {
                let line = self.lines.get(index.parse::<usize>().ok()?)?;
                Some(format!("line {line}{rest}"))
            });
            is_named |= named.is_some();
            said.push_str(&named.unwrap_or_else(|| format!("tasks[{part}")));
        }
        is_named.then_some(said)
    }
}

/// A file, chunk by chunk.
pub(super) struct Chunks {
    from: BufReader<Box<dyn Read + Send>>,
    from_line: u64,
    next_line: u64,
    read_bytes: u64,
}

impl Chunks {
    pub(super) fn new(from: BufReader<Box<dyn Read + Send>>, from_line: u64) -> Self {
        Self { from, from_line, next_line: 1, read_bytes: 0 }
    }

    /// The next chunk; none at the end. What is wrong with a line is said with its number, and
    /// nothing of its chunk is given.
    pub(super) fn next(&mut self) -> Result<Option<Chunk>, String> {
        let mut chunk = Chunk { start_line: self.next_line, ..Chunk::default() };
        let mut bytes = 0;
        while chunk.tasks.len() < CHUNK_TASKS_MAX && bytes < CHUNK_BYTES {
            let line = self.next_line;
            let Some(text) = self.line().map_err(|why| format!("line {line}: {why}"))? else {
                break;
            };
            if line < self.from_line || text.trim_ascii().is_empty() {
                continue;
            }
            bytes += text.len() as u64;
            let task =
                line::parse(text.trim_ascii_end()).map_err(|why| format!("line {line}: {why}"))?;
            if chunk.tasks.is_empty() {
                chunk.start_line = line;
            }
            chunk.tasks.push(task);
            chunk.lines.push(line);
        }
        (chunk.end_line, chunk.read_bytes) = (self.next_line, self.read_bytes);
        Ok(Some(chunk).filter(|chunk| !chunk.tasks.is_empty()))
    }

    fn line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut text = Vec::new();
        let bounded = &mut (&mut self.from).take(LINE_BYTES_MAX + 1);
        let read = bounded.read_until(b'\n', &mut text);
        let read = read.map_err(|error| format!("it cannot be read: {error}"))? as u64;
        if read > LINE_BYTES_MAX {
            return Err(format!("it has more than {LINE_BYTES_MAX} bytes; a task can hold 1 MiB"));
        }
        self.next_line += u64::from(read > 0);
        self.read_bytes += read;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &str, from_line: u64) -> Chunks {
        let bytes: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(text.to_owned()));
        Chunks::new(BufReader::new(bytes), from_line)
    }

    #[test]
    fn a_bad_line_takes_its_chunk_with_it_and_no_other() {
        let mut text = "{}\n".repeat(CHUNK_TASKS_MAX);
        text.push_str("{}\n\nno\n{}\n");
        let mut chunks = chunks(&text, 1);
        assert_eq!(chunks.next().unwrap().unwrap().tasks.len(), CHUNK_TASKS_MAX);
        let sentence = chunks.next().unwrap_err();
        assert!(sentence.starts_with("line 1003: it must be an object"), "{sentence}");
    }

    #[test]
    fn lines_are_counted_as_an_editor_counts_them() {
        let mut chunks = chunks("no\n\n{\"queue\":\"a\"}\r\n\n{\"queue\":\"b\"}", 2);
        let chunk = chunks.next().unwrap().unwrap();
        assert_eq!((chunk.start_line, chunk.end_line), (3, 6));
        let said =
            chunk.by_lines("tasks[1]: its key is that of tasks[0], not tasks[x] or tasks[9]");
        let expected = "line 5: its key is that of line 3, not tasks[x] or tasks[9]";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(chunk.by_lines("it is wrong"), None);
        assert!(chunks.next().unwrap().is_none());
    }

    #[test]
    fn a_line_without_an_end_is_not_read_for_ever() {
        let text = " ".repeat(LINE_BYTES_MAX as usize + 2);
        assert!(chunks(&text, 1).next().unwrap_err().contains("line 1: it has more than"));
    }
}
