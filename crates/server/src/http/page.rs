//! A plain page: how things stand, the queues, the latest tasks.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use tenure_coordinator::request::{GetStatus, ListQueues, ListTasks};
use tenure_coordinator::{NameRange, TaskFilter};
use tenure_record::state::TaskState;

use crate::app::App;
use crate::problem::Problem;
use crate::show::time;

const LATEST: usize = 50;
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;\
    padding:0 1rem;color:#1d2430;background:#fff}table{border-collapse:collapse;width:100%;\
    margin:.5rem 0 2rem}th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid \
    #dde2ea}th{font-weight:600}code{background:#f2f4f7;padding:.1rem .3rem;border-radius:.2rem}\
    @media(prefers-color-scheme:dark){body{color:#e6e9ef;background:#14181f}th,td{border-color:\
    #333b47}code{background:#222933}}";

pub(super) async fn page(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let status = app.ask(GetStatus).await?;
    let range = NameRange { after: None, limit: LATEST };
    let queues = app.ask(ListQueues(range)).await?;
    let latest = TaskFilter { limit: LATEST, ..TaskFilter::default() };
    let tasks = app.ask(ListTasks(latest)).await?;
    let mut html = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(
        html,
        "<!doctype html><html lang=en><meta charset=utf-8><title>Tenure</title>\
         <meta name=viewport content='width=device-width'><meta http-equiv=refresh content=5>\
         <style>{STYLE}</style><h1>Tenure</h1><p>Version {version}, record {} of the log, {} \
         lease requests waiting. The page looks again every five seconds.</p><p>",
        status.released, status.parked_leases
    );
    for state in TaskState::ALL {
        let _ = write!(html, "<b>{}</b> {state} &nbsp; ", status.tasks.of(state));
    }
    html.push_str(
        "</p><h2>Queues</h2><table><tr><th>queue<th>waiting<th>leased<th>oldest waiting<th></tr>",
    );
    for queue in &queues.items {
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            escape(&queue.name),
            queue.counts.of(TaskState::Waiting),
            queue.counts.of(TaskState::Leased),
            queue.oldest_waiting_at.map(|at| time(at).to_string()).unwrap_or_default(),
            if queue.eligibility.is_open() { "" } else { "paused" },
        );
    }
    html.push_str(
        "</table><h2>Latest tasks</h2><table><tr><th>id<th>queue<th>state<th>attempt<th>worker\
         <th>submitted</tr>",
    );
    for task in &tasks.tasks {
        let worker = task.lease.as_ref().map(|lease| escape(&lease.worker)).unwrap_or_default();
        let _ = write!(
            html,
            "<tr><td><a href='/v1/tasks/{0}'>{0}</a><td>{1}<td>{2}<td>{3}<td>{4}<td>{5}</tr>",
            task.id,
            escape(&task.queue),
            task.state,
            task.attempt,
            worker,
            time(task.created_at),
        );
    }
    html.push_str("</table></html>");
    // Nothing on it runs, whatever a name says.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                  form-action 'none'; frame-ancestors 'none'";
    Ok(([(header::CONTENT_SECURITY_POLICY, policy)], Html(html)).into_response())
}

/// Names are data, never markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
