//! Tables in terminals of several widths.

use super::*;
use tenure_sdk::TaskState;

fn tasks() -> Table {
    let mut table = Table::new([
        Column::number("ID"),
        Column::word("STATE"),
        Column::text("QUEUE"),
        Column::number("PRIORITY"),
        Column::text("PAYLOAD"),
    ]);
    let long = r#"{"to":"ada@example.org","subject":"a letter that is longer than it has to be"}"#;
    let mut row = |id: &str, state: TaskState, queue: &str, priority: &str, payload: &str| {
        let cells = [id.into(), Cell::state(&state), queue.into(), priority.into()];
        table.row(cells.into_iter().chain([payload.into()]).collect::<Vec<_>>());
    };
    row("7", TaskState::Waiting, "mail", "0", "null");
    row("1234567", TaskState::Completed, "a-queue-with-a-rather-long-name", "-100", long);
    row("8", TaskState::Dead, "日本語の行列", "100", "\u{1b}[2J\n");
    table
}

fn at(width: Option<usize>) -> String {
    tasks().render(width, Paint::Plain).join("\n")
}

#[test]
fn a_table_is_never_wider_than_its_terminal() {
    for width in 1..200 {
        for line in tasks().render(Some(width), Paint::Plain) {
            assert!(line.width() <= width, "{width}: {line:?}");
        }
    }
}

#[test]
fn a_table_fits_at_60() {
    insta::assert_snapshot!(at(Some(60)));
}

#[test]
fn a_table_fits_at_80() {
    insta::assert_snapshot!(at(Some(80)));
}

#[test]
fn a_table_fits_at_120() {
    insta::assert_snapshot!(at(Some(120)));
}

#[test]
fn a_table_is_whole_where_there_is_no_terminal() {
    insta::assert_snapshot!(at(None));
}

#[test]
fn a_column_that_says_nothing_makes_room_for_the_others() {
    let columns = [Column::number("ID"), Column::text("WORKER"), Column::text("PAYLOAD")];
    let mut table = Table::new(columns);
    table.row(["1".into(), Cell::maybe(None::<&str>), "{\"to\":\"ada\"}".into()]);
    let at = |width| table.render(Some(width), Paint::Plain).join("\n");
    assert_eq!(at(25), "ID  WORKER  PAYLOAD\n 1  -       {\"to\":\"ada\"}");
    assert_eq!(at(20), "ID  PAYLOAD\n 1  {\"to\":\"ada\"}");
    assert_eq!(at(14), "ID  PAYLOAD\n 1  {\"to\":\"ad…");
}

#[test]
fn color_costs_no_room() {
    let plain = tasks().render(Some(80), Paint::Plain);
    let colored = tasks().render(Some(80), Paint::Colors);
    for (plain, colored) in plain.iter().zip(&colored) {
        let mut stripped = String::new();
        for (at, part) in colored.split('\u{1b}').enumerate() {
            let part = if at == 0 { part } else { part.split_once('m').unwrap().1 };
            stripped.push_str(part);
        }
        assert_eq!(&stripped, plain);
        assert!(colored.contains('\u{1b}'), "states and headings have a color: {colored:?}");
    }
}

#[test]
fn facts_stand_under_their_names() {
    let mut facts = Facts::default();
    facts.add("id", "7");
    facts.add("payload", "{\"a\":\u{1b}}");
    facts.add_some("key", None::<&str>);
    assert_eq!(facts.render(Paint::Plain), ["id       7", "payload  {\"a\":\\u{1b}}"]);
}
