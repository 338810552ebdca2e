//! Responses as tables for people: columns as wide as their content.

use super::{AdminFailed, read};
use api::Operation;
use serde_json::Value;
use shared::answer::runs::{ListedRun, RunList};
use shared::answer::usage::{GpuTime, GpuTimeRow};
use shared::audit::{AuditLog, Usage};
use shared::failure::FailureClass;
use shared::json::Number;
use shared::people::{Keys, People};
use shared::session::Agents;
use shared::team::{Services, Team, Teams};
use shared::unit::{Unit, rough_duration};
use shared::views::{Shares, Views};

/// A head, and rows of the same number of columns.
type Rows = Vec<Vec<String>>;

/// The table of a list; none for a response that is no list.
///
/// # Errors
/// The response is of another version.
pub(super) fn table(operation: Operation, answer: &Value, now: i64) -> Result<Option<String>, AdminFailed> {
    let rows = match operation {
        Operation::ListAccounts => people(read(answer)?, now),
        Operation::ListTeamKeys | Operation::ListServiceKeys | Operation::ListAccountKeys => keys(read(answer)?, now),
        Operation::ListServices => services(read(answer)?, now),
        Operation::ListAgents => agents(read(answer)?, now),
        Operation::ListTeams => teams(read(answer)?),
        Operation::GetTeam => return Ok(Some(team(read(answer)?, now))),
        Operation::ListViews => views(read(answer)?),
        Operation::ListShares => shares(read(answer)?, now),
        Operation::GetUsage => usage(read(answer)?),
        Operation::GetGpuTime => gpu_time(read(answer)?),
        Operation::ListRuns => runs(read(answer)?, now),
        Operation::ListAudit => audit(read(answer)?),
        _ => return Ok(None),
    };
    Ok(Some(lined(&rows)))
}

fn standing(disabled: bool) -> String {
    if disabled { "disabled" } else { "active" }.into()
}

fn people(people: People, now: i64) -> Rows {
    let rows = people.accounts.into_iter().map(|person| {
        let teams: Vec<String> = person.teams.iter().map(|team| format!("{} of {}", team.role, team.name)).collect();
        let may = if person.hub_admin { "hub admin".into() } else { teams.join(", ") };
        vec![person.name, may, standing(person.disabled), ago(now, Some(person.created))]
    });
    with_head(["NAME", "MAY", "STATE", "MADE"], rows)
}

fn keys(keys: Keys, now: i64) -> Rows {
    let rows = keys.keys.into_iter().map(|key| {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.text()).collect();
        let ends = key.ends.map_or("never".into(), |ends| format!("in {}", span(ends - now)));
        vec![key.id, key.name, scopes.join(","), ends, ago(now, key.used)]
    });
    with_head(["ID", "NAME", "SCOPES", "ENDS", "USED"], rows)
}

fn services(services: Services, now: i64) -> Rows {
    let rows = services.services.into_iter().map(|service| {
        let (state, keys) = (standing(service.disabled), service.keys.to_string());
        vec![service.name, service.role.to_string(), state, keys, ago(now, Some(service.made)), service.id]
    });
    with_head(["NAME", "MAY", "STATE", "KEYS", "MADE", "ID"], rows)
}

fn agents(agents: Agents, now: i64) -> Rows {
    let rows = agents.agents.into_iter().map(|agent| {
        let labels: Vec<String> = agent.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let host = agent.host.filter(|host| *host != agent.name).unwrap_or_default();
        let version = agent.version.unwrap_or_default();
        // The hub stores the time once a minute, so that of a live machine is old.
        let heard = if agent.state == "live" { "now".to_string() } else { ago(now, agent.seen) };
        vec![agent.name, agent.state, heard, host, version, labels.join(","), agent.id]
    });
    with_head(["NAME", "STATE", "HEARD", "HOST", "VERSION", "LABELS", "ID"], rows)
}

fn teams(teams: Teams) -> Rows {
    let rows = teams.teams.into_iter().map(|team| vec![team.name, team.role.to_string(), team.id]);
    with_head(["TEAM", "MAY", "ID"], rows)
}

