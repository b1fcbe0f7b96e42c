//! Parts to runs. What a part names must be there; what follows from the parts (who is live where,
//! how many branches run) is worked out in the end, so that no bytes can say it wrongly.

use std::sync::Arc;

use smallvec::SmallVec;
use tenure_flow::limits::MAX_DEPTH_MAX;
use tenure_record::codec::Malformed;
use tenure_record::event::{ArtifactItem, BranchOutcome, Committed, GroupState};
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_record::snapshot::{
    BranchItem, GroupItem, HeadItem, KeptItem, ResultItem, RunPart, ScopeItem, SignalItem,
    SpawnItem, TokenItem, ValueReader, WorkflowItem,
};
use tenure_value::{Path, Value};

use crate::state::facts::Facts;
use crate::state::facts::run::{
    Branch, BranchResult, CommittedArtifact, EndingRoot, EndingScope, Endings, Group, KeptSignal,
    KeptSignals, Outline, Parked, RareRun, Run, Scope, ScopeRef, Spawn, Staged, StoredGroup,
    StoredRun, Token, Work, Workflow,
};
use crate::state::store::Chunks;

/// Adds a version of a workflow.
pub(super) fn workflow(facts: &mut Facts, item: &WorkflowItem<'_>) -> Result<(), Malformed> {
    let name = item.name.to_shared();
    let out_of_place = || Malformed::new(format!("workflow {name:?} is out of place"));
    if item.version <= facts.last_version(&name) {
        return Err(out_of_place());
    }
    if item.is_deleted {
        match Arc::make_mut(&mut facts.workflows).get_mut(&name) {
            Some(versions) => versions.last = item.version,
            None => {
                Arc::make_mut(&mut facts.deleted_workflows).insert(name, item.version);
            }
        }
        return Ok(());
    }
    if facts.deleted_workflows.contains_key(&name) {
        return Err(out_of_place());
    }
    let versions = Arc::make_mut(&mut facts.workflows).entry(Arc::clone(&name)).or_default();
    let outline = Outline {
        name,
        version: item.version,
        registered_at: item.registered_at,
        source: item.definition.0.clone(),
        nodes: item.nodes.iter().map(|name| name.to_shared()).collect(),
        transitions: item.transitions,
        groups: item.groups,
    };
    versions.push(Arc::new(Workflow::new(outline, None)));
    Ok(())
}

/// Reads runs, part by part.
#[derive(Debug, Default)]
pub(super) struct RunReader {
    /// The one whose parts are being read.
    open: Option<OpenRun>,
    last: RunId,
}

#[derive(Debug)]
pub(super) struct OpenRun {
    pub(super) id: RunId,
    pub(super) stored: StoredRun,
    pub(super) rare: RareRun,
    values: ValueReader,
    pub(super) awaited: Awaited,
}

/// How many parts are still to come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Awaited {
    tokens: u32,
    groups: u32,
    /// Of the last group.
    branches: u32,
    kept: u64,
    signals: u32,
    signal_ids: u32,
}

impl RunReader {
    /// Reads the next part.
    pub(super) fn part(&mut self, facts: &mut Facts, part: &RunPart<'_>) -> Result<(), Malformed> {
        if let RunPart::Head(item) = part {
            self.close(facts)?;
            if item.id <= self.last || item.id >= facts.next_run_id {
                return Err(Malformed::new(format!("run {} is out of place", item.id)));
            }
            self.last = item.id;
            self.open = Some(OpenRun::new(facts, item)?);
            return Ok(());
        }
        let Some(open) = &mut self.open else {
            return Err(Malformed::new(format!("a {} comes before its run", part.name())));
        };
        let read = open.part(part);
        read.map_err(|malformed| Malformed::new(format!("run {}: {malformed}", open.id)))
    }

    /// The last run is whole.
    pub(super) fn close(&mut self, facts: &mut Facts) -> Result<(), Malformed> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let id = open.id;
        open.close(facts).map_err(|malformed| Malformed::new(format!("run {id}: {malformed}")))
    }
}

