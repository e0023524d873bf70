use super::*;
use crate::pi::{AssistantEnd, Role, Usage};

fn message(stop: StopReason, error: Option<&str>) -> JobInput {
    JobInput::Event(PiEvent::MessageEnd {
        role: Role::Assistant,
        assistant: Some(Box::new(AssistantEnd {
            text: "done".into(),
            stop_reason: stop,
            error_message: error.map(str::to_owned),
            usage: Usage::default(),
            model: "m".into(),
            provider: "p".into(),
            tool_calls: 0,
            thinking_chars: 0,
        })),
    })
}

fn quiet() -> JobInput {
    JobInput::Event(PiEvent::AgentSettled { aborted: false })
}

fn answer(verdict: Verdict) -> JobInput {
    JobInput::Judged(Reading::Answer { verdict, summary: "s".into() })
}

fn unusable() -> JobInput {
    JobInput::Judged(Reading::Unusable { problem: "no JSON".into(), re_ask: "give JSON".into() })
}

fn run(held: Held, inputs: Vec<JobInput>) -> (JobState, Vec<JobEffect>) {
    let mut job = JobState::new(held);
    let effects = inputs.into_iter().flat_map(|input| step(&mut job, input)).collect();
    (job, effects)
}

fn ready() -> JobInput {
    JobInput::SessionReady { messages: 3 }
}

fn turn() -> Vec<JobInput> {
    vec![message(StopReason::Stop, None), quiet(), JobInput::TextRead(Some("t".into()))]
}

fn exit() -> JobInput {
    JobInput::Exited { how: "exit 0".into() }
}

/// The last outcome that was told to the chain.
fn reported(effects: &[JobEffect]) -> Option<&Outcome> {
    effects.iter().rev().find_map(|effect| match effect {
        JobEffect::Report(outcome) => Some(outcome),
        _ => None,
    })
}

#[test]
fn a_good_turn_is_read_judged_persisted_closed_and_reported_in_this_order() {
    let mut inputs = vec![ready()];
    inputs.extend(turn());
    inputs.extend([answer(Verdict::Passed { remark: None }), exit()]);
    let (_, effects) = run(Held::Nothing, inputs);
    let outcome = Outcome::Answered { verdict: Verdict::Passed { remark: None }, summary: "s".into() };
    let expected = [
        JobEffect::Prompt(PromptKind::Full),
        JobEffect::ReadText,
        JobEffect::Judge(Some("t".into())),
        JobEffect::Persist(outcome.clone()),
        JobEffect::Close,
        JobEffect::Report(outcome),
    ];
    assert_eq!(effects, expected);
}

#[test]
fn what_is_said_first_depends_on_what_the_session_holds() {
    let full = JobEffect::Prompt(PromptKind::Full);
    for (case, held, messages, expected) in [
        ("a fresh session", Held::Nothing, 0, full.clone()),
        ("a new round on an older session", Held::Nothing, 9, full.clone()),
        ("a later incarnation of the same job", Held::Task, 9, JobEffect::Prompt(PromptKind::GoOn)),
        ("an answer that nobody judged", Held::Answer, 9, JobEffect::ReadText),
        ("a session file that pi could not use", Held::Task, 0, full.clone()),
        ("an answer that pi could not use", Held::Answer, 0, full),
    ] {
        let (_, effects) = run(held, vec![JobInput::SessionReady { messages }]);
        assert_eq!(effects, [expected], "{case}");
    }
}

#[test]
fn an_answer_that_was_written_before_the_crash_is_judged_as_if_just_heard() {
    let heard = [ready(), JobInput::TextRead(Some("t".into())), unusable()];
    let (job, effects) = run(Held::Answer, heard.to_vec());
    assert_eq!(job.phase, JobPhase::Working);
    let asked = JobEffect::Prompt(PromptKind::ReAsk("give JSON".into()));
    assert_eq!(effects, [JobEffect::ReadText, JobEffect::Judge(Some("t".into())), asked]);
}

#[test]
fn an_unusable_answer_is_asked_for_once_more() {
    let mut inputs = vec![ready()];
    inputs.extend(turn());
    inputs.push(unusable());
    let (job, effects) = run(Held::Nothing, inputs.clone());
    assert_eq!(job.phase, JobPhase::Working);
    assert_eq!(effects.last(), Some(&JobEffect::Prompt(PromptKind::ReAsk("give JSON".into()))));

    inputs.extend(turn());
    inputs.extend([unusable(), exit()]);
    let (_, effects) = run(Held::Nothing, inputs);
    assert_eq!(reported(&effects), Some(&Outcome::NoAnswer { problem: "no JSON".into() }));
}

