//! The graph of a workflow, with the progress of one run in it: nodes and edges with positions, states
//! and counts, and drawings of them as text, SVG and Graphviz. It knows definitions, and neither the
//! wire nor a terminal.

pub mod dot;
mod geometry;
mod layout;
mod model;
mod standing;
pub mod svg;
mod tally;
pub mod text;
mod words;

pub use model::{Area, Caption, Edge, EdgeKind, Graph, Node, Progress};
pub use standing::Standing;
pub use tally::{Tally, Token};

#[cfg(test)]
mod tests;
