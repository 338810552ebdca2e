//! The bodies of requests and answers about saved views and share links, as JSON. Times are seconds since the Unix
//! epoch. `?team=` selects the team, by id or name; with one team it is not needed.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// Accounts that have a saved view.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Only the account that saved it.
    #[default]
    Mine,
    /// The whole team.
    Team,
    /// Everybody; it cannot be changed.
    Builtin,
}

/// `GET /api/v1/views`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Views {
    /// The built-in ones, then those of the teams, then one's own, each by name.
    pub views: Vec<SavedView>,
}

/// A saved view: the content of an address.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedView {
    /// Its id, `view=ID` in addresses.
    pub id: String,
    /// Its team's id; None if it is built in.
    pub team: Option<String>,
    /// Name of the account that saved it, with "(left)" after it if the account is gone; None if it is built in.
    pub owner: Option<String>,
    /// The caller may change and remove it.
    pub own: bool,
    /// Accounts that have it.
    pub scope: Reach,
    /// Its name, 1 to 64 letters.
    pub name: String,
    /// The address's query after its `?`, as the hub writes it.
    pub query: String,
    /// Rises with each change.
    pub version: i64,
    /// When it was changed last.
    pub updated: i64,
    /// An address without a query opens it.
    pub default: bool,
}

/// `POST /api/v1/views`: saves one; answered 201 by the [`SavedView`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewView {
    /// Its name.
    pub name: String,
    /// The address's query after its `?`, at most 8 KiB. Unknown names are dropped.
    pub query: String,
    /// Accounts that have it: `mine` or `team`.
    pub scope: Reach,
}

/// `PUT /api/v1/views/ID`: absent fields are unchanged. Answered by the [`SavedView`], or 409 by a [`ViewConflict`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ViewChange {
    /// The version that it replaces.
    pub version: i64,
    /// A new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Another reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Reach>,
}

/// Another change was saved first.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewConflict {
    /// One sentence.
    pub error: String,
    /// The view as it is stored now.
    pub theirs: SavedView,
    /// The rejected change.
    pub yours: ViewChange,
}

impl ViewConflict {
    /// The answer to a change of a view that was changed before.
    pub fn new(theirs: SavedView, yours: ViewChange) -> Self {
        let error = "the view has changed since you opened it; compare both and save again".into();
        ViewConflict { error, theirs, yours }
    }
}

/// `PUT /api/v1/teams/T/default-view`: sets the view that an address without a query opens. Answered by the team.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultView {
    /// Id of a view of the team, or of a built-in one; None: the built-in Default.
    pub view: Option<String>,
}

/// `GET /api/v1/shares`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Valid ones, newest first: a member's own, or all of the team for its admin.
    pub shares: Vec<Share>,
}

/// A share link, without its code.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Share {
    /// Its id, with which it is revoked.
    pub id: String,
    /// Its team's id.
    pub team: String,
    /// Its name: the view's name when it was made.
    pub name: String,
    /// Name of the account that made it.
    pub by: String,
    /// Names of the machines that it shows.
    pub sources: Vec<String>,
    /// The span that it shows; None: it is live.
    pub span: Option<Span>,
    /// The longest window that it shows while live, seconds.
    pub window: Option<f64>,
    /// Note of its author.
    pub note: String,
    /// When it was made.
    pub made: i64,
    /// When it ends.
    pub ends: i64,
    /// Number of times that it was opened.
    pub opens: u32,
    /// When it was opened last.
    pub opened: Option<i64>,
}

/// A span of time, Unix seconds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Its start.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

/// `POST /api/v1/shares`: answered 201 by a [`MadeShare`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewShare {
    /// Id of the view to share; None: `query` is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// The address's query after its `?`, in place of a saved view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The span to show; None: the frozen span of the query, else live with the query's window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Its lifetime: a duration such as `7d`, at most 90 d. None: 7 d.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Reason, for the list of links.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A new share link. It is shown only this once.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeShare {
    /// Its id.
    pub id: String,
    /// The link, `https://HUB/#share=CODE`.
    pub url: Secret,
}

/// `POST /api/v1/shares/open`: exchanges the code for a cookie; answered by a [`Session`](crate::session::Session)
/// whose `shared` is the shown view.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenShare {
    /// The code of the link.
    pub code: Secret,
}

/// Content of a share link.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedView {
    /// The link's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Name of the account that made it.
    pub by: String,
    /// The address's query: with its span when it has one.
    pub query: String,
    /// The span that it shows; None: it is live.
    pub span: Option<Span>,
    /// The longest window that it shows while live, seconds.
    pub window: Option<f64>,
    /// When it ends.
    pub ends: i64,
}
