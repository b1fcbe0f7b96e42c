//! What moves a token on: a task, a child, a signal, a moment, or nothing but the cascade itself.

use std::borrow::Cow;
use std::sync::Arc;

use tenure_flow::definition::{
    Backoff as BackoffRule, BackoffKind as KindRule, Node, NodeKind, Retry, SignalNode, TaskNode,
    TimerNode, WorkflowNode,
};
use tenure_flow::expression::{Reads, moment_ms};
use tenure_record::event::{
    Created, Dispatched, Json, MarkForDispatch, RunBegun, RunLink, SetTimer, StartChild, Step, Tag,
    TakeSignal, TimerKind, TokenState,
};
use tenure_record::id::{GroupId, RunId};
use tenure_record::limits::{LEASE_MS_DEFAULT, PAYLOAD_BYTES_MAX};
use tenure_record::name::Text;
use tenure_record::terms::{Backoff, BackoffKind, Budget, Budgets, Priority};
use tenure_record::time::{Clock, Timestamp};
use tenure_value::Value;

use super::cascade::{At, Cascade, Source, Task};
use super::conditions::{self, ExpressionRoots};
use super::context::sentence;
use super::error::RunFault;
use crate::limits::{CHILD_DEPTH_MAX, QUEUES_MAX};
use crate::state::{Runs, Workflow};

impl Cascade<'_, '_> {
    /// A token begins.
    pub(super) fn start(&mut self, at: At) {
        let Some(token) = self.live_token(at) else { return };
        if token.state != TokenState::Pending {
            return;
        }
        let definition = self.definition(at.run);
        let node = &definition.nodes[token.node as usize];
        if let Err(fault) = self.start_node(at, node) {
            self.fail_node(at, 0, &fault, TokenState::Failed);
        }
    }

    fn start_node(&mut self, at: At, node: &Node) -> Result<(), RunFault> {
        match &node.kind {
            NodeKind::Pass => {
                let value = self.input(at, node)?;
                self.push(Task::Accept(at, value, Source::Decision));
                return Ok(());
            }
            NodeKind::Task(task) => self.start_task(at, node, task)?,
            NodeKind::Workflow(child) => return self.start_child(at, node, child),
            NodeKind::Signal(signal) => {
                if self.take_kept_signal(at, signal)? {
                    return Ok(());
                }
            }
            NodeKind::Timer(timer) => {
                if !self.start_timer(at, timer)? {
                    return Ok(());
                }
            }
        }
        self.set_deadline(at, node);
        Ok(())
    }

    fn set_deadline(&mut self, at: At, node: &Node) {
        if let Some(timeout_ms) = node.timeout_ms {
            let moment = self.now.log.plus_ms(timeout_ms);
            self.set_token_timer(at, TimerKind::Node, moment, Clock::Log);
        }
    }

    fn set_token_timer(&mut self, at: At, kind: TimerKind, moment: Timestamp, clock: Clock) {
        let timer = SetTimer { kind, token: at.token, group: GroupId::NONE, at: moment, clock };
        self.emit(at.run, Step::SetTimer(timer));
    }

    /// What a node is given: the mapped object, or an empty one.
    fn input(&self, at: At, node: &Node) -> Result<Value, RunFault> {
        let Some(mapping) = &node.input_mapping else { return Ok(Value::empty_map()) };
        let token = self.token(at);
        let mut place = ExpressionRoots::new(self.draft, at.run, token.scope);
        place.error = token.error.as_deref();
        let mut reads = Reads::unnoted();
        let value = mapping.object(&place, &mut reads);
        self.draft.count_steps(reads.steps());
        let value = value
            .map_err(|error| RunFault::new("MAPPING_ERROR", format!("input_mapping, {error}")))?;
        conditions::check_depth(&value, "the mapped input")?;
        Ok(value)
    }

