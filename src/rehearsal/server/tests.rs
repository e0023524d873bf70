use std::path::Path as FsPath;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::rehearsal::FileLedger;

/// A served script with a job's directory for its faults.
struct Server {
    serving: Serving,
    jobs: tempfile::TempDir,
}

impl Server {
    async fn start(roles: Value) -> Self {
        let jobs = tempfile::tempdir().unwrap();
        std::fs::create_dir(jobs.path().join("job1")).unwrap();
        let serving = serve(&roles, jobs.path()).await;
        Self { serving, jobs }
    }

    /// With one role `x` that has one round of these turns.
    async fn with_turns(turns: Value) -> Self {
        Self::start(json!({"x": {"rounds": [{"turns": turns}]}})).await
    }

    fn url(&self) -> String {
        self.serving.base_url(&JobId::from("job1"), &StepId::from("x"), "x", 1)
    }

    async fn ask(&self, messages: Value) -> Reply {
        ask(&self.url(), &json!({"model": "x", "stream": true, "messages": messages})).await
    }
}

async fn serve(roles: &Value, jobs: &FsPath) -> Serving {
    let script = json!({"rehearsal": 1, "roles": roles}).to_string();
    let script = Arc::new(Script::parse("test", &script).unwrap());
    Rehearsal::serve(script, Arc::new(FileLedger::new(jobs))).await.unwrap()
}

