//! Cached principals, and rights revoked meanwhile: by this hub, and by another.

use super::*;
use shared::people::{NewServiceKey, PersonChange};
use shared::team::{GrantChange, MemberChange};
use shared::views::NewShare;

impl Hub {
    async fn session(&self, begun: &Begun) -> Option<Principal> {
        self.accounts.session(begun.token.reveal(), &network(1)).await.expect("answered")
    }

    /// Number of cached principals.
    fn kept(&self) -> usize {
        self.accounts.0.judged.figures().0
    }
}

#[tokio::test]
async fn what_is_taken_back_here_is_not_there_at_the_next_request() {
    let (hub, mara) = Hub::with_admin().await;
    let accounts = &hub.accounts;
    let by = &mara.principal;
    for name in ["ada", "mike", "tom", "vera", "zoe"] {
        hub.add(name, Role::Member, false).await;
    }
    let machine = hub.machine("main", "gpu-1").await;
    let wanted = NewServiceKey { name: "k".into(), scopes: vec![KeyScope::DataRead], expires: None };
    let mut signed_in = Vec::new();
    for name in ["ada", "mike", "tom", "vera", "zoe"] {
        signed_in.push(hub.sign_in(name, PASSWORD).await.expect("signed in"));
    }
    let [ada, mike, tom, vera, zoe] = &signed_in[..] else { panic!("five") };
    let own = accounts.add_own_key(&mike.principal, &wanted).await.expect("a key").key;
    let team = accounts.add_service_key(by, "main", &wanted).await.expect("a key");
    let live = NewShare { query: Some("w=5m".into()), ..NewShare::default() };
    let (link, code) = accounts.add_share(&zoe.principal, None, &live, &[]).await.expect("a link");
    let by_key = async |key: &Secret| accounts.key(key.reveal(), &network(2)).await.expect("answered");
    let by_link = async || accounts.share(code.reveal(), &network(2)).await.expect("answered");
    // All are authorized twice, so that they are cached.
    for _ in 0..2 {
        for begun in &signed_in {
            assert!(hub.session(begun).await.expect("it holds").scope().sees(&machine));
        }
        assert!(by_key(&own).await.is_some() && by_key(&team.key).await.is_some() && by_link().await.is_some());
    }
    assert_eq!(hub.kept(), 8);

    accounts.sign_out(&ada.principal).await.expect("out");
    assert!(hub.session(ada).await.is_none(), "signed out");
    let disabled = PersonChange { disabled: Some(true), ..PersonChange::default() };
    accounts.change_person(by, "mike", &disabled).await.expect("disabled");
    assert!(hub.session(mike).await.is_none() && by_key(&own).await.is_none(), "disabled");
    let less = MemberChange { role: Some(Role::Viewer), ..MemberChange::default() };
    accounts.set_member(by, "main", "tom", &less).await.expect("a viewer");
    assert_eq!(hub.session(tom).await.expect("still there").teams[0].role, Role::Viewer);
    accounts.remove_person(by, "vera").await.expect("removed");
    assert!(hub.session(vera).await.is_none(), "removed");
    accounts.end_service_key(by, "main", &team.id).await.expect("ended");
    assert!(by_key(&team.key).await.is_none(), "the key was ended");
    let none = GrantChange { teams: Some(Vec::new()), ..GrantChange::default() };
    accounts.set_grants(by, &machine, &none).await.expect("granted to nobody");
    assert!(!hub.session(zoe).await.expect("still there").scope().sees(&machine));
    assert!(!by_link().await.expect("still there").scope().sees(&machine));
    accounts.end_share(by, &link).await.expect("taken back");
    assert!(by_link().await.is_none(), "taken back");
}

#[tokio::test]
async fn what_another_program_takes_back_is_kept_for_less_than_a_second() {
    let (hub, _) = Hub::with_admin().await;
    hub.add("mike", Role::Member, false).await;
    let mike = hub.sign_in("mike", PASSWORD).await.expect("signed in");
    let other = Accounts::open(hub._folder.path(), hub.clock.clone()).await.expect("a second program");
    let socket = hub.accounts.sources_changed();
    for _ in 0..2 {
        assert!(hub.session(&mike).await.is_some());
    }
    other.remove_person(&Principal::local(0), "mike").await.expect("removed elsewhere");
    assert!(hub.session(&mike).await.is_some(), "it was judged this very moment, and is kept");
    hub.pass(Duration::from_millis(700));
    assert!(hub.session(&mike).await.is_none());
    assert!(socket.has_changed().expect("told"), "and sockets look whether they still may");
    assert_eq!(hub.accounts.judge_again(&mike.principal).await.map(|who| who.is_some()), Ok(false));
}

#[tokio::test]
async fn marks_of_use_are_written_all_the_same_and_forget_nobody() {
    let (hub, mara) = Hub::with_admin().await;
    let seen = async || hub.accounts.own_sessions(&mara.principal).await.expect("listed")[0].seen;
    let first = seen().await;
    hub.session(&mara).await.expect("it holds");
    let generation = hub.accounts.0.records.generation();
    for _ in 0..3 {
        hub.pass(minutes(1));
        hub.session(&mara).await.expect("it holds");
    }
    assert!(seen().await >= first + 120, "a session in use is marked, though it is kept");
    assert_eq!(hub.accounts.0.records.generation(), generation, "a mark is no reason to judge all anew");
}

#[tokio::test]
async fn no_more_are_kept_than_there_is_room_for() {
    let (hub, mara) = Hub::with_admin().await;
    for n in 0..50_000 {
        let known = crate::accounts::principal_cache::known("session", &n.to_string());
        hub.accounts.keep_judged(known, hub.accounts.0.records.generation(), &mara.principal);
    }
    let (kept, dropped) = hub.accounts.0.judged.figures();
    assert!(kept <= 20_000 && kept as u64 + dropped == 50_000, "{kept} are kept, {dropped} were dropped");
}
