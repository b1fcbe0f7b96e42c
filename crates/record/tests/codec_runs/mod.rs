//! Records about runs: what prost writes is read and written again as the same bytes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use prost::Message;
use tenure_record::codec::{self, FORMAT_VERSION};

use super::oracle::decision::Step;
use super::oracle::record::Event;
use super::oracle::{self, *};
use super::{created, number, small, text};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_about_runs_are_those_of_prost(record in record()) {
        let expected = record.encode_to_vec();
        let ours = codec::decode(&expected).unwrap();
        let mut again = Vec::new();
        codec::encode(&ours, &mut again);
        prop_assert_eq!(again, expected);
    }

    #[test]
    fn a_record_that_stops_tasks_of_a_run_is_told_without_decoding(record in record()) {
        use tenure_record::event::{Event, Step};
        let bytes = record.encode_to_vec();
        let event = codec::decode(&bytes).unwrap().event;
        let mut stops = matches!(
            event,
            Event::TimerFired(_)
                | Event::SignalReceived(_)
                | Event::RunCancelRequested(_)
                | Event::RunsStarted(_)
                | Event::RunStartedBySignal(_)
        );
        event.each_cascade(|cascade| {
            stops |= cascade.iter().any(|decision| {
                matches!(&decision.step, Step::CancelTokens(step) if !step.tasks.is_empty())
            });
        });
        prop_assert_eq!(codec::may_stop_a_task(&bytes), stops);
    }

    #[test]
    fn a_cut_record_about_runs_is_never_the_whole_one(record in record()) {
        let whole = record.encode_to_vec();
        let ours = codec::decode(&whole).unwrap();
        for end in 0..whole.len() {
            prop_assert_ne!(codec::decode(&whole[..end]).ok(), Some(ours.clone()));
        }
    }
}

/// Chance seldom stops a task in each place where that can be.
#[test]
fn a_stopped_task_is_told_without_decoding_wherever_decisions_are() {
    for (tasks, stops) in [(vec![StoppedTasks::default()], true), (Vec::new(), false)] {
        let cancel = Step::CancelTokens(CancelTokens { tasks, ..CancelTokens::default() });
        let cascade = vec![Decision { step: Some(cancel), ..Decision::default() }];
        let mut events = reports(&cascade);
        let run = Some(RunBegun::default());
        events.push(Event::RunStarted(RunStarted { run, cascade: cascade.clone() }));
        events.push(Event::DispatchContinued(DispatchContinued { cascade: cascade.clone() }));
        events.push(Event::EndContinued(EndContinued { cascade, items_max: 9 }));
        for event in events {
            let event = Some(event);
            let record = oracle::Record {
                version: FORMAT_VERSION,
                lsn: 1,
                at: 1,
                wall_offset_ms: -7,
                event,
            };
            let told = codec::may_stop_a_task(&record.encode_to_vec());
            assert_eq!(told, stops, "{record:?}");
        }
    }
}

#[test]
fn a_value_that_is_no_json_is_refused() {
    let definition = "{".to_owned();
    let item = WorkflowRegistered {
        name: "w".to_owned(),
        version: 1,
        definition,
        ..WorkflowRegistered::default()
    };
    let event = Some(Event::WorkflowRegistered(item));
    let record =
        oracle::Record { version: FORMAT_VERSION, lsn: 1, at: 1, wall_offset_ms: 0, event };
    let refusal = codec::decode(&record.encode_to_vec()).unwrap_err().to_string();
    assert!(refusal.starts_with("a value is no JSON"), "{refusal}");
}

/// Values as they are written: no spaces, keys in order.
fn json() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("[1,2.5,\"a\"]".to_owned()),
        Just("{\"a\":{\"b\":true},\"c\":-1}".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        "[a-z ]{0,40}".prop_map(|text| format!("{text:?}")),
    ]
}

fn new_token() -> impl Strategy<Value = NewToken> {
    let count = (small(), small()).prop_map(|(transition, count)| LoopCount { transition, count });
    let place = (small(), small(), small(), small(), small(), option::of(small()));
    (place, vec(count, 0..3), option::of(json()), text()).prop_map(|(place, loops, error, why)| {
        let (token, node, group, index, parent, via) = place;
        NewToken { token, node, group, index, parent, via, loops, error, why }
    })
}

