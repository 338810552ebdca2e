//! Saved views, and links to them.

use super::*;
use shared::scope::Bounds;
use shared::team::{MemberChange, NewTeam};
use shared::views::{DefaultView, NewShare, NewView, Reach, Span, ViewChange};

fn view(name: &str, scope: Reach) -> NewView {
    NewView { name: name.into(), query: "?w=1h&utm=x&source=gpu-1".into(), scope }
}

fn live(query: &str) -> NewShare {
    NewShare { query: Some(query.into()), ..NewShare::default() }
}

/// A hub with a viewer, two members and an admin of `main`, which sees the machine `gpu-1` alone; `gpu-2` belongs to
/// another team.
async fn cast() -> (Hub, [Principal; 4], [String; 2], Begun) {
    let (hub, begun) = Hub::with_admin().await;
    let mut people = Vec::new();
    for (name, role) in [("vera", Role::Viewer), ("mike", Role::Member), ("tom", Role::Member), ("ada", Role::Admin)] {
        hub.add(name, role, false).await;
        people.push(hub.sign_in(name, PASSWORD).await.expect("signed in").principal);
    }
    hub.accounts.add_team(&begun.principal, &NewTeam { name: "other".into() }).await.expect("a second team");
    let machines = [hub.machine("main", "gpu-1").await, hub.machine("other", "gpu-2").await];
    (hub, people.try_into().expect("four"), machines, begun)
}

#[tokio::test]
async fn a_view_is_its_makers_and_the_teams_is_for_members() {
    let (hub, [vera, mike, tom, ada], _, _) = cast().await;
    let accounts = &hub.accounts;
    let own = accounts.add_view(&vera, None, &view("mine", Reach::Mine)).await.expect("a viewer's own");
    assert_eq!((own.query.as_str(), own.version, own.own), ("w=1h&source=gpu-1", 1, true), "unknown names go");
    assert_eq!(accounts.add_view(&vera, None, &view("ours", Reach::Team)).await.expect_err("no").status(), 403);
    let team = accounts.add_view(&mike, None, &view("ours", Reach::Team)).await.expect("a member's");
    let seen = async |by: &Principal| {
        let views = accounts.views(by, None).await.expect("listed").into_iter();
        views.filter(|one| one.scope != Reach::Builtin).map(|one| one.name).collect::<Vec<_>>()
    };
    assert_eq!((seen(&vera).await, seen(&tom).await), (vec!["ours".to_string(), "mine".into()], vec!["ours".into()]));
    let rename = ViewChange { version: 1, name: Some("theirs".into()), ..ViewChange::default() };
    for (by, id, status) in [(&tom, &team.id, 403), (&mike, &own.id, 404), (&ada, &own.id, 404)] {
        let denied = match accounts.change_view(by, id, &rename).await {
            Err(NotSaved::Denied(denied)) => denied,
            other => panic!("{other:?}"),
        };
        assert_eq!(denied.status(), status);
        assert_eq!(accounts.remove_view(by, id).await.expect_err("no").status(), status);
    }
    accounts.change_view(&ada, &team.id, &rename).await.expect("an admin can");
    let NotSaved::Stale(conflict) = accounts.change_view(&mike, &team.id, &rename).await.expect_err("stale") else {
        panic!("somebody was faster")
    };
    assert_eq!((conflict.theirs.version, conflict.theirs.name.as_str(), conflict.yours.version), (2, "theirs", 1));
    // An admin would take it away from everybody but its owner, also from the admins.
    let hide = ViewChange { version: 2, scope: Some(Reach::Mine), ..ViewChange::default() };
    let NotSaved::Denied(denied) = accounts.change_view(&ada, &team.id, &hide).await.expect_err("another's") else {
        panic!("nobody was faster")
    };
    assert_eq!(denied.status(), 400);
    assert_eq!(accounts.remove_view(&mike, "default").await.expect_err("built in").status(), 403);
    for query in ["x=1&".repeat(3_000), format!("find={}", "%20".repeat(2_800))] {
        let long = NewView { query, ..view("long", Reach::Mine) };
        assert_eq!(accounts.add_view(&mike, None, &long).await.expect_err("too long").status(), 400);
    }
    let default = |id: &str| DefaultView { view: Some(id.into()) };
    accounts.set_default_view(&ada, "main", &default(&team.id)).await.expect("the team's");
    assert_eq!(accounts.set_default_view(&ada, "main", &default(&own.id)).await, Err(Denied::Unknown));
    let views = accounts.views(&vera, None).await.unwrap();
    assert_eq!(views.iter().filter(|one| one.default).map(|one| &one.id).collect::<Vec<_>>(), [&team.id]);
    accounts.remove_member(&ada, "main", "mike").await.unwrap();
    let left = accounts.views(&vera, None).await.unwrap().into_iter().find(|one| one.id == team.id).expect("it stays");
    assert_eq!(left.owner.as_deref(), Some("mike (left)"));
}

