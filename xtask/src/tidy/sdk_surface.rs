//! The public API of the SDK names no type of the wire: neither `tonic`, `prost` nor `tenure_proto`
//! stands in a public signature, field, re-export or trait implementation.

use super::tree::Tree;
use super::{Outcome, Problem};

const SDK: &str = "crates/sdk/src/";

/// How the types of the wire are written in the SDK.
const WIRE: [&str; 7] =
    ["tonic::", "prost::", "tenure_proto", "v1::", "Streaming<", "Connection", "Channel"];

pub(super) fn check(tree: &Tree) -> Outcome {
    let mut problems = Vec::new();
    let sdk = tree.rust_files().filter(|(path, _)| path.starts_with(SDK));
    for (path, text) in sdk {
        // Tests stand at the end of a file.
        let text = text.split("#[cfg(test)]").next().unwrap_or(text);
        for (line, item) in public_items(text) {
            if let Some(found) = WIRE.iter().find(|name| item.contains(*name)) {
                let advice = format!(
                    "a public item of the SDK names `{found}`; use a type of `tenure_api` or of the \
                     SDK, or make the item `pub(crate)`"
                );
                problems.push(Problem::new(path, line, advice));
            }
        }
    }
    Outcome::Checked(problems)
}

/// The public items of a file up to their bodies, and the implementations of traits, each with the
/// line on which it begins.
fn public_items(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |line: &str| {
        let line = line.trim_start();
        line.starts_with("pub ") || (line.starts_with("impl") && line.contains(" for "))
    };
    let mut items = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| begins(line)) {
        let is_field = !["fn ", "struct ", "enum ", "use ", "type ", "trait ", "const ", "impl"]
            .iter()
            .any(|word| line.contains(word));
        let ends =
            |line: &&&str| line.ends_with(['{', '}', ';']) || (is_field && line.ends_with(','));
        let length = lines[at..].iter().position(|line| ends(&line)).unwrap_or(0);
        items.push((at + 1, lines[at..=at + length].join(" ")));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<String> {
        check(&Tree::of([("crates/sdk/src/a.rs", text)])).places()
    }

    #[test]
    fn a_public_item_of_the_wire_is_refused() {
        for text in [
            "pub use tenure_proto::v1 as wire;\n",
            "pub type Incoming<T> = tonic::Streaming<T>;\n",
            "pub async fn get(\n    &self,\n) -> Result<v1::Task, Error> {\n",
            "pub fn rpc(&self) -> TasksClient<Connection> {\n",
            "pub struct Task {\n    pub lease: v1::Lease,\n}\n",
            "impl From<tonic::Status> for Error {\n",
        ] {
            assert_eq!(places(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_not_public_may_name_the_wire() {
        for text in [
            "pub(crate) fn from_status(status: tonic::Status) -> Self {\n",
            "pub struct Tasks {\n    rpc: TasksClient<Connection>,\n}\n",
            "pub async fn get(&self) -> Result<Task, Error> {\n    v1::GetTaskRequest {};\n",
            "#[cfg(test)]\nmod tests {\n    impl From<v1::Task> for Task {\n",
        ] {
            assert_eq!(places(text), [""; 0], "{text}");
        }
    }
}