/// All that came back on one connection.
#[derive(Debug)]
struct Reply {
    status: u16,
    body: String,
    /// Whether the answer came to its regular end.
    complete: bool,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    fn chunks(&self) -> Vec<Value> {
        let data = self.body.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    fn deltas(&self) -> Vec<Value> {
        self.chunks()
            .iter()
            .map(|chunk| chunk["choices"][0]["delta"].clone())
            .filter(|delta| !delta.is_null())
            .collect()
    }

    fn joined(&self, field: &str) -> String {
        self.deltas().iter().filter_map(|delta| delta[field].as_str().map(str::to_owned)).collect()
    }

    /// Puts tool calls together again: (id, name, arguments) by index.
    fn calls(&self) -> Vec<(String, String, String)> {
        let mut calls: Vec<(String, String, String)> = Vec::new();
        for part in self.deltas().iter().filter_map(|delta| delta["tool_calls"].as_array()).flatten() {
            let at = part["index"].as_u64().unwrap() as usize;
            if let (Some(id), Some(name)) = (part["id"].as_str(), part["function"]["name"].as_str()) {
                assert_eq!(at, calls.len(), "calls are opened in order");
                calls.push((id.to_owned(), name.to_owned(), String::new()));
            }
            calls[at].2.push_str(part["function"]["arguments"].as_str().unwrap());
        }
        calls
    }
}

fn split_url(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}

async fn send(url: &str, head: &str, body: &str) -> TcpStream {
    let (host, path) = split_url(url);
    let mut connection = TcpStream::connect(host).await.unwrap();
    let head = head.replace("PATH", path);
    let request = format!(
        "{head}\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    connection
}

async fn receive(mut connection: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let broken = connection.read_to_end(&mut bytes).await.is_err();
    let text = String::from_utf8(bytes).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let (body, complete) =
        if head.contains("transfer-encoding: chunked") { dechunked(rest) } else { (rest.into(), true) };
    Reply { status, body, complete: complete && !broken }
}

/// Undoes chunked transfer; the flag says whether its last chunk came.
fn dechunked(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    (body, false)
}

async fn ask(url: &str, request: &Value) -> Reply {
    receive(send(url, "POST PATH/chat/completions HTTP/1.1", &request.to_string()).await).await
}

fn envelope() -> Value {
    json!({"role": "user", "content": "<chain-context version=\"1\">\n</chain-context>"})
}

fn answer() -> Value {
    json!({"role": "assistant", "content": "x"})
}

#[tokio::test]
async fn the_messages_of_the_request_choose_the_turn() {
    let server = Server::with_turns(json!([{"text": "first"}, {"text": "second"}])).await;
    for (messages, expected) in [
        (json!([envelope()]), "first"),
        (json!([envelope(), answer()]), "second"),
        (json!([envelope()]), "first"),
        (json!([envelope(), answer(), answer(), envelope()]), "first"),
    ] {
        let reply = server.ask(messages).await;
        assert_eq!((reply.status, reply.complete, reply.joined("content").as_str()), (200, true, expected));
    }
    let beyond = server.ask(json!([envelope(), answer(), answer()])).await;
    assert_eq!((beyond.status, beyond.message().as_str()), (400, "rehearsal: role x round 1 has only 2 turns"));
}

#[tokio::test]
async fn the_url_chooses_step_role_and_round() {
    let says = |text: &str| json!({"turns": [{"text": text}]});
    let server = Server::start(json!({"odd / näme": {"rounds": [says("step")]},
                                      "role": {"rounds": [says("one"), says("two")]}}))
    .await;
    for (step, role, round, expected) in [
        ("odd / näme", "role", 1, "step"),
        ("other", "role", 1, "one"),
        ("other", "role", 2, "two"),
        ("other", "role", 7, "two"),
    ] {
        let url = server.serving.base_url(&JobId::from("job1"), &StepId::from(step), role, round);
        let reply = ask(&url, &json!({"stream": true, "messages": [envelope()]})).await;
        assert_eq!(reply.joined("content"), expected, "{url}");
    }
}

#[tokio::test]
async fn a_stream_has_thinking_text_calls_finish_usage_and_done_in_this_order() {
    let server = Server::with_turns(json!([{"thinking": "hm", "text": "well",
        "tools": [{"name": "bash", "arguments": {"command": "ls"}}, {"name": "read", "arguments": {"path": "a"}}],
        "usage": {"input": 100, "output": 20, "cached": 30, "reasoning": 5}}]))
    .await;
    let reply = server.ask(json!([envelope()])).await;
    insta::assert_snapshot!(reply.body, @r#"
    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{"content":"well"},"finish_reason":null}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"job1-0-0","type":"function","function":{"name":"bash","arguments":""}}]},"finish_reason":null}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\":\"ls\"}"}}]},"finish_reason":null}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"job1-0-1","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"path\":\"a\"}"}}]},"finish_reason":null}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

    data: {"id":"job1-0","object":"chat.completion.chunk","created":0,"model":"x","choices":[],"usage":{"prompt_tokens":130,"completion_tokens":20,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":30},"completion_tokens_details":{"reasoning_tokens":5}}}

    data: [DONE]
    "#);
}

#[tokio::test]
async fn a_client_that_wants_no_stream_gets_one_object() {
    let server = Server::with_turns(json!([{"thinking": "hm", "text": "well",
        "tools": [{"name": "bash", "arguments": {"command": "ls"}}],
        "usage": {"input": 1, "output": 2}}]))
    .await;
    let reply = ask(&server.url(), &json!({"model": "x", "messages": [envelope()]})).await;
    insta::assert_snapshot!(reply.body, @r#"{"id":"job1-0","object":"chat.completion","created":0,"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":"well","reasoning_content":"hm","tool_calls":[{"id":"job1-0-0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}"#);
}

#[tokio::test]
async fn a_used_up_fault_stays_used_up_across_a_restart_of_the_server() {
    let roles = json!({"x": {"rounds": [{"turns": [{"text": "fine", "fault": {"http": 503, "message": "busy"}, "fault_times": 2}]}]}});
    let server = Server::start(roles.clone()).await;
    let first = server.ask(json!([envelope()])).await;
    assert_eq!((first.status, first.message().as_str()), (503, "busy"));
    let Server { serving, jobs } = server;
    drop(serving);

    let server = Server { serving: serve(&roles, jobs.path()).await, jobs };
    assert_eq!(server.ask(json!([envelope()])).await.status, 503);
    let third = server.ask(json!([envelope()])).await;
    assert_eq!((third.status, third.joined("content").as_str()), (200, "fine"));
    std::fs::create_dir(server.jobs.path().join("job2")).unwrap();
    let other = server.serving.base_url(&JobId::from("job2"), &StepId::from("x"), "x", 1);
    let other = ask(&other, &json!({"stream": true, "messages": [envelope()]})).await;
    assert_eq!(other.status, 503, "another job meets the fault by itself");
}

#[tokio::test]
async fn a_dropped_connection_has_given_its_deltas_and_no_end() {
    let turn = json!({"text": "abcdef", "chunk_chars": 1, "fault": {"drop_after": 3}});
    let server = Server::with_turns(json!([turn])).await;
    let dropped = server.ask(json!([envelope()])).await;
    assert_eq!((dropped.joined("content").as_str(), dropped.complete), ("abc", false));
    let again = server.ask(json!([envelope()])).await;
    assert_eq!((again.joined("content").as_str(), again.complete), ("abcdef", true));
}

#[tokio::test]
async fn a_drop_past_the_last_delta_comes_before_the_answer_is_finished() {
    let server = Server::with_turns(json!([{"text": "abc", "fault": {"drop_after": 99}}])).await;
    let dropped = server.ask(json!([envelope()])).await;
    assert_eq!((dropped.joined("content").as_str(), dropped.complete), ("abc", false));
    assert!(!dropped.body.contains("\"stop\""), "{}", dropped.body);
}

#[tokio::test]
async fn a_hanging_answer_ends_when_the_server_stops() {
    let server = Server::with_turns(json!([{"text": "abcdef", "chunk_chars": 1, "fault": {"hang_after": 2}}])).await;
    let request = json!({"stream": true, "messages": [envelope()]}).to_string();
    let mut connection = send(&server.url(), "POST PATH/chat/completions HTTP/1.1", &request).await;
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\"b\"") {
        assert_ne!(connection.read_buf(&mut seen).await.unwrap(), 0, "the connection stays open");
    }
    drop(server.serving);
    let _ = connection.read_to_end(&mut seen).await;
    assert!(!String::from_utf8_lossy(&seen).contains("\"c\""));
}

#[tokio::test]
async fn a_stopped_server_frees_its_port() {
    let server = Server::with_turns(json!([{"text": "x"}])).await;
    let url = server.url();
    let (host, _) = split_url(&url);
    drop(server.serving);
    // The server is a task of its own: each try lets it run.
    for _ in 0..1_000 {
        if TcpStream::connect(host).await.is_err() {
            return;
        }
    }
    panic!("{host} is still taken");
}

#[tokio::test]
async fn clients_that_leave_or_talk_nonsense_don_t_disturb_the_next_one() {
    let server = Server::with_turns(json!([{"text": {"repeat": "é ", "count": 3_000_000}}, {"text": "fine"}])).await;
    let url = server.url();
    let big = json!({"stream": true, "messages": [envelope()]}).to_string();
    for _ in 0..3 {
        let mut connection = send(&url, "POST PATH/chat/completions HTTP/1.1", &big).await;
        connection.read_exact(&mut [0; 64]).await.unwrap(); // then leaves in the middle of nine megabytes
    }
    let root = &server.serving.base;
    for (case, head, url, body, status) in [
        ("no JSON", "POST PATH/chat/completions HTTP/1.1", url.as_str(), "{oops", 400),
        ("no messages", "POST PATH/chat/completions HTTP/1.1", &url, "{}", 400),
        (
            "not UTF-8 escapes",
            "POST PATH/chat/completions HTTP/1.1",
            &url,
            r#"{"messages":[{"role":"user","content":"\ud800"}]}"#,
            400,
        ),
        ("wrong route", "POST PATH/nothing HTTP/1.1", &url, "", 404),
        ("wrong method", "GET PATH/chat/completions HTTP/1.1", &url, "", 405),
        ("no such round", "POST PATH/chat/completions HTTP/1.1", &format!("{root}/job1/x/x/0/v1"), "{}", 400),
        (
            "no such entry",
            "POST PATH/chat/completions HTTP/1.1",
            &format!("{root}/job1/y/z/1/v1"),
            r#"{"messages":[]}"#,
            400,
        ),
    ] {
        let reply = receive(send(url, head, body).await).await;
        assert_eq!(reply.status, status, "{case}: {}", reply.body);
        assert!(!reply.message().is_empty(), "{case}");
    }
    let reply = server.ask(json!([envelope(), answer()])).await;
    assert_eq!(reply.joined("content"), "fine");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let server = Server::with_turns(json!([{"text": "x"}])).await;
    let (url, size) = (server.url(), MAX_BODY_BYTES + 1);
    let (host, path) = split_url(&url);
    let mut connection = TcpStream::connect(host).await.unwrap();
    let head = format!(
        "POST {path}/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {size}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(receive(connection).await.status, 413);
}

#[tokio::test]
async fn a_fault_that_can_t_be_counted_is_an_error_and_no_answer() {
    let server = Server::with_turns(json!([{"text": "fine", "fault": {"http": 429}}])).await;
    let url = server.serving.base_url(&JobId::from("no-such-job"), &StepId::from("x"), "x", 1);
    let reply = ask(&url, &json!({"messages": [envelope()]})).await;
    assert_eq!(reply.status, 500);
    assert!(reply.message().starts_with("count faults of the rehearsal: write "), "{}", reply.message());
}

#[tokio::test]
async fn ids_of_calls_are_the_same_for_the_same_request_and_differ_within_a_session() {
    let call = json!({"tools": [{"name": "bash", "arguments": {}}]});
    let server = Server::with_turns(json!([call, call])).await;
    let id = async |messages: Value| server.ask(messages).await.calls()[0].0.clone();
    let first = id(json!([envelope()])).await;
    assert_eq!(first, id(json!([envelope()])).await);
    assert_ne!(first, id(json!([envelope(), answer()])).await);
    assert_ne!(first, id(json!([envelope(), answer(), envelope()])).await, "a second envelope in one session");
}

#[tokio::test]
async fn the_models_route_names_the_role() {
    let server = Server::with_turns(json!([{"text": "x"}])).await;
    let reply = receive(send(&server.url(), "GET PATH/models HTTP/1.1", "").await).await;
    assert_eq!(reply.json()["data"][0]["id"], "x");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn texts_and_arguments_come_back_whole_whatever_the_size_of_a_chunk(
        chars in 1..40usize, text in "[a\"\\\\é漢🦀\n\u{2028}]{0,60}", path in "[a\"\\\\é漢🦀\n]{0,60}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let arguments = json!({"path": path, "content": text});
            let server = Server::with_turns(json!([{"thinking": path, "text": text, "chunk_chars": chars,
                "tools": [{"name": "write", "arguments": arguments}, {"name": "ls", "arguments": {}}]}])).await;
            let reply = server.ask(json!([envelope()])).await;
            prop_assert_eq!(reply.joined("content"), text);
            prop_assert_eq!(reply.joined("reasoning_content"), path);
            let calls = reply.calls();
            prop_assert_eq!(calls.len(), 2);
            prop_assert_eq!(serde_json::from_str::<Value>(&calls[0].2).unwrap(), arguments);
            prop_assert_eq!((calls[0].1.as_str(), calls[1].1.as_str(), calls[1].2.as_str()), ("write", "ls", "{}"));
            Ok(())
        })?;
    }
}
