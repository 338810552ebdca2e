//! Alerts: queries and acknowledgment.

use super::registry::{AlertRegistry, maker, missing, scoped};
use records::alerts::{AlertEvent, AlertFilter, AlertRow, NOTIFIED_STATE};
use records::{Connection, alerts, grants};
use shared::alert::{Acked, Alert, AlertEvents, AlertHappened, AlertHistory, AlertState, Alerts};
use shared::role::{KeyScope, Role};
use shared::scope::Scope;
use team::accounts::{Denied, Principal};

/// Alerts of one answer: default and maximum.
const ROWS: (i64, i64) = (200, 1_000);

/// Maximum number of events of an alert in an answer.
const EVENTS: i64 = 200;

/// Filter of alerts.
#[derive(Clone, Debug, Default)]
pub struct AlertsAsked {
    /// Team, by id or name.
    pub team: Option<String>,
    #[allow(missing_docs, reason = "see AlertState")]
    pub state: Option<AlertState>,
    /// Id or name of the rule.
    pub rule: Option<String>,
    /// Machine, by its id.
    pub source: Option<String>,
    /// Run.
    pub run: Option<String>,
    /// Not ended before, milliseconds since the Unix epoch.
    pub from: Option<i64>,
    /// Begun by then, milliseconds since the Unix epoch.
    pub to: Option<i64>,
    /// Maximum number of alerts.
    pub limit: Option<i64>,
}

/// The stored word of a state.
fn state_word(state: AlertState) -> &'static str {
    match state {
        AlertState::Pending => "pending",
        AlertState::Firing => "firing",
        AlertState::Resolved => "resolved",
    }
}

/// The row of an alert, of a team and a machine, both by id. The acknowledgment is not part of it.
pub fn row_of(alert: &Alert, team: Option<&str>, source: Option<&str>, now: i64) -> AlertRow {
    AlertRow {
        id: alert.id.clone(),
        team: team.map(Into::into),
        rule: alert.rule.clone(),
        subject: alert.subject.clone(),
        source: source.map(Into::into),
        run: alert.labels.get("run").cloned(),
        severity: alert.severity.as_str().into(),
        state: state_word(alert.state).into(),
        began: alert.began,
        ended: alert.ended,
        body: serde_json::to_string(&Alert { acked: None, held: String::new(), ..alert.clone() })
            .expect("texts, lists and finite numbers only"),
        acked_by: None,
        acked_at: None,
        updated: now,
        heard: NOTIFIED_STATE,
        held: String::new(),
    }
}

/// The alert of a row; none if this version cannot read it.
pub fn alert_of(row: AlertRow) -> Option<Alert> {
    let read = serde_json::from_str::<Alert>(&row.body);
    let read =
        read.inspect_err(|error| tracing::error!(%error, alert = row.id, "an alert in the database cannot be read"));
    let acked = row.acked_by.zip(row.acked_at).map(|(by, at)| Acked { by, at: at / 1_000 });
    Some(Alert { acked, held: row.held, ..read.ok()? })
}

/// The filter of a scope, for all its teams or for these alone.
pub(super) fn filter_of(scope: &Scope, teams: Option<Vec<String>>) -> AlertFilter {
    let (own, sources) = match scope {
        Scope::All => (None, None),
        Scope::Only { teams, sources, .. } => {
            (Some(teams.iter().cloned().collect()), Some(sources.iter().cloned().collect()))
        }
    };
    AlertFilter { teams: teams.or(own), sources, ..AlertFilter::default() }
}

/// Whether a scope sees an alert.
fn sees(scope: &Scope, row: &AlertRow) -> bool {
    match (&row.team, &row.source) {
        (None, None) => *scope == Scope::All,
        (team, source) => {
            team.as_ref().is_none_or(|team| scope.has_team(team))
                && source.as_ref().is_none_or(|source| scope.sees(source))
        }
    }
}

