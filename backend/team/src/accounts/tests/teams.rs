//! Teams, invitations, services, keys of people, and leaving.

use super::*;
use records::run_edits::{self, RunEditRow};
use shared::me::MeChange;
use shared::people::{MadeKey, NewServiceKey, PersonChange};
use shared::team::{
    GrantChange, MemberChange, NewInvite, NewService, NewTeam, ServiceChange, TakeInvite, TeamChange, TeamEnd,
};

fn invited(code: &Secret, name: &str) -> TakeInvite {
    TakeInvite { code: code.clone(), name: Some(name.into()), password: Some(secret(PASSWORD)) }
}

fn wanted(scopes: &[KeyScope]) -> NewServiceKey {
    NewServiceKey { name: "k".into(), scopes: scopes.to_vec(), expires: None }
}

impl Hub {
    async fn key(&self, made: &MadeKey) -> Option<Principal> {
        self.accounts.key(made.key.reveal(), &network(3)).await.expect("answered")
    }
}

/// A hub with the team `other`, whose admin is `olga`, and a machine in each team.
async fn two_teams() -> (Hub, [String; 2], Begun) {
    let (hub, begun) = Hub::with_admin().await;
    let by = &begun.principal;
    hub.accounts.add_team(by, &NewTeam { name: "other".into() }).await.expect("a second team");
    let person = NewPerson {
        name: "olga".into(),
        password: Some(secret(PASSWORD)),
        team: Some("other".into()),
        role: Some(Role::Admin),
        ..NewPerson::default()
    };
    hub.accounts.add_person(by, &person).await.expect("an admin of the second team");
    let machines = [hub.machine("main", "gpu-1").await, hub.machine("other", "gpu-2").await];
    (hub, machines, begun)
}

#[tokio::test]
async fn a_team_sees_what_is_granted_to_it_and_nothing_else() {
    let (hub, [first, second], begun) = two_teams().await;
    let olga = hub.sign_in("olga", PASSWORD).await.unwrap().principal;
    assert!(olga.scope().sees(&second) && !olga.scope().sees(&first));
    let both = GrantChange { add: vec!["other".into()], ..GrantChange::default() };
    for by in [&olga, &hub.sign_in("olga", PASSWORD).await.unwrap().principal] {
        assert_eq!(hub.accounts.set_grants(by, &first, &both).await.expect_err("no hub admin").status(), 403);
    }
    let news = hub.accounts.sources_changed();
    let granted = hub.accounts.set_grants(&begun.principal, "gpu-1", &both).await.expect("granted");
    assert_eq!(granted.teams.iter().map(|team| team.name.as_str()).collect::<Vec<_>>(), ["main", "other"]);
    assert!(news.has_changed().unwrap() && hub.accounts.scope(&olga).await.unwrap().sees(&first));
    let team = hub.accounts.one_team(&olga, "other").await.unwrap();
    let seen: Vec<(&str, bool)> = team.sources.iter().map(|one| (one.name.as_str(), one.home)).collect();
    assert_eq!(seen, [("gpu-1", false), ("gpu-2", true)]);
    // The owning team stays: an admin of a team that only sees the machine can neither rename nor revoke it.
    assert_eq!(hub.accounts.revoke(&olga, "other", &first).await.expect_err("not theirs"), Denied::Unknown);
    let only = GrantChange { teams: Some(vec!["main".into()]), ..GrantChange::default() };
    hub.accounts.set_grants(&begun.principal, &first, &only).await.unwrap();
    assert!(!hub.accounts.scope(&olga).await.unwrap().sees(&first));
    let none = GrantChange { teams: Some(vec!["nowhere".into()]), ..GrantChange::default() };
    assert_eq!(hub.accounts.set_grants(&begun.principal, &first, &none).await, Err(Denied::Unknown));
    assert_eq!(hub.accounts.grants(&begun.principal, &first).await.unwrap().teams.len(), 1, "all or nothing");
}

