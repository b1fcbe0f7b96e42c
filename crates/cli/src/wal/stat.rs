//! `tenure wal stat`: how large a log is and what is in it, with a picture of its segments.

mod picture;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use clap::Args;
use serde_json::{Value, json};
use tenure_log::{FrameKind, Lsn};
use tenure_record::time::Timestamp;
use tenure_wal::disk::read_only::ReadOnlyDisk;
use tenure_wal::{Inspection, Located, SegmentSummary, snapshot};

use super::time::{moment, text};
use super::{Data, Seen, read, sentence};
use crate::Format;
use crate::failure::Failure;
use crate::ui::output::Lines;

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure wal stat --data ./data
  tenure wal stat --data ./data -o json | jq .events";

/// A log that changes while it is read is read again so often.
const TRIES_MAX: u32 = 5;

#[derive(Debug, Args)]
pub(super) struct Stat {
    #[command(flatten)]
    data: Data,
}

pub(super) fn run(stat: &Stat, format: Format) -> Result<(), Failure> {
    let mut tries = 1;
    let report = loop {
        match count(stat) {
            Err(Failure::InMotion) if tries < TRIES_MAX => tries += 1,
            outcome => break outcome?,
        }
    };
    let mut lines = Lines::new();
    match format {
        Format::Json => lines.print(report.json()),
        Format::Table => report.table(&mut lines),
    }
    lines.finish();
    Ok(())
}

fn count(stat: &Stat) -> Result<Report, Failure> {
    let folder = &stat.data.folder;
    let (mut counts, mut marks) = (Counts::default(), Marks::default());
    let inspection = read(
        folder,
        |at| marks.note(at),
        |seen| {
            counts.add(seen);
            ControlFlow::Continue(())
        },
    )?;
    let snapshots = snapshot::list(&ReadOnlyDisk::open(folder)?)?;
    Ok(Report { folder: folder.display().to_string(), inspection, counts, marks, snapshots })
}

/// What the records add up to.
#[derive(Default)]
struct Counts {
    by_event: BTreeMap<&'static str, Count>,
    total: Count,
    /// The times of the first and the last record, by the wall clock.
    times: Option<(Timestamp, Timestamp)>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    records: u64,
    bytes: u64,
}

impl Counts {
    fn add(&mut self, seen: &Seen<'_>) {
        let count = self.by_event.entry(seen.record.event.name()).or_default();
        for count in [count, &mut self.total] {
            count.records += 1;
            count.bytes += seen.bytes as u64;
        }
        let first = self.times.map_or(seen.record.wall, |(first, _)| first);
        self.times = Some((first, seen.record.wall));
    }
}

/// Where the marks are, by segment number.
#[derive(Default)]
struct Marks(BTreeMap<u64, Vec<u64>>);

impl Marks {
    fn note(&mut self, at: &Located<'_>) {
        if at.frame.header.kind == FrameKind::Mark {
            self.0.entry(at.segment.header.number).or_default().push(at.offset);
        }
    }

    fn of(&self, segment: &SegmentSummary) -> &[u64] {
        self.0.get(&segment.header.number).map_or(&[], Vec::as_slice)
    }
}

struct Report {
    folder: String,
    inspection: Inspection,
    counts: Counts,
    marks: Marks,
    /// Newest first.
    snapshots: Vec<Lsn>,
}

impl Report {
    fn sum(&self, of: impl Fn(&SegmentSummary) -> u64) -> u64 {
        self.inspection.segments.iter().map(of).sum()
    }

    fn log_id(&self) -> Option<String> {
        self.inspection.segments.first().map(|first| format!("{:032x}", first.header.log_id))
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        self.inspection.recovered.notes.iter().map(sentence)
    }

    fn json(&self) -> Value {
        let segments: Vec<_> = self.inspection.segments.iter().map(|s| self.segment(s)).collect();
        let events: serde_json::Map<_, _> = self
            .counts
            .by_event
            .iter()
            .map(|(name, count)| {
                ((*name).to_owned(), json!({ "records": count.records, "bytes": count.bytes }))
            })
            .collect();
        let records = self.counts.total.records;
        let last_lsn = self.inspection.recovered.last_lsn.0;
        json!({
            "folder": self.folder,
            "log_id": self.log_id(),
            "segments": segments,
            "frames": self.sum(|s| s.frames),
            "marks": self.sum(|s| s.marks),
            "records": records,
            "record_bytes": self.counts.total.bytes,
            "used_bytes": self.sum(|s| s.used_bytes),
            "total_bytes": self.sum(|s| s.header.file_bytes),
            "first_lsn": (records > 0).then(|| last_lsn + 1 - records),
            "last_lsn": (records > 0).then_some(last_lsn),
            "first_at": self.counts.times.map(|(first, _)| moment(first)),
            "last_at": self.counts.times.map(|(_, last)| moment(last)),
            "events": events,
            "snapshots": self.snapshots.iter().map(|lsn| lsn.0).collect::<Vec<_>>(),
            "notes": self.notes().collect::<Vec<_>>(),
        })
    }

