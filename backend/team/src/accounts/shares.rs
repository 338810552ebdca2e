//! Share links: one view for every holder of the link. Its content is fixed by id at its creation, ends with the link,
//! and never exceeds the present rights of its creator.

use super::attempts::Limit;
use super::session::wrong_code;
use super::teams::settings_of;
use super::views::{checked_name, checked_query};
use super::watchers::{Ended, Ends, KeyHolder};
use super::{Accounts, DAY, Denied, Done, Network, Principal, Who, key, labels, principal_cache, random};
use records::teams::Team;
use records::{Connection, accounts, grants, shares, sources, teams};
use shared::address;
use shared::catalog::job;
use shared::linked::LinkedObjects;
use shared::role::Role;
use shared::scope::{Bounds, Scope};
use shared::secret::Secret;
use shared::unit::time;
use shared::views::{NewShare, Share, SharedView, Span};
use shared::window;
use std::sync::atomic::Ordering;

/// Lifetime of a link: default and maximum.
const DEFAULT_LIFETIME: i64 = 7 * DAY;
const MAX_LIFETIME: i64 = 90 * DAY;
/// Maximum number of valid links of a team.
const SHARES: usize = 200;
/// Maximum number of machines of a link.
const SOURCES: usize = 1_000;
/// Maximum window of a live link, ms.
const WINDOW: i64 = 31 * DAY;
/// Maximum letters of a note.
const NOTE: usize = 200;

