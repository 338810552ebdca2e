//! Accounts of programs, which belong to a team and have keys instead of a password. The rights of a service limit
//! those of its keys.

use super::service_keys::Whose;
use super::teams::check_word;
use super::watchers::{Ended, Ends};
use super::{Accounts, Denied, Done, Principal, random};
use records::{Connection, keys, services, teams};
use shared::people::{MadeKey, NewServiceKey, ServiceKey};
use shared::role::Role;
use shared::team::{NewService, Service, ServiceChange};

/// Maximum number of services of a team.
const SERVICES: usize = 200;

impl Accounts {
    /// The services of a team, by name.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn services(&self, by: &Principal, team: &str) -> Result<Vec<Service>, Denied> {
        let mut on = self.read().await?;
        let team = self.team(&mut on, by, team, Role::Admin).await?;
        let mut shown = Vec::new();
        for row in services::list(&mut on, &team.id).await? {
            shown.push(self.shown_service(&mut on, &team, row).await?);
        }
        Ok(shown)
    }

    /// Creates a service.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] when the name is taken.
    pub async fn add_service(&self, by: &Principal, team: &str, wanted: &NewService) -> Result<Service, Denied> {
        check_word(&wanted.name)?;
        let mut change = self.begin_change().await?;
        let team = self.team(&mut change, by, team, Role::Admin).await?;
        self.need_fresh(by)?;
        if services::list(&mut change, &team.id).await?.len() >= SERVICES {
            return Err(Denied::conflict(format!("a team has at most {SERVICES} services; remove one first")));
        }
        let row = services::Service {
            id: random::id(),
            team: team.id.clone(),
            name: wanted.name.clone(),
            role: wanted.role.unwrap_or(Role::Viewer).text().into(),
            state: "active".into(),
            made: self.now(),
        };
        services::add(&mut change, &row).await.map_err(|error| match error.is_taken() {
            true => Denied::conflict(format!("there is a service {:?}; choose another name", row.name)),
            false => error.into(),
        })?;
        let done = Done {
            action: "service.add",
            team: Some(&team.id),
            object: &row.name,
            after: Some(row.role.clone()),
            ..Done::default()
        };
        self.audit(&mut change, by, done).await?;
        let shown = self.shown_service(&mut change, &team, row).await?;
        change.commit().await?;
        Ok(shown)
    }

    /// Changes the rights of a service's keys; their sockets close and reconnect with the new rights.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn change_service(
        &self,
        by: &Principal,
        team: &str,
        word: &str,
        wanted: &ServiceChange,
    ) -> Result<Service, Denied> {
        let mut change = self.begin_change().await?;
        let (team, row) = self.service_of(&mut change, by, team, word).await?;
        self.need_fresh(by)?;
        let role = wanted.role.map_or(row.role.clone(), |role| role.text().into());
        let disabled = wanted.disabled.unwrap_or(row.state != "active");
        let state = if disabled { "disabled" } else { "active" };
        services::set(&mut change, &row.id, &role, state).await?;
        let (was, is) = (Some(format!("{} {}", row.role, row.state)), Some(format!("{role} {state}")));
        let done = Done { action: "service.change", team: Some(&team.id), object: &row.name, before: was, after: is };
        self.audit(&mut change, by, done).await?;
        let row = services::get(&mut change, &row.id).await?.ok_or(Denied::Unknown)?;
        let shown = self.shown_service(&mut change, &team, row).await?;
        change.commit().await?;
        self.end_people(Ends::AllOf(shown.id.clone(), None), if disabled { Ended::Disabled } else { Ended::Rights });
        Ok(shown)
    }

    /// Removes a service with its keys.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn remove_service(&self, by: &Principal, team: &str, word: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let (team, row) = self.service_of(&mut change, by, team, word).await?;
        services::remove(&mut change, &row.id).await?;
        let done = Done { action: "service.remove", team: Some(&team.id), object: &row.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.end_people(Ends::AllOf(row.id, None), Ended::Key);
        Ok(())
    }

    /// The valid keys of a service, newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn keys_of_service(&self, by: &Principal, team: &str, word: &str) -> Result<Vec<ServiceKey>, Denied> {
        let mut on = self.read().await?;
        let (team, row) = self.service_of(&mut on, by, team, word).await?;
        self.shown_keys(&mut on, &Whose::Service(team, row)).await
    }

    /// Creates a key of a service.
    ///
    /// # Errors
    /// [`Denied`]: a scope above its role, or one that the principal does not have.
    pub async fn add_key_of_service(
        &self,
        by: &Principal,
        team: &str,
        word: &str,
        wanted: &NewServiceKey,
    ) -> Result<MadeKey, Denied> {
        let mut change = self.begin_change().await?;
        let (team, row) = self.service_of(&mut change, by, team, word).await?;
        let made = self.make_key(&mut change, by, &Whose::Service(team, row), wanted).await?;
        change.commit().await?;
        Ok(made)
    }

    /// Ends a key of a service; its sockets close at once.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_key_of_service(&self, by: &Principal, team: &str, word: &str, id: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let (team, row) = self.service_of(&mut change, by, team, word).await?;
        self.end_key_of(change, by, &Whose::Service(team, row), id).await
    }

    async fn service_of(
        &self,
        on: &mut Connection,
        by: &Principal,
        team: &str,
        word: &str,
    ) -> Result<(teams::Team, services::Service), Denied> {
        let team = self.team(on, by, team, Role::Admin).await?;
        let row = services::find(on, &team.id, word).await?.ok_or(Denied::Unknown)?;
        Ok((team, row))
    }

    async fn shown_service(
        &self,
        on: &mut Connection,
        team: &teams::Team,
        row: services::Service,
    ) -> Result<Service, Denied> {
        let own = keys::list(on, Some(&team.id), "s", self.now()).await?;
        let own = own.iter().filter(|key| key.service.as_ref() == Some(&row.id)).count();
        Ok(Service {
            role: row.role.parse().map_err(|_| Denied::Unknown)?,
            disabled: row.state != "active",
            keys: u32::try_from(own).unwrap_or(u32::MAX),
            id: row.id,
            name: row.name,
            made: row.made / 1_000,
        })
    }
}
