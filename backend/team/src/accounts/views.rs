//! Saved views: the query of an address, under a name. A view belongs to its creator or to the team.

use super::teams::settings_of;
use super::{Accounts, Denied, Done, Principal, labels, random};
use records::{Connection, teams, views};
use shared::address;
use shared::role::{KeyScope, Role};
use shared::team::Team;
use shared::views::{DefaultView, NewView, Reach, SavedView, ViewChange, ViewConflict};

/// Maximum number of views of a team, and of a server without accounts.
pub const MAX_TEAM_VIEWS: i64 = 1_000;
/// Maximum number of views of one of its people there.
const OWN_VIEWS: i64 = 100;
/// Maximum length of a query, bytes.
const QUERY: usize = 8 << 10;
/// Maximum letters of a name.
const NAME: usize = 64;

/// Built-in views of runs: id, name, query. They are those of W&B's guide to multi-node training: without workers,
/// workers that failed, and all.
const BUILT_IN: [(&str, &str, &str); 3] = [
    ("default", "Default", "page=runs&find=type:!worker"),
    ("debug", "Debug", "page=runs&find=type:worker&state=crashed"),
    ("all-nodes", "All nodes", "page=runs"),
];

/// Reason why a view was not changed.
#[derive(Debug)]
pub enum NotSaved {
    /// Another person changed it first.
    Stale(Box<ViewConflict>),
    /// Any other reason.
    Denied(Denied),
}

impl<E: Into<Denied>> From<E> for NotSaved {
    fn from(denied: E) -> Self {
        NotSaved::Denied(denied.into())
    }
}

