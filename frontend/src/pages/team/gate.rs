//! Views before the sign-in: the sign-in form, and the setup of the first admin of a new hub. Also the dialog that
//! requests the password again.

use crate::access::{Access, Gate};
use crate::browser::{self, window};
use crate::pages;
use crate::widgets::icons::Mark;
use crate::widgets::modal::Modal;
use crate::widgets::parts::{If, flag, text as text_of};
use leptos::html;
use leptos::prelude::*;

/// The fewest bytes of a password.
const MIN_PASSWORD: usize = 12;

/// Content of the gate.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// The view in place of the page.
    Page,
    /// The content of the dialog that requests the password again.
    Again,
}

/// The view in place of the page, or the content of the dialog.
pub fn page(ask: Ask) -> AnyView {
    match ask {
        Ask::Page => view! { <GatePage/> }.into_any(),
        Ask::Again => view! { <AgainForm/> }.into_any(),
    }
}

/// The view in place of the page.
#[component]
fn GatePage() -> impl IntoView {
    let access = expect_context::<Access>();
    let host = window().location().host().unwrap_or_default();
    let body = move || {
        match access.gate.get() {
        Gate::Setup | Gate::Reset => view! { <Redeem/> }.into_any(),
        Gate::Invite => view! { <Invited/> }.into_any(),
        Gate::Share => view! { <Opening/> }.into_any(),
        Gate::NotSetUp => view! {
            <p>"This hub has no account yet. Open the address that the hub printed at its start to create the first admin: it ends in "
                <code>"#setup=…"</code>". A new start prints a new one."</p>
        }
        .into_any(),
        _ => view! { <SignIn/> }.into_any(),
    }
    };
    view! {
        <main class="gate" id="page">
            <div class="box">
                <header>
                    <Mark/>
                    <div><h1>{host}</h1><p>"Watchglass: live monitoring of machines"</p></div>
                </header>
                {body}
            </div>
            <PlainHttp/>
        </main>
    }
}

/// Notices below the bar of every page: that the hub is reached without TLS, and that the page is viewed by a share
/// link.
#[component]
pub fn Stripes() -> impl IntoView {
    let access = expect_context::<Access>();
    let shared = Memo::new(move |_| access.session.with(|session| session.as_ref().and_then(|s| s.shared.clone())));
    let words = text_of(move || {
        shared.with(|shared| {
            let Some(shared) = shared else { return String::new() };
            let until = crate::widgets::clock::clock(shared.ends);
            format!("Shared by {} until {until}, read only. Names of processes and people are not included.", shared.by)
        })
    });
    view! {
        <PlainHttp/>
        <If when=flag(move || shared.with(Option::is_some))>
            <p class="stripe" data-shared="yes">{words}</p>
        </If>
    }
}

#[component]
fn PlainHttp() -> impl IntoView {
    let access = expect_context::<Access>();
    let plain = flag(move || access.session.with(|session| session.as_ref().is_some_and(|s| s.plain_http)));
    view! {
        <If when=plain>
            <p class="stripe">
                <span class="shape is-warn" aria-hidden="true">"▲"</span>
                "This hub is used without TLS: anyone on the network path can read passwords and values."
            </p>
        </If>
    }
}

/// A field of a form with its name.
#[component]
fn Field(
    /// Name of the field.
    name: &'static str,
    /// Label above the input.
    label: &'static str,
    /// Type of the input.
    kind: &'static str,
    /// Value of `autocomplete`.
    fill: &'static str,
    /// The element, to read it.
    node: NodeRef<html::Input>,
    /// Initial value.
    #[prop(into, optional)]
    value: String,
) -> impl IntoView {
    view! {
        <label>
            <span>{label}</span>
            <input node_ref=node name=name type=kind autocomplete=fill required=true spellcheck="false" value=value/>
        </label>
    }
}

fn text(node: NodeRef<html::Input>) -> String {
    node.get_untracked().map(|input| input.value()).unwrap_or_default()
}

/// The state of a form: whether a request is open, and the error.
#[derive(Clone, Copy)]
struct Sending {
    busy: RwSignal<bool>,
    wrong: RwSignal<String>,
}

impl Sending {
    fn new() -> Self {
        Sending { busy: RwSignal::new(false), wrong: RwSignal::default() }
    }