impl OpenRun {
    fn new(facts: &Facts, item: &HeadItem<'_>) -> Result<Self, Malformed> {
        let versions = facts.workflows.get(item.workflow.as_str());
        let workflow = versions.and_then(|versions| versions.get(item.version));
        let workflow = workflow.cloned().ok_or_else(|| {
            Malformed::new(format!("run {} is of a workflow that is not there", item.id))
        })?;
        let mut values = ValueReader::default();
        let input = values.value(&item.input)?;
        let (output, error) = (values.optional(&item.output)?, values.optional(&item.error)?);
        let root = Arc::new(scope(&workflow, &mut values, &item.root)?);
        let run = Run {
            workflow,
            input,
            state: item.state,
            started_at: item.started_at,
            finished_at: item.finished_at,
            finished_offset: item.finished_offset,
            deadline_at: item.deadline_at,
            output,
            error,
            root,
            parent: item.parent.is_some().then_some((item.parent, item.parent_token)),
            // A snapshot without it is older than that field.
            top: if item.top.is_some() { item.top } else { item.id },
            descendants: item.descendants,
            depth: item.depth,
            groups: item.groups,
            tokens: item.tokens,
            live: 0,
            busy: 0,
            unstarted: 0,
            rare: None,
            endings: endings(item, &mut values)?,
            parked: item.parked.as_ref().map(|parked| {
                Arc::new(Parked { reason: parked.reason.to_shared(), at: parked.at })
            }),
            staged: item.staged,
            artifacts: (!item.artifacts.is_empty()).then(|| committed(&item.artifacts)),
            last_lsn: item.last_lsn,
        };
        let tags = item.tags.iter();
        let rare = RareRun {
            key: item.key.as_ref().map(|key| key.to_shared()),
            start_hash: item.start_hash,
            tags: tags.map(|tag| (tag.key.to_shared(), tag.value.to_shared())).collect(),
            signals: KeptSignals::default(),
            signal_count: item.signal_count,
        };
        let awaited = Awaited {
            tokens: item.tokens,
            groups: item.groups,
            branches: 0,
            kept: item.kept,
            signals: item.signals,
            signal_ids: item.signal_ids,
        };
        Ok(Self { id: item.id, stored: StoredRun::new(run), rare, values, awaited })
    }

    fn part(&mut self, part: &RunPart<'_>) -> Result<(), Malformed> {
        match part {
            RunPart::Head(_) => Err(Malformed::new("it has two heads")),
            RunPart::Token(item) => {
                less(&mut self.awaited.tokens, "tokens")?;
                let token = self.token(item)?;
                self.stored.tokens.push(token);
                Ok(())
            }
            RunPart::Group(item) => {
                less(&mut self.awaited.groups, "groups")?;
                if (self.awaited.tokens, self.awaited.branches) != (0, 0) {
                    return Err(Malformed::new("a group comes too early"));
                }
                let head = self.group(item)?;
                self.awaited.branches = if is_over(&head) { 0 } else { head.started };
                let branches = Chunks::default();
                self.stored.groups.push(Arc::new(StoredGroup { head, branches }));
                Ok(())
            }
            RunPart::Branch(item) => {
                less(&mut self.awaited.branches, "branches")?;
                self.branch(item)
            }
            RunPart::Kept(item) => {
                let too_many =
                    || Malformed::new("there are more kept outputs than there should be");
                self.awaited.kept = self.awaited.kept.checked_sub(1).ok_or_else(too_many)?;
                self.kept(item)
            }
            RunPart::Signal(item) => {
                less(&mut self.awaited.signals, "signals")?;
                self.signal(item)
            }
            RunPart::SignalId(item) => {
                less(&mut self.awaited.signal_ids, "ids of signals")?;
                let ids = Arc::make_mut(&mut self.stored.signal_ids);
                match ids.insert(item.id.to_shared(), item.hash) {
                    None => Ok(()),
                    Some(_) => Err(Malformed::new("an id of a signal is there twice")),
                }
            }
        }
    }

    fn token(&mut self, item: &TokenItem<'_>) -> Result<Token, Malformed> {
        let workflow = &self.stored.head.workflow;
        let id = self.stored.tokens.len() as u32 + 1;
        let is_known = (item.node as usize) < workflow.nodes.len()
            && item.via.is_none_or(|via| via < workflow.transitions)
            && (item.parent.0 < id);
        if !is_known {
            return Err(Malformed::new(format!("token {id} names what is not there")));
        }
        let loops = item.loops.iter().map(|count| (count.transition, count.count));
        Ok(Token {
            node: item.node,
            scope: scope_ref(item.group, item.index)?,
            parent: item.parent,
            via: item.via,
            state: item.state,
            work: work(item)?,
            deadline_at: item.deadline_at,
            loops: (!item.loops.is_empty()).then(|| loops.collect()),
            error: self.values.optional(&item.error)?.map(Arc::new),
        })
    }