fn team(team: Team, now: i64) -> String {
    let people = team
        .members
        .into_iter()
        .map(|member| vec![member.name, member.role.to_string(), standing(member.disabled), ago(now, member.seen)]);
    let people = headed(["NAME", "MAY", "STATE", "HERE"], people);
    let machines = team
        .sources
        .into_iter()
        .map(|source| vec![source.name, if source.home { "its own".into() } else { "granted".into() }, source.id]);
    format!("{people}\n{}", headed(["MACHINE", "WHOSE", "ID"], machines))
}

fn views(views: Views) -> Rows {
    let rows = views.views.into_iter().map(|view| {
        let default = if view.default { "default" } else { "" };
        vec![view.name, view.owner.unwrap_or_default(), default.into(), view.query, view.id]
    });
    with_head(["NAME", "BY", "", "QUERY", "ID"], rows)
}

fn shares(shares: Shares, now: i64) -> Rows {
    let rows = shares.shares.into_iter().map(|share| {
        let opened = format!("{} times, {}", share.opens, ago(now, share.opened));
        vec![share.name, share.by, opened, format!("in {}", span(share.ends - now)), share.note, share.id]
    });
    with_head(["NAME", "BY", "OPENED", "ENDS", "NOTE", "ID"], rows)
}

fn usage(usage: Usage) -> Rows {
    let rows = usage.usage.into_iter().map(|row| {
        let value = |measure: &str, unit: Unit| {
            let value = row.values.get(measure).copied();
            value.map_or("-".into(), |value| {
                let scale = unit.scale(value);
                format!("{} {}", scale.number(value), scale.symbol).trim().to_string()
            })
        };
        let counted = [
            value("samples", Unit::Count),
            value("bytes_in", Unit::Bytes),
            value("bytes_disk", Unit::Bytes),
            value("series", Unit::Count),
            value("late", Unit::Count),
            value("dropped", Unit::Count),
            value("viewers_peak", Unit::Count),
            value("viewer_hours", Unit::Count),
            value("bytes_out", Unit::Bytes),
            value("queries", Unit::Count),
        ];
        [row.day, row.team, row.name].into_iter().chain(counted).collect()
    });
    let head = [
        "DAY", "TEAM", "OF", "SAMPLES", "IN", "DISK", "SERIES", "LATE", "DROPPED", "VIEWERS", "HOURS", "OUT", "QUERIES",
    ];
    with_head(head, rows)
}

fn gpu_time(usage: GpuTime) -> Rows {
    let (by, currency) = (usage.by, usage.currency.unwrap_or_default());
    let number = |value: Number| format!("{:.1}", value.0);
    let row = |row: GpuTimeRow| {
        let of = if row.of.is_empty() { "-".into() } else { row.of };
        // Sums with an unknown part are too low.
        let least = if row.partial { ">=" } else { "" };
        let known = |value: Option<Number>| value.map_or("-".into(), |value| format!("{least}{}", number(value)));
        let cost = row.cost.map_or("-".into(), |cost| format!("{least}{:.2} {currency}", cost.0));
        let name = row.name.unwrap_or_default();
        let (held, idle) = (number(row.gpu_hours), number(row.idle_gpu_hours));
        let reserved = row.reserved_gpu_hours.map_or("-".into(), number);
        vec![of, name, row.runs.to_string(), reserved, held, idle, known(row.energy_kwh), cost]
    };
    let total = GpuTimeRow { of: "total".into(), ..usage.total };
    let head =
        [by.as_str().to_uppercase().as_str(), "NAME", "RUNS", "RESERVED", "GPU-HOURS", "IDLE", "GPU KWH", "COST"]
            .map(String::from);
    std::iter::once(head.to_vec()).chain(usage.rows.into_iter().chain([total]).map(row)).collect()
}