#[tokio::test]
async fn what_belongs_to_another_team_is_not_there() {
    let (hub, _, _) = two_teams().await;
    let olga = hub.sign_in("olga", PASSWORD).await.unwrap().principal;
    let accounts = &hub.accounts;
    for team in ["main", "never"] {
        assert_eq!(accounts.one_team(&olga, team).await.expect_err("not theirs"), Denied::Unknown);
        assert_eq!(accounts.invites(&olga, team).await.expect_err("not theirs"), Denied::Unknown);
        assert_eq!(accounts.services(&olga, team).await.expect_err("not theirs"), Denied::Unknown);
        assert_eq!(accounts.change_team(&olga, team, &TeamChange::default()).await, Err(Denied::Unknown));
        assert_eq!(accounts.remove_member(&olga, team, "mara").await, Err(Denied::Unknown));
    }
    // An admin of a team cannot find out whether a person exists on the hub: the answer is the one for an unknown name.
    for person in ["mara", "nobody"] {
        let denied = accounts.set_member(&olga, "other", person, &MemberChange::default()).await;
        assert_eq!(denied.expect_err("not in the team"), Denied::Unknown, "{person}");
    }
    let names: Vec<String> = accounts.list_teams(&olga).await.unwrap().into_iter().map(|team| team.name).collect();
    assert_eq!(names, ["other"]);
}

#[tokio::test]
async fn an_invitation_works_once_and_gives_no_more_than_its_maker_has() {
    let (hub, begun) = Hub::with_admin().await;
    let accounts = &hub.accounts;
    hub.add("ada", Role::Admin, false).await;
    hub.add("mike", Role::Member, false).await;
    hub.add("vera", Role::Viewer, false).await;
    let (ada, mike) = (hub.sign_in("ada", PASSWORD).await.unwrap(), hub.sign_in("mike", PASSWORD).await.unwrap());
    let vera = hub.sign_in("vera", PASSWORD).await.unwrap();
    let as_role = |role| NewInvite { role: Some(role), ..NewInvite::default() };
    for by in [&mike.principal, &vera.principal] {
        assert_eq!(accounts.invite(by, "main", &as_role(Role::Viewer)).await.expect_err("not asked").status(), 403);
    }
    let may = TeamChange { members_invite: Some(true), ..TeamChange::default() };
    accounts.change_team(&ada.principal, "main", &may).await.expect("members may");
    accounts.invite(&mike.principal, "main", &as_role(Role::Member)).await.expect("members may now");
    assert_eq!(accounts.invite(&vera.principal, "main", &as_role(Role::Viewer)).await.expect_err("no").status(), 403);
    let above = accounts.invite(&mike.principal, "main", &as_role(Role::Admin)).await.expect_err("above");
    assert_eq!(above.status(), 403);
    let (id, code) = accounts.invite(&ada.principal, "main", &as_role(Role::Member)).await.expect("invited");
    let listed = accounts.invites(&ada.principal, "main").await.unwrap();
    assert!(listed.iter().any(|one| one.id == id && one.by == "ada") && listed.len() == 2);
    assert_eq!(accounts.end_invite(&mike.principal, "main", &id).await.expect_err("another's").status(), 403);

    let take = async |wanted: TakeInvite| accounts.take_invite(None, &wanted, &network(5)).await;
    let weak = TakeInvite { password: Some(secret("short")), ..invited(&code, "tom") };
    assert_eq!(take(weak).await.expect_err("a weak password spends no code").status(), 400);
    assert_eq!(take(invited(&code, "ada")).await.expect_err("the name is taken").status(), 409);
    let InviteTaken::Begun(tom) = take(invited(&code, "tom")).await.expect("taken") else { panic!("a new account") };
    assert_eq!(tom.principal.teams[0].role, Role::Member);
    assert_eq!(take(invited(&code, "eve")).await.expect_err("once").status(), 401);
    assert_eq!(take(invited(&secret("guess"), "eve")).await.expect_err("a guess").status(), 401);

    // An open invitation is invalid once its creator has fewer rights.
    let (_, late) = accounts.invite(&ada.principal, "main", &as_role(Role::Admin)).await.expect("invited");
    let (_, over) = accounts.invite(&begun.principal, "main", &as_role(Role::Viewer)).await.expect("invited");
    let less = MemberChange { role: Some(Role::Member), ..MemberChange::default() };
    accounts.set_member(&begun.principal, "main", "ada", &less).await.unwrap();
    assert_eq!(take(invited(&late, "eve")).await.expect_err("no admin any longer").status(), 401);
    hub.pass(minutes(7 * 24 * 60));
    assert_eq!(take(invited(&over, "eve")).await.expect_err("7 days").status(), 401);
    assert_eq!(accounts.people(&Principal::local(0)).await.unwrap().len(), 5);
}

