//! The server that plays a model. It keeps nothing between requests: what it answers follows from the URL, the
//! messages in the request and the faults counted on disk.

#[cfg(test)]
mod tests;

use std::future;
use std::io;
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{self, Body, Bytes, HttpBody};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use futures_lite::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::answer::{Frame, Frames, Head, whole};
use super::error::ServeError;
use super::faults::FaultLedger;
use super::request::Request;
use super::script::{FaultKind, Script, Turn};
use crate::ids::{JobId, StepId};

const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Plays a model from a script.
#[derive(Debug)]
pub struct Rehearsal;

impl Rehearsal {
    /// Listens on a free port of 127.0.0.1 and answers from the script until the returned handle is dropped.
    pub async fn serve(script: Arc<Script>, faults: Arc<dyn FaultLedger>) -> Result<Serving, ServeError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ServeError::Listen)?;
        let base = format!("http://{}", listener.local_addr().map_err(ServeError::Listen)?);
        // Deltas are small: held back for fuller packets, each would wait for the acknowledgement of the one before.
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        let stop = CancellationToken::new();
        let stage = Stage { script, faults, stop: stop.clone() };
        let routes = Router::new()
            .route("/{job}/{step}/{role}/{round}/v1/chat/completions", post(complete))
            .route("/{job}/{step}/{role}/{round}/v1/models", get(models))
            .fallback(|| async { error(StatusCode::NOT_FOUND, "rehearsal: no such route") })
            .method_not_allowed_fallback(|| async { error(StatusCode::METHOD_NOT_ALLOWED, "rehearsal: wrong method") })
            .with_state(stage);
        let until = stop.clone().cancelled_owned();
        tokio::spawn(async move { axum::serve(listener, routes).with_graceful_shutdown(until).await });
        Ok(Serving { base, stop })
    }
}

/// A running server. Dropping it ends all answers in progress.
#[derive(Debug)]
pub struct Serving {
    base: String,
    stop: CancellationToken,
}

