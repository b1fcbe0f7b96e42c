//! YAML as people write it, and as they should not.

use super::*;

fn read(text: &str) -> String {
    parse(text).unwrap_or_else(|fault| panic!("{text:?}: {fault}")).to_json()
}

fn refusal(text: &str) -> Fault {
    parse(text).map_or_else(|fault| fault, |value| panic!("{text:?} was read as {value:?}"))
}

#[test]
fn a_scalar_is_what_the_core_schema_says() {
    let rows = [
        ("no", r#""no""#),
        ("NO", r#""NO""#),
        ("yes", r#""yes""#),
        ("on", r#""on""#),
        ("true", "true"),
        ("'true'", r#""true""#),
        ("~", "null"),
        ("Null", "null"),
        ("12", "12"),
        ("+12", "12"),
        ("-12", "-12"),
        ("012", "12"),
        ("0o17", "15"),
        ("0xfF", "255"),
        ("1_000", r#""1_000""#),
        ("1.5", "1.5"),
        ("1.", "1.0"),
        (".5", "0.5"),
        ("1e3", "1000.0"),
        ("1e", r#""1e""#),
        ("12:30:45", r#""12:30:45""#),
        ("2030-01-01", r#""2030-01-01""#),
        ("18446744073709551615", "18446744073709551615"),
        ("!!str 12", r#""12""#),
        ("!!int 12", "12"),
        ("\"a\\u00e9\\n\"", "\"aé\\n\""),
        ("|\n  a\n  b\n", r#""a\nb\n""#),
    ];
    for (text, json) in rows {
        assert_eq!(read(&format!("v: {text}")), format!(r#"{{"v":{json}}}"#), "{text:?}");
    }
}

#[test]
fn what_json_cannot_say_is_refused_with_its_place() {
    for (text, line, column) in [
        ("a: 1\nb: .inf", 2, 4),
        ("a: -.INF", 1, 4),
        ("a: .nan", 1, 4),
        ("a: 1\na: 2", 2, 1),
        ("a: !mine 1", 1, 4),
        ("a: !!int x", 1, 4),
        ("? [a]\n: 1", 1, 3),
        ("a: &x 1\n*x : 2", 2, 1),
        ("a: 1\n---\nb: 2", 2, 1),
    ] {
        let fault = refusal(text);
        assert_eq!(fault.code, FaultCode::Syntax);
        let place = fault.place.unwrap();
        assert_eq!((place.line, place.column), (line, column), "{text:?} {fault}");
    }
    for text in ["", "# only a comment", "a: [1", "a: 'b", "a: b: c", "- a\nb: 1"] {
        refusal(text);
    }
}

#[test]
fn a_number_that_a_value_would_change_is_refused_with_its_pointer() {
    for (text, pointer, message) in [
        ("a:\n  b: [1, 123456789012345678901234567890]", "/a/b/1", "does not fit 64 bits"),
        ("a: -9223372036854775809", "/a", "does not fit 64 bits"),
        ("a: 1e400", "/a", "too large"),
        ("a: .1e-400", "/a", "too close to 0"),
        ("a:\n  b: 1\n  b: 2", "/a/b", "twice"),
    ] {
        let fault = refusal(text);
        assert_eq!(fault.pointer, pointer, "{text:?} {fault}");
        assert!(fault.message.contains(message), "{text:?} {fault}");
    }
    assert_eq!(read("a: '123456789012345678901234567890'").len(), 38);
}

#[test]
fn a_key_that_is_no_text_is_its_text() {
    assert_eq!(read("1: a\ntrue: b\nnull: c"), r#"{"1":"a","null":"c","true":"b"}"#);
}

#[test]
fn aliases_stand_for_what_they_name_within_bounds() {
    assert_eq!(read("a: &x [1, 2]\nb: *x"), r#"{"a":[1,2],"b":[1,2]}"#);
    refusal("a: *unknown");
    refusal("a: &x [*x]");
    let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for at in 1..12 {
        let before = at - 1;
        let nine = vec![format!("*a{before}"); 9].join(", ");
        bomb += &format!("a{at}: &a{at} [{nine}]\n");
    }
    assert!(refusal(&bomb).message.contains("aliases"), "{}", refusal(&bomb));
    let mut deep = "a0: &a0 [1]\n".to_owned();
    for at in 1..100 {
        deep += &format!("a{at}: &a{at} [*a{}]\n", at - 1);
    }
    assert!(refusal(&deep).message.contains("64 levels"), "{}", refusal(&deep));
}

#[test]
fn depth_and_length_are_bounded() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse(&nested(VALUE_DEPTH_MAX)).is_ok());
    assert!(refusal(&nested(VALUE_DEPTH_MAX + 1)).message.contains("64 levels"));
    refusal(&"[".repeat(200_000));
    refusal(&"- ".repeat(100_000));
    refusal(&"a: ".repeat(100_000));
    refusal(&" ".repeat(DEFINITION_BYTES_MAX + 1));
    assert!(refusal(&format!("[{}]", "1,".repeat(YAML_VALUES_MAX + 1))).message.contains("values"));
}

#[test]
fn a_place_is_known_for_every_pointer() {
    let text = "a:\n  - b: 1\n    c/d: 2\n  - 3\n";
    let (_, places) = parse_placed(text).unwrap();
    let at = |pointer: &str| places.find(pointer).map(|place| (place.line, place.column));
    assert_eq!(at("/a"), Some((1, 1)));
    assert_eq!(at("/a/0/b"), Some((2, 5)));
    assert_eq!(at("/a/0/c~1d"), Some((3, 5)));
    assert_eq!(at("/a/1"), Some((4, 5)));
    assert_eq!(at("/a/1/missing"), Some((4, 5)), "the nearest around it");
    assert_eq!(at("/x"), Some((1, 1)));
}
