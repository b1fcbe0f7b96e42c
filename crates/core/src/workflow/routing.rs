//! Which transitions a token takes: the first tier with a match, and all its matches.

use std::sync::Arc;

use tenure_flow::definition::{Definition, OnNoMatch, Transition, TransitionIndex};
use tenure_record::event::{Json, Step, TokenState, TokenUpdate, UpdateTokenStates};
use tenure_record::id::GroupId;
use tenure_record::name::Text;
use tenure_value::Value;

use super::cascade::{At, Cascade, Task};
use super::conditions::{self, ExpressionRoots};
use super::error::RunFault;
use super::spawning::Plan;
use crate::limits::CASCADE_WORK_MAX;
use crate::state::{Runs, Token};

/// A transition that matched, and what its condition read.
pub(super) struct Match {
    pub transition: TransitionIndex,
    pub why: Text<'static>,
}

/// Where a token goes.
enum Found {
    Matches(Vec<Match>),
    /// Its line ends here.
    End,
    /// Nothing matched, and that is an error.
    Nothing(RunFault),
}

impl Cascade<'_, '_> {
    /// A node is done: the token goes on, or its line ends.
    pub(super) fn route_success(&mut self, at: At) {
        let definition = self.definition(at.run);
        let node = &definition.nodes[self.token(at).node as usize];
        let bound = self.token(at).error.clone();
        let found = self
            .take_step(at)
            .and_then(|()| self.find(at, &definition, &node.on_success, bound.as_deref()));
        let planned = found.and_then(|found| match found {
            Found::Matches(matches) => self.plan(at, &definition, &matches, None).map(Some),
            Found::End => Ok(None),
            Found::Nothing(fault) => match definition.on_no_match {
                OnNoMatch::End => Ok(None),
                OnNoMatch::Fail => Err(fault),
            },
        });
        match planned {
            Ok(plan) => self.leave(at, TokenState::Completed, None, plan),
            Err(fault) => self.fail_to_route(at, &fault, None),
        }
    }

    /// A node failed: a transition for errors takes it on, or what is around it fails.
    pub(super) fn fail(&mut self, at: At, error: Value, state: TokenState) {
        if self.live_token(at).is_none() {
            return;
        }
        let definition = self.definition(at.run);
        let node = &definition.nodes[self.token(at).node as usize];
        let found = match node.on_error.is_empty() {
            true => Ok(Found::End),
            false => self
                .take_step(at)
                .and_then(|()| self.find(at, &definition, &node.on_error, Some(&error))),
        };
        let planned = found.and_then(|found| match found {
            Found::Matches(matches) => self.plan(at, &definition, &matches, Some(&error)).map(Some),
            Found::End | Found::Nothing(_) => Ok(None),
        });
        match planned {
            Ok(Some(plan)) => self.leave(at, state, Some(error), Some(plan)),
            Ok(None) => self.break_token(at, state, error),
            Err(fault) => self.fail_to_route(at, &fault, Some(&error)),
        }
    }

    /// An error of routing is not given to transitions for errors again.
    fn fail_to_route(&mut self, at: At, fault: &RunFault, cause: Option<&Value>) {
        let node = self.node_name(at);
        let error = fault.at(Some(&node), 0, cause);
        self.break_token(at, TokenState::Failed, error);
    }

    /// A token ends, and what was planned begins.
    fn leave(&mut self, at: At, state: TokenState, error: Option<Value>, plan: Option<Plan>) {
        let scope = self.token(at).scope;
        let arrives = plan.as_ref().map(|plan| plan.arrives.clone()).unwrap_or_default();
        self.update(at, state, error, arrives);
        if let Some(plan) = plan {
            self.spawn(at, plan);
        }
        self.push(Task::Settle(at.run, scope));
    }

    /// Says what a token is now.
    pub(super) fn update(
        &mut self,
        at: At,
        state: TokenState,
        error: Option<Value>,
        arrives: Vec<GroupId>,
    ) {
        let update = TokenUpdate { token: at.token, state, error: error.map(Json), arrives };
        self.emit(at.run, Step::UpdateTokenStates(UpdateTokenStates { tokens: vec![update] }));
    }

    /// Counts a step, of which a cascade may have so many.
    pub(super) fn take_step(&mut self, at: At) -> Result<(), RunFault> {
        if self.draft.work() > CASCADE_WORK_MAX {
            return Err(RunFault::new(
                "CASCADE_LIMIT",
                "one thing that happened led to more work than one record may take; let tasks do it, or \
                 split it",
            ));
        }
        let most = self.run(at.run).workflow.definition().limits.max_cascade;
        self.steps += 1;
        match self.steps <= most {
            true => Ok(()),
            false => Err(RunFault::new(
                "CASCADE_LIMIT",
                format!("one thing that happened led to more than {most} steps"),
            )),
        }
    }

    fn find(
        &self,
        at: At,
        definition: &Arc<Definition>,
        candidates: &[TransitionIndex],
        error: Option<&Value>,
    ) -> Result<Found, RunFault> {
        if candidates.is_empty() {
            return Ok(Found::End);
        }
        let token = self.token(at);
        let mut place = ExpressionRoots::new(self.draft, at.run, token.scope);
        place.error = error;
        let mut at_limit = None;
        let tier = |index: &TransitionIndex| definition.transition(*index).priority;
        for tier in candidates.chunk_by(|a, b| tier(a) == tier(b)) {
            let mut matches = Vec::new();
            for index in tier {
                let transition = definition.transition(*index);
                if let Some(most) = transition.loop_max
                    && taken(token, *index) >= most
                {
                    at_limit = Some((transition, most));
                    continue;
                }
                let (holds, why) = match &transition.condition {
                    Some(condition) => conditions::holds(condition, &place)?,
                    None => (true, Text::default()),
                };
                if holds {
                    matches.push(Match { transition: *index, why });
                }
            }
            if !matches.is_empty() {
                return Ok(Found::Matches(matches));
            }
        }
        Ok(Found::Nothing(nothing(definition, token, at_limit)))
    }
}

fn nothing(definition: &Definition, token: &Token, limit: Option<(&Transition, u32)>) -> RunFault {
    let node = &definition.nodes[token.node as usize].name;
    match limit {
        Some((transition, most)) => {
            let name = transition.name.as_deref().unwrap_or("a transition");
            let message =
                format!("`{name}` from `{node}` was taken {most} times, and nothing else matched");
            RunFault::new("LOOP_LIMIT", message)
        }
        None => RunFault::new("NO_MATCH", format!("no transition from `{node}` matched")),
    }
}

/// How often a token's line took a transition that counts.
pub(super) fn taken(token: &Token, transition: TransitionIndex) -> u32 {
    let loops = token.loops.as_deref().unwrap_or_default();
    loops.iter().find(|(there, _)| *there == transition.0).map_or(0, |(_, count)| *count)
}

/// The nearest instance of a group around a token, if it is in one.
pub(super) fn sibling_of(cascade: &Cascade<'_, '_>, at: At, definition: u32) -> Option<GroupId> {
    let mut scope = cascade.token(at).scope;
    while let Some(group) = Runs::group(cascade.draft, at.run, scope.group) {
        if group.definition == definition {
            return Some(scope.group);
        }
        scope = group.scope;
    }
    None
}
