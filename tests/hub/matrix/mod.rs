//! The matrix of permissions: all requesters x all routes x objects of their own team, of another and of none. The
//! expected answer follows from the table of routes and the requester's role in the team of the object, never from the
//! team that a request names. A route without a request here fails the test.

mod cast;
mod rows;

use api::Operation;
use api::need::Need;
use cast::{Asker, Cast, Means, TEAMS};
use rows::{MatrixRow, PLAIN, ROWS};
use shared::role::Role;
use std::collections::BTreeSet;
use watchglass_tests::server::ServerAnswer;

/// Owner of the object of a request.
#[derive(Clone, Copy)]
pub enum About {
    /// No object: the route's role in any team is enough.
    Nothing,
    /// A team's object: the route's role in that team is needed.
    Team,
    /// A team's object, and this request needs this role.
    At(Role),
    /// An object of that team's member, for them and the admins. Others of the team receive this status.
    Made(u16),
    /// A team's object, which a share link shows only if its maker chose it.
    Chosen,
}

/// The expected answer.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// A status of the row.
    Granted,
    /// 401, or 429 when requests with invalid keys are rate-limited.
    SignIn,
    /// 403.
    Forbidden,
    /// The answer for an object that never existed.
    NotThere,
    /// This status.
    Status(u16),
}

/// The role of a requester in a team. The scope of a key limits it.
fn role_in(asker: &Asker, team: usize) -> Option<Role> {
    let role = if asker.hub_admin { Some(Role::Admin) } else { asker.roles[team] };
    match asker.means {
        Means::Key(scope) => role.map(|role| role.min(scope.least_role().unwrap_or(Role::Admin))),
        _ => role,
    }
}

/// Whether a key has this scope; people always do.
fn holds(asker: &Asker, scope: shared::role::KeyScope) -> bool {
    match asker.means {
        Means::Key(own) => own == scope,
        _ => true,
    }
}

/// Whether the route is allowed at all: its need is met in any team.
fn may_ask(need: Need, asker: &Asker) -> bool {
    let is_key = matches!(asker.means, Means::Key(_));
    let somewhere = |role: Role| (0..TEAMS.len()).any(|team| role_in(asker, team) >= Some(role));
    match need {
        Need::Open => true,
        Need::Session | Need::Own => !is_key,
        Need::Shared(scope) => holds(asker, scope) && somewhere(Role::Viewer),
        Need::Person(role) => !is_key && somewhere(role),
        Need::Role(role, scope) => holds(asker, scope) && somewhere(role),
        Need::Members(scope) => holds(asker, scope) && (is_key || somewhere(Role::Member)),
        // The team is checked with the object.
        Need::TeamAdmin => holds(asker, shared::role::KeyScope::TeamAdmin),
        Need::HubAdmin => holds(asker, shared::role::KeyScope::HubAdmin) && asker.hub_admin,
        Need::Key(_) => false,
    }
}

/// The role that a route needs in the team of the object.
fn role_of(need: Need) -> Role {
    match need {
        Need::Role(role, _) | Need::Person(role) => role,
        Need::Members(_) => Role::Member,
        Need::TeamAdmin | Need::HubAdmin => Role::Admin,
        _ => Role::Viewer,
    }
}

/// The expected answer. `team` is that of the object; None: there is no such object.
fn verdict(need: Need, about: About, asker: &Asker, team: Option<usize>) -> Verdict {
    match (&asker.means, need) {
        (_, Need::Open) => return Verdict::Granted,
        (Means::Machine(own), Need::Key(scope)) if *own == scope => return Verdict::Granted,
        (Means::Nothing, Need::Session) => return Verdict::Granted,
        (Means::Nothing | Means::NoKey | Means::Machine(_), _) => return Verdict::SignIn,
        (Means::Link, Need::Session) => return Verdict::Granted,
        (Means::Link, Need::Shared(_)) if matches!(about, About::Nothing) => return Verdict::Granted,
        (Means::Link, Need::Shared(_)) if matches!(about, About::Chosen) => return Verdict::NotThere,
        // The link gives access to all that alpha sees.
        (Means::Link, Need::Shared(_)) if team == Some(0) => return Verdict::Granted,
        (Means::Link, Need::Shared(_)) => return Verdict::NotThere,
        (Means::Link, _) => return Verdict::Forbidden,
        _ => {}
    }
    if !may_ask(need, asker) {
        return Verdict::Forbidden;
    }
    let (least, maker) = match about {
        About::Nothing => return Verdict::Granted,
        About::Team | About::Chosen => (role_of(need), None),
        About::At(role) => (role, None),
        About::Made(others) => (Role::Admin, Some(others)),
    };
    let Some(team) = team else { return Verdict::NotThere };
    // For usage, the role of the key's owner counts.
    let role = if matches!(need, Need::Members(_)) { asker.roles[team] } else { role_in(asker, team) };
    match (role, maker) {
        (None, _) => Verdict::NotThere,
        (Some(role), _) if role >= least => Verdict::Granted,
        (Some(_), Some(_)) if asker.name == format!("member-{}", TEAMS[team]) => Verdict::Granted,
        (Some(_), Some(others)) => Verdict::Status(others),
        (Some(_), None) => Verdict::Forbidden,
    }
}

fn is_right(verdict: &Verdict, row: &MatrixRow, answer: &ServerAnswer) -> bool {
    match verdict {
        Verdict::Granted => row.ok.contains(&answer.status),
        Verdict::SignIn => [401, 429].contains(&answer.status),
        Verdict::Forbidden => answer.status == 403,
        Verdict::NotThere => answer.status == 404,
        Verdict::Status(status) => answer.status == *status,
    }
}

