//! Notes about machines and runs, with the rights to them: those in the team of the machine. Everybody who sees the
//! machine reads them. Their writer and admins change and remove them.

use super::WrittenRegistry;
use crate::alerts::maker;
use records::notes::{self, NoteRow};
use records::{Connection, sources, teams};
use shared::json::Seconds;
use shared::note::{NewNote, NoteChange, Notes, SavedNote, checked};
use shared::role::{KeyScope, Role};
use team::accounts::{Denied, Principal, random_id};

/// Maximum number of notes of a team.
const MAX_OF_TEAM: i64 = 10_000;

/// Maximum number of notes of an answer, and of those that are read for it: others may be about machines that the
/// reader does not see.
const MAX_LISTED: usize = 1_000;
const MAX_READ: i64 = 20_000;

/// Filter of notes.
#[derive(Clone, Debug, Default)]
pub struct WantedNotes {
    /// Only those about this machine, by its key.
    pub source: Option<String>,
    /// Only those about this run, by its ID.
    pub run: Option<String>,
    /// Only those whose text has this, ignoring case.
    pub text: Option<String>,
    /// Those that were there between these times, milliseconds since the Unix epoch.
    pub span: (i64, i64),
}

/// The subject of a new note: the key of its machine, and the ID of its run.
#[derive(Clone, Debug)]
pub struct NoteSubject {
    /// The key of its machine.
    pub source: String,
    /// The ID of its run.
    pub run: Option<String>,
}