    /// Begins, and returns the callback for a failure, which selects the password for another try.
    fn begin(self, password: NodeRef<html::Input>) -> Callback<String> {
        self.busy.set(true);
        self.wrong.set(String::new());
        Callback::new(move |why: String| {
            self.busy.set(false);
            self.wrong.set(why);
            if let Some(input) = password.get_untracked() {
                input.select();
                browser::focus(&input);
            }
        })
    }

    fn says(self) -> impl IntoView {
        view! { <p class="wrong" role="alert">{self.wrong}</p> }
    }
}

#[component]
fn SignIn() -> impl IntoView {
    let access = expect_context::<Access>();
    let (name, password) = (NodeRef::new(), NodeRef::new());
    let sending = Sending::new();
    let out = access.gate.get_untracked() == Gate::SignedOut;
    let last = access.last.get_untracked();
    let known = !last.is_empty();
    let first: NodeRef<html::Input> = if known { password } else { name };
    first.on_load(|input| browser::focus(&input));
    sending.wrong.set(access.problem.get_untracked());
    let by_password = flag(move || access.takes_passwords());
    view! {
        <form
            data-form="sign-in"
            on:submit=move |event| {
                event.prevent_default();
                access.sign_in(&text(name), &text(password), sending.begin(password));
            }
        >
            {out.then(|| view! {
                <p>"You are signed out. After you sign in, this page is restored."</p>
            })}
            <If when=by_password>
                <Field name="name" label="Name" kind="text" fill="username" node=name value=last.clone()/>
                <Field name="password" label="Password" kind="password" fill="current-password" node=password/>
            </If>
            {sending.says()}
            <If when=by_password>
                <button class="btn primary" disabled=sending.busy>"Sign in"</button>
            </If>
            <Ways sending purpose="in"/>
            <If when=by_password>
                <p class="below">"Forgot your password? Ask an admin of this hub for a reset link."</p>
            </If>
        </form>
    }
}

/// A button for each provider, below a line where there is another sign-in as well.
#[component]
fn Ways(sending: Sending, purpose: &'static str) -> impl IntoView {
    let access = expect_context::<Access>();
    // GitHub cannot force a new authentication.
    let all = move || access.providers().into_iter().filter(move |name| purpose != "again" || name != "github");
    let ways = Memo::new(move |_| all().collect::<Vec<String>>());
    let several = flag(move || access.takes_passwords() && ways.with(|ways| !ways.is_empty()));
    let failed = Callback::new(move |why: String| {
        sending.busy.set(false);
        sending.wrong.set(why);
    });
    let button = move |name: String| {
        let words = match purpose {
            "again" => format!("Confirm at {}", access.title_of(&name)),
            _ => format!("Sign in with {}", access.title_of(&name)),
        };
        let own = name.clone();
        let go = move |_| {
            sending.busy.set(true);
            sending.wrong.set(String::new());
            access.go(own.clone(), purpose, failed);
        };
        view! { <button type="button" class="btn" data-provider=name disabled=sending.busy on:click=go>{words}</button> }
    };
    let back = flag(move || purpose == "again" && ways.with(|ways| !ways.is_empty()));
    view! {
        <If when=several>
            <p class="or">"or"</p>
        </If>
        {move || ways.get().into_iter().map(button).collect_view()}
        <If when=back>
            <p class="below">"You then return to this page; repeat your last action."</p>
        </If>
    }
}

/// A share link that is opening, or the reason why it does not open.
#[component]
fn Opening() -> impl IntoView {
    let access = expect_context::<Access>();
    let refused = flag(move || access.refused.with(|why| !why.is_empty()));
    view! {
        <If when=refused>
            <p class="wrong" role="alert">{access.refused}</p>
            <p class="below">"A link expires, and its owner can revoke it: ask them for a new one."</p>
            <button class="btn" data-do="sign-in" on:click=move |_| access.forget_code()>"Sign in instead"</button>
        </If>
        <If when=flag(move || !refused.get())>
            <p role="status">"Opening the link …"</p>
        </If>
    }
}

