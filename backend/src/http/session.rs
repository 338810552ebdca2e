//! `/api/v1/session`: the current session, sign-in and sign-out, the first admin.

use super::admit::Asker;
use super::body::Json;
use super::hub::Hub;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, header};
use shared::people::Reset;
use shared::session::{Again, Session, Setup, SignIn, SignedIn};
use shared::team::TakeInvite;
use std::sync::Arc;
use team::accounts::{Begun, InviteTaken, Principal, Who};

/// Description of the current session for a page.
pub(super) async fn describe_session(hub: &Hub, who: Option<&Principal>) -> Result<Session, Refusal> {
    let password = hub.password.then_some("password");
    let mut session = Session {
        ways: password.into_iter().chain(hub.providers.names()).map(String::from).collect(),
        titles: hub.providers.titles().map(|(name, title)| (name.to_string(), title.to_string())).collect(),
        setup: !hub.accounts.is_set_up(),
        plain_http: hub.unencrypted,
        ..Session::default()
    };
    if let Some(principal) = who
        && let Who::Share { id, .. } = &principal.who
    {
        let shared = hub.accounts.shared(id).await?;
        // A share link has no account, and needs no setup of a hub that has none yet.
        (session.share, session.shared, session.setup) = (Some(id.clone()), Some(shared), false);
    }
    if let Some(principal) = who
        && let Who::Account { id, name } = &principal.who
    {
        session.account = Some(SignedIn { id: id.clone(), name: name.clone(), hub_admin: principal.hub_admin });
        session.teams = hub.accounts.teams(principal).await?;
    }
    Ok(session)
}

pub(super) async fn get(State(app): State<Arc<App>>, asker: Asker) -> Result<Response<Body>, Refusal> {
    Ok(json(StatusCode::OK, &describe_session(app.hub()?, asker.who.as_ref()).await?))
}

pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<SignIn>,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    if !hub.password {
        return Err(no_passwords());
    }
    let old = asker.token.as_ref().map(|token| token.reveal());
    begun(hub, &asker, hub.accounts.sign_in(&body, &asker.network, old).await?).await
}

pub(super) async fn setup(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<Setup>,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    begun(hub, &asker, hub.accounts.setup(&body, &asker.network).await?).await
}

/// Sets a new password by a code from an admin.
pub(super) async fn reset(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<Reset>,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    begun(hub, &asker, hub.accounts.reset_password(&body, &asker.network).await?).await
}

/// Joins a team by the code of an invitation.
pub(super) async fn invite(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<TakeInvite>,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    // A user signed in by a proxy gets the new account bound to that identity, so later sign-ins need no password.
    if !hub.password && body.password.is_some() && asker.vouched.is_none() {
        return Err(no_passwords());
    }
    match hub.accounts.take_invite(asker.who.as_ref(), &body, &asker.network).await? {
        InviteTaken::Begun(new) => begun(hub, &asker, *new).await,
        InviteTaken::Joined => {
            // The rights have grown, so the session is read again.
            let token = asker.token.as_ref().map(|token| token.reveal()).unwrap_or_default();
            let who = hub.accounts.session(token, &asker.network).await?;
            Ok(json(StatusCode::OK, &describe_session(hub, who.as_ref()).await?))
        }
    }
}

fn no_passwords() -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, "passwords are disabled on this hub; sign in with one of its providers")
}

/// The response for a new session, with its cookie.
async fn begun(hub: &Hub, asker: &Asker, begun: Begun) -> Result<Response<Body>, Refusal> {
    // A user who proves the ownership of an account here gets it bound to the proxy's identity.
    if let (Some(vouched), None) = (&asker.vouched, &asker.who) {
        hub.accounts.bind(&begun.principal, vouched).await?;
    }
    // It is only for the list of sessions, so its failure does not fail the sign-in.
    let _ = hub.accounts.note_agent(&begun.principal, &asker.agent).await;
    let mut response = json(StatusCode::OK, &describe_session(hub, Some(&begun.principal)).await?);
    response.headers_mut().insert(header::SET_COOKIE, hub.cookie.set(&begun.token));
    Ok(response)
}

pub(super) async fn again(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<Again>,
) -> Result<Response<Body>, Refusal> {
    let (hub, principal) = (app.hub()?, asker.principal()?);
    hub.accounts.again(principal, &body).await?;
    Ok(json(StatusCode::OK, &describe_session(hub, Some(principal)).await?))
}

/// Also succeeds for a user who is already signed out.
pub(super) async fn sign_out(State(app): State<Arc<App>>, asker: Asker) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    if let Some(principal) = &asker.who {
        hub.accounts.sign_out(principal).await?;
    }
    if let (Some(_), Some(proxy)) = (&asker.vouched, &hub.proxy) {
        let place = proxy.sign_out.as_deref().unwrap_or("the proxy");
        let sentence = format!("the proxy in front of this hub signs you in; sign out there: {place}");
        return Err(Refusal::new(StatusCode::CONFLICT, sentence));
    }
    let mut response = json(StatusCode::OK, &describe_session(hub, None).await?);
    let cookie = match asker.who.as_ref().map(|principal| &principal.who) {
        Some(Who::Share { id, .. }) => hub.cookie.clear_share(id),
        _ => hub.cookie.clear(),
    };
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
