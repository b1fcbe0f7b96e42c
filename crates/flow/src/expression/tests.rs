//! What expressions mean, row by row.

use tenure_value::Map;

use super::*;

fn scope() -> Map {
    let json = r#"{
        "input": {"n": 3, "f": 2.5, "whole": 2.0, "text": "hello", "list": [1, 2, 3], "none": null,
                  "big": 18446744073709551615, "yes": true, "map": {"b": 2, "a": 1},
                  "bids": [{"id": "x", "p": 5}, {"id": "y"}]},
        "context": {"a": {"b": {"c": 7}}}
    }"#;
    let Ok(Value::Map(map)) = Value::from_json(json.as_bytes()) else { panic!() };
    map
}

fn evaluate(text: &str) -> Result<Value, EvaluationError> {
    let expression = Expression::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    expression.evaluate(&scope(), &mut Reads::unnoted())
}

fn refusal(text: &str) -> ExpressionFault {
    Expression::parse(text).expect_err(text)
}

#[test]
fn an_error_says_what_is_wrong() {
    let rows = [
        ("context.x", "there is no `context.x`; ask with has() if it may be absent"),
        ("context.a.x.y", "there is no `context.a.x`; ask with has() if it may be absent"),
        ("context.a.x.y + 1", "there is no `context.a.x`; ask with has() if it may be absent"),
        ("input.none.x", "there is no `input.none.x`; ask with has() if it may be absent"),
        ("error.code", "there is no `error`; ask with has() if it may be absent"),
        ("input.text.x", "`input.text` is a string; it has no field `x`"),
        ("has(input.text.x)", "`input.text` is a string; it has no field `x`"),
        ("input.bids[1].p", "there is no `input.bids[1].p`; ask with has() if it may be absent"),
        ("input.list[3]", "there is no `input.list[3]`; ask with has() if it may be absent"),
        ("input.list[-1]", "there is no `input.list[-1]`; ask with has() if it may be absent"),
        ("input.map['z']", "there is no `input.map[\"z\"]`; ask with has() if it may be absent"),
        ("input.list['a']", "`input.list[\"a\"]`: a list has no element by a string"),
        ("input.bids.map(b, b.p)", "there is no `b.p`; ask with has() if it may be absent"),
        ("1 + 'a'", "+ does not take an integer and a string"),
        ("[1] + 1", "+ does not take a list and an integer"),
        ("9223372036854775807 + 1", "9223372036854775807 + 1 is too large for an integer"),
        ("-(-9223372036854775807 - 1)", "0 - -9223372036854775808 is too large for an integer"),
        ("input.big + 1", "18446744073709551615 + 1 is too large for an integer"),
        ("1 / 0", "1 is divided by zero"),
        ("1 % 0", "1 is divided by zero"),
        ("1.0 / 0.0", "1 / 0 is no number that JSON can write"),
        ("1.5 % 1.0", "% takes integers"),
        ("1 < 'a'", "an integer and a string have no order"),
        ("[1] < [2]", "a list and a list have no order"),
        ("!1", "! does not take an integer"),
        ("-'a'", "- does not take a string"),
        ("1 ? 2 : 3", "what stands before ? is an integer; it must be true or false"),
        ("true && 1", "an integer stands where true or false must"),
        ("1 in 'a'", "`in` looks into a list or an object, not a string"),
        ("size(1)", "size() does not take an integer"),
        ("'a'.contains(1)", "contains() does not take a string and an integer"),
        ("int('x')", "int() cannot convert \"x\""),
        ("int(1e19)", "int() cannot convert 1e+19"),
        ("uint(-1)", "uint() cannot convert -1"),
        ("double('nan')", "double() cannot convert \"nan\""),
        ("double('1e400')", "double() cannot convert \"1e400\""),
        ("double('0.1e-400')", "double() cannot convert \"0.1e-400\""),
        ("string(null)", "string() cannot convert null"),
        ("bool('maybe')", "bool() cannot convert \"maybe\""),
        ("min([])", "min() of an empty list has no value"),
        ("max('a', 1)", "an integer and a string have no order"),
        ("min([[1]])", "a list and a list have no order"),
        ("1.map(x, x)", "`(…)` is an integer; only lists and objects can be walked"),
        ("{'a': 1, 'a': 2}", "an object has a key twice"),
        ("{input.n: 1}", "a key of an object must be a string"),
    ];
    for (text, message) in rows {
        assert_eq!(evaluate(text).expect_err(text).message, message, "{text}");
    }
}