/// A team in an answer that is not the requester's. All objects of a team contain its name.
fn leaked(asker: &Asker, text: &str) -> Option<&'static str> {
    let foreign = (0..TEAMS.len()).filter(|team| match asker.means {
        Means::Link => *team != 0,
        _ => !asker.hub_admin && asker.roles[*team].is_none(),
    });
    // The page is the same for everybody.
    foreign
        .map(|team| TEAMS[team])
        .find(|team| text.contains(&format!("-{team}")) || text.contains(&format!("\"{team}\"")))
}

/// An operation as the rows name it.
fn name(operation: Operation) -> String {
    format!("{} {}", operation.method().text(), operation.path())
}

/// Sends one request about objects of one team, as every requester.
fn ask_all(cast: &mut Cast, operation: Operation, row: &MatrixRow, team: Option<usize>, faults: &mut Vec<String>) {
    let (method, pattern) = row.route.split_once(' ').expect("a method and a path");
    let asked = if row.asked.is_empty() { pattern } else { row.asked };
    for at in 0..cast.askers.len() {
        let path = cast.filled(asked, team).replace(' ', "%20");
        let (body, is_json) = match row.body {
            PLAIN => (String::new(), false),
            body => (cast.filled(body, team), true),
        };
        let asker = &cast.askers[at];
        let answer = cast.ask(asker, method, &path, &body, is_json);
        let verdict = verdict(operation.row().need, row.about, asker, team);
        if !is_right(&verdict, row, &answer) {
            faults.push(format!(
                "{}: {method} {path} {body}: {} {}, not {verdict:?}",
                asker.name, answer.status, answer.body
            ));
        }
        // Words of the request may be repeated in the answer.
        let words = path.split(['/', '?', '&', '=']).chain(body.split('"')).filter(|word| word.len() > 3);
        let said = words.fold(answer.body.clone(), |said, word| said.replace(word, ""));
        if let Some(name) = leaked(asker, &said) {
            faults.push(format!("{}: {method} {path}: speaks of {name}: {}", asker.name, answer.body));
        }
        if !row.removes.is_empty() && answer.status < 300 {
            cast.make(row.removes, team.expect("something was there"));
        }
    }
}

#[test]
fn everybody_is_answered_by_their_role_in_the_team_of_what_they_ask_for() {
    let asked: BTreeSet<String> = ROWS.iter().map(|row| row.route.to_string()).collect();
    let there: BTreeSet<String> = Operation::ALL.iter().map(|operation| name(*operation)).collect();
    assert_eq!(asked, there, "every route is asked here");
    let mut cast = Cast::start();
    assert!(cast.askers.len() >= 17);
    let (mut faults, mut cells) = (Vec::new(), 0);
    for row in ROWS {
        let operation = *Operation::ALL.iter().find(|one| name(**one) == row.route).expect("it is there");
        let things: &[Option<usize>] = match row.about {
            About::Nothing => &[None],
            _ => &[Some(0), Some(1), None],
        };
        for team in things {
            ask_all(&mut cast, operation, row, *team, &mut faults);
            cells += cast.askers.len();
        }
    }
    assert!(faults.is_empty(), "{} of {cells} cells:\n{}", faults.len(), faults.join("\n"));
}

/// A request names one team, and an object of another.
#[test]
fn a_right_in_the_team_that_a_request_names_is_none_in_the_team_of_its_things() {
    let cast = Cast::start();
    let mut faults = Vec::new();
    for asker in cast.askers.iter().filter(|asker| asker.means == Means::Session && !asker.hub_admin) {
        // Access to objects of beta under the name of alpha, and the other way round.
        for (named, of) in [(0, 1), (1, 0)] {
            let (thing, team) = (|what: &str| cast.thing(what, Some(of)), TEAMS[named]);
            for (method, path, body) in [
                (
                    "POST",
                    format!("/api/v1/shares?team={team}"),
                    format!("{{\"query\": \"source={}\"}}", thing("machine")),
                ),
                ("POST", format!("/api/v1/shares?team={team}"), format!("{{\"view\": \"{}\"}}", thing("view"))),
                ("PUT", format!("/api/v1/teams/{team}/default-view"), format!("{{\"view\": \"{}\"}}", thing("view"))),
                ("PATCH", format!("/api/v1/teams/{team}/agents/{}", thing("machine")), "{\"labels\": {}}".into()),
                ("DELETE", format!("/api/v1/teams/{team}/agents/{}", thing("spare")), "{}".into()),
                ("POST", format!("/api/v1/teams/{team}/agents/{}/approve", thing("machine")), "{}".into()),
                ("PATCH", format!("/api/v1/teams/{team}/services/{}", thing("service")), "{\"disabled\": true}".into()),
                ("DELETE", format!("/api/v1/teams/{team}/services/{}", thing("service")), "{}".into()),
                ("GET", format!("/api/v1/teams/{team}/services/{}/keys", thing("service")), String::new()),
                ("DELETE", format!("/api/v1/teams/{team}/keys/{}", thing("key")), "{}".into()),
                ("DELETE", format!("/api/v1/teams/{team}/join/{}", thing("join")), "{}".into()),
                ("DELETE", format!("/api/v1/teams/{team}/invites/{}", thing("invite")), "{}".into()),
                ("PUT", format!("/api/v1/teams/{team}/members/{}", thing("guest")), "{\"role\": \"admin\"}".into()),
                ("DELETE", format!("/api/v1/teams/{team}/members/{}", thing("guest")), "{}".into()),
            ] {
                let answer = cast.ask(asker, method, &path, &body, true);
                if ![400, 403, 404].contains(&answer.status) {
                    faults.push(format!("{}: {method} {path} {body}: {answer:?}", asker.name));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