#[tokio::test]
async fn who_is_signed_in_comes_into_another_team_by_the_code_alone() {
    let (hub, _, begun) = two_teams().await;
    let role = NewInvite { role: Some(Role::Viewer), ..NewInvite::default() };
    let (_, code) = hub.accounts.invite(&begun.principal, "main", &role).await.unwrap();
    let olga = hub.sign_in("olga", PASSWORD).await.unwrap();
    let watched = hub.accounts.watch(&olga.principal);
    let wanted = TakeInvite { code, name: None, password: None };
    let nobody = hub.accounts.take_invite(None, &wanted, &network(5)).await.expect_err("nobody is signed in");
    assert_eq!(nobody.status(), 400);
    let taken = hub.accounts.take_invite(Some(&olga.principal), &wanted, &network(5)).await.expect("taken");
    assert!(matches!(taken, InviteTaken::Joined) && *watched.borrow() == Some(Ended::Rights));
    let now = hub.accounts.session(olga.token.reveal(), &network(1)).await.unwrap().expect("still signed in");
    let roles: Vec<(&str, Role)> = now.teams.iter().map(|team| (team.name.as_str(), team.role)).collect();
    assert_eq!(roles, [("main", Role::Viewer), ("other", Role::Admin)]);
}

#[tokio::test]
async fn an_invitation_takes_no_role_from_a_hub_admin() {
    let (hub, begun) = Hub::with_admin().await;
    let (accounts, by) = (&hub.accounts, &begun.principal);
    let admin = MemberChange { role: Some(Role::Admin), ..MemberChange::default() };
    accounts.set_member(by, "main", "mara", &admin).await.expect("an admin of the team");
    let role = NewInvite { role: Some(Role::Viewer), ..NewInvite::default() };
    let (_, code) = accounts.invite(by, "main", &role).await.expect("invited");
    let wanted = TakeInvite { code, name: None, password: None };
    accounts.take_invite(Some(by), &wanted, &network(5)).await.expect("taken");
    let now = accounts.set_member(by, "main", "mara", &MemberChange::default()).await.expect("there");
    assert_eq!(now.role, Role::Admin);
}

#[tokio::test]
async fn who_leaves_or_is_removed_keeps_nothing_open() {
    let (hub, begun) = Hub::with_admin().await;
    let accounts = &hub.accounts;
    for name in ["tom", "ina"] {
        hub.add(name, Role::Admin, false).await;
        let person = hub.sign_in(name, PASSWORD).await.unwrap();
        let key = accounts.add_own_key(&person.principal, &wanted(&[KeyScope::DataRead])).await.expect("a key");
        let invite = NewInvite { role: Some(Role::Viewer), ..NewInvite::default() };
        let (_, code) = accounts.invite(&person.principal, "main", &invite).await.expect("invited");
        let by_key = hub.key(&key).await.expect("it holds");
        let (socket, program) = (accounts.watch(&person.principal), accounts.watch(&by_key));
        let by = if name == "tom" { &begun.principal } else { &person.principal };
        accounts.remove_member(by, "main", name).await.expect("gone");
        assert!(socket.borrow().is_some() && program.borrow().is_some(), "{name}");
        assert!(accounts.session(person.token.reveal(), &network(1)).await.unwrap().is_none(), "{name}");
        assert!(hub.key(&key).await.is_none(), "{name}");
        let taken = accounts.take_invite(None, &invited(&code, "eve"), &network(5)).await;
        assert_eq!(taken.expect_err("its maker is gone").status(), 401, "{name}");
    }
    assert_eq!(accounts.remove_member(&begun.principal, "main", "tom").await, Err(Denied::Unknown));
}

