//! What was decided about a run, in sentences. The definition has the conditions that led this way,
//! and names where a decision has only numbers.

use std::collections::BTreeMap;

use serde_json::Value;
use tenure_flow::Definition;
use tenure_flow::definition::Transition;
use tenure_sdk::Timestamp;

use crate::ui::plain;

/// Letters of a value before the rest is left out.
const VALUE_COLUMNS: usize = 60;
/// Tokens or branches that are told one by one; of more the number is told.
const TOLD_MAX: usize = 5;

/// Knows the names, and remembers what it told.
pub(crate) struct Story<'d> {
    definition: Option<&'d Definition>,
    /// The nodes of tokens that were told of.
    nodes: BTreeMap<u64, String>,
    /// The names of groups that were told of.
    groups: BTreeMap<u64, String>,
}

impl<'d> Story<'d> {
    pub(crate) fn new(definition: Option<&'d Definition>) -> Self {
        Self { definition, nodes: BTreeMap::new(), groups: BTreeMap::new() }
    }

    /// What happened, to begin with.
    pub(crate) fn cause(&self, cause: &[u8]) -> String {
        let cause: Value = serde_json::from_slice(cause).unwrap_or_default();
        let task = || format!("task {}", number(&cause, "task_id"));
        match text(&cause, "event") {
            "RunStarted" => "the run began".to_owned(),
            "TaskCompleted" => format!("{} was completed", task()),
            "TaskFailed" => format!("{} failed for good", task()),
            "LeaseReleased" => format!("{} was given back, and ended", task()),
            "LeaseExpired" => format!("the last lease of {} ran out", task()),
            "CancelRequested" => format!("{} was canceled", task()),
            "SignalReceived" => format!("the signal {} came", plain::line(text(&cause, "signal"))),
            "RunCancelRequested" => "somebody canceled the run".to_owned(),
            "DispatchContinued" => "more branches began".to_owned(),
            "EndContinued" => "more of what is ending ended".to_owned(),
            "RunParked" => {
                format!("the run was parked: {}", plain::line(text(&cause, "reason")))
            }
            "RunUnparked" => "the run was unparked".to_owned(),
            "TimerFired" => {
                let of = number(&cause, "of");
                match text(&cause, "what") {
                    "task" => format!("the time of task {of} was over"),
                    "run" => "the time of the run was over".to_owned(),
                    "join" => format!("the time of group {of} was over"),
                    "node" => format!("the time of token {of} was over"),
                    _ => format!("the moment of token {of} came"),
                }
            }
            other => plain::line(other),
        }
    }

    /// One decision; several sentences if it is about several things.
    pub(crate) fn decision(&mut self, decision: &[u8]) -> Vec<String> {
        let decision: Value = serde_json::from_slice(decision).unwrap_or_default();
        self.remember(&decision);
        let token = self.token(number(&decision, "token"));
        let group = self.group(number(&decision, "group"));
        match text(&decision, "decision") {
            "CreateTokens" => {
                let tokens = list(&decision, "tokens");
                few(tokens, "tokens begin", |new| self.new_token(new))
            }
            "OpenGroup" => self.opened(&decision),
            "CreateFanInToken" => {
                vec![format!("{token} waits for the branches of {group}")]
            }
            "ActivateFanInToken" => {
                vec![format!("the branches of {group} have met: {token} goes on")]
            }
            "UpdateTokenStates" => {
                few(list(&decision, "tokens"), "tokens change", |it| self.updated(it))
            }
            "SettleBranch" => vec![self.settled(&decision)],
            "MarkForDispatch" => {
                few(list(&decision, "tokens"), "tokens get their work", |it| self.dispatched(it))
            }
            "ApplyNodeOutput" => match decision.get("output") {
                Some(output) => vec![format!("{token} gave {}", short(output))],
                None => vec![format!("what it gave is the output of {token}")],
            },
            "SetContext" => self.written(&decision),
            "MergeBranches" => self.merged(&decision),
            "DropBranches" => {
                let state = plain::line(text(&decision, "state"));
                vec![format!("{group} is over ({state})")]
            }
            "CancelTokens" => vec![canceled(&decision)],
            "SetTimer" => vec![timer(&decision, &token, &group)],
            "StartChild" => {
                let run = decision.get("run").unwrap_or(&Value::Null);
                let (id, workflow) = (number(run, "run_id"), plain::line(text(run, "workflow")));
                vec![format!("run {id} of {workflow} begins for {token}")]
            }
            "FinishRun" => {
                let left = few(list(&decision, "artifacts"), "artifacts are left behind", |it| {
                    format!("it leaves {} behind", artifact(it))
                });
                std::iter::once(finished(&decision)).chain(left).collect()
            }
            "EndScope" if number(&decision, "group") == 0 => {
                vec![format!("the run begins to end as {}", text(&decision, "state"))]
            }
            "EndScope" => vec![format!("what is in {group} begins to end")],
            "CloseScope" => vec![format!("nothing is left of what was ending in {group}")],
            "TakeSignal" => vec![format!("{token} gets a signal that was kept")],
            "StageArtifact" => vec![format!("{token} hands in {}", artifact(&decision))],
            "PromoteArtifacts" => {
                vec![format!("what the branches of {group} have handed in is kept")]
            }
            _ => vec![short(&decision)],
        }
    }