fn runs(runs: RunList, now: i64) -> Rows {
    let rows = runs.runs.into_iter().map(|ListedRun { row, about, .. }| {
        let began = row.began.ms() / 1_000;
        let took = span(row.ended.map_or(now, |ended| ended.ms() / 1_000) - began);
        let name = about.name.filter(|name| !name.is_empty()).unwrap_or(about.program);
        let sentence = format!("{} {}", row.state.shape(), row.sentence);
        let failure = row.failure.map_or("", FailureClass::words).to_string();
        let project = about.project.unwrap_or_default();
        vec![row.id, name, project, ago(now, Some(began)), took, row.hosts.join(","), failure, sentence]
    });
    with_head(["ID", "NAME", "PROJECT", "BEGAN", "TOOK", "ON", "FAILURE", "STATE"], rows)
}

fn audit(log: AuditLog) -> Rows {
    let rows = log.entries.into_iter().map(|row| {
        let change = [row.before, row.after].map(Option::unwrap_or_default);
        let change = change.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" -> ");
        vec![shared::date::text(row.t * 1_000), row.who, row.action, row.object, change, row.result, row.network]
    });
    with_head(["AT", "WHO", "DID", "TO", "CHANGE", "RESULT", "FROM"], rows)
}

fn with_head<const N: usize>(head: [&str; N], rows: impl Iterator<Item = Vec<String>>) -> Rows {
    std::iter::once(head.map(String::from).to_vec()).chain(rows).collect()
}

/// A table with its head.
pub(super) fn headed<const N: usize>(head: [&str; N], rows: impl Iterator<Item = Vec<String>>) -> String {
    lined(&with_head(head, rows))
}

/// Age of an instant, Unix seconds.
pub(super) fn ago(now: i64, then: Option<i64>) -> String {
    then.map_or("never".into(), |then| match now - then {
        ..1 => "now".into(),
        seconds => format!("{} ago", span(seconds)),
    })
}

/// Seconds in a readable form.
fn span(seconds: i64) -> String {
    rough_duration(seconds.saturating_mul(1_000))
}

/// Rows with aligned columns.
fn lined(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_a_table_and_an_answer_is_none() {
        let agents = json!({ "agents": [
            { "id": "b".repeat(26), "name": "gpu-1", "team": "t", "state": "late", "host": "gpu-1.lab", "labels": { "rack": "r1" },
              "joined": 0, "seen": 1_000_000 - 90, "version": "0.1.0" },
            { "id": "c".repeat(26), "name": "x", "team": "t", "state": "pending", "joined": 0 },
            { "id": "d".repeat(26), "name": "y", "team": "t", "state": "live", "joined": 0, "seen": 1_000_000 - 50 },
        ] });
        let told = table(Operation::ListAgents, &agents, 1_000_000).expect("agents").expect("a table");
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "NAME   STATE    HEARD           HOST       VERSION  LABELS   ID");
        assert_eq!(
            lines[1],
            format!("gpu-1  late     1 min 30 s ago  gpu-1.lab  0.1.0    rack=r1  {}", "b".repeat(26))
        );
        assert_eq!(
            lines[2],
            format!("x      pending  never                                        {}", "c".repeat(26))
        );
        assert!(lines[3].starts_with("y      live     now   "), "{}", lines[3]);
        assert_eq!(table(Operation::RemoveSource, &json!({ "id": "x" }), 0), Ok(None));
        let failed = table(Operation::ListAgents, &json!({ "machines": [] }), 0).expect_err("another version");
        assert!(failed.to_string().contains("missing field `agents`"), "{failed}");
    }

    #[test]
    fn times_are_told_as_on_the_page() {
        let told = [0, 1, 119, 120, 7_199, 7_200, 86_399, 86_400, 864_000]
            .map(|seconds| ago(1_000_000, Some(1_000_000 - seconds)));
        assert_eq!(
            told,
            [
                "now",
                "1 s ago",
                "1 min 59 s ago",
                "2 min ago",
                "1 h 59 min ago",
                "2 h ago",
                "23 h 59 min ago",
                "1 d ago",
                "10 d ago"
            ]
        );
    }
}