impl Accounts {
    /// The valid links of a team, newest first: a member's own, all for an admin.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn shares(&self, by: &Principal, team: Option<&str>) -> Result<Vec<Share>, Denied> {
        let mut on = self.read().await?;
        let team = self.own_team(&mut on, by, team).await?;
        let team = self.team(&mut on, by, &team.id, Role::Member).await?;
        let own = if by.may(&team.id, Role::Admin) { None } else { Some(by.owner.as_deref().unwrap_or_default()) };
        let mut shown = Vec::new();
        for row in shares::list(&mut on, &team.id, own, self.now()).await? {
            shown.push(shown_share(&mut on, row).await?);
        }
        Ok(shown)
    }

    /// Creates a link. Returns its id, and its code, which is shown once.
    ///
    /// # Errors
    /// [`Denied`]: not a member of the link's team, a view or a machine that does not exist or belongs to another team,
    /// a span without an end.
    pub async fn add_share(
        &self,
        by: &Principal,
        team: Option<&str>,
        wanted: &NewShare,
        machines: &[String],
    ) -> Result<(String, Secret), Denied> {
        let now = self.now();
        let ends = key::end_of(wanted.expires.as_deref(), Some(DEFAULT_LIFETIME), now)?
            .filter(|ends| *ends <= now + MAX_LIFETIME);
        let ends = ends.ok_or_else(|| Denied::invalid("a share link lasts at most 90d"))?;
        if wanted.note.chars().count() > NOTE || wanted.note.chars().any(char::is_control) {
            return Err(Denied::invalid(format!("a note has at most {NOTE} letters")));
        }
        let mut change = self.begin_change().await?;
        let Some(owner) = self.in_whose_name(&mut change, by).await? else {
            return Err(Denied::Forbidden(
                "only a person can create a share link; it ends with their membership".into(),
            ));
        };
        let team = self.own_team(&mut change, by, team).await?;
        let team = self.team(&mut change, by, &team.id, Role::Member).await?;
        self.check_links_on(&team)?;
        let (name, query) = match (&wanted.view, &wanted.query) {
            (Some(id), None) => {
                let view = self.seen_view(&mut change, by, id).await?;
                if view.team.as_ref().is_some_and(|home| !by.may(home, Role::Member)) {
                    return Err(Denied::Forbidden("only members can share a view of the team; ask one".into()));
                }
                (view.name, view.query)
            }
            (None, Some(query)) => ("a view".into(), checked_query(query)?),
            _ => return Err(Denied::invalid("the view is missing: give the ID of a view, or a query")),
        };
        let pairs = address::pairs(&query);
        let bounds = bounds_of(wanted.span, &pairs)?;
        let chosen = self.chosen(&mut change, by, &team, &pairs, machines).await?;
        if shares::list(&mut change, &team.id, None, now).await?.len() >= SHARES {
            return Err(Denied::conflict(format!("a team has at most {SHARES} share links; revoke one first")));
        }
        let code = random::code();
        let (span_from, span_to, live_window) = match bounds {
            Bounds::Span(from, to) => (Some(from), Some(to), None),
            Bounds::Window(length) => (None, None, Some(length)),
            Bounds::All => (None, None, Some(WINDOW)),
        };
        let row = shares::Share {
            id: random::id(),
            hash: random::hash(&code).into(),
            team: team.id.clone(),
            owner,
            maker: by.name(),
            name: checked_name(&name)?,
            query: with_span(&pairs, bounds),
            sources: labels::json(&chosen),
            span_from,
            span_to,
            live_window,
            note: wanted.note.trim().into(),
            made: now,
            ends,
            opens: 0,
            opened: None,
        };
        shares::add(&mut change, &row).await?;
        let after = Some(format!("{} machines, until {}", chosen.len(), row.ends / 1_000));
        let done = Done { action: "share.add", team: Some(&team.id), object: &row.name, after, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        Ok((row.id, Secret::new(code)))
    }

    /// Revokes a link; its sockets close within a second.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_share(&self, by: &Principal, id: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let row = shares::get(&mut change, id).await?.ok_or(Denied::Unknown)?;
        // A link of another person is visible to an admin of its team only.
        let own = by.owner.as_ref() == Some(&row.owner) && by.may(&row.team, Role::Member);
        if !own && !by.may(&row.team, Role::Admin) {
            return Err(Denied::Unknown);
        }
        shares::remove(&mut change, id).await?;
        let done = Done { action: "share.end", team: Some(&row.team), object: &row.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.end_people(Ends::One(share_holder(id)), Ended::Share);
        Ok(())
    }

    /// Opens a link by its code, which the browser stores in its cookie.
    ///
    /// # Errors
    /// [`Denied::SignIn`]: it is not valid.
    pub async fn open_share(&self, code: &Secret, network: &Network) -> Result<Principal, Denied> {
        let limits = [(Limit::Code, network.text())];
        self.attempt(&limits)?;
        let principal = self.share(code.reveal().trim(), network).await?.ok_or_else(wrong_code)?;
        let Who::Share { id, .. } = &principal.who else { return Err(wrong_code()) };
        let mut change = self.begin_note().await?;
        shares::opened(&mut change, id, self.now()).await?;
        change.commit().await?;
        self.0.attempts.succeeded(&limits);
        Ok(principal)
    }

    /// The principal of a link's code; none when it is not valid.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn share(&self, code: &str, network: &Network) -> Result<Option<Principal>, Denied> {
        let known = principal_cache::known("share", code);
        if let Some(principal) = self.judged(&known, network).await {
            return Ok(Some(principal));
        }
        let generation = self.0.records.generation();
        let row = shares::by_hash(&mut *self.read().await?, &random::hash(code), self.now()).await?;
        let Some(row) = row else { return Ok(None) };
        let principal = self.share_of(row, network).await?;
        if let Some(principal) = &principal {
            self.keep_judged(known, generation, principal);
        }
        Ok(principal)
    }

    /// The principal of a link's row; none when it is not valid.
    pub(super) async fn share_of(&self, row: shares::Share, network: &Network) -> Result<Option<Principal>, Denied> {
        let seen = self.0.people.now();
        let mut on = self.read().await?;
        if self.now() >= row.ends {
            return Ok(None);
        }
        let Some(sources) = self.still_shared(&mut on, &row).await? else { return Ok(None) };
        let nameless = match self.hides_names(&mut on, &row.team).await? {
            true => sources.iter().chain([&row.team]).cloned().collect(),
            false => Vec::new(),
        };
        let scope = Scope::only([], sources).without_charts(hidden(&row.query)).without_names(nameless);
        Ok(Some(Principal {
            who: Who::Share { id: row.id.clone(), name: row.name, objects: LinkedObjects::of_query(&row.query) },
            hub_admin: false,
            teams: Vec::new(),
            scopes: None,
            ends: Some(row.ends),
            network: network.clone(),
            owner: None,
            home: Some(row.team),
            scope,
            fresh_until: 0,
            // Its sockets close with those of its creator, and reconnect if the link is still allowed.
            holder: KeyHolder { own: share_holder(&row.id), of: row.owner, since: seen },
            session: None,
            bounds: bounds(row.span_from, row.span_to, row.live_window),
        }))
    }

    /// The present content of a link, by its id.
    ///
    /// # Errors
    /// [`Denied::Unknown`].
    pub async fn shared(&self, id: &str) -> Result<SharedView, Denied> {
        let mut on = self.read().await?;
        let row = shares::get(&mut on, id).await?.ok_or(Denied::Unknown)?;
        Ok(SharedView {
            span: span(row.span_from, row.span_to),
            window: row.live_window.map(seconds),
            id: row.id,
            name: row.name,
            by: row.maker,
            query: row.query,
            ends: row.ends / 1_000,
        })
    }

    /// Whether links of a team show anything.
    ///
    /// # Errors
    /// [`Denied::Forbidden`]: they are off for the team, or for the hub.
    fn check_links_on(&self, team: &Team) -> Result<(), Denied> {
        let off = match self.0.has_no_share_links.load(Ordering::Relaxed) {
            true => "share links are off on this hub; its configuration has sharing.links",
            false if settings_of(team).no_share_links => "share links are off for this team; ask one of its admins",
            false => return Ok(()),
        };
        Err(Denied::Forbidden(off.into()))
    }

    /// The sources of a link that its team still sees; none when its creator is no member of that team any more, or
    /// share links are off.
    pub(super) async fn still_shared(
        &self,
        on: &mut Connection,
        row: &shares::Share,
    ) -> Result<Option<Vec<String>>, Denied> {
        let maker = accounts::by_id(on, &row.owner).await?.filter(|account| account.state == "active");
        let Some(maker) = maker else { return Ok(None) };
        let roles = self.team_roles(on, &maker).await?;
        if !roles.iter().any(|own| own.id == row.team && own.role >= Role::Member) {
            return Ok(None);
        }
        let team = teams::find(on, &row.team).await?;
        if team.is_none_or(|team| self.check_links_on(&team).is_err()) {
            return Ok(None);
        }
        let mut ids: Vec<String> = serde_json::from_str(&row.sources).unwrap_or_default();
        let seen = sources::ids(on, &row.team).await?;
        ids.retain(|id| seen.contains(id));
        Ok(Some(ids))
    }

    /// The account whose membership a link depends on: its creator. For the owner of the hub's files it is the hub's
    /// first admin.
    async fn in_whose_name(&self, on: &mut Connection, by: &Principal) -> Result<Option<String>, Denied> {
        if by.owner.is_some() || !matches!(by.who, Who::Local { .. }) {
            return Ok(by.owner.clone());
        }
        let admins =
            accounts::all(on).await?.into_iter().filter(|account| account.hub_admin && account.state == "active");
        Ok(admins.min_by_key(|account| account.created).map(|account| account.id))
    }

    /// The machines that a query names, and those of its run, alert or finding, by id; those of the team where the query
    /// names neither. A link shows machines of its own team only. So that team's admins can list and revoke it, and it
    /// ends with its creator's membership there.
    async fn chosen(
        &self,
        on: &mut Connection,
        by: &Principal,
        team: &Team,
        pairs: &[(&'static str, String)],
        machines: &[String],
    ) -> Result<Vec<String>, Denied> {
        let scope = self.scope_of(on, by.hub_admin, &by.teams).await?;
        let mut ids = Vec::new();
        let of_query = pairs.iter().filter(|(name, _)| ["source", "with"].contains(name)).map(|(_, word)| word);
        for word in of_query.chain(machines) {
            let found = sources::find(on, word, self.now()).await?.filter(|source| scope.sees(&source.id));
            let found = found.ok_or_else(|| Denied::invalid(format!("there is no machine {word:?}")))?;
            let homes = grants::teams(on, &found.id).await?;
            if !homes.contains(&team.id) {
                return Err(match homes.iter().any(|home| by.may(home, Role::Member)) {
                    true => Denied::invalid(format!(
                        "the machine {word:?} does not belong to team {:?}; create the link in a team that has \
                        access",
                        team.name
                    )),
                    false => Denied::Forbidden(format!(
                        "only members of a team with access can share the machine {word:?}; ask one"
                    )),
                });
            }
            if !ids.contains(&found.id) {
                ids.push(found.id);
            }
        }
        if ids.is_empty() && pairs.iter().any(|(name, _)| ["run", "alert", "finding"].contains(name)) {
            return Err(Denied::invalid(
                "this view is of one object, but its machines are unknown; name them by source=NAME",
            ));
        }
        if ids.is_empty() {
            ids = grants::list(on, &team.id).await?.into_iter().map(|source| source.id).collect();
        }
        match ids.len() {
            0 => Err(Denied::conflict("there is no machine to show; grant one to the team first")),
            count if count > SOURCES => Err(Denied::conflict(format!("a share link shows at most {SOURCES} machines"))),
            _ => Ok(ids),
        }
    }
}

/// The charts that a query excludes, without those whose lines are drawn over another chart.
fn hidden(query: &str) -> Vec<String> {
    let pairs = address::pairs(query);
    let of = |name| pairs.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str());
    let drawn: Vec<&str> = of("over").filter_map(|pair| Some(pair.split_once('~')?.1)).collect();
    let hidden = of("hide").flat_map(|list| list.split(',')).filter(|id| !id.is_empty() && !drawn.contains(id));
    // The series of a job name its run, and a share link shows no runs.
    hidden.map(String::from).chain([job::VALUE.chart.to_string()]).collect()
}