    fn group(&mut self, item: &GroupItem<'_>) -> Result<Group, Malformed> {
        let id = self.stored.groups.len() as u32 + 1;
        let scope = scope_ref(item.group, item.index)?;
        let depth = match scope.is_root() {
            true => 1,
            false => self.started_branch(scope)?.depth + 1,
        };
        let workflow = &self.stored.head.workflow;
        let tokens = self.stored.tokens.len() as u32;
        let is_known = item.definition < workflow.groups
            && i64::from(depth) <= MAX_DEPTH_MAX
            && (1..=tokens).contains(&item.origin.0)
            && item.fan_in.0 <= tokens;
        let settled = [item.arrived, item.failed, item.canceled, item.timed_out, item.ended];
        let settled: u64 = settled.into_iter().map(u64::from).sum();
        let adds_up = settled <= item.total.into() && item.started <= item.total;
        if !is_known || !adds_up {
            return Err(Malformed::new(format!("group {id} does not add up")));
        }
        Ok(Group {
            definition: item.definition,
            name: item.name.to_shared(),
            origin: item.origin,
            scope,
            depth,
            total: item.total,
            need: item.need,
            concurrency: item.concurrency,
            promotes: item.promotes,
            started: item.started,
            running: 0,
            arrived: item.arrived,
            failed: item.failed,
            canceled: item.canceled,
            timed_out: item.timed_out,
            ended: item.ended,
            rest: item.rest,
            ending: self.endings_of(GroupId(id)),
            state: item.state,
            fan_in: item.fan_in,
            timeout_at: item.timeout_at,
            first_error: self.values.optional(&item.first_error)?,
            spawns: self.spawns(item)?,
            context: self.values.value(&item.context)?,
            outputs: self.values.value(&item.outputs)?,
        })
    }

    /// How many scopes of a group are ending.
    fn endings_of(&self, group: GroupId) -> u32 {
        let Some(endings) = &self.stored.head.endings else { return 0 };
        let first = EndingScope { group, index: None };
        endings.scopes.range(first..).take_while(|scope| scope.group == group).count() as u32
    }

    fn spawns(&mut self, item: &GroupItem<'_>) -> Result<Arc<[Spawn]>, Malformed> {
        let mut first = 0_u32;
        let mut spawns = Vec::with_capacity(item.spawns.len());
        for spawn in &item.spawns {
            let SpawnItem { transition, node, count, items, item_var, keys } = spawn;
            let workflow = &self.stored.head.workflow;
            let is_known =
                *transition < workflow.transitions && (*node as usize) < workflow.nodes.len();
            let (items, keys) = (self.values.optional(items)?, self.values.optional(keys)?);
            let fits = |list: &Option<Value>| {
                let Some(list) = list else { return true };
                list.as_list().is_some_and(|list| list.len() == *count as usize)
            };
            let next = first.checked_add(*count).filter(|next| *next <= item.total);
            let (true, Some(next)) = (is_known && fits(&items) && fits(&keys), next) else {
                return Err(Malformed::new("what opened a group does not add up"));
            };
            spawns.push(Spawn {
                transition: *transition,
                node: *node,
                first,
                count: *count,
                items,
                item_var: item_var.to_shared(),
                keys,
            });
            first = next;
        }
        match first == item.total {
            true => Ok(spawns.into()),
            false => Err(Malformed::new("nothing opened some branches of a group")),
        }
    }

    fn branch(&mut self, item: &BranchItem<'_>) -> Result<(), Malformed> {
        let workflow = &self.stored.head.workflow;
        let scope = match &item.scope {
            Some(item) => Some(Arc::new(scope(workflow, &mut self.values, item)?)),
            None => None,
        };
        let is_open = item.outcome == BranchOutcome::Open;
        if is_open && scope.is_none() {
            return Err(Malformed::new("a branch is open and has no scope"));
        }
        let result = match &item.result {
            Some(ResultItem { values, error, artifacts }) => {
                let values: Result<SmallVec<_>, _> =
                    values.iter().map(|item| self.values.optional(&item.value)).collect();
                let (values, error) = (values?, self.values.optional(error)?);
                let artifacts = artifacts.iter().map(|it| staged(&it.artifact, it.token));
                Some(Arc::new(BranchResult { values, error, artifacts: artifacts.collect() }))
            }
            None => None,
        };
        let group = self.stored.groups.last_mut().map(Arc::make_mut);
        let group = group.ok_or_else(|| Malformed::new("a branch has no group"))?;
        let is_running = is_open && group.head.rest == BranchOutcome::Open;
        group.head.running += u32::from(is_running);
        let (outcome, arrived_as) = (item.outcome, item.arrived_as);
        group.branches.push(Branch { outcome, arrived_as, scope, result });
        Ok(())
    }

    fn kept(&mut self, item: &KeptItem<'_>) -> Result<(), Malformed> {
        let workflow = &self.stored.head.workflow;
        let key = (item.node, item.group, SmallVec::from_slice(&item.indices), item.token);
        let is_known = (item.node as usize) < workflow.nodes.len();
        let value = self.values.value(&item.value)?;
        let is_new = Arc::make_mut(&mut self.stored.kept).insert(key, value).is_none();
        match is_known && is_new {
            true => Ok(()),
            false => Err(Malformed::new("a kept output is out of place")),
        }
    }