    fn segment(&self, segment: &SegmentSummary) -> Value {
        json!({
            "file": segment.file,
            "state": segment.state.as_str(),
            "first_lsn": segment.last_lsn().map(|_| segment.header.first_lsn.0),
            "last_lsn": segment.last_lsn().map(|lsn| lsn.0),
            "frames": segment.frames,
            "marks": segment.marks,
            "mark_offsets": self.marks.of(segment),
            "records": segment.records,
            "used_bytes": segment.used_bytes,
            "total_bytes": segment.header.file_bytes,
        })
    }

    fn table(&self, lines: &mut Lines) {
        let Some(log_id) = self.log_id() else {
            lines.print(format_args!("{} has no log yet.", self.folder));
            return;
        };
        let (used, total) = (self.sum(|s| s.used_bytes), self.sum(|s| s.header.file_bytes));
        let (frames, marks) = (self.sum(|s| s.frames), self.sum(|s| s.marks));
        let count = self.inspection.segments.len();
        lines.print(format_args!("folder    {}", self.folder));
        lines.print(format_args!("log       {log_id}"));
        lines.print(format_args!("segments  {count}, {used} of {total} bytes used"));
        lines.print(format_args!("frames    {frames}, {marks} of them marks"));
        let Count { records, bytes } = self.counts.total;
        let last = self.inspection.recovered.last_lsn.0;
        match self.counts.times {
            None => lines.print("records   0"),
            Some((first_at, last_at)) => {
                let first = last + 1 - records;
                lines.print(format_args!(
                    "records   {records}, {bytes} bytes, LSN {first} to {last}"
                ));
                lines.print(format_args!("time      {} to {}", text(first_at), text(last_at)));
            }
        }
        if !self.snapshots.is_empty() {
            let lsns: Vec<_> = self.snapshots.iter().map(ToString::to_string).collect();
            lines.print(format_args!("snapshots at LSN {}", lsns.join(" and ")));
        }
        lines.print("");
        self.segments_table(lines);
        lines.print("");
        self.events_table(lines);
        for note in self.notes() {
            lines.print(format_args!("\nnote: {note}"));
        }
    }

    fn segments_table(&self, lines: &mut Lines) {
        let header =
            ["segment", "state", "first LSN", "last LSN", "frames", "records", "used", "of"];
        let mut rows = vec![header.map(str::to_owned)];
        for segment in &self.inspection.segments {
            let lsn = |lsn: Option<u64>| lsn.map_or_else(|| "-".to_owned(), |lsn| lsn.to_string());
            let last = segment.last_lsn().map(|lsn| lsn.0);
            rows.push([
                segment.file.clone(),
                segment.state.as_str().to_owned(),
                lsn(last.map(|_| segment.header.first_lsn.0)),
                lsn(last),
                segment.frames.to_string(),
                segment.records.to_string(),
                segment.used_bytes.to_string(),
                segment.header.file_bytes.to_string(),
            ]);
        }
        print_rows(lines, &rows, 2);
        lines.print("");
        for segment in &self.inspection.segments {
            let bar = picture::bar(segment, self.marks.of(segment));
            lines.print(format_args!(
                "{:>6} [{bar}] {}",
                segment.header.number,
                segment.state.as_str()
            ));
        }
        lines.print(format_args!("       {}", picture::LEGEND));
    }

    fn events_table(&self, lines: &mut Lines) {
        let mut rows = vec![["event", "records", "bytes"].map(str::to_owned)];
        let mut counts: Vec<_> = self.counts.by_event.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(count.records));
        for (name, count) in counts {
            rows.push([(*name).to_owned(), count.records.to_string(), count.bytes.to_string()]);
        }
        print_rows(lines, &rows, 1);
    }
}

/// Columns side by side: the first few are words and start on the left, the others are numbers.
fn print_rows<const N: usize>(lines: &mut Lines, rows: &[[String; N]], words: usize) {
    let widths: [usize; N] =
        std::array::from_fn(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0));
    for row in rows {
        let cells =
            row.iter().zip(widths).enumerate().map(|(at, (cell, width))| match at < words {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        lines.print(cells.collect::<Vec<_>>().join("  "));
    }
}
