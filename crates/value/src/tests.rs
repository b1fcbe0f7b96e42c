//! What a value is, whatever `serde_json` was built with.

use proptest::prelude::*;

use super::*;

fn json(text: &str) -> Value {
    Value::from_json(text.as_bytes()).unwrap()
}

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::uint),
        any::<f64>().prop_map(|number| Value::float(number).unwrap_or(Value::Null)),
        "[a-c\"\\\\é\u{1}]{0,4}".prop_map(|text| Value::text(&text)),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let entry = ("[a-c]{1,2}", inner.clone()).prop_map(|(key, value)| (key.into(), value));
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::list),
            prop::collection::vec(entry, 0..5).prop_map(Value::map),
        ]
    })
}

#[test]
fn numbers_come_as_numbers_whatever_serde_json_was_built_with() {
    // With `arbitrary_precision` they would come as maps, here and in the doors.
    assert!(matches!(json("1"), Value::Int(1)));
    assert!(matches!(json("-9223372036854775808"), Value::Int(i64::MIN)));
    assert!(matches!(json("9223372036854775808"), Value::Uint(_)));
    assert!(matches!(json("18446744073709551616"), Value::Float(_)));
    assert!(matches!(json("1.0"), Value::Float(_)));
    let plain: serde_json::Value = serde_json::from_str("1.10").unwrap();
    assert_eq!(plain.to_string(), "1.1", "arbitrary_precision is on; it must not be");
    // With `float_roundtrip` off, the last digit may differ.
    assert_eq!(json("2.638344616030823e-256").to_json(), "2.638344616030823e-256");
}

#[test]
fn what_is_no_value_is_refused_with_its_place() {
    for bad in ["", "{", "[1,]", "nul", "1 2", "\"\u{1}\"", "1e999", "{1:2}", "\"\\ud800\""] {
        assert!(Value::from_json(bad.as_bytes()).is_err(), "{bad:?}");
    }
    let fault = Value::from_json(b"{\"a\":\n  x}").unwrap_err();
    assert_eq!((fault.line, fault.column), (2, 3));
    assert!(!fault.message.contains("line"), "{}", fault.message);
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(json(&nested(VALUE_DEPTH_MAX)).depth(), VALUE_DEPTH_MAX);
    let fault = Value::from_json(nested(VALUE_DEPTH_MAX + 1).as_bytes()).unwrap_err();
    assert!(fault.message.contains("64 levels"), "{}", fault.message);
    assert!(Value::from_json(nested(1_000_000).as_bytes()).is_err());
}