    fn start_task(&mut self, at: At, node: &Node, rule: &TaskNode) -> Result<(), RunFault> {
        let mut payload = Vec::new();
        self.input(at, node)?.write_json(&mut payload);
        if payload.len() > PAYLOAD_BYTES_MAX {
            let bytes = payload.len();
            let message =
                format!("the payload has {bytes} bytes; at most {PAYLOAD_BYTES_MAX} are allowed");
            return Err(RunFault::new("PAYLOAD_TOO_LARGE", message));
        }
        self.check_record(payload.len() + 512)?;
        if self.draft.find_queue(&rule.queue).is_none() && self.draft.queue_count() >= QUEUES_MAX {
            let message = format!("there are {QUEUES_MAX} queues already; use one that exists");
            return Err(RunFault::new("TOO_MANY_QUEUES", message));
        }
        let tags = rule.tags.iter().map(|(key, value)| Tag {
            key: Text::Shared(Arc::clone(key)),
            value: Text::Shared(Arc::clone(value)),
        });
        let budgets = budgets(&rule.retry);
        let created = Created {
            task_id: self.draft.next_task_id(),
            queue: Text::Shared(Arc::clone(&rule.queue)),
            name: rule.name.as_ref().map(|name| Text::Shared(Arc::clone(name))),
            priority: Priority::parse(rule.priority.into()).unwrap_or_default(),
            payload: Cow::Owned(payload),
            lease_ms: rule.lease_ms.unwrap_or(LEASE_MS_DEFAULT),
            max_failures: budgets.max_failures,
            max_expiries: budgets.max_expiries,
            max_attempts: budgets.max_attempts,
            attempt_timeout_ms: rule.attempt_timeout_ms,
            backoff: rule.retry.backoff.as_ref().map(backoff),
            tags: tags.collect(),
            run: Some(RunLink {
                run_id: at.run,
                token: at.token,
                node: Text::Shared(Arc::clone(&node.name)),
            }),
            ..Created::default()
        };
        let item = Dispatched {
            token: at.token,
            state: TokenState::Dispatched,
            task: Some(created),
            correlation: None,
            signal: None,
        };
        self.mark(at.run, item);
        Ok(())
    }

    fn mark(&mut self, run: RunId, item: Dispatched<'static>) {
        self.emit(run, Step::MarkForDispatch(MarkForDispatch { tokens: vec![item] }));
    }

    /// Begins to wait for a moment, or goes on at once if it has passed. Says whether it waits.
    fn start_timer(&mut self, at: At, rule: &TimerNode) -> Result<bool, RunFault> {
        let (moment, clock) = match rule {
            TimerNode::Delay(delay_ms) => (self.now.log.plus_ms(*delay_ms), Clock::Log),
            TimerNode::Until(expression) => {
                let token = self.token(at);
                let mut place = ExpressionRoots::new(self.draft, at.run, token.scope);
                place.error = token.error.as_deref();
                let text = expression.text();
                let value = conditions::value(expression, &place).map_err(|error| {
                    RunFault::new("MAPPING_ERROR", format!("`{text}`: {error}"))
                })?;
                let moment = moment_ms(&value).map_err(|error| {
                    RunFault::new("MAPPING_ERROR", format!("`{text}`: {error}"))
                })?;
                (Timestamp(moment), Clock::Wall)
            }
        };
        if moment <= self.now.on(clock) {
            self.push(Task::Accept(at, Value::empty_map(), Source::Decision));
            return Ok(false);
        }
        let item = Dispatched {
            token: at.token,
            state: TokenState::WaitingForTimer,
            ..Dispatched::default()
        };
        self.mark(at.run, item);
        self.set_token_timer(at, TimerKind::Wake, moment, clock);
        Ok(true)
    }

    /// Takes the oldest signal that was kept and fits, or begins to wait. Says whether one was.
    fn take_kept_signal(&mut self, at: At, rule: &SignalNode) -> Result<bool, RunFault> {
        let correlation = self.correlation(at, rule)?;
        let kept = self.run(at.run).rare.as_ref().and_then(|rare| {
            let mut signals = rare.signals.iter();
            let found = signals.find(|kept| {
                kept.name == rule.signal
                    && *kept.correlation == *correlation
                    && rule
                        .schema
                        .as_ref()
                        .is_none_or(|schema| self.draft.check(schema, &kept.payload).is_ok())
            });
            found.map(|kept| (kept.number, kept.payload.clone()))
        });
        if let Some((signal, payload)) = kept {
            self.emit(at.run, Step::TakeSignal(TakeSignal { token: at.token, signal }));
            self.push(Task::Accept(at, payload, Source::Decision));
            return Ok(true);
        }
        let item = Dispatched {
            token: at.token,
            state: TokenState::WaitingForSignal,
            task: None,
            correlation: (!correlation.is_empty()).then(|| Text::Shared(correlation.into())),
            signal: Some(Text::Shared(Arc::clone(&rule.signal))),
        };
        self.mark(at.run, item);
        Ok(false)
    }