    /// Keeps the names that a decision brings along.
    fn remember(&mut self, decision: &Value) {
        match text(decision, "decision") {
            "CreateTokens" => {
                for new in list(decision, "tokens") {
                    let node = self.node(new.get("node").unwrap_or(&Value::Null));
                    self.nodes.insert(number(new, "token"), node);
                }
            }
            "OpenGroup" => {
                let name = text(decision, "name").to_owned();
                self.groups.insert(number(decision, "group"), name);
            }
            "CreateFanInToken" => {
                let group = self.groups.get(&number(decision, "group"));
                let known = self.definition.zip(group).and_then(|(definition, name)| {
                    let group = definition.groups.iter().find(|group| *group.name == **name)?;
                    Some(plain::line(&definition.node(group.join.as_ref()?.target).name))
                });
                self.nodes.extend(known.map(|node| (number(decision, "token"), node)));
            }
            _ => {}
        }
    }

    /// `token 2 (approval)`.
    fn token(&self, id: u64) -> String {
        match self.nodes.get(&id) {
            Some(node) => format!("token {id} ({node})"),
            None => format!("token {id}"),
        }
    }

    /// `group 1 (each)`.
    fn group(&self, id: u64) -> String {
        match self.groups.get(&id) {
            Some(name) => format!("group {id} ({})", plain::line(name)),
            None => format!("group {id}"),
        }
    }

    fn node(&self, place: &Value) -> String {
        if let Some(name) = place.as_str() {
            return plain::line(name);
        }
        let found = place.as_u64().and_then(|place| usize::try_from(place).ok());
        let node = found.and_then(|place| self.definition?.nodes.get(place));
        node.map_or_else(|| format!("node {place}"), |node| plain::line(&node.name))
    }

    /// A transition by its name, or by its place if it has none.
    fn transition(&self, which: &Value) -> Option<&Transition> {
        let all = &self.definition?.transitions;
        match which.as_str() {
            Some(name) => all.iter().find(|transition| transition.name.as_deref() == Some(name)),
            None => all.get(usize::try_from(which.as_u64()?).ok()?),
        }
    }

    /// `token 2 begins at approval, because input.amount >= 1000 (input.amount is 1200)`.
    fn new_token(&self, new: &Value) -> String {
        let node = self.node(new.get("node").unwrap_or(&Value::Null));
        let mut sentence = format!("token {} begins at {node}", number(new, "token"));
        if number(new, "group") > 0 {
            let (index, group) = (number(new, "index"), self.group(number(new, "group")));
            sentence.push_str(&format!(", in branch {index} of {group}"));
        }
        sentence.push_str(&self.because(new, "via"));
        sentence
    }

    fn opened(&self, opened: &Value) -> Vec<String> {
        let group = self.group(number(opened, "group"));
        let (total, need) = (number(opened, "total"), number(opened, "need"));
        let need = match need {
            0 => String::new(),
            need if need == total => ", and all must arrive".to_owned(),
            need => format!(", of which {need} must arrive"),
        };
        let mut sentences = vec![format!("{group} opens {total} branches{need}")];
        for spawn in list(opened, "spawns") {
            let node = self.node(spawn.get("node").unwrap_or(&Value::Null));
            let because = self.because(spawn, "transition");
            sentences.push(format!("{} of them begin at {node}{because}", number(spawn, "count")));
        }
        sentences
    }

    fn updated(&self, update: &Value) -> String {
        let state = text(update, "state").replace('_', " ");
        let groups = list(update, "arrives").iter().filter_map(Value::as_u64);
        let arrives: String =
            groups.map(|id| format!(" and arrives at the join of {}", self.group(id))).collect();
        format!("{} is {state}{arrives}{}", self.token(number(update, "token")), error(update))
    }

    fn dispatched(&self, item: &Value) -> String {
        let token = self.token(number(item, "token"));
        let task = item.get("task_id").and_then(Value::as_u64);
        let signal = item.get("signal").and_then(Value::as_str).map(plain::line);
        match (task, signal) {
            (Some(task), _) => format!("task {task} is made for {token}"),
            (None, Some(signal)) => format!("{token} waits for the signal {signal}"),
            (None, None) => format!("{token} is {}", text(item, "state").replace('_', " ")),
        }
    }

