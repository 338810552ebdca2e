//! Usage: stored values and queries.

use super::teams::gpu_hours_limit;
use super::{Accounts, DAY, Denied, MAIN_TEAM, Principal, Who};
use records::usage::{self, Used};
use records::{accounts, keys, services, sources, teams};
use shared::audit::{Usage, UsageRow};
use shared::date;
use shared::role::{KeyScope, Role};
use std::collections::{BTreeMap, HashMap};

/// Days of one answer: default and maximum, which is the retention.
const DAYS: i64 = 30;
const KEPT_DAYS: i64 = 400;
/// Maximum number of values of one answer.
const VALUES: i64 = 200_000;

/// Measures in the order of the columns.
pub const MEASURES: [&str; 10] = [
    "samples",
    "bytes_in",
    "bytes_disk",
    "series",
    "late",
    "dropped",
    "viewers_peak",
    "viewer_hours",
    "bytes_out",
    "queries",
];

/// A team whose GPU time is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuTimeTeam {
    /// Ids of the machines whose runs count for it.
    pub machines: Vec<String>,
    /// Limit of its GPU-hours in a month.
    pub limit: Option<u64>,
}

/// Division of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageBy {
    /// The team as a whole.
    #[default]
    Day,
    /// Each machine.
    Source,
    /// Each key of a program.
    Key,
}

impl UsageBy {
    /// Its word in requests and in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            UsageBy::Day => "day",
            UsageBy::Source => "source",
            UsageBy::Key => "key",
        }
    }
}

impl std::str::FromStr for UsageBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [UsageBy::Day, UsageBy::Source, UsageBy::Key];
        all.into_iter().find(|by| by.as_str() == text).ok_or_else(|| format!("is day, source or key, not {text:?}"))
    }
}

/// Filter of usage rows.
#[derive(Clone, Debug, Default)]
pub struct UsageFilter {
    /// Team, by id or name; none: all for hub admins, else the only team of the principal.
    pub team: Option<String>,
    /// Division.
    pub by: UsageBy,
    /// A time of the first day, milliseconds since the Unix epoch; none: 30 days before the last.
    pub from: Option<i64>,
    /// A time of the last day; none: today.
    pub to: Option<i64>,
}

/// A value to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageCount {
    /// Days since the Unix epoch.
    pub day: i64,
    /// The team's id.
    pub team: String,
    /// `day`, `source` or `key`.
    pub kind: &'static str,
    /// Id of the source or key; empty for `day`.
    pub subject: String,
    /// The measure.
    pub measure: &'static str,
    /// The amount.
    pub value: f64,
    /// Whether the largest of a day counts; otherwise values are added.
    pub largest: bool,
}

/// Teams that usage counts for.
#[derive(Clone, Debug, Default)]
pub struct UsageHomes {
    sources: HashMap<String, String>,
    /// All teams, the hub's first team first.
    teams: Vec<String>,
}

impl UsageHomes {
    /// From machines and their teams, by id, and all teams, the hub's first team first.
    pub fn new(sources: impl IntoIterator<Item = (String, String)>, teams: Vec<String>) -> Self {
        UsageHomes { sources: sources.into_iter().collect(), teams }
    }

    /// The team whose join key a machine used, by its id.
    pub fn team_of(&self, source: &str) -> Option<&str> {
        self.sources.get(source).map(String::as_str)
    }

    /// An existing team; without an id the hub's first.
    pub fn team(&self, id: Option<&str>) -> Option<&str> {
        let found = match id {
            Some(id) => self.teams.iter().find(|team| *team == id),
            None => self.teams.first(),
        };
        found.map(String::as_str)
    }
}