    fn correlation(&self, at: At, rule: &SignalNode) -> Result<String, RunFault> {
        let Some(expression) = &rule.correlation else { return Ok(String::new()) };
        let token = self.token(at);
        let mut place = ExpressionRoots::new(self.draft, at.run, token.scope);
        place.error = token.error.as_deref();
        let text = expression.text();
        let value = conditions::value(expression, &place)
            .map_err(|error| RunFault::new("MAPPING_ERROR", format!("`{text}`: {error}")))?;
        Ok(value.as_text().map_or_else(|| value.to_json(), str::to_owned))
    }

    /// Refuses one more run in a tree that has as many as it may.
    fn check_runs(&self, top: RunId) -> Result<(), RunFault> {
        let Some(top) = Runs::run(self.draft, top) else { return Ok(()) };
        let most = top.workflow.definition().limits.max_runs;
        match top.descendants + 1 < most {
            true => Ok(()),
            false => Err(RunFault::new(
                "LIMIT_RUNS",
                format!(
                    "the tree would have more than {most} runs; raise `limits.max_runs` of \
                         the workflow at its top, or call fewer workflows"
                ),
            )),
        }
    }

    fn start_child(&mut self, at: At, node: &Node, rule: &WorkflowNode) -> Result<(), RunFault> {
        self.take_step(at)?;
        let found = match rule.version {
            Some(version) => Runs::workflow(self.draft, &rule.workflow, version),
            None => self.draft.newest_workflow(&rule.workflow),
        };
        let workflow = Arc::clone(found.ok_or_else(|| {
            let name = &rule.workflow;
            RunFault::new(
                "WORKFLOW_NOT_FOUND",
                format!("there is no workflow `{name}` to run; put it first"),
            )
        })?);
        if let Some(fault) = workflow.faults().first() {
            let message = format!("workflow `{}` no longer compiles: {fault}", workflow.name);
            return Err(RunFault::new("WORKFLOW_BROKEN", message));
        }
        let depth = self.run(at.run).depth + 1;
        if depth > CHILD_DEPTH_MAX {
            let message =
                format!("runs would stand in each other more than {CHILD_DEPTH_MAX} deep");
            return Err(RunFault::new("LIMIT_DEPTH", message));
        }
        let top = self.run(at.run).top;
        self.check_runs(top)?;
        let input = self.input(at, node)?;
        if let Some(schema) = &workflow.definition().input_schema {
            self.draft.check(schema, &input).map_err(|complaints| {
                RunFault::new("INPUT_INVALID", sentence("the child's input", &complaints))
            })?;
        }
        self.check_record(input.bytes() + workflow.definition().context_defaults.bytes() + 512)?;
        let run = RunBegun {
            parent: at.run,
            parent_token: at.token,
            depth,
            root: top,
            ..begin(self.draft.next_run_id(), &workflow, input, self.now.log)
        };
        let child = run.run_id;
        self.emit(at.run, Step::StartChild(StartChild { token: at.token, run }));
        self.set_deadline(at, node);
        self.begin_run(child);
        Ok(())
    }
}

/// A run as it begins.
pub(crate) fn begin(
    run_id: RunId,
    workflow: &Workflow,
    input: Value,
    now: Timestamp,
) -> RunBegun<'static> {
    let definition = workflow.definition();
    RunBegun {
        run_id,
        workflow: Text::Shared(Arc::clone(&workflow.name)),
        version: workflow.version,
        input: Json(input),
        context: Json(definition.context_defaults.clone()),
        deadline_at: definition.timeout_ms.map_or(Timestamp::ZERO, |ms| now.plus_ms(ms)),
        ..RunBegun::default()
    }
}

/// What ends a node's task. The definition was checked, so every number is in range.
fn budgets(rule: &Retry) -> Budgets {
    let given = |number: Option<u16>| number.map(Budget::of);
    Budgets::with_defaults(
        given(rule.max_failures),
        given(rule.max_expiries),
        given(rule.max_attempts),
    )
}

fn backoff(rule: &BackoffRule) -> Backoff {
    let usual = Backoff::STANDARD;
    Backoff {
        kind: rule.kind.map_or(usual.kind, |kind| {
            Some(match kind {
                KindRule::Fixed => BackoffKind::Fixed,
                KindRule::Linear => BackoffKind::Linear,
                KindRule::Exponential => BackoffKind::Exponential,
            })
        }),
        initial_ms: rule.initial_ms.unwrap_or(usual.initial_ms),
        max_ms: rule.max_ms.unwrap_or(usual.max_ms),
        jitter_permille: rule.jitter_permille.unwrap_or(usual.jitter_permille),
    }
}