/// An invitation: a signed-in user joins, others create an account or sign in first.
#[component]
fn Invited() -> impl IntoView {
    let access = expect_context::<Access>();
    let signing_in = RwSignal::new(false);
    let sending = Sending::new();
    let join = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        access.redeem("", "", sending.begin(NodeRef::new()));
    };
    let body = move || match (access.is_in(), signing_in.get()) {
        (true, _) => view! {
            <form data-form="invite" on:submit=join>
                <p>"You were invited as "<b>{access.last}</b>"."</p>
                {sending.says()}
                <button class="btn primary" disabled=sending.busy>"Join"</button>
            </form>
        }
        .into_any(),
        (false, true) => view! { <SignIn/> }.into_any(),
        (false, false) => view! { <Redeem/> }.into_any(),
    };
    let other = move || {
        (!access.is_in()).then(|| {
            let words = if signing_in.get() { "I have no account" } else { "I have an account" };
            view! { <button class="plain" data-do="other" on:click=move |_| signing_in.update(|on| *on = !*on)>{words}</button> }
        })
    };
    view! { {body} {other} }
}

/// A form that spends the code of the address: the first admin, an invitation, a new password.
#[component]
fn Redeem() -> impl IntoView {
    let access = expect_context::<Access>();
    let (name, password, same) = (NodeRef::new(), NodeRef::new(), NodeRef::new());
    let sending = Sending::new();
    let invited = access.gate.get_untracked() == Gate::Invite;
    // Where passwords are off, an invited user signs in by a provider.
    let by_password = flag(move || !invited || access.takes_passwords() || access.providers().is_empty());
    let (form, said, named) = match access.gate.get_untracked() {
        Gate::Setup => ("setup", "This hub is new. Create its first admin.", true),
        Gate::Invite => ("invite", "You were invited. Choose a name and a password.", true),
        _ => ("reset", "Choose a new password. All your sessions end.", false),
    };
    // The providers are known after the first request of the session.
    let said = text_of(move || if by_password.get() { said } else { "You were invited. Sign in to join." });
    let first: NodeRef<html::Input> = if named { name } else { password };
    first.on_load(|input: web_sys::HtmlInputElement| browser::focus(&input));
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let failed = sending.begin(password);
        let typed = text(password);
        if typed.len() < MIN_PASSWORD {
            return failed.run(format!("A password needs at least {MIN_PASSWORD} characters."));
        }
        if typed != text(same) {
            return failed.run("The two passwords differ; enter them again.".into());
        }
        access.redeem(&text(name), &typed, failed);
    };
    view! {
        <form data-form=form on:submit=submit>
            <p>{said}</p>
            <If when=by_password>
                {named.then(|| view! { <Field name="name" label="Your name" kind="text" fill="username" node=name/> })}
                <Field name="password" label="Password, at least 12 characters" kind="password" fill="new-password" node=password/>
                <Field name="same" label="Repeat password" kind="password" fill="new-password" node=same/>
            </If>
            {sending.says()}
            <If when=by_password>
                <button class="btn primary" disabled=sending.busy>{if form == "setup" { "Create admin" } else { "Continue" }}</button>
            </If>
            {invited.then(|| view! { <Ways sending purpose="in"/> })}
        </form>
    }
}

/// The dialog that requests the password again, before an action that a stolen session must not do.
#[component]
pub fn AgainDialog() -> impl IntoView {
    let access = expect_context::<Access>();
    let title = Signal::derive(move || access.again.with(Option::is_some).then(|| "Your password".to_string()));
    let body = move || access.again.with(Option::is_some).then(|| pages::gate(Ask::Again));
    view! {
        <Modal id="again" title closed=Callback::new(move |()| access.again.set(None))>{body}</Modal>
    }
}

#[component]
fn AgainForm() -> impl IntoView {
    let access = expect_context::<Access>();
    let password = NodeRef::new();
    let sending = Sending::new();
    password.on_load(|input: web_sys::HtmlInputElement| browser::focus(&input));
    // A failed sign-in at a provider is reported here, where the user retries.
    sending.wrong.set(access.problem.get_untracked());
    let by_password = flag(move || access.takes_passwords());
    let label = format!("Password of {}", access.last.get_untracked());
    view! {
        <form
            class="body form"
            data-form="again"
            on:submit=move |event| {
                event.prevent_default();
                access.confirm(&text(password), sending.begin(password));
            }
        >
            <p>"Creating or revoking keys needs a sign-in within the last 15 minutes. Enter your password again."</p>
            <If when=by_password>
                <label>
                    <span>{label.clone()}</span>
                    <input node_ref=password name="password" type="password" autocomplete="current-password" required=true/>
                </label>
            </If>
            {sending.says()}
            <If when=by_password>
                <button class="btn primary" disabled=sending.busy>"Continue"</button>
            </If>
            <Ways sending purpose="again"/>
        </form>
    }
}