impl Accounts {
    /// Teams that usage counts for.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn usage_homes(&self) -> Result<UsageHomes, Denied> {
        let mut on = self.read().await?;
        let mut all = teams::all(&mut on).await?;
        all.sort_by_key(|team| team.name != MAIN_TEAM);
        Ok(UsageHomes::new(sources::homes(&mut on).await?, all.into_iter().map(|team| team.id).collect()))
    }

    /// Stores values, all or none; those of a removed team are skipped.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn add_usage(&self, counts: &[UsageCount]) -> Result<(), Denied> {
        let mut change = self.begin_note().await?;
        let there: Vec<String> = teams::all(&mut change).await?.into_iter().map(|team| team.id).collect();
        for count in counts.iter().filter(|count| there.contains(&count.team)) {
            let of = Used {
                day: count.day,
                team: count.team.clone(),
                kind: count.kind.into(),
                subject: count.subject.clone(),
                measure: count.measure.into(),
            };
            match count.largest {
                true => usage::raise(&mut change, &of, count.value).await?,
                false => usage::add(&mut change, &of, count.value).await?,
            }
        }
        Ok(change.commit().await?)
    }

    /// Usage, by day, then by team and subject.
    ///
    /// # Errors
    /// [`Denied::Unknown`], [`Denied::Forbidden`], [`Denied::Unavailable`]; [`Denied::Invalid`] when the answer would
    /// be too large.
    pub async fn usage(&self, by: &Principal, asked: &UsageFilter) -> Result<Usage, Denied> {
        if !by.allows(KeyScope::DataRead) {
            return Err(Denied::Forbidden(format!("this needs a key with the scope {}", KeyScope::DataRead)));
        }
        let mut on = self.read().await?;
        let team = self.team_of_usage(&mut on, by, asked.team.as_deref()).await?;
        let to = asked.to.unwrap_or_else(|| self.now()).div_euclid(DAY);
        let from = asked.from.map_or(to - DAYS + 1, |from| from.div_euclid(DAY));
        if from > to || to - from >= KEPT_DAYS {
            return Err(Denied::invalid(format!("from must not be after to, and usage is kept for {KEPT_DAYS} days")));
        }
        let rows = usage::list(&mut on, team.as_deref(), asked.by.as_str(), (from, to), VALUES + 1).await?;
        if rows.len() as i64 > VALUES {
            return Err(Denied::invalid("these are too many rows; request fewer days with from= and to="));
        }
        let teams: HashMap<String, String> =
            teams::all(&mut on).await?.into_iter().map(|team| (team.id, team.name)).collect();
        let names = match asked.by {
            UsageBy::Day => HashMap::new(),
            UsageBy::Source => {
                sources::list(&mut on, None).await?.into_iter().map(|source| (source.id, source.name)).collect()
            }
            UsageBy::Key => key_names(&mut on, &rows).await?,
        };
        Ok(Usage { usage: to_rows(rows, &teams, &names), left_out: 0 })
    }
}

impl Accounts {
    /// The team whose GPU time a principal asks for; None: all teams.
    ///
    /// # Errors
    /// [`Denied::Unknown`], [`Denied::Forbidden`], [`Denied::Unavailable`].
    pub async fn gpu_time_of(&self, by: &Principal, team: Option<&str>) -> Result<Option<GpuTimeTeam>, Denied> {
        let mut on = self.read().await?;
        let Some(team) = self.team_of_usage(&mut on, by, team).await? else { return Ok(None) };
        let homes = sources::homes(&mut on).await?;
        let machines = homes.into_iter().filter(|(_, home)| *home == team).map(|(source, _)| source).collect();
        let limit = teams::find(&mut on, &team).await?.and_then(|team| gpu_hours_limit(&team));
        Ok(Some(GpuTimeTeam { machines, limit }))
    }

    /// The id of the team whose usage a principal reads; None: all teams, for hub admins.
    async fn team_of_usage(
        &self,
        on: &mut records::Connection,
        by: &Principal,
        team: Option<&str>,
    ) -> Result<Option<String>, Denied> {
        if team.is_none() && by.hub_admin {
            return Ok(None);
        }
        let team = self.own_team(on, by, team).await?;
        match self.is_member(on, by, &team.id).await? {
            true => Ok(Some(team.id)),
            false => Err(Denied::Forbidden("only members of the team can read its usage".into())),
        }
    }

