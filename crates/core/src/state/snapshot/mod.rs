//! Facts to snapshot items, and back. The format is that of `tenure_record::snapshot`.

mod read;
mod read_run;
#[cfg(test)]
mod tests;
mod whole_run;
mod write;
mod write_run;

pub use self::read::Decoder;
pub use self::write::{Encoder, each_item};
