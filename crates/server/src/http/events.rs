//! Live updates as server-sent events, from any record that is still in the log.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use tenure_api as api;
use tenure_record::event::Record;
use tenure_record::transition::Told;

use crate::admission::response_budget::InFlight;
use crate::app::App;
use crate::json as parse;
use crate::observe::follow::{
    Delivery, End, Portions, Shared, Shown, Subscribed, Updates, Wanted, parse_after, subscribe,
};
use crate::problem::Problem;
use crate::show;

/// A comment is sent so often, so that both sides notice when the other is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// That comment.
const COMMENT: &[u8] = b":\n\n";

#[utoipa::path(get, path = "/v1/events", tag = "events", summary = "Live updates: server-sent events from any record", params(api::EventFilter, ("last-event-id" = Option<String>, Header)), responses((status = 200, description = "One event per transition of a task or a run; its id is LSN.index", body = String, content_type = "text/event-stream"), (status = "default", description = "A refusal", body = api::Problem, content_type = "application/problem+json")))]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    connection: Option<Extension<Arc<InFlight>>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query: api::EventFilter = parse::query(query.as_deref())?;
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = parse_after(&app, query.after.as_deref().or(resumed))?;
    let wanted = Wanted { task: query.task, queue: query.queue, run: query.run };
    let connection = connection.as_ref().map(|Extension(connection)| connection);
    let subscribed = subscribe::<EventText>(&app, after, wanted, connection).await?;
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    Ok((headers, texts(subscribed)).into_response())
}

/// The body: texts of events, and a comment now and then.
fn texts(subscribed: Subscribed<EventText>) -> Body {
    Body::from_stream(futures_util::stream::unfold(subscribed, |mut subscribed| async move {
        let text = match tokio::time::timeout(KEEP_ALIVE, subscribed.next()).await {
            Err(_) => Bytes::from_static(COMMENT),
            Ok(Some(Delivery::Portion(portion))) => match portion.whole(&subscribed.wanted) {
                Some(text) => text.clone(),
                None => {
                    let texts: Vec<&[u8]> =
                        portion.wanted(&subscribed.wanted).map(|text| text.0.as_bytes()).collect();
                    texts.concat().into()
                }
            },
            // A stream that just ends is taken up again by its reader; one that was trimmed cannot
            // be.
            Ok(Some(Delivery::End(End::Trimmed(oldest)))) => {
                format!("event: log_trimmed\ndata: {oldest}\n\n").into()
            }
            Ok(Some(Delivery::End(End::Over(_))) | None) => return None,
        };
        Some((Ok::<_, Infallible>(text), subscribed))
    }))
}

/// An event as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct EventText(Arc<str>);

impl Shown for EventText {
    fn event(record: &Record<'_>, told: &Told<'_>) -> Self {
        let event = show::event::event(record, told);
        let data = serde_json::to_string(&event).expect("an event has texts for keys");
        let mut text = String::with_capacity(data.len() + 48);
        // Writing to a string cannot fail.
        let _ = write!(text, "id: {}\ndata: {data}\n\n", event.id());
        Self(text.into())
    }

    fn bytes(&self) -> usize {
        // Once by itself, and once in the text of its portion.
        2 * self.0.len()
    }

    fn join(events: &[Shared<Self>]) -> Option<Bytes> {
        let texts: Vec<&str> = events.iter().map(|event| &*event.shown.0).collect();
        Some(texts.concat().into())
    }

    fn portions(updates: &Updates) -> &Portions<Self> {
        &updates.texts
    }
}
