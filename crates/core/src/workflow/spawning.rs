//! Which tokens and branches come of the transitions taken. Everything is worked out before
//! anything begins, so nothing is half-created.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_flow::definition::{
    Definition, Foreach, GroupIndex, OnEmpty, OnMissing, Spawn as SpawnRule, TimeoutFrom,
    TransitionIndex, WaitFor,
};
use tenure_record::event::{
    CreateTokens, Json, LoopCount, NewToken, OpenGroup, SetTimer, Spawned, Step, TimerKind,
};
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_record::limits::PAYLOAD_BYTES_MAX;
use tenure_record::name::Text;
use tenure_record::time::{Clock, Timestamp};
use tenure_value::Value;

use super::cascade::{At, Cascade, Task};
use super::conditions::{self, ExpressionRoots};
use super::error::RunFault;
use super::routing::{Match, sibling_of, taken};
use super::synchronization;
use crate::limits::{BRANCHES_BEGUN_MAX, CASCADE_BYTES_MAX, RECORD_WORK, SCOPE_TOKENS_MAX};
use crate::state::{Runs, Token};

/// Branches that begin before it is looked whether more fit into the record.
const BRANCHES_AT_ONCE: usize = 4;
/// What a branch takes in a record beside its payload.
const BRANCH_BYTES: usize = 2_048;

/// What is to begin.
pub(super) struct Plan {
    /// The groups at whose joins the token arrives.
    pub arrives: Vec<GroupId>,
    spawns: Vec<Planned>,
    /// The error that new tokens deal with.
    error: Option<Value>,
}

enum Planned {
    Token(Match),
    Group(PlannedGroup),
}

struct PlannedGroup {
    group: GroupIndex,
    spawns: Vec<Spawned<'static>>,
    total: u32,
    concurrency: u32,
    /// Something wants its join to see that there is nothing.
    opens_empty: bool,
}

impl Cascade<'_, '_> {
    /// Works out what transitions lead to.
    pub(super) fn plan(
        &self,
        at: At,
        definition: &Arc<Definition>,
        matches: &[Match],
        error: Option<&Value>,
    ) -> Result<Plan, RunFault> {
        let mut plan = Plan { arrives: Vec::new(), spawns: Vec::new(), error: error.cloned() };
        for found in matches {
            let transition = definition.transition(found.transition);
            if let Some(joined) = transition.joins {
                plan.arrives.push(self.arrival(at, definition, joined)?);
            } else if let Some(fan_out) = &transition.fan_out {
                let spawned = self.spawned(at, definition, found, error)?;
                plan.group(fan_out.group).add(spawned);
            } else {
                let found = Match { transition: found.transition, why: found.why.clone() };
                plan.spawns.push(Planned::Token(found));
            }
        }
        plan.spawns.retain(|planned| match planned {
            Planned::Token(_) => true,
            Planned::Group(group) => group.total > 0 || group.opens_empty,
        });
        self.check_limits(at, definition, &plan)?;
        Ok(plan)
    }

    fn arrival(
        &self,
        at: At,
        definition: &Definition,
        joined: GroupIndex,
    ) -> Result<GroupId, RunFault> {
        sibling_of(self, at, joined.0).ok_or_else(|| {
            let name = &definition.group(joined).name;
            let message = format!("the token is in no branch of `{name}`, whose join it came to");
            RunFault::new("NOT_A_SIBLING", message)
        })
    }

    fn spawned(
        &self,
        at: At,
        definition: &Arc<Definition>,
        found: &Match,
        error: Option<&Value>,
    ) -> Result<Branches, RunFault> {
        let transition = definition.transition(found.transition);
        let fan_out = transition.fan_out.as_ref().expect("only fan-outs open branches");
        let mut place = ExpressionRoots::new(self.draft, at.run, self.token(at).scope);
        place.error = error;
        let mut spawned = Spawned {
            transition: found.transition.0,
            node: transition.to.0,
            why: found.why.clone(),
            ..Spawned::default()
        };
        let (mut concurrency, mut on_empty) = (0, OnEmpty::Join);
        match &fan_out.spawn {
            SpawnRule::Count(count) => spawned.count = *count,
            SpawnRule::From(expression) => spawned.count = spawn_count(expression, &place)?,
            SpawnRule::Foreach(foreach) => {
                (concurrency, on_empty) = (foreach.max_concurrency.unwrap_or(0), foreach.on_empty);
                list(foreach, place, definition.limits.max_spawn, &mut spawned)?;
            }
        }
        if spawned.count == 0 && on_empty == OnEmpty::Fail {
            let name = &definition.group(fan_out.group).name;
            return Err(RunFault::new(
                "EMPTY_FOREACH",
                format!("`{name}` has nothing to branch over"),
            ));
        }
        Ok(Branches { spawned, concurrency, joins_empty: on_empty == OnEmpty::Join })
    }