#[tokio::test]
async fn a_key_never_may_more_than_whose_it_is() {
    let (hub, begun) = Hub::with_admin().await;
    let accounts = &hub.accounts;
    hub.add("ada", Role::Admin, false).await;
    let ada = hub.sign_in("ada", PASSWORD).await.unwrap().principal;
    let denied = accounts.add_own_key(&ada, &wanted(&[KeyScope::HubAdmin])).await.expect_err("no hub admin");
    assert_eq!(denied.status(), 403);
    for expires in ["never", "401d"] {
        let long = NewServiceKey { expires: Some(expires.into()), ..wanted(&[KeyScope::DataRead]) };
        assert_eq!(accounts.add_own_key(&ada, &long).await.expect_err("too long").status(), 400, "{expires}");
    }
    let made = accounts.add_own_key(&ada, &wanted(&[KeyScope::TeamAdmin, KeyScope::DataRead])).await.expect("a key");
    let team = ada.teams[0].id.clone();
    assert_eq!(hub.key(&made).await.expect("it holds").role_in(&team), Some(Role::Admin));
    let less = MemberChange { role: Some(Role::Viewer), ..MemberChange::default() };
    accounts.set_member(&begun.principal, "main", "ada", &less).await.unwrap();
    let now = hub.key(&made).await.expect("it holds");
    assert_eq!(now.role_in(&team), Some(Role::Viewer));
    assert_eq!(accounts.services(&now, "main").await.expect_err("a viewer's").status(), 403);
    let off = PersonChange { disabled: Some(true), ..PersonChange::default() };
    accounts.change_person(&begun.principal, "ada", &off).await.unwrap();
    assert!(hub.key(&made).await.is_none());

    let new = NewService { name: "slurm".into(), role: Some(Role::Member) };
    accounts.add_service(&begun.principal, "main", &new).await.expect("a service");
    let key = async |scope| accounts.add_key_of_service(&begun.principal, "main", "slurm", &wanted(&[scope])).await;
    for scope in [KeyScope::TeamAdmin, KeyScope::HubAdmin, KeyScope::MetricsRead, KeyScope::AgentJoin] {
        assert!(key(scope).await.is_err(), "{scope} is beyond a member");
    }
    let made = key(KeyScope::RunsWrite).await.expect("a key");
    assert_eq!(hub.key(&made).await.expect("it holds").role_in(&team), Some(Role::Member));
    let socket = accounts.watch(&hub.key(&made).await.unwrap());
    let change = |role, disabled| ServiceChange { role, disabled };
    accounts.change_service(&begun.principal, "main", "slurm", &change(Some(Role::Viewer), None)).await.unwrap();
    assert_eq!(*socket.borrow(), Some(Ended::Rights));
    let now = hub.key(&made).await.expect("it holds");
    assert!(now.role_in(&team) == Some(Role::Viewer) && !now.allows(KeyScope::RunsWrite));
    accounts.change_service(&begun.principal, "main", "slurm", &change(None, Some(true))).await.unwrap();
    assert!(hub.key(&made).await.is_none());
    accounts.change_service(&begun.principal, "main", "slurm", &change(None, Some(false))).await.unwrap();
    assert!(hub.key(&made).await.is_some());
    accounts.remove_service(&begun.principal, "main", "slurm").await.unwrap();
    assert!(hub.key(&made).await.is_none());
}

