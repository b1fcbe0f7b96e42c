//! Schemas that are none, values that do not fit, and what is there when nobody says.

use super::*;

fn json(text: &str) -> Value {
    Value::from_json(text.as_bytes()).unwrap()
}

fn schema(text: &str) -> Schema {
    Schema::compile(&json(text)).unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
}

#[test]
fn what_is_no_schema_is_refused_with_its_place() {
    for (text, pointer) in [
        ("3", ""),
        (r#"{"type":"strange"}"#, "/type"),
        (r#"{"properties":{"a":{"minimum":"x"}}}"#, "/properties/a/minimum"),
        (r#"{"required":"a"}"#, "/required"),
    ] {
        let fault = Schema::compile(&json(text)).unwrap_err();
        assert_eq!(fault.pointer, pointer, "{text} {}", fault.message);
    }
    for text in [
        r#"{"pattern":"("}"#,
        r#"{"pattern":"(?=a)b"}"#,
        r##"{"$ref":"#/$defs/missing"}"##,
        r#"{"$schema":"https://example.com/own"}"#,
    ] {
        assert!(Schema::compile(&json(text)).is_err(), "{text}");
    }
}

#[test]
fn nothing_is_ever_fetched() {
    for text in [
        r#"{"properties":{"a":{"$ref":"https://example.com/a.json"}}}"#,
        r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#,
        r#"{"properties":{"a":{"$ref":"other.json"}}}"#,
    ] {
        let fault = Schema::compile(&json(text)).unwrap_err();
        assert_eq!(fault.pointer, "/properties/a/$ref");
        assert!(fault.message.contains("nothing is fetched"), "{}", fault.message);
    }
    schema(r#"{"const":{"$ref":"https://example.com/a.json"}}"#);
}

#[test]
fn a_complaint_names_the_place_and_not_the_value() {
    let schema = schema(
        r##"{"type":"object","required":["id"],
            "properties":{"items":{"type":"array","items":{"$ref":"#/$defs/item"}}},
            "$defs":{"item":{"type":"object","properties":{"n":{"type":"integer","maximum":9}}}}}"##,
    );
    assert_eq!(schema.check(&json(r#"{"id":1,"items":[{"n":3},{"n":9.0}]}"#)), Ok(()));
    let complaints = schema.check(&json(r#"{"items":[{"n":3},{"n":10},{"n":"secret"}]}"#));
    let shown: Vec<_> = complaints.unwrap_err().iter().map(ToString::to_string).collect();
    assert!(shown.iter().any(|line| line.starts_with("/items/1/n: ")), "{shown:?}");
    assert!(shown.iter().any(|line| line.starts_with("/items/2/n: ")), "{shown:?}");
    assert!(shown.iter().any(|line| line.starts_with("/: ") && line.contains("id")), "{shown:?}");
    assert!(!shown.iter().any(|line| line.contains("secret")), "{shown:?}");
}

#[test]
fn complaints_are_few_and_short() {
    let schema = schema(r#"{"items":{"type":"string"},"maxItems":1}"#);
    let wrong = Value::list(vec![Value::Int(1); 100_000]);
    assert_eq!(schema.check(&wrong).unwrap_err().len(), SCHEMA_COMPLAINTS_MAX);
    let strict = self::schema(r#"{"additionalProperties":false}"#);
    let long = Value::map(vec![("k".repeat(10_000).into(), Value::Null)]);
    assert!(strict.check(&long).unwrap_err()[0].message.len() < 400);
}

#[test]
fn equality_and_uniqueness_are_those_of_json() {
    assert!(schema(r#"{"const":1}"#).check(&json("1.0")).is_ok());
    assert!(schema(r#"{"enum":[{"a":[1,"x"]}]}"#).check(&json(r#"{"a":[1.0,"x"]}"#)).is_ok());
    assert!(schema(r#"{"enum":[1,"1",null]}"#).check(&json("true")).is_err());
    let unique = schema(r#"{"uniqueItems":true}"#);
    assert!(unique.check(&json(r#"[1,2,"1",true,null,[1],{"a":1}]"#)).is_ok());
    assert!(unique.check(&json(r#"[{"a":1,"b":2},3,{"b":2.0,"a":1}]"#)).is_err());
    assert!(unique.check(&Value::list((0..100_000).map(Value::Int).collect())).is_ok());
    assert!(schema(r#"{"type":"integer"}"#).check(&json("18446744073709551615")).is_ok());
    assert!(schema(r#"{"type":"integer"}"#).check(&json("1.5")).is_err());
    assert!(schema(r#"{"multipleOf":0.1}"#).check(&json("0.3")).is_ok());
    assert!(schema(r#"{"propertyNames":{"maxLength":2}}"#).check(&json(r#"{"abc":1}"#)).is_err());
    assert!(schema(r#"{"maxLength":2}"#).check(&json(r#""éé""#)).is_ok());
}

#[test]
fn a_schema_that_turns_in_circles_ends() {
    let tree = schema(r##"{"properties":{"next":{"$ref":"#"},"n":{"type":"integer"}}}"##);
    assert!(tree.check(&json(r#"{"next":{"next":{"n":1}}}"#)).is_ok());
    assert!(tree.check(&json(r#"{"next":{"next":{"n":"x"}}}"#)).is_err());
    // No answer is wrong, as long as there is one.
    let _ = schema(r##"{"$ref":"#"}"##).check(&json("1"));
    let _ = schema(r##"{"allOf":[{"$ref":"#"}],"anyOf":[{"$ref":"#"}]}"##).check(&json("{}"));
}

#[test]
fn defaults_fill_in_what_is_absent_on_every_level() {
    let schema = schema(
        r#"{"properties":{
            "scores":{"default":[]},
            "verdict":{"default":{"by":"nobody"},"properties":{"approved":{"default":false}}},
            "deep":{"properties":{"er":{"properties":{"n":{"default":1}}},"none":{}}},
            "plain":{"type":"string"}}}"#,
    );
    let filled = schema.with_defaults(&Value::empty_map());
    let expected =
        r#"{"deep":{"er":{"n":1}},"scores":[],"verdict":{"approved":false,"by":"nobody"}}"#;
    assert_eq!(filled.to_json(), expected);
    let given = json(r#"{"scores":[1],"verdict":{"approved":true},"deep":null}"#);
    assert_eq!(
        schema.with_defaults(&given).to_json(),
        r#"{"deep":null,"scores":[1],"verdict":{"approved":true}}"#
    );
}

#[test]
fn a_schema_that_doubles_itself_is_refused() {
    let doubled = (1..40).map(|at| {
        let below = at - 1;
        format!(
            r##""a{at}":{{"allOf":[{{"$ref":"#/$defs/a{below}"}},{{"$ref":"#/$defs/a{below}"}}]}}"##
        )
    });
    let definitions: Vec<_> =
        std::iter::once(r#""a0":{"type":"integer"}"#.to_owned()).chain(doubled).collect();
    let text = format!(r##"{{"$defs":{{{}}},"$ref":"#/$defs/a39"}}"##, definitions.join(","));
    let fault = Schema::compile(&json(&text)).unwrap_err();
    assert!(fault.message.contains("at most 10000"), "{}", fault.message);
    // One that only looks into itself again is as heavy as it is long.
    let text = r##"{"properties":{"a":{"$ref":"#"}},"anyOf":[{"$ref":"#"},{"type":"object"}]}"##;
    assert!(Schema::compile(&json(text)).is_ok());
}

#[test]
fn a_division_of_numbers_that_are_far_apart_counts_for_what_it_costs() {
    let numbers = |number: &str, count: usize| Value::list(vec![json(number); count]);
    for (divisor, number) in [("0.01", "1e300"), ("1e-300", "0.5"), ("1e-300", "7")] {
        let schema = schema(&format!(r#"{{"items":{{"multipleOf":{divisor}}}}}"#));
        let complaints = schema.check(&numbers(number, 100_000)).unwrap_err();
        assert!(complaints[0].message.contains("2000000 steps"), "{number}: {complaints:?}");
        let _ = schema.check(&numbers(number, 100)).inspect_err(|complaints| {
            assert!(!complaints[0].message.contains("steps"), "{number}: {complaints:?}");
        });
    }
    // What people have in their schemas costs no more than any other keyword.
    let cents = schema(r#"{"items":{"multipleOf":0.01}}"#);
    assert_eq!(cents.check(&numbers("1234567.89", 100_000)), Ok(()));
    assert_eq!(cents.check(&numbers("9007199254740991", 100_000)), Ok(()));
}

#[test]
fn a_check_that_costs_too_much_says_so() {
    let many = r##"{"items":{"allOf":[{"minimum":0},{"maximum":9},{"multipleOf":1},{"type":"integer"}]}}"##;
    let long = Value::list(vec![Value::Int(1); 1_000_000]);
    let complaints = schema(many).check(&long).unwrap_err();
    assert!(complaints[0].message.contains("2000000 steps"), "{complaints:?}");
    assert!(schema(many).check(&Value::list(vec![Value::Int(1); 100_000])).is_ok());
    // Each level is looked at twice by each look at the level above.
    let twice = r##"{"type":["object","null"],"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#/allOf/0/properties/a"}}}],"not":{"required":["b"]}}"##;
    let deep = (0..60).fold(Value::Null, |value, _| Value::map(vec![("a".into(), value)]));
    // However it ends, it ends.
    let _ = schema(twice).check(&deep);
    let wrong = (0..60).fold(Value::Int(1), |value, _| Value::map(vec![("a".into(), value)]));
    assert!(schema(twice).check(&wrong).is_err());
}