    fn check_limits(&self, at: At, definition: &Definition, plan: &Plan) -> Result<(), RunFault> {
        let (limits, run) = (&definition.limits, self.run(at.run));
        let mut tokens = u64::from(run.tokens) + run.unstarted;
        let mut bytes = 0;
        for planned in &plan.spawns {
            let Planned::Group(group) = planned else {
                tokens += 1;
                continue;
            };
            tokens += u64::from(group.total) + 1;
            bytes += group.spawns.iter().map(spawned_bytes).sum::<usize>();
            if group.total > limits.max_spawn {
                return Err(too_wide(group.total.into(), limits.max_spawn));
            }
            if self.depth(at) >= limits.max_depth {
                let most = limits.max_depth;
                let message = format!("groups would stand in each other more than {most} deep");
                return Err(RunFault::new("LIMIT_DEPTH", message));
            }
        }
        let beside = plan.spawns.iter().filter(|it| matches!(it, Planned::Token(_))).count();
        let scope = self.draft.scope(at.run, self.token(at).scope);
        if beside > 1 && scope.map_or(0, |scope| scope.tokens.len()) + beside > SCOPE_TOKENS_MAX {
            let message = format!(
                "more than {SCOPE_TOKENS_MAX} tokens would be live beside each other in one scope; \
                 open branches with a fan-out instead"
            );
            return Err(RunFault::new("LIMIT_TOKENS", message));
        }
        if tokens > limits.max_tokens {
            let most = limits.max_tokens;
            return Err(RunFault::new(
                "LIMIT_TOKENS",
                format!("the run would make more than {most} tokens"),
            ));
        }
        if self.has_room_for(bytes) {
            return Ok(());
        }
        let message = match self.has_room_for(0) {
            true => format!(
                "the list to branch over takes {bytes} bytes, which is more than is left of the \
                 {CASCADE_BYTES_MAX} of one record; branch over keys, and let each branch fetch its \
                 value"
            ),
            false => format!(
                "the steps that follow from one event take more than the {CASCADE_BYTES_MAX} bytes \
                 of one record; put a task, a signal or a timer between them"
            ),
        };
        Err(RunFault::new("LIMIT_RECORD", message))
    }

    fn depth(&self, at: At) -> u32 {
        let scope = self.token(at).scope;
        Runs::group(self.draft, at.run, scope.group).map_or(0, |group| group.depth)
    }

    /// What was planned begins.
    pub(super) fn spawn(&mut self, at: At, plan: Plan) {
        let definition = self.definition(at.run);
        for planned in plan.spawns {
            match planned {
                Planned::Token(found) => {
                    let transition = definition.transition(found.transition);
                    let parent = self.token(at);
                    let mut new = NewToken {
                        token: self.next_token(at.run),
                        node: transition.to.0,
                        group: parent.scope.group,
                        index: parent.scope.index,
                        parent: at.token,
                        via: Some(found.transition.0),
                        loops: loops_after(&definition, parent, found.transition),
                        error: None,
                        why: found.why,
                    };
                    new.error = plan.error.clone().map(Json);
                    self.create(at.run, new);
                }
                Planned::Group(group) => self.open(at, &definition, group),
            }
        }
    }

    /// The first token of a run.
    pub(super) fn first_token(&mut self, run: RunId) {
        let node = self.definition(run).initial_node.0;
        let new = NewToken { token: TokenId(1), node, ..NewToken::default() };
        self.create(run, new);
    }

    pub(super) fn create(&mut self, run: RunId, new: NewToken<'static>) {
        let token = new.token;
        self.emit(run, Step::CreateTokens(CreateTokens { tokens: vec![new] }));
        self.push(Task::Start(At { run, token }));
    }

