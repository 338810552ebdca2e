//! The handler of each operation of [`api`]. The router is built from that table and from nothing else, so that an
//! operation without a right does not exist. It is the same table in a server without accounts, where the caller's uid
//! is the one principal.

use super::admin;
use super::admit::admit;
use super::api::{
    self, calls, changed, figure, findings, logs, markers, metrics, now, parameters, query, record, report, reports,
    runs, series, uplink, values,
};
use super::{
    App, about, agents, alerts, dismiss, error, log, me, names, notes, page, provider, run_edits, session, stream,
    usage, views,
};
use ::api::{Method, Operation};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An arm for each operation: its handler.
macro_rules! handlers {
    ($($operation:ident => $handler:expr;)*) => {
        fn handler(operation: Operation, method: MethodFilter) -> MethodRouter<Arc<App>> {
            match operation {
                $(Operation::$operation => on(method, $handler),)*
            }
        }
    };
}

handlers! {
    GetPage => page::serve;
    GetHealth => about::health;
    GetUnknown => api::unknown;
    GetOpenApi => about::openapi;
    GetMetrics => metrics::get;
    ListMetrics => api::catalog;
    ListSources => api::sources;
    GetFleet => api::fleet::get;
    ListSeries => series::get;
    QuerySamples => query::query;
    DrawFigure => figure::get;
    ExportSamples => query::export;
    RecordSamples => record::get;
    GetNow => now::get;
    ListChanges => changed::get;
    ListProcesses => api::processes;
    ListChecks => api::doctor;
    ListUplinks => uplink::get;
    FollowLive => stream::get;
    SendToLive => stream::post_messages;
    ListRuns => runs::get;
    AddRun => reports::begin;
    GetRun => runs::one;
    ChangeRun => run_edits::change;
    RemoveRun => run_edits::remove;
    AddRunEvent => reports::event;
    GetRunReport => report::get;
    ListRunLogs => logs::get;
    ListKernels => markers::kernels;
    ListCells => markers::cells;
    ListMarkers => markers::get;
    AddMarkers => markers::post;
    LogValues => values::post;
    ListNotes => notes::list;
    AddNote => notes::add;
    ChangeNote => notes::change;
    RemoveNote => notes::remove;
    ListFindings => findings::get;
    DismissFinding => dismiss::post;
    ListAlerts => alerts::alerts;
    RaiseAlert => calls::post;
    GetAlert => alerts::alert;
    AcknowledgeAlert => alerts::ack;
    ListRules => alerts::rules;
    AddRule => alerts::add_rule;
    CheckRule => alerts::check;
    ChangeRule => alerts::change_rule;
    RemoveRule => alerts::remove_rule;
    ListSilences => alerts::silences;
    AddSilence => alerts::add_silence;
    EndSilence => alerts::end_silence;
    ListChannels => alerts::channels;
    AddChannel => alerts::add_channel;
    ChangeChannel => alerts::change_channel;
    RemoveChannel => alerts::remove_channel;
    TestChannel => alerts::test_channel;
    ListViews => views::list;
    AddView => views::create;
    ChangeView => views::change;
    RemoveView => views::remove;
    SetDefaultView => views::set_default;
    ListShares => views::shares;
    AddShare => views::share;
    EndShare => views::end_share;
    OpenShare => views::open;
    GetSession => session::get;
    SignIn => session::sign_in;
    SignOut => session::sign_out;
    SetUp => session::setup;
    TakeInvite => session::invite;
    ResetPassword => session::reset;
    BeginProviderSignIn => provider::begin;
    EndProviderSignIn => provider::back;
    ConfirmPassword => session::again;
    GetMe => me::get;
    ChangeMe => me::change;
    EraseMe => me::remove;
    SetMyPassword => me::password;
    ListMySessions => me::sessions;
    EndMySession => me::end_session;
    ListMyIdentities => me::identities;
    RemoveMyIdentity => me::end_identity;
    ExportMe => me::export;
    ListMyKeys => me::keys;
    AddMyKey => me::add_key;
    EndMyKey => me::end_key;
    ListTeams => admin::teams::list;
    AddTeam => admin::teams::create;
    GetTeam => admin::teams::get;
    ChangeTeam => admin::teams::change;
    RemoveTeam => admin::teams::remove;
    SetMember => admin::teams::set_member;
    RemoveMember => admin::teams::remove_member;
    ListInvites => admin::teams::invites;
    AddInvite => admin::teams::invite;
    EndInvite => admin::teams::end_invite;
    ListServices => admin::services::list;
    AddService => admin::services::create;
    ChangeService => admin::services::change;
    RemoveService => admin::services::remove;
    ListServiceKeys => admin::services::keys;
    AddServiceKey => admin::services::add_key;
    EndServiceKey => admin::services::end_key;
    ListTeamKeys => admin::keys::list;
    AddTeamKey => admin::keys::create;
    EndTeamKey => admin::keys::end;
    ListJoinKeys => admin::join::list;
    AddJoinKey => admin::join::create;
    EndJoinKey => admin::join::end;
    ListAgents => admin::agents::list;
    ChangeAgent => admin::agents::change;
    RevokeAgent => admin::agents::revoke;
    ApproveAgent => admin::agents::approve;
    ListGrants => admin::teams::grants;
    SetGrants => admin::teams::grant;
    RemoveSource => admin::agents::remove;
    EnrollAgent => agents::enrol;
    LinkAgent => agents::link;
    GetHub => about::get;
    ListAccounts => admin::people::list;
    AddAccount => admin::people::create;
    ChangeAccount => admin::people::change;
    RemoveAccount => admin::people::remove;
    ResetAccount => admin::people::reset;
    EraseAccount => admin::people::erase;
    ListAccountKeys => admin::people::keys;
    AddAccountKey => admin::people::add_key;
    EndAccountKey => admin::people::end_key;
    ListAudit => log::audit;
    GetUsage => usage::get;
    GetGpuTime => usage::gpu_time;
}