    fn signal(&mut self, item: &SignalItem<'_>) -> Result<(), Malformed> {
        let payload = self.values.value(&item.payload)?;
        let before = self.rare.signals.last().map_or(0, |signal| signal.number);
        if item.number <= before || item.number > self.rare.signal_count {
            return Err(Malformed::new("a kept signal is out of place"));
        }
        self.rare.signals.push(KeptSignal {
            number: item.number,
            name: item.name.to_shared(),
            correlation: item.correlation.to_shared(),
            payload,
        });
        Ok(())
    }

    /// The group of a branch that has begun.
    pub(super) fn started_branch(&self, at: ScopeRef) -> Result<&Group, Malformed> {
        let group = self.stored.group(at.group).filter(|group| at.index < group.started);
        group.ok_or_else(|| Malformed::new(format!("the branch {at:?} is not there")))
    }
}

/// Whether a group needs nothing of its branches any more.
pub(super) fn is_over(group: &Group) -> bool {
    group.state != GroupState::Open && group.settled() == group.total && group.ending == 0
}

fn endings(
    item: &HeadItem<'_>,
    values: &mut ValueReader,
) -> Result<Option<Arc<Endings>>, Malformed> {
    let root = match &item.ending {
        Some(ending) => Some(EndingRoot {
            state: ending.state,
            error: values.optional(&ending.error)?,
            since: ending.since,
            tokens_ended: ending.tokens_ended,
            groups_left: ending.groups_left,
            children: ending.children,
            holds_parent: ending.holds_parent,
        }),
        None => None,
    };
    let scopes = item.ending_scopes.iter();
    let scopes = scopes.map(|scope| EndingScope { group: scope.group, index: scope.index });
    let endings = Endings { root, scopes: scopes.collect() };
    let is_ending = !endings.is_empty();
    Ok(is_ending.then(|| Arc::new(endings)))
}

fn less(awaited: &mut u32, what: &str) -> Result<(), Malformed> {
    *awaited = awaited
        .checked_sub(1)
        .ok_or_else(|| Malformed::new(format!("there are more {what} than there should be")))?;
    Ok(())
}

fn staged(item: &ArtifactItem<'_>, token: TokenId) -> Arc<Staged> {
    Arc::new(Staged {
        name: item.name.to_shared(),
        media_type: item.media_type.to_shared(),
        bytes: item.bytes,
        sha256: item.sha256,
        token,
    })
}

fn committed(items: &[Committed<'_>]) -> Arc<[CommittedArtifact]> {
    let committed = items.iter().map(|it| CommittedArtifact {
        name: it.name.to_shared(),
        staged: staged(&it.artifact, it.token),
    });
    committed.collect()
}

fn scope_ref(group: GroupId, index: u32) -> Result<ScopeRef, Malformed> {
    let at = ScopeRef { group, index };
    match at.is_root() && index != 0 {
        true => Err(Malformed::new("the root has one branch")),
        false => Ok(at),
    }
}

fn work(item: &TokenItem<'_>) -> Result<Work, Malformed> {
    let child = item.child.is_some();
    match (item.task.is_some(), child, &item.signal, item.timer) {
        (false, false, None, None) => Ok(Work::Nothing),
        (true, false, None, None) => Ok(Work::Task(item.task)),
        (false, true, None, None) => Ok(Work::Child(item.child)),
        (false, false, Some(wait), None) => {
            Ok(Work::Signal(Arc::new((wait.name.to_shared(), wait.correlation.to_shared()))))
        }
        (false, false, None, Some(at)) => Ok(Work::Timer(at, item.timer_clock)),
        _ => Err(Malformed::new("a token is moved on by two things")),
    }
}

fn scope(
    workflow: &Workflow,
    values: &mut ValueReader,
    item: &ScopeItem<'_>,
) -> Result<Scope, Malformed> {
    let (context, outputs) = (values.value(&item.context)?, values.value(&item.outputs)?);
    let (output, last) = (values.optional(&item.output)?, values.optional(&item.last)?);
    let written = item.written.iter().map(|item| Path::parse(item.path.as_str()));
    let written = written.collect::<Result<_, _>>();
    let written = written.map_err(|fault| Malformed::new(fault.message))?;
    if item.nodes.iter().any(|node| *node as usize >= workflow.nodes.len()) {
        return Err(Malformed::new("a scope names a node that is not there"));
    }
    Ok(Scope {
        context,
        outputs,
        output,
        last,
        written,
        nodes: item.nodes.clone(),
        is_arriving: item.is_arriving,
        artifacts: item.artifacts.iter().map(|it| staged(&it.artifact, it.token)).collect(),
        ..Scope::default()
    })
}