#[test]
fn a_partial_result_earns_one_more_turn() {
    let partial = || answer(Verdict::Again { why: "half".into() });
    let mut inputs = vec![ready()];
    inputs.extend(turn());
    inputs.push(partial());
    inputs.extend(turn());
    inputs.extend([partial(), exit()]);
    let (_, effects) = run(Held::Nothing, inputs);
    assert!(effects.contains(&JobEffect::Prompt(PromptKind::ExtraTurn("half".into()))));
    let verdict = Verdict::Again { why: "half".into() };
    assert_eq!(reported(&effects), Some(&Outcome::Answered { verdict, summary: "s".into() }));
}

#[test]
fn every_way_to_fail_has_its_code_and_says_whether_a_second_try_makes_sense() {
    let error = |text| vec![ready(), message(StopReason::Error, Some(text)), quiet(), exit()];
    for (case, inputs, code, retry) in [
        ("unauthorized", error("401: bad key"), "unauthorized", false),
        ("bad request", error("400: {\"message\":\"no\"}"), "bad_request", false),
        ("unknown model", error("Model not found: a/b"), "unknown_model", false),
        ("overloaded", error("529 overloaded"), "model_error", true),
        ("a number is not a status", error("4012 tokens left, try later"), "model_error", true),
        ("no answer at all", vec![ready(), quiet(), exit()], "empty_result", true),
        ("aborted from outside", vec![ready(), message(StopReason::Aborted, None), quiet(), exit()], "aborted", true),
        ("paperclip_1721: exit 0 without a settled run", vec![ready(), exit()], "agent_exited", true),
        ("exit before it was up", vec![exit()], "agent_exited", true),
        ("silence", vec![ready(), JobInput::Stalled { silence_ms: 300_000 }, exit()], "stalled", true),
        ("too long", vec![ready(), JobInput::TimedOut { limit_ms: 1 }, exit()], "timed_out", true),
    ] {
        let (job, effects) = run(Held::Nothing, inputs);
        assert_eq!(job.phase, JobPhase::Ended, "{case}");
        match reported(&effects) {
            Some(Outcome::Failed { retry: said, code: found, .. }) => {
                assert_eq!((found.as_str(), *said), (code, retry), "{case}");
            }
            other => panic!("{case}: {other:?}"),
        }
    }
}

#[test]
fn a_stop_aborts_the_turn_first_and_ends_the_process_after() {
    let stopped = Outcome::Stopped;
    let tail = [JobEffect::Persist(stopped.clone()), JobEffect::Kill, JobEffect::Report(stopped)];
    for (case, answer_to_abort) in [("the agent comes to rest", quiet()), ("it does not", JobInput::GraceOver)] {
        let (_, effects) =
            run(Held::Nothing, vec![ready(), JobInput::StopAsked, JobInput::StopAsked, answer_to_abort, exit()]);
        assert_eq!(effects[1], JobEffect::Abort, "{case}");
        assert_eq!(effects[2..], tail, "{case}");
    }
    let (_, effects) = run(Held::Nothing, vec![JobInput::StopAsked, exit()]);
    assert_eq!(effects, tail, "a session that is still coming up is ended at once");
}

#[test]
fn an_answer_that_is_out_counts_though_a_stop_comes() {
    let mut inputs = vec![ready()];
    inputs.extend(turn());
    inputs.extend([JobInput::StopAsked, answer(Verdict::Passed { remark: None }), exit()]);
    let (_, effects) = run(Held::Nothing, inputs);
    assert!(matches!(reported(&effects), Some(Outcome::Answered { .. })));
}

#[test]
fn there_is_exactly_one_report_whatever_comes_after() {
    let late = [
        quiet(),
        answer(Verdict::Passed { remark: None }),
        JobInput::Stalled { silence_ms: 1 },
        exit(),
        JobInput::StopAsked,
    ];
    let mut inputs = vec![ready(), exit()];
    inputs.extend(late);
    let (_, effects) = run(Held::Nothing, inputs);
    assert_eq!(effects.iter().filter(|effect| matches!(effect, JobEffect::Report(_))).count(), 1);
    assert_eq!(effects.iter().filter(|effect| matches!(effect, JobEffect::Persist(_))).count(), 1);
}