#[tokio::test]
async fn an_account_sees_changes_and_erases_itself() {
    let (hub, begun) = Hub::with_admin().await;
    let accounts = &hub.accounts;
    assert_eq!(accounts.erase_me(&begun.principal).await.expect_err("the last admin").status(), 409);
    assert_eq!(accounts.me(&Principal::local(0)).await.expect_err("no account").status(), 403);
    hub.add("tom", Role::Member, false).await;
    let (one, two) = (hub.sign_in("tom", PASSWORD).await.unwrap(), hub.sign_in("tom", PASSWORD).await.unwrap());
    let mail = |text: &str| MeChange { email: Some(text.into()), ..MeChange::default() };
    let me = accounts.change_me(&one.principal, &mail("tom@example.org")).await.unwrap();
    assert_eq!((me.email.as_deref(), me.password, me.teams.len()), (Some("tom@example.org"), true, 1));
    assert_eq!(accounts.change_me(&one.principal, &mail("tom at home")).await.expect_err("no address").status(), 400);
    let rows = accounts.own_sessions(&one.principal).await.unwrap();
    let other = rows.iter().find(|row| !row.current).expect("the second");
    assert_eq!((rows.len(), rows.iter().filter(|row| row.current).count()), (2, 1));
    let theirs = accounts.own_sessions(&begun.principal).await.unwrap()[0].id.clone();
    assert_eq!(accounts.end_own_session(&one.principal, &theirs).await, Err(Denied::Unknown), "another's");
    let socket = accounts.watch(&two.principal);
    accounts.end_own_session(&one.principal, &other.id).await.unwrap();
    assert_eq!(*socket.borrow(), Some(Ended::SignedOut));
    let key = accounts.add_own_key(&one.principal, &wanted(&[KeyScope::DataRead])).await.unwrap();
    let export = accounts.export_me(&one.principal).await.unwrap().to_string();
    assert!(export.contains("tom@example.org") && export.contains(&key.id) && export.contains("sign-in"), "{export}");
    for secret in [one.token.reveal(), key.key.reveal(), PASSWORD, "argon2"] {
        assert!(!export.contains(secret), "{export}");
    }
    accounts.erase_me(&one.principal).await.expect("gone");
    assert!(
        accounts.session(one.token.reveal(), &network(1)).await.unwrap().is_none() && hub.key(&key).await.is_none()
    );
    let log = hub.log().await;
    assert!(log.iter().any(|row| row.contains("erased-")) && !log.iter().any(|row| row.contains("tom")), "{log:?}");
}

