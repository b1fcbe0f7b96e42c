//! Expressions: any text is one or is refused, and one that is has a value or an error, within its
//! bounds.

use tenure_flow::Expression;
use tenure_flow::expression::Reads;
use tenure_flow::limits::READS_SHOWN_BYTES_MAX;
use tenure_value::limits::VALUE_DEPTH_MAX;
use tenure_value::{Map, Value};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(expression) = Expression::parse(text) else { return };
    let mut reads = Reads::noted();
    let value = expression.evaluate(&scope(), &mut reads);
    assert!(reads.shown().to_json().len() <= READS_SHOWN_BYTES_MAX, "too much is shown");
    if let Ok(value) = &value {
        assert!(value.depth() <= VALUE_DEPTH_MAX, "it is too deep");
        let again = Value::from_json(value.to_json().as_bytes()).expect("a value is always JSON");
        assert_eq!(again, *value, "it reads back as something else");
    }
    let again = expression.evaluate(&scope(), &mut Reads::unnoted());
    assert_eq!(again, value, "the second time it says something else");
}

fn scope() -> Map {
    let json = br#"{"input":{"n":3,"f":1.5,"t":"ab","l":[3,1,2],"o":{"a":{"b":null}}},"item":[]}"#;
    match Value::from_json(json) {
        Ok(Value::Map(map)) => map,
        _ => Map::default(),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "input.o.a.b == null && has(input.x) || !(input.n in input.l)",
        "input.l.filter(x, x > 1).map(y, y * 2 + size(input.t)) + [int('4'), -1]",
        "input.n > 2 ? {'a': input.t + \"b\", 'c': [1.5e3, 0x1f]} : 'x'.matches(r'^a\\d+')",
        "item.all(i, i.exists_one(j, j % 2 == 1)) ? min(input.l) : double('1') / input.f",
        "'''it's''' + '\\u00e9\\x41\\101' // the end\n + string(true)",
    ];
    seeds.into_iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
