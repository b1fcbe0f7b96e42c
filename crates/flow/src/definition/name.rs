//! What things of a definition may be called.

use tenure_code::Echo;

use crate::limits::{NAME_BYTES_MAX, TASK_NAME_BYTES_MAX};

/// Names that mean something in every expression.
pub(super) const ROOTS: [&str; 7] =
    ["input", "context", "outputs", "result", "error", "branch", "run"];

/// A workflow, a queue or a signal. The name is part of URLs, so it follows the grammar of queue
/// names.
pub(super) fn check_name(text: &str) -> Result<(), String> {
    check_len(text, NAME_BYTES_MAX)?;
    if let Some(c) = text.chars().find(|&c| c.is_control() || is_invisible(c) || c == '/') {
        return Err(format!("the name has the character U+{:04X}; leave it out", u32::from(c)));
    }
    if text.trim() != text {
        return Err("the name begins or ends with a space; leave it out".to_owned());
    }
    if text == "." || text == ".." {
        return Err(format!("the name is {text:?}, which clients drop from a path; use another"));
    }
    Ok(())
}

/// The kind of work of a task.
pub(super) fn check_task_name(text: &str) -> Result<(), String> {
    check_len(text, TASK_NAME_BYTES_MAX)?;
    check_name(text)
}

/// A node, a transition, a group: it stands in expressions and in the paths of branches.
pub(super) fn check_ref(text: &str) -> Result<(), String> {
    check_len(text, NAME_BYTES_MAX)?;
    if text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
        return Ok(());
    }
    Err(format!("{} is no name here; use letters, digits, `_` and `-`", Echo(text)))
}

/// A variable: what CEL takes for one, and nothing that it or we have taken already.
pub(super) fn check_variable(text: &str) -> Result<(), String> {
    check_len(text, NAME_BYTES_MAX)?;
    if ROOTS.contains(&text) {
        return Err(format!("`{text}` has a meaning of its own; call the item something else"));
    }
    if !crate::expression::is_name(text) {
        return Err(format!(
            "{} is no variable; use letters, digits and `_`, and no word of CEL",
            Echo(text)
        ));
    }
    Ok(())
}

pub(super) fn check_len(text: &str, bytes_max: usize) -> Result<(), String> {
    if text.is_empty() {
        return Err("this is empty; give it at least one character".to_owned());
    }
    if text.len() > bytes_max {
        let len = text.len();
        return Err(format!("this has {len} bytes; at most {bytes_max} are allowed"));
    }
    Ok(())
}

/// Characters that make two different names look the same, or turn a line of text around.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The known name that is nearest, as `; did you mean …?`, if one is near at all.
pub(super) fn suggestion<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, name)| *distance <= 2 && *distance * 2 < name.len().max(2))
        .min();
    near.map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

/// How many characters must be put in, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().take(64).enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