impl Serving {
    /// Returns the base URL of one job's model, up to and with `/v1`. `round` is from 1.
    pub fn base_url(&self, job: &JobId, step: &StepId, role: &str, round: u32) -> String {
        let [job, step, role] = [job.as_str(), step.as_str(), role].map(percent_encoded);
        format!("{}/{job}/{step}/{role}/{}/v1", self.base, round.max(1))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Encodes what has a meaning in a path, and everything that is not ASCII.
fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[derive(Clone)]
struct Stage {
    script: Arc<Script>,
    faults: Arc<dyn FaultLedger>,
    stop: CancellationToken,
}

/// Who asks: all from the URL.
#[derive(Debug, Deserialize)]
struct Caller {
    job: String,
    step: String,
    role: String,
    round: NonZeroU32,
}

async fn models(caller: Result<Path<Caller>, PathRejection>) -> Response {
    match caller {
        Ok(Path(Caller { role, .. })) => {
            Json(json!({"object": "list", "data": [{"id": role, "object": "model"}]})).into_response()
        }
        Err(rejection) => error(StatusCode::BAD_REQUEST, &rejection.body_text()),
    }
}

async fn complete(State(stage): State<Stage>, caller: Result<Path<Caller>, PathRejection>, body: Body) -> Response {
    let caller = match caller {
        Ok(Path(caller)) => caller,
        Err(rejection) => return error(StatusCode::BAD_REQUEST, &rejection.body_text()),
    };
    let body = match read(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let request: Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(cause) => return error(StatusCode::BAD_REQUEST, &format!("rehearsal: read the request: {cause}")),
    };
    let request_bytes = body.len();
    drop(body); // an answer may take long, and the request may be large
    let at = request.turn();
    let turn = match stage.script.turn(&caller.step, &caller.role, caller.round.get(), at) {
        Ok(turn) => turn.clone(),
        Err(cause) => return error(StatusCode::BAD_REQUEST, &cause.to_string()),
    };
    tokio::select! {
        () = time::sleep(turn.delay) => {}
        () = stage.stop.cancelled() => return error(StatusCode::SERVICE_UNAVAILABLE, "rehearsal: the server stops"),
    }
    let fault = match due_fault(&stage, &caller, at, &turn).await {
        Ok(fault) => fault,
        Err(cause) => return error(StatusCode::INTERNAL_SERVER_ERROR, &cause),
    };
    let id = format!("{}-{}", caller.job, request.serial());
    perform(stage.stop, fault, &request, Head { id, model: request.model.clone(), request_bytes }, turn)
}

/// Reads a request's body. One that announces too much is refused before it is sent.
async fn read(request: Body) -> Result<Bytes, Response> {
    if request.size_hint().lower() > MAX_BODY_BYTES as u64 {
        let limit = format!("rehearsal: the request is over {MAX_BODY_BYTES} bytes");
        return Err(error(StatusCode::PAYLOAD_TOO_LARGE, &limit));
    }
    let unread = |cause| error(StatusCode::BAD_REQUEST, &format!("rehearsal: read the request: {cause}"));
    body::to_bytes(request, MAX_BODY_BYTES).await.map_err(unread)
}

/// Returns the fault that this request meets, once it is counted.
async fn due_fault(stage: &Stage, caller: &Caller, at: usize, turn: &Turn) -> Result<Option<FaultKind>, String> {
    let Some(fault) = turn.fault.clone() else { return Ok(None) };
    let Some(times) = fault.times else { return Ok(Some(fault.kind)) };
    let (faults, job) = (Arc::clone(&stage.faults), JobId::new(caller.job.as_str()));
    let counted = task::spawn_blocking(move || faults.take(&job, at, times)).await;
    let due = counted.map_err(|cause| format!("count faults of the rehearsal: {cause}"))?;
    let due = due.map_err(|cause| match std::error::Error::source(&cause) {
        Some(source) => format!("{cause}: {source}"),
        None => cause.to_string(),
    })?;
    Ok(due.then_some(fault.kind))
}

fn perform(stop: CancellationToken, fault: Option<FaultKind>, request: &Request, head: Head, turn: Turn) -> Response {
    let cut = match fault {
        Some(FaultKind::Http { status, message }) => {
            return error(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &message);
        }
        Some(FaultKind::DropAfter(deltas)) => Some((deltas, Cut::Drop)),
        Some(FaultKind::HangAfter(deltas)) => Some((deltas, Cut::Hang)),
        None => None,
    };
    if request.stream || cut.is_some() {
        let pause = turn.chunk_delay;
        let reel = Reel { frames: Frames::of(head, turn), pause, cut, deltas: 0, stop };
        let body = Body::from_stream(stream::unfold(reel, Reel::next));
        ([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")], body).into_response()
    } else {
        Json(whole(&head, &turn)).into_response()
    }
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    Drop,
    Hang,
}

/// A streamed answer on its way. Each frame is made when the connection has room for it.
struct Reel {
    frames: Frames,
    pause: Duration,
    /// Goes wrong after so many deltas, at the latest before the answer is finished.
    cut: Option<(u64, Cut)>,
    /// Deltas made so far.
    deltas: u64,
    stop: CancellationToken,
}

impl Reel {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        let stop = self.stop.clone();
        let item = tokio::select! {
            // Stopping comes first: an answer without pauses would else go on to its end.
            biased;
            () = stop.cancelled() => Some(Err(io::Error::other("the server stops"))),
            item = self.advance() => item,
        };
        item.map(|item| (item, self))
    }

    async fn advance(&mut self) -> Option<io::Result<Bytes>> {
        let frame = self.frames.next()?;
        if self.deltas > 0 && !self.pause.is_zero() {
            time::sleep(self.pause).await;
        }
        let (text, finishing) = match frame {
            Frame::Opening(text) => (text, false),
            Frame::Delta(text) => {
                self.deltas += 1;
                (text, false)
            }
            Frame::Closing(text) => (text, true),
        };
        match self.cut {
            Some((after, cut)) if finishing || self.deltas > after => match cut {
                Cut::Hang => future::pending().await,
                Cut::Drop => {
                    // An error makes hyper forget what it has not sent yet; a pause lets it send that first.
                    task::yield_now().await;
                    Some(Err(io::Error::other("the script drops the connection here")))
                }
            },
            Some(_) | None => Some(Ok(Bytes::from(text))),
        }
    }
}

/// Returns an error as OpenAI's servers word it.
fn error(status: StatusCode, message: &str) -> Response {
    let body = json!({"error": {"message": message, "type": "rehearsal_error", "code": status.as_u16()}});
    (status, Json(body)).into_response()
}
