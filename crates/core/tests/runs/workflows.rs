//! Random workflows: every kind of node, fan-outs in each other, joins of every kind, what fails and
//! what times out. Whoever plays them brings the dice.

use std::fmt::Write as _;

/// Where chance comes from.
pub(crate) trait Dice {
    /// A number below that one.
    fn below(&mut self, n: u64) -> u64;

    /// One of these.
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

/// The workflow that others run as a child; QUEUE is where its task goes.
pub(crate) const CHILD: &str = "workflow: child
initial_node: a
nodes: [{ref: a, kind: task, task: {queue: QUEUE}, retry: {max_failures: 1}}]
";

/// A workflow as it is written, piece by piece.
struct Writer<'q> {
    queue: &'q str,
    nodes: String,
    transitions: String,
    count: usize,
}

/// Where a piece begins and ends.
struct Piece {
    first: usize,
    last: usize,
}

impl Writer<'_> {
    fn task(&self, rest: &str) -> String {
        format!("kind: task, task: {{queue: {}}}, {rest}", self.queue)
    }

    fn node(&mut self, rest: &str) -> usize {
        self.count += 1;
        let _ = writeln!(self.nodes, "  - {{ref: n{}, {rest}}}", self.count);
        self.count
    }

    fn go(&mut self, from: usize, to: usize, rest: &str) {
        let _ = writeln!(self.transitions, "  - {{from: n{from}, to: n{to}{rest}}}");
    }

    fn piece(&mut self, dice: &mut dyn Dice, depth: u32) -> Piece {
        match dice.below(if depth == 0 { 5 } else { 10 }) {
            0 | 1 => {
                let rest = self.task("retry: {max_failures: 2, backoff: {initial_ms: 0}}");
                self.single(&rest)
            }
            2 => self.single("kind: pass"),
            3 => self.single("kind: signal, signal: {name: s}, timeout_ms: 50"),
            4 => self.single("kind: timer, timer: {delay_ms: 20}"),
            5 => {
                let (a, b) = (self.piece(dice, depth - 1), self.piece(dice, depth - 1));
                self.go(a.last, b.first, "");
                Piece { first: a.first, last: b.last }
            }
            6 => self.rescued(dice),
            7 => {
                // Plain parallel tokens; the second line ends by itself.
                let (first, other) = (self.node("kind: pass"), self.piece(dice, depth - 1));
                let rest = self.task("timeout_ms: 80");
                let last = self.node(&rest);
                self.go(first, last, "");
                self.go(first, other.first, "");
                Piece { first, last }
            }
            8 if depth > 1 => {
                self.single("kind: workflow, workflow: {name: child}, on_failure: catch")
            }
            _ => self.fan(dice, depth),
        }
    }

    fn single(&mut self, rest: &str) -> Piece {
        let node = self.node(rest);
        Piece { first: node, last: node }
    }

    fn rescued(&mut self, dice: &mut dyn Dice) -> Piece {
        let timeout = dice.pick(&["", ", timeout_ms: 40"]);
        let rest = self.task(&format!("retry: {{max_failures: 1}}{timeout}"));
        let (first, last) = (self.node(&rest), self.node("kind: pass"));
        self.go(first, last, "");
        self.go(first, last, ", outcome: error, condition: \"error.code != 'FATAL'\"");
        Piece { first, last }
    }

    fn fan(&mut self, dice: &mut dyn Dice, depth: u32) -> Piece {
        let first = self.node("kind: pass");
        let inner = self.piece(dice, depth - 1);
        let last = self.node("kind: pass");
        let spawn = dice.pick(&[
            "spawn_count: 3",
            "spawn_count: 2",
            "foreach: {collection: input.list, item_var: x, max_concurrency: 2}",
            "foreach: {collection: input.list, item_var: x, key: x}",
            "foreach: {collection: input.none, item_var: x}",
        ]);
        let _ = writeln!(
            self.transitions,
            "  - {{ref: fan{first}, from: n{first}, to: n{}, {spawn}}}",
            inner.first
        );
        if dice.below(8) == 0 {
            // Nothing joins these; the line goes on beside them.
            self.go(first, last, "");
            return Piece { first, last };
        }
        let wait = dice.pick(&["all", "any", "{m_of_n: 2}", "{m_of_n: \"50%\"}"]);
        let late = dice.pick(&["cancel", "abandon"]);
        let unreachable = dice.pick(&["fail", "proceed", "fail, fail_fast: false"]);
        let timeout = dice.pick(&[
            "",
            ", timeout_ms: 60, on_timeout: proceed_with_available",
            ", timeout_ms: 60, timeout_from: fan_out",
        ]);
        let otherwise = match dice.below(3) {
            0 => {
                let other = self.node("kind: pass, output_mapping: {context.code: error.code}");
                format!(", else_to: n{other}")
            }
            _ => String::new(),
        };
        let merge = dice.pick(&[
            "",
            ", merge: [{target: context.r, strategy: append}]",
            ", merge: [{target: context.r, strategy: collect, include_failed: true}]",
            ", merge: [{source: branch.index, target: context.r, strategy: keyed}, {target: context.f, strategy: first_arrival, missing: skip}]",
        ]);
        let join = format!(
            ", synchronization: {{joins_transition: fan{first}, wait_for: {wait}, on_late: {late}, on_unreachable: {unreachable}{timeout}{otherwise}{merge}}}"
        );
        self.go(inner.last, last, &join);
        Piece { first, last }
    }

    fn text(&self, first: usize) -> String {
        let (nodes, transitions) = (&self.nodes, &self.transitions);
        let transitions = match transitions.is_empty() {
            true => String::new(),
            false => format!("transitions:\n{transitions}"),
        };
        format!(
            "workflow: w\ntimeout_ms: 2000\ninitial_node: n{first}\nnodes:\n{nodes}{transitions}output_mapping: {{r: context.r, f: context.f, code: context.code}}\n"
        )
    }
}

/// A random workflow that the definition's own checks let pass; its tasks are for that queue.
pub(crate) fn workflow(dice: &mut dyn Dice, queue: &str) -> String {
    loop {
        let (nodes, transitions) = (String::new(), String::new());
        let mut writer = Writer { queue, nodes, transitions, count: 0 };
        let (a, b) = (writer.piece(dice, 2), writer.fan(dice, 3));
        let (c, d) = (writer.piece(dice, 1), writer.fan(dice, 2));
        for (from, to) in [(&a, &b), (&b, &c), (&c, &d)] {
            writer.go(from.last, to.first, "");
        }
        let piece = Piece { first: a.first, last: d.last };
        let text = writer.text(piece.first);
        let value = tenure_flow::yaml::parse(&text);
        if value.is_ok_and(|value| tenure_flow::Definition::compile(&value).is_ok()) {
            return text;
        }
    }
}
