//! Runs to parts, one at a time: a run may be larger than a block.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use tenure_record::event::{ArtifactItem, CloseScope, Committed, LoopCount, StageArtifact, Tag};
use tenure_record::id::{RunId, TaskId};
use tenure_record::name::Text;
use tenure_record::snapshot::{
    BLOCK_BYTES, BranchItem, EndingItem, GroupItem, HeadItem, Item, KeptItem, ParkedItem, PathItem,
    ResultItem, RunPart, ScopeItem, SignalIdItem, SignalItem, SpawnItem, TokenItem, ValueItem,
    ValueWriter, WaitItem,
};
use tenure_record::time::Clock;
use tenure_value::Value;

use crate::command::Rest;
use crate::state::facts::Facts;
use crate::state::facts::run::{
    Branch, CommittedArtifact, EndingRoot, EndingScope, Group, KeptKey, KeptSignal, Parked, Run,
    Scope, Spawn, Staged, StoredRun, Token, Work,
};

/// Writes runs, and knows how far it is.
#[derive(Debug, Default)]
pub(super) struct RunWriter {
    /// The run that comes next, or is being written.
    run: u64,
    stage: Stage,
    /// What comes next of what the stage writes.
    next: usize,
    group: usize,
    kept: Option<KeptKey>,
    signal_id: Option<Arc<str>>,
    values: ValueWriter,
}

/// What is written of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Head,
    Tokens,
    Groups,
    Branches,
    Kept,
    Signals,
    SignalIds,
}

impl RunWriter {
    /// Fills one block, and says whether there is more.
    pub(super) fn fill(&mut self, facts: &Facts, block: &mut Vec<u8>) -> Rest {
        for (id, stored) in facts.runs.up_from(self.run) {
            self.run = id;
            loop {
                if block.len() >= BLOCK_BYTES {
                    return Rest::More;
                }
                let Some(part) = self.part(stored) else { break };
                Item::RunPart(part).put(block);
            }
            self.run = id + 1;
        }
        Rest::Nothing
    }

    /// Begins with that run.
    pub(super) fn begin(&mut self, run: u64) {
        self.run = run;
    }

