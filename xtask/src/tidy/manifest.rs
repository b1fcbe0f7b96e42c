//! What a Cargo.toml says about its package and dependencies. Reads the few shapes that we write,
//! which spares every chore the compiling of a TOML parser.

#[derive(Debug, PartialEq)]
pub(super) struct Dependency<'a> {
    pub(super) package: &'a str,
    pub(super) line: usize,
    pub(super) is_dev: bool,
}

pub(super) fn package_name(manifest: &str) -> Option<&str> {
    let (_, package) = manifest.split_once("[package]")?;
    package.lines().take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "name").then(|| value.trim().trim_matches('"'))
    })
}

pub(super) fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut found: Vec<Dependency<'_>> = Vec::new();
    let mut table = Table::Other;
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') && line.ends_with(']') {
            table = Table::of(line.trim_matches(['[', ']']));
            if let Table::One { package, is_dev } = table {
                found.push(Dependency { package, line: at + 1, is_dev });
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        match table {
            Table::Many { is_dev } => {
                // `core = { package = "tenure-core" }` is tenure-core; `core.workspace = true` is core.
                let name = key.split('.').next().unwrap_or(key).trim().trim_matches('"');
                let package = renamed(value).unwrap_or(name);
                found.push(Dependency { package, line: at + 1, is_dev });
            }
            Table::One { .. } if key.trim() == "package" => {
                if let Some(last) = found.last_mut() {
                    last.package = value.trim().trim_matches('"');
                }
            }
            Table::One { .. } | Table::Other => {}
        }
    }
    found
}

#[derive(Clone, Copy)]
enum Table<'a> {
    /// `[dependencies]`, one line for each.
    Many {
        is_dev: bool,
    },
    /// `[dependencies.name]`, a table for one.
    One {
        package: &'a str,
        is_dev: bool,
    },
    Other,
}

impl<'a> Table<'a> {
    fn of(header: &'a str) -> Self {
        // A workspace only names versions there; its packages say what they use.
        if header.starts_with("workspace.") {
            return Table::Other;
        }
        let Some((before, after)) = header.rsplit_once("dependencies") else {
            return Table::Other;
        };
        let is_dev = before.ends_with("dev-");
        match after.strip_prefix('.') {
            Some(package) => Table::One { package: package.trim_matches('"'), is_dev },
            None => Table::Many { is_dev },
        }
    }
}

fn renamed(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("package")?;
    rest.trim_start().strip_prefix('=')?.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shapes_of_a_dependency_are_seen() {
        let manifest = r#"
[package]
name = "tenure-wal"

[workspace.dependencies]
unseen = "1"

[dependencies]
plain = "1"
tabled = { version = "1", features = [
    "a",
] }
inherited.workspace = true
short = { package = "tenure-core", path = "../core" }

[dependencies.long]
version = "1"

[dependencies.alias]
package = "tenure-sim"

[target.'cfg(unix)'.dependencies]
unix = "1"

[dev-dependencies]
tested = "1"

[build-dependencies]
built = "1"

[lints]
workspace = true
"#;
        assert_eq!(package_name(manifest), Some("tenure-wal"));
        let found: Vec<_> =
            dependencies(manifest).iter().map(|d| (d.package, d.line, d.is_dev)).collect();
        let expected = [
            ("plain", 9, false),
            ("tabled", 10, false),
            ("inherited", 13, false),
            ("tenure-core", 14, false),
            ("long", 16, false),
            ("tenure-sim", 19, false),
            ("unix", 23, false),
            ("tested", 26, true),
            ("built", 29, false),
        ];
        assert_eq!(found, expected);
    }
}