#[test]
fn an_expression_has_a_value() {
    let rows = [
        ("input.n + 1", "4"),
        ("input.n * input.f", "7.5"),
        ("input.n - input.whole", "1.0"),
        ("input.big - 1", "18446744073709551614"),
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("1u + 2u", "3"),
        ("0x10", "16"),
        ("1 == 1.0", "true"),
        ("1 == '1'", "false"),
        ("2 < 2.5 && 2.5 < 3", "true"),
        ("9007199254740993 > 9007199254740992.0", "true"),
        ("input.big > 1", "true"),
        ("'a' < 'b'", "true"),
        ("false < true", "true"),
        ("[1, 2] == [1.0, 2]", "true"),
        ("{'a': 1} == input.map", "false"),
        ("null == input.none", "true"),
        ("'a' + \"b\" + '''c'''", "\"abc\""),
        ("r'a\\d' + '\\u00e9\\n'", r#""a\\dé\n""#),
        ("[1] + [2, 3]", "[1,2,3]"),
        ("{'x': [1, {'y': input.n}]}", r#"{"x":[1,{"y":3}]}"#),
        ("input.list[1]", "2"),
        ("input['map']['a']", "1"),
        ("input.bids[0].id", "\"x\""),
        ("has(input.n)", "true"),
        ("has(input.x)", "false"),
        ("has(input.x.y.z)", "false"),
        ("has(input.none.x)", "false"),
        ("has(error.code)", "false"),
        ("has(input.bids[1].p)", "false"),
        ("input.n > 2 ? 'many' : 'few'", "\"many\""),
        ("true || error.code == 'x'", "true"),
        ("error.code == 'x' || true", "true"),
        ("error.code == 'x' && false", "false"),
        ("2 in input.list && !(5 in input.list)", "true"),
        ("'a' in input.map && !('z' in input.map) && !(1 in input.map)", "true"),
        ("size(input.list) + input.text.size() + size(input.map)", "10"),
        ("size('éé')", "2"),
        ("input.text.startsWith('he') && input.text.endsWith('lo')", "true"),
        ("input.text.contains('ell')", "true"),
        ("input.text.matches('^h.*o$') && matches(input.text, 'l+')", "true"),
        ("input.text.matches(input.text)", "true"),
        ("int('12') + int(2.9) + int(-2.9)", "12"),
        ("uint('7')", "7"),
        ("double(1) + double('0.5')", "1.5"),
        ("string(1) + string(1.5) + string(true) + string('x')", "\"11.5truex\""),
        ("bool('true')", "true"),
        ("max(1, 2.5, 2)", "2.5"),
        ("min(input.list)", "1"),
        ("input.list.all(x, x > 0)", "true"),
        ("input.list.exists(x, x == 2)", "true"),
        ("input.list.exists_one(x, x > 1)", "false"),
        ("input.list.map(x, x * 2)", "[2,4,6]"),
        ("input.list.map(x, x > 1, x * 2)", "[4,6]"),
        ("input.list.filter(x, x != 2)", "[1,3]"),
        ("input.map.map(k, k)", r#"["a","b"]"#),
        ("input.list.map(x, input.list.map(y, x * y))", "[[1,2,3],[2,4,6],[3,6,9]]"),
        ("input.list.map(x, [x].map(x, x + 1))", "[[2],[3],[4]]"),
        ("input.bids.filter(b, has(b.p)).map(b, b.id)", "[\"x\"]"),
        ("[1, 'a', null].exists(x, x == null)", "true"),
        ("['a', 0].exists(x, x < 1)", "true"),
        ("[0, 'a'].all(x, x > 1)", "false"),
        ("[].all(x, x)", "true"),
        ("context.a.b.c", "7"),
        ("context . a . b . c", "7"),
        ("!!true", "true"),
        ("--1", "1"),
        ("1 + // a comment\n 2", "3"),
    ];
    for (text, json) in rows {
        let value = evaluate(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(value.to_json(), json, "{text}");
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    let rows = [
        ("", "the expression does not parse"),
        ("1 +", "the expression does not parse"),
        ("a b", "the expression does not parse"),
        ("a..b", "the expression does not parse"),
        ("now()", "there is no function `now`"),
        ("input.shout()", "there is no function `shout`"),
        ("input.int()", "there is no function `int`"),
        ("size()", "size() takes one argument"),
        ("size(1, 2)", "size() takes one argument"),
        ("min()", "min() takes a list"),
        ("'a'.matches('(')", "the pattern \"(\" cannot be used"),
        ("'a'.matches('a{1000}{1000}')", "cannot be used"),
        ("has(a)", "has() takes a path with a dot"),
        ("has(a[0])", "has() takes a path with a dot"),
        ("has(a.b, 1)", "has() takes one path"),
        ("a.map(1, 2)", "the first argument of map() is the name of its variable"),
        ("a.filter(x)", "filter() takes a variable and an expression"),
        ("b'x'", "there are no bytes here"),
        ("{1: 2}", "the key 1 is no string"),
        ("Point{x: 1}", "there are no types here"),
        ("a.?b", "the expression does not parse"),
        ("1e999", "the expression does not parse"),
        ("99999999999999999999", "the expression does not parse"),
        ("timestamp('2030-01-01T00:00:00Z')", "there is no function `timestamp`"),
    ];
    for (text, message) in rows {
        let fault = refusal(text);
        assert!(fault.message.contains(message), "{text}: {}", fault.message);
    }
    assert_eq!(refusal("now()").code, FaultCode::UnknownFunction);
    assert_eq!(refusal("1 +").code, FaultCode::BadExpression);
}

#[test]
fn limits_are_kept_and_never_overruled() {
    let hundred = (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let cubed = format!(
        "[{hundred}].all(a, [{hundred}].all(b, [{hundred}].all(c, [{hundred}].all(d, true))))"
    );
    for text in [
        cubed.clone(),
        format!("{cubed} || true"),
        format!("false && {cubed} ? 1 : ({cubed} ? 1 : 2)"),
        // Shared, so that it takes no memory, and 2^25 long if it were written.
        format!("[[1]]{} == 1", ".map(x, [x, x])".repeat(25)),
        format!("['a']{}", ".map(x, x + x)".repeat(25)),
    ] {
        let error = evaluate(&text).expect_err(&text);
        assert_eq!(error.kind, EvaluationErrorKind::Limit, "{error}");
    }
    let deep = format!("[1]{}", ".map(x, [[[x]]])".repeat(20));
    assert!(evaluate(&deep).is_ok());
    let deeper = format!("{deep}.map(x, [[[[x]]]])");
    assert!(evaluate(&deeper).unwrap_err().message.contains("64 levels"));
}

#[test]
fn what_was_read_is_noted() {
    let expression =
        Expression::parse("input.n > 2 && (has(context.x) || context.a.b.c == input.n)").unwrap();
    let mut reads = Reads::noted();
    expression.evaluate(&scope(), &mut reads).unwrap();
    let shown = reads.shown().to_json();
    assert!(shown.contains(r#""input.n":3"#) && shown.contains(r#""context.a.b.c":7"#), "{shown}");
    let mut reads = Reads::noted();
    Expression::parse("context.a.b.c").unwrap().evaluate(&scope(), &mut reads).unwrap();
    assert_eq!(reads.shown().to_json(), r#"{"context.a.b.c":7}"#);
}

#[test]
fn a_condition_is_true_or_false() {
    let ask =
        |text: &str| Expression::parse(text).unwrap().condition(&scope(), &mut Reads::unnoted());
    assert_eq!(ask("input.n == 3"), Ok(true));
    assert!(ask("input.n").unwrap_err().message.contains("a condition is true or false"));
    assert!(ask("input.none").is_err());
}

#[test]
fn names_are_found_wherever_they_stand() {
    let names = |text: &str| {
        let names = Expression::parse(text).unwrap().names();
        let shown = names.iter().map(|name| {
            let fields: String = name.fields.iter().map(|field| format!(".{field}")).collect();
            format!("{}{fields}{}", name.root, if name.is_open { "[]" } else { "" })
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("outputs.a._branches"), "outputs.a._branches");
    assert_eq!(names("outputs['a']['_branches'][0]"), "outputs.a._branches[]");
    assert_eq!(names("outputs[input.k]._branches"), "outputs[] input.k");
    assert_eq!(names("outputs[input.k].x[context.y]"), "outputs[] context.y input.k");
    assert_eq!(names("has(a.b) ? [c] : {d: e}"), "a.b c d e");
    assert_eq!(names("a.map(x, x + y.z).size()"), "a y.z");
    assert_eq!(names("x.map(x, x)"), "x");
    assert_eq!(names("'a'.matches(p) && -q == !r"), "p q r");
}