#[tokio::test]
async fn a_persons_own_views_take_no_room_of_the_team_or_of_others() {
    let (hub, [vera, mike, ..], _, _) = cast().await;
    let accounts = &hub.accounts;
    let mut own = Vec::new();
    for n in 0..100 {
        own.push(accounts.add_view(&vera, None, &view(&format!("view {n}"), Reach::Mine)).await.expect("room"));
    }
    let full = accounts.add_view(&vera, None, &view("one more", Reach::Mine)).await.expect_err("too many");
    assert!(full.status() == 409 && full.to_string().contains("you have at most 100"), "{full}");
    accounts.add_view(&mike, None, &view("mine", Reach::Mine)).await.expect("another person's");
    let team = accounts.add_view(&mike, None, &view("ours", Reach::Team)).await.expect("the team's");
    // A change does not get around the limit either.
    accounts.remove_view(&vera, &own[0].id).await.expect("removed");
    accounts.add_view(&vera, None, &view("again", Reach::Mine)).await.expect("room");
    for n in 0..99 {
        accounts.add_view(&mike, None, &view(&format!("view {n}"), Reach::Mine)).await.expect("room");
    }
    let change = ViewChange { version: 1, scope: Some(Reach::Mine), ..ViewChange::default() };
    let NotSaved::Denied(full) = accounts.change_view(&mike, &team.id, &change).await.expect_err("too many") else {
        panic!("nobody was faster")
    };
    assert_eq!(full.status(), 409);
}

#[tokio::test]
async fn a_link_shows_what_its_maker_sees_of_its_machines_and_dies_with_their_membership() {
    let (hub, [vera, mike, tom, ada], [first, second], begun) = cast().await;
    let accounts = &hub.accounts;
    let add = async |by: &Principal, wanted: &NewShare| accounts.add_share(by, None, wanted, &[]).await;
    assert_eq!(add(&vera, &live("w=5m")).await.expect_err("a viewer").status(), 403);
    assert_eq!(add(&mike, &live("w=5m&source=gpu-2")).await.expect_err("not seen").status(), 400);
    assert_eq!(add(&mike, &live("w=5m&source=never")).await.expect_err("not there").status(), 400);
    for expires in ["91d", "never"] {
        let long = NewShare { expires: Some(expires.into()), ..live("w=5m") };
        assert_eq!(add(&mike, &long).await.expect_err("too long").status(), 400, "{expires}");
    }
    let (id, code) = add(&mike, &live("w=5m")).await.expect("a link");
    assert_eq!(accounts.open_share(&secret("guess"), &network(4)).await.expect_err("a guess").status(), 401);
    let link = accounts.open_share(&code, &network(4)).await.expect("opened");
    assert!(link.scope().sees(&first) && !link.scope().sees(&second) && !link.scope().has_team(&mike.teams[0].id));
    assert_eq!(link.bounds, Bounds::Window(300_000));
    let listed = accounts.shares(&ada, None).await.unwrap();
    assert_eq!(
        (listed[0].opens, listed[0].by.as_str(), listed[0].sources.as_slice()),
        (1, "mike", &["gpu-1".into()][..])
    );
    assert_eq!(accounts.shares(&tom, None).await.unwrap(), [], "another member's is not theirs");
    assert_eq!(accounts.end_share(&tom, &id).await, Err(Denied::Unknown));

    // A machine added later is not in it, and a removed one disappears from it.
    let third = hub.machine("main", "gpu-3").await;
    assert!(!accounts.scope(&link).await.unwrap().sees(&third));
    let none = shared::team::GrantChange { teams: Some(Vec::new()), ..Default::default() };
    accounts.set_grants(&begun.principal, &first, &none).await.unwrap();
    assert!(!accounts.scope(&link).await.unwrap().sees(&first));

    let socket = accounts.watch(&link);
    accounts.end_share(&ada, &id).await.expect("an admin can");
    assert_eq!(*socket.borrow(), Some(Ended::Share));
    assert!(accounts.share(code.reveal(), &network(4)).await.unwrap().is_none());
    let (_, code) = add(&mike, &live("w=5m")).await.expect("a link");
    let socket = accounts.watch(&accounts.open_share(&code, &network(4)).await.unwrap());
    let less = MemberChange { role: Some(Role::Viewer), ..MemberChange::default() };
    accounts.set_member(&ada, "main", "mike", &less).await.unwrap();
    assert!(socket.borrow().is_some() && accounts.share(code.reveal(), &network(4)).await.unwrap().is_none());
    let (_, code) = add(&tom, &NewShare { expires: Some("1d".into()), ..live("w=5m") }).await.expect("a link");
    hub.pass(minutes(24 * 60));
    assert!(accounts.share(code.reveal(), &network(4)).await.unwrap().is_none(), "over");
}