#[test]
fn what_a_value_would_change_is_refused_with_its_pointer() {
    let rows = [
        (r#"{"a":1,"b":2,"a":3}"#, "/a", "twice"),
        (r#"{"a":1,"\u0061":3}"#, "/a", "twice"),
        (r#"[{"x":{"a/b":1,"a/b":1}}]"#, "/0/x/a~1b", "twice"),
        ("123456789012345678901234567890", "", "does not fit 64 bits"),
        ("18446744073709551616", "", "does not fit 64 bits"),
        ("-9223372036854775809", "", "does not fit 64 bits"),
        (r#"{"a":[1,"[,",{"b~c":-9223372036854775809}]}"#, "/a/2/b~0c", "does not fit 64 bits"),
        (r#"{"k":"v","\u00e9":[0,0.1e-400]}"#, "/é/1", "too close to 0"),
        (r#"{"a":{"a":1},"n":1e400}"#, "/n", "too large for a double"),
        (r#"[0.0,[],{},-1e400]"#, "/3", "too large for a double"),
    ];
    for (text, pointer, message) in rows {
        let fault = Value::from_json_exact(text.as_bytes()).unwrap_err();
        assert_eq!(fault.pointer, pointer, "{text} {fault}");
        assert!(fault.message.contains(message), "{text} {fault}");
        assert!(!fault.about("the input").contains("not JSON"), "{}", fault.about("the input"));
    }
    let fault = Value::from_json_exact(b"{\"a\":\n [1,\n  1e400]}").unwrap_err();
    assert_eq!((fault.line, fault.column), (3, 3));
    let fault = Value::from_json_exact(b"{\"a\":[1,nul]}").unwrap_err();
    assert_eq!(fault.about("the input"), "the input is not JSON at /a/1: expected ident");
    let long = format!(r#"{{"{}":{{"x":1e400}}}}"#, "é".repeat(1_000));
    let fault = Value::from_json_exact(long.as_bytes()).unwrap_err();
    assert!(fault.pointer.len() < 300 && fault.pointer.ends_with("é/x"), "{}", fault.pointer);
}

#[test]
fn what_a_value_holds_as_it_is_written_is_taken() {
    for text in [
        "18446744073709551615",
        "-9223372036854775808",
        "-0",
        "0e999",
        "-0.0",
        "1e300",
        "5e-324",
        "1.2345678901234568e+29",
        r#"["123456789012345678901234567890","1e400"]"#,
        r#"{"a":{"b":1},"b":{"a":1}}"#,
    ] {
        let exact = Value::from_json_exact(text.as_bytes()).unwrap();
        assert_eq!(exact.to_json(), json(text).to_json(), "{text}");
    }
}

#[test]
fn a_record_that_was_accepted_before_is_read() {
    assert_eq!(json(r#"{"a":1,"b":2,"a":3}"#), json(r#"{"a":3,"b":2}"#));
    assert_eq!(json("12345678901234567890123").to_json(), "1.2345678901234568e+22");
    assert_eq!(json("0.1e-400"), Value::Int(0));
}

#[test]
fn a_whole_double_is_a_whole_number() {
    for (text, whole) in [("3.0", Some(3)), ("3", Some(3)), ("-0.0", Some(0)), ("3.5", None)] {
        assert_eq!(json(text).as_whole(), whole, "{text}");
    }
    assert_eq!(json("1e300").as_whole(), None, "it fits no integer");
    assert_eq!(json("\"3\"").as_whole(), None);
    let text = r#"{"b":[1.0,-0.0,1.5,1e20],"a":18446744073709551615}"#;
    let canonical = r#"{"a":18446744073709551615,"b":[1,0,1.5,1e+20]}"#;
    assert_eq!(json(text).to_canonical_json(), canonical);
}

#[test]
fn values_are_equal_as_json_has_it() {
    assert_eq!(json("1"), json("1.0"));
    assert_eq!(json(r#"{"a":1,"b":[2]}"#), json(r#"{"b":[2.0],"a":1}"#));
    assert_ne!(json("1"), json("true"));
    assert_ne!(json("1"), json("\"1\""));
    assert_ne!(json("9007199254740993"), json("9007199254740992.0"), "no rounding on the way");
    assert_eq!(json("18446744073709551615"), Value::Uint(u64::MAX));
    assert_ne!(json("18446744073709551615"), json("18446744073709551616.0"));
    assert_ne!(json("0"), json("null"));
}

#[test]
fn a_path_reads_and_writes_without_touching_the_rest() {
    let before = json(r#"{"context":{"a":{"b":1},"big":[1,2,3]}}"#);
    let path = |text: &str| Path::parse(text).unwrap();
    assert_eq!(path("context.a.b").get(&before), Some(&Value::Int(1)));
    assert_eq!(path("context.a.x").get(&before), None);
    assert_eq!(path("context.a.b.c").get(&before), None);
    let after = path("context.x.y.z").set(&before, Value::Bool(true)).unwrap();
    let expected = r#"{"context":{"a":{"b":1},"big":[1,2,3],"x":{"y":{"z":true}}}}"#;
    assert_eq!(after.to_json(), expected);
    let big = |value: &Value| path("context.big").get(value).unwrap().as_list().unwrap().clone();
    assert!(big(&before).is_same(&big(&after)), "what did not change is shared");
    assert_eq!(before, json(r#"{"context":{"a":{"b":1},"big":[1,2,3]}}"#));
}

#[test]
fn a_path_is_not_written_through_something_else() {
    let value = json(r#"{"a":{"b":[1]}}"#);
    let fault = Path::parse("a.b.c").unwrap().set(&value, Value::Null).unwrap_err();
    assert!(fault.message.contains("a list"), "{}", fault.message);
    for bad in ["", ".", "a..b", ".a", "a."] {
        assert!(Path::parse(bad).is_err(), "{bad:?}");
    }
    assert!(Path::parse(&["a"; 33].join(".")).is_err());
}

#[test]
fn a_value_cannot_be_grown_until_dropping_it_overflows() {
    let path = Path::parse("a").unwrap();
    let mut value = Value::empty_map();
    let refused = (0..1_000).find_map(|_| {
        let inner = value.clone();
        path.set(&Value::empty_map(), inner).map(|deeper| value = deeper).err()
    });
    assert!(refused.unwrap().message.contains("64 levels"));
    assert_eq!(value.depth(), VALUE_DEPTH_MAX);
}

#[test]
fn a_value_is_small_and_shared() {
    assert!(size_of::<Value>() <= 24);
    let list = Value::list((0..100_000).map(Value::Int).collect());
    let (Value::List(a), Value::List(b)) = (&list, list.clone()) else { panic!() };
    assert!(a.is_same(&b));
    assert_eq!(json(r#"{"ab":[1,"é"]}"#).bytes(), 2 + (2 + 4) + (2 + 9 + 5));
}

#[test]
fn the_memory_that_a_value_holds_covers_what_its_parts_allocate() {
    let empty = json("[]").held_bytes();
    assert!(empty >= size_of::<Value>() + 40, "an empty list has a header of its own: {empty}");
    let many = json(&format!("[{}]", vec!["[]"; 1_000].join(",")));
    assert!(many.held_bytes() >= 1_000 * empty);
    assert!(many.held_bytes() > 10 * many.bytes(), "its text is far shorter");
    let text = json(&format!("{{\"key\":\"{}\"}}", "x".repeat(10_000)));
    assert!((10_000..10_400).contains(&text.held_bytes()), "{}", text.held_bytes());
    assert_eq!(json("1").held_bytes(), size_of::<Value>());
}

proptest! {
    #[test]
    fn json_text_reads_back_as_the_same_value(value in any_value()) {
        let text = value.to_json();
        let again = Value::from_json(text.as_bytes()).unwrap();
        prop_assert_eq!(&again, &value);
        prop_assert_eq!(again.to_json(), text);
        prop_assert_eq!(again.depth(), value.depth());
        // Counted in passing, yet near the truth: escapes and digits aside.
        prop_assert!(again.bytes() <= 8 * value.to_json().len() + 8);
    }

    #[test]
    fn the_order_of_all_values_agrees_with_equality(a in any_value(), b in any_value()) {
        prop_assert_eq!(a.total_order(&b).is_eq(), a == b, "{:?} {:?}", a, b);
        prop_assert_eq!(a.total_order(&b), b.total_order(&a).reverse());
        prop_assert_eq!(&a, &a.clone());
        prop_assert_eq!(a.to_canonical_json() == b.to_canonical_json(), a == b);
    }

    #[test]
    fn any_text_is_a_value_or_refused(text in "[\\[\\]{}\",:0-9eE.+ntrufalse -]{0,60}") {
        if let Ok(value) = Value::from_json(text.as_bytes()) {
            prop_assert_eq!(&Value::from_json(value.to_json().as_bytes()).unwrap(), &value);
            if let Ok(exact) = Value::from_json_exact(text.as_bytes()) {
                prop_assert_eq!(exact.to_json(), value.to_json());
            }
        } else {
            prop_assert!(Value::from_json_exact(text.as_bytes()).is_err());
        }
    }
}
