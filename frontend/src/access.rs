//! The session of the page and the views it permits. On a server without accounts the page sends none of these
//! requests.

use crate::browser::{self, document, window};
use crate::fetch::{self, FetchAnswer, Json};
use crate::state::{LinkState, Page};
use leptos::prelude::*;
use shared::provider::{Away, Refused};
use shared::role::Role;
use shared::session::{Session, TeamRole};
use wasm_bindgen::JsValue;

const SESSION: &str = "api/v1/session";
/// Name of the sign-in by password, which is no provider.
const PASSWORD: &str = "password";

/// The view that is shown in place of the page: sign-in, setup, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// No gate: the page itself.
    Open,
    /// The address has the code of the first admin.
    Setup,
    /// The address has the code of an invitation.
    Invite,
    /// The address has a code that resets a password.
    Reset,
    /// The address has the code of a share link, which is being opened, or was refused.
    Share,
    /// No user is signed in.
    SignIn,
    /// The hub has no account yet, and the address no code.
    NotSetUp,
    /// The session has ended, and the page was emptied.
    SignedOut,
}

/// Request that is sent once the user has entered the password again.
type Waiting = Callback<()>;

/// State of the sign-in; copies share the same signals. Components find it in their context.
#[derive(Clone, Copy)]
pub struct Access {
    page: Page,
    /// Session of the signed-in user; None on a server without accounts, and before it is known.
    pub session: RwSignal<Option<Session>>,
    /// The view that is shown in place of the page.
    pub gate: RwSignal<Gate>,
    /// The code that the address had; empty when it is spent.
    code: StoredValue<String>,
    /// Why a share link does not open; empty without an error.
    pub refused: RwSignal<String>,
    /// Why a sign-in by a provider failed; empty without an error.
    pub problem: RwSignal<String>,
    /// Set while the page requests the password again: the request that follows a correct one.
    pub again: RwSignal<Option<Waiting>>,
    /// Name of the last signed-in user.
    pub last: RwSignal<String>,
    asking: StoredValue<bool>,
}

impl Access {
    /// Reads the address, and follows the link: where a socket is refused without a session, the page requests the
    /// session.
    pub fn start(page: Page) -> Self {
        let (gate, code) = take_code();
        let access = Access {
            page,
            session: RwSignal::new(None),
            gate: RwSignal::new(gate),
            code: StoredValue::new(code),
            refused: RwSignal::default(),
            problem: RwSignal::new(take_problem()),
            again: RwSignal::new(None),
            last: RwSignal::default(),
            asking: StoredValue::new(false),
        };
        Effect::new(move || {
            page.shut.set(access.gate.get() != Gate::Open);
        });
        // A socket may be refused or closed because the session is missing.
        Effect::new(move || {
            page.turned_away.track();
            if page.turned_away.get() > 0 {
                access.request_session();
            }
        });
        // The greeting of a hub has a flag for accounts.
        Effect::new(move || {
            if page.accounts.get() && access.session.with_untracked(Option::is_none) {
                access.request_session();
            }
        });
        Effect::new(move || access.mark());
        // A link with a code that is followed on an open page changes nothing but the end of the address.
        let followed = window_event_listener(leptos::ev::hashchange, |_| {
            if code_in(&window().location().hash().unwrap_or_default()).is_some() {
                // The user can reload the page where the browser refuses this call.
                let _ = window().location().reload();
            }
        });
        on_cleanup(move || followed.remove());
        match gate {
            Gate::Share => access.open_share(),
            // A signed-in user accepts the invitation by its code alone.
            Gate::Invite => access.request_session(),
            // The team pages need the session first.
            Gate::Open if page.view.with_untracked(|v| v.place.is_some_and(|place| !place.draws())) => {
                access.request_session()
            }
            _ => {}
        }
        access
    }

    /// Exchanges the code of a share link for its view.
    fn open_share(self) {
        let body = Json::object([("code", self.code.get_value().into())]);
        fetch::ask("POST", "api/v1/shares/open", Some(body), move |answer| match answer.read::<Session>() {
            Ok(session) => {
                let id = session.share.unwrap_or_default();
                let query = session.shared.map(|shared| shared.query).unwrap_or_default();
                let end = if query.is_empty() { format!("?share={id}") } else { format!("?{query}&share={id}") };
                // The page reloads with the view of the link. The user can follow the address where the browser
                // refuses.
                let _ = window().location().replace(&end);
            }
            Err(why) => self.refused.set(why),
        });
    }

    /// Requests the session.
    pub fn request_session(self) {
        let busy = matches!(self.gate.get_untracked(), Gate::Setup | Gate::Reset | Gate::Share);
        if busy || std::mem::replace(&mut *self.asking.write_value(), true) {
            return;
        }
        // The session of a signed-in user does not name the share link, so the request does.
        let link = self.page.view.with_untracked(|v| v.share.as_ref().map(|id| format!("{SESSION}?share={id}")));
        fetch::ask("GET", link.as_deref().unwrap_or(SESSION), None, move |answer| {
            self.asking.set_value(false);
            match answer.read::<Session>() {
                Ok(session) => self.take(session),
                Err(why) if answer.is_ok() => self.problem.set(why),
                // 404 is a server without accounts; 0 one that is away.
                Err(_) => {}
            }
        });
    }