    fn open(&mut self, at: At, definition: &Arc<Definition>, planned: PlannedGroup) {
        let rule = definition.group(planned.group);
        let id = GroupId(self.run(at.run).groups + 1);
        let join = rule.join.as_ref().map(|join| &join.synchronization);
        let promotes =
            join.is_some_and(|join| join.wait_for == WaitFor::Any && join.merge.is_empty());
        let open = OpenGroup {
            group: id,
            definition: planned.group.0,
            name: Text::Shared(Arc::clone(&rule.name)),
            origin: at.token,
            total: planned.total,
            need: join.map_or(0, |join| synchronization::need(join, planned.total, 0)),
            concurrency: planned.concurrency,
            promotes,
            spawns: planned.spawns,
        };
        self.emit(at.run, Step::OpenGroup(open));
        if let Some(timeout) = join.and_then(|join| join.timeout)
            && timeout.from == TimeoutFrom::FanOut
        {
            let at_moment = self.now.log.plus_ms(timeout.timeout_ms);
            self.set_join_timer(at.run, id, at_moment);
        }
        // A join that cannot be reached is seen before anything begins.
        self.push(Task::CheckSynchronization(at.run, id));
        self.push(Task::Fill(at.run, id));
    }

    pub(super) fn set_join_timer(&mut self, run: RunId, group: GroupId, at: Timestamp) {
        let timer =
            SetTimer { kind: TimerKind::Join, token: TokenId::NONE, group, at, clock: Clock::Log };
        self.emit(run, Step::SetTimer(timer));
    }

    /// Begins the lowest branches that have not begun, as far as there is room.
    pub(super) fn fill(&mut self, run: RunId, id: GroupId) {
        let definition = self.definition(run);
        // A few at a time: only when these have started is it known what they take in the record.
        for _ in 0..BRANCHES_AT_ONCE {
            let group = Runs::group(self.draft, run, id).expect("a group that is filled exists");
            if group.room() == 0 || !self.draft.goes_on(run, group.scope) || self.is_full() {
                return;
            }
            let index = group.started;
            let spawn = group.spawn_of(index);
            let (transition, node) = (TransitionIndex(spawn.transition), spawn.node);
            let origin = At { run, token: group.origin };
            let new = NewToken {
                token: self.next_token(run),
                node,
                group: id,
                index,
                parent: origin.token,
                via: Some(transition.0),
                loops: loops_after(&definition, self.token(origin), transition),
                error: None,
                why: Text::default(),
            };
            self.draft.spent.begun += 1;
            self.create(run, new);
        }
        self.push(Task::Fill(run, id));
    }

    /// Begins branches of groups that have room for them; of this one first.
    pub(crate) fn continue_dispatch(&mut self, run: RunId, group: GroupId) {
        self.push(Task::Fill(run, group));
    }

    /// Whether this record begins no more branches.
    pub(crate) fn is_full(&self) -> bool {
        let bytes = BRANCHES_AT_ONCE * (PAYLOAD_BYTES_MAX + BRANCH_BYTES);
        self.draft.spent.begun >= BRANCHES_BEGUN_MAX
            || !self.has_room_for(bytes)
            || self.draft.work() >= RECORD_WORK
    }
}

/// The branches of one transition.
struct Branches {
    spawned: Spawned<'static>,
    concurrency: u32,
    joins_empty: bool,
}

impl Plan {
    fn group(&mut self, index: GroupIndex) -> &mut PlannedGroup {
        let known = self
            .spawns
            .iter()
            .position(|planned| matches!(planned, Planned::Group(group) if group.group == index));
        let at = known.unwrap_or_else(|| {
            self.spawns.push(Planned::Group(PlannedGroup {
                group: index,
                spawns: Vec::new(),
                total: 0,
                concurrency: 0,
                opens_empty: false,
            }));
            self.spawns.len() - 1
        });
        match &mut self.spawns[at] {
            Planned::Group(group) => group,
            Planned::Token(_) => unreachable!("a group was found or made here"),
        }
    }
}

impl PlannedGroup {
    /// Several limits of concurrency in one group: the tightest counts for all of it.
    fn add(&mut self, branches: Branches) {
        self.total = self.total.saturating_add(branches.spawned.count);
        self.opens_empty |= branches.joins_empty;
        self.concurrency = match (self.concurrency, branches.concurrency) {
            (0, most) | (most, 0) => most,
            (a, b) => a.min(b),
        };
        if branches.spawned.count > 0 {
            self.spawns.push(branches.spawned);
        }
    }
}