    /// The next part of a run; none after its last.
    pub(super) fn part<'a>(&mut self, stored: &'a StoredRun) -> Option<RunPart<'a>> {
        loop {
            match self.stage {
                Stage::Head => {
                    self.values.forget();
                    self.go(Stage::Tokens);
                    return Some(RunPart::Head(self.head(stored)));
                }
                Stage::Tokens => match stored.tokens.get(self.next) {
                    Some(token) => {
                        self.next += 1;
                        return Some(RunPart::Token(self.token(token)));
                    }
                    None => {
                        self.group = 0;
                        self.go(Stage::Groups);
                    }
                },
                Stage::Groups => match stored.groups.get(self.group) {
                    Some(group) => {
                        self.go(Stage::Branches);
                        return Some(RunPart::Group(self.group(&group.head)));
                    }
                    None => self.go(Stage::Kept),
                },
                Stage::Branches => match stored.groups[self.group].branches.get(self.next) {
                    Some(branch) => {
                        self.next += 1;
                        return Some(RunPart::Branch(self.branch(branch)));
                    }
                    None => {
                        self.group += 1;
                        self.go(Stage::Groups);
                    }
                },
                Stage::Kept => {
                    match stored.kept.range((after(&self.kept), Bound::Unbounded)).next() {
                        Some((key, value)) => {
                            self.kept = Some(key.clone());
                            return Some(RunPart::Kept(self.kept_output(key, value)));
                        }
                        None => {
                            self.kept = None;
                            self.go(Stage::Signals);
                        }
                    }
                }
                Stage::Signals => match signals(&stored.head).get(self.next) {
                    Some(signal) => {
                        self.next += 1;
                        return Some(RunPart::Signal(self.signal(signal)));
                    }
                    None => self.go(Stage::SignalIds),
                },
                Stage::SignalIds => {
                    let from = after(&self.signal_id);
                    let Some((id, hash)) =
                        stored.signal_ids.range::<Arc<str>, _>((from, Bound::Unbounded)).next()
                    else {
                        self.signal_id = None;
                        self.go(Stage::Head);
                        return None;
                    };
                    self.signal_id = Some(Arc::clone(id));
                    let id = Text::Borrowed(id);
                    return Some(RunPart::SignalId(SignalIdItem { id, hash: *hash }));
                }
            }
        }
    }

    fn go(&mut self, stage: Stage) {
        (self.stage, self.next) = (stage, 0);
    }

    fn value(&mut self, value: &Value) -> Cow<'static, [u8]> {
        Cow::Owned(self.values.bytes(value))
    }

    fn optional(&mut self, value: Option<&Value>) -> Cow<'static, [u8]> {
        value.map_or_else(Cow::default, |value| self.value(value))
    }

    fn head<'a>(&mut self, stored: &'a StoredRun) -> HeadItem<'a> {
        // All of them by name: whoever adds a fact has to say here where it is.
        let StoredRun { head, tokens, groups, kept, signal_ids } = stored;
        let Run {
            workflow,
            input,
            state,
            started_at,
            finished_at,
            finished_offset,
            deadline_at,
            output,
            error,
            root,
            parent,
            top,
            descendants,
            depth,
            groups: _,
            tokens: _,
            live: _,
            busy: _,
            unstarted: _,
            rare,
            endings,
            parked,
            staged,
            artifacts,
            last_lsn,
        } = head;
        let (parent, parent_token) = parent.unwrap_or_default();
        let rare = rare.as_deref();
        let tags = rare.map(|rare| rare.tags.as_slice()).unwrap_or_default();
        HeadItem {
            id: RunId(self.run),
            workflow: Text::Borrowed(&workflow.name),
            version: workflow.version,
            state: *state,
            started_at: *started_at,
            finished_at: *finished_at,
            finished_offset: *finished_offset,
            deadline_at: *deadline_at,
            parent,
            parent_token,
            depth: *depth,
            last_lsn: *last_lsn,
            input: self.value(input),
            output: self.optional(output.as_ref()),
            error: self.optional(error.as_ref()),
            root: self.scope(root),
            key: rare.and_then(|rare| rare.key.as_deref()).map(Text::Borrowed),
            tags: tags
                .iter()
                .map(|(key, value)| Tag { key: Text::Borrowed(key), value: Text::Borrowed(value) })
                .collect(),
            signal_count: rare.map_or(0, |rare| rare.signal_count),
            tokens: tokens.len() as u32,
            groups: groups.len() as u32,
            kept: kept.len() as u64,
            signals: signals(head).len() as u32,
            signal_ids: signal_ids.len() as u32,
            staged: *staged,
            artifacts: artifacts.as_deref().unwrap_or_default().iter().map(committed).collect(),
            start_hash: rare.and_then(|rare| rare.start_hash),
            top: *top,
            descendants: *descendants,
            ending: head.ending_root().map(|ending| self.ending(ending)),
            ending_scopes: endings.iter().flat_map(|endings| &endings.scopes).map(scope).collect(),
            parked: parked.as_deref().map(|Parked { reason, at }| ParkedItem {
                reason: Text::Borrowed(reason),
                at: *at,
            }),
        }
    }

    fn ending(&mut self, ending: &EndingRoot) -> EndingItem<'static> {
        let EndingRoot { state, error, since, tokens_ended, groups_left, children, holds_parent } =
            ending;
        EndingItem {
            state: *state,
            error: self.optional(error.as_ref()),
            since: *since,
            tokens_ended: *tokens_ended,
            groups_left: *groups_left,
            children: *children,
            holds_parent: *holds_parent,
        }
    }

    fn scope<'a>(&mut self, scope: &'a Scope) -> ScopeItem<'a> {
        let Scope {
            context,
            outputs,
            output,
            last,
            written,
            nodes,
            tokens: _,
            groups: _,
            open_groups: _,
            is_arriving,
            artifacts,
        } = scope;
        let paths =
            written.iter().map(|path| PathItem { path: Text::Shared(path.to_string().into()) });
        ScopeItem {
            context: self.value(context),
            outputs: self.value(outputs),
            output: self.optional(output.as_ref()),
            last: self.optional(last.as_ref()),
            written: paths.collect(),
            nodes: nodes.clone(),
            is_arriving: *is_arriving,
            artifacts: artifacts.iter().map(|it| staged(it)).collect(),
        }
    }

    fn token<'a>(&mut self, token: &'a Token) -> TokenItem<'a> {
        let Token { node, scope, parent, via, state, work, deadline_at, loops, error } = token;
        let loops = loops.as_deref().unwrap_or_default().iter();
        let mut item = TokenItem {
            node: *node,
            group: scope.group,
            index: scope.index,
            parent: *parent,
            via: *via,
            state: *state,
            deadline_at: *deadline_at,
            loops: loops.map(|&(transition, count)| LoopCount { transition, count }).collect(),
            error: self.optional(error.as_deref()),
            task: TaskId::NONE,
            child: RunId::NONE,
            signal: None,
            timer: None,
            timer_clock: Clock::Log,
        };
        match work {
            Work::Nothing => {}
            Work::Task(id) => item.task = *id,
            Work::Child(id) => item.child = *id,
            Work::Signal(signal) => {
                let (name, correlation) = (Text::Borrowed(&signal.0), Text::Borrowed(&signal.1));
                item.signal = Some(WaitItem { name, correlation });
            }
            Work::Timer(at, clock) => (item.timer, item.timer_clock) = (Some(*at), *clock),
        }
        item
    }

    fn group<'a>(&mut self, group: &'a Group) -> GroupItem<'a> {
        let Group {
            definition,
            name,
            origin,
            scope,
            depth: _,
            total,
            need,
            concurrency,
            promotes,
            started,
            running: _,
            arrived,
            failed,
            canceled,
            timed_out,
            ended,
            rest,
            ending: _,
            state,
            fan_in,
            timeout_at,
            first_error,
            spawns,
            context,
            outputs,
        } = group;
        GroupItem {
            definition: *definition,
            name: Text::Borrowed(name),
            origin: *origin,
            group: scope.group,
            index: scope.index,
            total: *total,
            need: *need,
            concurrency: *concurrency,
            promotes: *promotes,
            started: *started,
            arrived: *arrived,
            failed: *failed,
            canceled: *canceled,
            timed_out: *timed_out,
            ended: *ended,
            state: *state,
            fan_in: *fan_in,
            timeout_at: *timeout_at,
            first_error: self.optional(first_error.as_ref()),
            spawns: spawns.iter().map(|spawn| self.spawn(spawn)).collect(),
            context: self.value(context),
            outputs: self.value(outputs),
            rest: *rest,
        }
    }

    fn spawn<'a>(&mut self, spawn: &'a Spawn) -> SpawnItem<'a> {
        let Spawn { transition, node, first: _, count, items, item_var, keys } = spawn;
        SpawnItem {
            transition: *transition,
            node: *node,
            count: *count,
            items: self.optional(items.as_ref()),
            item_var: Text::Borrowed(item_var),
            keys: self.optional(keys.as_ref()),
        }
    }

    fn branch<'a>(&mut self, branch: &'a Branch) -> BranchItem<'a> {
        let Branch { outcome, arrived_as, scope, result } = branch;
        let scope = scope.as_deref().map(|scope| self.scope(scope));
        let result = result.as_deref().map(|result| {
            let values = result.values.iter();
            let values = values.map(|value| ValueItem { value: self.optional(value.as_ref()) });
            let values = values.collect();
            let artifacts = result.artifacts.iter().map(|it| staged(it)).collect();
            ResultItem { values, error: self.optional(result.error.as_ref()), artifacts }
        });
        BranchItem { outcome: *outcome, arrived_as: *arrived_as, scope, result }
    }

    fn kept_output(&mut self, key: &KeptKey, value: &Value) -> KeptItem<'static> {
        let (node, group, indices, token) = key;
        let value = self.value(value);
        KeptItem { node: *node, group: *group, indices: indices.to_vec(), token: *token, value }
    }

    fn signal<'a>(&mut self, signal: &'a KeptSignal) -> SignalItem<'a> {
        SignalItem {
            number: signal.number,
            name: Text::Borrowed(&signal.name),
            correlation: Text::Borrowed(&signal.correlation),
            payload: self.value(&signal.payload),
        }
    }
}

fn scope(scope: &EndingScope) -> CloseScope {
    CloseScope { group: scope.group, index: scope.index }
}

fn staged(staged: &Staged) -> StageArtifact<'_> {
    let Staged { name, media_type, bytes, sha256, token } = staged;
    let (name, media_type) = (Text::Borrowed(name), Text::Borrowed(media_type));
    let artifact = ArtifactItem { name, media_type, bytes: *bytes, sha256: *sha256 };
    StageArtifact { token: *token, artifact }
}

fn committed(committed: &CommittedArtifact) -> Committed<'_> {
    let StageArtifact { token, artifact } = staged(&committed.staged);
    Committed { name: Text::Borrowed(&committed.name), token, artifact }
}

fn after<K>(written: &Option<K>) -> Bound<&K> {
    written.as_ref().map_or(Bound::Unbounded, Bound::Excluded)
}

fn signals(run: &Run) -> &[KeptSignal] {
    run.rare.as_ref().map(|rare| &*rare.signals).unwrap_or_default()
}