#[tokio::test]
async fn the_use_of_deleted_runs_names_nobody_who_was_erased_and_goes_with_its_machine() {
    let (hub, begun) = Hub::with_admin().await;
    let (accounts, by) = (&hub.accounts, &begun.principal);
    for (name, logins) in [("tom", ["tom7", "shared"]), ("ada", ["ada1", "shared"])] {
        hub.add(name, Role::Member, false).await;
        let logins = Some(logins.map(String::from).to_vec());
        accounts.set_member(by, "main", name, &MemberChange { logins, ..MemberChange::default() }).await.unwrap();
    }
    let machine = hub.machine("main", "node-1").await;
    let records = accounts.records();
    let mut change = records.change().await.unwrap();
    let team = team_rows::find(&mut change, "main").await.unwrap().expect("the first team").id;
    let used = |user: &str| format!(r#"{{"project":null,"user":{user},"days":[]}}"#);
    for (run, user, on) in [("a", "tom7", "node-2"), ("b", "shared", "node-2"), ("c", "ada1", machine.as_str())] {
        let row = RunEditRow {
            id: random_id(),
            run: run.into(),
            team: team.clone(),
            machines: format!(r#"{{"{on}":null}}"#),
            began: 1,
            ended: Some(2),
            names: "{}".into(),
            maker: "mara".into(),
            version: 1,
            updated: 3,
            deleted: Some(3),
            used: Some(used(&format!("\"{user}\""))),
        };
        run_edits::add(&mut change, &row).await.unwrap();
    }
    change.commit().await.unwrap();
    accounts.erase_person(by, "tom").await.expect("erased");
    accounts.remove(by, &machine).await.expect("removed");
    let mut left = Vec::new();
    for run in ["a", "b", "c"] {
        let rows = run_edits::list(&mut records.read().await.unwrap(), run).await.unwrap();
        left.extend(rows.into_iter().map(|row| row.used));
    }
    // Ada goes on with the login that both had.
    assert_eq!(left, [Some(used("null")), Some(used("\"shared\"")), None]);
}

#[tokio::test]
async fn a_team_goes_when_its_name_is_typed_and_it_has_no_machines() {
    let (hub, [_, second], begun) = two_teams().await;
    let (accounts, by) = (&hub.accounts, &begun.principal);
    let olga = hub.sign_in("olga", PASSWORD).await.unwrap();
    let own = accounts.add_own_key(&olga.principal, &wanted(&[KeyScope::DataRead])).await.unwrap();
    let end = |name: &str| TeamEnd { name: name.into() };
    assert_eq!(accounts.remove_team(&olga.principal, "other", &end("other")).await.expect_err("no").status(), 403);
    assert_eq!(accounts.remove_team(by, "other", &end("main")).await.expect_err("mistyped").status(), 400);
    assert_eq!(accounts.remove_team(by, "other", &end("other")).await.expect_err("a machine").status(), 409);
    accounts.remove(by, &second).await.unwrap();
    let socket = accounts.watch(&olga.principal);
    accounts.remove_team(by, "other", &end("other")).await.expect("gone");
    assert_eq!(*socket.borrow(), Some(Ended::Rights));
    let key = hub.key(&own).await.expect("a person's key is theirs, not the team's");
    assert!(key.teams.is_empty() && !key.scope().sees(&second));
    for name in ["main", "", "a b", "x/y", "..", &"x".repeat(65)] {
        assert!(accounts.add_team(by, &NewTeam { name: name.into() }).await.is_err(), "{name:?}");
    }
}

#[tokio::test]
async fn nobody_acts_for_another_by_a_name_that_is_their_id() {
    let (hub, begun) = Hub::with_admin().await;
    hub.add("ada", Role::Admin, false).await;
    let people = hub.accounts.people(&begun.principal).await.expect("all");
    let ada = people.into_iter().find(|person| person.name == "ada").expect("she is there");
    let wanted = NewPerson { name: ada.id.clone(), password: Some(secret(PASSWORD)), ..NewPerson::default() };
    assert_eq!(hub.accounts.add_person(&begun.principal, &wanted).await.expect_err("her id").status(), 409);
    let wanted = NewPerson { name: "Hub".into(), ..wanted };
    assert_eq!(hub.accounts.add_person(&begun.principal, &wanted).await.expect_err("the log's").status(), 409);
    // An account of an earlier version may have such a name.
    hub.add("eve", Role::Viewer, false).await;
    let mut eve = hub.sign_in("eve", PASSWORD).await.unwrap().principal;
    if let Who::Account { name, .. } = &mut eve.who {
        name.clone_from(&ada.id);
    }
    assert_eq!(hub.accounts.remove_member(&eve, "main", &ada.id).await.expect_err("no admin").status(), 403);
    let admin = &begun.principal;
    let there = |team: shared::team::Team| team.members.into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert!(there(hub.accounts.one_team(admin, "main").await.unwrap()).contains(&"ada".to_string()));
    hub.accounts.remove_member(&eve, "main", "eve").await.expect("she leaves");
}