    fn settled(&self, settle: &Value) -> String {
        let (first, count) = (number(settle, "index"), number(settle, "count").max(1));
        let outcome = text(settle, "outcome").replace('_', " ");
        let group = self.group(number(settle, "group"));
        match count {
            1 => format!("branch {first} of {group} is {outcome}{}", error(settle)),
            count => {
                let last = first + count - 1;
                format!("branches {first} to {last} of {group} are {outcome}{}", error(settle))
            }
        }
    }

    fn written(&self, set: &Value) -> Vec<String> {
        let branch = match number(set, "group") {
            0 => String::new(),
            group => format!(", in branch {} of {}", number(set, "index"), self.group(group)),
        };
        let write = |write: &Value| {
            let value = short(write.get("value").unwrap_or(&Value::Null));
            format!("{} is now {value}{branch}", plain::line(text(write, "path")))
        };
        list(set, "writes").iter().map(write).collect()
    }

    fn merged(&self, merge: &Value) -> Vec<String> {
        let (group, arrived) = (self.group(number(merge, "group")), number(merge, "arrived"));
        if let Some(winner) = merge.get("promote").and_then(Value::as_u64) {
            return vec![format!("what branch {winner} of {group} wrote is taken over")];
        }
        let into = |into: &Value| {
            let (target, how) = (plain::line(text(into, "target")), text(into, "strategy"));
            format!("{arrived} branches of {group} are merged into {target} ({how})")
        };
        list(merge, "merges").iter().map(into).collect()
    }

    /// Why this way: the condition, and what it read.
    fn because(&self, taken: &Value, field: &str) -> String {
        let transition = taken.get(field).and_then(|which| self.transition(which));
        let condition = transition.and_then(|transition| transition.condition.as_ref());
        let read = taken.get("why").and_then(Value::as_object).filter(|read| !read.is_empty());
        let read = read.map(|read| {
            let is = |(path, value): (&String, &Value)| {
                format!("{} is {}", plain::line(path), short(value))
            };
            read.iter().map(is).collect::<Vec<_>>().join(", ")
        });
        match (condition, read) {
            (Some(condition), Some(read)) => {
                format!(", because {} ({read})", plain::line(condition.text()))
            }
            (Some(condition), None) => format!(", because {}", plain::line(condition.text())),
            (None, Some(read)) => format!(", where {read}"),
            (None, None) => String::new(),
        }
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A value as JSON, as much as fits.
fn short(value: &Value) -> String {
    let text = plain::json(&value.to_string());
    match text.char_indices().nth(VALUE_COLUMNS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Each of a few things, or how many there are.
fn few(items: &[Value], what: &str, tell: impl Fn(&Value) -> String) -> Vec<String> {
    let told = items.iter().take(TOLD_MAX).map(tell);
    let rest = items.len().saturating_sub(TOLD_MAX);
    told.chain((rest > 0).then(|| format!("{rest} more {what}"))).collect()
}

fn error(of: &Value) -> String {
    let Some(error) = of.get("error") else { return String::new() };
    let (code, message) = (plain::line(text(error, "code")), plain::line(text(error, "message")));
    format!(": {code}, {message}")
}

fn canceled(cancel: &Value) -> String {
    let numbers = |field: &str, one: &str, many: &str| {
        let ids: Vec<_> = list(cancel, field).iter().map(Value::to_string).collect();
        match ids.len() {
            0 => None,
            1 => Some(format!("{one} {}", ids[0])),
            count if count > TOLD_MAX => Some(format!("{count} {many}")),
            _ => Some(format!("{many} {}", ids.join(", "))),
        }
    };
    let both = [numbers("tokens", "token", "tokens"), numbers("tasks", "task", "tasks")];
    let both: Vec<_> = both.into_iter().flatten().collect();
    format!("canceled: {}", both.join("; "))
}

fn timer(set: &Value, token: &str, group: &str) -> String {
    let at = Timestamp(number(set, "at_ms"));
    match text(set, "kind") {
        "join" => format!("{group} has time until {at}"),
        "wake" => format!("{token} waits until {at}"),
        _ => format!("{token} has time until {at}"),
    }
}

fn artifact(artifact: &Value) -> String {
    let (name, media_type) = (text(artifact, "name"), text(artifact, "media_type"));
    let (name, media_type) = (plain::line(name), plain::line(media_type));
    format!("{name} ({media_type}, {} bytes)", number(artifact, "bytes"))
}

fn finished(finish: &Value) -> String {
    let state = text(finish, "state");
    let output = finish.get("output").map(|output| format!(", with {}", short(output)));
    format!("the run is {state}{}{}", output.unwrap_or_default(), error(finish))
}