    /// Whether the principal is at least a member of a team, or is a key of one, whose rights its owner limits.
    async fn is_member(&self, on: &mut records::Connection, by: &Principal, team: &str) -> Result<bool, Denied> {
        let Who::Key { id, .. } = &by.who else { return Ok(by.may(team, Role::Member)) };
        let Some(key) = keys::get(on, id).await? else { return Ok(false) };
        if let Some(owner) = &key.owner {
            let Some(account) = accounts::by_id(on, owner).await? else { return Ok(false) };
            return Ok(self
                .team_roles(on, &account)
                .await?
                .iter()
                .any(|own| own.id == team && own.role >= Role::Member));
        }
        let role = match &key.service {
            Some(service) => services::get(on, service).await?.and_then(|service| service.role.parse::<Role>().ok()),
            None => Some(Role::Admin),
        };
        Ok(key.team == team && role.is_some_and(|role| role >= Role::Member))
    }
}

/// Names of the keys in these rows.
async fn key_names(on: &mut records::Connection, rows: &[(Used, f64)]) -> Result<HashMap<String, String>, Denied> {
    let mut names = HashMap::new();
    for (used, _) in rows {
        if !names.contains_key(&used.subject) {
            let name = keys::get(on, &used.subject).await?.map_or_else(|| used.subject.clone(), |key| key.name);
            names.insert(used.subject.clone(), name);
        }
    }
    Ok(names)
}

/// Values as rows; values come in order.
fn to_rows(
    values: Vec<(Used, f64)>,
    teams: &HashMap<String, String>,
    names: &HashMap<String, String>,
) -> Vec<UsageRow> {
    let mut rows: Vec<(String, UsageRow)> = Vec::new();
    for (of, value) in values {
        let day = date::text(of.day * DAY)[..10].to_string();
        let is_next =
            rows.last().is_none_or(|(team, last)| (&last.day, team, &last.subject) != (&day, &of.team, &of.subject));
        if is_next {
            let row = UsageRow {
                day,
                team: teams.get(&of.team).unwrap_or(&of.team).clone(),
                kind: of.kind,
                name: names.get(&of.subject).unwrap_or(&of.subject).clone(),
                subject: of.subject,
                values: BTreeMap::new(),
            };
            rows.push((of.team, row));
        }
        if let Some((_, row)) = rows.last_mut() {
            row.values.insert(of.measure, value);
        }
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Usage as a CSV table, with a header line. Unknown values are empty.
pub fn usage_csv(usage: &Usage) -> String {
    use shared::csv::cell;
    let mut text = format!("day,team,kind,subject,name,{}\n", MEASURES.join(","));
    for row in &usage.usage {
        let value = |measure: &&str| row.values.get(*measure).map_or(String::new(), f64::to_string);
        let values: Vec<String> = MEASURES.iter().map(value).collect();
        let head = [&row.day, &row.team, &row.kind, &row.subject, &row.name].map(|text| cell(text)).join(",");
        text.push_str(&format!("{head},{}\n", values.join(",")));
    }
    text
}

/// Drops values older than their retention.
pub(super) async fn forget(change: &mut records::Change, now: i64) -> Result<(), records::Error> {
    usage::forget(change, now.div_euclid(DAY) - KEPT_DAYS).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_subject_are_one_row_and_no_name_is_a_formula() {
        let used = |day, subject: &str, measure: &str| Used {
            day,
            team: "t".into(),
            kind: "source".into(),
            subject: subject.into(),
            measure: measure.into(),
        };
        let values = vec![
            (used(20_000, "a", "samples"), 5.0),
            (used(20_000, "a", "series"), 1.5),
            (used(20_000, "b", "samples"), 2.0),
            (used(20_001, "a", "samples"), 1.0),
        ];
        let names = HashMap::from([("a".to_string(), "=node, 1".to_string())]);
        let usage =
            Usage { left_out: 0, usage: to_rows(values, &HashMap::from([("t".into(), "main".into())]), &names) };
        assert_eq!(
            usage_csv(&usage),
            "day,team,kind,subject,name,samples,bytes_in,bytes_disk,series,late,dropped,viewers_peak,viewer_hours,bytes_out,queries\n\
             2024-10-04,main,source,a,\"'=node, 1\",5,,,1.5,,,,,,\n\
             2024-10-04,main,source,b,b,2,,,,,,,,,\n\
             2024-10-05,main,source,a,\"'=node, 1\",1,,,,,,,,,\n"
        );
    }
}
