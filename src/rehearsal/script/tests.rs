use proptest::prelude::*;

use super::*;

const MINIMAL: &str = r#"{"rehearsal": 1, "roles": {"executor": {"rounds": [{"turns": [{"text": "hi"}]}]}}}"#;

fn with_turn(turn: &str) -> String {
    format!("{{\"rehearsal\": 1,\n \"roles\": {{\"x\": {{\"rounds\": [{{\"turns\": [\n  {turn}\n ]}}]}}}}}}")
}

fn only_turn(turn: &str) -> Turn {
    let script = Script::parse("s.json", &with_turn(turn)).unwrap();
    script.turn("x", "x", 1, 0).unwrap().clone()
}

/// Returns (line, field, reason).
fn refusal(text: &str) -> (usize, String, String) {
    match Script::parse("s.json", text) {
        Err(ScriptError::Invalid { file, line, field, reason, .. }) => {
            assert_eq!(file, "s.json");
            (line, field, reason)
        }
        other => panic!("not refused: {text}\n{other:?}"),
    }
}

#[test]
fn a_wrong_turn_is_refused_with_its_line_its_field_and_the_reason() {
    for (turn, line, field, reason) in [
        (r#"{"txt": "hi"}"#, 3, ".txt", "did you mean text?"),
        (r#"{"text": 5}"#, 3, ".text", "expected a string"),
        (r#"{"text": {"repeat": "a"}}"#, 3, ".text", "either `repeat` and `count`"),
        (r#"{"text": {"json": {}, "count": 2}}"#, 3, ".text", "or `json` alone"),
        (r#"{"text": {"json": null}}"#, 3, ".text", "or `json` alone"),
        (r#"{"text": {"repeat": "a", "cuont": 2}}"#, 3, ".text.cuont", "did you mean count?"),
        (r#"{"text": {"repeat": "abc", "count": 3333334}}"#, 3, ".text", "over 10000000 bytes"),
        (r#"{"text": {"repeat": "a", "count": 0}}"#, 3, ".text.count", "from 1 to 10000000"),
        (
            r#"{"thinking": {"repeat": "ab", "count": 3000000}, "text": {"repeat": "ab", "count": 3000000}}"#,
            3,
            "",
            "the turn is over 10000000 bytes",
        ),
        (r#"{"tools": [{"name": "bsh", "arguments": {}}]}"#, 3, ".tools[0].name", "did you mean bash?"),
        (r#"{"tools": [{"name": "rm_rf", "arguments": {}}]}"#, 3, ".tools[0].name", "unknown variant `rm_rf`"),
        (r#"{"tools": [{"name": "bash"}]}"#, 3, ".tools[0]", "missing field `arguments`"),
        (r#"{"tools": [{"name": "bash", "arguments": "ls"}]}"#, 3, ".tools[0].arguments", "expected a map"),
        (r#"{"text": "", "usage": {"input": 1}}"#, 3, ".usage", "missing field `output`"),
        (r#"{"text": "", "usage": {"input": 1, "output": -1}}"#, 3, ".usage.output", "integer `-1`"),
        (r#"{"text": "", "usage": {"input": 1, "output": 1, "reasoning": 2}}"#, 3, ".usage", "part of `output`"),
        (r#"{"text": "", "finish": "stopp"}"#, 3, ".finish", "did you mean stop?"),
        ("{\"text\": \"\",\n\n \"delay_ms\": 600001}", 5, ".delay_ms", "from 0 to 600000"),
        (r#"{"text": "", "chunk_chars": 0}"#, 3, ".chunk_chars", "from 1 to 65536"),
        (r#"{"text": "", "fault": {"http": 200}}"#, 3, ".fault.http", "from 400 to 599"),
        (r#"{"text": "", "fault": {"http": 500, "drop_after": 1}}"#, 3, ".fault", "a fault is one of"),
        (r#"{"text": "", "fault": {"drop_after": 1, "message": "m"}}"#, 3, ".fault", "a fault is one of"),
        (r#"{"text": "", "fault": {}}"#, 3, ".fault", "a fault is one of"),
        (r#"{"text": "", "fault_times": 2}"#, 3, "", "without a `fault`"),
        (r#"{"fault": {"http": 401}, "fault_times": 2}"#, 3, "", "no answer for afterwards"),
        (r#"{"delay_ms": 5}"#, 3, "", "a turn needs"),
    ] {
        let (found_line, found_field, found_reason) = refusal(&with_turn(turn));
        assert_eq!(found_field, format!("roles.x.rounds[0].turns[0]{field}"), "{turn}: {found_reason}");
        assert_eq!(found_line, line, "{turn}: {found_reason}");
        assert!(found_reason.contains(reason), "{turn}: {found_reason}");
    }
}

#[test]
fn a_wrong_frame_is_refused_with_its_field_and_the_reason() {
    for (text, field, reason) in [
        ("", ".", "EOF"),
        ("{", ".", "EOF"),
        ("[1, \"\", {}]", ".", "expected an object"),
        (r#"{"rehearsal": 1, "roles": {"x": {"rounds": ["#, "roles.x.rounds", "EOF"),
        ("{} x", ".", "missing field `rehearsal`"),
        (r#"{"rehearsal": 2, "roles": {}}"#, "rehearsal", "expected the number 1"),
        (r#"{"rehearsal": 1}"#, ".", "missing field `roles`"),
        (r#"{"rehearsal": 1, "roles": {}}"#, "roles", "the object is empty"),
        (r#"{"rehearsal": 1, "roles": {"x": {}}}"#, "roles.x", "missing field `rounds`"),
        (r#"{"rehearsal": 1, "roles": {"x": {"rounds": []}}}"#, "roles.x.rounds", "the list is empty"),
        (
            r#"{"rehearsal": 1, "roles": {"x": {"rounds": [{"turns": []}]}}}"#,
            "roles.x.rounds[0].turns",
            "list is empty",
        ),
        (r#"{"rehearsal": 1, "roels": {}}"#, "roels", "did you mean roles?"),
        (&format!("{MINIMAL} {{}}"), ".", "trailing characters"),
        (
            r#"{"rehearsal": 1, "roles": {"x": {"rounds": [{"turns": [{"text": ""}]}]}, "x": {"rounds": [{"turns": [{"text": ""}]}]}}}"#,
            "roles",
            "`x` is there twice",
        ),
    ] {
        let (_, found_field, found_reason) = refusal(text);
        assert_eq!(found_field, field, "{text}: {found_reason}");
        assert!(found_reason.contains(reason), "{text}: {found_reason}");
    }
}

#[test]
fn a_rule_about_several_fields_is_refused_on_the_line_where_their_object_ends() {
    for turn in ["{\n\"delay_ms\": 1\n}\n\n\n", "{\"usage\": {\n\"input\": 1, \"output\": 1,\n \"reasoning\": 2}\n\n}"]
    {
        assert_eq!(refusal(&with_turn(turn)).0, 5, "{turn}");
    }
    let word = "{\"tools\": [{\"name\": \"bsh\"\n\n}]}";
    assert_eq!(refusal(&with_turn(word)).0, 3);
}

#[test]
fn the_message_reads_as_a_sentence_and_says_the_place_once() {
    let error = Script::parse("my script.json", &with_turn(r#"{"txt": 1}"#)).unwrap_err();
    insta::assert_snapshot!(error, @"read rehearsal my script.json: line 3, column 8, field `roles.x.rounds[0].turns[0].txt`: unknown field `txt`, expected one of `thinking`, `text`, `tools`, `usage`, `finish`, `delay_ms`, `chunk_delay_ms`, `chunk_chars`, `fault`, `fault_times`; did you mean text?");
    let error = Script::parse("my script.json", "{").unwrap_err();
    insta::assert_snapshot!(error, @"read rehearsal my script.json: line 1, column 1, whole file: EOF while parsing an object");
}

#[test]
fn what_is_left_out_has_its_documented_value() {
    let expected = Turn {
        thinking: Text::default(),
        text: Text::from("hi"),
        tools: vec![],
        usage: None,
        finish: Finish::Stop,
        delay: Duration::ZERO,
        chunk_delay: Duration::ZERO,
        chunk_chars: 64,
        fault: None,
    };
    assert_eq!(only_turn(r#"{"text": "hi"}"#), expected);
    let calling = only_turn(r#"{"tools": [{"name": "read", "arguments": {"path": "a", "limit": 2}}]}"#);
    assert_eq!(calling.finish, Finish::ToolCalls);
    assert_eq!(calling.tools[0].arguments.unfold(), r#"{"path":"a","limit":2}"#);
}

#[test]
fn a_fault_is_given_once_unless_said_otherwise_and_always_where_nothing_else_is_said() {
    for (turn, times) in [
        (r#"{"text": "", "fault": {"http": 503}}"#, Some(1)),
        (r#"{"text": "", "fault": {"http": 503}, "fault_times": 3}"#, Some(3)),
        (r#"{"fault": {"http": 401}}"#, None),
    ] {
        assert_eq!(only_turn(turn).fault.unwrap().times, times, "{turn}");
    }
}

#[test]
fn json_in_a_text_is_written_out() {
    assert_eq!(
        only_turn(r#"{"text": {"json": {"b": [1, "é"], "a": null}}}"#).text.unfold(),
        r#"{"b":[1,"é"],"a":null}"#
    );
}

#[test]
fn the_step_comes_before_the_role_and_the_last_round_stands_for_all_later_ones() {
    let text = r#"{"rehearsal": 1, "roles": {
        "reviewer": {"rounds": [{"turns": [{"text": "role"}]}]},
        "final": {"rounds": [{"turns": [{"text": "one"}, {"text": "more"}]}, {"turns": [{"text": "two"}]}]}}}"#;
    let script = Script::parse("s.json", text).unwrap();
    let says = |step, round, turn| script.turn(step, "reviewer", round, turn).map(|turn| turn.text.unfold());
    for (step, round, turn, expected) in [
        ("final", 1, 0, Ok("one")),
        ("final", 1, 1, Ok("more")),
        ("final", 2, 0, Ok("two")),
        ("final", 9, 0, Ok("two")),
        ("early", 1, 0, Ok("role")),
        ("early", 3, 0, Ok("role")),
        ("final", 1, 2, Err("rehearsal: role final round 1 has only 2 turns")),
        ("early", 3, 1, Err("rehearsal: role reviewer round 3 has only 1 turns")),
    ] {
        let found = says(step, round, turn).map_err(|cause| cause.to_string());
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{step} {round} {turn}");
    }
    let none = script.turn("scan", "scanner", 1, 0).unwrap_err();
    assert_eq!(none.to_string(), "rehearsal: the script has no entry for step scan or role scanner");
    assert_eq!(script.uncovered([("final", "x"), ("a", "reviewer"), ("scan", "scanner")]), ["scan"]);
}

proptest! {
    #[test]
    fn pieces_put_together_are_the_text_and_each_but_the_last_is_full(
        unit in "[aé漢🦀\n]{0,12}", count in 0..9u32, chars in 1..7usize,
    ) {
        let text = Text::repeated(unit.as_str(), count);
        let pieces: Vec<String> = text.pieces(chars).collect();
        prop_assert_eq!(pieces.concat(), unit.repeat(count as usize));
        prop_assert_eq!(text.bytes(), text.unfold().len() as u64);
        for (at, piece) in pieces.iter().enumerate() {
            let size = piece.chars().count();
            let full = if at + 1 < pieces.len() { chars..=chars } else { 1..=chars };
            prop_assert!(full.contains(&size));
        }
    }

    #[test]
    fn no_text_makes_the_decoder_panic(text in ".{0,80}", at in 0..MINIMAL.len(), with in "[\\PC\"{}\\[\\],:0-9]") {
        let _ = Script::parse("s.json", &text);
        let mut damaged = MINIMAL.to_owned();
        damaged.replace_range(at..=at, &with);
        let _ = Script::parse("s.json", &damaged);
    }
}
