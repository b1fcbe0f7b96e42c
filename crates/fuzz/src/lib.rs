//! The fuzz targets (T16): every decoder that reads what a disk gives back, the readers of workflows
//! and those of requests, each with what must hold of any bytes at all. A target is one function from bytes to an end without a panic; the short form
//! (a test, with seeds of its own) and the long form (under libFuzzer) call the same one.

mod damage;
mod definition;
mod expression;
mod forged;
mod header;
mod input;
mod log;
mod opened;
mod record;
mod reference;
mod request;
mod snapshot;
mod state;

/// A function that takes any bytes, and panics if something that must hold does not.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called on the command line, and the name of its file in the corpus.
    pub name: &'static str,
    /// The check.
    pub run: fn(&[u8]),
    seeds: fn() -> Vec<Vec<u8>>,
    corpus: &'static str,
}

impl Target {
    /// Inputs that show the way in, and those that the corpus has kept: in hex, one on a line.
    #[must_use]
    pub fn known(&self) -> Vec<Vec<u8>> {
        let lines = self.corpus.lines().filter(|line| !line.starts_with('#'));
        (self.seeds)().into_iter().chain(lines.map(from_hex)).collect()
    }
}

fn from_hex(line: &str) -> Vec<u8> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).expect("the corpus is in hex") as u8;
    line.as_bytes()
        .chunks(2)
        .map(|two| two.iter().fold(0, |byte, d| byte << 4 | digit(d)))
        .collect()
}

/// All of them.
pub const TARGETS: [Target; 9] = [
    Target {
        name: "record",
        run: record::run,
        seeds: record::seeds,
        corpus: include_str!("../corpus/record.txt"),
    },
    Target {
        name: "header",
        run: header::run,
        seeds: header::seeds,
        corpus: include_str!("../corpus/header.txt"),
    },
    Target {
        name: "log",
        run: log::run,
        seeds: log::seeds,
        corpus: include_str!("../corpus/log.txt"),
    },
    Target {
        name: "forged",
        run: forged::run,
        seeds: forged::seeds,
        corpus: include_str!("../corpus/forged.txt"),
    },
    Target {
        name: "snapshot",
        run: snapshot::run,
        seeds: snapshot::seeds,
        corpus: include_str!("../corpus/snapshot.txt"),
    },
    Target {
        name: "state",
        run: state::run,
        seeds: state::seeds,
        corpus: include_str!("../corpus/state.txt"),
    },
    Target {
        name: "definition",
        run: definition::run,
        seeds: definition::seeds,
        corpus: include_str!("../corpus/definition.txt"),
    },
    Target {
        name: "expression",
        run: expression::run,
        seeds: expression::seeds,
        corpus: include_str!("../corpus/expression.txt"),
    },
    Target {
        name: "request",
        run: request::run,
        seeds: request::seeds,
        corpus: include_str!("../corpus/request.txt"),
    },
];

/// The target of that name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// No input may make a decoder hold more than this. The largest honest thing is a payload of
/// 16 MiB; inputs here are a thousandth of that.
pub const MEMORY_BYTES_MAX: usize = 256 << 20;