    /// Stores a response about the session.
    fn take(self, session: Session) {
        let was = self.session.with_untracked(|s| s.as_ref().is_some_and(|s| s.account.is_some()));
        if let Some(account) = &session.account {
            self.last.set(account.name.clone());
        }
        let invited = self.gate.get_untracked() == Gate::Invite && self.code.with_value(|code| !code.is_empty());
        let gate = match (&session.account, session.setup) {
            _ if invited => Gate::Invite,
            _ if session.shared.is_some() => Gate::Open,
            (Some(_), _) => Gate::Open,
            (None, true) => Gate::NotSetUp,
            (None, false) if was || self.gate.get_untracked() == Gate::SignedOut => Gate::SignedOut,
            (None, false) => Gate::SignIn,
        };
        self.session.set(Some(session));
        if gate == Gate::SignedOut {
            self.page.forget();
        }
        self.gate.set(gate);
    }

    /// Sends a sign-in form. `failed` is called with a sentence when the server refuses it.
    fn send(self, path: &str, fields: Vec<(&'static str, JsValue)>, failed: Callback<String>) {
        fetch::ask("POST", path, Some(Json::object(fields)), move |answer| match answer.read::<Session>() {
            Ok(session) => {
                self.take(session);
                self.page.state.set(LinkState::Connecting);
            }
            Err(why) => failed.run(why),
        });
    }

    /// Signs in.
    pub fn sign_in(self, name: &str, password: &str, failed: Callback<String>) {
        self.send(SESSION, vec![("name", name.into()), ("password", password.into())], failed);
    }

    /// Starts the sign-in at a provider, which returns to this page. An invitation in the address is passed on.
    /// `failed` is called with a sentence when the provider is unreachable.
    pub fn go(self, provider: String, purpose: &'static str, failed: Callback<String>) {
        let location = window().location();
        let next = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default();
        let invited = self.gate.get_untracked() == Gate::Invite;
        let code = self.code.get_value();
        let mut fields: Vec<(&'static str, JsValue)> =
            vec![("provider", provider.into()), ("next", next.into()), ("purpose", purpose.into())];
        if invited && !code.is_empty() {
            fields.push(("code", code.into()));
        }
        self.ask("POST", "api/v1/session/oidc".into(), fields, move |answer| match answer.read::<Away>() {
            // The user can press the button again where the browser refuses.
            Ok(away) => drop(window().location().assign(&away.url)),
            Err(why) => failed.run(why),
        });
    }

    /// Names of the sign-in providers.
    pub fn providers(self) -> Vec<String> {
        let ways = self.session.with(|session| session.as_ref().map(|s| s.ways.clone()).unwrap_or_default());
        ways.into_iter().filter(|way| way != PASSWORD).collect()
    }

    /// Display title of a provider.
    pub fn title_of(self, provider: &str) -> String {
        let title = self.session.with(|session| session.as_ref().and_then(|s| s.titles.get(provider).cloned()));
        title.unwrap_or_else(|| provider.to_string())
    }

    /// True where passwords are allowed, or not known yet.
    pub fn takes_passwords(self) -> bool {
        self.session.with(|session| session.as_ref().is_none_or(|s| s.ways.iter().any(|way| way == PASSWORD)))
    }

    /// Spends the code of the address: creates the first admin, accepts an invitation, or resets a password. Empty
    /// fields are omitted.
    pub fn redeem(self, name: &str, password: &str, failed: Callback<String>) {
        let path = match self.gate.get_untracked() {
            Gate::Setup => "api/v1/session/setup",
            Gate::Invite => "api/v1/session/invite",
            _ => "api/v1/session/reset",
        };
        let fields = [("code", self.code.get_value()), ("name", name.to_string()), ("password", password.to_string())];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let body = Json::object(fields.map(|(name, value)| (name, value.into())));
        fetch::ask("POST", path, Some(body), move |answer| match answer.read::<Session>() {
            Ok(session) => {
                self.code.set_value(String::new());
                self.take(session);
                self.page.state.set(LinkState::Connecting);
            }
            Err(why) => failed.run(why),
        });
    }

    /// Goes on without the code of the address.
    pub fn forget_code(self) {
        self.code.set_value(String::new());
        self.gate.set(Gate::Open);
        self.request_session();
    }

    /// Sends the password again, and then the waiting request.
    pub fn confirm(self, password: &str, failed: Callback<String>) {
        let body = Json::object([("password", password.into())]);
        fetch::ask("POST", "api/v1/session/again", Some(body), move |answer| match answer.is_ok() {
            true => {
                let waiting = self.again.get_untracked();
                self.again.set(None);
                waiting.into_iter().for_each(|waiting| waiting.run(()));
            }
            false => failed.run(answer.problem()),
        });
    }

    /// Signs out.
    pub fn sign_out(self) {
        fetch::ask("DELETE", SESSION, None, move |answer| {
            if answer.is_ok() || answer.status == 401 {
                self.problem.set(String::new());
                self.request_session();
            }
        });
    }

    /// Sends a request that needs a session. Where the sign-in is too old, the page requests the password and repeats
    /// the request. Where the session has ended, the sign-in is shown.
    pub fn ask(
        self,
        method: &'static str,
        path: String,
        body: Vec<(&'static str, JsValue)>,
        done: impl Fn(FetchAnswer) + Clone + 'static,
    ) {
        let (same, fields) = (path.clone(), body.clone());
        let object = (method != "GET").then(|| Json::object(body));
        fetch::ask(method, &path, object, move |answer| {
            if answer.status == 401 {
                self.request_session();
            } else if answer.status == 403 && answer.read_error().again {
                // The waiting request stays on this thread and is dropped with the dialog.
                let repeat = StoredValue::new_local(Some((same, fields, done)));
                self.again.set(Some(Callback::new(move |()| {
                    if let Some((path, fields, done)) = repeat.try_update_value(Option::take).flatten() {
                        self.ask(method, path, fields, done);
                    }
                })));
            } else {
                done(answer);
            }
        });
    }

    /// The team of the page with the user's role in it: the one of the address, else the first that they administer,
    /// else the first.
    pub fn team_here(self) -> Option<TeamRole> {
        let wanted = self.page.view.with(|v| v.team.clone());
        self.session.with(|session| {
            let session = session.as_ref()?;
            let all = session.account.as_ref()?.hub_admin;
            let named = |team: &&TeamRole| wanted.as_ref().is_some_and(|name| team.id == *name || team.name == *name);
            let own = || session.teams.iter().find(|team| all || team.role == Role::Admin);
            let found = session.teams.iter().find(named).or_else(own).or_else(|| session.teams.first())?;
            let role = if all { Role::Admin } else { found.role };
            Some(TeamRole { role, ..found.clone() })
        })
    }

    /// The team whose machines, people and keys the user may change.
    pub fn team(self) -> Option<TeamRole> {
        self.team_here().filter(|team| team.role == Role::Admin)
    }

    /// True where there is a choice of teams: else none is shown.
    pub fn has_teams(self) -> bool {
        self.session.with(|session| session.as_ref().is_some_and(|session| session.teams.len() > 1))
    }

    /// True for an admin of the hub.
    pub fn is_hub_admin(self) -> bool {
        self.session.with(|session| session.as_ref().and_then(|s| s.account.as_ref()).is_some_and(|a| a.hub_admin))
    }

    /// Id of the signed-in user; empty without one.
    pub fn id(self) -> String {
        self.session
            .with(|session| session.as_ref().and_then(|s| s.account.as_ref()).map(|a| a.id.clone()))
            .unwrap_or_default()
    }

    /// True when a user is signed in.
    pub fn is_in(self) -> bool {
        self.session.with(|session| session.as_ref().is_some_and(|session| session.account.is_some()))
    }

    /// Writes role and team to the root element, for scripts and tests. A server without accounts has neither.
    fn mark(self) {
        let Some(root) = document().document_element() else { return };
        let marks = self.session.with(|session| {
            let session = session.as_ref()?;
            let team = session.teams.first();
            let role = match (&session.account, &session.shared, team) {
                (_, Some(_), _) => "share",
                (Some(account), ..) if account.hub_admin => "hub-admin",
                (Some(_), _, Some(team)) => team.role.text(),
                _ => "none",
            };
            Some((role, team.map(|team| team.name.clone()).unwrap_or_default()))
        });
        if let Some((role, team)) = marks {
            browser::set(&root, "data-role", role);
            browser::set(&root, "data-team", &team);
        }
    }
}

/// The code in the fragment of an address, and its purpose.
fn code_in(hash: &str) -> Option<(Gate, String)> {
    const CODES: [(&str, Gate); 4] =
        [("#setup=", Gate::Setup), ("#invite=", Gate::Invite), ("#reset=", Gate::Reset), ("#share=", Gate::Share)];
    let found = CODES.into_iter().find_map(|(name, gate)| Some((gate, hash.strip_prefix(name)?.to_string())));
    found.filter(|(_, code)| !code.is_empty())
}

/// Removes the error code of a sign-in by a provider from the address and returns its sentence; empty for an unknown
/// code.
fn take_problem() -> String {
    let hash = window().location().hash().unwrap_or_default();
    let Some(word) = hash.strip_prefix("#refused=") else { return String::new() };
    forget_hash();
    Refused::from_word(word).map(|refused| refused.sentence().to_string()).unwrap_or_default()
}

/// Takes the end off the address: it stays in no history.
fn forget_hash() {
    let location = window().location();
    let rest = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default();
    if let Ok(history) = window().history() {
        // A browser may refuse this only for an address of another site.
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&rest));
    }
}

/// Takes a code out of the address, before anything else is done: it stays in no history.
fn take_code() -> (Gate, String) {
    let hash = window().location().hash().unwrap_or_default();
    let Some((gate, code)) = code_in(&hash) else { return (Gate::Open, String::new()) };
    forget_hash();
    (gate, code)
}