/// The handler of an operation with its parameter checks, and without the names that its caller may not see; without
/// authentication.
fn answers(app: &Arc<App>, operation: Operation) -> MethodRouter<Arc<App>> {
    let method = match operation.method() {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    };
    let nameless = from_fn_with_state((app.clone(), operation), names::hidden);
    handler(operation, method).layer(nameless).layer(from_fn_with_state(operation, parameters))
}

/// All operations, each behind authentication.
pub(super) fn router(app: &Arc<App>) -> Router<Arc<App>> {
    let mut paths: BTreeMap<&str, (MethodRouter<Arc<App>>, Vec<Method>)> = BTreeMap::new();
    for operation in Operation::ALL {
        let answers = answers(app, *operation).layer(from_fn_with_state((app.clone(), *operation), admit));
        let (router, methods) = paths.entry(operation.path()).or_default();
        *router = std::mem::take(router).merge(answers);
        methods.push(operation.method());
    }
    paths.into_iter().fold(Router::new(), |router, (path, (answers, methods))| {
        let answers = answers.fallback(move || std::future::ready(not_allowed(&methods)));
        // The page's files are the fallback of all other rows.
        if path == Operation::GetPage.path() { router.fallback(answers) } else { router.route(path, answers) }
    })
}

/// 405 of a path with these methods. HEAD is answered where GET is.
fn not_allowed(methods: &[Method]) -> Response<Body> {
    let names: Vec<&str> = methods.iter().map(|method| method.text()).collect();
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, format!("use {} here", names.join(" or ")));
    let head = methods.contains(&Method::Get).then_some("HEAD");
    let allow: Vec<&str> = names.into_iter().chain(head).collect();
    if let Ok(allow) = HeaderValue::from_str(&allow.join(", ")) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

#[cfg(test)]
mod tests;
