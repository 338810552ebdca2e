//! What stands before the page while nobody is signed in: sign-in, and the first admin of a new hub. And the dialog that
//! asks for the password again.

use crate::access::{Access, Gate};
use crate::browser::{self, window};
use crate::widgets::icons::Mark;
use crate::widgets::modal::Modal;
use crate::widgets::parts::{If, flag};
use leptos::html;
use leptos::prelude::*;

/// The fewest bytes of a password.
const MIN_PASSWORD: usize = 12;

/// What stands in place of the page.
#[component]
pub fn GatePage() -> impl IntoView {
    let access = expect_context::<Access>();
    let host = window().location().host().unwrap_or_default();
    let body = move || {
        match access.gate.get() {
        Gate::Setup => view! { <SetUp/> }.into_any(),
        Gate::NotSetUp => view! {
            <p>"This hub has no account yet. Its first admin opens the address that the hub printed at its start: it ends in "
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
                    <div><h1>{host}</h1><p>"Machines, watched by Watchglass"</p></div>
                </header>
                {body}
            </div>
            <PlainHttp/>
        </main>
    }
}

/// Says on every page that the hub is reached without TLS.
#[component]
pub fn PlainHttp() -> impl IntoView {
    let access = expect_context::<Access>();
    let plain = flag(move || access.session.with(|session| session.as_ref().is_some_and(|s| s.plain_http)));
    view! {
        <If when=plain>
            <p class="stripe">
                <span class="shape is-warn" aria-hidden="true">"▲"</span>
                "This hub is reached without TLS: whoever is on the way can read passwords and values."
            </p>
        </If>
    }
}

/// A field of a form with its name.
#[component]
fn Field(
    /// Name of the field.
    name: &'static str,
    /// What stands above it.
    label: &'static str,
    /// Type of the input.
    kind: &'static str,
    /// What the browser may fill in.
    fill: &'static str,
    /// The element, to read it.
    node: NodeRef<html::Input>,
    /// What stands in it at first.
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

/// The state of a form: whether an answer is waited for, and what was wrong.
#[derive(Clone, Copy)]
struct Sending {
    busy: RwSignal<bool>,
    wrong: RwSignal<String>,
}

impl Sending {
    fn new() -> Self {
        Sending { busy: RwSignal::new(false), wrong: RwSignal::default() }
    }

    /// Begins, and gives what is called when it failed. The password is wanted anew then.
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
    view! {
        <form
            data-form="sign-in"
            on:submit=move |event| {
                event.prevent_default();
                access.sign_in(&text(name), &text(password), sending.begin(password));
            }
        >
            {out.then(|| view! {
                <p>"You are signed out, and this page was emptied. Sign in, and it comes back as it stood."</p>
            })}
            <Field name="name" label="Name" kind="text" fill="username" node=name value=last/>
            <Field name="password" label="Password" kind="password" fill="current-password" node=password/>
            {sending.says()}
            <button class="btn primary" disabled=sending.busy>"Sign in"</button>
            <p class="below">"Forgotten? An admin of this hub makes a new account for you."</p>
        </form>
    }
}

#[component]
fn SetUp() -> impl IntoView {
    let access = expect_context::<Access>();
    let (name, password, same) = (NodeRef::new(), NodeRef::new(), NodeRef::new());
    let sending = Sending::new();
    name.on_load(|input: web_sys::HtmlInputElement| browser::focus(&input));
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let failed = sending.begin(password);
        let typed = text(password);
        if typed.len() < MIN_PASSWORD {
            return failed.run(format!("A password needs {MIN_PASSWORD} characters or more; any will do."));
        }
        if typed != text(same) {
            return failed.run("The two passwords differ; type them again.".into());
        }
        access.set_up(&text(name), &typed, failed);
    };
    view! {
        <form data-form="setup" on:submit=submit>
            <p>"This hub is new. You become its first admin."</p>
            <Field name="name" label="Your name here" kind="text" fill="username" node=name/>
            <Field name="password" label="Password, 12 characters or more" kind="password" fill="new-password" node=password/>
            <Field name="same" label="The same again" kind="password" fill="new-password" node=same/>
            {sending.says()}
            <button class="btn primary" disabled=sending.busy>"Begin"</button>
        </form>
    }
}

/// The dialog that asks for the password again, before something that a stolen session should not do.
#[component]
pub fn AgainDialog() -> impl IntoView {
    let access = expect_context::<Access>();
    let title = Signal::derive(move || access.again.with(Option::is_some).then(|| "Your password, again".to_string()));
    let body = move || access.again.with(Option::is_some).then(|| view! { <AgainForm/> });
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
            <p>"You signed in more than 15 minutes ago. This makes or ends keys, so it asks once more."</p>
            <label>
                <span>{label}</span>
                <input node_ref=password name="password" type="password" autocomplete="current-password" required=true/>
            </label>
            {sending.says()}
            <button class="btn primary" disabled=sending.busy>"Go on"</button>
        </form>
    }
}
