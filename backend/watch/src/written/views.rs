//! Saved views of a server without accounts. Everybody who sees its page sees them, and its owner changes them. The
//! views of a hub, which belong to people and teams, are those of [`team::accounts`].

use super::WrittenRegistry;
use crate::alerts::maker;
use records::views::{self, View};
use records::{Connection, teams};
use shared::views::{NewView, Reach, SavedView, ViewChange, ViewConflict};
use team::accounts::{
    Denied, MAX_TEAM_VIEWS, NotSaved, Principal, built_in_views, checked_view_name, checked_view_query, random_id,
};

impl WrittenRegistry {
    /// The built-in views, then the saved ones by name; `is_owner`: the reader may change them.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn views(&self, is_owner: bool) -> Result<Vec<SavedView>, Denied> {
        let mut all = built_in_views();
        if let Some(view) = all.first_mut() {
            view.default = true;
        }
        let Some(records) = self.0.there().await? else { return Ok(all) };
        let mut on = records.read().await?;
        let team = own_team(&mut on).await?;
        all.extend(views::list(&mut on, &team, None).await?.into_iter().map(|row| shown(row, is_owner)));
        Ok(all)
    }

    /// Saves a view.
    ///
    /// # Errors
    /// [`Denied`]: its name or query is invalid, or there are too many.
    pub async fn add_view(&self, by: &Principal, wanted: &NewView) -> Result<SavedView, Denied> {
        let (name, query) = (checked_view_name(&wanted.name)?, checked_view_query(&wanted.query)?);
        let mut change = self.0.begin().await?;
        let team = own_team(&mut change).await?;
        if views::count(&mut change, &team, None).await? >= MAX_TEAM_VIEWS {
            return Err(Denied::Conflict(format!("there are at most {MAX_TEAM_VIEWS} views; remove one first")));
        }
        let (maker, scope) = (maker(by), "team".to_string());
        let (id, updated) = (random_id(), self.0.now());
        let row = View { id, team, owner: None, maker, scope, name, query, version: 1, updated };
        views::add(&mut change, &row).await?;
        change.commit().await?;
        Ok(shown(row, true))
    }

    /// Changes a view, if it was not changed since the given version.
    ///
    /// # Errors
    /// [`NotSaved`].
    pub async fn change_view(&self, id: &str, wanted: &ViewChange) -> Result<SavedView, NotSaved> {
        let mut change = self.0.begin().await?;
        let old = saved(&mut change, id).await?;
        let name = wanted.name.as_deref().map(checked_view_name).transpose()?;
        let query = wanted.query.as_deref().map(checked_view_query).transpose()?;
        let new = View {
            name: name.unwrap_or_else(|| old.name.clone()),
            query: query.unwrap_or_else(|| old.query.clone()),
            version: wanted.version.saturating_add(1),
            updated: self.0.now(),
            ..old.clone()
        };
        if wanted.version != old.version || !views::set(&mut change, &new).await.map_err(Denied::from)? {
            return Err(NotSaved::Stale(Box::new(ViewConflict::new(shown(old, true), wanted.clone()))));
        }
        change.commit().await.map_err(Denied::from)?;
        Ok(shown(new, true))
    }

    /// Removes a view.
    ///
    /// # Errors
    /// [`Denied`]: there is none, or it is built in.
    pub async fn remove_view(&self, id: &str) -> Result<(), Denied> {
        let mut change = self.0.begin().await?;
        saved(&mut change, id).await?;
        views::remove(&mut change, id).await?;
        Ok(change.commit().await?)
    }
}

/// The id of the one team of the file.
async fn own_team(on: &mut Connection) -> Result<String, Denied> {
    teams::all(on).await?.into_iter().next().map(|team| team.id).ok_or(Denied::Unavailable)
}

async fn saved(on: &mut Connection, id: &str) -> Result<View, Denied> {
    if built_in_views().iter().any(|view| view.id == id) {
        return Err(Denied::Forbidden("this is a built-in view; save it under another name".into()));
    }
    views::get(on, id).await?.ok_or(Denied::Unknown)
}

/// A view as answers have it. There is no team to name.
fn shown(row: View, is_owner: bool) -> SavedView {
    SavedView {
        id: row.id,
        team: None,
        owner: Some(row.maker),
        own: is_owner,
        scope: Reach::Team,
        name: row.name,
        query: row.query,
        version: row.version,
        updated: row.updated / 1_000,
        default: false,
    }
}