impl AlertRegistry {
    /// The visible alerts, newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn alerts(&self, by: &Principal, scope: &Scope, asked: &AlertsAsked) -> Result<Alerts, Denied> {
        let trouble = self.troubles("");
        let Some(records) = self.there().await? else {
            let alerts = self.about_to_fire(scope, asked, None);
            return Ok(Alerts { alerts, trouble, ..Alerts::default() });
        };
        let mut on = records.read().await?;
        let teams = match &asked.team {
            None => None,
            Some(word) => {
                let teams = self.teams(&mut on, by, Some(word), Role::Viewer).await?;
                Some(teams.into_iter().map(|team| team.id).collect())
            }
        };
        let seen = filter_of(scope, teams);
        let rule = match &asked.rule {
            None => None,
            Some(word) => Some(self.rule_called(&mut on, by, word).await?),
        };
        let filter = AlertFilter {
            state: asked.state.map(|state| state_word(state).into()),
            rule,
            source: asked.source.clone(),
            run: asked.run.clone(),
            from: asked.from,
            to: asked.to,
            ..seen.clone()
        };
        let limit = asked.limit.unwrap_or(ROWS.0).clamp(1, ROWS.1);
        let pending = self.about_to_fire(scope, asked, filter.rule.as_deref());
        let mut rows = alerts::newest(&mut on, &filter, limit + 1).await?;
        let more = rows.len() as i64 > limit;
        rows.truncate(limit as usize);
        let firing = alerts::count(&mut on, &AlertFilter { state: Some("firing".into()), ..seen }).await?;
        Ok(Alerts {
            alerts: pending.into_iter().chain(rows.into_iter().filter_map(alert_of)).collect(),
            firing: u64::try_from(firing).unwrap_or(0),
            more,
            trouble,
        })
    }

    /// The alerts about to fire that match the filter, and the id of the rule if one is given.
    fn about_to_fire(&self, scope: &Scope, asked: &AlertsAsked, rule: Option<&str>) -> Vec<Alert> {
        if asked.state.is_some_and(|state| state != AlertState::Pending) {
            return Vec::new();
        }
        self.pending(|one| {
            let alert = &one.alert;
            one.team.as_ref().is_none_or(|team| scope.has_team(team))
                && one.source.as_ref().is_none_or(|source| scope.sees(source))
                && asked.source.as_ref().is_none_or(|source| one.source.as_ref() == Some(source))
                && asked.run.as_ref().is_none_or(|run| alert.labels.get("run") == Some(run))
                && rule.or(asked.rule.as_deref()).is_none_or(|rule| alert.rule == rule || alert.name == rule)
                && asked.to.is_none_or(|to| alert.began <= to)
        })
    }

    /// A visible alert, by its id, and its events.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn alert(&self, scope: &Scope, id: &str) -> Result<AlertHistory, Denied> {
        let records = self.there().await?.ok_or(Denied::Unknown)?;
        let mut on = records.read().await?;
        let row = alerts::get(&mut on, id).await?;
        let alert = row.filter(|row| sees(scope, row)).and_then(alert_of).ok_or(Denied::Unknown)?;
        let events = alerts::events(&mut on, id, EVENTS).await?.into_iter();
        let events = events.map(|one| AlertHappened { t: one.t, what: one.kind, who: one.who, words: one.words });
        Ok(AlertHistory { alert, history: AlertEvents { events: events.collect() } })
    }

    /// Acknowledges an alert: its notice is not repeated until it ends.
    ///
    /// # Errors
    /// [`Denied`]: it has ended, or is acknowledged already.
    pub async fn ack(&self, by: &Principal, scope: &Scope, id: &str) -> Result<Alert, Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        if self.there().await?.is_none() {
            return Err(Denied::Unknown);
        }
        let mut change = self.begin().await?;
        let row = alerts::get(&mut change, id).await?.filter(|row| sees(scope, row)).ok_or(Denied::Unknown)?;
        if !self.may_ack(&mut change, by, &row).await? {
            return Err(missing(Role::Member));
        }
        let (who, now) = (maker(by), self.now());
        if !alerts::ack(&mut change, id, &who, now).await? {
            return Err(Denied::Conflict(match &row.acked_by {
                Some(by) => format!("{by} has already acknowledged it"),
                None => "the alert has ended and cannot be acknowledged".into(),
            }));
        }
        let event = AlertEvent { alert: id.into(), t: now, kind: "acked".into(), who, words: String::new() };
        alerts::happened(&mut change, &event).await?;
        let row = alerts::get(&mut change, id).await?.ok_or(Denied::Unknown)?;
        change.commit().await?;
        self.has_changed();
        alert_of(row).ok_or(Denied::Unknown)
    }

    /// Whether the principal may acknowledge: members of the alert's team. For a rule of all teams, members of a team
    /// that sees its machine.
    async fn may_ack(&self, on: &mut Connection, by: &Principal, row: &AlertRow) -> Result<bool, Denied> {
        Ok(match (&row.team, &row.source) {
            _ if by.hub_admin => true,
            (Some(team), _) => by.may(team, Role::Member),
            (None, Some(source)) => {
                let teams = grants::teams(on, source).await?;
                teams.iter().any(|team| by.may(team, Role::Member))
            }
            (None, None) => false,
        })
    }

    /// Whether the principal may mark findings on machines, by their keys, as wrong: members of a team that sees all of
    /// them.
    pub async fn may_dismiss(&self, by: &Principal, machines: &[String]) -> Result<bool, Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        if by.hub_admin {
            return Ok(true);
        }
        let Some(records) = self.there().await? else { return Ok(true) };
        let mut on = records.read().await?;
        let mut may: Option<Vec<String>> = None;
        for machine in machines {
            let teams = grants::teams(&mut on, machine).await?;
            let members = teams.into_iter().filter(|team| by.may(team, Role::Member));
            may = Some(members.filter(|team| may.as_ref().is_none_or(|before| before.contains(team))).collect());
        }
        Ok(may.is_some_and(|teams| !teams.is_empty()))
    }

    /// The id of a rule by its id or its name; an unknown word may be the id of a removed rule.
    async fn rule_called(&self, on: &mut Connection, by: &Principal, word: &str) -> Result<String, Denied> {
        if let Some(fixed) = self.0.about.fixed.iter().find(|rule| rule.name == word || rule.id == word) {
            return Ok(fixed.id.clone());
        }
        for team in self.teams(on, by, None, Role::Viewer).await? {
            let rows = records::rules::list(on, Some(&team.id)).await?;
            if let Some(row) = rows.into_iter().find(|row| row.name == word) {
                return Ok(row.id);
            }
        }
        Ok(word.into())
    }
}