/// The name of a view as it is stored: trimmed, 1 to 64 letters.
///
/// # Errors
/// [`Denied::Invalid`].
pub fn checked_name(name: &str) -> Result<String, Denied> {
    let name = name.trim();
    let good = (1..=NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    match good && name.len() <= NAME * 4 {
        true => Ok(name.into()),
        false => Err(Denied::invalid(format!("the name is invalid: write 1 to {NAME} letters"))),
    }
}

/// The query of a view as it is stored: with those names only that a page knows, at most 8 KiB.
///
/// # Errors
/// [`Denied::Invalid`].
pub fn checked_query(query: &str) -> Result<String, Denied> {
    let too_long = || Denied::invalid("the view is too long: a query has at most 8 KiB");
    if query.len() > QUERY {
        return Err(too_long());
    }
    let query = address::rewritten(query);
    if query.len() > QUERY { Err(too_long()) } else { Ok(query) }
}

/// The built-in views, in their order.
pub fn built_in_views() -> Vec<SavedView> {
    BUILT_IN.iter().filter_map(|(id, ..)| built_in(id)).collect()
}

fn built_in(id: &str) -> Option<SavedView> {
    let (id, name, query) = BUILT_IN.into_iter().find(|(known, ..)| *known == id)?;
    let (id, name, query) = (id.into(), name.into(), query.into());
    Some(SavedView { id, name, query, scope: Reach::Builtin, ..SavedView::default() })
}

impl Accounts {
    /// The views of a principal: built-in ones, those of their teams, their own.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn views(&self, by: &Principal, team: Option<&str>) -> Result<Vec<SavedView>, Denied> {
        let mut on = self.read().await?;
        let all = match team {
            Some(word) => vec![self.team(&mut on, by, word, Role::Viewer).await?],
            None => {
                let all = teams::all(&mut on).await?.into_iter();
                all.filter(|team| by.role_in(&team.id).is_some()).collect()
            }
        };
        let only = if let [only] = &all[..] { settings_of(only).default_view } else { None };
        let mut shown = built_in_views();
        for view in &mut shown {
            view.default = only.as_deref().unwrap_or("default") == view.id;
        }
        for team in &all {
            let default = settings_of(team).default_view;
            for row in views::list(&mut on, &team.id, by.owner.as_deref()).await? {
                let is_default = default.as_ref() == Some(&row.id);
                shown.push(SavedView { default: is_default, ..self.shown_view(by, row) });
            }
        }
        shown.sort_by_key(|view| (view.scope != Reach::Builtin, view.scope == Reach::Mine));
        Ok(shown)
    }

    /// Saves a view.
    ///
    /// # Errors
    /// [`Denied`]: the team's views are for members, and there are too many.
    pub async fn add_view(&self, by: &Principal, team: Option<&str>, wanted: &NewView) -> Result<SavedView, Denied> {
        let (name, query) = (checked_name(&wanted.name)?, checked_query(&wanted.query)?);
        let mut change = self.begin_change().await?;
        let team = self.own_team(&mut change, by, team).await?;
        self.may_write(by, &team.id, wanted.scope)?;
        self.has_room(&mut change, by, &team.id, wanted.scope).await?;
        let row = views::View {
            id: random::id(),
            team: team.id.clone(),
            owner: by.owner.clone(),
            maker: by.name(),
            scope: scope_word(wanted.scope).into(),
            name,
            query,
            version: 1,
            updated: self.now(),
        };
        views::add(&mut change, &row).await?;
        if wanted.scope == Reach::Team {
            let done = Done { action: "view.add", team: Some(&team.id), object: &row.name, ..Done::default() };
            self.audit(&mut change, by, done).await?;
        }
        change.commit().await?;
        Ok(self.shown_view(by, row))
    }

    /// Changes a view, if it was not changed since the given version.
    ///
    /// # Errors
    /// [`NotSaved`].
    pub async fn change_view(&self, by: &Principal, id: &str, wanted: &ViewChange) -> Result<SavedView, NotSaved> {
        let mut change = self.begin_change().await?;
        let old = self.writable(&mut change, by, id).await?;
        let scope = match wanted.scope {
            Some(scope) => {
                self.may_write(by, &old.team, scope)?;
                if scope == Reach::Mine && old.owner != by.owner {
                    return Err(Denied::invalid("only its owner can make a view of the team their own").into());
                }
                if scope_word(scope) != old.scope {
                    self.has_room(&mut change, by, &old.team, scope).await?;
                }
                scope_word(scope).to_string()
            }
            None => old.scope.clone(),
        };
        let name = wanted.name.as_deref().map(checked_name).transpose()?;
        let query = wanted.query.as_deref().map(checked_query).transpose()?;
        let new = views::View {
            scope,
            name: name.unwrap_or_else(|| old.name.clone()),
            query: query.unwrap_or_else(|| old.query.clone()),
            version: wanted.version.saturating_add(1),
            updated: self.now(),
            ..old.clone()
        };
        if wanted.version != old.version || !views::set(&mut change, &new).await? {
            let conflict = ViewConflict::new(self.shown_view(by, old), wanted.clone());
            return Err(NotSaved::Stale(Box::new(conflict)));
        }
        if new.scope == "team" || old.scope == "team" {
            let (was, is) =
                (Some(format!("{}: {}", old.name, old.query)), Some(format!("{}: {}", new.name, new.query)));
            let done = Done { action: "view.change", team: Some(&new.team), object: &new.name, before: was, after: is };
            self.audit(&mut change, by, done).await?;
        }
        change.commit().await.map_err(Denied::from)?;
        Ok(self.shown_view(by, new))
    }

    /// Removes a view.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn remove_view(&self, by: &Principal, id: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let row = self.writable(&mut change, by, id).await?;
        views::remove(&mut change, id).await?;
        if row.scope == "team" {
            let done = Done { action: "view.remove", team: Some(&row.team), object: &row.name, ..Done::default() };
            self.audit(&mut change, by, done).await?;
        }
        Ok(change.commit().await?)
    }

    /// Sets the view for an address without a query.
    ///
    /// # Errors
    /// [`Denied`]: the view is no view of the team.
    pub async fn set_default_view(&self, by: &Principal, team: &str, wanted: &DefaultView) -> Result<Team, Denied> {
        let mut change = self.begin_change().await?;
        let old = self.team(&mut change, by, team, Role::Admin).await?;
        if let Some(id) = wanted.view.as_ref().filter(|id| built_in(id).is_none()) {
            let row = views::get(&mut change, id).await?;
            row.filter(|row| row.team == old.id && row.scope == "team").ok_or(Denied::Unknown)?;
        }
        let mut settings = settings_of(&old);
        settings.default_view = wanted.view.clone();
        let new = teams::Team { settings: labels::json(&settings), ..old.clone() };
        teams::set(&mut change, &new).await?;
        let done = Done {
            action: "view.default",
            team: Some(&new.id),
            object: &new.name,
            after: wanted.view.clone(),
            ..Done::default()
        };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.one_team(by, &new.id).await
    }

    /// A visible view, as it is stored; built-in ones have no row.
    pub(super) async fn seen_view(&self, on: &mut Connection, by: &Principal, id: &str) -> Result<SavedView, Denied> {
        if let Some(view) = built_in(id) {
            return Ok(view);
        }
        let row = views::get(on, id).await?.filter(|row| self.sees_view(by, row)).ok_or(Denied::Unknown)?;
        Ok(self.shown_view(by, row))
    }

    /// The query of a saved or built-in view that a principal sees.
    ///
    /// # Errors
    /// [`Denied::Unknown`].
    pub async fn query_of_view(&self, by: &Principal, id: &str) -> Result<String, Denied> {
        Ok(self.seen_view(&mut *self.read().await?, by, id).await?.query)
    }

    /// The named team, else the only one of the principal.
    pub(super) async fn own_team(
        &self,
        on: &mut Connection,
        by: &Principal,
        word: Option<&str>,
    ) -> Result<teams::Team, Denied> {
        if let Some(word) = word {
            return self.team(on, by, word, Role::Viewer).await;
        }
        let mut own = teams::all(on).await?;
        own.retain(|team| by.role_in(&team.id).is_some());
        match <[teams::Team; 1]>::try_from(own) {
            Ok([only]) => Ok(only),
            Err(own) if own.is_empty() => {
                Err(Denied::Forbidden("you are in no team; ask an admin for an invitation".into()))
            }
            Err(_) => Err(Denied::invalid("you are in several teams; choose one with ?team=NAME")),
        }
    }

    fn sees_view(&self, by: &Principal, row: &views::View) -> bool {
        let own = row.owner.is_some() && row.owner == by.owner;
        by.role_in(&row.team).is_some() && (row.scope == "team" || own)
    }

    /// A row that the principal sees and may change: their own, and for an admin those of the team.
    async fn writable(&self, on: &mut Connection, by: &Principal, id: &str) -> Result<views::View, Denied> {
        if built_in(id).is_some() {
            return Err(Denied::Forbidden("this is a built-in view; save it under another name".into()));
        }
        let row = views::get(on, id).await?.filter(|row| self.sees_view(by, row)).ok_or(Denied::Unknown)?;
        match self.is_theirs(by, &row) {
            true => Ok(row),
            // Names of people may be hidden from the reader.
            false => Err(Denied::Forbidden("only the owner of this view or an admin can change it".into())),
        }
    }

    fn is_theirs(&self, by: &Principal, row: &views::View) -> bool {
        let made = match &row.owner {
            Some(owner) => by.owner.as_ref() == Some(owner),
            None => row.maker == by.name(),
        };
        let may = if row.scope == "team" { Role::Member } else { Role::Viewer };
        (made && by.may(&row.team, may)) || (row.scope == "team" && by.may(&row.team, Role::Admin))
    }

    fn may_write(&self, by: &Principal, team: &str, scope: Reach) -> Result<(), Denied> {
        if !by.allows(KeyScope::ViewsWrite) {
            return Err(Denied::Forbidden(format!("this needs a key with the scope {}", KeyScope::ViewsWrite)));
        }
        match scope {
            Reach::Builtin => Err(Denied::invalid("scope is mine or team")),
            Reach::Mine if by.owner.is_none() => {
                Err(Denied::invalid("only a person has private views; use scope team"))
            }
            Reach::Team if !by.may(team, Role::Member) => {
                Err(Denied::Forbidden("only members can change views of the team; save it as your own".into()))
            }
            _ => Ok(()),
        }
    }

    /// Checks the maximum number of views. Own views do not count for the team, and those of a team not for another.
    async fn has_room(&self, on: &mut Connection, by: &Principal, team: &str, scope: Reach) -> Result<(), Denied> {
        let (owner, most, whose) = match scope {
            Reach::Team => (None, MAX_TEAM_VIEWS, "a team has"),
            _ => (by.owner.as_deref(), OWN_VIEWS, "you have"),
        };
        match views::count(on, team, owner).await? < most {
            true => Ok(()),
            false => Err(Denied::conflict(format!("{whose} at most {most} views in a team; remove one first"))),
        }
    }

    fn shown_view(&self, by: &Principal, row: views::View) -> SavedView {
        SavedView {
            own: self.is_theirs(by, &row),
            scope: if row.scope == "team" { Reach::Team } else { Reach::Mine },
            id: row.id,
            team: Some(row.team),
            owner: Some(row.maker),
            name: row.name,
            query: row.query,
            version: row.version,
            updated: row.updated / 1_000,
            default: false,
        }
    }
}

fn scope_word(scope: Reach) -> &'static str {
    if scope == Reach::Team { "team" } else { "mine" }
}

#[cfg(test)]
mod built_in_tests {
    use super::*;
    use shared::run::RunState;

    #[test]
    fn a_page_understands_built_in_views_whole() {
        for (id, _, query) in BUILT_IN {
            assert_eq!(address::rewritten(query).replace("%21", "!"), query, "{id}");
            let states = address::pairs(query).into_iter().filter(|(name, _)| *name == "state");
            for state in states.flat_map(|(_, list)| list.split(',').map(String::from).collect::<Vec<_>>()) {
                assert!(RunState::named(&state).is_some(), "{id}: {state}");
            }
        }
    }
}
