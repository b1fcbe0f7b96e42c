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
fn a_key_that_comes_twice_is_refused_where_people_write() {
    let text = br#"{"a":1,"b":2,"a":3}"#;
    assert_eq!(Value::from_json(text).unwrap(), json(r#"{"a":3,"b":2}"#));
    let fault = Value::from_json_with(text, Duplicates::Refused).unwrap_err();
    assert!(fault.message.contains("twice"), "{}", fault.message);
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
    }

    #[test]
    fn any_text_is_a_value_or_refused(text in "[\\[\\]{}\",:0-9eE.+ntrufalse -]{0,60}") {
        if let Ok(value) = Value::from_json(text.as_bytes()) {
            prop_assert_eq!(Value::from_json(value.to_json().as_bytes()).unwrap(), value);
        }
    }
}