impl WrittenRegistry {
    /// Notes on machines that `named` gives a name, by key; in order of time.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn notes(
        &self,
        by: Option<&Principal>,
        wanted: &WantedNotes,
        named: impl Fn(&str) -> Option<String>,
    ) -> Result<Notes, Denied> {
        let Some(records) = self.0.there().await? else { return Ok(Notes::default()) };
        let mut on = records.read().await?;
        let rows =
            notes::between(&mut on, (wanted.source.as_deref(), wanted.run.as_deref()), wanted.span, MAX_READ).await?;
        let part = wanted.text.as_ref().map(|text| text.to_lowercase());
        let fits = |row: &NoteRow| part.as_ref().is_none_or(|part| row.text.to_lowercase().contains(part));
        let shown = rows.into_iter().filter(fits).filter_map(|row| {
            let name = named(&row.source)?;
            Some(self.shown(by, row, name))
        });
        let mut notes: Vec<SavedNote> = shown.take(MAX_LISTED).collect();
        notes.reverse();
        Ok(Notes { notes })
    }

    /// Adds a note; `name` is that of the machine.
    ///
    /// # Errors
    /// [`Denied`]: the principal is no member of the machine's team, or there are too many notes.
    pub async fn add_note(
        &self,
        by: &Principal,
        NoteSubject { source, run }: NoteSubject,
        wanted: &NewNote,
        name: String,
    ) -> Result<SavedNote, Denied> {
        let text = checked(&wanted.text).map_err(Denied::Invalid)?;
        let (begins, ends) = wanted.span(self.0.now()).map_err(Denied::Invalid)?;
        let mut change = self.0.begin().await?;
        let team = self.team_of_source(&mut change, &source).await?;
        if !by.allows(KeyScope::RunsWrite) || !by.may(&team, Role::Member) {
            return Err(Denied::Forbidden("only members of the machine's team can write notes about it".into()));
        }
        if notes::count(&mut change, &team).await? >= MAX_OF_TEAM {
            return Err(Denied::Conflict(format!("a team has at most {MAX_OF_TEAM} notes; remove some first")));
        }
        let row = NoteRow {
            id: random_id(),
            owner: by.owner().cloned(),
            maker: maker(by),
            version: 1,
            updated: self.0.now(),
            team,
            source,
            run,
            begins,
            ends,
            text,
        };
        notes::add(&mut change, &row).await?;
        let subject = row.run.clone().unwrap_or_else(|| name.clone());
        self.0.audit(&mut change, by, ("note.add", &row.team), &subject, (None, Some(row.text.clone()))).await?;
        change.commit().await?;
        self.0.has_changed();
        Ok(self.shown(Some(by), row, name))
    }

    /// Changes the text of a note on a machine that `named` gives a name, by key.
    ///
    /// # Errors
    /// [`Denied`]: it is somebody else's, or somebody else was faster.
    pub async fn change_note(
        &self,
        by: &Principal,
        id: &str,
        wanted: &NoteChange,
        named: impl Fn(&str) -> Option<String>,
    ) -> Result<SavedNote, Denied> {
        let text = checked(&wanted.text).map_err(Denied::Invalid)?;
        let mut change = self.0.begin().await?;
        let (old, name) = self.writable(&mut change, by, id, named).await?;
        let version = i64::try_from(wanted.version).unwrap_or(i64::MAX).saturating_add(1);
        let new = NoteRow { text, version, updated: self.0.now(), ..old.clone() };
        if !notes::set(&mut change, &new).await? {
            return Err(Denied::Conflict("somebody else has changed this note meanwhile; load it again".into()));
        }
        let words = (Some(old.text), Some(new.text.clone()));
        self.0.audit(&mut change, by, ("note.change", &new.team), new.run.as_ref().unwrap_or(&name), words).await?;
        change.commit().await?;
        self.0.has_changed();
        Ok(self.shown(Some(by), new, name))
    }

    /// Removes a note on a machine that `named` gives a name, by key.
    ///
    /// # Errors
    /// [`Denied`]: it is somebody else's.
    pub async fn remove_note(
        &self,
        by: &Principal,
        id: &str,
        named: impl Fn(&str) -> Option<String>,
    ) -> Result<(), Denied> {
        if self.0.there().await?.is_none() {
            return Err(Denied::Unknown);
        }
        let mut change = self.0.begin().await?;
        let (row, name) = self.writable(&mut change, by, id, named).await?;
        notes::remove(&mut change, id).await?;
        let subject = row.run.as_ref().unwrap_or(&name);
        self.0.audit(&mut change, by, ("note.remove", &row.team), subject, (Some(row.text.clone()), None)).await?;
        change.commit().await?;
        self.0.has_changed();
        Ok(())
    }

    /// A note that the principal sees and may change, and the name of its machine.
    async fn writable(
        &self,
        on: &mut Connection,
        by: &Principal,
        id: &str,
        named: impl Fn(&str) -> Option<String>,
    ) -> Result<(NoteRow, String), Denied> {
        let row = notes::get(on, id).await?.ok_or(Denied::Unknown)?;
        let name = named(&row.source).ok_or(Denied::Unknown)?;
        match self.is_theirs(by, &row) {
            true => Ok((row, name)),
            // Names of people may be hidden from the reader.
            false => Err(Denied::Forbidden("only the writer of this note and admins of its team can change it".into())),
        }
    }

    fn is_theirs(&self, by: &Principal, row: &NoteRow) -> bool {
        let wrote = match &row.owner {
            Some(owner) => by.owner() == Some(owner),
            None => by.owner().is_none() && row.maker == maker(by),
        };
        by.allows(KeyScope::RunsWrite) && (by.may(&row.team, Role::Admin) || (wrote && by.may(&row.team, Role::Member)))
    }

    /// The id of the team of a machine, by its key.
    /// The ID of the team of a machine.
    pub(super) async fn team_of_source(&self, on: &mut Connection, source: &str) -> Result<String, Denied> {
        match self.has_teams() {
            true => Ok(sources::get(on, source).await?.ok_or(Denied::Unknown)?.team),
            false => Ok(teams::all(on).await?.into_iter().next().ok_or(Denied::Unknown)?.id),
        }
    }

    fn shown(&self, by: Option<&Principal>, row: NoteRow, name: String) -> SavedNote {
        SavedNote {
            own: by.is_some_and(|by| self.is_theirs(by, &row)),
            id: row.id,
            text: row.text,
            t: Seconds(row.begins),
            end: row.ends.map(Seconds),
            source: name,
            run: row.run,
            by: row.maker,
            updated: Seconds(row.updated),
            version: u64::try_from(row.version).unwrap_or(0),
        }
    }
}
