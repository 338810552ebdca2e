//! Rules: queries and changes.

use super::found::filter_of;
use super::registry::{AlertRegistry, maker, missing, scoped};
use records::rules::RuleRow as Row;
use records::{Connection, alerts, channels, rules};
use shared::alert::{Origin, Rule, RuleRow, Rules};
use shared::catalog::Catalog;
use shared::role::{KeyScope, Role};
use shared::rule;
use shared::scope::Scope;
use std::collections::HashMap;
use team::accounts::{Denied, Principal, random_id};

/// Maximum number of rules of a team.
const MAX_RULES: i64 = 500;

/// Channels without a row.
pub(super) const OWN_CHANNELS: [&str; 2] = ["me", "browser"];

/// The rule of a row; none if this version cannot read it.
pub(super) fn rule_of(row: &Row) -> Option<Rule> {
    let read = serde_json::from_str::<Rule>(&row.body);
    let read =
        read.inspect_err(|error| tracing::error!(%error, rule = row.id, "a rule in the database cannot be read"));
    let rule = read.ok()?;
    Some(Rule {
        id: row.id.clone(),
        name: row.name.clone(),
        by: row.maker.clone(),
        version: row.version,
        origin: Origin::Made,
        ..rule
    })
}

fn body(rule: &Rule) -> String {
    serde_json::to_string(rule).expect("texts, lists and numbers only")
}

