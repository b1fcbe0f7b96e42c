//! Expressions against any text, any stack that a thread has, and the `cel` crate's own interpreter.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods, reason = "a stack is tested on a thread of that size")]

use cel::{Context, Program, Value as Cel};
use proptest::prelude::*;
use tenure_flow::Expression;
use tenure_flow::expression::{EvaluationErrorKind, Reads};
use tenure_value::{Map, Value};

fn scope() -> Map {
    let json = r#"{"input": {"n": 3, "m": -4, "f": 2.5, "t": "ab", "e": "", "l": [3, 1, 2], "x": [],
        "o": {"b": 2, "a": 1}, "yes": true, "none": null}}"#;
    let Ok(Value::Map(map)) = Value::from_json(json.as_bytes()) else { panic!() };
    map
}

/// Texts of 4 KiB at the edge of what is allowed, and past it, in every direction.
fn worst() -> Vec<String> {
    let nest = |open: &str, close: &str, levels: usize| {
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    };
    let row = |first: &str, more: &str, times: usize| format!("{first}{}", more.repeat(times));
    let mut texts = Vec::new();
    for levels in [31, 32, 33, 1_300] {
        texts.push(nest("(", ")", levels));
        texts.push(nest("[", "]", levels));
        texts.push(nest("{'a':", "}", levels));
        texts.push(nest("size(", ")", levels));
        texts.push(nest("-(", ")", levels));
        texts.push(nest("!(!(", "))", levels / 2));
        texts.push(nest("(true?", ":1)", levels));
        texts.push(nest("[1].map(x,", ")", levels));
        texts.push(nest("input.l[", "]", levels));
        texts.push(nest("1+(", ")", levels));
        texts.push(nest("1+1*(", ")", levels));
    }
    for times in [30, 60, 64, 120, 1_000, 2_040] {
        texts.push(row("1", "+1", times));
        texts.push(row("1", "*1", times));
        texts.push(row("1", "<1", times));
        texts.push(row("true", "&&true", times));
        texts.push(row("true", "||true", times));
        texts.push(row("true", "&&true||true", times));
        texts.push(row("true", "==true", times));
        texts.push(row("input", ".n", times));
        texts.push(row("input", "[0]", times));
        texts.push(row("input", ".size()", times));
        texts.push(row("[[1]]", ".map(x,x)", times));
        texts.push(format!("{}1", "-".repeat(times)));
        texts.push(format!("{}true", "!".repeat(times)));
        texts.push(format!("{}1", "true?1:".repeat(times)));
        texts.push(format!("{}1{}", "true?".repeat(times), ":1".repeat(times)));
        texts.push(format!("[{}1]", "1,".repeat(times)));
        texts.push(format!("1{}", "in[1]".repeat(times)));
    }
    for text in &mut texts {
        text.truncate(4_096);
    }
    texts
}

fn on_a_stack_of(bytes: usize) {
    let run = || {
        let mut taken = 0;
        for text in worst() {
            let Ok(expression) = Expression::parse(&text) else { continue };
            taken += 1;
            let _ = expression.evaluate(&scope(), &mut Reads::noted());
        }
        taken
    };
    let thread = std::thread::Builder::new().stack_size(bytes).spawn(run).unwrap();
    assert!(thread.join().unwrap() > 30, "the edge is not reached");
}

#[test]
fn the_worst_expressions_fit_an_ordinary_stack() {
    on_a_stack_of(2 << 20);
}

#[test]
fn the_worst_expressions_fit_half_an_ordinary_stack() {
    on_a_stack_of(1 << 20);
}

fn from_cel(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(truth) => Value::Bool(*truth),
        Cel::Int(number) => Value::Int(*number),
        Cel::UInt(number) => Value::uint(*number),
        Cel::Float(number) => Value::float(*number)?,
        Cel::String(text) => Value::text(text),
        Cel::List(list) => Value::list(list.iter().map(from_cel).collect::<Option<_>>()?),
        Cel::Map(_) | Cel::Function(..) | Cel::Bytes(_) | Cel::Opaque(_) | Cel::Struct(_) => {
            return None;
        }
    })
}

