//! The graph of a workflow, with the progress of one run in it: what is there (`model`), where it
//! goes (`layout`), and drawings as text, SVG and Graphviz. It knows definitions, and neither the
//! wire nor a terminal.

pub mod dot;
mod layout;
pub mod model;
pub mod standing;
pub mod svg;
pub mod text;

#[cfg(test)]
mod tests;