impl AlertRegistry {
    /// All evaluated rules of all teams, with the team's id and the creator's account; none for configured and built-in
    /// rules.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn all_rules(&self) -> Result<Vec<(Option<String>, Option<String>, Rule)>, Denied> {
        let mut all = Vec::new();
        if let Some(records) = self.there().await? {
            for row in rules::list(&mut *records.read().await?, None).await? {
                all.extend(rule_of(&row).map(|rule| (Some(row.team), row.owner, rule)));
            }
        }
        all.extend(self.0.about.fixed.iter().map(|rule| (None, None, rule.clone())));
        Ok(all)
    }

    /// The visible rules: those of the principal's teams first, then configured ones, then built-in ones.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn rules(
        &self,
        by: &Principal,
        scope: &Scope,
        team: Option<&str>,
        catalog: &Catalog,
    ) -> Result<Rules, Denied> {
        let (mut shown, mut counts) = (Vec::new(), HashMap::new());
        if let Some(records) = self.there().await? {
            let mut on = records.read().await?;
            let teams = self.teams(&mut on, by, team, Role::Viewer).await?;
            for team in &teams {
                let rows = rules::list(&mut on, Some(&team.id)).await?;
                shown.extend(rows.iter().filter_map(rule_of));
            }
            let seen = filter_of(scope, team.map(|_| teams.iter().map(|team| team.id.clone()).collect()));
            let by_rule = alerts::by_rule(&mut on, &seen).await?;
            counts.extend(by_rule.into_iter().map(|(rule, firing, last)| (rule, (firing, last))));
        }
        let mut fixed = self.0.about.fixed.clone();
        fixed.sort_by_key(|rule| rule.origin != Origin::File);
        shown.extend(fixed);
        let row = |rule: Rule| {
            let read = rule::check(&rule, catalog);
            let (firing, last) = counts.get(&rule.id).copied().map_or((0, None), |(firing, last)| (firing, Some(last)));
            let troubles = self.troubles(&rule.id).into_iter().chain(read.as_ref().err().cloned());
            RuleRow {
                words: read.map(|condition| condition.words()).unwrap_or_default(),
                firing: u64::try_from(firing).unwrap_or(0),
                last: last.map(|last| last / 1_000),
                trouble: troubles.collect::<Vec<_>>().join("; "),
                rule,
            }
        };
        Ok(Rules { rules: shown.into_iter().map(row).collect() })
    }

    /// Creates a rule.
    ///
    /// # Errors
    /// [`Denied`]: the rule is invalid, its name is taken, or there are too many.
    pub async fn add_rule(
        &self,
        by: &Principal,
        team: Option<&str>,
        wanted: &Rule,
        catalog: &Catalog,
    ) -> Result<Rule, Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        rule::check(wanted, catalog).map_err(Denied::Invalid)?;
        let mut change = self.begin().await?;
        let team = self.team(&mut change, by, team, Role::Member).await?;
        self.can_be(&mut change, &team.id, wanted).await?;
        if rules::count(&mut change, &team.id).await? >= MAX_RULES {
            return Err(Denied::Conflict(format!("a team has at most {MAX_RULES} rules; remove one first")));
        }
        let (id, maker) = (random_id(), maker(by));
        let rule = Rule { id: id.clone(), origin: Origin::Made, by: maker.clone(), version: 1, ..wanted.clone() };
        let row = Row {
            id,
            team: team.id.clone(),
            owner: by.owner().map(Into::into),
            maker,
            name: rule.name.clone(),
            body: body(&rule),
            version: 1,
            updated: self.now(),
        };
        rules::add(&mut change, &row).await.map_err(|error| taken(error, &rule.name))?;
        self.audit(&mut change, by, ("rule.add", &team.id), &rule.name, (None, Some(rule.when.clone()))).await?;
        change.commit().await?;
        self.has_changed();
        Ok(rule)
    }

    /// Changes a rule, if it was not changed since the given version: the principal's own, or as an admin of its team.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn change_rule(
        &self,
        by: &Principal,
        id: &str,
        wanted: &Rule,
        catalog: &Catalog,
    ) -> Result<Rule, Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        let mut change = self.begin().await?;
        let old = self.own_rule(&mut change, by, id).await?;
        rule::check(wanted, catalog).map_err(Denied::Invalid)?;
        self.can_be(&mut change, &old.team, wanted).await?;
        let stale = || {
            Denied::Conflict(format!(
                "the rule has changed since you opened it (version {}): reload it and save again",
                old.version
            ))
        };
        if wanted.version != old.version {
            return Err(stale());
        }
        let version = old.version + 1;
        let rule = Rule { id: id.into(), origin: Origin::Made, by: old.maker.clone(), version, ..wanted.clone() };
        let row = Row { name: rule.name.clone(), body: body(&rule), version, updated: self.now(), ..old.clone() };
        if !rules::set(&mut change, &row).await.map_err(|error| taken(error, &rule.name))? {
            return Err(stale());
        }
        let was = rule_of(&old).map(|rule| rule.when);
        self.audit(&mut change, by, ("rule.change", &old.team), &rule.name, (was, Some(rule.when.clone()))).await?;
        change.commit().await?;
        self.has_changed();
        Ok(rule)
    }

    /// Removes a rule: the principal's own, or as an admin of its team. Its alerts stay in the history.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn remove_rule(&self, by: &Principal, id: &str) -> Result<(), Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        let mut change = self.begin().await?;
        let row = self.own_rule(&mut change, by, id).await?;
        rules::remove(&mut change, id).await?;
        let was = rule_of(&row).map(|rule| rule.when);
        self.audit(&mut change, by, ("rule.remove", &row.team), &row.name, (was, None)).await?;
        change.commit().await?;
        self.has_changed();
        Ok(())
    }

    /// Checks whether the principal may try a rule over stored data, and whether it is valid.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn may_check(&self, by: &Principal, wanted: &Rule, catalog: &Catalog) -> Result<rule::Condition, Denied> {
        scoped(by, KeyScope::AlertsWrite)?;
        rule::check(wanted, catalog).map_err(Denied::Invalid)
    }

    /// Refuses names of rules without a row, and channels that do not exist.
    async fn can_be(&self, on: &mut Connection, team: &str, wanted: &Rule) -> Result<(), Denied> {
        if self.0.about.fixed.iter().any(|fixed| fixed.name == wanted.name) {
            return Err(Denied::Conflict(format!(
                "the configuration or a built-in rule has the name {:?}; choose another name",
                wanted.name
            )));
        }
        let Some(to) = &wanted.to else { return Ok(()) };
        let known = channels::list(on, Some(team)).await?;
        let is_known =
            |name: &String| OWN_CHANNELS.contains(&name.as_str()) || known.iter().any(|channel| channel.name == *name);
        match to.iter().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(other) => {
                let names: Vec<&str> = known.iter().map(|channel| channel.name.as_str()).chain(OWN_CHANNELS).collect();
                Err(Denied::Invalid(format!("there is no channel {other:?}; channels are {}", names.join(", "))))
            }
        }
    }

    /// A rule that the principal may change.
    async fn own_rule(&self, on: &mut Connection, by: &Principal, id: &str) -> Result<Row, Denied> {
        if let Some(fixed) = self.0.about.fixed.iter().find(|rule| rule.id == id) {
            let how = match fixed.origin {
                Origin::File => "this rule is in the configuration file; change it there, or silence it",
                Origin::BuiltIn | Origin::Made => {
                    "this is a built-in rule; disable it with [rules_builtin] in the configuration, or silence it"
                }
            };
            return Err(Denied::Forbidden(how.into()));
        }
        let row = rules::get(on, id).await?.filter(|row| by.role_in(&row.team).is_some()).ok_or(Denied::Unknown)?;
        let own = match &row.owner {
            Some(owner) => by.owner() == Some(owner),
            None => row.maker == maker(by),
        };
        if by.may(&row.team, Role::Admin) || (own && by.may(&row.team, Role::Member)) {
            return Ok(row);
        }
        match by.may(&row.team, Role::Member) {
            true => Err(Denied::Forbidden(format!(
                "this rule belongs to {}; its owner or an admin can change it",
                row.maker
            ))),
            false => Err(missing(Role::Member)),
        }
    }
}

fn taken(error: records::Error, name: &str) -> Denied {
    match error.is_taken() {
        true => Denied::Conflict(format!("there is already a rule {name:?}; choose another name")),
        false => error.into(),
    }
}