#[tokio::test]
async fn who_is_a_viewer_of_a_team_publishes_nothing_of_it_by_the_name_of_another() {
    let (hub, _, [first, second], begun) = cast().await;
    let (accounts, root) = (&hub.accounts, &begun.principal);
    let viewer = MemberChange { role: Some(Role::Viewer), ..MemberChange::default() };
    let member = MemberChange { role: Some(Role::Member), ..MemberChange::default() };
    let again = async |who: &str| hub.sign_in(who, PASSWORD).await.expect("signed in").principal;
    for (who, role) in [("mike", &viewer), ("ada", &viewer)] {
        accounts.set_member(root, "other", who, role).await.expect("in both teams");
    }
    let (mike, ada) = (again("mike").await, again("ada").await);
    assert!(mike.scope().sees(&second), "as a viewer");
    for by in [&mike, &ada] {
        for (word, team, status) in [
            ("gpu-2", "main", 403),
            (second.as_str(), "main", 403),
            ("gpu-1&with=gpu-2", "main", 403),
            ("gpu-2", "other", 403),
            ("gpu-3", "main", 400),
        ] {
            let denied = accounts.add_share(by, Some(team), &live(&format!("w=5m&source={word}")), &[]).await;
            assert_eq!(denied.expect_err("not theirs").status(), status, "{word} {team}");
        }
    }
    // Views saved by its people cannot be shared either.
    let theirs = accounts.add_view(root, Some("other"), &view("ours", Reach::Team)).await.expect("a view");
    let of_view = NewShare { view: Some(theirs.id), ..NewShare::default() };
    assert_eq!(accounts.add_share(&mike, Some("main"), &of_view, &[]).await.expect_err("not theirs").status(), 403);
    assert!(
        !accounts.is_member_at(&mike, &second).await.unwrap() && accounts.is_member_at(&mike, &first).await.unwrap()
    );

    // A member of both teams creates it in the team whose admins see it, and it lasts as long as the membership.
    accounts.set_member(root, "other", "mike", &member).await.expect("a member");
    let mike = again("mike").await;
    let denied =
        accounts.add_share(&mike, Some("main"), &live("w=5m&source=gpu-2"), &[]).await.expect_err("not main's");
    assert!(denied.status() == 400 && denied.to_string().contains("in a team that has access"), "{denied}");
    let (id, code) = accounts.add_share(&mike, Some("other"), &live("w=5m&source=gpu-2"), &[]).await.expect("a link");
    let listed = accounts.shares(root, Some("other")).await.unwrap();
    assert_eq!(listed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&id]);
    let link = accounts.share(code.reveal(), &network(4)).await.unwrap().expect("it holds");
    assert!(link.scope().sees(&second) && !link.scope().sees(&first));
    accounts.set_member(root, "other", "mike", &viewer).await.expect("less");
    assert!(accounts.share(code.reveal(), &network(4)).await.unwrap().is_none());
    // A link of the hub admin in a team shows machines of that team only.
    let denied = accounts.add_share(root, Some("main"), &live("w=5m&source=gpu-2"), &[]).await.expect_err("not main's");
    assert_eq!(denied.status(), 400);
    for object in ["run=r1", "alert=a1", "finding=f1"] {
        let denied = accounts.add_share(&mike, Some("other"), &live(&format!("w=5m&{object}")), &[]).await;
        assert_eq!(denied.expect_err("of unknown machines").status(), 400, "{object}: never all of the team's");
    }
}

#[tokio::test]
async fn a_link_shows_a_span_or_a_window_and_never_all() {
    let (hub, [_, mike, ..], _, _) = cast().await;
    let bounds = async |wanted: NewShare| {
        let made = hub.accounts.add_share(&mike, None, &wanted, &[]).await;
        match made {
            Ok((id, code)) => {
                let link = hub.accounts.share(code.reveal(), &network(4)).await.unwrap().expect("it holds");
                Ok((link.bounds, hub.accounts.shared(&id).await.unwrap().query))
            }
            Err(denied) => Err(denied.status()),
        }
    };
    let span = |from, to| Some(Span { from, to });
    let frozen = "w=5m&from=1795219200&to=1795219500";
    let cut = |from: i64, to: i64| Bounds::Span(from, to);
    assert_eq!(
        bounds(live(frozen)).await,
        Ok((cut(1_795_219_200_000, 1_795_219_500_000), "w=5m&from=1795219200.000&to=1795219500.000".into()))
    );
    let other = NewShare { span: span(1_795_219_210.5, 1_795_219_220.0), ..live(frozen) };
    assert_eq!(
        bounds(other).await,
        Ok((cut(1_795_219_210_500, 1_795_219_220_000), "w=5m&from=1795219210.500&to=1795219220.000".into()))
    );
    assert_eq!(bounds(live("page=fleet")).await.map(|(bounds, _)| bounds), Ok(Bounds::Window(300_000)));
    assert_eq!(bounds(live("w=1h30m")).await.map(|(bounds, _)| bounds), Ok(Bounds::Window(5_400_000)));
    for wrong in [
        live("w=99999999d"),
        live("w=soon"),
        live("from=soon&to=later"),
        NewShare { span: span(2.0, 1.0), ..live("") },
        NewShare { span: span(f64::NAN, 1.0), ..live("") },
        NewShare { span: span(0.0, 1e9), ..live("") },
        NewShare::default(),
    ] {
        assert_eq!(bounds(wrong.clone()).await, Err(400), "{wrong:?}");
    }
}
