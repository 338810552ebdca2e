//! Who is signed in, and what the page therefore shows. A server without accounts needs none of it: there the page asks
//! nothing, and everything is as before.

use crate::browser::{self, document, window};
use crate::fetch::{self, Answer, Json};
use crate::state::{LinkState, Page};
use leptos::prelude::*;
use shared::role::Role;
use shared::session::{Session, SignedIn, TeamRole};
use wasm_bindgen::JsValue;

const SESSION: &str = "api/v1/session";

/// What stands between a person and the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing.
    Open,
    /// The address brought the code of the first admin.
    Setup,
    /// Nobody is signed in.
    SignIn,
    /// The hub has no account yet, and the address no code.
    NotSetUp,
    /// Somebody was signed in here, and is no more: the page was emptied.
    SignedOut,
}

/// What waits for the password to be given again.
type Waiting = Callback<()>;

/// State of the sign-in; a copy is the same. Components find it in their context.
#[derive(Clone, Copy)]
pub struct Access {
    page: Page,
    /// Who is signed in; None on a server without accounts, and before it is known.
    pub session: RwSignal<Option<Session>>,
    /// What stands before the page.
    pub gate: RwSignal<Gate>,
    /// The code of the first admin, which the address had.
    code: StoredValue<String>,
    /// Set while a password is asked for again: what is done when it was right.
    pub again: RwSignal<Option<Waiting>>,
    /// Name of who was signed in last.
    pub last: RwSignal<String>,
    asking: StoredValue<bool>,
}

impl Access {
    /// Looks at the address, and follows the link: where a socket is refused for want of a session, the page asks who is
    /// signed in.
    pub fn start(page: Page) -> Self {
        let code = take_code();
        let access = Access {
            page,
            session: RwSignal::new(None),
            gate: RwSignal::new(if code.is_empty() { Gate::Open } else { Gate::Setup }),
            code: StoredValue::new(code),
            again: RwSignal::new(None),
            last: RwSignal::default(),
            asking: StoredValue::new(false),
        };
        Effect::new(move || {
            page.shut.set(access.gate.get() != Gate::Open);
        });
        // A socket that was refused, or ended with a word about the session, may have been so for want of one.
        Effect::new(move || {
            page.turned_away.track();
            if page.turned_away.get() > 0 {
                access.look();
            }
        });
        // A hub says in its greeting that it has accounts.
        Effect::new(move || {
            if page.accounts.get() && access.session.with_untracked(Option::is_none) {
                access.look();
            }
        });
        Effect::new(move || access.mark());
        access
    }

    /// Asks who is signed in.
    pub fn look(self) {
        if self.gate.get_untracked() == Gate::Setup || std::mem::replace(&mut *self.asking.write_value(), true) {
            return;
        }
        fetch::ask("GET", SESSION, None, move |answer| {
            self.asking.set_value(false);
            // 404 is a server without accounts; 0 one that is away.
            if answer.is_ok() {
                self.take(&answer.body);
            }
        });
    }

    /// Takes in an answer about the session.
    fn take(self, body: &Json) {
        let session = read(body);
        let was = self.session.with_untracked(|s| s.as_ref().is_some_and(|s| s.account.is_some()));
        if let Some(account) = &session.account {
            self.last.set(account.name.clone());
        }
        let gate = match (&session.account, session.setup) {
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

    /// Sends a form that signs somebody in. `failed` is called with a sentence when it was refused.
    fn send(self, path: &str, fields: Vec<(&'static str, JsValue)>, failed: Callback<String>) {
        fetch::ask("POST", path, Some(Json::object(fields)), move |answer| match answer.is_ok() {
            true => {
                self.take(&answer.body);
                self.page.state.set(LinkState::Connecting);
            }
            false => failed.run(answer.problem()),
        });
    }

    /// Signs in.
    pub fn sign_in(self, name: &str, password: &str, failed: Callback<String>) {
        self.send(SESSION, vec![("name", name.into()), ("password", password.into())], failed);
    }

    /// Makes the first admin.
    pub fn set_up(self, name: &str, password: &str, failed: Callback<String>) {
        let code = self.code.get_value();
        let fields = vec![("code", code.into()), ("name", name.into()), ("password", password.into())];
        self.send("api/v1/session/setup", fields, failed);
    }

    /// Gives the password again, and then does what waited for it.
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
                self.look();
            }
        });
    }

    /// Asks the server for something that needs a session. Where the sign-in is too old, the password is asked for and
    /// the question repeated; where nobody is signed in any more, the sign-in is shown.
    pub fn ask(
        self,
        method: &'static str,
        path: String,
        body: Vec<(&'static str, JsValue)>,
        done: impl Fn(Answer) + Clone + 'static,
    ) {
        let (same, fields) = (path.clone(), body.clone());
        let object = (method != "GET").then(|| Json::object(body));
        fetch::ask(method, &path, object, move |answer| {
            if answer.status == 401 {
                self.look();
            } else if answer.status == 403 && answer.body.get("again").is_true() {
                // What waits is neither sent to another thread nor kept longer than the dialog.
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

    /// The team whose machines a person may change: the first in which they are admin.
    pub fn team(self) -> Option<TeamRole> {
        self.session.with(|session| {
            let session = session.as_ref()?;
            let all = session.account.as_ref()?.hub_admin;
            session.teams.iter().find(|team| all || team.role == Role::Admin).cloned()
        })
    }

    /// True when somebody is signed in.
    pub fn is_in(self) -> bool {
        self.session.with(|session| session.as_ref().is_some_and(|session| session.account.is_some()))
    }

    /// Writes role and team to the root element, for scripts and tests. A server without accounts has neither.
    fn mark(self) {
        let Some(root) = document().document_element() else { return };
        let marks = self.session.with(|session| {
            let session = session.as_ref()?;
            let team = session.teams.first();
            let role = match (&session.account, &session.share, team) {
                (Some(account), ..) if account.hub_admin => "hub-admin",
                (Some(_), _, Some(team)) => team.role.text(),
                (None, Some(_), _) => "share",
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

/// Takes the code of the first admin out of the address, before anything else is done: it stays in no history.
fn take_code() -> String {
    let Ok(hash) = window().location().hash() else { return String::new() };
    let Some(code) = hash.strip_prefix("#setup=") else { return String::new() };
    let location = window().location();
    let rest = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default();
    if let Ok(history) = window().history() {
        // A browser may refuse this only for an address of another site.
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&rest));
    }
    code.to_string()
}

fn read(body: &Json) -> Session {
    let account = body.get("account");
    let signed_in = |account: &Json| SignedIn {
        id: account.get("id").text(),
        name: account.get("name").text(),
        hub_admin: account.get("hub_admin").is_true(),
    };
    let team = |team: &Json| {
        let role = team.get("role").text().parse().ok()?;
        Some(TeamRole { id: team.get("id").text(), name: team.get("name").text(), role })
    };
    Session {
        account: (!account.is_null()).then(|| signed_in(&account)),
        teams: body.get("teams").list().iter().filter_map(team).collect(),
        share: body.get("share").maybe(),
        shared: None,
        ways: body.get("ways").list().iter().map(Json::text).collect(),
        setup: body.get("setup").is_true(),
        plain_http: body.get("plain_http").is_true(),
    }
}