/// Numbers, truths, texts and lists, put together so that types fit.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Number,
    Truth,
    Text,
    List,
}

fn leaf(kind: Kind) -> BoxedStrategy<String> {
    let texts: &'static [&'static str] = match kind {
        Kind::Number => &[
            "0",
            "1",
            "2",
            "7",
            "-3",
            "9223372036854775807",
            "input.n",
            "input.m",
            "input.l[0]",
            "input.o.a",
            "input.missing",
            "input.l[9]",
            "input['n']",
            "input.o['b']",
        ],
        Kind::Truth => {
            &["true", "false", "input.yes", "has(input.n)", "has(input.zz)", "input.gone"]
        }
        Kind::Text => &["'a'", "'ab'", "''", "'é\\n'", "input.t", "input.e", "r'\\d'"],
        Kind::List => &["[]", "[1]", "[3, 1, 2]", "input.l", "input.x"],
    };
    prop::sample::select(texts).prop_map(str::to_owned).boxed()
}

fn expression(kind: Kind, depth: u32) -> BoxedStrategy<String> {
    if depth == 0 {
        return leaf(kind);
    }
    let sub = |kind| expression(kind, depth - 1);
    let two = |a, b, form: &'static str| {
        (sub(a), sub(b)).prop_map(move |(a, b)| form.replace("$a", &a).replace("$b", &b)).boxed()
    };
    let one = |a, form: &'static str| sub(a).prop_map(move |a| form.replace("$a", &a)).boxed();
    let any = |forms: Vec<BoxedStrategy<String>>| proptest::strategy::Union::new(forms).boxed();
    let choice = (sub(Kind::Truth), sub(kind), sub(kind))
        .prop_map(|(c, a, b)| format!("({c} ? {a} : {b})"))
        .boxed();
    let mut forms = vec![leaf(kind), choice];
    forms.extend(match kind {
        Kind::Number => vec![
            two(Kind::Number, Kind::Number, "($a + $b)"),
            two(Kind::Number, Kind::Number, "($a - $b)"),
            two(Kind::Number, Kind::Number, "($a * $b)"),
            two(Kind::Number, Kind::Number, "($a / $b)"),
            two(Kind::Number, Kind::Number, "($a % $b)"),
            one(Kind::Number, "-($a)"),
            one(Kind::List, "size($a)"),
            one(Kind::Text, "$a.size()"),
            two(Kind::List, Kind::Number, "$a[$b]"),
            one(Kind::Text, "int($a)"),
        ],
        Kind::Truth => vec![
            two(Kind::Truth, Kind::Truth, "($a && $b)"),
            two(Kind::Truth, Kind::Truth, "($a || $b)"),
            one(Kind::Truth, "!($a)"),
            two(Kind::Number, Kind::Number, "($a < $b)"),
            two(Kind::Number, Kind::Number, "($a >= $b)"),
            two(Kind::Number, Kind::Number, "($a == $b)"),
            two(Kind::Text, Kind::Text, "($a <= $b)"),
            two(Kind::Text, Kind::Number, "($a != $b)"),
            two(Kind::List, Kind::List, "($a == $b)"),
            two(Kind::Number, Kind::List, "($a in $b)"),
            two(Kind::Text, Kind::Text, "$a.contains($b)"),
            two(Kind::Text, Kind::Text, "$a.startsWith($b)"),
            two(Kind::Text, Kind::Text, "$a.endsWith($b)"),
            one(Kind::Text, "$a.matches('^a+b?$')"),
            two(Kind::List, Kind::Number, "$a.all(v, v > $b)"),
            two(Kind::List, Kind::Number, "$a.exists(v, v == $b)"),
            two(Kind::List, Kind::Number, "$a.exists_one(v, v < $b)"),
            two(Kind::Number, Kind::Number, "(double($a) < double($b))"),
        ],
        Kind::Text => vec![
            two(Kind::Text, Kind::Text, "($a + $b)"),
            one(Kind::Number, "string($a)"),
            one(Kind::Truth, "string($a)"),
        ],
        Kind::List => vec![
            two(Kind::List, Kind::List, "($a + $b)"),
            two(Kind::Number, Kind::Number, "[$a, $b]"),
            two(Kind::List, Kind::Number, "$a.map(v, v + $b)"),
            two(Kind::List, Kind::Number, "$a.filter(v, v != $b)"),
            two(Kind::List, Kind::Number, "$a.map(v, v > $b, v - 1)"),
        ],
    });
    any(forms)
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(&[Kind::Number, Kind::Truth, Kind::Text, Kind::List][..])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn we_agree_with_the_interpreter_of_the_cel_crate(
        text in kind().prop_flat_map(|kind| expression(kind, 3))
    ) {
        let Ok(ours) = Expression::parse(&text) else { return Ok(()) };
        let ours = ours.evaluate(&scope(), &mut Reads::unnoted());
        let mut context = Context::default();
        let input = scope().get("input").unwrap().clone();
        context.add_variable_from_value("input", cel::to_value(input).unwrap());
        let theirs = Program::compile(&text).unwrap().execute(&context);
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => {
                prop_assert_eq!(Some(ours.clone()), from_cel(theirs), "{}", text);
            }
            (Err(ours), Ok(theirs)) => prop_assert!(false, "{text}: {ours} but {theirs:?}"),
            (Ok(ours), Err(theirs)) => prop_assert!(false, "{text}: {ours:?} but {theirs:?}"),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn a_plain_path_is_read_as_the_evaluator_would(
        fields in prop::collection::vec(prop::sample::select(&["n", "o", "a", "t", "none", "zz"][..]), 0..4)
    ) {
        let below: String = fields.iter().map(|field| format!(".{field}")).collect();
        let scope = scope();
        let ask = |text: &str| {
            let mut reads = Reads::noted();
            let value = Expression::parse(text).unwrap().evaluate(&scope, &mut reads);
            (value, reads.shown())
        };
        let fast = ask(&format!("input{below}"));
        prop_assert_eq!(&ask(&format!("true ? input{below} : 0")), &fast);
        prop_assert_eq!(&ask(&format!("(input{below})")), &fast);
        let walked = ask(&format!("[input][0]{below}")).0;
        let same_kind = match (&walked, &fast.0) {
            (Ok(walked), Ok(fast)) => walked == fast,
            (Err(walked), Err(fast)) => walked.kind == fast.kind,
            _ => false,
        };
        prop_assert!(same_kind, "{below}: {walked:?} {:?}", fast.0);
    }

    #[test]
    fn any_text_is_an_expression_or_refused(text in ".{0,80}") {
        let _ = Expression::parse(&text);
    }

    #[test]
    fn any_row_of_words_is_an_expression_or_refused(
        words in prop::collection::vec(prop::sample::select(&[
            "input", "n", ".", "(", ")", "[", "]", "{", "}", ",", ":", "?", "+", "-", "*", "/", "%",
            "!", "==", "!=", "<", "<=", "&&", "||", "in", "1", "1.5", "'a'", "\"b\"", "r'c'", "has",
            "size", "map", "all", "x", "null", "true", "matches", "'''", "'", "\\", "//", "\n", " ",
        ][..]), 0..40)
    ) {
        let text = words.concat();
        if let Ok(expression) = Expression::parse(&text) {
            if let Err(error) = expression.evaluate(&scope(), &mut Reads::noted()) {
                prop_assert!(error.kind != EvaluationErrorKind::Limit || text.len() > 10, "{text}");
            }
            prop_assert_eq!(expression.text(), text.as_str());
        }
    }
}