/// The holder that sockets of a link watch.
pub(super) fn share_holder(id: &str) -> String {
    format!("share {id}")
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

fn span(from: Option<i64>, to: Option<i64>) -> Option<Span> {
    Some(Span { from: seconds(from?), to: seconds(to?) })
}

fn bounds(from: Option<i64>, to: Option<i64>, window: Option<i64>) -> Bounds {
    match (from, to) {
        (Some(from), Some(to)) => Bounds::Span(from, to),
        _ => Bounds::Window(window.unwrap_or(0)),
    }
}

/// The times that a link shows: the requested span, else that of the query, else its window.
fn bounds_of(span: Option<Span>, pairs: &[(&'static str, String)]) -> Result<Bounds, Denied> {
    let wrong = || Denied::invalid("from and to are Unix seconds, with from before to");
    let value = |name| pairs.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    let number = |name| value(name).map(|text| text.parse::<f64>().map_err(|_| wrong())).transpose();
    let (from, to) = match span {
        Some(span) => (Some(span.from), Some(span.to)),
        None => (number("from")?, number("to")?),
    };
    let (Some(from), Some(to)) = (from, to) else {
        let length = value("w").map_or(Some(window::DEFAULT.ms), length_of);
        let length = length.filter(|length| (1_000..=WINDOW).contains(length));
        return Ok(Bounds::Window(length.ok_or_else(|| Denied::invalid("w is a window such as 5m, 1h or 7d"))?));
    };
    // Older links contain milliseconds.
    let ms = |time: f64| if time.abs() < 1e11 { (time * 1_000.0).round() } else { time.round() };
    let (from, to) = (ms(from), ms(to));
    if !(from.is_finite() && to.is_finite() && from >= 0.0 && from < to && to < 1e15) {
        return Err(wrong());
    }
    if to - from > window::MAX_SAMPLES_SPAN_MS as f64 {
        let most = time::set(window::MAX_SAMPLES_SPAN_MS);
        return Err(Denied::invalid(format!(
            "a share link shows a span of at most {most}; share a live window for longer"
        )));
    }
    Ok(Bounds::Span(from as i64, to as i64))
}

/// A duration such as `90s`, `5m`, `1h30m` or `7d`, ms.
fn length_of(text: &str) -> Option<i64> {
    let (mut sum, mut number) = (0_i64, None::<i64>);
    for letter in text.chars() {
        if let Some(digit) = letter.to_digit(10) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(i64::from(digit))?);
            continue;
        }
        let unit = match letter {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => DAY,
            _ => return None,
        };
        sum = sum.checked_add(number.take()?.checked_mul(unit)?)?;
    }
    (number.is_none() && sum > 0).then_some(sum)
}

/// The query that the link opens: with its span, if it has one.
fn with_span(pairs: &[(&'static str, String)], bounds: Bounds) -> String {
    let rest = pairs.iter().filter(|(name, _)| !["from", "to"].contains(name));
    let rest = rest.map(|(name, value)| (*name, value.as_str()));
    match bounds {
        Bounds::Span(from, to) => {
            let (from, to) = (format!("{:.3}", seconds(from)), format!("{:.3}", seconds(to)));
            address::written(rest.chain([("from", from.as_str()), ("to", to.as_str())]))
        }
        _ => address::written(rest),
    }
}

async fn shown_share(on: &mut Connection, row: shares::Share) -> Result<Share, Denied> {
    let ids: Vec<String> = serde_json::from_str(&row.sources).unwrap_or_default();
    let mut names = Vec::new();
    for id in ids.iter().take(SOURCES) {
        // A removed machine is not shown.
        names.extend(sources::get(on, id).await?.map(|source| source.name));
    }
    Ok(Share {
        span: span(row.span_from, row.span_to),
        window: row.live_window.map(seconds),
        id: row.id,
        team: row.team,
        name: row.name,
        by: row.maker,
        sources: names,
        note: row.note,
        made: row.made / 1_000,
        ends: row.ends / 1_000,
        opens: u32::try_from(row.opens).unwrap_or(u32::MAX),
        opened: row.opened.map(|opened| opened / 1_000),
    })
}