fn spawned_bytes(spawned: &Spawned<'_>) -> usize {
    let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.0.bytes());
    json(&spawned.items) + json(&spawned.keys)
}

fn too_wide(count: u64, most: u32) -> RunFault {
    RunFault::new(
        "LIMIT_SPAWN",
        format!("{count} branches would begin; at most {most} are allowed"),
    )
}

fn spawn_count(
    expression: &tenure_flow::Expression,
    place: &ExpressionRoots<'_, '_>,
) -> Result<u32, RunFault> {
    let text = expression.text();
    let value = conditions::value(expression, place)
        .map_err(|error| RunFault::new("SPAWN_INVALID", format!("`{text}`: {error}")))?;
    let count = value.as_whole().filter(|count| *count >= 0);
    let count = count.ok_or_else(|| {
        let message =
            format!("`{text}` is {}; it must be a whole number, at least 0", value.to_json());
        RunFault::new("SPAWN_INVALID", message)
    })?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

fn list(
    foreach: &Foreach,
    mut place: ExpressionRoots<'_, '_>,
    most: u32,
    spawned: &mut Spawned<'static>,
) -> Result<(), RunFault> {
    let text = foreach.collection.text();
    let value = conditions::value(&foreach.collection, &place);
    let value = match value {
        Ok(value) if !value.is_null() => value,
        Ok(_) => match foreach.on_missing {
            OnMissing::Empty => Value::list(Vec::new()),
            OnMissing::Fail => {
                return Err(RunFault::new("FOREACH_MISSING", format!("`{text}` is null")));
            }
        },
        Err(error) if error.is_missing() => match foreach.on_missing {
            OnMissing::Empty => Value::list(Vec::new()),
            OnMissing::Fail => {
                return Err(RunFault::new("FOREACH_MISSING", format!("`{text}`: {error}")));
            }
        },
        Err(error) => return Err(RunFault::new("MAPPING_ERROR", format!("`{text}`: {error}"))),
    };
    conditions::check_depth(&value, "the list to branch over")?;
    let Some(items) = value.as_list() else {
        let message = format!("`{text}` is {}; foreach needs a list", value.kind());
        return Err(RunFault::new("FOREACH_NOT_LIST", message));
    };
    if items.len() > most as usize {
        return Err(too_wide(items.len() as u64, most));
    }
    if let Some(key) = &foreach.key {
        let (mut seen, mut keys) = (BTreeSet::new(), Vec::with_capacity(items.len()));
        for (index, item) in items.as_slice().iter().enumerate() {
            place.item = Some((Arc::clone(&foreach.item_var), item.clone()));
            let value = conditions::value(key, &place).map_err(|error| {
                let message = format!("the key of item {index}, `{}`: {error}", key.text());
                RunFault::new("MAPPING_ERROR", message)
            })?;
            // Equal values are one key: 1 and 1.0 both are "1".
            let name = value.as_text().map(Arc::from);
            let name: Arc<str> = name.unwrap_or_else(|| value.to_canonical_json().into());
            if !seen.insert(Arc::clone(&name)) {
                let message = format!("item {index} has the key {name:?}, as one before it has");
                return Err(RunFault::new("DUPLICATE_KEY", message));
            }
            keys.push(Value::Text(name));
        }
        spawned.keys = Some(Json(Value::list(keys)));
    }
    spawned.count = items.len() as u32;
    spawned.item_var = Text::Shared(Arc::clone(&foreach.item_var));
    spawned.items = Some(Json(value));
    Ok(())
}

/// Loop counts of a token that takes a transition.
fn loops_after(
    definition: &Definition,
    parent: &Token,
    transition: TransitionIndex,
) -> Vec<LoopCount> {
    let loops = parent.loops.as_deref().unwrap_or_default().iter();
    let mut loops: Vec<_> = loops
        .map(|(transition, count)| LoopCount { transition: *transition, count: *count })
        .collect();
    if definition.transition(transition).loop_max.is_some() {
        let count = taken(parent, transition) + 1;
        loops.retain(|known| known.transition != transition.0);
        loops.push(LoopCount { transition: transition.0, count });
        loops.sort_by_key(|known| known.transition);
    }
    loops
}