fn open_group() -> impl Strategy<Value = OpenGroup> {
    let spawned =
        (small(), small(), small(), option::of(json()), text(), option::of(json()), text());
    let spawned = spawned.prop_map(|(transition, node, count, items, item_var, keys, why)| {
        Spawned { transition, node, count, items, item_var, keys, why }
    });
    let first = (small(), small(), text(), small(), small(), small(), small(), any::<bool>());
    (first, vec(spawned, 0..3)).prop_map(|(first, spawns)| {
        let (group, definition, name, origin, total, need, concurrency, promotes) = first;
        OpenGroup { group, definition, name, origin, total, need, concurrency, promotes, spawns }
    })
}

fn updates() -> impl Strategy<Value = UpdateTokenStates> {
    let update = (small(), 0..=9_i32, option::of(json()), vec(small(), 0..3));
    let update = update.prop_map(|(token, state, error, arrives)| TokenUpdate {
        token,
        state,
        error,
        arrives,
    });
    vec(update, 0..4).prop_map(|tokens| UpdateTokenStates { tokens })
}

fn settle() -> impl Strategy<Value = SettleBranch> {
    let value = (option::of(json()), any::<bool>());
    let value = value.prop_map(|(value, is_output)| BranchValue { value, is_output });
    let places = (small(), small(), small(), any::<bool>());
    (places, 0..=5_i32, vec(value, 0..3), option::of(json())).prop_map(
        |((group, index, count, rest), outcome, values, error)| SettleBranch {
            group,
            index,
            count,
            outcome,
            values,
            error,
            rest,
        },
    )
}

fn dispatch() -> impl Strategy<Value = MarkForDispatch> {
    let link = (number(), small(), text());
    let link = link.prop_map(|(run_id, token, node)| RunLink { run_id, token, node });
    let task = (created(), link).prop_map(|(task, run)| Created { run: Some(run), ..task });
    let item = (small(), 0..=9_i32, option::of(task), option::of(text()), option::of(text()));
    let item = item.prop_map(|(token, state, task, correlation, signal)| Dispatched {
        token,
        state,
        task,
        correlation,
        signal,
    });
    vec(item, 0..3).prop_map(|tokens| MarkForDispatch { tokens })
}

fn merge() -> impl Strategy<Value = MergeBranches> {
    let into = (text(), 0..=6_u32, 0..=1_u32, 0..=2_u32, 0..=2_u32, any::<bool>());
    let into = into.prop_map(|(target, strategy, mode, missing, on_conflict, include_failed)| {
        MergeInto { target, strategy, mode, missing, on_conflict, include_failed }
    });
    (small(), small(), vec(into, 0..3), option::of(small()), small()).prop_map(
        |(group, version, merges, promote, arrived)| MergeBranches {
            group,
            version,
            merges,
            promote,
            arrived,
        },
    )
}

fn cancel() -> impl Strategy<Value = CancelTokens> {
    // Rows of six numbers: how far it is from the one before, how many, state, attempt, and the
    // steps of record and lease, zigzag.
    let near = || 0..1_000_000_u64;
    let row = (1..1_000_u64, 1..100_u64, 1..=6_u64, 0..1_000_u64, near(), near());
    let row = row.prop_map(|(task, count, from, attempt, lsn, lease)| {
        vec![task, count, from, attempt, 2 * lsn, 2 * lease]
    });
    let rows = vec(row, 0..4).prop_map(|rows| rows.concat());
    let tasks =
        (text(), -100..=100_i32, text(), rows).prop_map(|(queue, priority, worker, tasks)| {
            StoppedTasks { queue, priority, worker, tasks }
        });
    let row = (0..1_000_u32, 1..1_000_u32).prop_map(|(step, count)| vec![step, count]);
    let tokens = vec(row, 0..5).prop_map(|rows| rows.concat());
    (tokens, vec(tasks, 0..3)).prop_map(|(tokens, tasks)| CancelTokens { tasks, tokens })
}

fn begun() -> impl Strategy<Value = RunBegun> {
    let tag = (text(), text()).prop_map(|(key, value)| Tag { key, value });
    let first = (number(), text(), small(), json(), json(), number(), option::of(text()));
    (first, vec(tag, 0..3), number(), small(), small(), number(), hash()).prop_map(
        |(first, tags, parent, parent_token, depth, root, start_hash)| {
            let (run_id, workflow, version, input, context, deadline_at, key) = first;
            RunBegun {
                run_id,
                workflow,
                version,
                input,
                context,
                deadline_at,
                key,
                tags,
                parent,
                parent_token,
                depth,
                root,
                start_hash,
            }
        },
    )
}

fn hash() -> impl Strategy<Value = Option<Vec<u8>>> {
    option::of(any::<[u8; 16]>().prop_map(|hash| hash.to_vec()))
}

fn artifact() -> impl Strategy<Value = ArtifactItem> {
    (text(), text(), number(), any::<[u8; 32]>()).prop_map(|(name, media_type, bytes, sha256)| {
        ArtifactItem { name, media_type, bytes, sha256: sha256.to_vec() }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let write = (text(), json()).prop_map(|(path, value)| Write { path, value });
    let context = (small(), small(), vec(write, 0..3))
        .prop_map(|(group, index, writes)| SetContext { group, index, writes });
    let fan_in = (small(), small(), small(), option::of(small()))
        .prop_map(|(group, token, node, via)| CreateFanInToken { group, token, node, via });
    let output = (small(), option::of(json()), any::<bool>())
        .prop_map(|(token, output, keep)| ApplyNodeOutput { token, output, keep });
    let timer = (0..=2_u32, small(), small(), number(), 0..=1_i32)
        .prop_map(|(kind, token, group, at, clock)| SetTimer { kind, token, group, at, clock });
    let child = (small(), begun()).prop_map(|(token, run)| StartChild { token, run: Some(run) });
    let finish = (0..=4_u32, option::of(json()), option::of(json())).prop_flat_map(
        |(state, output, error)| {
            let committed = (text(), small(), artifact()).prop_map(|(name, token, artifact)| {
                Committed { name, token, artifact: Some(artifact) }
            });
            vec(committed, 0..3).prop_map(move |artifacts| FinishRun {
                state,
                output: output.clone(),
                error: error.clone(),
                artifacts,
            })
        },
    );
    let stage = (small(), artifact())
        .prop_map(|(token, artifact)| StageArtifact { token, artifact: Some(artifact) });
    let promote = (small(), vec(small(), 0..4))
        .prop_map(|(group, branches)| PromoteArtifacts { group, branches });
    let end = (small(), option::of(small()), 0..=4_u32, option::of(json()));
    let end = end.prop_map(|(group, index, state, error)| EndScope { group, index, state, error });
    prop_oneof![
        end.prop_map(Step::EndScope),
        (small(), option::of(small()))
            .prop_map(|(group, index)| Step::CloseScope(CloseScope { group, index })),
        vec(new_token(), 0..4).prop_map(|tokens| Step::CreateTokens(CreateTokens { tokens })),
        open_group().prop_map(Step::OpenGroup),
        fan_in.prop_map(Step::CreateFanInToken),
        (small(), small()).prop_map(|(group, token)| {
            Step::ActivateFanInToken(ActivateFanInToken { group, token })
        }),
        updates().prop_map(Step::UpdateTokenStates),
        settle().prop_map(Step::SettleBranch),
        dispatch().prop_map(Step::MarkForDispatch),
        output.prop_map(Step::ApplyNodeOutput),
        context.prop_map(Step::SetContext),
        merge().prop_map(Step::MergeBranches),
        (small(), 0..=3_u32)
            .prop_map(|(group, state)| Step::DropBranches(DropBranches { group, state })),
        cancel().prop_map(Step::CancelTokens),
        timer.prop_map(Step::SetTimer),
        child.prop_map(Step::StartChild),
        finish.prop_map(Step::FinishRun),
        stage.prop_map(Step::StageArtifact),
        promote.prop_map(Step::PromoteArtifacts),
        (small(), small())
            .prop_map(|(token, signal)| Step::TakeSignal(TakeSignal { token, signal })),
    ]
}

fn cascade() -> impl Strategy<Value = Vec<Decision>> {
    let decision = (number(), number(), step()).prop_map(|(run_id, previous, step)| Decision {
        run_id,
        previous,
        step: Some(step),
    });
    vec(decision, 0..4)
}

/// All ends of a task in a run, each alone and as the second of several reports.
fn reports(cascade: &[Decision]) -> Vec<Event> {
    use report::Report as Kind;
    let (about, to) = (Some(About::default()), 1);
    let cascade = cascade.to_vec();
    let failed =
        TaskFailed { about: about.clone(), to, cascade: cascade.clone(), ..<_>::default() };
    let released =
        LeaseReleased { about: about.clone(), to, cascade: cascade.clone(), ..<_>::default() };
    let completed = TaskCompleted { about, cascade, ..<_>::default() };
    let plain = || Kind::LeaseExtended(LeaseExtended::default());
    let ends =
        [Kind::TaskCompleted(completed), Kind::TaskFailed(failed), Kind::LeaseReleased(released)];
    let batch = |reports: Vec<Kind>| {
        let reports = reports.into_iter().map(|report| Report { report: Some(report) });
        Event::ReportsApplied(ReportsApplied { reports: reports.collect() })
    };
    let all = ends.into_iter().flat_map(|end| [vec![end.clone()], vec![plain(), end]]);
    all.map(batch).collect()
}

fn timers() -> impl Strategy<Value = TimerFired> {
    let run = (number(), number(), cascade()).prop_map(|(run_id, deadline_at, cascade)| {
        RunDeadlinePassed { run_id, deadline_at, cascade }
    });
    let join = (number(), small(), number(), cascade()).prop_map(
        |(run_id, group, deadline_at, cascade)| JoinTimedOut {
            run_id,
            group,
            deadline_at,
            cascade,
        },
    );
    let token =
        || {
            (number(), small(), number(), cascade())
                .prop_map(|(run_id, token, at, cascade)| TokenDue { run_id, token, at, cascade })
        };
    (vec(run, 0..2), vec(join, 0..2), vec(token(), 0..2), vec(token(), 0..2)).prop_map(
        |(runs, joins, nodes, timers)| TimerFired {
            deadlines: Vec::new(),
            runs,
            joins,
            nodes,
            timers,
        },
    )
}

fn record() -> impl Strategy<Value = oracle::Record> {
    let signal = (
        number(),
        text(),
        text(),
        option::of(text()),
        json(),
        small(),
        number(),
        cascade(),
        hash(),
    );
    let signal = signal.prop_map(
        |(run_id, name, correlation, signal_id, payload, token, previous, cascade, signal_hash)| {
            SignalReceived {
                run_id,
                name,
                correlation,
                signal_id,
                payload,
                token,
                previous,
                cascade,
                signal_hash,
            }
        },
    );
    let signal = signal.boxed();
    let started = (begun(), cascade())
        .prop_map(|(run, cascade)| RunStarted { run: Some(run), cascade })
        .boxed();
    let by_signal = (started.clone(), signal.clone()).prop_map(|(start, signal)| {
        let (start, signal) = (Some(start), Some(signal));
        Event::RunStartedBySignal(RunStartedBySignal { start, signal })
    });
    let report = cascade().prop_flat_map(|cascade| prop::sample::select(reports(&cascade)));
    let event = prop_oneof![
        (text(), small(), json(), vec(text(), 0..3), small(), small()).prop_map(
            |(name, version, definition, nodes, transitions, groups)| {
                Event::WorkflowRegistered(WorkflowRegistered {
                    name,
                    version,
                    definition,
                    nodes,
                    transitions,
                    groups,
                })
            }
        ),
        (text(), small()).prop_map(|(name, version)| {
            Event::WorkflowDeleted(WorkflowDeleted { name, version })
        }),
        started.clone().prop_map(Event::RunStarted),
        vec(started, 0..3).prop_map(|runs| Event::RunsStarted(RunsStarted { runs })),
        signal.prop_map(Event::SignalReceived),
        by_signal,
        (number(), cascade()).prop_map(|(run_id, cascade)| {
            Event::RunCancelRequested(RunCancelRequested { run_id, cascade })
        }),
        cascade().prop_map(|cascade| Event::DispatchContinued(DispatchContinued { cascade })),
        (cascade(), small()).prop_map(|(cascade, items_max)| {
            Event::EndContinued(EndContinued { cascade, items_max })
        }),
        (number(), text(), number()).prop_map(|(run_id, reason, previous)| {
            Event::RunParked(RunParked { run_id, reason, previous })
        }),
        (number(), number()).prop_map(|(run_id, previous)| {
            Event::RunUnparked(RunUnparked { run_id, previous })
        }),
        timers().prop_map(Event::TimerFired),
        report,
    ];
    (number(), number(), any::<i64>(), event).prop_map(|(lsn, at, wall_offset_ms, event)| {
        oracle::Record { version: FORMAT_VERSION, lsn, at, wall_offset_ms, event: Some(event) }
    })
}
